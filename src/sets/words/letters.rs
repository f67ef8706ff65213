//! Segments that some globs match, for each smallest set of others that they can match with it.

use super::{Token, included};
use crate::sets::budget::{Budget, Exhausted};
use crate::sets::glob::{self, Char, Glob, Piece, STRAY};
use std::collections::{BTreeSet, HashMap, VecDeque};
use std::ops::Bound;

/// What segments are made of.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Alphabet {
    /// A file name: no `/`, no NUL; neither `.` nor `..`.
    File,
    /// A host label in canonical form: `a-z`, `0-9`, `-`, `_`; no `-` at either end.
    Label,
    /// A variable or service: no `=`, no NUL.
    Name,
}

impl Alphabet {
    /// Inclusive ranges of characters.
    fn ranges(self) -> &'static [(Char, Char)] {
        match self {
            Alphabet::File => {
                &[(1, '/' as Char - 1), ('/' as Char + 1, 0xd7ff), (0xe000, 0x10_ffff), (STRAY + 0x80, STRAY + 0xff)]
            }
            Alphabet::Label => &[
                ('-' as Char, '-' as Char),
                ('0' as Char, '9' as Char),
                ('_' as Char, '_' as Char),
                ('a' as Char, 'z' as Char),
            ],
            Alphabet::Name => &[(1, '=' as Char - 1), ('=' as Char + 1, 0xd7ff), (0xe000, 0x10_ffff)],
        }
    }

    /// What no segment is, whatever the patterns say.
    fn never(self) -> Vec<Vec<Letter<'static>>> {
        let (dot, hyphen) = (Letter::Char('.' as Char), Letter::Char('-' as Char));
        match self {
            Alphabet::File => vec![vec![dot], vec![dot, dot]],
            Alphabet::Label => vec![vec![hyphen, Letter::Run], vec![Letter::Run, hyphen]],
            Alphabet::Name => Vec::new(),
        }
    }

    /// Whether a segment exists at all.
    pub(super) fn has(self, segment: &[u8]) -> bool {
        !segment.is_empty()
            && glob::chars(segment).all(|c| self.ranges().iter().any(|&(low, high)| (low..=high).contains(&c)))
            && match self {
                Alphabet::File => segment != b"." && segment != b"..",
                Alphabet::Label => !segment.starts_with(b"-") && !segment.ends_with(b"-"),
                Alphabet::Name => true,
            }
    }
}

#[derive(Debug, Clone, Copy)]
enum Letter<'a> {
    Char(Char),
    Any,
    Run,
    Class(bool, &'a [(char, char)]),
}

impl Letter<'_> {
    fn takes(self, char: Char) -> bool {
        match self {
            Letter::Char(own) => own == char,
            Letter::Any | Letter::Run => true,
            Letter::Class(negated, ranges) => glob::in_class(negated, ranges, char),
        }
    }
}

fn letters(pieces: &[Piece]) -> Vec<Letter<'_>> {
    let mut letters = Vec::new();
    for piece in pieces {
        match piece {
            Piece::Text(text) => letters.extend(glob::chars(text).map(Letter::Char)),
            Piece::AnyRun => letters.push(Letter::Run),
            Piece::AnyChar => letters.push(Letter::Any),
            Piece::Class { negated, ranges } => letters.push(Letter::Class(*negated, ranges)),
        }
    }
    letters
}

/// Segments that every glob of `required` matches: for each smallest set of `avoided` patterns (literals and globs) that
/// one can match with it, a shortest one. Nothing when the globs have no segment in common. `free` says whether nothing
/// avoided matches a segment, so that the list need not be made where a guess will do.
pub(super) fn segments<'a>(
    required: &[&Glob],
    free: impl Fn(&[u8]) -> bool,
    avoided: impl FnOnce() -> Vec<Token<'a>>,
    alphabet: Alphabet,
    budget: &mut Budget,
) -> Result<Vec<Vec<u8>>, Exhausted> {
    let taken = |segment: &[u8]| required.iter().all(|glob| glob.matches(segment));
    // A guess that nothing avoided matches is the answer, and nearly always there is one.
    if let Some(guess) = guesses(required).find(|guess| alphabet.has(guess) && taken(guess) && free(guess)) {
        return Ok(vec![guess]);
    }
    let mut refused = alphabet.never();
    let never = refused.len();
    let avoided = avoided();
    budget.spend(avoided.len())?;
    refused.extend(avoided.iter().filter_map(|token| match token {
        Token::Literal(literal) if taken(literal) => Some(glob::chars(literal).map(Letter::Char).collect()),
        Token::Literal(_) => None,
        Token::Glob(glob) => Some(letters(&glob.0)),
        Token::Origin(_) | Token::One | Token::Many => Some(vec![Letter::Run]),
    }));
    let required: Vec<_> = required.iter().map(|glob| letters(&glob.0)).collect();
    Search { required, refused, never, characters: Vec::new() }.run(alphabet, budget)
}

