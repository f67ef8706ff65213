//! What is permitted as a set by itself, apart from any policy's rules: grants, and refusals that other sets lift. What a policy
//! says of a verb is one; so is what an artefact grants, read back. Two of them are compared exactly.
//!
//! Of paths and names alone: connections are compared as policies.

use super::layer::{compiled, kind, variables};
use super::{Answer, Budget, Exhausted};
use crate::ir::{Policy, Subject, more_specific};
use crate::sets::many::{self, Compiled, Index, Kind, Member, Refusal, Space};
use crate::vocabulary::{Effect, Verb};

/// Objects of one kind: what is granted, less what is refused and not lifted.
#[derive(Debug, Clone)]
pub struct Permission {
    pub kind: Kind,
    /// Everything is granted.
    pub everything: bool,
    pub grants: Vec<Subject>,
    pub refusals: Vec<Refused>,
}

/// A set that is refused, but for what is in one of others.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Refused {
    pub set: Subject,
    pub lifted_by: Vec<Subject>,
}

impl Permission {
    /// Nothing.
    pub fn none(kind: Kind) -> Self {
        Self { kind, everything: false, grants: Vec::new(), refusals: Vec::new() }
    }

    /// What a policy permits of a verb over paths or names; of a `write` or an `exec` with what it needs of `read`.
    pub fn of(policy: &Policy, verb: Verb) -> Self {
        let mut permission = Self::none(kind(verb));
        permission.everything = match verb {
            Verb::Read | Verb::Exec => policy.default_read.value == Effect::Allow,
            Verb::Env => policy.default_env.as_ref().is_none_or(|default| default.value == Effect::Allow),
            _ => false,
        };
        permission.take(policy, verb, true);
        if matches!(verb, Verb::Write | Verb::Exec) {
            // What may be read may be run; what a rule denies to read may be neither run nor written.
            permission.take(policy, Verb::Read, verb == Verb::Exec);
        }
        permission
    }

    fn take(&mut self, policy: &Policy, verb: Verb, grants: bool) {
        let allows: Vec<_> = policy.rules_of(verb).filter(|(_, rule)| rule.effect == Effect::Allow).collect();
        if grants {
            self.grants.extend(allows.iter().map(|(_, rule)| rule.subject.clone()));
        }
        for (id, rule) in policy.rules_of(verb).filter(|(_, rule)| rule.effect != Effect::Allow) {
            let opens = |allow| rule.effect == Effect::Deny && more_specific(policy, allow, id);
            let lifted_by: Vec<_> =
                allows.iter().filter(|(allow, _)| opens(*allow)).map(|(_, rule)| rule.subject.clone()).collect();
            for (_, set) in policy.facts.elsewhere.iter().filter(|(denied, _)| *denied == id) {
                let set = Subject::Paths(set.clone());
                self.refusals.push(Refused { set, lifted_by: lifted_by.clone() });
            }
            self.refusals.push(Refused { set: rule.subject.clone(), lifted_by });
        }
    }

    /// The same, less one more set.
    pub fn refuse(&mut self, set: Subject) {
        self.refusals.push(Refused { set, lifted_by: Vec::new() });
    }

    fn subjects(&self) -> impl Iterator<Item = &Subject> {
        let refused = self.refusals.iter().flat_map(|refused| std::iter::once(&refused.set).chain(&refused.lifted_by));
        self.grants.iter().chain(refused)
    }
}

/// A permission as trees.
struct Trees<'p> {
    permission: &'p Permission,
    grants: Index<'p>,
    refusals: Index<'p>,
    /// What lifts refusals, those of each at its places.
    lifting: Index<'p>,
    lifted_by: Vec<Vec<usize>>,
}

impl<'p> Trees<'p> {
    fn new(permission: &'p Permission) -> Self {
        let sets = |subjects: &mut dyn Iterator<Item = &'p Subject>| {
            Index::new(subjects.filter_map(|subject| compiled(subject).map(|(_, set)| set)))
        };
        let mut next = 0..;
        let lifted_by =
            permission.refusals.iter().map(|refused| next.by_ref().take(refused.lifted_by.len()).collect()).collect();
        Self {
            permission,
            grants: sets(&mut permission.grants.iter()),
            refusals: sets(&mut permission.refusals.iter().map(|refused| &refused.set)),
            lifting: sets(&mut permission.refusals.iter().flat_map(|refused| &refused.lifted_by)),
            lifted_by,
        }
    }

    fn not_refused(&self) -> Refusal<'_, 'p> {
        let lifted_by = |refusal: usize| Some(self.lifted_by[refusal].clone());
        Refusal::Of { index: &self.refusals, lifting: &self.lifting, lifted_by: Box::new(lifted_by) }
    }

    fn not_granted(&self) -> Refusal<'_, 'p> {
        Refusal::Of { index: &self.grants, lifting: &self.lifting, lifted_by: Box::new(|_| Some(Vec::new())) }
    }
}

/// A shortest object that `more` permits and `less` does not, in `within` if that is given and in none of `outside`.
pub fn excess(
    more: &Permission,
    less: &Permission,
    within: Option<&Subject>,
    outside: &[&Subject],
    budget: &mut Budget,
) -> Answer<Member> {
    Answer::of(search(more, less, within, outside, budget))
}

/// A shortest object that is permitted, in `within` if that is given and in none of `outside`.
pub fn member(
    permission: &Permission,
    within: Option<&Subject>,
    outside: &[&Subject],
    budget: &mut Budget,
) -> Answer<Member> {
    excess(permission, &Permission::none(permission.kind), within, outside, budget)
}

