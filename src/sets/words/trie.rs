//! The patterns of many sets as one tree, so that what hundreds of them share is one place in it, and those that begin
//! elsewhere are never looked at.

use super::{Origin, Token, Unit};
use crate::sets::glob::Glob;
use crate::sets::mistake::{Mistake, made};
use rustc_hash::FxHashMap;

/// Patterns by their steps; each belongs to a set, named by a number.
#[derive(Debug, Clone)]
pub(in crate::sets) struct Trie<'a> {
    places: Vec<Place<'a>>,
    literals: FxHashMap<&'a [u8], u32>,
    /// The places behind a literal.
    named: FxHashMap<(u32, u32), u32>,
    globs: FxHashMap<&'a Glob, u32>,
    /// The places behind a glob.
    globbed: FxHashMap<(u32, u32), u32>,
}

/// What patterns that begin alike have in common, up to here.
#[derive(Debug, Clone, Default)]
struct Place<'a> {
    /// It was reached by [`Token::Many`]: any unit leads back to it.
    stays: bool,
    /// The place behind a [`Token::Many`], which takes no unit to get to.
    many: Option<u32>,
    /// The place that any one unit leads to.
    one: Option<u32>,
    origins: Vec<(Origin<'a>, u32)>,
    literals: Vec<(&'a [u8], u32)>,
    globs: Vec<Branch<'a>>,
    /// The sets that have a pattern which ends here.
    ends: Vec<u32>,
}

/// What follows a glob.
#[derive(Debug, Clone)]
struct Branch<'a> {
    glob: &'a Glob,
    /// The letters of ASCII that a match may begin with, a bit each: most segments begin otherwise.
    first: u128,
    next: u32,
}

impl Branch<'_> {
    fn takes(&self, segment: &[u8]) -> bool {
        let may = segment.first().is_none_or(|byte| !byte.is_ascii() || self.first >> byte & 1 == 1);
        may && self.glob.matches(segment)
    }
}

impl<'a> Trie<'a> {
    pub fn new() -> Self {
        Self {
            places: vec![Place::default()],
            literals: FxHashMap::default(),
            named: FxHashMap::default(),
            globs: FxHashMap::default(),
            globbed: FxHashMap::default(),
        }
    }

    /// Adds a pattern of a set.
    pub fn insert(&mut self, shape: &[Token<'a>], set: u32) {
        let mut at = 0;
        for token in shape {
            at = self.next(at, *token);
        }
        let ends = &mut self.places[at as usize].ends;
        if ends.last() != Some(&set) {
            ends.push(set);
        }
    }

    fn next(&mut self, at: u32, token: Token<'a>) -> u32 {
        let fresh = count(self.places.len());
        let here = &mut self.places[at as usize];
        let next = match token {
            // Another `**` leads no further.
            Token::Many if here.stays => at,
            Token::Many => *here.many.get_or_insert(fresh),
            Token::One => *here.one.get_or_insert(fresh),
            Token::Origin(origin) => find_or_push(&mut here.origins, origin, fresh),
            Token::Glob(glob) => {
                let known = count(self.globs.len());
                let name = *self.globs.entry(glob).or_insert(known);
                let next = *self.globbed.entry((at, name)).or_insert(fresh);
                if next == fresh {
                    here.globs.push(Branch { glob, first: glob.first_ascii(), next });
                }
                next
            }
            Token::Literal(literal) => {
                let known = count(self.literals.len());
                let name = *self.literals.entry(literal).or_insert(known);
                let next = *self.named.entry((at, name)).or_insert(fresh);
                if next == fresh {
                    here.literals.push((literal, fresh));
                }
                next
            }
        };
        if next == fresh {
            self.places.push(Place { stays: token == Token::Many, ..Place::default() });
        }
        next
    }

    /// The places before the first unit.
    pub fn start(&self) -> Vec<u32> {
        let mut places = vec![0];
        self.close(&mut places);
        places
    }

    fn close(&self, places: &mut Vec<u32>) {
        let mut index = 0;
        while let Some(place) = places.get(index) {
            places.extend(self.places[*place as usize].many);
            index += 1;
        }
        places.sort_unstable();
        places.dedup();
    }

    /// The places one unit on.
    pub fn step(&self, places: &[u32], unit: &Unit<'_>) -> Vec<u32> {
        let mut next = Vec::with_capacity(places.len() + 1);
        let literal = match unit {
            Unit::Segment(segment) => self.literals.get(&segment[..]).copied(),
            Unit::Origin(_) => None,
        };
        for &at in places {
            let place = &self.places[at as usize];
            if place.stays {
                next.push(at);
            }
            next.extend(place.one);
            match unit {
                Unit::Origin(origin) => {
                    next.extend(place.origins.iter().filter(|(own, _)| own == origin).map(|(_, next)| *next));
                }
                Unit::Segment(segment) => {
                    next.extend(literal.and_then(|literal| self.named.get(&(at, literal))));
                    if !made(Mistake::GlobIsLost) {
                        next.extend(place.globs.iter().filter(|glob| glob.takes(segment)).map(|glob| glob.next));
                    }
                }
            }
        }
        self.close(&mut next);
        next
    }

    /// Places that every word leads to which one step of a pattern takes; there may be more.
    pub fn step_all(&self, places: &[u32], token: Token<'a>) -> Vec<u32> {
        match token {
            Token::Literal(literal) => return self.step(places, &Unit::Segment(literal.to_vec())),
            Token::Origin(origin) => return self.step(places, &Unit::Origin(origin)),
            Token::Glob(_) | Token::One | Token::Many => {}
        }
        let glob = match token {
            Token::Glob(glob) => self.globs.get(glob),
            _ => None,
        };
        let mut next = Vec::new();
        for &at in places {
            let place = &self.places[at as usize];
            if place.stays {
                next.push(at);
            }
            // Any number of units may be none.
            if token != Token::Many {
                next.extend(place.one);
            }
            next.extend(glob.and_then(|glob| self.globbed.get(&(at, *glob))));
            if made(Mistake::GlobsAreAlike) && matches!(token, Token::Glob(_)) {
                next.extend(place.globs.iter().map(|glob| glob.next));
            }
        }
        self.close(&mut next);
        next
    }

    /// Whether some pattern has a literal or a glob for this segment next, other than the given globs.
    pub fn wants(&self, places: &[u32], segment: &[u8], but: &[&Glob]) -> bool {
        let literal = self.literals.get(segment);
        places.iter().any(|at| {
            literal.is_some_and(|literal| self.named.contains_key(&(*at, *literal)))
                || self.places[*at as usize].globs.iter().any(|glob| glob.takes(segment) && !but.contains(&glob.glob))
        })
    }

    /// The literals and globs that patterns have next.
    pub fn tokens(&self, places: &[u32]) -> impl Iterator<Item = Token<'a>> + use<'_, 'a> {
        let places: Vec<_> = places.iter().map(|at| &self.places[*at as usize]).collect();
        places.into_iter().flat_map(|place| {
            let literals = place.literals.iter().map(|(literal, _)| Token::Literal(literal));
            literals.chain(place.globs.iter().map(|glob| Token::Glob(glob.glob)))
        })
    }

