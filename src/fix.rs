//! What a finding's mechanical remedy comes to: edits of the texts that the finding is about.
//!
//! A lint says *what* goes or is written instead; where the commas, the comments and the ends of lines are is known here. Where
//! the text leaves any doubt there is no remedy: people read the help. Writes nothing.

use crate::diagnostic::{Diagnostic, Fix};
use crate::source::{SourceId, Sources, Span};
use crate::syntax;
use crate::syntax::ast::{File, Statement, StatementKind, Target};
use std::collections::BTreeMap;
use std::ops::Range;

/// What to do, in the imperative, and the edits that do it: all of them or none. They do not overlap.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Remedy {
    pub title: String,
    pub edits: Vec<Edit>,
}

/// A text in place of what stands at a span.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Edit {
    pub span: Span,
    pub text: String,
}

/// The remedies of many findings about the same texts, each of which is parsed once.
pub struct Remedies<'a> {
    sources: &'a Sources,
    trees: BTreeMap<SourceId, File>,
}

impl<'a> Remedies<'a> {
    /// Of findings about these texts.
    pub fn new(sources: &'a Sources) -> Self {
        Self { sources, trees: BTreeMap::new() }
    }

    /// The remedy of a finding; `None` where it has none, and where its text is not in a file.
    pub fn of(&mut self, said: &Diagnostic) -> Option<Remedy> {
        let fix = said.fix.as_ref()?;
        let (Fix::Replace { span, .. } | Fix::Remove(span)) = fix;
        let source = self.sources.get(span.source);
        // A module is a part of this program, and a flag or a key of settings has lines of its own.
        if source.is_embedded() || source.name().starts_with("--") || source.name().contains('#') {
            return None;
        }
        let text = source.text();
        let (title, range, by) = match fix {
            Fix::Replace { span, was, by } => {
                let start = span.range().start + once(&text[span.range()], was)?;
                (format!("write `{by}` instead of `{was}`"), start..start + was.len(), by.clone())
            }
            Fix::Remove(span) => {
                let tree = self.trees.entry(span.source).or_insert_with(|| syntax::parse(self.sources, span.source).0);
                let removed = removed(&tree.statements, text, *span)?;
                (removed.title.to_owned(), removed.range, String::new())
            }
        };
        Some(Remedy { title, edits: vec![Edit { span: Span::new(span.source, range), text: by }] })
    }
}

/// Where a word stands in a text that holds it once.
fn once(text: &str, word: &str) -> Option<usize> {
    let mut found = text.match_indices(word);
    let (at, _) = found.next().filter(|_| !word.is_empty())?;
    found.next().is_none().then_some(at)
}

struct Removed {
    title: &'static str,
    range: Range<usize>,
}

/// What goes with a comment, a target or the name of a `let`.
fn removed(statements: &[Statement], text: &str, span: Span) -> Option<Removed> {
    // With the policy's other systems a rule may do what it does not do here.
    let differs = statements.iter().any(|statement| matches!(statement.kind, StatementKind::On { .. }));
    for statement in statements {
        if let Some(comment) = statement.suppressions.iter().find(|comment| comment.span == span) {
            return Some(Removed { title: "take this comment out", range: lines(text, comment.span.range())? });
        }
        match &statement.kind {
            StatementKind::Let { name, .. } if name.span == span => {
                return Some(Removed { title: "take this `let` out", range: whole(statement, text)? });
            }
            StatementKind::Rule(rule) if !differs => {
                let Some(at) = rule.targets.iter().position(|target| target.span == span) else { continue };
                return Some(if rule.targets.len() == 1 {
                    Removed { title: "take this rule out", range: whole(statement, text)? }
                } else {
                    Removed { title: "take this target out", range: element(&rule.targets, at, text)? }
                });
            }
            StatementKind::On { body, .. } => {
                // Of a block's last statement nothing is left to stand in it.
                let found = removed(body, text, span);
                if found.is_some() {
                    return found.filter(|found| body.len() > 1 || found.title == "take this comment out");
                }
            }
            _ => {}
        }
    }
    None
}

/// A statement with the comments that silence findings there.
fn whole(statement: &Statement, text: &str) -> Option<Range<usize>> {
    let first = statement.suppressions.first().map_or(statement.span, |comment| comment.span);
    lines(text, first.range().start..statement.span.range().end)
}

/// The lines that hold a range and nothing beside it but a comment behind it.
fn lines(text: &str, range: Range<usize>) -> Option<Range<usize>> {
    let start = text[..range.start].rfind('\n').map_or(0, |at| at + 1);
    let end = text[range.end..].find('\n').map_or(text.len(), |at| range.end + at + 1);
    let behind = text[range.end..end].trim();
    let alone = text[start..range.start].trim().is_empty() && (behind.is_empty() || behind.starts_with('#'));
    alone.then_some(start..end)
}

