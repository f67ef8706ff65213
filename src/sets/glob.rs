//! Patterns over the characters of one path segment, host label or name.
//!
//! A character is a Unicode scalar, or one byte that is not part of UTF-8. Which characters may stand in a segment is
//! the business of whoever uses the pattern.

use super::mistake::{Mistake, made};
use std::fmt;
use std::hash::{Hash, Hasher};
use std::sync::Arc;

/// A part of a [`Glob`].
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, serde::Serialize, serde::Deserialize)]
pub enum Piece {
    /// These bytes; never empty, never two in a row.
    Text(Vec<u8>),
    /// `*`: any run, the empty one included.
    AnyRun,
    /// `?`: one Unicode scalar, or one byte that is not part of UTF-8.
    AnyChar,
    /// One scalar in (or, negated, outside) the ranges; a byte that is not UTF-8 is outside all of them.
    Class { negated: bool, ranges: Vec<(char, char)> },
}

/// Tables of patterns are asked far more often than two that are not equal are this alike: of a class its first range is enough.
impl Hash for Piece {
    fn hash<H: Hasher>(&self, state: &mut H) {
        match self {
            Piece::Text(text) => text.hash(state),
            Piece::AnyRun => state.write_u8(1),
            Piece::AnyChar => state.write_u8(2),
            Piece::Class { negated, ranges } => (negated, ranges.len(), ranges.first()).hash(state),
        }
    }
}

/// A pattern with at least one piece that is not text. Rules, plans and proofs hold the same ones many times over.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, serde::Serialize, serde::Deserialize)]
pub struct Glob(pub Arc<[Piece]>);

/// Characters as numbers: a scalar is its code point, a stray byte is [`STRAY`] plus the byte.
pub(super) type Char = u32;

/// Where stray bytes are numbered from: past the last code point.
pub(super) const STRAY: Char = 0x11_0000;

/// The first character of `text` and its length in bytes; `text` is not empty.
pub(super) fn first_char(text: &[u8]) -> (Char, usize) {
    let byte = text[0];
    if byte.is_ascii() {
        return (Char::from(byte), 1);
    }
    let head = &text[..text.len().min(4)];
    match head.utf8_chunks().next().and_then(|chunk| chunk.valid().chars().next()) {
        Some(scalar) => (Char::from(scalar), scalar.len_utf8()),
        None => (STRAY + Char::from(byte), 1),
    }
}

/// All characters of `text`.
pub(super) fn chars(mut text: &[u8]) -> impl Iterator<Item = Char> + '_ {
    std::iter::from_fn(move || {
        if text.is_empty() {
            return None;
        }
        let (char, length) = first_char(text);
        text = &text[length..];
        Some(char)
    })
}

/// The bytes of a character.
pub(super) fn push_char(text: &mut Vec<u8>, char: Char) {
    match char::from_u32(char) {
        Some(scalar) => text.extend_from_slice(scalar.encode_utf8(&mut [0; 4]).as_bytes()),
        None => text.push(char.to_le_bytes()[0]),
    }
}

/// Whether a class takes a character.
pub(super) fn in_class(negated: bool, ranges: &[(char, char)], char: Char) -> bool {
    let (negated, early) = (negated && !made(Mistake::ClassIsNotNegated), Char::from(made(Mistake::ClassEndsEarly)));
    ranges.iter().any(|&(low, high)| (Char::from(low)..=Char::from(high) - early).contains(&char)) != negated
}

impl From<Vec<Piece>> for Glob {
    fn from(pieces: Vec<Piece>) -> Self {
        Self(pieces.into())
    }
}

impl FromIterator<Piece> for Glob {
    fn from_iter<I: IntoIterator<Item = Piece>>(pieces: I) -> Self {
        Self(pieces.into_iter().collect())
    }
}

impl Glob {
    /// `*`
    pub fn any() -> Self {
        Self([Piece::AnyRun].into())
    }

    /// Whether the whole of `text` is matched.
    pub fn matches(&self, text: &[u8]) -> bool {
        // Most globs are `*.ext` or `name*`: their ends decide nearly every question.
        if let Some(Piece::Text(head)) = self.0.first()
            && !text.starts_with(head)
        {
            return false;
        }
        if let Some(Piece::Text(tail)) = self.0.last()
            && !text.ends_with(tail)
        {
            return false;
        }
        matches(&self.0, text)
    }

    /// The letters of ASCII that what it matches may begin with, a bit each: no text that begins with another is matched.
    pub fn first_ascii(&self) -> u128 {
        match self.0.first() {
            Some(Piece::Text(text)) => text.first().filter(|byte| byte.is_ascii()).map_or(0, |byte| 1 << byte),
            Some(Piece::Class { negated, ranges }) => {
                let taken = |letter: &u8| in_class(*negated, ranges, Char::from(*letter));
                (0..0x80).filter(taken).fold(0, |all, letter| all | 1 << letter)
            }
            Some(Piece::AnyRun | Piece::AnyChar) | None => u128::MAX,
        }
    }
}

