//! Findings in forms that other programs define: SARIF for code scanning, workflow commands for GitHub's log, JUnit for
//! the pages of test results.
//!
//! Pure: whoever checked the files hands over what was said. Our own form is `diagnostic::to_json`; people read what
//! `diagnostic::render` makes.

mod github;
pub mod junit;
mod sarif;

pub use github::github;
pub use sarif::sarif;

use crate::diagnostic::Diagnostic;
use crate::source::{Sources, Span};

/// One file, and what was said about it.
#[derive(Debug)]
pub struct Checked {
    /// The file's name as it was given.
    pub file: String,
    /// The findings and the texts they point into; or why the file could not be read.
    pub said: Result<(Vec<Diagnostic>, Sources), String>,
}

/// The file a span lies in, as a path from `root`, the directory that names are relative to; `None` where the text is no file
/// (a module of the program, a flag).
fn file_of(sources: &Sources, span: Span, root: &str) -> Option<String> {
    let source = sources.get(span.source);
    (!source.is_embedded() && !source.name().starts_with("--")).then(|| relative(source.name(), root))
}

/// The name as a path from `root` where it lies below it, `./` taken away; else as it is.
fn relative(name: &str, root: &str) -> String {
    let root = root.trim_end_matches('/');
    let below = name.strip_prefix(root).and_then(|rest| rest.strip_prefix('/')).filter(|_| !root.is_empty());
    let mut name = below.unwrap_or(name);
    while let Some(rest) = name.strip_prefix("./") {
        name = rest;
    }
    name.to_owned()
}

#[cfg(test)]
mod tests;
