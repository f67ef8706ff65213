//! What one `allow` permits by itself: paths that are allowed because of it, in spite of every rule that denies.
//!
//! A path that some other rule opens is that rule's. Every answer is confirmed by [`decide`]; where none is found there may
//! still be one behind several `except`s of rules that deny.

use crate::ir::{Access, Decider, Policy, Rule, RuleId, Subject, Verdict, decide, more_specific};
use crate::sets::path::{AbsPath, PathSet, Pattern, Segment, Start};
use crate::vocabulary::{Effect, Verb};
use std::cell::{Cell, OnceCell};

/// The rules that lints look at: each `allow` that no embedded module brings. What a module allows is said of the module.
pub(super) fn allows(policy: &Policy, verb: Verb) -> impl Iterator<Item = (RuleId, &Rule)> {
    policy.rules_of(verb).filter(|(_, rule)| rule.effect == Effect::Allow && super::is_given(rule))
}

/// As [`Granted::path`], for one who asks once.
pub(super) fn path(policy: &Policy, id: RuleId, places: &PathSet, verbs: &[Verb]) -> Option<AbsPath> {
    Granted::new(policy).path(id, places, verbs)
}

/// What is permitted, for those who ask about many rules.
pub(super) struct Granted<'p> {
    policy: &'p Policy,
    asked: Cell<usize>,
    decider: OnceCell<Decider<'p>>,
}

impl<'p> Granted<'p> {
    pub fn new(policy: &'p Policy) -> Self {
        Self { policy, asked: Cell::new(0), decider: OnceCell::new() }
    }

    fn decide(&self, access: &Access) -> Verdict {
        /// Fewer questions are answered before the rules would be compiled.
        const FEW: usize = 16;
        self.asked.set(self.asked.get() + 1);
        if self.asked.get() <= FEW {
            return decide(self.policy, access);
        }
        self.decider.get_or_init(|| Decider::new(self.policy)).decide(access)
    }

    /// A shortest path of `places` that a rule, an `allow` of paths, permits, and on which each of `verbs` is permitted
    /// too.
    pub fn path(&self, id: RuleId, places: &PathSet, verbs: &[Verb]) -> Option<AbsPath> {
        find(self.policy, id, places, verbs, |access| self.decide(access))
    }
}

fn find(
    policy: &Policy,
    id: RuleId,
    places: &PathSet,
    verbs: &[Verb],
    decide: impl Fn(&Access) -> Verdict,
) -> Option<AbsPath> {
    let rule = policy.rule(id);
    let Subject::Paths(set) = &rule.subject else { return None };
    let reachable: Vec<Pattern> = near(&places.include, set).collect();
    if reachable.is_empty() {
        return None;
    }
    let places = PathSet { include: reachable, exclude: places.exclude.clone() };
    let all: Vec<Verb> = std::iter::once(rule.verb).chain(verbs.iter().copied()).collect();
    let permitted = |path: &AbsPath| {
        let decided = |verb: &Verb| {
            let verdict = access(*verb, path.clone()).map(|access| decide(&access));
            verdict.is_some_and(|verdict| verdict.allowed && (*verb != rule.verb || is_its_own(policy, id, &verdict)))
        };
        all.iter().all(decided)
    };
    let mut left = set.clone();
    // What is denied is taken out verb by verb, since most that is looked for is found before all of it is.
    let mut steps = vec![None];
    steps.extend(all.iter().copied().map(Some));
    steps.extend((!all.contains(&Verb::Read) && rule.verb != Verb::Socket).then_some(Some(Verb::Read)));
    for verb in steps {
        let mut open = Vec::new();
        for denied in verb.into_iter().flat_map(|verb| denied(policy, id, set, verb)) {
            left.exclude.extend(near(&denied.include, set));
            open.extend(near(&denied.exclude, set));
        }
        match left.overlap(&places) {
            Some(found) if permitted(&found) => return Some(found),
            // The two have nothing in common, whatever is denied.
            None if verb.is_none() => return None,
            _ => {}
        }
        for pattern in open {
            let both = PathSet { exclude: [&set.exclude[..], &places.exclude].concat(), ..pattern.into() };
            let inside = |found: &AbsPath| set.contains(found) && places.contains(found);
            if let Some(found) = both.shortest().filter(inside).filter(&permitted) {
                return Some(found);
            }
        }
    }
    None
}

