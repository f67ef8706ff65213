//! Many sets of paths matched at once, one segment at a time: for walks over a file system, and for thousands of decisions
//! on one policy.
//!
//! The patterns are one trie, so that what hundreds of them share (`$WORKSPACE/**`) is one place in it. The states are sets
//! of its places, made when first reached and shared from then on, so that a step between known states is a look-up of the
//! segment and a try of the globs that matter there.

use super::{AbsPath, FileName, PathSet, Pattern, Segment, Start};
use crate::sets::glob::Glob;
use crate::vocabulary::Reach;
use rustc_hash::FxHashMap;
use smallvec::SmallVec;
use std::cell::OnceCell;

/// A matcher over a list of sets; a set is named by its index.
///
/// What its tables are keyed by comes from the policy alone, so that their hash need not withstand chosen keys: the names
/// that are asked for are only looked up.
#[derive(Debug, Clone)]
pub struct Matcher {
    places: Vec<Place>,
    /// Where the patterns of a start begin.
    starts: Vec<(Start, u32)>,
    literals: FxHashMap<FileName, u32>,
    /// The places below a place by the literal that leads there.
    named: FxHashMap<(u32, u32), u32>,
    globs: Vec<Glob>,
    states: Vec<Known>,
    ids: FxHashMap<Vec<u32>, State>,
    /// The state at `/`, once it was asked for: every absolute path begins there.
    root: Option<State>,
}

/// How far into the tree a [`Matcher`] is; means nothing to another matcher.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct State(u32);

/// What patterns that begin alike have in common, up to here.
#[derive(Debug, Clone, Default)]
struct Place {
    /// It was reached by `**`: any segment leads back to it.
    stays: bool,
    /// The place behind a `**`, which takes no segment to get to.
    many: Option<u32>,
    /// The place that any segment leads to.
    one: Option<u32>,
    globs: Vec<(u32, u32)>,
    /// The sets that have a pattern which ends here, and whether it takes out.
    ends: SmallVec<[(u32, bool); 2]>,
    /// The sets that have a pattern which comes through here and takes nothing out, in order.
    sets: SmallVec<[u32; 4]>,
}

/// The literal and the globs that a segment is, of those that matter in a state: what the next state depends on.
type Kind = (Option<u32>, u128);

/// What is known of the patterns that are in a matcher already, while others are put into it.
#[derive(Default)]
struct Inserted<'s> {
    globs: FxHashMap<&'s Glob, u32>,
    /// The way of the last one, from this place on: most come in long rows that begin alike.
    start: Option<u32>,
    last: Vec<(&'s Segment, u32)>,
}

#[derive(Debug, Clone)]
struct Known {
    /// Sorted.
    places: Vec<u32>,
    globs: Vec<u32>,
    steps: FxHashMap<Kind, State>,
    /// The step of a segment that is none of the literals and globs.
    other: Option<State>,
    accepting: Vec<u32>,
    live: OnceCell<Vec<u32>>,
}

