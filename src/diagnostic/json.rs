//! Diagnostics as JSON, for machines.

use super::Diagnostic;
use crate::source::Sources;

/// One object: level, code, message, help, witness, and labels with name, line, column and byte range.
pub fn to_json(diagnostic: &Diagnostic, sources: &Sources) -> serde_json::Value {
    let labels: Vec<_> = diagnostic
        .labels
        .iter()
        .map(|label| {
            let start = sources.location(label.span);
            serde_json::json!({
                "file": start.name,
                "line": start.line,
                "column": start.column,
                "start": label.span.start,
                "end": label.span.end,
                "text": label.text,
            })
        })
        .collect();
    serde_json::json!({
        "level": diagnostic.level,
        "code": diagnostic.code.name,
        "message": diagnostic.message,
        "labels": labels,
        "help": diagnostic.help,
        "witness": diagnostic.witness,
    })
}
