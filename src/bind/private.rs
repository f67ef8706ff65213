//! `$TMP`: where the run's own temporary directory is, and which of the host's places show through it.
//!
//! On Linux it is a tmpfs over `/tmp`. Places below `/tmp` that the policy names (a workspace, a socket) are bound into
//! it and are no part of `$TMP`. Where a rule allows writing to the host's `/tmp` as a whole, `$TMP` is `/dev/shm`, which
//! is the sandbox's own as well.

use super::link::Links;
use super::variable::Places;
use crate::sets::path::{AbsPath, Pattern, Segment, Start};
use crate::vocabulary::System;
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

/// What the targets of a policy, at their places, say of the host's `/tmp`.
#[derive(Debug, Default)]
pub(super) struct Shared {
    /// The places strictly below it that they name.
    named: BTreeSet<AbsPath>,
    /// Whether one grants writing all of it.
    whole: bool,
}

impl Shared {
    /// Takes a target into account; `grants` says whether it is one that may be written.
    pub fn note(&mut self, pattern: &Pattern, grants: bool) {
        let Some(Segment::Literal(first)) = pattern.segments.first() else {
            self.whole |= grants && pattern.start == Start::Root && pattern.segments.is_empty();
            return;
        };
        if pattern.start == Start::Root && **first == *b"tmp" {
            let place = pattern.literal_prefix();
            if place.segments.len() > 1 {
                self.named.insert(place);
            } else {
                self.whole |= grants && pattern.is_literal();
            }
        }
    }
}

/// Decides it, by what the targets say and where the home and the workspace are.
pub(super) fn place(system: System, shared: Shared, places: &Places, links: &mut Links<'_>) -> Private {
    let tmp = at(&["tmp"]);
    if system != System::Linux {
        let place = places.get("TMP").cloned().unwrap_or(tmp);
        return Private { place, within: Vec::new() };
    }
    if shared.whole {
        return Private { place: at(&["dev", "shm"]), within: Vec::new() };
    }
    let mut named = shared.named;
    for name in ["HOME", "WORKSPACE"] {
        if let Some(value) = places.get(name) {
            let place = links.follow(value).place;
            if place != tmp && place.is_inside(&tmp) {
                named.insert(place);
            }
        }
    }
    // In order, whatever lies inside a place comes after it.
    let mut within: Vec<AbsPath> = Vec::new();
    for place in named {
        // Where there is nothing, nothing is bound in, and the name is free for the run's own use.
        if !within.iter().any(|outer| place.is_inside(outer)) && matches!(links.node(&place), Ok(Some(_))) {
            within.push(place);
        }
    }
    Private { place: tmp, within }
}

fn at(segments: &[&str]) -> AbsPath {
    segments.iter().fold(AbsPath::root(), |place, segment| place.join(segment))
}
