//! [`decide`](super::decide()) for many accesses of one policy: the same steps, over rules that are matched all at once and
//! inclusions that are worked out once.

use super::decide::{Meaning, Verdict, more_specific};
use super::{Access, MountFact, Policy, Rule, RuleId, Subject};
use crate::sets::path::{AbsPath, Matcher, Pattern};
use crate::vocabulary::{Effect, Verb};
use std::cell::RefCell;
use std::collections::HashMap;
use std::sync::{PoisonError, RwLock};

/// What it takes to decide quickly. It borrows the policy, so that what it remembers cannot become wrong.
pub struct Decider<'p> {
    policy: &'p Policy,
    /// Which rules the matcher's sets are.
    rules: Vec<RuleId>,
    matcher: RefCell<Matcher>,
    inside: RefCell<HashMap<(RuleId, RuleId), bool>>,
    /// Whether some file system is mounted at more than one place.
    aliased: bool,
}

impl<'p> Decider<'p> {
    /// Compiles the path rules of a policy.
    pub fn new(policy: &'p Policy) -> Self {
        Self::of(policy, |_| true)
    }

    /// For those who ask whether something is allowed, and of a denial no more: what denies writing where no rule allows it
    /// is left out. Of hundreds of places whose writing a shared module denies, a policy opens few.
    pub fn of_grants(policy: &'p Policy) -> Self {
        if is_aliased(policy) {
            return Self::new(policy);
        }
        let grants: Vec<&Pattern> = policy
            .rules
            .iter()
            .filter(|rule| rule.effect == Effect::Allow && rule.verb == Verb::Write)
            .filter_map(|rule| if let Subject::Paths(set) = &rule.subject { Some(&set.include) } else { None })
            .flatten()
            .collect();
        let opened = |pattern: &Pattern| grants.iter().any(|grant| !pattern.begins_apart(grant));
        Self::of(policy, |rule| {
            rule.effect == Effect::Allow
                || rule.verb != Verb::Write
                || matches!(&rule.subject, Subject::Paths(set) if set.include.iter().any(opened))
        })
    }

    fn of(policy: &'p Policy, counts: impl Fn(&Rule) -> bool) -> Self {
        let mut rules = Vec::new();
        let mut sets = Vec::new();
        for (rule, id) in policy.rules.iter().zip((0..).map(RuleId)) {
            if let Subject::Paths(set) = &rule.subject
                && counts(rule)
            {
                rules.push(id);
                sets.push(set);
            }
        }
        let matcher = RefCell::new(Matcher::new(sets));
        Self { policy, rules, matcher, inside: RefCell::default(), aliased: is_aliased(policy) }
    }

    /// Whether a path may be the literal target of a rule that counts: never `false` for one.
    pub fn may_be_named(&self, path: &AbsPath) -> bool {
        self.matcher.borrow().may_be_named(path)
    }

    /// The policy that is decided by.
    pub fn policy(&self) -> &'p Policy {
        self.policy
    }

    /// As [`decide`](super::decide()).
    pub fn decide(&self, access: &Access) -> Verdict {
        let meaning = Meaning { policy: self.policy, inside: |a, d| self.more_specific(a, d) };
        let (Access::Read(path) | Access::Write(path) | Access::Exec(path)) = access else {
            return meaning.decide(access);
        };
        let matching = self.matching(path);
        let of = |verb| matching.iter().copied().filter(|id| self.policy.rule(*id).verb == verb).collect();
        match access {
            Access::Write(_) => meaning.write(of(Verb::Write), || of(Verb::Read)),
            Access::Exec(_) => meaning.exec(of(Verb::Exec), || of(Verb::Read)),
            _ => meaning.read(of(Verb::Read)),
        }
    }

    /// Whether every access at and below one path is decided as its like at and below the other; `false` where that is not plain.
    pub fn says_the_same(&self, one: &AbsPath, other: &AbsPath) -> bool {
        let mut matcher = self.matcher.borrow_mut();
        // A state is all that the patterns have left to match. What has other names is decided by those, too.
        one == other || (!self.aliased && matcher.at(one) == matcher.at(other))
    }

    /// As [`more_specific`](super::more_specific()).
    pub fn more_specific(&self, a: RuleId, d: RuleId) -> bool {
        if let Some(known) = self.inside.borrow().get(&(a, d)) {
            return *known;
        }
        let inside = more_specific(self.policy, a, d);
        self.inside.borrow_mut().insert((a, d), inside);
        inside
    }

    /// All path rules that match, of whichever verb.
    fn matching(&self, path: &AbsPath) -> Vec<RuleId> {
        let mut matcher = self.matcher.borrow_mut();
        let state = matcher.at(path);
        let mut matching: Vec<RuleId> = matcher.accepting(state).iter().map(|set| self.rules[*set as usize]).collect();
        if !self.aliased {
            return matching;
        }
        for alias in self.policy.facts.aliases(path) {
            let state = matcher.at(&alias);
            let denying = matcher.accepting(state).iter().map(|set| self.rules[*set as usize]);
            matching.extend(denying.filter(|id| self.policy.rule(*id).effect != Effect::Allow));
        }
        matching.sort_unstable();
        matching.dedup();
        matching
    }
}

/// A policy that is kept for as long as it is decided by, and may be from several threads: which rule is more specific
/// than which is worked out once, however long the lists are that they are about.
pub struct Kept {
    /// Never changed, so that what is remembered cannot become wrong.
    policy: Policy,
    inside: RwLock<HashMap<(RuleId, RuleId), bool>>,
}

impl Kept {
    pub fn new(policy: Policy) -> Self {
        Self { policy, inside: RwLock::default() }
    }

    /// The policy that is decided by.
    pub fn policy(&self) -> &Policy {
        &self.policy
    }

    /// As [`decide`](super::decide()).
    pub fn decide(&self, access: &Access) -> Verdict {
        Meaning { policy: &self.policy, inside: |a, d| self.more_specific(a, d) }.decide(access)
    }

    fn more_specific(&self, a: RuleId, d: RuleId) -> bool {
        // Whoever panicked in between has left nothing half done: an entry is there or not.
        if let Some(known) = self.inside.read().unwrap_or_else(PoisonError::into_inner).get(&(a, d)) {
            return *known;
        }
        let inside = more_specific(&self.policy, a, d);
        self.inside.write().unwrap_or_else(PoisonError::into_inner).insert((a, d), inside);
        inside
    }
}

fn is_aliased(policy: &Policy) -> bool {
    let mounts = &policy.facts.mounts;
    let again =
        |(index, mount): (usize, &MountFact)| mounts[index + 1..].iter().any(|other| other.device == mount.device);
    mounts.iter().enumerate().any(again)
}
