//! What the reading of one file shares: the source, and what was said of it so far.
//!
//! How statements, targets and comments are read stands with each.

use super::ast::Spanned;
use super::fault::{Fault, Place};
use super::grammar::Pair;
use crate::diagnostic::Diagnostic;
use crate::source::{SourceId, Span};

/// What the reading of one file shares.
pub(super) struct Reader {
    pub source: SourceId,
    pub diagnostics: Vec<Diagnostic>,
    /// Complaints about what only some block may hold, kept back until it is known that no block was lost.
    pub homeless: Vec<Diagnostic>,
}

impl Reader {
    pub fn span(&self, pair: &Pair<'_>) -> Span {
        let span = pair.as_span();
        Span::new(self.source, span.start()..span.end())
    }

    pub fn spanned<T>(&self, pair: &Pair<'_>, value: T) -> Spanned<T> {
        Spanned { value, span: self.span(pair) }
    }

    /// Says what is wrong with the token of `pair`.
    pub fn complain(&mut self, fault: Fault, span: Span) {
        self.diagnostics.push(fault.diagnostic(Place { span, verbatim: true }));
    }
}
