//! What a policy means: [`Policy`], [`Access`], and [`decide()`], the one definition that everything else calls or is
//! compared with.
//!
//! Plain data and pure functions. A [`Policy`] may still hold variables; a [`BoundPolicy`] holds none, and the facts of
//! one machine beside its rules.

mod absent;
mod access;
mod decide;
mod decider;
mod facts;
pub mod operation;
mod policy;
pub mod request;
mod rule;
pub mod special;

pub use access::Access;
pub use decide::{Verdict, Why, decide, more_specific};
pub use decider::{Decider, Kept};
pub use facts::{Facts, HardLink, LinkFact, MountFact, Node, NodeKind, is_far};
pub use policy::{
    Assume, BoundPolicy, Expect, FileRules, Ignore, LimitValue, List, Policy, Setting, Suppression, Within,
};
pub use rule::{Origin, Rule, RuleId, Subject, Unset};
