//! What a rename could do to names that are denied, and what is withheld so that it cannot.
//!
//! The system asks about the two names of a rename, not about what lies below them. So (1) each directory that leads to
//! something denied is pinned: it is neither made nor renamed nor removed; and (2) names that are denied at any depth of a
//! writable place are denied in every other writable place. What neither holds is a looser gap.

use super::spelling::folded;
use crate::ir::{Policy, Rule, Subject};
use crate::sets::glob::Piece;
use crate::sets::many::{Compiled, Index};
use crate::sets::path::{PathSet, Pattern, Segment, Start};
use crate::source::Span;
use crate::vocabulary::{Effect, Reach, Verb};
use std::collections::BTreeSet;

/// What renames make needed.
#[derive(Debug, Default)]
pub struct Moves {
    /// Nodes to pin, each with the rule that needs it.
    pub pins: Vec<(Pattern, Span)>,
    /// Variables of which each directory above their place is pinned.
    pub above: BTreeSet<std::sync::Arc<str>>,
    /// What is denied elsewhere too: to which verb, and by which rule.
    pub elsewhere: Vec<(Verb, Pattern, Span)>,
    /// Rules that a rename can go round, with a path that shows it.
    pub open: Vec<(Span, String)>,
    /// The pins, as they are spelled.
    pinned: BTreeSet<Pattern>,
}

impl Moves {
    pub fn of(policy: &Policy) -> Self {
        Self::found(policy, true)
    }

    /// What a rename can go round, alone: how many pins and denials the rest would take grows with the square of the rules.
    pub fn open(policy: &Policy) -> Self {
        Self::found(policy, false)
    }

    fn found(policy: &Policy, all: bool) -> Self {
        let mut moves = Self::default();
        let writable = rules(policy, &[Verb::Write]).filter(|(rule, _)| rule.effect == Effect::Allow);
        let writable: Vec<PathSet> = writable.flat_map(|(_, set)| &set.include).cloned().map(PathSet::from).collect();
        let mut known = BTreeSet::new();
        let mut places: Vec<PathSet> = Vec::new();
        for place in writable.iter().flat_map(|set| &set.include) {
            let place = Pattern::literal(&place.literal_prefix(), Reach::Tree);
            // Device nodes hold nothing.
            let device = place.literal_at(0) == Some(b"dev") && place.start == Start::Root;
            if !device && known.insert(place.clone()) {
                places.push(place.into());
            }
        }
        let (writable, places) = (Many::new(&writable), Many::new(&places));
        for (rule, set) in rules(policy, &[Verb::Read, Verb::Write]).filter(|(rule, _)| rule.effect != Effect::Allow) {
            for pattern in &set.include {
                let base = PathSet::from(base(pattern));
                if writable.meet(&base) {
                    if all {
                        moves.pin(pattern, &writable, rule.span);
                    }
                    moves.spread(pattern, rule, all.then_some(&writable), &places, &base);
                }
            }
        }
        moves
    }

    fn pin(&mut self, pattern: &Pattern, writable: &Many<'_>, span: Span) {
        let last = pattern.segments.len() + usize::from(pattern.reach == Reach::Below);
        for length in 0..last {
            let segments = &pattern.segments[..length];
            match (segments.last(), &pattern.start) {
                (None, Start::Variable(name)) => {
                    self.above.insert(name.clone());
                }
                (None, _) => continue,
                (Some(Segment::AnyDepth), _) => continue,
                (Some(segment), _) if is_any(segment) && length < 2 => continue,
                _ => {}
            }
            let pin = Pattern { start: pattern.start.clone(), segments: segments.to_vec(), reach: Reach::Exact };
            if self.pinned.contains(&pin) {
                continue;
            }
            let set = PathSet::from(pin.clone());
            if writable.meet(&set) && self.pinned.insert(pin.clone()) {
                self.pins.push((folded(&pin), span));
            }
        }
    }

    /// Denies what a pattern denies at any depth in the other writable places, or notes that this cannot be done; that alone,
    /// where it is not said which places are writable.
    fn spread(
        &mut self,
        pattern: &Pattern,
        rule: &Rule,
        writable: Option<&Many<'_>>,
        places: &Many<'_>,
        base: &PathSet,
    ) {
        let depth = |segment: &Segment| *segment == Segment::AnyDepth;
        let first_any = pattern.segments.first().filter(|segment| is_any(segment)).map(|_| 0);
        let Some(last) = pattern.segments.iter().rposition(depth).or(first_any) else { return };
        let tail = &pattern.segments[last + 1..];
        if tail.is_empty() {
            return;
        }
        let own = PathSet::from(pattern.clone());
        let several = pattern.segments.iter().filter(|segment| depth(segment)).count() > 1;
        let mut open = false;
        let near = places.near(base);
        // Where it is not said what else to deny, what lies apart is no matter.
        let looked_at = if writable.is_some() { (0..places.sets.len()).collect() } else { near.clone() };
        for number in looked_at {
            let place = &places.sets[number];
            let apart = near.binary_search(&number).is_err();
            let inside = !apart && place.is_inside(base);
            if inside && !several {
                continue;
            }
            if !apart && (inside || base.overlap(place).is_some()) {
                // Denying it in the whole of this place would take away what the policy allows there.
                open = true;
                continue;
            }
            let Some(writable) = writable else { continue };
            for place in &place.include {
                let mut segments = place.segments.clone();
                segments.push(Segment::AnyDepth);
                segments.extend(tail.iter().cloned());
                let spread = Pattern { start: place.start.clone(), segments, reach: pattern.reach };
                if !PathSet::from(spread.clone()).is_inside(&own) {
                    self.pin(&spread, writable, rule.span);
                    self.elsewhere.push((rule.verb, folded(&spread), rule.span));
                }
            }
        }
        if open {
            let witness = own.shortest().map(|path| path.to_string()).unwrap_or_default();
            self.open.push((rule.span, witness));
        }
    }
}

/// Many sets, of which few are near another one.
struct Many<'a> {
    sets: &'a [PathSet],
    index: Index<'a>,
}

impl<'a> Many<'a> {
    fn new(sets: &'a [PathSet]) -> Self {
        Self { sets, index: Index::new(sets.iter().map(Compiled::paths)) }
    }

    /// Those that may have a path in common with a set, in order.
    fn near(&self, set: &PathSet) -> Vec<usize> {
        self.index.meeting(&Compiled::paths(set))
    }

    /// Whether one has a path in common with a set.
    fn meet(&self, set: &PathSet) -> bool {
        self.index.find_meeting(&Compiled::paths(set)).any(|number| set.overlap(&self.sets[number]).is_some())
    }
}

/// The tree that all of a pattern lies in, up to where it may branch.
fn base(pattern: &Pattern) -> Pattern {
    let segments = pattern.segments.iter().take_while(|segment| **segment != Segment::AnyDepth && !is_any(segment));
    Pattern { start: pattern.start.clone(), segments: segments.cloned().collect(), reach: Reach::Tree }
}

/// `*`
fn is_any(segment: &Segment) -> bool {
    matches!(segment, Segment::Glob(glob) if matches!(glob.0[..], [Piece::AnyRun]))
}

fn rules<'p>(policy: &'p Policy, verbs: &'p [Verb]) -> impl Iterator<Item = (&'p Rule, &'p PathSet)> {
    policy.rules.iter().filter(|rule| verbs.contains(&rule.verb)).filter_map(|rule| match &rule.subject {
        Subject::Paths(set) => Some((rule, set)),
        _ => None,
    })
}