fn search(
    more: &Permission,
    less: &Permission,
    within: Option<&Subject>,
    outside: &[&Subject],
    budget: &mut Budget,
) -> Result<Option<Member>, Exhausted> {
    let kind = more.kind;
    let all_sets = || more.subjects().chain(less.subjects()).chain(within).chain(outside.iter().copied());
    // Each set of another kind would be left out in silence.
    if less.kind != kind || all_sets().any(|subject| compiled(subject).is_none_or(|(other, _)| other != kind)) {
        return Err(Exhausted);
    }
    let mut names: Vec<&str> = all_sets().flat_map(|subject| variables(subject, kind)).collect();
    names.sort_unstable();
    names.dedup();
    let space = Space { kind, variables: names, absent: Vec::new() };
    let (own, other) = (Trees::new(more), Trees::new(less));
    let all = Compiled::all(kind);
    let one = |subject| compiled(subject).map(|(_, set)| set);
    let within = within.and_then(one);
    let outside: Vec<_> = outside.iter().copied().filter_map(one).collect();
    let mut best: Option<Member> = None;
    let mut look = |required: &[&Compiled<'_>], other: Refusal<'_, '_>, budget: &mut Budget| {
        let shorter_than = best.as_ref().map(|best| best.size().0);
        let refusals = [own.not_refused(), other, Refusal::All(outside.iter().collect())];
        if let Some(found) = many::shortest(&space, required, &refusals, shorter_than, budget)? {
            best = Some(found);
        }
        Ok::<_, Exhausted>(())
    };
    // A refusal that both have, with the same that lifts it, makes no difference.
    let own_refusals: std::collections::HashSet<_> =
        more.refusals.iter().map(|refused| (&refused.set, &refused.lifted_by)).collect();
    let differs = |refusal: &usize| {
        let refused = &less.refusals[*refusal];
        !own_refusals.contains(&(&refused.set, &refused.lifted_by))
    };
    let grants: Vec<_> = if more.everything {
        vec![within.as_ref().unwrap_or(&all)]
    } else {
        (0..own.grants.len()).map(|grant| own.grants.set(grant)).collect()
    };
    for grant in grants {
        let mut required = vec![grant];
        required.extend(within.as_ref().filter(|_| !more.everything));
        let everywhere = other.permission.everything;
        // A grant that both have is no difference by itself.
        if !everywhere {
            look(&required, other.not_granted(), budget)?;
        }
        let mut meeting = other.refusals.meeting(grant);
        meeting.retain(differs);
        for refusal in meeting {
            let lifted = other.lifted_by[refusal].iter().map(|set| other.lifting.set(*set)).collect();
            let mut required = required.clone();
            required.push(other.refusals.set(refusal));
            look(&required, Refusal::All(lifted), budget)?;
        }
    }
    Ok(best)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::*;
    use crate::sets::path::{AbsPath, PathSet, Pattern};
    use crate::vocabulary::Reach;

    fn tree(path: &str) -> Subject {
        Subject::Paths(PathSet::from(Pattern::literal(&AbsPath::parse(path).unwrap(), Reach::Tree)))
    }

    fn permission(grants: &[&str], refusals: &[(&str, &[&str])]) -> Permission {
        Permission {
            grants: grants.iter().map(|path| tree(path)).collect(),
            refusals: refusals
                .iter()
                .map(|(set, lifted)| Refused {
                    set: tree(set),
                    lifted_by: lifted.iter().map(|path| tree(path)).collect(),
                })
                .collect(),
            ..Permission::none(Kind::Paths)
        }
    }

    fn found(more: &Permission, less: &Permission, outside: &[&str]) -> Option<String> {
        let outside: Vec<_> = outside.iter().map(|path| tree(path)).collect();
        match excess(more, less, None, &outside.iter().collect::<Vec<_>>(), &mut Budget::unlimited()) {
            Answer::Some(Member::Path(path)) => Some(path.to_string()),
            Answer::None => None,
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn what_one_permits_and_another_does_not() {
        let whole = permission(&["/a"], &[]);
        let part = permission(&["/a"], &[("/a/b", &["/a/b/c"])]);
        assert_eq!(found(&part, &whole, &[]), None);
        assert_eq!(found(&whole, &part, &[]).as_deref(), Some("/a/b"));
        assert_eq!(found(&whole, &part, &["/a/b"]), None);
        let unlifted = permission(&["/a"], &[("/a/b", &[])]);
        assert_eq!(found(&part, &unlifted, &[]).as_deref(), Some("/a/b/c"));
        assert_eq!(found(&unlifted, &part, &[]), None);
        let more = permission(&["/a", "/z"], &[]);
        assert_eq!(found(&more, &whole, &[]).as_deref(), Some("/z"));
        let everything = Permission { everything: true, ..permission(&[], &[("/a/b", &[])]) };
        assert_eq!(found(&everything, &whole, &[]).as_deref(), Some("/"));
        assert_eq!(found(&whole, &everything, &[]).as_deref(), Some("/a/b"));
    }

    #[test]
    fn sets_of_another_kind_are_not_left_out_in_silence() {
        let whole = permission(&["/a"], &[]);
        let names = Permission::none(Kind::Names);
        assert_eq!(excess(&whole, &names, None, &[], &mut Budget::unlimited()), Answer::Unknown);
    }
}
