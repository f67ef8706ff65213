//! What access lists can hold of the rules about files: paths that can be named.
//!
//! A rule that denies by a glob is narrowed to what the glob matches for certain (`**` taken as no segment); one that
//! allows by a glob is left out. Neither permits anything more by what it does to other rules: an allow that is gone opens
//! nothing, and a denial is left out rather than narrowed where an allow was inside it and would no longer be.

use crate::ir::{Policy, Rule, RuleId, Subject, more_specific};
use crate::sets::path::{PathSet, Pattern, Segment, Start};
use crate::vocabulary::{Effect, Reach, Verb};
use std::collections::BTreeSet;

/// The verbs whose rules entries are made of.
pub(super) const VERBS: [Verb; 3] = [Verb::Read, Verb::Write, Verb::Exec];

/// The policy as far as access lists can hold it. Rules keep their places; those that are left out have empty sets.
pub(super) fn held(policy: &Policy) -> Policy {
    let mut held = policy.clone();
    let mut gone = BTreeSet::new();
    for (rule, id) in held.rules.iter_mut().zip((0..).map(RuleId)).filter(|(rule, _)| VERBS.contains(&rule.verb)) {
        let Subject::Paths(set) = &rule.subject else { continue };
        match narrowed(policy, id, set) {
            Some(narrowed) if narrowed.include.is_empty() => {
                gone.insert(id);
            }
            Some(narrowed) => rule.subject = Subject::Paths(narrowed),
            None => {}
        }
    }
    held.without(&gone)
}

/// Whether there may be such a place: it starts at a drive or a variable, and no file is kept from having such a name.
pub(super) fn is_there(pattern: &Pattern) -> bool {
    let nameable = |segment: &Segment| match segment {
        Segment::Literal(name) => is_a_name(name),
        Segment::AnyDepth | Segment::Glob(_) => true,
    };
    pattern.start != Start::Root && pattern.segments.iter().all(nameable)
}

/// Whether a file can have a name ("Naming Files, Paths, and Namespaces"): the rest would be taken for another name, for a
/// way to somewhere else, or for a part of a file.
fn is_a_name(name: &[u8]) -> bool {
    let text = std::str::from_utf8(name);
    text.is_ok_and(|text| !text.contains(['<', '>', ':', '"', '/', '\\', '|', '?', '*']) && !text.ends_with(['.', ' ']))
        && name.iter().all(|byte| *byte >= b' ')
}

/// The set that can be held of a rule's; `None` where that is all of it.
fn narrowed(policy: &Policy, id: RuleId, set: &PathSet) -> Option<PathSet> {
    let can_be_named = |pattern: &Pattern| is_there(pattern) && pattern.is_literal();
    // What meets nothing of the set takes nothing out of it.
    let meets = |pattern: &&Pattern| {
        let apart = |include: &Pattern| {
            pattern.begins_apart(include)
                || PathSet::from((*pattern).clone()).overlap(&include.clone().into()).is_none()
        };
        !set.include.iter().all(apart)
    };
    let (exclude, vague): (Vec<&Pattern>, Vec<&Pattern>) =
        set.exclude.iter().filter(meets).partition(|pattern| can_be_named(pattern));
    if set.include.iter().all(can_be_named) && vague.is_empty() {
        return None;
    }
    let exclude = exclude.into_iter().cloned().collect();
    if policy.rule(id).effect == Effect::Allow {
        // Of several patterns those that can be named: a narrower allow opens nothing that the whole one did not, unless it
        // is inside a denial that the whole one is not.
        let include: Vec<Pattern> = set.include.iter().filter(|one| can_be_named(one)).cloned().collect();
        let rest = PathSet { include, exclude };
        let opens_more = policy.rules_of(policy.rule(id).verb).any(|(deny, rule)| {
            rule.effect == Effect::Deny
                && matches!(&rule.subject, Subject::Paths(denied) if rest.is_strictly_inside(denied))
                && !more_specific(policy, id, deny)
        });
        let whole = !opens_more && vague.is_empty();
        return Some(if whole { rest } else { PathSet::default() });
    }
    let include = set.include.iter().filter_map(|pattern| instance(policy, id, pattern));
    let include = include.filter(|instance| {
        vague.iter().all(|gone| PathSet::from(instance.clone()).overlap(&(*gone).clone().into()).is_none())
    });
    Some(PathSet { include: include.collect(), exclude })
}

/// The path that a pattern matches for certain, if what it denies can be held there by itself.
fn instance(policy: &Policy, id: RuleId, pattern: &Pattern) -> Option<Pattern> {
    let mut instance = pattern.clone();
    instance.segments.retain(|segment| *segment != Segment::AnyDepth);
    if !is_there(&instance) || !instance.is_literal() || instance.segments.is_empty() {
        return None;
    }
    // An allow inside the whole denial opens it; of one that is not inside the instance, though they meet, the instance would
    // deny what the policy permits.
    let part = PathSet::from(instance.clone());
    // What is allowed below a place is not allowed at it, where it is written.
    let around = Pattern { reach: Reach::Tree, ..pattern.clone() };
    let closes = |allow: RuleId, rule: &Rule| match &rule.subject {
        Subject::Paths(set) => {
            set.include.iter().any(|allow| around.contains(&allow.literal_prefix()))
                && more_specific(policy, allow, id)
                && !set.is_strictly_inside(&part)
                && set.overlap(&part).is_some()
        }
        _ => false,
    };
    let opened =
        policy.rules_of(policy.rule(id).verb).any(|(allow, rule)| rule.effect == Effect::Allow && closes(allow, rule));
    (!opened).then_some(instance)
}
