//! Text → [`File`](ast::File): the grammar, what is said about text that does not follow it, and the formatter.
//!
//! The only user of pest. What a word *means* is not known here: variables, includes and links are `resolve`'s and
//! `bind`'s.

pub mod ast;

use crate::diagnostic::Diagnostic;
use crate::source::{SourceId, Sources, Span};
use crate::vocabulary::Kind;

/// Parses one text. The tree holds every statement that could be read, however many could not; each that could not has
/// exactly one diagnostic.
pub fn parse(sources: &Sources, source: SourceId) -> (ast::File, Vec<Diagnostic>) {
    let _ = (sources, source);
    todo!()
}

/// The shapes a target's text spells when a target of `kind` is wanted: what [`parse`] does for rules, here for the
/// targets of a `let`, whose kind is known only where they are used.
///
/// # Errors
/// The diagnostics that the text deserves as a target of that kind, all at `span`.
pub fn shapes(text: &str, kind: Kind, span: Span) -> Result<Vec<ast::Shape>, Vec<Diagnostic>> {
    let _ = (text, kind, span);
    todo!()
}

/// The text in its one layout: comments kept, meaning unchanged, `format(format(x)) == format(x)`.
///
/// # Errors
/// A text that does not parse is not formatted; its syntax errors come back.
pub fn format(sources: &Sources, source: SourceId) -> Result<String, Vec<Diagnostic>> {
    let _ = (sources, source);
    todo!()
}
