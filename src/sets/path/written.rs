//! Patterns in a few words of the language, as tables in this program and its tests spell them; and paths as the language
//! spells them. What a policy says is read, and judged, by `syntax`.

use super::{Pattern, Segment, Start};
use crate::sets::glob::{Glob, Piece};
use crate::vocabulary::Reach;

impl Pattern {
    /// The pattern of `/run/*/x`, `~/.ssh`, `$NAME/x` or `**/x`, with `*`, `?` and `[ab]` in a segment, and `exact ` or `below `
    /// before it. Whatever the text is, it is one.
    pub fn written(text: &str) -> Self {
        let (reach, text) = match text.split_once(' ') {
            Some(("exact", rest)) => (Reach::Exact, rest),
            Some(("below", rest)) => (Reach::Below, rest),
            _ => (Reach::Tree, text),
        };
        let (start, rest) = if let Some(rest) = text.strip_prefix('~') {
            (Start::Variable("HOME".into()), rest)
        } else if let Some(rest) = text.strip_prefix('$') {
            let end = rest.find('/').unwrap_or(rest.len());
            (Start::Variable(rest[..end].into()), &rest[end..])
        } else {
            (Start::Root, text)
        };
        let segments = rest.split('/').filter(|segment| !segment.is_empty()).map(segment).collect();
        Self { start, segments, reach }
    }
}

/// A target: `start` as it is, then a path whose every character that has a meaning in a policy is made literal.
pub fn target(start: &str, path: &str) -> String {
    let plain = |c: char| c.is_alphanumeric() || matches!(c, '/' | '.' | '-' | '_' | '+' | '@');
    if path.chars().all(plain) {
        return format!("{start}{path}");
    }
    let mut quoted = format!("\"{start}");
    for c in path.chars() {
        if matches!(c, '\\' | '"' | '*' | '?' | '[' | ']' | '{' | '}' | '$' | '~') {
            quoted.push('\\');
        }
        quoted.push(c);
    }
    quoted.push('"');
    quoted
}

fn segment(text: &str) -> Segment {
    if text == "**" {
        return Segment::AnyDepth;
    }
    if !text.contains(['*', '?', '[']) {
        return Segment::Literal(text.into());
    }
    let mut pieces: Vec<Piece> = Vec::new();
    let mut chars = text.chars();
    while let Some(char) = chars.next() {
        match char {
            '*' => pieces.push(Piece::AnyRun),
            '?' => pieces.push(Piece::AnyChar),
            '[' => {
                let class: Vec<char> = chars.by_ref().take_while(|char| *char != ']').collect();
                let negated = class.first() == Some(&'!');
                let members = if negated { &class[1..] } else { &class[..] };
                pieces.push(Piece::Class { negated, ranges: members.iter().map(|char| (*char, *char)).collect() });
            }
            _ => match pieces.last_mut() {
                Some(Piece::Text(text)) => text.extend(char.to_string().bytes()),
                _ => pieces.push(Piece::Text(char.to_string().into_bytes())),
            },
        }
    }
    Segment::Glob(Glob::from(pieces))
}
