//! SARIF 2.1.0 (OASIS Standard, 27 March 2020), for code scanning.
//!
//! One run, a rule for each code that was raised, its page as the rule's help. Columns count UTF-16 code units, which
//! readers assume where nothing is said, and which is said (§3.14.17). A remedy that needs no
//! thought is a fix.

use super::{Checked, file_of, relative};
use crate::diagnostic::{Code, Diagnostic};
use crate::fix::{Edit, Remedies};
use crate::source::{Sources, Span};
use serde_json::{Value, json};

/// What was said about the files, as one log. `root` is the directory that the files' names are relative to; paths below it
/// are written from there.
pub fn sarif(files: &[Checked], root: &str) -> Value {
    let mut rules: Vec<&'static Code> = files
        .iter()
        .filter_map(|file| file.said.as_ref().ok())
        .flat_map(|(said, _)| said)
        .map(|one| one.code)
        .collect();
    rules.sort_by_key(|code| code.name);
    rules.dedup();
    let mut results = Vec::new();
    let mut unread = Vec::new();
    for file in files {
        match &file.said {
            Ok((said, sources)) => {
                let mut remedies = Remedies::new(sources);
                results.extend(said.iter().map(|one| result(one, sources, &mut remedies, &file.file, &rules, root)));
            }
            Err(message) => unread.push(json!({
                "level": "error",
                "message": { "text": message },
                "locations": [{ "physicalLocation": { "artifactLocation": artifact(&relative(&file.file, root)) } }],
            })),
        }
    }
    json!({
        "$schema": "https://docs.oasis-open.org/sarif/sarif/v2.1.0/errata01/os/schemas/sarif-schema-2.1.0.json",
        "version": "2.1.0",
        "runs": [{
            "tool": { "driver": {
                "name": "srt",
                "version": env!("CARGO_PKG_VERSION"),
                "semanticVersion": env!("CARGO_PKG_VERSION"),
                "rules": rules.iter().map(|code| rule(code)).collect::<Vec<_>>(),
            } },
            "invocations": [{
                "executionSuccessful": unread.is_empty(),
                "toolExecutionNotifications": unread,
            }],
            "columnKind": "utf16CodeUnits",
            "results": results,
        }],
    })
}

fn rule(code: &Code) -> Value {
    // A doc comment's lines begin with a blank.
    let page: Vec<&str> = code.page.lines().map(|line| line.strip_prefix(' ').unwrap_or(line)).collect();
    let page = page.join("\n");
    let says = page.split("## What it says\n").nth(1).unwrap_or_default();
    let paragraph = says.trim_start().split("\n\n").next().unwrap_or_default();
    let full = paragraph.split_whitespace().collect::<Vec<_>>().join(" ");
    let short = full.split_inclusive(". ").next().unwrap_or_default().trim();
    json!({
        "id": code.name,
        "shortDescription": { "text": short },
        "fullDescription": { "text": full },
        "help": { "text": page, "markdown": page },
        "defaultConfiguration": { "level": code.level.word() },
    })
}

fn result(
    said: &Diagnostic,
    sources: &Sources,
    remedies: &mut Remedies<'_>,
    file: &str,
    rules: &[&Code],
    root: &str,
) -> Value {
    let found = match said.span() {
        Some(span) => place(sources, span, root),
        // About the file as a whole: code scanning wants a line all the same.
        None => json!({
            "physicalLocation": {
                "artifactLocation": artifact(&relative(file, root)),
                "region": { "startLine": 1 },
            },
        }),
    };
    let related = said.labels.iter().enumerate().skip(1).map(|(at, label)| {
        let mut found = place(sources, label.span, root);
        found["id"] = json!(at);
        found["message"] = json!({ "text": label.text });
        found
    });
    let mut result = json!({
        "ruleId": said.code.name,
        "ruleIndex": rules.iter().position(|code| *code == said.code),
        "level": said.level.word(),
        "message": { "text": said.whole_text() },
        "locations": [found],
    });
    let related: Vec<_> = related.collect();
    if !related.is_empty() {
        result["relatedLocations"] = json!(related);
    }
    if let Some(remedy) = remedies.of(said) {
        let changes = remedy.edits.iter().filter_map(|edit| change(edit, sources, root));
        result["fixes"] = json!([{
            "description": { "text": remedy.title },
            "artifactChanges": changes.collect::<Vec<_>>(),
        }]);
    }
    result
}

fn change(edit: &Edit, sources: &Sources, root: &str) -> Option<Value> {
    let file = file_of(sources, edit.span, root)?;
    Some(json!({
        "artifactLocation": artifact(&file),
        "replacements": [{
            "deletedRegion": region(sources, edit.span),
            "insertedContent": { "text": edit.text },
        }],
    }))
}

fn region(sources: &Sources, span: Span) -> Value {
    let extent = sources.extent(span);
    json!({
        "startLine": extent.line,
        "startColumn": extent.column,
        "endLine": extent.end_line,
        "endColumn": extent.end_column,
    })
}

/// A location; a text that is no file is named by what it is.
fn place(sources: &Sources, span: Span, root: &str) -> Value {
    let Some(file) = file_of(sources, span, root) else {
        let name = sources.get(span.source).name();
        return json!({ "logicalLocations": [{ "fullyQualifiedName": name, "kind": "module" }] });
    };
    json!({
        "physicalLocation": { "artifactLocation": artifact(&file), "region": region(sources, span) },
    })
}

/// A relative reference below the root of the sources, else an absolute one (RFC 3986).
fn artifact(file: &str) -> Value {
    let path: String = file.bytes().map(escaped).collect();
    if file.starts_with('/') {
        json!({ "uri": format!("file://{path}") })
    } else {
        json!({ "uri": path, "uriBaseId": "%SRCROOT%" })
    }
}

/// What a path segment of a URI may hold as it is (RFC 3986 §3.3; no `:`, which in a first segment would end a scheme).
fn escaped(byte: u8) -> String {
    match byte {
        b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'-' | b'.' | b'_' | b'~' | b'/' | b'@' | b'+' | b'=' | b',' => {
            char::from(byte).to_string()
        }
        _ => format!("%{byte:02X}"),
    }
}
