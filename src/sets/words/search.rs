//! A word that all of some patterns match and none of others, where those others may be thousands, and some of them may be
//! lifted by further ones.
//!
//! A search over positions: one in each pattern that must match, and the sets of all positions in the others. Of two states
//! with the same positions in the first, one can do all that the other can if it has fewer positions in patterns that
//! refuse and more in patterns that lift a refusal; so only the best are kept (antichains), which keeps the search small
//! where determinising would not. What lifts a refusal is followed only once a word has met that refusal.

use super::letters;
use super::question::{Exception, Question, Role};
use super::{Origin, Token, Unit, ends, included, plain, position};
use crate::sets::budget::{Budget, Exhausted};
use crate::sets::glob::Glob;
use crate::sets::mistake::{Mistake, made};
use rustc_hash::{FxHashMap, FxHashSet};
use std::collections::VecDeque;

/// A position: which pattern, and how many of its steps are done.
type Position = (u16, u16);

/// All positions in the patterns that need not match; each list sorted, closed over skipped [`Token::Many`].
#[derive(Debug, Clone, PartialEq, Eq)]
struct Loose {
    /// Places in the tries.
    places: Vec<Vec<u32>>,
    /// In patterns that refuse.
    bad: Vec<Position>,
    /// In patterns that lift a refusal.
    good: Vec<Position>,
}

impl Loose {
    /// Whether every word that leads from `other` to an answer does so from here.
    fn does_all_of(&self, other: &Self) -> bool {
        self.places.iter().zip(&other.places).all(|(own, theirs)| included(own, theirs))
            && included(&self.bad, &other.bad)
            && included(&other.good, &self.good)
    }
}

struct State<'a> {
    /// One position in each pattern that must match.
    required: Vec<u16>,
    loose: Loose,
    /// The state before, and the unit that led here.
    from: Option<(usize, Unit<'a>)>,
    depth: usize,
}

impl<'q, 'a> Question<'q, 'a> {
    /// A word of the fewest units, or that there is none.
    ///
    /// # Errors
    /// When the budget does not suffice to know.
    pub fn find(&self, budget: &mut Budget) -> Result<Option<Vec<Unit<'a>>>, Exhausted> {
        if made(Mistake::IntersectionIsEmpty) && self.required.len() > 1 {
            return Ok(None);
        }
        // Most patterns are one literal, and what is at or below it: no other word of them is as short.
        if let Some((word, only)) = self.literal() {
            if self.shorter_than.is_some_and(|limit| word.len() >= limit) {
                return Ok(None);
            }
            if self.admits(&word, budget)? {
                return Ok(Some(word));
            }
            if only {
                return Ok(None);
            }
        }
        if plain::is_refused(self, budget)? {
            return Ok(None);
        }
        let mut origins = self.origins.clone();
        origins.extend(self.required.iter().chain(&self.refused).filter_map(|shape| origin(shape)));
        origins.extend(self.forests.iter().flat_map(|forest| forest.trie.origins()));
        origins.sort_unstable();
        origins.dedup();
        let mut lifted: FxHashMap<(usize, u32), Vec<Exception<'q, 'a>>> = FxHashMap::default();
        loop {
            let mut search = Search::new(self, &lifted, origins.clone());
            match search.run(budget)? {
                Outcome::Found(word) => return Ok(Some(word)),
                Outcome::Nothing => return Ok(None),
                // Followed from the start this time.
                Outcome::Met(more) => lifted.extend(more),
            }
        }
    }
}

fn origin<'a>(shape: &[Token<'a>]) -> Option<Origin<'a>> {
    match shape.first() {
        Some(Token::Origin(origin)) => Some(*origin),
        _ => None,
    }
}

type Lifted<'q, 'a> = FxHashMap<(usize, u32), Vec<Exception<'q, 'a>>>;

enum Outcome<'q, 'a> {
    Found(Vec<Unit<'a>>),
    Nothing,
    /// Refusals that would have to be lifted for the shortest word, and are not followed yet.
    Met(Vec<((usize, u32), Vec<Exception<'q, 'a>>)>),
}

/// What a pattern whose positions are followed is there for.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Purpose {
    /// It must not match.
    Refuses,
    /// It lifts: of which refusal, of which of its exceptions.
    Any(usize, usize),
    /// It keeps an exception from holding.
    But(usize, usize),
}

