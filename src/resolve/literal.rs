//! Literals: one path, host, address or name without any pattern in it. The values of `--define`, the lines of tables,
//! and the canonical form of host labels.

use super::item::Item;
use crate::sets::{glob, host, name, path};
use crate::vocabulary::{Kind, Reach};
use std::net::IpAddr;

/// A `--define` value as the one item that it is.
///
/// # Errors
/// What is wrong with it, to follow the value in a sentence.
pub(super) fn item(value: &str, kind: Kind) -> Result<Item, String> {
    match kind {
        Kind::Path => path(value).map(Item::Path),
        Kind::Peer => match value.parse::<IpAddr>() {
            Ok(address) => Ok(Item::Address(address, width(address), None)),
            Err(_) => host(value),
        },
        Kind::Address => {
            let address = value.parse::<IpAddr>().map_err(|_| "is not an address".to_owned())?;
            Ok(Item::Address(address, width(address), None))
        }
        Kind::Variable | Kind::Service => {
            let plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '.' | '-');
            if value.is_empty() || !value.chars().all(plain) {
                return Err("is not a plain name".to_owned());
            }
            Ok(Item::Name(name::Pattern::Literal(value.to_owned())))
        }
    }
}

/// An absolute, normalised path without patterns: the tree at it.
///
/// # Errors
/// What is wrong with it.
pub(super) fn path(value: &str) -> Result<path::Pattern, String> {
    let (start, rest) = if let Some(rest) = value.strip_prefix("~/") {
        (path::Start::Variable("HOME".into()), rest)
    } else if let Some(rest) = value.strip_prefix('/') {
        (path::Start::Root, rest)
    } else {
        match value.as_bytes() {
            [drive, b':', b'/', ..] if drive.is_ascii_alphabetic() => {
                (path::Start::Drive(char::from(drive.to_ascii_uppercase())), &value[3..])
            }
            _ => return Err("is not an absolute path".to_owned()),
        }
    };
    let mut segments = Vec::new();
    for segment in rest.split('/').filter(|_| !rest.is_empty()) {
        match segment {
            "" => return Err("has an empty segment or a `/` at its end".to_owned()),
            "." | ".." => return Err(format!("has a `{segment}` in it")),
            _ if segment.contains(['*', '?', '[', ']', '{', '}', '\\']) => {
                return Err("holds a pattern, where one literal path is wanted".to_owned());
            }
            _ if segment.chars().any(char::is_control) => return Err("holds a control character".to_owned()),
            _ => segments.push(path::Segment::Literal(path::FileName::from(segment))),
        }
    }
    Ok(path::Pattern { start, segments, reach: Reach::Tree })
}

/// A host name, `*.` before it or not.
///
/// # Errors
/// What is wrong with it.
pub(super) fn host(value: &str) -> Result<Item, String> {
    let (below, rest) = match value.strip_prefix("*.") {
        Some(rest) => (true, rest),
        None => (false, value),
    };
    let labels = labels(rest)?;
    if is_localhost(&labels) {
        return Ok(Item::Localhost(None));
    }
    Ok(Item::Host(host::Pattern::Labels { below, labels }, None))
}

/// The labels of a literal name, in their canonical form.
pub(super) fn labels(name: &str) -> Result<Vec<host::Label>, String> {
    let canonical = host::Name::parse(name).map_err(|why| format!("is not a host name: {why}"))?;
    Ok(canonical.as_str().split('.').map(|label| host::Label::Literal(label.to_owned())).collect())
}

/// One label in its canonical form, in a name whose other labels may be patterns.
pub(super) fn label(text: &str) -> Result<String, String> {
    // A name is judged as a whole (one whose last label is a number is no name), so the label is given company.
    let whole = format!("{text}.invalid");
    let canonical = host::Name::parse(&whole).map_err(|why| format!("`{text}` is not a host label: {why}"))?;
    match canonical.as_str().strip_suffix(".invalid") {
        Some(label) if !label.contains('.') => Ok(label.to_owned()),
        _ => Err(format!("`{text}` is not one host label")),
    }
}

/// A pattern over a label, which is compared in lower case.
pub(super) fn lower(glob: &glob::Glob) -> glob::Glob {
    let piece = |piece: &glob::Piece| match piece {
        glob::Piece::Text(text) => glob::Piece::Text(text.to_ascii_lowercase()),
        other => other.clone(),
    };
    glob::Glob(glob.0.iter().map(piece).collect())
}

/// `localhost` and names under it (RFC 6761, 6.3).
pub(super) fn is_localhost(labels: &[host::Label]) -> bool {
    matches!(labels.last(), Some(host::Label::Literal(last)) if last == "localhost")
}

/// How many bits an address has.
pub(super) fn width(address: IpAddr) -> u8 {
    if address.is_ipv4() { 32 } else { 128 }
}