impl Matcher {
    /// Compiles sets; each is named by its place in the order.
    pub fn new<'s>(sets: impl IntoIterator<Item = &'s PathSet>) -> Self {
        let mut matcher = Self::empty();
        let mut known = Inserted::default();
        for (set, index) in sets.into_iter().zip(0..) {
            for pattern in &set.include {
                matcher.insert(pattern, pattern.reach, (index, false), &mut known);
            }
            for pattern in &set.exclude {
                matcher.insert(pattern, pattern.reach, (index, true), &mut known);
            }
        }
        matcher
    }

    /// Compiles what the segments of patterns match, whatever their reach; each pattern is a set.
    pub fn of_nodes<'s>(patterns: impl IntoIterator<Item = &'s Pattern>) -> Self {
        let mut matcher = Self::empty();
        let mut known = Inserted::default();
        for (pattern, index) in patterns.into_iter().zip(0..) {
            matcher.insert(pattern, Reach::Exact, (index, false), &mut known);
        }
        matcher
    }

    fn empty() -> Self {
        Self {
            places: Vec::new(),
            starts: Vec::new(),
            literals: FxHashMap::default(),
            named: FxHashMap::default(),
            globs: Vec::new(),
            states: Vec::new(),
            ids: FxHashMap::default(),
            root: None,
        }
    }

    fn insert<'s>(&mut self, pattern: &'s Pattern, reach: Reach, end: (u32, bool), known: &mut Inserted<'s>) {
        let mut at = self.beginning(&pattern.start).unwrap_or_else(|| {
            let fresh = self.place();
            self.starts.push((pattern.start.clone(), fresh));
            fresh
        });
        self.pass(at, end);
        if known.start != Some(at) {
            known.start = Some(at);
            known.last.clear();
        }
        let alike = known.last.iter().zip(&pattern.segments).take_while(|((last, _), own)| *last == *own).count();
        known.last.truncate(alike);
        for (_, place) in &known.last {
            at = *place;
            self.pass(at, end);
        }
        for segment in &pattern.segments[alike..] {
            at = match segment {
                Segment::AnyDepth => self.many(at),
                Segment::Literal(literal) => {
                    let next = count(self.literals.len());
                    let literal = match self.literals.get(literal) {
                        Some(known) => *known,
                        None => *self.literals.entry(literal.clone()).or_insert(next),
                    };
                    let fresh = count(self.places.len());
                    let next = *self.named.entry((at, literal)).or_insert(fresh);
                    if next == fresh { self.place() } else { next }
                }
                Segment::Glob(glob) => {
                    let glob = *known.globs.entry(glob).or_insert_with(|| {
                        self.globs.push(glob.clone());
                        count(self.globs.len() - 1)
                    });
                    let known = self.places[at as usize].globs.iter().find(|(own, _)| *own == glob);
                    if let Some((_, next)) = known {
                        *next
                    } else {
                        let fresh = self.place();
                        self.places[at as usize].globs.push((glob, fresh));
                        fresh
                    }
                }
            };
            self.pass(at, end);
            known.last.push((segment, at));
        }
        if reach == Reach::Below {
            at = if let Some(one) = self.places[at as usize].one {
                one
            } else {
                let fresh = self.place();
                *self.places[at as usize].one.insert(fresh)
            };
            self.pass(at, end);
        }
        if reach != Reach::Exact {
            at = self.many(at);
            self.pass(at, end);
        }
        self.places[at as usize].ends.push(end);
    }

    fn beginning(&self, start: &Start) -> Option<u32> {
        self.starts.iter().find(|(own, _)| own == start).map(|(_, place)| *place)
    }

    fn place(&mut self) -> u32 {
        self.places.push(Place::default());
        count(self.places.len() - 1)
    }

    /// The place behind a `**`; another one leads no further.
    fn many(&mut self, at: u32) -> u32 {
        let here = &self.places[at as usize];
        if here.stays {
            return at;
        }
        here.many.unwrap_or_else(|| {
            let fresh = self.place();
            self.places[fresh as usize].stays = true;
            *self.places[at as usize].many.insert(fresh)
        })
    }

    /// Notes a pattern that comes through a place.
    fn pass(&mut self, at: u32, (set, excludes): (u32, bool)) {
        let sets = &mut self.places[at as usize].sets;
        if !excludes && sets.last() != Some(&set) {
            sets.push(set);
        }
    }

    /// The state at a start.
    pub fn start(&mut self, at: &Start) -> State {
        if let (Start::Root, Some(known)) = (at, self.root) {
            return known;
        }
        let mut places: Vec<u32> = self.beginning(at).into_iter().collect();
        if *at != Start::Root
            && let Some(root) = self.beginning(&Start::Root)
        {
            // A place that is not known lies inside what starts at any depth, see `Start`.
            let mut above = Some(root);
            while let Some(place) = above {
                let here = &self.places[place as usize];
                places.extend(here.one);
                places.extend(here.many);
                above = here.many;
            }
        }
        let state = self.state(places);
        if *at == Start::Root {
            self.root = Some(state);
        }
        state
    }

    /// The state one segment below.
    pub fn step(&mut self, state: State, segment: &[u8]) -> State {
        let known = &self.states[state.0 as usize];
        let literal = self.literals.get(segment).copied();
        if known.globs.len() > 128 {
            return self.advance(state, literal, |matcher, glob| matcher.globs[glob as usize].matches(segment));
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

    /// Whether the literal segments of a pattern may end at a path: never `false` where they do.
    pub fn may_be_named(&self, path: &AbsPath) -> bool {
        let Some(start) = self.beginning(&path.start) else { return false };
        let place = path.segments.iter().try_fold(start, |at, name| {
            let literal = self.literals.get(name)?;
            self.named.get(&(at, *literal)).copied()
        });
        let ends = |place: u32| !self.places[place as usize].ends.is_empty();
        let ends_behind = |place: u32| self.places[place as usize].many.is_some_and(ends);
        place.is_some_and(|place| {
            ends(place) || ends_behind(place) || self.places[place as usize].one.is_some_and(ends_behind)
        })
    }

    /// The sets that contain the path so far, in order.
    pub fn accepting(&self, state: State) -> &[u32] {
        &self.states[state.0 as usize].accepting
    }

    /// The sets that contain the path so far or may contain one below it, in order.
    pub fn live(&self, state: State) -> &[u32] {
        let known = &self.states[state.0 as usize];
        known.live.get_or_init(|| {
            let places = || known.places.iter().map(|place| &self.places[*place as usize]);
            let mut live: Vec<u32> = places().flat_map(|place| place.sets.iter().copied()).collect();
            live.sort_unstable();
            live.dedup();
            // Where a whole tree is taken out of a set, nothing of it is left below.
            let whole = places().filter(|place| place.stays).flat_map(|place| &place.ends);
            let gone: Vec<u32> = whole.filter(|(_, excludes)| *excludes).map(|(set, _)| *set).collect();
            live.retain(|set| !gone.contains(set));
            live
        })
    }

    /// Whether no set contains the path or anything below it.
    pub fn is_dead(&self, state: State) -> bool {
        self.live(state).is_empty()
    }

    fn advance(&mut self, state: State, literal: Option<u32>, takes: impl Fn(&Self, u32) -> bool) -> State {
        let mut next = Vec::new();
        for &at in &self.states[state.0 as usize].places {
            let place = &self.places[at as usize];
            if place.stays {
                next.push(at);
            }
            next.extend(place.one);
            next.extend(literal.and_then(|literal| self.named.get(&(at, literal))));
            next.extend(place.globs.iter().filter(|(glob, _)| takes(self, *glob)).map(|(_, next)| *next));
        }
        self.state(next)
    }

    /// Interns a set of places.
    fn state(&mut self, mut places: Vec<u32>) -> State {
        let mut index = 0;
        while let Some(&place) = places.get(index) {
            places.extend(self.places[place as usize].many);
            index += 1;
        }
        places.sort_unstable();
        places.dedup();
        if let Some(known) = self.ids.get(&places) {
            return *known;
        }
        let id = State(count(self.states.len()));
        self.ids.insert(places.clone(), id);
        let known = self.known(places);
        self.states.push(known);
        id
    }

    fn known(&self, places: Vec<u32>) -> Known {
        let (mut globs, mut taken, mut removed) = (Vec::new(), Vec::new(), Vec::new());
        for place in places.iter().map(|place| &self.places[*place as usize]) {
            globs.extend(place.globs.iter().map(|(glob, _)| *glob));
            for &(set, excludes) in &place.ends {
                if excludes { removed.push(set) } else { taken.push(set) }
            }
        }
        for list in [&mut globs, &mut taken] {
            list.sort_unstable();
            list.dedup();
        }
        if !removed.is_empty() {
            taken.retain(|set| !removed.contains(set));
        }
        Known { places, globs, steps: FxHashMap::default(), other: None, accepting: taken, live: OnceCell::new() }
    }
}

/// Sets, places and states are far fewer than 2^32: each takes memory.
fn count(length: usize) -> u32 {
    u32::try_from(length).expect("fewer than 2^32 of them fit into memory")
}