struct Search<'s, 'q, 'a> {
    question: &'s Question<'q, 'a>,
    patterns: Vec<(&'q [Token<'a>], Purpose)>,
    /// The refusals whose exceptions are followed.
    followed: FxHashMap<(usize, u32), usize>,
    /// How many exceptions each has.
    exceptions: Vec<usize>,
    origins: Vec<Origin<'a>>,
    states: Vec<State<'a>>,
}

impl<'s, 'q, 'a> Search<'s, 'q, 'a> {
    fn new(question: &'s Question<'q, 'a>, lifted: &Lifted<'q, 'a>, mut origins: Vec<Origin<'a>>) -> Self {
        let mut patterns: Vec<_> = question.refused.iter().map(|shape| (*shape, Purpose::Refuses)).collect();
        let (mut followed, mut exceptions) = (FxHashMap::default(), Vec::new());
        for (set, ways) in lifted {
            let number = exceptions.len();
            followed.insert(*set, number);
            exceptions.push(ways.len());
            for (index, way) in ways.iter().enumerate() {
                patterns.extend(way.any.iter().map(|shape| (*shape, Purpose::Any(number, index))));
                patterns.extend(way.but.iter().map(|shape| (*shape, Purpose::But(number, index))));
            }
        }
        origins.extend(patterns.iter().filter_map(|(shape, _)| origin(shape)));
        origins.sort_unstable();
        origins.dedup();
        Self { question, patterns, followed, exceptions, origins, states: Vec::new() }
    }

    fn run(&mut self, budget: &mut Budget) -> Result<Outcome<'q, 'a>, Exhausted> {
        let start = self.start();
        if self.lost(&start) {
            return Ok(Outcome::Nothing);
        }
        let required = vec![0; self.question.required.len()];
        self.states.push(State { required, loose: start, from: None, depth: 0 });
        let mut seen: FxHashMap<Vec<u16>, Vec<Loose>> = FxHashMap::default();
        let mut queue = VecDeque::from([0]);
        while let Some(at) = queue.pop_front() {
            budget.spend(1 + size(&self.states[at].loose))?;
            if self.question.shorter_than.is_some_and(|limit| self.states[at].depth >= limit) {
                break;
            }
            match self.accepts(at) {
                Some(Outcome::Nothing) | None => {}
                Some(outcome) => return Ok(outcome),
            }
            for (required, unit) in self.moves(&self.states[at], budget)? {
                let loose = self.step(&self.states[at].loose, &unit);
                budget.spend(1 + size(&loose))?;
                if self.lost(&loose) {
                    continue;
                }
                let kept = seen.entry(required.clone()).or_default();
                budget.spend(kept.len())?;
                let swapped = made(Mistake::WorseIsKept);
                let does_all_of = |a: &Loose, b: &Loose| if swapped { b.does_all_of(a) } else { a.does_all_of(b) };
                if kept.iter().any(|better| does_all_of(better, &loose)) {
                    continue;
                }
                kept.retain(|worse| !does_all_of(&loose, worse));
                kept.push(loose.clone());
                let depth = self.states[at].depth + 1;
                self.states.push(State { required, loose, from: Some((at, unit)), depth });
                queue.push_back(self.states.len() - 1);
            }
        }
        Ok(Outcome::Nothing)
    }

    fn start(&self) -> Loose {
        let places = self.question.forests.iter().map(|forest| forest.trie.start()).collect();
        let mut loose = Loose { places, bad: Vec::new(), good: Vec::new() };
        for (index, (_, purpose)) in self.patterns.iter().enumerate() {
            let list = if matches!(purpose, Purpose::Any(..)) { &mut loose.good } else { &mut loose.bad };
            list.push((position(index), 0));
        }
        self.close(&mut loose.bad);
        self.close(&mut loose.good);
        loose
    }

