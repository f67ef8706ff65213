//! Which rules of the policies decided something in some case. Modules of the program are no part of it: they have tests of
//! their own.

use crate::ir::{Origin, Policy, Rule, RuleId, Verdict};
use crate::source::Sources;
use crate::vocabulary::Verb;
use std::collections::BTreeMap;

/// A rule where people see it: its file, line and column, and the verb, of which a line may have many.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Line {
    pub file: String,
    pub line: u32,
    pub column: u32,
    pub verb: Verb,
}

/// The rules that there are, each with its words and whether it decided something.
#[derive(Debug, Default)]
pub struct Coverage {
    rules: BTreeMap<Line, (String, bool)>,
}

fn line(rule: &Rule, sources: &Sources) -> Line {
    let at = sources.location(rule.span);
    Line { file: at.name, line: at.line, column: at.column, verb: rule.verb }
}

impl Coverage {
    /// Adds the rules of a policy, in the words that people see.
    pub fn add(&mut self, policy: &Policy, sources: &Sources, words: &dyn Fn(RuleId) -> String) {
        for (number, rule) in (0..).zip(&policy.rules) {
            if rule.origin != Origin::Std {
                self.rules.entry(line(rule, sources)).or_insert_with(|| (words(RuleId(number)), false));
            }
        }
    }

    /// Marks those of its rules that made a verdict.
    pub fn mark(&mut self, policy: &Policy, sources: &Sources, verdict: &Verdict) {
        for id in &verdict.decisive {
            if let Some((_, decided)) = self.rules.get_mut(&line(policy.rule(*id), sources)) {
                *decided = true;
            }
        }
    }

    /// How many rules decided something, and how many there are.
    pub fn counts(&self) -> (usize, usize) {
        (self.rules.values().filter(|(_, decided)| *decided).count(), self.rules.len())
    }

    /// In percent, rounded down; all of none is everything.
    pub fn percent(&self) -> usize {
        let (decided, all) = self.counts();
        (decided * 100).checked_div(all).unwrap_or(100)
    }

    /// The rules that decided nothing.
    pub fn untried(&self) -> impl Iterator<Item = (&Line, &str)> {
        self.rules.iter().filter(|(_, (_, decided))| !decided).map(|(line, (words, _))| (line, words.as_str()))
    }
}
