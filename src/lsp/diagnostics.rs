//! What was found, as an editor shows it.

use super::document::{Document, Found, uri_of};
use super::position::Lines;
use crate::diagnostic::{self, Level};
use crate::source::{Sources, Span};
use crate::syntax;
use crate::syntax::ast::{Statement, StatementKind};
use lsp_types::{
    Diagnostic, DiagnosticRelatedInformation, DiagnosticSeverity, DiagnosticTag, Location, NumberOrString, Position,
    Range,
};

/// Codes that say that something could go.
const UNNECESSARY: &[&str] =
    &["dead-rule", "redundant-rule", "unused-suppression", "unused-variable", "duplicate-entry"];

/// The code of what a text need not say that another one uses.
const MISSING_DEFAULT: &str = "missing-default";

/// All findings of one text, at their places in it. `used`: another open text uses it, so that what only a whole policy needs
/// is not missing here.
pub(super) fn shown(found: &Found, document: &Document, used: bool) -> Vec<Diagnostic> {
    let lines = Lines::of(&found.text);
    let sources = &found.checked.sources;
    let own = |span: Span| sources.get(span.source).name() == document.name;
    // Parsed where something is in another file alone: it is on the way of every keystroke.
    let foreign = found.checked.diagnostics.iter().any(|said| said.span().is_some_and(|span| !own(span)));
    let parsed = sources.named(&document.name).filter(|_| foreign);
    let uses = parsed.map(|own| uses(&syntax::parse(sources, own).0.statements)).unwrap_or_default();
    let wanted = found.checked.diagnostics.iter().filter(|said| !(used && said.code.name == MISSING_DEFAULT));
    wanted.map(|said| one(said, found, document, &lines, &uses)).collect()
}

/// A finding whose place is in the text itself.
pub(super) fn of(said: &diagnostic::Diagnostic, found: &Found, document: &Document) -> Diagnostic {
    one(said, found, document, &Lines::of(&found.text), &[])
}

fn one(
    said: &diagnostic::Diagnostic,
    found: &Found,
    document: &Document,
    lines: &Lines<'_>,
    uses: &[(String, Span)],
) -> Diagnostic {
    let sources = &found.checked.sources;
    let own = |span: Span| sources.get(span.source).name() == document.name;
    let (range, foreign) = match said.span() {
        Some(span) if own(span) => (lines.range(span.range()), None),
        Some(span) => (place_of_use(sources, span, document, lines, uses), Some(span)),
        None => (Range::default(), None),
    };
    let mut message = said.whole_text();
    if let Some(span) = foreign {
        message = format!("in {}: {message}", sources.location(span));
    }
    let labels = said.labels.iter().skip(usize::from(foreign.is_none()));
    let related = labels.filter_map(|label| {
        let (uri, range) = if own(label.span) {
            (document.uri.clone(), lines.range(label.span.range()))
        } else {
            (uri_of(sources.get(label.span.source).name())?, range_in(sources, label.span))
        };
        let text = if label.text.is_empty() { "here" } else { &label.text };
        Some(DiagnosticRelatedInformation { location: Location { uri, range }, message: text.to_owned() })
    });
    let related: Vec<_> = related.collect();
    Diagnostic {
        range,
        severity: Some(match said.level {
            Level::Error => DiagnosticSeverity::ERROR,
            Level::Warning => DiagnosticSeverity::WARNING,
            Level::Note => DiagnosticSeverity::INFORMATION,
        }),
        code: Some(NumberOrString::String(said.code.name.to_owned())),
        source: Some("srt".to_owned()),
        message,
        related_information: (!related.is_empty()).then_some(related),
        tags: UNNECESSARY.contains(&said.code.name).then(|| vec![DiagnosticTag::UNNECESSARY]),
        ..Diagnostic::default()
    }
}

/// Where the text names the file that something is in; its start, where only what it uses does.
fn place_of_use(
    sources: &Sources,
    span: Span,
    document: &Document,
    lines: &Lines<'_>,
    uses: &[(String, Span)],
) -> Range {
    let wanted = sources.get(span.source).name();
    let leads = |path: &str| path == wanted || crate::resolve::beside(&document.name, path) == wanted;
    let named = uses.iter().find(|(path, _)| leads(path));
    named.map_or_else(Range::default, |(_, span)| lines.range(span.range()))
}

/// What a text names: modules as `std/NAME`, files as they are written.
pub(super) fn uses(statements: &[Statement]) -> Vec<(String, Span)> {
    let mut all = Vec::new();
    for statement in statements {
        match &statement.kind {
            StatementKind::UseStd(name) => all.push((format!("std/{}", name.value), name.span)),
            StatementKind::UsePath(path) | StatementKind::Within(path) => all.push((path.value.clone(), path.span)),
            StatementKind::Let { value: crate::syntax::ast::LetValue::Lines(path), .. } => {
                all.push((path.value.clone(), path.span));
            }
            StatementKind::On { body, .. } => all.extend(uses(body)),
            _ => {}
        }
    }
    all
}

/// A place in a text that may not be open.
pub(super) fn range_in(sources: &Sources, span: Span) -> Range {
    let extent = sources.extent(span);
    let place = |line: u32, column: u32| Position { line: line.saturating_sub(1), character: column.saturating_sub(1) };
    Range { start: place(extent.line, extent.column), end: place(extent.end_line, extent.end_column) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn codes_that_are_named_are_codes() {
        let known: Vec<_> = crate::codes().into_iter().map(|code| code.name).collect();
        for name in UNNECESSARY.iter().chain([&MISSING_DEFAULT]) {
            assert!(known.contains(name), "{name}");
        }
    }
}
