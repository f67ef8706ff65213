//! What is permitted as a set by itself, apart from any policy's rules: grants, and refusals that other sets lift. What a policy
//! says of a verb is one; so is what an artefact grants, read back. Two of them are compared exactly.
//!
//! Of paths and names alone: connections are compared as policies.

use super::layer::{compiled, kind, openers, variables};
use super::{Answer, Budget, Exhausted};
use crate::ir::{Policy, Subject};
use crate::sets::many::{self, Compiled, Index, Kind, Member, Refusal, Space};
use crate::sets::path::Pattern;
use crate::vocabulary::{Effect, Verb};
use rustc_hash::{FxBuildHasher, FxHashMap};
use std::hash::{BuildHasher, Hash};
use std::ops::Range;
use std::sync::{Arc, OnceLock};

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
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Refused {
    pub set: Subject,
    /// Of refusals that the same sets lift, the same list: it is gone through once.
    pub lifted_by: Arc<[Subject]>,
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

    /// What the rules of one verb say of it by themselves, whatever is said of reading: of `exec`, which nothing has to permit, all
    /// that none of them denies.
    pub fn apart(policy: &Policy, verb: Verb) -> Self {
        if verb == Verb::Read {
            return Self::of(policy, verb);
        }
        let mut permission = Self { everything: verb == Verb::Exec, ..Self::none(kind(verb)) };
        permission.take(policy, verb, true);
        permission
    }

    fn take(&mut self, policy: &Policy, verb: Verb, grants: bool) {
        if grants {
            let allows = policy.rules_of(verb).filter(|(_, rule)| rule.effect == Effect::Allow);
            self.grants.extend(allows.map(|(_, rule)| rule.subject.clone()));
        }
        for (id, openers) in openers(policy, verb) {
            let lifted_by: Arc<[_]> = openers.iter().map(|allow| policy.rule(*allow).subject.clone()).collect();
            for set in policy.facts.elsewhere_of(id) {
                let set = Subject::Paths(set.clone());
                self.refusals.push(Refused { set, lifted_by: lifted_by.clone() });
            }
            self.refusals.push(Refused { set: policy.rule(id).subject.clone(), lifted_by });
        }
    }

    /// Everything of a kind.
    pub fn everything(kind: Kind) -> Self {
        Self { everything: true, ..Self::none(kind) }
    }

    fn subjects(&self) -> impl Iterator<Item = &Subject> {
        let refused = self.refusals.iter().flat_map(|refused| std::iter::once(&refused.set).chain(&*refused.lifted_by));
        self.grants.iter().chain(refused)
    }
}

/// A permission prepared for questions.
pub struct Prepared<'p> {
    permission: &'p Permission,
    grants: Index<'p>,
    refusals: Index<'p>,
    /// What lifts refusals, those of each at its places.
    lifting: Index<'p>,
    lifted_by: Vec<Range<usize>>,
    /// The places of the refusals by what their sets hash to; where that is asked.
    known: OnceLock<FxHashMap<u64, Vec<usize>>>,
    /// The same by each pattern of paths, of those that are refused whatever else is said.
    closed: OnceLock<FxHashMap<u64, Vec<usize>>>,
    variables: Vec<&'p str>,
    /// Whether every set is of the permission's kind.
    sound: bool,
}

