//! Many sets of paths matched at once, one segment at a time: for walks over a file system, and for thousands of decisions
//! on one policy.
//!
//! The states are sets of positions in the patterns, made when first reached and shared from then on, so that a step
//! between known states is a look-up of the segment and a try of the globs that matter there.

use super::{AbsPath, PathSet, Pattern, Segment, Start};
use crate::sets::glob::Glob;
use crate::vocabulary::Reach;
use std::collections::HashMap;

/// A matcher over a list of sets; a set is named by its index.
#[derive(Debug, Clone)]
pub struct Matcher {
    patterns: Vec<Compiled>,
    /// Which patterns belong to a set that takes something out.
    trimmed: Vec<bool>,
    literals: HashMap<Vec<u8>, u32>,
    globs: Vec<Glob>,
    states: Vec<Known>,
    ids: HashMap<Vec<Position>, State>,
    /// The state at `/`, once it was asked for: every absolute path begins there.
    root: Option<State>,
}

/// How far into the tree a [`Matcher`] is; means nothing to another matcher.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct State(u32);

#[derive(Debug, Clone)]
struct Compiled {
    set: u32,
    excludes: bool,
    start: Start,
    tokens: Vec<Token>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Token {
    Literal(u32),
    Glob(u32),
    One,
    Many,
}

/// Which pattern, and how many of its tokens are done.
type Position = (u32, u16);

/// The literal and the globs that a segment is, of those that matter in a state: what the next state depends on.
type Kind = (Option<u32>, u128);

#[derive(Debug, Clone)]
struct Known {
    positions: Vec<Position>,
    /// Sorted.
    literals: Vec<u32>,
    globs: Vec<u32>,
    steps: HashMap<Kind, State>,
    /// The step of a segment that is none of the literals and globs.
    other: Option<State>,
    accepting: Vec<u32>,
    live: Vec<u32>,
    settled: bool,
}

impl Matcher {
    /// Compiles sets; each is named by its place in the order.
    pub fn new<'s>(sets: impl IntoIterator<Item = &'s PathSet>) -> Self {
        let mut matcher = Self {
            patterns: Vec::new(),
            trimmed: Vec::new(),
            literals: HashMap::new(),
            globs: Vec::new(),
            states: Vec::new(),
            ids: HashMap::new(),
            root: None,
        };
        let mut globs = HashMap::new();
        for (set, index) in sets.into_iter().zip(0..) {
            matcher.trimmed.push(!set.exclude.is_empty());
            for (patterns, excludes) in [(&set.include, false), (&set.exclude, true)] {
                for pattern in patterns {
                    let tokens = matcher.tokens(pattern, &mut globs);
                    matcher.patterns.push(Compiled { set: index, excludes, start: pattern.start.clone(), tokens });
                }
            }
        }
        matcher
    }