/// Likely answers: the first glob with its gaps filled in.
fn guesses<'g>(required: &'g [&Glob]) -> impl Iterator<Item = Vec<u8>> + 'g {
    const FILL: [&str; 5] = ["", "x", "y", "z", "other"];
    FILL.into_iter().filter_map(move |fill| {
        let Some(glob) = required.first() else { return Some(fill.as_bytes().to_vec()) };
        let mut segment = Vec::new();
        for piece in &*glob.0 {
            match piece {
                Piece::Text(text) => segment.extend_from_slice(text),
                Piece::AnyRun => segment.extend_from_slice(fill.as_bytes()),
                Piece::AnyChar => segment.extend_from_slice(fill.get(..1).unwrap_or("x").as_bytes()),
                Piece::Class { negated: true, .. } => segment.push(b'x'),
                Piece::Class { ranges, .. } => glob::push_char(&mut segment, Char::from(ranges.first()?.0)),
            }
        }
        Some(segment)
    })
}

type Position = (u16, u16);

struct Search<'a> {
    required: Vec<Vec<Letter<'a>>>,
    refused: Vec<Vec<Letter<'a>>>,
    /// How many of the refused patterns no segment matches.
    never: usize,
    /// One character of each kind that the patterns tell apart.
    characters: Vec<Char>,
}

