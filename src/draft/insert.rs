//! Where new statements stand in a policy's text.

use crate::source::{SourceId, Sources};
use crate::syntax::ast::{Rule, Statement, StatementKind};
use crate::syntax::parse;
use crate::vocabulary::Effect;

/// The text with some lines after its last rule that allows something; before the first `expect` where there is none, or at
/// the end. Rules of one system alone are passed over: what was refused may be refused on others.
pub fn insert(sources: &Sources, source: SourceId, lines: &str) -> String {
    let text = sources.get(source).text();
    let (file, _) = parse(sources, source);
    let allows = |statement: &&Statement| matches!(&statement.kind, StatementKind::Rule(Rule { effect, .. }) if effect.value == Effect::Allow);
    let after = |statement: &Statement| {
        let end = statement.span.range().end;
        text[end..].find('\n').map_or(text.len(), |line| end + line + 1)
    };
    let before = |statement: &Statement| {
        let own = statement.suppressions.iter().map(|suppression| suppression.span.range().start);
        let start = own.chain([statement.span.range().start]).min().unwrap_or_default();
        text[..start].rfind('\n').map_or(0, |line| line + 1)
    };
    let expects = |statement: &&Statement| matches!(statement.kind, StatementKind::Expect(_));
    let last = file.statements.iter().rev().find(allows).map(after);
    let at = last.or_else(|| file.statements.iter().find(expects).map(before)).unwrap_or(text.len());
    let (above, below) = text.split_at(at);
    let end = if above.is_empty() || above.ends_with('\n') { "" } else { "\n" };
    format!("{above}{end}{lines}{below}")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn inserted(text: &str) -> String {
        let mut sources = Sources::default();
        let source = sources.add("test", text);
        insert(&sources, source, "allow read /new\n")
    }

    #[test]
    fn after_the_last_allow_else_before_what_is_expected_else_at_the_end() {
        for (text, expected) in [
            ("srt 1\nallow read /a # x\ndeny read /b\n", "srt 1\nallow read /a # x\nallow read /new\ndeny read /b\n"),
            ("srt 1\nallow read [\n  /a,\n]\n", "srt 1\nallow read [\n  /a,\n]\nallow read /new\n"),
            (
                "srt 1\ndeny read /a\nexpect deny read /a\n",
                "srt 1\ndeny read /a\nallow read /new\nexpect deny read /a\n",
            ),
            ("srt 1\non linux {\n  allow read /a\n}", "srt 1\non linux {\n  allow read /a\n}\nallow read /new\n"),
            ("srt 1\nallow read /a", "srt 1\nallow read /a\nallow read /new\n"),
        ] {
            assert_eq!(inserted(text), expected);
        }
    }
}
