//! Of the rules whose tries told nothing: whether the command can make some name that the mounts permit and the policy does not,
//! out of all that they speak of.
//!
//! Exact, and long beside a try: so nothing is asked where no rule is left that speaks of what can be made.

use super::{Findings, Looser, both_ways};
use crate::analysis::permission::{Permission, Prepared, excess};
use crate::analysis::{Answer, Budget, Kind, Member};
use crate::backend::bubblewrap::lower::cover::Cover;
use crate::backend::bubblewrap::lower::judge::Judge;
use crate::backend::bubblewrap::lower::mounts::Layout;
use crate::backend::bubblewrap::lower::tree::Tree;
use crate::ir::{Facts, Rule, RuleId, Subject};
use crate::sets::path::{PathSet, Pattern};
use crate::vocabulary::{Reach, Verb};

/// Steps for one question, which takes a few thousand.
const STEPS: u64 = 10_000_000;

/// The rules, and what is known of each.
#[derive(Default)]
pub(super) struct Asked<'a> {
    pub rules: Vec<Speaks<'a>>,
}

pub(super) struct Speaks<'a> {
    pub rule: &'a Rule,
    pub id: RuleId,
    /// A comment accepts what would be said of it.
    pub is_accepted: bool,
    /// It was said of it.
    pub is_told: bool,
    /// Nothing was, and it speaks of names that the command may make.
    pub is_open: bool,
}

impl Speaks<'_> {
    /// The names by which mounts may permit more than the policy: what is taken away, under each name of its place, and what is below
    /// that which is opened for itself alone.
    fn names(&self, facts: &Facts) -> Vec<Subject> {
        let Subject::Paths(set) = &self.rule.subject else { return Vec::new() };
        let (takes_away, opens) = both_ways(self.rule, set);
        let elsewhere = facts.elsewhere_of(self.id).flat_map(|set| &set.include);
        let taken = takes_away.iter().chain(elsewhere).filter(|pattern| facts.is_absent(pattern));
        let taken = taken.map(|pattern| facts.absent(pattern));
        let below = opens.iter().flat_map(|pattern| facts.below_absent(pattern));
        taken.chain(below).map(Subject::Paths).collect()
    }
}

impl<'a> Asked<'a> {
    /// Tells what is found of a verb, apart from what was found of reading.
    pub fn ask(&mut self, verb: Verb, tree: &Tree, layout: &Layout, judge: &Judge<'a>, findings: &mut Findings<'a>) {
        let is_own = |one: &Speaks<'_>| one.rule.verb == verb;
        if !self.rules.iter().any(|one| is_own(one) && one.is_open && !findings.are_settled(one.rule)) {
            return;
        }
        let (made, said) = (makeable(verb, tree, layout), Permission::apart(judge.policy, verb));
        let (made, said) = (Prepared::new(&made), Prepared::new(&said));
        let own = self.rules.iter_mut().filter(|one| is_own(one));
        let mut rules: Vec<_> = own.map(|one| (one.names(&judge.policy.facts), one)).collect();
        let is_known = |one: &Speaks<'_>| one.is_told || (one.is_accepted && findings.are_unwanted(one.rule));
        let mut known: Vec<bool> = rules.iter().map(|(_, one)| is_known(one)).collect();
        loop {
            let outside = rules.iter().zip(&known).filter(|(_, known)| **known);
            let outside: Vec<&Subject> = outside.flat_map(|((names, _), _)| names).collect();
            let found = match excess(&made, Some(&said), None, &outside, &mut Budget::new(STEPS)) {
                Answer::None => return,
                Answer::Some(Member::Path(path)) => Some(path),
                // Not known: as if there were one of each.
                _ => None,
            };
            let holds = |names: &Subject| match (names, &found) {
                (Subject::Paths(set), Some(path)) => set.contains(path),
                _ => true,
            };
            let holding = (0..rules.len()).filter(|at| !known[*at] && rules[*at].0.iter().any(holds));
            // What a comment accepts is not said of another.
            let Some(at) = holding.min_by_key(|at| !rules[*at].1.is_accepted) else {
                return;
            };
            let one = &mut *rules[at].1;
            if !findings.are_settled(one.rule) {
                let witness = found.or_else(|| one.rule.file_patterns().next().map(Pattern::literal_prefix));
                if let Some(witness) = witness {
                    findings.tell(one.rule, Looser::Inside(witness));
                }
                one.is_told = true;
            }
            known[at] = true;
        }
    }
}

/// Where the command can make names, and what it may do with them by the mounts.
fn makeable(verb: Verb, tree: &Tree, layout: &Layout) -> Permission {
    let permits = |at: usize| match layout.covers[at] {
        Cover::Host { write, exec } | Cover::Private { write, exec } => write && (exec || verb != Verb::Exec),
        _ => false,
    };
    let mut roots: Vec<Option<usize>> = vec![None; tree.points.len()];
    let mut places: Vec<PathSet> = Vec::new();
    for (at, point) in tree.points.iter().enumerate() {
        let around = roots[point.parent].filter(|_| at != 0);
        match (permits(at), around) {
            // What is there is held by itself; the host's is not there in what is the run's own.
            (true, Some(place)) => {
                let is_own = matches!(layout.covers[at], Cover::Private { .. });
                let reach = if is_own && point.node.is_some() { Reach::Tree } else { Reach::Exact };
                places[place].exclude.push(Pattern::literal(&point.path, reach));
            }
            (true, None) => places.push(PathSet::from(Pattern::literal(&point.path, Reach::Below))),
            (false, Some(place)) => places[place].exclude.push(Pattern::literal(&point.path, Reach::Tree)),
            (false, None) => {}
        }
        roots[at] = permits(at).then(|| around.unwrap_or(places.len() - 1));
    }
    Permission { grants: places.into_iter().map(Subject::Paths).collect(), ..Permission::none(Kind::Paths) }
}
