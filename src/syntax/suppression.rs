//! `# lint: allow(CODE) REASON`: comments that silence a finding at the statement below them.

use super::ast::{Spanned, Suppression};
use super::codes;
use super::fault::Fault;
use super::grammar::Pair;
use super::reader::Reader;
use crate::source::Span;

/// Whether a comment means to be one of these.
pub(super) fn is_one(comment: &str) -> bool {
    comment.trim_start_matches('#').trim_start().starts_with("lint:")
}

/// Reads a comment that [`is_one`].
pub(super) fn read(reader: &mut Reader, pair: &Pair<'_>) -> Option<Suppression> {
    let comment = pair.as_str().trim_end();
    let start = pair.as_span().start();
    let span = Span::new(reader.source, start..start + comment.len());
    match parts(comment) {
        Ok((code, reason)) => {
            let at = start + (code.as_ptr() as usize - comment.as_ptr() as usize);
            let code = Spanned { value: code.to_owned(), span: Span::new(reader.source, at..at + code.len()) };
            Some(Suppression { code, reason: reason.to_owned(), span })
        }
        Err(message) => {
            let help = "write `# lint: allow(CODE) REASON`, with the code that the finding shows";
            reader.complain(Fault::new(&codes::SUPPRESSION, message, help), span);
            None
        }
    }
}

fn parts(comment: &str) -> Result<(&str, &str), String> {
    let body = comment.trim_start_matches('#').trim_start();
    let body = body.strip_prefix("lint:").unwrap_or(body).trim_start();
    let Some(rest) = body.strip_prefix("allow(") else {
        return Err(format!("expected `allow(CODE)` after `lint:`, found `{body}`"));
    };
    let Some((code, reason)) = rest.split_once(')') else {
        return Err("this `(` is not closed".to_owned());
    };
    let code = code.trim();
    if code.is_empty() || !code.bytes().all(|b| b.is_ascii_lowercase() || b.is_ascii_digit() || b == b'-') {
        return Err(format!("expected the code of one finding, found `{code}`"));
    }
    let reason = reason.trim();
    if reason.is_empty() {
        return Err(format!("`allow({code})` gives no reason"));
    }
    Ok((code, reason))
}

/// Says so where one stands that silences nothing, because no statement is below it.
pub(super) fn misplaced(reader: &mut Reader, pair: &Pair<'_>) {
    if is_one(pair.as_str()) {
        let start = pair.as_span().start();
        let span = Span::new(reader.source, start..start + pair.as_str().trim_end().len());
        alone(reader, span);
    }
}

/// Says that the suppression at `span` stands above no statement.
pub(super) fn alone(reader: &mut Reader, span: Span) {
    let fault = Fault::new(
        &codes::SUPPRESSION,
        "this `lint:` comment stands above no statement",
        "write it on a line of its own, directly above the statement it is about",
    );
    reader.complain(fault, span);
}