impl<'p> Prepared<'p> {
    pub fn new(permission: &'p Permission) -> Self {
        let sets = |subjects: &mut dyn Iterator<Item = &'p Subject>| {
            Index::new(subjects.filter_map(|subject| compiled(subject).map(|(_, set)| set)))
        };
        let mut lifting: Vec<&Subject> = Vec::new();
        let mut known: FxHashMap<*const [Subject], Range<usize>> = FxHashMap::default();
        let mut places_of = |list: &'p Arc<[Subject]>| {
            let places = known.entry(Arc::as_ptr(list)).or_insert_with(|| {
                let start = lifting.len();
                lifting.extend(&**list);
                start..lifting.len()
            });
            places.clone()
        };
        let lifted_by = permission.refusals.iter().map(|refused| places_of(&refused.lifted_by)).collect();
        let mut names: Vec<&str> =
            permission.subjects().flat_map(|subject| variables(subject, permission.kind)).collect();
        names.sort_unstable();
        names.dedup();
        Self {
            permission,
            grants: sets(&mut permission.grants.iter()),
            refusals: sets(&mut permission.refusals.iter().map(|refused| &refused.set)),
            lifting: sets(&mut lifting.into_iter()),
            lifted_by,
            known: OnceLock::new(),
            closed: OnceLock::new(),
            variables: names,
            sound: permission.subjects().all(|subject| is_of(subject, permission.kind)),
        }
    }

    /// What its objects are.
    pub fn kind(&self) -> Kind {
        self.permission.kind
    }

    /// Whether one object is permitted.
    pub fn permits(&self, member: &Member) -> bool {
        if !self.permission.everything && self.grants.containing(member).is_empty() {
            return false;
        }
        let refusals = self.refusals.containing(member);
        let lifting = if refusals.is_empty() { Vec::new() } else { self.lifting.containing(member) };
        refusals.iter().all(|refusal| self.lifted_by[*refusal].clone().any(|set| lifting.contains(&set)))
    }

    /// Whether a refusal is one of these, with the same that lifts it.
    fn knows(&self, refused: &Refused) -> bool {
        let own = &self.permission.refusals;
        let known = self.known.get_or_init(|| by_hash(own.iter().map(|own| &own.set).enumerate()));
        places(known, &refused.set).any(|place| own[place] == *refused)
    }

    /// Whether it is plain that nothing in a set is permitted: each of its patterns is refused by itself.
    fn closes(&self, subject: &Subject) -> bool {
        matches!(subject, Subject::Paths(set) if set.include.iter().all(|pattern| self.has_closed(pattern)))
    }

    /// Whether a pattern of paths is refused whatever else is said, as it stands.
    fn has_closed(&self, pattern: &Pattern) -> bool {
        fn patterns(refused: &Refused) -> &[Pattern] {
            match &refused.set {
                Subject::Paths(set) if set.exclude.is_empty() && refused.lifted_by.is_empty() => &set.include,
                _ => &[],
            }
        }
        let own = &self.permission.refusals;
        let closed = self.closed.get_or_init(|| {
            by_hash(own.iter().enumerate().flat_map(|(place, own)| patterns(own).iter().map(move |own| (place, own))))
        });
        places(closed, pattern).any(|place| patterns(&own[place]).contains(pattern))
    }

    fn not_refused(&self) -> Refusal<'_, 'p> {
        let lifted_by = |refusal: usize| Some(self.lifted_by[refusal].clone().collect());
        Refusal::Of { index: &self.refusals, lifting: &self.lifting, lifted_by: Box::new(lifted_by) }
    }

    fn not_granted(&self) -> Refusal<'_, 'p> {
        all_of(&self.grants)
    }
}

fn by_hash<T: Hash>(all: impl Iterator<Item = (usize, T)>) -> FxHashMap<u64, Vec<usize>> {
    let mut places: FxHashMap<u64, Vec<usize>> = FxHashMap::default();
    for (place, one) in all {
        places.entry(FxBuildHasher.hash_one(one)).or_default().push(place);
    }
    places
}

/// Where something may be; whether it is, whoever asks has to look.
fn places(all: &FxHashMap<u64, Vec<usize>>, one: impl Hash) -> impl Iterator<Item = usize> {
    all.get(&FxBuildHasher.hash_one(one)).into_iter().flatten().copied()
}

fn is_of(subject: &Subject, kind: Kind) -> bool {
    compiled(subject).is_some_and(|(other, _)| other == kind)
}

fn all_of<'q, 'p>(index: &'q Index<'p>) -> Refusal<'q, 'p> {
    Refusal::Of { index, lifting: index, lifted_by: Box::new(|_| Some(Vec::new())) }
}

/// A shortest object that `more` permits and `less`, if that is given, does not; in `within` if that is given, and in none of
/// `outside`.
pub fn excess<'p>(
    more: &Prepared<'p>,
    less: Option<&Prepared<'p>>,
    within: Option<&'p Subject>,
    outside: &[&'p Subject],
    budget: &mut Budget,
) -> Answer<Member> {
    Answer::of(search(more, less, within, outside, Sought::Shortest, budget))
}

/// Some object that `more` permits and `less`, if that is given, does not, in `within`: which one is not said, and found sooner.
pub fn some_excess<'p>(
    more: &Prepared<'p>,
    less: Option<&Prepared<'p>>,
    within: &'p Subject,
    budget: &mut Budget,
) -> Answer<Member> {
    Answer::of(search(more, less, Some(within), &[], Sought::Any, budget))
}