/// Every piece but `*` takes one exact stretch, so going back to the last `*` alone is enough.
fn matches(pieces: &[Piece], text: &[u8]) -> bool {
    let (mut piece, mut at) = (0, 0);
    let mut retry: Option<(usize, usize)> = None;
    loop {
        let stepped = match pieces.get(piece) {
            None if at == text.len() => return true,
            None => None,
            Some(Piece::AnyRun) => {
                if piece + 1 == pieces.len() {
                    return true;
                }
                // Of a text that is to follow, the next place where it stands: where a character begins, if it begins with one.
                if let Some(Piece::Text(literal)) = pieces.get(piece + 1)
                    && !matches!(literal[0], 0x80..=0xbf)
                {
                    let Some(skipped) = text[at..].windows(literal.len()).position(|window| window == literal) else {
                        return false;
                    };
                    at += skipped;
                }
                retry = Some((piece, at));
                Some(0)
            }
            Some(Piece::Text(literal)) => text[at..].starts_with(literal).then_some(literal.len()),
            Some(Piece::AnyChar) => (at < text.len()).then(|| first_char(&text[at..]).1),
            Some(Piece::Class { negated, ranges }) => (at < text.len())
                .then(|| first_char(&text[at..]))
                .and_then(|(char, length)| in_class(*negated, ranges, char).then_some(length)),
        };
        if let Some(length) = stepped {
            piece += 1;
            at += length;
            continue;
        }
        match retry {
            Some((run, from)) if from < text.len() => {
                let from = from + first_char(&text[from..]).1;
                retry = Some((run, from));
                piece = run + 1;
                at = from;
            }
            _ => return false,
        }
    }
}

impl fmt::Display for Glob {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for piece in &*self.0 {
            match piece {
                Piece::Text(text) => f.write_str(&String::from_utf8_lossy(text))?,
                Piece::AnyRun => f.write_str("*")?,
                Piece::AnyChar => f.write_str("?")?,
                Piece::Class { negated, ranges } => {
                    f.write_str(if *negated { "[!" } else { "[" })?;
                    for (low, high) in ranges {
                        if low == high { write!(f, "{low}")? } else { write!(f, "{low}-{high}")? }
                    }
                    f.write_str("]")?;
                }
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn glob(text: &str) -> Glob {
        let mut pieces = Vec::new();
        for char in text.chars() {
            match char {
                '*' => pieces.push(Piece::AnyRun),
                '?' => pieces.push(Piece::AnyChar),
                _ => match pieces.last_mut() {
                    Some(Piece::Text(text)) => text.extend(char.to_string().bytes()),
                    _ => pieces.push(Piece::Text(char.to_string().into_bytes())),
                },
            }
        }
        Glob::from(pieces)
    }

    #[test]
    fn runs_and_single_characters() {
        for (pattern, yes, no) in [
            ("*.env", &[".env", "a.env", "..env"][..], &["env", ".env.x", ".envx"][..]),
            ("a*b*c", &["abc", "aXbYc", "abbcc", "abcbc"], &["ab", "acb", "abcx"]),
            ("?", &["a", "é", "."], &["", "ab"]),
            ("a?", &["ab", "aé"], &["a", "abc"]),
            ("*?*", &["a", "ab"], &[""]),
            ("ab*ba", &["abba", "abxba"], &["aba"]),
        ] {
            for text in yes {
                assert!(glob(pattern).matches(text.as_bytes()), "{pattern} {text}");
            }
            for text in no {
                assert!(!glob(pattern).matches(text.as_bytes()), "{pattern} {text}");
            }
        }
    }

    #[test]
    fn a_stray_byte_is_one_character() {
        assert!(glob("a?b").matches(b"a\xffb"));
        assert!(!glob("a?b").matches(b"a\xe2\x82b"));
        assert!(glob("a??b").matches(b"a\xe2\x82b"));
        assert!(glob("a?b").matches("a\u{20ac}b".as_bytes()));
        assert!(glob("*?").matches(b"\xe2\x82\xe2\x82\xac"));
    }

    #[test]
    fn a_stray_byte_is_outside_every_class() {
        let class = |negated| Glob::from(vec![Piece::Class { negated, ranges: vec![('\0', char::MAX)] }]);
        assert!(!class(false).matches(b"\xff"));
        assert!(class(true).matches(b"\xff"));
        assert!(class(false).matches(b"x"));
    }
}
