//! Paths and patterns as SBPL: strings, parameters, and regular expressions in the profile's dialect.
//!
//! The dialect is extended regular expressions over bytes, unanchored, without case folding, `\d` or look-around. Strings are
//! cooked (`\"`, `\\`, `\xHH`), never raw.

use crate::backend::seatbelt::Parameter;
use crate::sets::glob::Piece;
use crate::sets::path::{Pattern, Segment, Start};
use crate::vocabulary::Reach;
use std::fmt::Write as _;

/// One Unicode scalar that is not `/`, as bytes of UTF-8, which every name on macOS is.
const SCALAR: &str = r"([^/\x80-\xff]|[\xc2-\xdf][\x80-\xbf]|[\xe0-\xef][\x80-\xbf][\x80-\xbf]|[\xf0-\xf4][\x80-\xbf][\x80-\xbf][\x80-\xbf])";

/// The filter that holds for the paths of a pattern.
pub fn filter(pattern: &Pattern) -> String {
    // What consists of `**` alone is the whole tree; as a regular expression it would not match `/`.
    let deep = pattern.start == Start::Root && pattern.segments.iter().all(|segment| *segment == Segment::AnyDepth);
    if deep {
        return match pattern.reach {
            Reach::Exact if pattern.segments.is_empty() => r#"(literal "/")"#.to_owned(),
            Reach::Below => r#"(regex "^/[^/]")"#.to_owned(),
            _ => r#"(subpath "/")"#.to_owned(),
        };
    }
    match pattern.reach {
        Reach::Tree if pattern.is_literal() => format!("(subpath {})", place(pattern)),
        Reach::Exact if pattern.is_literal() => format!("(literal {})", place(pattern)),
        _ => format!("(regex {})", regex(pattern)),
    }
}

/// An expression whose value is a literal path.
fn place(pattern: &Pattern) -> String {
    let mut rest = String::new();
    for segment in &pattern.segments {
        if let Segment::Literal(name) = segment {
            rest.push('/');
            quote(&mut rest, name);
        }
    }
    match &pattern.start {
        Start::Variable(name) => {
            let param = format!("(param \"{}\")", Parameter::Place(name.clone()).name());
            if rest.is_empty() { param } else { format!("(string-append {param} \"{rest}\")") }
        }
        _ => format!("\"{rest}\""),
    }
}

/// An expression whose value is a regular expression.
fn regex(pattern: &Pattern) -> String {
    let mut rest = String::new();
    for segment in &pattern.segments {
        match segment {
            Segment::AnyDepth => rest.push_str("(/[^/]+)*"),
            Segment::Literal(name) => {
                rest.push('/');
                text(&mut rest, name);
            }
            Segment::Glob(glob) => {
                rest.push('/');
                match &glob.0[..] {
                    // No name is empty.
                    [Piece::AnyRun] => rest.push_str("[^/]+"),
                    pieces => pieces.iter().for_each(|own| piece(&mut rest, own)),
                }
            }
        }
    }
    rest.push_str(match pattern.reach {
        Reach::Tree => "(/|$)",
        Reach::Exact => "$",
        Reach::Below => "/",
    });
    match &pattern.start {
        Start::Variable(name) => {
            let param = Parameter::Regex(name.clone()).name();
            format!("(string-append \"^\" (param \"{param}\") \"{rest}\")")
        }
        _ => format!("\"^{rest}\""),
    }
}

/// A regular expression over a whole name.
pub fn name_regex(pieces: &[Piece]) -> String {
    let mut rest = String::from("^");
    for own in pieces {
        match own {
            Piece::AnyRun => rest.push_str(".*"),
            own => piece(&mut rest, own),
        }
    }
    rest.push('$');
    format!("\"{rest}\"")
}

/// A string.
pub fn string(text: &str) -> String {
    let mut quoted = String::from("\"");
    quote(&mut quoted, text.as_bytes());
    quoted.push('"');
    quoted
}

fn piece(to: &mut String, piece: &Piece) {
    match piece {
        Piece::Text(own) => text(to, own),
        Piece::AnyRun => to.push_str("[^/]*"),
        Piece::AnyChar => to.push_str(SCALAR),
        Piece::Class { negated, ranges } => class(to, *negated, ranges),
    }
}

/// Text that a regular expression matches as it stands.
fn text(to: &mut String, text: &[u8]) {
    for chunk in text.utf8_chunks() {
        for char in chunk.valid().chars() {
            if r"\.[]{}()*+?^$|".contains(char) {
                to.push_str(r"\\");
            }
            quote(to, char.encode_utf8(&mut [0; 4]).as_bytes());
        }
        quote(to, chunk.invalid());
    }
}

/// One of some characters: those that mean something in brackets, and those that are several bytes, stand outside them.
fn class(to: &mut String, negated: bool, ranges: &[(char, char)]) {
    let mut within = 0_u128;
    for (low, high) in ranges {
        (*low..=*high).take_while(char::is_ascii).for_each(|char| within |= 1 << u32::from(char));
    }
    let within = |byte: &u8| *byte != b'/' && (within >> byte & 1 == 1) != negated;
    let ascii = (1..0x80).filter(within).map(char::from);
    let (outside, inside): (Vec<char>, Vec<char>) = ascii.partition(|char| r"[]^-\".contains(*char));
    let mut ways: Vec<String> = Vec::new();
    if !inside.is_empty() {
        let mut brackets = String::from("[");
        let mut rest = &inside[..];
        while let Some(first) = rest.first() {
            let kind = |char: &char| (char.is_ascii_digit(), char.is_ascii_lowercase(), char.is_ascii_uppercase());
            let run = (0_u8..).zip(rest).take_while(|(at, char)| {
                char::from(u8::try_from(*first).unwrap_or_default().saturating_add(*at)) == **char
                    && kind(char) == kind(first)
            });
            let run = if first.is_ascii_alphanumeric() { run.count() } else { 1 };
            quote(&mut brackets, first.encode_utf8(&mut [0; 4]).as_bytes());
            if run > 2 {
                brackets.push('-');
            }
            if run > 1 {
                quote(&mut brackets, rest[run - 1].encode_utf8(&mut [0; 4]).as_bytes());
            }
            rest = &rest[run..];
        }
        brackets.push(']');
        ways.push(brackets);
    }
    for char in outside {
        let mut way = String::new();
        text(&mut way, char.encode_utf8(&mut [0; 4]).as_bytes());
        ways.push(way);
    }
    if negated {
        // `lower` lets none of several bytes be in a negated class.
        ways.extend(SCALAR.trim_matches(['(', ')']).split('|').skip(1).map(str::to_owned));
    } else {
        let wide = ranges.iter().filter(|(_, high)| !high.is_ascii());
        for char in wide.flat_map(|(low, high)| *low..=*high).filter(|char| !char.is_ascii()) {
            ways.push(char.to_string());
        }
    }
    let _ = match &ways[..] {
        [one] if one.starts_with('[') => write!(to, "{one}"),
        ways => write!(to, "({})", ways.join("|")),
    };
}

/// Bytes inside a string.
fn quote(to: &mut String, bytes: &[u8]) {
    let hex = |to: &mut String, byte: u8| {
        let _ = write!(to, "\\x{byte:02x}");
    };
    for chunk in bytes.utf8_chunks() {
        for char in chunk.valid().chars() {
            match char {
                '"' => to.push_str("\\\""),
                '\\' => to.push_str("\\\\"),
                char if char.is_ascii_control() => hex(to, u8::try_from(char).unwrap_or_default()),
                char => to.push(char),
            }
        }
        chunk.invalid().iter().for_each(|byte| hex(to, *byte));
    }
}
