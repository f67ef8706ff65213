//! What some rules decide that would be decided otherwise without them.

use super::{Answer, Study, widened};
use crate::ir::{Access, Policy, RuleId, Subject};
use crate::sets::many::Budget;
use crate::vocabulary::{Effect, Verb};
use std::collections::BTreeSet;

/// What the rules that one target came to (one effect, one verb) decide alone.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Alone {
    /// A shortest access that would be decided otherwise without them.
    Decides(Access),
    /// Nothing: a shortest access of their set that is decided as they say, and would be without them, as all are.
    Covered(Access),
    /// Nothing: a shortest access of their set, of which none is decided as they say.
    Overruled(Access),
    /// Nothing: there is nothing in their set.
    Empty,
    /// The budget does not suffice to know.
    Unknown,
}

impl Alone {
    /// The same in words, of rules of an effect; `shown` spells an access.
    pub fn sentence(&self, effect: Effect, shown: impl Fn(&Access) -> String) -> String {
        let allows = effect == Effect::Allow;
        let (as_it_says, otherwise) = if allows { ("allowed", "denied") } else { ("denied", "allowed") };
        match self {
            Alone::Decides(access) => format!("alone decides, for example, {}", shown(access)),
            Alone::Covered(access) => {
                let shown = shown(access);
                format!("decides nothing alone: all would be {as_it_says} without it, for example {shown}")
            }
            Alone::Overruled(access) => {
                format!("decides nothing: all of it is {otherwise}, for example {}", shown(access))
            }
            Alone::Empty => "decides nothing: its set is empty".to_owned(),
            Alone::Unknown => "what it decides alone is not known: that takes too many steps".to_owned(),
        }
    }
}

/// What becomes of a policy without some of its rules, all of one effect and verb; `without` is that policy.
pub fn alone(policy: &Policy, without: &Policy, rules: &BTreeSet<RuleId>, budget: &mut Budget) -> Alone {
    let Some(first) = rules.first().map(|id| policy.rule(*id)) else { return Alone::Empty };
    let (with, less) = (Study::new(policy), Study::new(without));
    let allows = first.effect == Effect::Allow;
    // What may be read decides about writing and running as well.
    let verbs: &[Verb] = match &first.verb {
        Verb::Read => &[Verb::Read, Verb::Write, Verb::Exec],
        verb => std::slice::from_ref(verb),
    };
    for verb in verbs {
        let (old, new) = if allows { (&less, &with) } else { (&with, &less) };
        match widened(old.whole(), new.whole(), *verb, budget) {
            Answer::Some(access) => return Alone::Decides(access),
            Answer::None => {}
            Answer::Unknown => return Alone::Unknown,
        }
    }
    let look = |permitted: bool, budget: &mut Budget| {
        let one = |subject: &Subject, budget: &mut Budget| {
            if permitted {
                with.whole().permitted(first.verb, subject, budget)
            } else {
                with.whole().denied(first.verb, subject, budget)
            }
        };
        let found = rules.iter().map(|id| one(&policy.rule(*id).subject, budget));
        // Whatever is known is better than that something is not.
        let mut answer = Answer::None;
        for found in found {
            match found {
                Answer::Some(access) => return Answer::Some(access),
                Answer::Unknown => answer = Answer::Unknown,
                Answer::None => {}
            }
        }
        answer
    };
    match look(allows, budget) {
        Answer::Some(access) => Alone::Covered(access),
        Answer::Unknown => Alone::Unknown,
        Answer::None => match look(!allows, budget) {
            Answer::Some(access) => Alone::Overruled(access),
            Answer::None => Alone::Empty,
            Answer::Unknown => Alone::Unknown,
        },
    }
}
