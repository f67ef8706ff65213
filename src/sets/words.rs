//! The one question behind paths, hosts and names alike: is there a word of segments that all of these patterns match and
//! none of those? Answered exactly, with a word of the fewest segments, by [`search`].

pub(super) mod letters;
mod plain;
pub(super) mod question;
pub(super) mod search;
pub(super) mod trie;

use super::budget::Budget;
use super::glob::Glob;
use letters::Alphabet;
use question::Question;

/// A first unit that is no segment: a place apart from all literal ones.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) enum Origin<'a> {
    Variable(&'a str),
    Drive(char),
}

/// One step of a pattern.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) enum Token<'a> {
    /// Only ever the first.
    Origin(Origin<'a>),
    Literal(&'a [u8]),
    Glob(&'a Glob),
    /// Any one unit, an origin included.
    One,
    /// Any number of units, origins included.
    Many,
}

/// A pattern as steps.
pub(super) type Shape<'a> = Vec<Token<'a>>;

/// One unit of a word.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) enum Unit<'a> {
    /// Only ever the first.
    Origin(Origin<'a>),
    Segment(Vec<u8>),
}

impl Token<'_> {
    pub(super) fn takes(&self, unit: &Unit<'_>) -> bool {
        match (self, unit) {
            (Token::One | Token::Many, _) => true,
            (Token::Origin(a), Unit::Origin(b)) => a == b,
            (Token::Literal(literal), Unit::Segment(segment)) => literal == segment,
            (Token::Glob(glob), Unit::Segment(segment)) => glob.matches(segment),
            _ => false,
        }
    }
}

/// Whether the steps up to the first that is not plain already keep two patterns apart. `false` says nothing.
pub(super) fn plainly_apart(a: &[Token<'_>], b: &[Token<'_>]) -> bool {
    for at in 0.. {
        let apart = match (a.get(at), b.get(at)) {
            (None | Some(Token::Many), None | Some(Token::Many)) => return false,
            (None, Some(_)) | (Some(_), None) => return true,
            (Some(Token::Many | Token::One), _) | (_, Some(Token::Many | Token::One)) => return false,
            (Some(Token::Origin(x)), Some(Token::Origin(y))) => x != y,
            (Some(Token::Origin(_)), _) | (_, Some(Token::Origin(_))) => true,
            (Some(Token::Literal(x)), Some(Token::Literal(y))) => x != y,
            (Some(Token::Literal(x)), Some(Token::Glob(y))) => !y.matches(x),
            (Some(Token::Glob(x)), Some(Token::Literal(y))) => !x.matches(y),
            (Some(Token::Glob(_)), Some(Token::Glob(_))) => return false,
        };
        if apart {
            return true;
        }
    }
    false
}

/// A word with the fewest segments that every pattern in `required` matches and none in `refused`.
pub(super) fn find<'a>(required: &[&Shape<'a>], refused: &[&Shape<'a>], alphabet: Alphabet) -> Option<Vec<Unit<'a>>> {
    find_with(&[], required, refused, alphabet)
}

/// The same, where there are these places too, besides those that the patterns start at.
pub(super) fn find_with<'a>(
    origins: &[Origin<'a>],
    required: &[&Shape<'a>],
    refused: &[&Shape<'a>],
    alphabet: Alphabet,
) -> Option<Vec<Unit<'a>>> {
    for (index, a) in required.iter().enumerate() {
        if required[index + 1..].iter().any(|b| plainly_apart(a, b)) {
            return None;
        }
    }
    let required: Vec<&[Token<'a>]> = required.iter().map(|shape| &shape[..]).collect();
    let refused = refused.iter().map(|shape| &shape[..]);
    let refused = refused.filter(|shape| !required.iter().any(|a| plainly_apart(a, shape))).collect();
    let question =
        Question { required, refused, forests: Vec::new(), origins: origins.to_vec(), alphabet, shorter_than: None };
    // The limits of the language keep a question about two sets small.
    question.find(&mut Budget::unlimited()).unwrap_or_default()
}

/// Whether a whole word is matched.
pub(super) fn matches(shape: &[Token<'_>], word: &[Unit<'_>]) -> bool {
    match (shape.split_first(), word.split_first()) {
        (None, None) => true,
        (None, Some(_)) => false,
        (Some((Token::Many, rest)), None) => matches(rest, word),
        (Some(_), None) => false,
        (Some((Token::Many, rest)), Some((_, below))) => matches(rest, word) || matches(shape, below),
        (Some((token, rest)), Some((unit, below))) => token.takes(unit) && matches(rest, below),
    }
}

/// Whether a pattern may end at a position.
fn ends(shape: &[Token<'_>], at: u16) -> bool {
    shape[usize::from(at)..].iter().all(|token| *token == Token::Many)
}

/// Patterns are limited to fewer than 2^16 steps and sets to fewer than 2^16 patterns by whoever builds them.
fn position(index: usize) -> u16 {
    u16::try_from(index).expect("a set has fewer than 65536 patterns")
}

/// Whether a sorted list is contained in another.
fn included<T: Ord>(small: &[T], large: &[T]) -> bool {
    let mut rest = large.iter();
    small.iter().all(|x| rest.any(|y| x == y))
}
