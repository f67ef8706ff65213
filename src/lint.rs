//! What the compiler finds in a policy beyond whether it can be read: one file a finding.
//!
//! Knows the meaning alone: no text, no machine, no target.

mod broad_grant;
mod control_socket;
mod expectation;
mod granted;
mod metadata_address;
mod place;
mod policy_writable;
mod suppression;
#[cfg(test)]
mod tests;
mod within;
mod write_and_run;

use crate::diagnostic::{Code, Diagnostic};
use crate::ir::{Origin, Policy, Rule};

pub use suppression::{suppress, unused};

/// Every code raised here.
pub static CODES: &[&[&Code]] = &[
    broad_grant::CODES,
    control_socket::CODES,
    expectation::CODES,
    metadata_address::CODES,
    policy_writable::CODES,
    suppression::CODES,
    within::CODES,
    write_and_run::CODES,
];

/// Errors that a comment may accept: they say what the policy hands over, not that it cannot be held.
pub static ESCAPES: &[&Code] =
    &[&control_socket::CONTROL_SOCKET, &metadata_address::METADATA_ADDRESS, &policy_writable::POLICY_WRITABLE];

/// What is looked for.
#[derive(Debug, Clone, Copy, Default)]
pub struct Wanted {
    /// Nothing that is no error is wanted, and what only that needs is not worked out.
    pub errors_alone: bool,
}

/// Everything found in a policy, suppressed or not.
pub fn run(policy: &Policy, wanted: Wanted) -> Vec<Diagnostic> {
    let mut found = expectation::check(policy);
    found.extend(within::check(policy));
    found.extend(control_socket::check(policy));
    found.extend(metadata_address::check(policy));
    found.extend(policy_writable::check(policy));
    if wanted.errors_alone {
        return found;
    }
    found.extend(broad_grant::check(policy));
    found.extend(write_and_run::check(policy));
    found
}

/// Whether a rule is one of those that are looked at: no embedded module's.
fn is_given(rule: &Rule) -> bool {
    rule.origin != Origin::Std
}