    fn tokens<'s>(&mut self, pattern: &'s Pattern, globs: &mut HashMap<&'s Glob, u32>) -> Vec<Token> {
        let mut tokens = Vec::with_capacity(pattern.segments.len() + 2);
        for segment in &pattern.segments {
            tokens.push(match segment {
                Segment::AnyDepth => Token::Many,
                Segment::Literal(literal) => {
                    let next = count(self.literals.len());
                    Token::Literal(match self.literals.get(literal) {
                        Some(id) => *id,
                        None => *self.literals.entry(literal.clone()).or_insert(next),
                    })
                }
                Segment::Glob(glob) => Token::Glob(*globs.entry(glob).or_insert_with(|| {
                    self.globs.push(glob.clone());
                    count(self.globs.len() - 1)
                })),
            });
        }
        match pattern.reach {
            Reach::Tree => tokens.push(Token::Many),
            Reach::Exact => {}
            Reach::Below => tokens.extend([Token::One, Token::Many]),
        }
        tokens
    }

    /// The state at a start.
    pub fn start(&mut self, at: &Start) -> State {
        if let (Start::Root, Some(known)) = (at, self.root) {
            return known;
        }
        let mut positions = Vec::new();
        for (pattern, index) in self.patterns.iter().zip(0..) {
            if pattern.start == *at {
                positions.push((index, 0));
            } else if pattern.start == Start::Root {
                // A place that is not known lies inside what starts at any depth, see `Start`.
                for (token, at) in pattern.tokens.iter().zip(0..) {
                    match token {
                        Token::Many => positions.push((index, at)),
                        Token::One => positions.push((index, at + 1)),
                        Token::Literal(_) | Token::Glob(_) => {}
                    }
                    if *token != Token::Many {
                        break;
                    }
                }
            }
        }
        let state = self.state(positions);
        if *at == Start::Root {
            self.root = Some(state);
        }
        state
    }

    /// The state one segment below.
    pub fn step(&mut self, state: State, segment: &[u8]) -> State {
        let known = &self.states[state.0 as usize];
        let literal = if known.literals.is_empty() {
            None
        } else {
            self.literals.get(segment).copied().filter(|id| known.literals.binary_search(id).is_ok())
        };
        if known.globs.len() > 128 {
            return self.advance(state, literal, |globs, glob| globs[glob as usize].matches(segment));
        }
        let mut mask = 0_u128;
        for (bit, glob) in known.globs.iter().enumerate() {
            mask |= u128::from(self.globs[*glob as usize].matches(segment)) << bit;
        }
        let kind = (literal, mask);
        let memo = if kind == (None, 0) { known.other } else { known.steps.get(&kind).copied() };
        if let Some(next) = memo {
            return next;
        }
        let taken: Vec<u32> =
            known.globs.iter().enumerate().filter(|(bit, _)| mask >> bit & 1 == 1).map(|(_, glob)| *glob).collect();
        let next = self.advance(state, literal, |_, glob| taken.contains(&glob));
        let known = &mut self.states[state.0 as usize];
        if kind == (None, 0) {
            known.other = Some(next);
        } else {
            known.steps.insert(kind, next);
        }
        next
    }

    /// The state of a path.
    pub fn at(&mut self, path: &AbsPath) -> State {
        let mut state = self.start(&path.start);
        for segment in &path.segments {
            state = self.step(state, segment);
        }
        state
    }

    /// The sets that contain the path so far, in order.
    pub fn accepting(&self, state: State) -> &[u32] {
        &self.states[state.0 as usize].accepting
    }

    /// The sets that contain the path so far or may contain one below it, in order.
    pub fn live(&self, state: State) -> &[u32] {
        &self.states[state.0 as usize].live
    }

    /// Whether no set contains the path or anything below it.
    pub fn is_dead(&self, state: State) -> bool {
        self.live(state).is_empty()
    }

    /// Whether the sets that contain the path are those that contain each path below it.
    pub fn is_settled(&self, state: State) -> bool {
        self.states[state.0 as usize].settled
    }

    fn advance(&mut self, state: State, literal: Option<u32>, takes: impl Fn(&[Glob], u32) -> bool) -> State {
        let mut next = Vec::new();
        for &(pattern, at) in &self.states[state.0 as usize].positions {
            match self.patterns[pattern as usize].tokens.get(usize::from(at)) {
                Some(Token::Many) => next.push((pattern, at)),
                Some(Token::One) => next.push((pattern, at + 1)),
                Some(Token::Literal(own)) if Some(*own) == literal => next.push((pattern, at + 1)),
                Some(Token::Glob(glob)) if takes(&self.globs, *glob) => next.push((pattern, at + 1)),
                _ => {}
            }
        }
        self.state(next)
    }

    /// Interns a set of positions.
    fn state(&mut self, mut positions: Vec<Position>) -> State {
        let mut index = 0;
        while let Some(&(pattern, at)) = positions.get(index) {
            if self.patterns[pattern as usize].tokens.get(usize::from(at)) == Some(&Token::Many) {
                positions.push((pattern, at + 1));
            }
            index += 1;
        }
        positions.sort_unstable();
        positions.dedup();
        self.forget_decided(&mut positions);
        if let Some(known) = self.ids.get(&positions) {
            return *known;
        }
        let id = State(count(self.states.len()));
        self.ids.insert(positions.clone(), id);
        let known = self.known(positions);
        self.states.push(known);
        id
    }

    /// Drops positions that can change nothing: of a set that is all taken out from here down, or all taken in with nothing
    /// to take out. So more paths share a state.
    fn forget_decided(&self, positions: &mut Vec<Position>) {
        let lasting = |&(pattern, at): &Position| {
            let rest = &self.patterns[pattern as usize].tokens[usize::from(at)..];
            !rest.is_empty() && rest.iter().all(|token| *token == Token::Many)
        };
        let mut gone = Vec::new();
        let mut whole: Vec<(u32, u32)> = Vec::new();
        for position in positions.iter().filter(|position| lasting(position)) {
            let pattern = &self.patterns[position.0 as usize];
            if pattern.excludes {
                gone.push(pattern.set);
            } else if !self.trimmed[pattern.set as usize] && !whole.iter().any(|(set, _)| *set == pattern.set) {
                whole.push((pattern.set, position.0));
            }
        }
        if gone.is_empty() && whole.is_empty() {
            return;
        }
        positions.retain(|(pattern, _)| {
            let set = self.patterns[*pattern as usize].set;
            !gone.contains(&set) && whole.iter().all(|(full, by)| *full != set || by == pattern)
        });
    }

    fn known(&self, positions: Vec<Position>) -> Known {
        let (mut literals, mut globs) = (Vec::new(), Vec::new());
        let (mut taken, mut removed, mut live) = (Vec::new(), Vec::new(), Vec::new());
        let mut settled = true;
        for &(index, at) in &positions {
            let pattern = &self.patterns[index as usize];
            let rest = &pattern.tokens[usize::from(at)..];
            match rest.first() {
                Some(Token::Literal(literal)) => literals.push(*literal),
                Some(Token::Glob(glob)) => globs.push(*glob),
                _ => {}
            }
            if rest.is_empty() {
                if pattern.excludes { removed.push(pattern.set) } else { taken.push(pattern.set) }
            }
            if !pattern.excludes {
                live.push(pattern.set);
            }
            settled &= rest.iter().all(|token| *token == Token::Many) && pattern.tokens.last() == Some(&Token::Many);
        }
        for list in [&mut literals, &mut globs, &mut taken, &mut live] {
            list.sort_unstable();
            list.dedup();
        }
        taken.retain(|set| !removed.contains(set));
        let steps = HashMap::new();
        Known { positions, literals, globs, steps, other: None, accepting: taken, live, settled }
    }
}

/// Sets, patterns and states are far fewer than 2^32: each takes memory.
fn count(length: usize) -> u32 {
    u32::try_from(length).expect("fewer than 2^32 of them fit into memory")
}