    fn token(&self, (pattern, at): Position) -> Option<Token<'a>> {
        self.patterns[usize::from(pattern)].0.get(usize::from(at)).copied()
    }

    fn close(&self, positions: &mut Vec<Position>) {
        let mut index = 0;
        while let Some(&(pattern, at)) = positions.get(index) {
            if self.token((pattern, at)) == Some(Token::Many) && !made(Mistake::ManyIsNotEmpty) {
                positions.push((pattern, at + 1));
            }
            index += 1;
        }
        positions.sort_unstable();
        positions.dedup();
    }

    fn step(&self, loose: &Loose, unit: &Unit<'a>) -> Loose {
        let forests = self.question.forests.iter().zip(&loose.places);
        Loose {
            places: forests.map(|(forest, places)| forest.trie.step(places, unit)).collect(),
            bad: self.step_all(&loose.bad, unit),
            good: self.step_all(&loose.good, unit),
        }
    }

    fn step_all(&self, positions: &[Position], unit: &Unit<'a>) -> Vec<Position> {
        let mut next = Vec::with_capacity(positions.len());
        for &(pattern, at) in positions {
            if let Some(token) = self.token((pattern, at))
                && token.takes(unit)
            {
                let stays = token == Token::Many && !made(Mistake::ManyIsOneUnit);
                next.push((pattern, if stays { at } else { at + 1 }));
            }
        }
        self.close(&mut next);
        next
    }

    fn ended(&self, (pattern, at): Position) -> bool {
        self.patterns[usize::from(pattern)].0.len() == usize::from(at)
    }

    /// Whether a refusal that nothing can lift holds for this word and every longer one.
    fn lost(&self, loose: &Loose) -> bool {
        let lasts = |(pattern, at): Position| {
            let rest = &self.patterns[usize::from(pattern)].0[usize::from(at)..];
            !rest.is_empty() && rest.iter().all(|token| *token == Token::Many)
        };
        let refused = |&(pattern, at): &Position| {
            self.patterns[usize::from(pattern)].1 == Purpose::Refuses && lasts((pattern, at))
        };
        if loose.bad.iter().any(refused) {
            return true;
        }
        for (index, (forest, places)) in self.question.forests.iter().zip(&loose.places).enumerate() {
            for (set, _) in forest.trie.ends(places).filter(|(_, lasts)| *lasts) {
                let hopeless = match self.followed.get(&(index, set)) {
                    // Some pattern that could lift it is still on its way.
                    Some(number) => !loose.good.iter().any(|(pattern, _)| {
                        matches!(self.patterns[usize::from(*pattern)].1, Purpose::Any(own, _) if own == *number)
                    }),
                    None => matches!((forest.role)(set), Role::Refused(ways) if ways.is_empty()),
                };
                if hopeless {
                    return true;
                }
            }
        }
        false
    }

    /// What the word that led to a state is; nothing when it is no answer.
    fn accepts(&self, at: usize) -> Option<Outcome<'q, 'a>> {
        let state = &self.states[at];
        let all = state.required.iter().zip(&self.question.required).all(|(&at, shape)| ends(shape, at));
        let purpose = |pattern: &u16| self.patterns[usize::from(*pattern)].1;
        let bad: Vec<_> = state.loose.bad.iter().filter(|p| self.ended(**p)).map(|(p, _)| purpose(p)).collect();
        if !all || bad.contains(&Purpose::Refuses) {
            return None;
        }
        let good: Vec<_> = state.loose.good.iter().filter(|p| self.ended(**p)).map(|(p, _)| purpose(p)).collect();
        let lifted = |number: usize| {
            !made(Mistake::NeverLifted)
                && (0..self.exceptions[number])
                    .any(|way| good.contains(&Purpose::Any(number, way)) && !bad.contains(&Purpose::But(number, way)))
        };
        let mut met = Vec::new();
        let mut word = None;
        for (index, (forest, places)) in self.question.forests.iter().zip(&state.loose.places).enumerate() {
            for (set, _) in forest.trie.ends(places) {
                if let Some(number) = self.followed.get(&(index, set)) {
                    if lifted(*number) {
                        continue;
                    }
                    return None;
                }
                let Role::Refused(ways) = (forest.role)(set) else { continue };
                if made(Mistake::LiftedAnyhow) && !ways.is_empty() {
                    continue;
                }
                if ways.is_empty() {
                    return None;
                }
                let word = word.get_or_insert_with(|| self.word(at));
                if !ways.iter().any(|way| way.holds(word)) {
                    met.push(((index, set), ways));
                }
            }
        }
        Some(if met.is_empty() { Outcome::Found(self.word(at)) } else { Outcome::Met(met) })
    }

    /// Every way on from a state that could lead to a word, as positions and a unit that reaches them.
    fn moves(&self, state: &State<'a>, budget: &mut Budget) -> Result<Vec<(Vec<u16>, Unit<'a>)>, Exhausted> {
        let mut ways: Vec<(Vec<u16>, Vec<Token<'a>>)> = vec![(Vec::new(), Vec::new())];
        for (&at, shape) in state.required.iter().zip(&self.question.required) {
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
            for unit in self.units(state, &tokens, budget)? {
                moves.push((positions.clone(), unit));
            }
        }
        Ok(moves)
    }

    /// Units that all of `tokens` take, so that for any such unit there is one here that takes no more steps which refuse,
    /// and no fewer that lift.
    fn units(&self, state: &State<'a>, tokens: &[Token<'a>], budget: &mut Budget) -> Result<Vec<Unit<'a>>, Exhausted> {
        let takes_all = |unit: &Unit<'a>| tokens.iter().all(|token| token.takes(unit));
        let mut units = Vec::new();
        if state.depth == 0 {
            units.extend(self.origins.iter().map(|origin| Unit::Origin(*origin)).filter(takes_all));
        }
        let mut globs: Vec<&Glob> = Vec::new();
        for token in tokens {
            match token {
                Token::Origin(_) => return Ok(units),
                Token::Literal(literal) => {
                    units.extend(Some(Unit::Segment(literal.to_vec())).filter(takes_all));
                    return Ok(units);
                }
                Token::Glob(glob) if !globs.contains(glob) => globs.push(glob),
                _ => {}
            }
        }
        let mut lifting: Vec<&Glob> = Vec::new();
        for position in &state.loose.good {
            match self.token(*position) {
                Some(Token::Literal(literal)) => {
                    let unit = Unit::Segment(literal.to_vec());
                    if takes_all(&unit) && self.question.alphabet.has(literal) && !units.contains(&unit) {
                        units.push(unit);
                    }
                }
                Some(Token::Glob(glob)) if !lifting.contains(&glob) => lifting.push(glob),
                _ => {}
            }
        }
        // Each choice of globs that lift is one more demand; all of them are tried, the empty one first.
        let choices = 1_usize.checked_shl(u32::try_from(lifting.len()).unwrap_or(u32::MAX)).ok_or(Exhausted)?;
        budget.spend(choices)?;
        let literals = units.len();
        for choice in 0..choices {
            let mut all = globs.clone();
            all.extend(lifting.iter().enumerate().filter(|(bit, _)| choice >> bit & 1 == 1).map(|(_, glob)| *glob));
            for segment in self.segments(&state.loose, &all, budget)? {
                let unit = Unit::Segment(segment);
                if !units.contains(&unit) {
                    units.push(unit);
                }
            }
        }
        // What is not forced comes first: it reads better.
        units.rotate_left(literals);
        Ok(units)
    }

    /// Segments that all of the globs match, for each smallest set of steps that refuse.
    fn segments(&self, loose: &Loose, globs: &[&Glob], budget: &mut Budget) -> Result<Vec<Vec<u8>>, Exhausted> {
        let next = || loose.bad.iter().filter_map(|position| self.token(*position));
        let forests = || self.question.forests.iter().zip(&loose.places);
        // What each of them matches anyhow cannot be avoided.
        let free = |segment: &[u8]| {
            !forests().any(|(forest, places)| forest.trie.wants(places, segment, globs))
                && !next().any(|token| match token {
                    Token::Literal(literal) => literal == segment,
                    Token::Glob(glob) => !globs.contains(&glob) && glob.matches(segment),
                    _ => false,
                })
        };
        let avoided = || {
            let mut known: FxHashSet<Token<'a>> = FxHashSet::default();
            let tokens = forests().flat_map(|(forest, places)| forest.trie.tokens(places)).chain(next());
            let tokens = tokens.filter(|token| match token {
                Token::Literal(literal) => globs.iter().all(|glob| glob.matches(literal)),
                Token::Glob(glob) => !globs.contains(glob),
                _ => false,
            });
            tokens.filter(|token| known.insert(*token)).collect()
        };
        letters::segments(globs, free, avoided, self.question.alphabet, budget)
    }

    fn word(&self, mut at: usize) -> Vec<Unit<'a>> {
        let mut units = Vec::new();
        while let Some((before, unit)) = &self.states[at].from {
            units.push(unit.clone());
            at = *before;
        }
        units.reverse();
        units
    }
}

fn size(loose: &Loose) -> usize {
    loose.places.iter().map(Vec::len).sum::<usize>() + loose.bad.len() + loose.good.len()
}
