//! `$TMP`: where the run's own temporary directory is, and which of the host's places show through it.
//!
//! On Linux it is a tmpfs over `/tmp`. Places below `/tmp` that the policy names (a workspace, a socket) are bound into
//! it and are no part of `$TMP`. Where a rule allows writing to the host's `/tmp` as a whole, `$TMP` is `/dev/shm`, which
//! is the sandbox's own as well.

use super::link::Links;
use super::variable::Places;
use crate::ir::{Policy, Subject};
use crate::sets::path::{AbsPath, Pattern, Start};
use crate::vocabulary::{Effect, System, Verb};
use std::borrow::Cow;
use std::collections::BTreeSet;

/// Where `$TMP` is.
#[derive(Debug, Clone)]
pub(super) struct Private {
    pub place: AbsPath,
    /// The host's places strictly below it that exist and that the policy names, none inside another.
    pub within: Vec<AbsPath>,
}

impl Private {
    /// Whether the host's node at a path can't be seen in the sandbox, since its own directory is there.
    pub fn hides(&self, path: &AbsPath) -> bool {
        path.is_inside(&self.place) && !self.within.iter().any(|place| path.is_inside(place))
    }
}

/// Decides it for a policy whose variables have values.
pub(super) fn place(policy: &Policy, places: &Places, links: &mut Links<'_>) -> Private {
    let tmp = at(&["tmp"]);
    if policy.system != System::Linux {
        let place = places.get("TMP").cloned().unwrap_or(tmp);
        return Private { place, within: Vec::new() };
    }
    let mut named = BTreeSet::new();
    let mut whole = false;
    for name in ["HOME", "WORKSPACE"] {
        if let Some(value) = places.get(name) {
            let place = links.follow(value).place;
            if place != tmp && place.is_inside(&tmp) {
                named.insert(place);
            }
        }
    }
    // Where one of these is, it is bound in, and with it all that lies below.
    let mut covered = Vec::new();
    for place in &named {
        if matches!(links.node(place), Ok(Some(_))) {
            covered.push(place.clone());
        }
    }
    let rules =
        policy.rules.iter().map(|rule| (&rule.subject, rule.effect == Effect::Allow && rule.verb == Verb::Write));
    let expects = policy.expects.iter().map(|expect| (&expect.subject, false));
    for (subject, writes) in rules.chain(expects) {
        let Subject::Paths(set) = subject else { continue };
        for (pattern, included) in
            set.include.iter().map(|pattern| (pattern, true)).chain(set.exclude.iter().map(|pattern| (pattern, false)))
        {
            let writes = writes && included;
            let apart = match &pattern.start {
                Start::Variable(name) => match places.get(name) {
                    Some(place) => {
                        let outside = !tmp.is_inside(place) && !place.is_inside(&tmp);
                        (outside || covered.iter().any(|cover| place.is_inside(cover)))
                            && links.is_straight_from(place, pattern)
                    }
                    None => continue,
                },
                _ => links.is_straight(pattern) && !pattern.begins_inside(&tmp),
            };
            if apart && !writes {
                continue;
            }
            let Some(bound) = bound(pattern, places) else { continue };
            let place = links.follow(&bound.literal_prefix()).place;
            if place != tmp && place.is_inside(&tmp) {
                named.insert(place);
            } else if writes && bound.is_literal() && tmp.is_inside(&place) {
                whole = true;
            }
        }
    }
    if whole {
        return Private { place: at(&["dev", "shm"]), within: Vec::new() };
    }
    // In order, whatever lies inside a place comes after it.
    let mut within: Vec<AbsPath> = Vec::new();
    for place in named {
        // Where there is nothing, nothing is bound in, and the name is free for the run's own use.
        let exists = matches!(links.node(&place), Ok(Some(_)));
        if exists && !within.iter().any(|outer| place.is_inside(outer)) {
            within.push(place);
        }
    }
    Private { place: tmp, within }
}

/// The pattern with its variable's value; `None` for one that starts at `$TMP` itself.
fn bound<'p>(pattern: &'p Pattern, places: &Places) -> Option<Cow<'p, Pattern>> {
    match &pattern.start {
        Start::Variable(name) if name == "TMP" => None,
        Start::Variable(name) => Some(Cow::Owned(pattern.bound(name, places.get(name)?))),
        _ => Some(Cow::Borrowed(pattern)),
    }
}

fn at(segments: &[&str]) -> AbsPath {
    segments.iter().fold(AbsPath::root(), |place, segment| place.join(segment))
}
