//! What is wrong with one token, before it is known where in the file the token stands.

use crate::diagnostic::{Code, Diagnostic, Fix};
use crate::source::Span;
use std::ops::Range;

/// A complaint about a part of one token's text.
#[derive(Debug)]
pub(super) struct Fault {
    pub code: &'static Code,
    pub message: String,
    /// Bytes of the token's text; `None` is all of it.
    pub range: Option<Range<usize>>,
    /// The words at the place.
    pub label: &'static str,
    pub help: String,
    /// What stands there, and what alone can be meant by it.
    instead: Option<Box<(String, String)>>,
}

impl Fault {
    pub fn new(code: &'static Code, message: impl Into<String>, help: impl Into<String>) -> Self {
        Self { code, message: message.into(), range: None, label: "", help: help.into(), instead: None }
    }

    /// Narrows the place to some bytes of the token.
    pub fn at(mut self, range: Range<usize>) -> Self {
        self.range = Some(range);
        self
    }

    pub fn label(mut self, label: &'static str) -> Self {
        self.label = label;
        self
    }

    /// What alone can be meant, and what was written for it.
    pub fn instead(mut self, was: impl Into<String>, by: impl Into<String>) -> Self {
        self.instead = Some(Box::new((was.into(), by.into())));
        self
    }

    pub fn diagnostic(self, place: Place) -> Diagnostic {
        let span = self.range.map_or(place.span, |range| place.part(range));
        // Looked for in all of the token: the place may be a part of what is written otherwise.
        let fix = self.instead.map(|instead| {
            let (was, by) = *instead;
            Fix::Replace { span: place.span, was, by }
        });
        Diagnostic::new(self.code, self.message).label(span, self.label).help(self.help).fix(fix)
    }
}

/// Where a token stands.
#[derive(Debug, Clone, Copy)]
pub(super) struct Place {
    pub span: Span,
    /// Whether the text at hand is the one at `span`, byte for byte; if not (quotes, braces), parts of it have no place
    /// of their own.
    pub verbatim: bool,
}

impl Place {
    /// The bytes `range` of the token, or the whole of it where parts have no place.
    pub fn part(self, range: Range<usize>) -> Span {
        if !self.verbatim {
            return self.span;
        }
        let offset = self.span.start as usize;
        Span::new(self.span.source, offset + range.start..offset + range.end)
    }
}
