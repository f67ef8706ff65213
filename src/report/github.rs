//! Workflow commands of GitHub Actions: a line that begins with `::error` becomes an annotation of the change.
//!
//! Escaping as GitHub's own toolkit does it: `%`, CR and LF in a message; `:` and `,` in a property too.

use super::{Checked, file_of, relative};
use crate::diagnostic::{Diagnostic, Level};
use crate::source::Sources;
use std::fmt::Write as _;

/// What was said about the files, one command a finding. `root` is the directory that the files' names are relative to.
pub fn github(files: &[Checked], root: &str) -> String {
    let mut text = String::new();
    for file in files {
        let name = relative(&file.file, root);
        match &file.said {
            Ok((said, sources)) => {
                for one in said {
                    command(&mut text, one, sources, &name, root);
                }
            }
            Err(message) => {
                // Writing into a string does not fail.
                let _ = writeln!(text, "::error file={}::{}", property(&name), data(message));
            }
        }
    }
    text
}

fn command(text: &mut String, said: &Diagnostic, sources: &Sources, name: &str, root: &str) {
    let word = match said.level {
        Level::Note => "notice",
        Level::Warning => "warning",
        Level::Error => "error",
    };
    let mut properties = Vec::new();
    match said.span().map(|span| (span, file_of(sources, span, root))) {
        Some((span, Some(file))) => {
            let extent = sources.extent(span);
            properties.push(format!("file={}", property(&file)));
            properties.push(format!("line={},endLine={}", extent.line, extent.end_line));
            // Columns are refused where an annotation has several lines. Its last column is counted in, ours is not.
            if extent.line == extent.end_line {
                let last = extent.end_column.saturating_sub(1).max(extent.column);
                properties.push(format!("col={},endColumn={last}", extent.column));
            }
        }
        _ => properties.push(format!("file={}", property(name))),
    }
    properties.push(format!("title={}", property(said.code.name)));
    let _ = writeln!(text, "::{word} {}::{}", properties.join(","), data(&said.whole_text()));
}

fn data(text: &str) -> String {
    text.replace('%', "%25").replace('\r', "%0D").replace('\n', "%0A")
}

fn property(text: &str) -> String {
    data(text).replace(':', "%3A").replace(',', "%2C")
}
