//! The links that every macOS has: `/tmp`, `/var` and `/etc` lead into `/private`, and the system compares the place that a
//! path leads to. So a rule that allows is about that place alone, and one that denies about both.

use crate::ir::{Policy, Subject};
use crate::sets::path::{PathSet, Pattern, Segment, Start};
use crate::vocabulary::Effect;

/// The links in `/`; each leads to the same name in `/private`.
pub const LINKS: [&str; 3] = ["etc", "tmp", "var"];

/// The policy with the links followed: what it means on this system.
pub fn followed(policy: &Policy) -> Policy {
    let mut policy = policy.clone();
    for rule in &mut policy.rules {
        if let Subject::Paths(set) = &mut rule.subject {
            let denies = rule.effect != Effect::Allow;
            follow(&mut set.include, denies);
            // What is left out of an allow is denied; what is left out of a deny is not.
            follow(&mut set.exclude, !denies);
        }
    }
    policy
}

fn follow(patterns: &mut Vec<Pattern>, both: bool) {
    let mut followed = Vec::with_capacity(patterns.len());
    for pattern in patterns.drain(..) {
        let target = target(&pattern);
        if target.is_none() || both {
            followed.push(pattern);
        }
        followed.extend(target);
    }
    *patterns = followed;
}

fn target(pattern: &Pattern) -> Option<Pattern> {
    let name = pattern.literal_at(0).filter(|_| pattern.start == Start::Root)?;
    LINKS.iter().any(|link| link.as_bytes().eq_ignore_ascii_case(name)).then(|| {
        let mut target = pattern.clone();
        target.segments.insert(0, Segment::Literal("private".into()));
        target
    })
}

/// The links themselves, as a set: they can be looked at, to find out where they lead.
pub fn themselves() -> PathSet {
    let link = |name: &&str| Pattern {
        start: Start::Root,
        segments: vec![Segment::Literal((*name).into())],
        reach: crate::vocabulary::Reach::Exact,
    };
    PathSet { include: LINKS.iter().map(link).collect(), exclude: Vec::new() }
}
