//! Diagnostics for people, by miette: the one file that knows it.

use super::{Diagnostic, Label, Level};
use crate::source::{SourceId, Sources, hides};
use miette::{GraphicalReportHandler, GraphicalTheme, LabeledSpan, NamedSource, Severity, SourceCode};

/// How it may look.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Style {
    pub colour: bool,
    /// Columns.
    pub width: usize,
}

/// One diagnostic as text, with the lines it points at.
pub fn render(diagnostic: &Diagnostic, sources: &Sources, style: Style) -> String {
    let theme = if style.colour { GraphicalTheme::unicode() } else { GraphicalTheme::unicode_nocolor() };
    let handler = GraphicalReportHandler::new_themed(theme).with_width(style.width).with_links(false);
    let report = Report::new(diagnostic, sources);
    let mut text = String::new();
    // Writing into a string does not fail, and a label outside its text would be our own mistake: say what we can.
    if handler.render_report(&mut text, &report).is_err() {
        text.push_str(&visible(&diagnostic.message));
        text.push('\n');
    }
    text
}

/// The text with a mark for each character that a terminal would hide, reorder or obey: what is said about a text must
/// not be rewritten by it. Marks are as long as what they stand for, so that spans still fit.
pub(super) fn visible(text: &str) -> String {
    let mark = |character: char| match character.len_utf8() {
        _ if !hides(character) => character,
        1 => '?',
        2 => '\u{A4}',
        _ => '\u{FFFD}',
    };
    text.chars().map(mark).collect()
}

/// What miette wants to see: one source with its labels, and further ones as related reports.
struct Report<'a> {
    diagnostic: Option<&'a Diagnostic>,
    message: String,
    source: Option<NamedSource<String>>,
    labels: Vec<&'a Label>,
    related: Vec<Report<'a>>,
    help: Option<String>,
}

impl<'a> Report<'a> {
    fn new(diagnostic: &'a Diagnostic, sources: &Sources) -> Self {
        let mut files: Vec<SourceId> = Vec::new();
        for label in &diagnostic.labels {
            if !files.contains(&label.span.source) {
                files.push(label.span.source);
            }
        }
        let mut parts = files.iter().map(|file| {
            let labels = diagnostic.labels.iter().filter(|label| label.span.source == *file).collect();
            let source = sources.get(*file);
            (NamedSource::new(visible(source.name()), visible(source.text())), labels)
        });
        let (source, labels) = match parts.next() {
            Some((source, labels)) => (Some(source), labels),
            None => (None, Vec::new()),
        };
        let related = parts
            .map(|(source, labels)| Report {
                diagnostic: None,
                message: "see also".to_owned(),
                source: Some(source),
                labels,
                related: Vec::new(),
                help: None,
            })
            .collect();
        let witness = diagnostic.witness.as_deref().map(visible);
        let message = visible(&diagnostic.message);
        // Said once: many messages name the object of their witness.
        let witness = witness.filter(|witness| {
            let object = witness.split_once(' ').map_or(witness.as_str(), |(_, object)| object);
            !message.contains(&format!("`{object}`"))
        });
        let help = match (witness, diagnostic.help.as_deref().map(visible)) {
            (Some(witness), Some(help)) => Some(format!("{help}\n(for example: {witness})")),
            (Some(witness), None) => Some(format!("look at `{witness}`")),
            (None, help) => help,
        };
        Report { diagnostic: Some(diagnostic), message, source, labels, related, help }
    }
}

impl std::fmt::Debug for Report<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.message)
    }
}

impl std::fmt::Display for Report<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.message)
    }
}

impl std::error::Error for Report<'_> {}

impl miette::Diagnostic for Report<'_> {
    fn code<'b>(&'b self) -> Option<Box<dyn std::fmt::Display + 'b>> {
        let header = |d: &Diagnostic| format!("{}[{}]", d.level.word(), d.code.name);
        self.diagnostic.map(|d| Box::new(header(d)) as Box<dyn std::fmt::Display>)
    }

    fn severity(&self) -> Option<Severity> {
        Some(match self.diagnostic.map(|d| d.level) {
            Some(Level::Error) => Severity::Error,
            Some(Level::Warning) => Severity::Warning,
            Some(Level::Note) | None => Severity::Advice,
        })
    }

    fn help<'b>(&'b self) -> Option<Box<dyn std::fmt::Display + 'b>> {
        self.help.as_ref().map(|help| Box::new(help) as Box<dyn std::fmt::Display>)
    }

    fn source_code(&self) -> Option<&dyn SourceCode> {
        self.source.as_ref().map(|source| source as &dyn SourceCode)
    }

    fn labels(&self) -> Option<Box<dyn Iterator<Item = LabeledSpan> + '_>> {
        let spans = self.labels.iter().map(|label| {
            let text = (!label.text.is_empty()).then(|| visible(&label.text));
            LabeledSpan::new_with_span(text, label.span.range())
        });
        Some(Box::new(spans))
    }

    fn related<'b>(&'b self) -> Option<Box<dyn Iterator<Item = &'b dyn miette::Diagnostic> + 'b>> {
        (!self.related.is_empty())
            .then(|| Box::new(self.related.iter().map(|r| r as &dyn miette::Diagnostic)) as Box<dyn Iterator<Item = _>>)
    }
}
