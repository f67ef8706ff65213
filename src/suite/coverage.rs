//! Which rules of the policies decided something in some case. Modules of the program are no part of it: they have tests of
//! their own.

use crate::ir::{Origin, Policy, Verdict};
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

impl Coverage {
    /// Adds the rules of a policy, and marks those that made the verdict, if there is one.
    pub fn add(
        &mut self,
        policy: &Policy,
        sources: &Sources,
        verdict: Option<&Verdict>,
        words: &dyn Fn(crate::ir::RuleId) -> String,
    ) {
        for (number, rule) in (0..).zip(&policy.rules) {
            if rule.origin == Origin::Std {
                continue;
            }
            let id = crate::ir::RuleId(number);
            let at = sources.location(rule.span);
            let line = Line { file: at.name, line: at.line, column: at.column, verb: rule.verb };
            let decided = verdict.is_some_and(|verdict| verdict.decisive.contains(&id));
            let entry = self.rules.entry(line).or_insert_with(|| (words(id), false));
            entry.1 |= decided;
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
