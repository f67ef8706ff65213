//! Directories that are mounted writable although the policy opens only names in them: names that are not there yet, by a glob or
//! one by one. Whoever makes calls in the command's place decides each name, so that nothing more is opened than the policy says;
//! where nobody does, there are no such directories, and what is not there is not granted.

use super::Needs;
use super::instances::instances;
use super::judge::Judge;
use super::tree::Tree;
use crate::backend::bubblewrap::seccomp::Watch;
use crate::ir::{Origin, Policy, Rule, Subject};
use crate::sets::path::{AbsPath, Pattern, Start};
use crate::vocabulary::{Effect, Verb};
use std::collections::BTreeMap;

#[derive(Default)]
pub(super) struct Opened<'p> {
    globs: Vec<&'p Pattern>,
    /// Targets that are missing, by the directory in which something of them would be made first.
    missing: BTreeMap<AbsPath, Vec<&'p Pattern>>,
}

impl<'p> Opened<'p> {
    pub fn new(policy: &'p Policy, needs: &Needs) -> Self {
        let mut opened = Self::default();
        if needs.performs == Watch::Nothing || needs.nest {
            return opened;
        }
        for pattern in policy.rules.iter().flat_map(opening).filter(|pattern| pattern.start == Start::Root) {
            if !pattern.is_literal() {
                opened.globs.push(pattern);
            } else if !policy.facts.nodes.contains_key(&pattern.literal_prefix()) {
                opened.missing.entry(deepest(policy, pattern)).or_default().push(pattern);
            }
        }
        opened
    }

    /// Where such names begin: each is decided by itself.
    pub fn places(&self, policy: &Policy) -> Vec<AbsPath> {
        self.globs.iter().map(|glob| deepest(policy, glob)).chain(self.missing.keys().cloned()).collect()
    }

    /// Whether the policy lets names be made in or below a directory, at no deeper point, that nothing else there may be given.
    pub fn holds(&self, tree: &Tree, at: usize, judge: &Judge<'_>) -> bool {
        let path = &tree.points[at].path;
        let missing = self.missing.get(path).into_iter().flatten();
        self.globs.iter().chain(missing).any(|pattern| {
            instances(pattern, path, judge.fresh()).iter().any(|made| {
                made != path
                    && tree.deepest(made) == at
                    && judge.verdict(Verb::Write, made).allowed
                    && judge.state(made).write
            })
        })
    }
}

/// The patterns by which a rule opens writing. A shipped module names what may be there; what is not, it does not ask for.
fn opening(rule: &Rule) -> &[Pattern] {
    match &rule.subject {
        Subject::Paths(set) if rule.verb == Verb::Write && rule.origin != Origin::Std => {
            if rule.effect == Effect::Allow { &set.include } else { &set.exclude }
        }
        _ => &[],
    }
}

/// The deepest place at or above a pattern's prefix that is there.
fn deepest(policy: &Policy, pattern: &Pattern) -> AbsPath {
    let prefix = pattern.literal_prefix();
    let there = prefix.ancestors().filter(|place| policy.facts.nodes.contains_key(place)).last();
    there.unwrap_or_else(AbsPath::root)
}
