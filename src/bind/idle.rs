//! Rules that deny nothing in this run, left out before they cost anything.
//!
//! A module that denies the writing of hundreds of start-up files is used by many who grant one directory. What such rules
//! say of a place that no allow comes near is what no rule at all would say of it. A module that denies the reading of every
//! known secret names hundreds of files that are not there: where the policy accepts that what its owner puts there during
//! a run is not denied, and the command cannot put anything there, they deny nothing. Not left out: what may be something
//! else than it is called, since a link is on the way to it, or a file system is mounted twice.

use super::link::{Links, Place};
use super::variable::Places;
use crate::ir::{Policy, Rule, Subject};
use crate::sets::path::{AbsPath, FileName, Pattern, Start};
use crate::vocabulary::{Effect, Verb};

/// The code of the gap by which a policy accepts that a name is not denied which appears from outside during the run: of a
/// room that comes later, and so by its name.
const LATER: &str = "later-from-outside";

/// Takes these rules out of a policy for Linux whose variables are settled, and gives them back as they are. What is permitted
/// of what is there or may be made stays what it was, as does every finding that is an error.
pub(super) fn leave_out(policy: &mut Policy, places: &Places, links: &mut Links<'_>) -> Vec<Rule> {
    // The run's own `$TMP` is one of these.
    let mut granted = vec![AbsPath::root().join("tmp"), AbsPath::root().join("dev").join("shm")];
    for rule in policy.rules.iter().filter(|rule| rule.effect == Effect::Allow && rule.verb == Verb::Write) {
        let Subject::Paths(set) = &rule.subject else { continue };
        for pattern in &set.include {
            let start = match &pattern.start {
                Start::Variable(name) if **name == *"TMP" => continue,
                start => start,
            };
            let Some(start) = place(start, places) else { return Vec::new() };
            let literal = (0..).map_while(|depth| pattern.literal_at(depth)).map(FileName::from);
            let prefix = AbsPath { start: Start::Root, segments: start.iter().cloned().chain(literal).collect() };
            let followed = links.follow(&prefix);
            granted.extend([prefix, followed.place]);
        }
    }
    // Most lead to themselves, and some are granted twice.
    granted.sort_unstable();
    granted.dedup();
    // Proofs are about names that are not there, too.
    let proves = !policy.expects.is_empty() || !policy.withins.is_empty();
    let accepts: Vec<_> =
        policy.suppressions.iter().filter(|comment| !proves && comment.code == LATER).cloned().collect();
    // Most start where the one before did.
    let mut last: Option<(Start, Option<Around<'_>>)> = None;
    let mut is_needed = |rule: &Rule| {
        let Subject::Paths(set) = &rule.subject else { return true };
        let reads = rule.verb == Verb::Read && accepts.iter().any(|comment| comment.covers(rule.span));
        if rule.effect == Effect::Allow || !(reads || rule.verb == Verb::Write) {
            return true;
        }
        let mut is_idle = |pattern: &Pattern, missing: bool| {
            let known = last.take().filter(|(start, _)| *start == pattern.start);
            let (_, around) = last.insert(known.unwrap_or_else(|| {
                let around = place(&pattern.start, places).and_then(|place| Around::new(place, &granted, links));
                (pattern.start.clone(), around)
            }));
            around.as_ref().is_some_and(|around| {
                around.is_apart(pattern)
                    && if missing {
                        links.is_missing(&around.at, pattern)
                    } else {
                        links.is_straight(&around.at, pattern)
                    }
            })
        };
        !(set.include.iter().all(|pattern| is_idle(pattern, reads))
            && set.exclude.iter().all(|pattern| is_idle(pattern, false)))
    };
    let (needed, idle) = std::mem::take(&mut policy.rules).into_iter().partition(|rule| is_needed(rule));
    policy.rules = needed;
    idle
}

/// Where a pattern starts; `None` where that is not known yet.
fn place<'p>(start: &Start, places: &'p Places) -> Option<&'p [FileName]> {
    match start {
        Start::Root => Some(&[]),
        Start::Drive(_) => None,
        Start::Variable(name) if **name == *"TMP" => None,
        Start::Variable(name) => places.get(&**name).map(|place| &*place.segments),
    }
}

/// A place, and the ways from it to what is granted below.
struct Around<'g> {
    at: Place,
    below: Vec<&'g [FileName]>,
}

impl<'g> Around<'g> {
    /// `None` where the place itself is granted, or is not where its name says.
    fn new(place: &[FileName], granted: &'g [AbsPath], links: &mut Links<'_>) -> Option<Self> {
        let mut below = Vec::new();
        for grant in granted {
            if place.starts_with(&grant.segments) {
                return None;
            }
            if let Some(rest) = grant.segments.strip_prefix(place) {
                below.push(rest);
            }
        }
        Some(Self { at: links.straight(place)?, below })
    }

    /// Whether the literal prefix of a pattern that starts here neither holds nor lies in anything that is granted.
    fn is_apart(&self, pattern: &Pattern) -> bool {
        let differ = |way: &&[FileName]| {
            way.iter()
                .zip(0..)
                .map_while(|(name, depth)| Some((name, pattern.literal_at(depth)?)))
                .any(|(name, own)| own != &**name)
        };
        self.below.iter().all(differ)
    }
}
