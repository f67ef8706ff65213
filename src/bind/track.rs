//! Patterns followed down a tree, one segment at a time: for each place of the walk, how far each pattern has got.

use crate::sets::path::{Pattern, Segment};
use crate::vocabulary::Reach;

/// How far the patterns that still can match have got; empty when none can.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct State(Vec<(u32, u16)>);

/// The patterns of one walk, by number.
pub(super) struct Patterns<'a>(pub Vec<&'a Pattern>);

impl State {
    /// Nothing at or below this place can match.
    pub fn is_dead(&self) -> bool {
        self.0.is_empty()
    }

    /// One of the patterns that a state follows.
    pub fn first(&self) -> u32 {
        self.0.first().map_or(0, |(number, _)| *number)
    }

    /// Both together.
    pub fn merge(&mut self, other: &State) {
        self.0.extend_from_slice(&other.0);
        self.0.sort_unstable();
        self.0.dedup();
    }
}

impl Patterns<'_> {
    /// Pattern `number` after its first `segments`, which are literal.
    pub fn start(&self, number: u32, segments: usize) -> State {
        let mut state = State::default();
        self.reach(&mut state, number, segments);
        state
    }

    fn segments(&self, number: u32) -> &[Segment] {
        &self.0[number as usize].segments
    }

    /// Adds a position, and those that a `**`, which may be nothing, makes equal to it.
    fn reach(&self, state: &mut State, number: u32, mut at: usize) {
        let segments = self.segments(number);
        loop {
            // A path has fewer segments than this (PATH_MAX); a longer pattern matches nothing past there.
            let Ok(position) = u16::try_from(at) else { return };
            if !state.0.contains(&(number, position)) {
                state.0.push((number, position));
            }
            if segments.get(at) != Some(&Segment::AnyDepth) {
                return;
            }
            at += 1;
        }
    }

    /// One segment further down. The numbers of the patterns whose segments all are matched there go to `matched`; of
    /// those, one that takes the whole tree is followed no further.
    pub fn step(&self, state: &State, name: &[u8], matched: &mut Vec<u32>) -> State {
        let mut next = State::default();
        for &(number, position) in &state.0 {
            let at = usize::from(position);
            match self.segments(number).get(at) {
                Some(Segment::AnyDepth) => self.reach(&mut next, number, at),
                Some(Segment::Literal(literal)) if literal == name => self.reach(&mut next, number, at + 1),
                Some(Segment::Glob(glob)) if glob.matches(name) => self.reach(&mut next, number, at + 1),
                Some(_) | None => {}
            }
        }
        let before = matched.len();
        for &(number, position) in &next.0 {
            if usize::from(position) == self.segments(number).len() {
                matched.push(number);
            }
        }
        if matched.len() > before {
            let whole = |number: &u32| self.0[*number as usize].reach == Reach::Tree;
            let whole: Vec<u32> = matched[before..].iter().copied().filter(whole).collect();
            next.0.retain(|(number, position)| {
                !whole.contains(number) && usize::from(*position) < self.segments(*number).len()
            });
        }
        next
    }
}