/// Some object of a set that is permitted, or one that is not.
pub fn some_of<'p>(all: &Prepared<'p>, permitted: bool, within: &'p Subject, budget: &mut Budget) -> Answer<Member> {
    if permitted {
        return some_excess(all, None, within, budget);
    }
    let everything = Permission::everything(all.kind());
    some_excess(&Prepared::new(&everything), Some(all), within, budget)
}

/// What is plainly no answer: sets that are refused as they stand, or that are not asked about.
struct Beside<'q, 'p> {
    own: &'q Prepared<'p>,
    outside: &'q [&'p Subject],
    /// The places of those by their patterns.
    by_pattern: FxHashMap<u64, Vec<usize>>,
}

impl<'q, 'p> Beside<'q, 'p> {
    fn new(own: &'q Prepared<'p>, outside: &'q [&'p Subject]) -> Self {
        let patterns = outside.iter().enumerate().flat_map(|(place, subject)| match subject {
            Subject::Paths(set) => set.include.iter().map(|pattern| (place, pattern)).collect(),
            _ => Vec::new(),
        });
        Self { own, outside, by_pattern: by_hash(patterns) }
    }

    /// `false` says nothing.
    fn holds(&self, subject: &Subject) -> bool {
        let Subject::Paths(set) = subject else { return false };
        set.include.iter().all(|pattern| self.own.has_closed(pattern) || self.is_outside(pattern))
    }

    /// Whether all that a pattern matches is in a set that is not asked about, but for what is refused as it stands.
    fn is_outside(&self, pattern: &Pattern) -> bool {
        places(&self.by_pattern, pattern).any(|place| match self.outside[place] {
            Subject::Paths(set) => {
                set.include.contains(pattern) && set.exclude.iter().all(|pattern| self.own.has_closed(pattern))
            }
            _ => false,
        })
    }
}

/// Which object is looked for.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Sought {
    Shortest,
    Any,
}

