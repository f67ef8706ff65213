//! The one question behind paths, hosts and names alike: is there a word of segments that all of these patterns match and
//! none of those? Answered exactly, with a word of the fewest segments.
//!
//! A search over positions: one position in each pattern that must match, and the set of all positions in the patterns
//! that must not. Of two states with the same positions, one whose second set is smaller can do all that the other can,
//! so only the smallest are kept (antichains); that is what keeps the search small where determinising would not.
//! Characters are searched in the same way, in [`letters`].

pub(super) mod letters;

use super::glob::Glob;
use letters::Alphabet;
use std::collections::{HashMap, VecDeque};

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
    fn takes(&self, unit: &Unit<'_>) -> bool {
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

/// A position: which pattern, and how many of its steps are done.
type Position = (u16, u16);

struct State<'a> {
    /// One position in each pattern that must match.
    required: Vec<u16>,
    /// All positions in those that must not; sorted, closed over skipped [`Token::Many`].
    refused: Vec<Position>,
    /// The state before, and the unit that led here.
    from: Option<(usize, Unit<'a>)>,
    depth: usize,
}

/// A word with the fewest segments that every pattern in `required` matches and none in `refused`.
pub(super) fn find<'a>(required: &[&Shape<'a>], refused: &[&Shape<'a>], alphabet: Alphabet) -> Option<Vec<Unit<'a>>> {
    for (index, a) in required.iter().enumerate() {
        if required[index + 1..].iter().any(|b| plainly_apart(a, b)) {
            return None;
        }
    }
    let refused: Vec<&Shape<'a>> =
        refused.iter().copied().filter(|shape| !required.iter().any(|a| plainly_apart(a, shape))).collect();
    Search { required, refused: &refused, alphabet, origins: origins(required, &refused) }.run()
}

/// The origins that some pattern names: the only ones whose places can differ.
fn origins<'a>(required: &[&Shape<'a>], refused: &[&Shape<'a>]) -> Vec<Origin<'a>> {
    let mut origins: Vec<_> = required
        .iter()
        .chain(refused)
        .filter_map(|shape| match shape.first() {
            Some(Token::Origin(origin)) => Some(*origin),
            _ => None,
        })
        .collect();
    origins.sort_unstable();
    origins.dedup();
    origins
}

struct Search<'s, 'a> {
    required: &'s [&'s Shape<'a>],
    refused: &'s [&'s Shape<'a>],
    alphabet: Alphabet,
    origins: Vec<Origin<'a>>,
}

impl<'a> Search<'_, 'a> {
    fn run(&self) -> Option<Vec<Unit<'a>>> {
        let mut start = (0..self.refused.len()).map(|pattern| (position(pattern), 0)).collect();
        self.close(&mut start);
        if self.lost(&start) {
            return None;
        }
        let mut states = vec![State { required: vec![0; self.required.len()], refused: start, from: None, depth: 0 }];
        let mut seen: HashMap<Vec<u16>, Vec<Vec<Position>>> = HashMap::new();
        let mut queue = VecDeque::from([0]);
        while let Some(at) = queue.pop_front() {
            if self.accepts(&states[at]) {
                return Some(word(&states, at));
            }
            for (required, unit) in self.moves(&states[at]) {
                let refused = self.step(&states[at].refused, &unit);
                if self.lost(&refused) {
                    continue;
                }
                let kept = seen.entry(required.clone()).or_default();
                if kept.iter().any(|smaller| included(smaller, &refused)) {
                    continue;
                }
                kept.retain(|larger| !included(&refused, larger));
                kept.push(refused.clone());
                let depth = states[at].depth + 1;
                states.push(State { required, refused, from: Some((at, unit)), depth });
                queue.push_back(states.len() - 1);
            }
        }
        None
    }

    fn accepts(&self, state: &State<'a>) -> bool {
        state.required.iter().zip(self.required).all(|(&at, shape)| ends(shape, at))
            && !state.refused.iter().any(|&(pattern, at)| self.refused[usize::from(pattern)].len() == usize::from(at))
    }

    /// Whether a pattern that must not match matches this word and every longer one.
    fn lost(&self, refused: &[Position]) -> bool {
        refused.iter().any(|&(pattern, at)| {
            let rest = &self.refused[usize::from(pattern)][usize::from(at)..];
            !rest.is_empty() && rest.iter().all(|token| *token == Token::Many)
        })
    }

    fn close(&self, positions: &mut Vec<Position>) {
        let mut index = 0;
        while let Some(&(pattern, at)) = positions.get(index) {
            if self.refused[usize::from(pattern)].get(usize::from(at)) == Some(&Token::Many) {
                positions.push((pattern, at + 1));
            }
            index += 1;
        }
        positions.sort_unstable();
        positions.dedup();
    }

    fn step(&self, positions: &[Position], unit: &Unit<'a>) -> Vec<Position> {
        let mut next = Vec::with_capacity(positions.len());
        for &(pattern, at) in positions {
            if let Some(token) = self.refused[usize::from(pattern)].get(usize::from(at))
                && token.takes(unit)
            {
                next.push((pattern, if *token == Token::Many { at } else { at + 1 }));
            }
        }
        self.close(&mut next);
        next
    }

    /// Every way on from a state that could lead to a word, as positions and a unit that reaches them.
    fn moves(&self, state: &State<'a>) -> Vec<(Vec<u16>, Unit<'a>)> {
        let mut ways: Vec<(Vec<u16>, Vec<Token<'a>>)> = vec![(Vec::new(), Vec::new())];
        for (&at, shape) in state.required.iter().zip(self.required) {
            let mut longer = Vec::new();
            for at in at.. {
                let Some(token) = shape.get(usize::from(at)) else { break };
                let next = if *token == Token::Many { at } else { at + 1 };
                for (positions, tokens) in &ways {
                    let (mut positions, mut tokens) = (positions.clone(), tokens.clone());
                    positions.push(next);
                    tokens.push(*token);
                    longer.push((positions, tokens));
                }
                if *token != Token::Many {
                    break;
                }
            }
            ways = longer;
        }
        let mut moves = Vec::new();
        for (positions, tokens) in ways {
            for unit in self.units(state, &tokens) {
                moves.push((positions.clone(), unit));
            }
        }
        moves
    }

    /// Units that all of `tokens` take: for each smallest set of refused steps that one can take with it, one unit.
    fn units(&self, state: &State<'a>, tokens: &[Token<'a>]) -> Vec<Unit<'a>> {
        let takes_all = |unit: &Unit<'a>| tokens.iter().all(|token| token.takes(unit));
        let mut units = Vec::new();
        if state.depth == 0 {
            units.extend(self.origins.iter().map(|origin| Unit::Origin(*origin)).filter(takes_all));
        }
        let mut globs: Vec<&Glob> = Vec::new();
        for token in tokens {
            match token {
                Token::Origin(_) => return units,
                Token::Literal(literal) => {
                    units.extend(Some(Unit::Segment(literal.to_vec())).filter(takes_all));
                    return units;
                }
                Token::Glob(glob) if !globs.contains(glob) => globs.push(glob),
                _ => {}
            }
        }
        let mut avoided: Vec<Token<'a>> = Vec::new();
        for &(pattern, at) in &state.refused {
            if let Some(token @ (Token::Literal(_) | Token::Glob(_))) =
                self.refused[usize::from(pattern)].get(usize::from(at))
                && !avoided.contains(token)
            {
                avoided.push(*token);
            }
        }
        units.extend(letters::segments(&globs, &avoided, self.alphabet).into_iter().map(Unit::Segment));
        units
    }
}

/// Whether a pattern may end at a position.
fn ends(shape: &Shape<'_>, at: u16) -> bool {
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

fn word<'a>(states: &[State<'a>], mut at: usize) -> Vec<Unit<'a>> {
    let mut units = Vec::new();
    while let Some((before, unit)) = &states[at].from {
        units.push(unit.clone());
        at = *before;
    }
    units.reverse();
    units
}