    /// The origins that patterns begin at.
    pub fn origins(&self) -> impl Iterator<Item = Origin<'a>> + '_ {
        self.places[0].origins.iter().map(|(origin, _)| *origin)
    }

    /// The sets that have a pattern which ends at one of these places, and whether it matches however the word goes on.
    pub fn ends<'t>(&'t self, places: &'t [u32]) -> impl Iterator<Item = (u32, bool)> + 't {
        places.iter().flat_map(|at| {
            let place = &self.places[*at as usize];
            place.ends.iter().map(|set| (*set, place.stays))
        })
    }

    /// The sets that may have a word in common with a pattern: all that do, and some that begin alike and do not; as they are
    /// looked for, those whose patterns came first before the others of their place, and some of them more than once.
    pub fn meeting(&self, shape: &[Token<'a>]) -> impl Iterator<Item = u32> + use<'_, 'a> {
        let mut places = self.start();
        let mut whole = true;
        for token in shape {
            let unit = match token {
                Token::Literal(literal) => Unit::Segment(literal.to_vec()),
                Token::Origin(origin) => Unit::Origin(*origin),
                Token::Glob(_) | Token::One | Token::Many => {
                    whole = false;
                    break;
                }
            };
            places = self.step(&places, &unit);
        }
        let mut stack = places;
        stack.reverse();
        let below = move || {
            let place = &self.places[stack.pop()? as usize];
            if !whole {
                stack.extend(place.globs.iter().rev().map(|glob| glob.next));
                stack.extend(place.literals.iter().rev().map(|(_, next)| *next));
                stack.extend(place.origins.iter().rev().map(|(_, next)| *next));
                stack.extend(place.one);
                stack.extend(place.many);
            }
            Some(place.ends.iter().copied())
        };
        std::iter::from_fn(below).flatten()
    }
}

fn find_or_push<K: PartialEq>(known: &mut Vec<(K, u32)>, key: K, fresh: u32) -> u32 {
    if let Some((_, place)) = known.iter().find(|(own, _)| *own == key) {
        *place
    } else {
        known.push((key, fresh));
        fresh
    }
}

/// Places are far fewer than 2^32: each takes memory.
fn count(length: usize) -> u32 {
    u32::try_from(length).expect("fewer than 2^32 of them fit into memory")
}
