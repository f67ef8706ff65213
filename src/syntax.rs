//! Text → [`File`](ast::File): the grammar, what is said about text that does not follow it, and the formatter.
//!
//! The only user of pest. What a word *means* is not known here: variables, includes and links are `resolve`'s and
//! `bind`'s.

pub mod ast;
mod characters;
pub mod codes;
mod complaint;
mod fault;
mod format;
mod grammar;
mod limit;
mod reader;
mod shape;
mod statement;
mod suppression;
mod target;
mod token;
mod tree;
mod words;

pub use codes::CODES;
pub use words::{Place, Role, Word, variables, words};

use crate::diagnostic::Diagnostic;
use crate::source::{SourceId, Sources, Span};
use crate::vocabulary::Kind;

/// How large one text may be, in bytes: spans and the parser's work are bounded by it.
pub const LARGEST: usize = 16 << 20;

/// Parses one text. The tree holds every statement that could be read, however many could not; each that could not has
/// one diagnostic, or one for each of its targets that is wrong.
pub fn parse(sources: &Sources, source: SourceId) -> (ast::File, Vec<Diagnostic>) {
    let text = sources.get(source).text();
    if text.len() > LARGEST {
        let diagnostic = Diagnostic::new(
            &codes::SYNTAX,
            format!("the policy is {} bytes long, and {LARGEST} is the most", text.len()),
        )
        .label(Span::new(source, 0..0), "")
        .help("split it, or put long lists into files and read them by `lines(\"FILE\")`");
        return (ast::File::default(), vec![diagnostic]);
    }
    let mut hidden = characters::check(text, source);
    let (file, mut diagnostics) = tree::parse(text, source);
    if !hidden.is_empty() {
        // A character that nobody sees is the whole of what is wrong with its line.
        let lines: Vec<u32> =
            hidden.iter().filter_map(Diagnostic::span).map(|span| sources.location(span).line).collect();
        diagnostics
            .retain(|other| other.span().is_none_or(|span| lines.binary_search(&sources.location(span).line).is_err()));
        diagnostics.append(&mut hidden);
    }
    diagnostics.sort_by_key(|diagnostic| diagnostic.span().map_or(0, |span| span.start));
    (file, diagnostics)
}

/// The shapes a target's text spells when a target of `kind` is wanted: what [`parse`] does for rules, here for the
/// targets of a `let`, whose kind is known only where they are used, and for the lines of a list's file.
///
/// What depends on the statement that uses them is the caller's to refuse, as [`parse`] does for rules: an address
/// without ports in an `allow`, ports in an `except`, a drive outside of `on windows`, an abstract socket under another
/// verb than `socket`, and more than 64 patterns in one `except`.
///
/// # Errors
/// The diagnostics that the text deserves as a target of that kind, all at `span`.
pub fn shapes(text: &str, kind: Kind, span: Span) -> Result<Vec<ast::Shape>, Vec<Diagnostic>> {
    shape::shapes(text, kind, fault::Place { span, verbatim: false })
}

/// The text in its one layout: comments kept, meaning unchanged, `format(format(x)) == format(x)`.
///
/// # Errors
/// A text that does not parse is not formatted; its syntax errors come back.
pub fn format(sources: &Sources, source: SourceId) -> Result<String, Vec<Diagnostic>> {
    let (_, diagnostics) = parse(sources, source);
    if crate::diagnostic::any_error(&diagnostics) {
        return Err(diagnostics);
    }
    Ok(format::format(sources.get(source).text()))
}

#[cfg(test)]
mod tests;
