//! Names in all their spellings: a pattern that matches whatever a file system of macOS takes for a name that it matches.
//!
//! The table: for each character its lower and upper case, where they are one character, and the characters that fold to it by
//! Unicode's simple case folding (CaseFolding.txt, status C), of which ASCII has two: U+017F for `s` and U+212A for `k`.
//! Normalisation forms of accented letters are not in it.

use crate::sets::glob::{Glob, Piece};
use crate::sets::path::{PathSet, Pattern, Segment};

/// How many characters of a range are looked at one by one.
pub const MOST: usize = 512;

/// The set in all spellings; what it excludes stays as it is spelled.
pub fn in_all_spellings(set: &PathSet) -> PathSet {
    PathSet { include: set.include.iter().map(folded).collect(), exclude: set.exclude.clone() }
}

/// One pattern in all spellings.
pub fn folded(pattern: &Pattern) -> Pattern {
    let segments = pattern.segments.iter().map(|segment| match segment {
        Segment::AnyDepth => Segment::AnyDepth,
        Segment::Literal(name) => plain_or_glob(spelled(name)),
        Segment::Glob(glob) => {
            let pieces = glob.0.iter().flat_map(|piece| match piece {
                Piece::Text(text) => spelled(text),
                Piece::AnyRun | Piece::AnyChar => vec![piece.clone()],
                Piece::Class { negated, ranges } => vec![class(*negated, ranges)],
            });
            plain_or_glob(joined(pieces))
        }
    });
    Pattern { segments: segments.collect(), ..pattern.clone() }
}

fn plain_or_glob(mut pieces: Vec<Piece>) -> Segment {
    match pieces.pop() {
        Some(Piece::Text(text)) if pieces.is_empty() => Segment::Literal(text.into()),
        last => {
            pieces.extend(last);
            Segment::Glob(Glob::from(pieces))
        }
    }
}

fn spelled(text: &[u8]) -> Vec<Piece> {
    let Ok(text) = std::str::from_utf8(text) else { return vec![Piece::Text(text.to_vec())] };
    joined(text.chars().map(|char| match &variants(char)[..] {
        [one] => Piece::Text(one.to_string().into_bytes()),
        many => Piece::Class { negated: false, ranges: many.iter().map(|char| (*char, *char)).collect() },
    }))
}

/// Texts that follow each other as one.
fn joined(pieces: impl IntoIterator<Item = Piece>) -> Vec<Piece> {
    let mut joined: Vec<Piece> = Vec::new();
    for piece in pieces {
        match (joined.last_mut(), piece) {
            (Some(Piece::Text(text)), Piece::Text(more)) => text.extend(more),
            (_, piece) => joined.push(piece),
        }
    }
    joined
}

/// What is outside a class of letters has a spelling inside and the reverse, so that any character may stand there.
fn class(negated: bool, ranges: &[(char, char)]) -> Piece {
    let members = || ranges.iter().flat_map(|(low, high)| *low..=*high);
    if members().nth(MOST).is_some() {
        return Piece::AnyChar;
    }
    let mut spelled: Vec<char> = members().flat_map(variants).collect();
    spelled.sort_unstable();
    spelled.dedup();
    if negated {
        let letters = members().any(|char| variants(char).len() > 1);
        return if letters { Piece::AnyChar } else { Piece::Class { negated, ranges: ranges.to_vec() } };
    }
    let mut joined: Vec<(char, char)> = Vec::new();
    for char in spelled {
        match joined.last_mut() {
            Some((_, high)) if u32::from(*high) + 1 == u32::from(char) => *high = char,
            _ => joined.push((char, char)),
        }
    }
    Piece::Class { negated, ranges: joined }
}

/// A character in all its cases, in order.
fn variants(char: char) -> Vec<char> {
    let mut variants = vec![char];
    let single = |mut mapped: Box<dyn Iterator<Item = char>>| mapped.next().filter(|_| mapped.next().is_none());
    let lower = single(Box::new(char.to_lowercase())).unwrap_or(char);
    variants.push(lower);
    for char in [char, lower] {
        variants.extend(single(Box::new(char.to_uppercase())));
    }
    match lower {
        's' | '\u{17f}' => variants.extend(['s', 'S', '\u{17f}']),
        'k' => variants.push('\u{212a}'),
        'å' => variants.push('\u{212b}'),
        _ => {}
    }
    variants.sort_unstable();
    variants.dedup();
    variants
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::*;
    use crate::sets::path::AbsPath;
    use crate::vocabulary::Reach;

    #[test]
    fn a_name_in_all_its_spellings() {
        let path = |text: &str| AbsPath::parse(text).unwrap();
        let pattern = folded(&Pattern::literal(&path("/Masks/.x-1"), Reach::Tree));
        for spelled in ["/masks/.X-1", "/MA\u{17f}\u{212a}S/.x-1/below", "/Masks/.x-1"] {
            assert!(pattern.contains(&path(spelled)), "{spelled}");
        }
        assert!(!pattern.contains(&path("/maskz/.x-1")));
        assert_eq!(folded(&Pattern::literal(&path("/1/2"), Reach::Exact)).to_string(), "exact /1/2");
    }

    #[test]
    fn classes() {
        let negated = Piece::Class { negated: true, ranges: vec![('a', 'c')] };
        assert_eq!(class(true, &[('a', 'c')]), Piece::AnyChar);
        assert_ne!(class(true, &[('0', '9')]), negated);
        assert_eq!(class(false, &[('a', 'c')]), Piece::Class { negated: false, ranges: vec![('A', 'C'), ('a', 'c')] });
        assert_eq!(class(false, &[('\0', char::MAX)]), Piece::AnyChar);
    }
}