fn search<'q, 'p>(
    own: &'q Prepared<'p>,
    other: Option<&'q Prepared<'p>>,
    within: Option<&'p Subject>,
    outside: &[&'p Subject],
    sought: Sought,
    budget: &mut Budget,
) -> Result<Option<Member>, Exhausted> {
    let kind = own.permission.kind;
    let sound = |prepared: &Prepared<'_>| prepared.sound && prepared.permission.kind == kind;
    let here = || within.into_iter().chain(outside.iter().copied());
    // Each set of another kind would be left out in silence.
    if !sound(own) || !other.is_none_or(sound) || !here().all(|subject| is_of(subject, kind)) {
        return Err(Exhausted);
    }
    if within.is_some_and(|within| own.closes(within)) {
        return Ok(None);
    }
    let mut names = own.variables.clone();
    names.extend(other.iter().flat_map(|other| &other.variables));
    names.extend(here().flat_map(|subject| variables(subject, kind)));
    names.sort_unstable();
    names.dedup();
    let space = Space { kind, variables: names, absent: Vec::new() };
    let all = Compiled::all(kind);
    let one = |subject| compiled(subject).map(|(_, set)| set);
    let beside = Beside::new(own, outside);
    let asked = within;
    let within = within.and_then(one);
    let excused = Index::new(outside.iter().copied().filter_map(one));
    let mut best: Option<Member> = None;
    let mut look = |required: &[&Compiled<'p>], more: Option<Refusal<'_, 'p>>, budget: &mut Budget| {
        let shorter_than = best.as_ref().map(|best| best.size().0);
        let mut refusals = vec![own.not_refused()];
        refusals.extend((!excused.is_empty()).then(|| all_of(&excused)));
        refusals.extend(more);
        if let Some(found) = many::shortest(&space, required, &refusals, shorter_than, budget)? {
            best = Some(found);
        }
        Ok::<_, Exhausted>(best.clone().filter(|_| sought == Sought::Any))
    };
    let everything = own.permission.everything;
    // What is asked about may be granted as a whole.
    let everything = everything || own.permission.grants.iter().any(|grant| Some(grant) == asked);
    let grants: Vec<_> = match &within {
        _ if everything => vec![within.as_ref().unwrap_or(&all)],
        Some(within) => own.grants.meeting(within).into_iter().map(|grant| own.grants.set(grant)).collect(),
        None => (0..own.grants.len()).map(|grant| own.grants.set(grant)).collect(),
    };
    if grants.is_empty() {
        return Ok(None);
    }
    // What is refused as a whole need not be looked for in each grant.
    let open = |set: &Compiled<'p>, more: Option<Refusal<'_, 'p>>, budget: &mut Budget| {
        let mut refusals = vec![own.not_refused()];
        refusals.extend((!excused.is_empty()).then(|| all_of(&excused)));
        refusals.extend(more);
        many::shortest(&space, &[set], &refusals, None, budget)
    };
    if let Some(within) = within.as_ref().filter(|_| !everything || sought == Sought::Any) {
        let Some(first) = open(within, None, budget)? else { return Ok(None) };
        // Most often the first is one.
        let is_one = || own.permits(&first) && !other.is_some_and(|other| other.permits(&first));
        if sought == Sought::Any && is_one() {
            return Ok(Some(first));
        }
    }
    let lifted = |other: &'q Prepared<'p>, refusal: usize| {
        Refusal::All(other.lifted_by[refusal].clone().map(|set| other.lifting.set(set)).collect())
    };
    let mut known: Vec<Option<bool>> = vec![None; other.map_or(0, |other| other.refusals.len())];
    for grant in grants {
        let mut required = vec![grant];
        required.extend(within.as_ref().filter(|_| !everything));
        let Some(other) = other else {
            if let Some(enough) = look(&required, None, budget)? {
                return Ok(Some(enough));
            }
            continue;
        };
        if !other.permission.everything
            && let Some(enough) = look(&required, Some(other.not_granted()), budget)?
        {
            return Ok(Some(enough));
        }
        for refusal in other.refusals.meeting(grant) {
            // A refusal that both have, with the same that lifts it, makes no difference; nor does one that is refused here or
            // not asked about.
            let refused = &other.permission.refusals[refusal];
            if own.knows(refused) || beside.holds(&refused.set) {
                continue;
            }
            let set = other.refusals.set(refusal);
            let is_open = match known[refusal] {
                Some(is_open) => is_open,
                None => *known[refusal].insert(open(set, Some(lifted(other, refusal)), budget)?.is_some()),
            };
            if is_open {
                let mut required = required.clone();
                required.push(set);
                if let Some(enough) = look(&required, Some(lifted(other, refusal)), budget)? {
                    return Ok(Some(enough));
                }
            }
        }
    }
    Ok(best)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::*;
    use crate::sets::path::{AbsPath, PathSet};
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
        let (more, less) = (Prepared::new(more), Prepared::new(less));
        match excess(&more, Some(&less), None, &outside.iter().collect::<Vec<_>>(), &mut Budget::unlimited()) {
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
    fn what_is_plainly_no_answer_is_no_more_than_that() {
        let less = permission(&["/a"], &[("/a/x", &[])]);
        // Not asked about is all of `/a/x` but `/a/x/y`.
        let tree = |path: &str| Pattern::literal(&AbsPath::parse(path).unwrap(), Reach::Tree);
        let outside = Subject::Paths(PathSet { include: vec![tree("/a/x")], exclude: vec![tree("/a/x/y")] });
        for (refusals, expected) in [
            (&[][..], Some("/a/x/y")),
            (&[("/a/x/y", &[][..])], None),
            (&[("/a/x/y", &["/a/x/y/z"][..])], Some("/a/x/y/z")),
            (&[("/a/x/y/z", &[][..])], Some("/a/x/y")),
        ] {
            let more = permission(&["/a"], refusals);
            let (more, less) = (Prepared::new(&more), Prepared::new(&less));
            let found = excess(&more, Some(&less), None, &[&outside], &mut Budget::unlimited());
            let expected = expected.map(|path| Member::Path(AbsPath::parse(path).unwrap()));
            assert_eq!(found, expected.map_or(Answer::None, Answer::Some), "{refusals:?}");
            // Asked of a set that is refused as it stands, or only partly.
            let within = Subject::Paths(tree("/a/x/y").into());
            let permitted = some_of(&more, true, &within, &mut Budget::unlimited());
            assert_eq!(permitted == Answer::None, found == Answer::None, "{refusals:?}");
        }
    }

    #[test]
    fn sets_of_another_kind_are_not_left_out_in_silence() {
        let whole = permission(&["/a"], &[]);
        let names = Permission::none(Kind::Names);
        let (whole, names) = (Prepared::new(&whole), Prepared::new(&names));
        assert_eq!(excess(&whole, Some(&names), None, &[], &mut Budget::unlimited()), Answer::Unknown);
    }
}