impl Search<'_> {
    fn run(mut self, alphabet: Alphabet, budget: &mut Budget) -> Result<Vec<Vec<u8>>, Exhausted> {
        self.characters = self.kinds(alphabet);
        let mut start: Vec<Position> = (0..self.refused.len()).map(|pattern| (super::position(pattern), 0)).collect();
        close(&self.refused, &mut start);
        let mut found: Vec<(Vec<u16>, Vec<u8>)> = Vec::new();
        let mut seen: HashMap<Vec<u16>, Vec<Vec<Position>>> = HashMap::new();
        let mut queue = VecDeque::from([(vec![0; self.required.len()], start, Vec::new())]);
        while let Some((required, refused, segment)) = queue.pop_front() {
            budget.spend(1 + refused.len() * self.characters.len())?;
            if !segment.is_empty() && required.iter().zip(&self.required).all(|(&at, letters)| ends(letters, at)) {
                let taken: Vec<u16> = refused.iter().filter(|p| self.accepts(**p)).map(|p| p.0).collect();
                let exists = taken.iter().all(|pattern| usize::from(*pattern) >= self.never);
                if exists && !found.iter().any(|(smaller, _)| included(smaller, &taken)) {
                    found.retain(|(larger, _)| !included(&taken, larger));
                    let done = taken.is_empty();
                    found.push((taken, segment.clone()));
                    if done {
                        break;
                    }
                }
            }
            let lasting: Vec<u16> = refused.iter().filter(|p| self.lasts(**p)).map(|p| p.0).collect();
            let hopeless = lasting.first().is_some_and(|pattern| usize::from(*pattern) < self.never);
            if hopeless || found.iter().any(|(smaller, _)| included(smaller, &lasting)) {
                continue;
            }
            for &char in &self.characters {
                let refused = self.step(&refused, char);
                for required in self.ways(&required, char) {
                    let kept = seen.entry(required.clone()).or_default();
                    if kept.iter().any(|smaller| included(smaller, &refused)) {
                        continue;
                    }
                    kept.retain(|larger| !included(&refused, larger));
                    kept.push(refused.clone());
                    let mut segment = segment.clone();
                    glob::push_char(&mut segment, char);
                    queue.push_back((required, refused.clone(), segment));
                }
            }
        }
        Ok(found.into_iter().map(|(_, segment)| segment).collect())
    }

    fn accepts(&self, (pattern, at): Position) -> bool {
        self.refused[usize::from(pattern)].len() == usize::from(at)
    }

    /// Whether the pattern matches however the segment goes on.
    fn lasts(&self, (pattern, at): Position) -> bool {
        let rest = &self.refused[usize::from(pattern)][usize::from(at)..];
        !rest.is_empty() && rest.iter().all(|letter| matches!(letter, Letter::Run))
    }

    fn step(&self, positions: &[Position], char: Char) -> Vec<Position> {
        let mut next = Vec::with_capacity(positions.len());
        for &(pattern, at) in positions {
            if let Some(letter) = self.refused[usize::from(pattern)].get(usize::from(at))
                && letter.takes(char)
            {
                next.push((pattern, if matches!(letter, Letter::Run) { at } else { at + 1 }));
            }
        }
        close(&self.refused, &mut next);
        next
    }

    fn ways(&self, required: &[u16], char: Char) -> Vec<Vec<u16>> {
        let mut ways = vec![Vec::new()];
        for (&at, letters) in required.iter().zip(&self.required) {
            let mut longer = Vec::new();
            for at in at.. {
                let Some(letter) = letters.get(usize::from(at)) else { break };
                let run = matches!(letter, Letter::Run);
                if letter.takes(char) {
                    for way in &ways {
                        let mut way = way.clone();
                        way.push(if run { at } else { at + 1 });
                        longer.push(way);
                    }
                }
                if !run {
                    break;
                }
            }
            ways = longer;
        }
        ways
    }

    /// One character for each stretch of the alphabet that no pattern divides; those that read well first.
    fn kinds(&self, alphabet: Alphabet) -> Vec<Char> {
        let mut cuts = BTreeSet::new();
        for letter in self.required.iter().chain(&self.refused).flatten() {
            match letter {
                Letter::Char(char) => cuts.extend([*char, char + 1]),
                Letter::Class(_, ranges) => {
                    cuts.extend(ranges.iter().flat_map(|&(low, high)| [Char::from(low), Char::from(high) + 1]));
                }
                Letter::Any | Letter::Run => {}
            }
        }
        let mut kinds = Vec::new();
        for &(low, high) in alphabet.ranges() {
            let mut from = low;
            for &cut in cuts.range((Bound::Excluded(low), Bound::Included(high))).chain(std::iter::once(&(high + 1))) {
                kinds.push(best(from, cut - 1));
                from = cut;
            }
        }
        kinds.sort_unstable_by_key(|&char| rank(char));
        kinds
    }
}

/// How well a character reads in an example; less is better.
fn rank(char: Char) -> (u8, Char) {
    let class = match char::from_u32(char) {
        Some('a'..='z') => 0,
        Some('0'..='9') => 1,
        Some('A'..='Z') => 2,
        Some('!'..='~') => 3,
        Some(c) if c.is_alphanumeric() => 4,
        Some(c) if !c.is_control() => 5,
        _ => 6,
    };
    (class, char)
}

/// The character of a stretch that reads best.
fn best(low: Char, high: Char) -> Char {
    let stray = STRAY + 0xff;
    ['x', 'a', '0', 'A', '!', '\u{e0}']
        .into_iter()
        .map(Char::from)
        .chain([low, high, stray])
        .map(|char| char.clamp(low, high))
        .min_by_key(|&char| if char == stray { (6, STRAY) } else { rank(char) })
        .unwrap_or(low)
}

fn ends(letters: &[Letter<'_>], at: u16) -> bool {
    letters[usize::from(at)..].iter().all(|letter| matches!(letter, Letter::Run))
}

fn close(patterns: &[Vec<Letter<'_>>], positions: &mut Vec<Position>) {
    let mut index = 0;
    while let Some(&(pattern, at)) = positions.get(index) {
        if matches!(patterns[usize::from(pattern)].get(usize::from(at)), Some(Letter::Run)) {
            positions.push((pattern, at + 1));
        }
        index += 1;
    }
    positions.sort_unstable();
    positions.dedup();
}
