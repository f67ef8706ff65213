//! The reference meaning of a policy ("Meaning" in the book's language chapter).

use super::{Access, Policy, RuleId};

/// What is decided about one access, and why.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Verdict {
    pub allowed: bool,
    pub why: Why,
    /// The rules that made it: the deciding one first.
    pub decisive: Vec<RuleId>,
    /// Every rule that matches, the decisive ones included.
    pub matching: Vec<RuleId>,
}

/// Which step of the meaning decided.
#[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Why {
    /// A `forbid` matches.
    Forbidden,
    /// A `deny` matches that no more specific `allow` opens.
    Denied,
    /// An `allow` matches, and every `deny` that matches is opened by a more specific `allow`.
    Allowed,
    /// No rule matches.
    Default,
    /// A write or exec of a path whose read a rule denies.
    ReadDenied,
    /// The name is allowed, but its address is special or private and no rule allows that.
    Special,
}

/// Decides one access.
pub fn decide(policy: &Policy, access: &Access) -> Verdict {
    let _ = (policy, access);
    todo!()
}
