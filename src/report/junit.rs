//! JUnit's XML, as GitLab, Jenkins and GitHub's actions read it: suites of cases, each passed, failed, or in error.

use super::{Checked, relative};
use crate::diagnostic::{Diagnostic, Level};
use crate::source::Sources;
use std::fmt::Write as _;

/// A named list of cases.
#[derive(Debug)]
pub struct Suite {
    pub name: String,
    pub cases: Vec<Case>,
}

/// One test, in the page's words.
#[derive(Debug)]
pub struct Case {
    pub name: String,
    /// The file it stands in, and the line where there is one.
    pub file: String,
    pub line: Option<u32>,
    pub outcome: Outcome,
    /// What was said besides; empty for nothing.
    pub output: String,
}

/// How a test ended.
#[derive(Debug)]
pub enum Outcome {
    Passed,
    /// What is expected does not hold: its kind, one sentence, and the whole.
    Failed {
        kind: String,
        message: String,
        text: String,
    },
    /// It could not be tried.
    Error(String),
}

/// A document of suites. `name` is what stands above them all.
pub fn document(name: &str, suites: &[Suite]) -> String {
    let mut text = String::from("<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n");
    let all = suites.iter().flat_map(|suite| &suite.cases);
    // Writing into a string does not fail, here and below.
    let _ = writeln!(text, "<testsuites name=\"{}\" {}>", escaped(name), counts(all));
    for suite in suites {
        let _ = writeln!(text, "  <testsuite name=\"{}\" {}>", escaped(&suite.name), counts(suite.cases.iter()));
        for case in &suite.cases {
            one(&mut text, &suite.name, case);
        }
        text.push_str("  </testsuite>\n");
    }
    text.push_str("</testsuites>\n");
    text
}

/// What was said about the files: a case each, which fails by findings of level error.
pub fn junit(files: &[Checked], root: &str) -> String {
    let cases = files.iter().map(|file| {
        let name = relative(&file.file, root);
        let (outcome, output) = match &file.said {
            Ok((said, sources)) => outcome(said, sources, &name, root),
            Err(message) => (Outcome::Error(message.clone()), String::new()),
        };
        Case { name: name.clone(), file: name, line: None, outcome, output }
    });
    document("srt check", &[Suite { name: "srt check".to_owned(), cases: cases.collect() }])
}

fn outcome(said: &[Diagnostic], sources: &Sources, name: &str, root: &str) -> (Outcome, String) {
    let line = |one: &Diagnostic| {
        let level = one.level.word();
        let place = one.span().map_or_else(
            || name.to_owned(),
            |span| {
                let at = sources.location(span);
                format!("{}:{}:{}", relative(&at.name, root), at.line, at.column)
            },
        );
        format!("{place}: {level}[{}]: {}\n", one.code.name, one.whole_text())
    };
    let errors: Vec<_> = said.iter().filter(|one| one.level == Level::Error).collect();
    let output = said.iter().filter(|one| one.level != Level::Error).map(line).collect();
    let Some(first) = errors.first() else { return (Outcome::Passed, output) };
    let message = match errors.len() - 1 {
        0 => first.message.clone(),
        more => format!("{} (and {more} more)", first.message),
    };
    let text = errors.iter().map(|one| line(one)).collect();
    (Outcome::Failed { kind: first.code.name.to_owned(), message, text }, output)
}

fn counts<'a>(cases: impl Iterator<Item = &'a Case>) -> String {
    let (mut tests, mut failures, mut errors) = (0, 0, 0);
    for case in cases {
        tests += 1;
        match case.outcome {
            Outcome::Passed => {}
            Outcome::Failed { .. } => failures += 1,
            Outcome::Error(_) => errors += 1,
        }
    }
    format!("tests=\"{tests}\" failures=\"{failures}\" errors=\"{errors}\" skipped=\"0\"")
}

fn one(text: &mut String, suite: &str, case: &Case) {
    let line = case.line.map(|line| format!(" line=\"{line}\"")).unwrap_or_default();
    let _ = write!(
        text,
        "    <testcase classname=\"{}\" name=\"{}\" file=\"{}\"{line}",
        escaped(suite),
        escaped(&case.name),
        escaped(&case.file)
    );
    if matches!(case.outcome, Outcome::Passed) && case.output.is_empty() {
        text.push_str("/>\n");
        return;
    }
    text.push_str(">\n");
    match &case.outcome {
        Outcome::Passed => {}
        Outcome::Failed { kind, message, text: whole } => {
            let _ = writeln!(
                text,
                "      <failure type=\"{}\" message=\"{}\">{}</failure>",
                escaped(kind),
                escaped(message),
                escaped(whole)
            );
        }
        Outcome::Error(message) => {
            let _ = writeln!(text, "      <error message=\"{}\"/>", escaped(message));
        }
    }
    if !case.output.is_empty() {
        let _ = writeln!(text, "      <system-out>{}</system-out>", escaped(&case.output));
    }
    text.push_str("    </testcase>\n");
}

/// Text as XML 1.0 has it, in an attribute too: what it cannot hold at all is shown as Rust would write it.
fn escaped(text: &str) -> String {
    let mut escaped = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '&' => escaped.push_str("&amp;"),
            '<' => escaped.push_str("&lt;"),
            '>' => escaped.push_str("&gt;"),
            '"' => escaped.push_str("&quot;"),
            // A reader makes a blank of a bare one in an attribute.
            '\n' => escaped.push_str("&#10;"),
            '\t' => escaped.push_str("&#9;"),
            '\r' => escaped.push_str("&#13;"),
            // XML 1.0 §2.2.
            '\u{0}'..='\u{1F}' | '\u{FFFE}' | '\u{FFFF}' => escaped.extend(c.escape_unicode()),
            _ => escaped.push(c),
        }
    }
    escaped
}
