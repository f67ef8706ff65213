//! Exact questions about whole policies: is there an access in a set that a policy permits, or denies, and is there one that
//! a policy permits and another does not? The answer is a shortest such access, that there is none, or that it is not known.
//!
//! `ir::decide` stays the definition: whatever is found here is decided so by it. Paths and names are searched segment by
//! segment, see `sets::many`; addresses, ports and protocols are cut into the pieces that rules tell apart. A budget counts
//! steps; past it nothing is claimed.

mod alone;
mod condense;
mod layer;
mod objects;
mod pairs;
mod peers;
pub mod permission;
mod spread;
mod worth;

use crate::ir::{Access, Decider, Policy, RuleId, Subject, Verdict};
use crate::sets::many::Space;
use crate::vocabulary::{Effect, Verb};
use layer::Layer;
use std::cell::OnceCell;

pub use crate::sets::many::{Budget, Exhausted, Kind, Member};
pub use alone::{Alone, alone};
pub use condense::{condensed, short};
pub use layer::openers;
pub use objects::Cause;
pub use permission::Permission;
pub use worth::Worth;

/// What is known about a question.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Answer<T> {
    /// There is none.
    None,
    /// A shortest one.
    Some(T),
    /// The budget does not suffice, or the answer is about something that has no concrete form.
    Unknown,
}

impl<T> Answer<T> {
    fn of(found: Result<Option<T>, Exhausted>) -> Self {
        match found {
            Ok(Some(found)) => Answer::Some(found),
            Ok(None) => Answer::None,
            Err(Exhausted) => Answer::Unknown,
        }
    }
}

/// A policy prepared for questions: its rules as trees, and which of them opens which, each verb's once it is asked about.
pub struct Study<'p> {
    policy: &'p Policy,
    layers: [OnceCell<Layer<'p>>; Verb::ALL.len()],
    addresses: [OnceCell<peers::Addresses>; 2],
    /// Those of paths, and those of hosts.
    variables: [OnceCell<Vec<&'p str>>; 2],
    named: OnceCell<peers::Named<'p>>,
    address_worth: [OnceCell<peers::AddressWorth>; 2],
    decider: OnceCell<Decider<'p>>,
}

impl<'p> Study<'p> {
    pub fn new(policy: &'p Policy) -> Self {
        Self {
            policy,
            layers: Default::default(),
            addresses: Default::default(),
            variables: Default::default(),
            named: OnceCell::new(),
            address_worth: Default::default(),
            decider: OnceCell::new(),
        }
    }

    /// The policy that is asked about.
    pub fn policy(&self) -> &'p Policy {
        self.policy
    }

    /// As [`decide`](crate::ir::decide()), for many accesses.
    pub fn decide(&self, access: &Access) -> Verdict {
        self.decider.get_or_init(|| Decider::new(self.policy)).decide(access)
    }

    /// All rules.
    pub fn whole(&self) -> View<'_, 'p> {
        View { study: self, without: None }
    }

    /// All rules but one.
    pub fn without(&self, rule: RuleId) -> View<'_, 'p> {
        View { study: self, without: Some(rule) }
    }

    /// What paths or names there are: where a rule names a variable, it has a place.
    fn space(&self, kind: Kind) -> Space<'p> {
        let variables = self.variables[usize::from(kind == Kind::Hosts)].get_or_init(|| {
            let rules = self.policy.rules.iter();
            let mut variables: Vec<&'p str> = rules.flat_map(|rule| layer::variables(&rule.subject, kind)).collect();
            variables.sort_unstable();
            variables.dedup();
            variables
        });
        let variables = if kind == Kind::Names { Vec::new() } else { variables.clone() };
        Space { kind, variables, absent: self.policy.absent.as_deref().into_iter().collect() }
    }

    /// The rules of a verb over paths or names; of `connect` those over host names.
    fn layer(&self, verb: Verb) -> &Layer<'p> {
        let at = Verb::ALL.iter().position(|other| *other == verb).unwrap_or_default();
        self.layers[at].get_or_init(|| Layer::new(self.policy, verb))
    }
}

/// A policy, or one without some rule of it.
#[derive(Clone, Copy)]
pub struct View<'s, 'p> {
    study: &'s Study<'p>,
    without: Option<RuleId>,
}

impl View<'_, '_> {
    /// A shortest access of the verb in a set that is permitted. Of host names, every address is meant that is neither
    /// special nor private.
    pub fn permitted(&self, verb: Verb, within: &Subject, budget: &mut Budget) -> Answer<Access> {
        Answer::of(match verb {
            Verb::Connect | Verb::Listen => peers::decided(*self, verb, within, true, budget),
            _ => objects::decided(*self, verb, within, true, budget),
        })
    }

    /// A shortest access of the verb in a set that is denied.
    pub fn denied(&self, verb: Verb, within: &Subject, budget: &mut Budget) -> Answer<Access> {
        Answer::of(match verb {
            Verb::Connect | Verb::Listen => peers::decided(*self, verb, within, false, budget),
            _ => objects::decided(*self, verb, within, false, budget),
        })
    }

    /// The allow that this view lacks and the other one has, where that is all the difference.
    fn is_less(&self, other: &View<'_, '_>) -> Option<RuleId> {
        let same = std::ptr::eq(self.study.policy, other.study.policy) && other.without.is_none();
        self.without.filter(|rule| same && self.study.policy.rule(*rule).effect == Effect::Allow)
    }

    fn live(&self, rule: RuleId) -> bool {
        self.without != Some(rule)
    }
}

/// A shortest access in a set that the policy permits.
pub fn permitted(policy: &Policy, verb: Verb, within: &Subject, budget: &mut Budget) -> Answer<Access> {
    Study::new(policy).whole().permitted(verb, within, budget)
}

/// A shortest access in a set that the policy denies.
pub fn denied(policy: &Policy, verb: Verb, within: &Subject, budget: &mut Budget) -> Answer<Access> {
    Study::new(policy).whole().denied(verb, within, budget)
}

/// A shortest access that the new policy permits and the old one does not.
pub fn difference(old: &Policy, new: &Policy, verb: Verb, budget: &mut Budget) -> Answer<Access> {
    let (old, new) = (Study::new(old), Study::new(new));
    widened(old.whole(), new.whole(), verb, budget)
}

/// A shortest access that one view permits and another does not.
pub fn widened(old: View<'_, '_>, new: View<'_, '_>, verb: Verb, budget: &mut Budget) -> Answer<Access> {
    Answer::of(match verb {
        Verb::Connect | Verb::Listen => peers::widened(old, new, verb, budget),
        _ => objects::widened(old, new, verb, budget),
    })
}

/// For each thing that two views do not have in common, a shortest access that the new one permits for it and the old one
/// does not; nothing for what makes no difference.
///
/// # Errors
/// When the budget does not suffice to know.
pub fn changes(
    old: View<'_, '_>,
    new: View<'_, '_>,
    verb: Verb,
    budget: &mut Budget,
) -> Result<Vec<(Cause, Access)>, Exhausted> {
    match verb {
        Verb::Connect | Verb::Listen => {
            let changes = peers::changes(old, new, verb, budget)?;
            Ok(changes.into_iter().map(|(cause, (_, access))| (cause, access)).collect())
        }
        _ => objects::changes(old, new, verb, false, budget),
    }
}