/// Whether a verdict would be the same without any other `allow`.
fn is_its_own(policy: &Policy, id: RuleId, verdict: &Verdict) -> bool {
    let denies = verdict.matching.iter().filter(|other| policy.rule(**other).effect == Effect::Deny);
    denies.filter(|deny| policy.rule(**deny).verb == policy.rule(id).verb).all(|deny| more_specific(policy, id, *deny))
}

/// The sets near that of an `allow` that are denied although it matches in them.
fn denied<'p>(policy: &'p Policy, allow: RuleId, own: &'p PathSet, verb: Verb) -> impl Iterator<Item = &'p PathSet> {
    let meets = |set: &PathSet| set.include.iter().any(|pattern| own.include.iter().any(|own| may_meet(own, pattern)));
    policy.rules_of(verb).filter_map(move |(id, rule)| match (&rule.subject, rule.effect) {
        (_, Effect::Allow) => None,
        (Subject::Paths(set), Effect::Forbid) => meets(set).then_some(set),
        (Subject::Paths(set), Effect::Deny) => (meets(set) && !more_specific(policy, allow, id)).then_some(set),
        _ => None,
    })
}

fn near<'p>(patterns: &'p [Pattern], set: &'p PathSet) -> impl Iterator<Item = Pattern> + 'p {
    patterns.iter().filter(|pattern| set.include.iter().any(|own| may_meet(own, pattern))).cloned()
}

/// Doing what a verb of paths is about.
pub(super) fn access(verb: Verb, path: AbsPath) -> Option<Access> {
    Some(match verb {
        Verb::Read => Access::Read(path),
        Verb::Write => Access::Write(path),
        Verb::Exec => Access::Exec(path),
        Verb::Socket => Access::Socket(path),
        _ => return None,
    })
}

/// Whether two patterns may share a path; `false` where what they begin with keeps them apart.
fn may_meet(one: &Pattern, other: &Pattern) -> bool {
    if one.start != other.start {
        let anywhere =
            |p: &Pattern| p.start == Start::Root && matches!(p.segments.first(), None | Some(Segment::AnyDepth));
        return anywhere(one) || anywhere(other);
    }
    for pair in one.segments.iter().zip(&other.segments) {
        match pair {
            (Segment::AnyDepth, _) | (_, Segment::AnyDepth) => return true,
            (Segment::Literal(one), Segment::Literal(other)) if one != other => return false,
            (Segment::Literal(name), Segment::Glob(glob)) | (Segment::Glob(glob), Segment::Literal(name))
                if !glob.matches(name) =>
            {
                return false;
            }
            _ => {}
        }
    }
    true
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::*;
    use crate::lint::place;
    use crate::lint::tests::symbolic;

    /// The path of a place that the first rule lets be written, if any.
    fn found(rules: &str, place: &str) -> Option<String> {
        let policy = symbolic(&format!("srt 1\ndefault read allow\n{rules}"));
        let (id, _) = allows(&policy, Verb::Write).next().unwrap();
        path(&policy, id, &place::tree(place, &policy).into(), &[]).map(|path| path.to_string())
    }

    #[test]
    fn a_rule_permits_what_nothing_denies() {
        for (rules, place, expected) in [
            ("allow write ~", "~/.bashrc", Some("$HOME/.bashrc")),
            ("allow write /", "~/.bashrc", Some("$HOME/.bashrc")),
            ("allow write ~/src", "~/.bashrc", None),
            ("allow write ~\ndeny write ~/.bashrc", "~/.bashrc", None),
            ("allow write ~\nforbid write **/.bashrc", "~/.bashrc", None),
            ("allow write ~\ndeny read ~/.bashrc", "~/.bashrc", None),
            // Opened by the rule itself, or by another one: then it is not this rule's.
            ("allow write ~/.bashrc\ndeny write ~", "~/.bashrc", Some("$HOME/.bashrc")),
            ("allow write ~\ndeny write ~/.bashrc\nallow write exact ~/.bashrc", "~/.bashrc", None),
            // Only part of the place is denied, or all but a part.
            ("allow write ~\ndeny write exact ~/.ssh", "~/.ssh", Some("$HOME/.ssh/a")),
            ("allow write ~\ndeny write ~/.ssh except ~/.ssh/known", "~/.ssh", Some("$HOME/.ssh/known")),
            ("allow write ~ except ~/.ssh", "~/.ssh", None),
        ] {
            let found = found(rules, place);
            let same = match (&found, expected) {
                (Some(found), Some(expected)) => found.starts_with(expected.trim_end_matches('a')),
                (found, expected) => found.is_none() && expected.is_none(),
            };
            assert!(same, "{rules}: {found:?}");
        }
    }
}