/// One of several targets, with its comma.
fn element(targets: &[Target], at: usize, text: &str) -> Option<Range<usize>> {
    let own = targets[at].span.range();
    let range = match (at.checked_sub(1).map(|before| &targets[before]), targets.get(at + 1)) {
        (_, Some(next)) => own.start..next.span.range().start,
        (Some(before), None) => before.span.range().end..own.end,
        (None, None) => return None,
    };
    // A comment between them may be about either.
    (!text[range.clone()].contains('#')).then_some(range)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use crate::resolve::CODES;

    /// A text after the remedy of a finding at `what`; `None` where there is none.
    fn mended(text: &str, what: &str, fix: impl Fn(Span) -> Fix) -> Option<String> {
        let mut sources = Sources::default();
        let source = sources.add("a.policy", text);
        let at = text.find(what).unwrap();
        let span = Span::new(source, at..at + what.len());
        let said = Diagnostic::new(CODES[0], "it is wrong").label(span, "").fix(fix(span));
        let remedy = Remedies::new(&sources).of(&said)?;
        let [edit] = &remedy.edits[..] else { panic!("{remedy:?}") };
        let mut text = text.to_owned();
        text.replace_range(edit.span.range(), &edit.text);
        Some(text)
    }

    fn taken(body: &str, what: &str) -> Option<String> {
        let head = "srt 1\ndefault read deny\n";
        let text = mended(&format!("{head}{body}"), what, Fix::Remove)?;
        Some(text.strip_prefix(head).unwrap().to_owned())
    }

    #[test]
    fn a_statement_goes_with_its_lines() {
        let body = "# kept\n# lint: allow(dead-rule) a reason\nallow read /a  # gone\nallow read /b\n";
        assert_eq!(taken(body, "/a").unwrap(), "# kept\nallow read /b\n");
        assert_eq!(taken("let x = [\n  /a,\n  /b,\n]\nallow read /c\n", "x").unwrap(), "allow read /c\n");
        assert_eq!(taken("allow read /a\n  except /a/b\n  because \"c\"\nset A=1\n", "/a").unwrap(), "set A=1\n");
        assert_eq!(taken("allow read /a", "/a").unwrap(), "");
        let body = "# lint: allow(dead-rule) a reason\nallow read /a\n";
        assert_eq!(taken(body, "# lint: allow(dead-rule) a reason").unwrap(), "allow read /a\n");
    }

    #[test]
    fn a_target_goes_with_its_comma() {
        assert_eq!(taken("allow read [/a, /b, /c]\n", "/a").unwrap(), "allow read [/b, /c]\n");
        assert_eq!(taken("allow read [/a, /b, /c]\n", "/c").unwrap(), "allow read [/a, /b]\n");
        assert_eq!(taken("allow read [\n  /a,\n  /b,\n]\n", "/b").unwrap(), "allow read [\n  /a,\n]\n");
        assert_eq!(taken("allow read [\n  /a,\n  /b,\n]\n", "/a").unwrap(), "allow read [\n  /b,\n]\n");
        // Whose comment is it?
        assert_eq!(taken("allow read [\n  /a, # one\n  /b,\n]\n", "/a"), None);
    }

    #[test]
    fn in_doubt_nothing_is_taken_out() {
        // It may be of use on the system of the block.
        assert_eq!(taken("allow read /a\non macos {\n  deny read /b\n}\n", "/a"), None);
        assert_eq!(taken("on linux {\n  allow read /a\n}\n", "/a"), None);
        assert_eq!(taken("on linux { allow read /a }\n", "/a"), None);
        let two = taken("on linux {\n  allow read /a\n  allow read /b\n}\n", "/a");
        assert_eq!(two.unwrap(), "on linux {\n  allow read /b\n}\n");
        // No statement has such a target.
        assert_eq!(taken("let x = [/a, /b]\nallow read $x\n", "/a"), None);
    }

    #[test]
    fn a_word_is_replaced_where_it_stands_once() {
        let by = |was: &str, by: &str| {
            let (was, by) = (was.to_owned(), by.to_owned());
            move |span| Fix::Replace { span, was: was.clone(), by: by.clone() }
        };
        let text = "allow read \"$HOMEE/a b\"";
        let mend = mended(text, "\"$HOMEE/a b\"", by("$HOMEE", "$HOME"));
        assert_eq!(mend.unwrap(), "allow read \"$HOME/a b\"");
        assert_eq!(mended("allow read /a/a", "/a/a", by("/a", "/b")), None);
        assert_eq!(mended("allow read /a", "/a", by("/c", "/b")), None);
    }
}
