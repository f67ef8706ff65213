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
mod shell_config;
mod start_up_file;
mod suppression;
#[cfg(test)]
mod tests;
mod within;
mod writable_path;
mod write_and_run;

use crate::diagnostic::{Code, Diagnostic};
use crate::ir::{Origin, Policy, Rule};
use crate::vocabulary::System;

use std::collections::HashSet;

pub use suppression::{suppress, unused};

/// Every code raised here.
pub static CODES: &[&[&Code]] = &[
    broad_grant::CODES,
    control_socket::CODES,
    expectation::CODES,
    metadata_address::CODES,
    policy_writable::CODES,
    start_up_file::CODES,
    suppression::CODES,
    within::CODES,
    writable_path::CODES,
    write_and_run::CODES,
];

/// Errors that a comment may accept: they say what the policy hands over, not that it cannot be held.
pub static ESCAPES: &[&Code] = &[
    &control_socket::CONTROL_SOCKET,
    &metadata_address::METADATA_ADDRESS,
    &policy_writable::POLICY_WRITABLE,
    &start_up_file::START_UP_FILE,
    &writable_path::WRITABLE_PATH,
];

/// What is looked for.
#[derive(Debug, Clone, Copy)]
pub struct Wanted {
    /// Nothing that is no error is wanted, and what only that needs is not worked out.
    pub errors_alone: bool,
    /// The rules of `std/shell-config` on a system, variables unbound.
    pub shell_config: fn(System) -> Vec<Rule>,
}

/// Everything found in a policy, suppressed or not.
pub fn run(policy: &Policy, wanted: Wanted) -> Vec<Diagnostic> {
    let mut found = expectation::check(policy);
    found.extend(within::check(policy));
    found.extend(control_socket::check(policy));
    found.extend(metadata_address::check(policy));
    found.extend(policy_writable::check(policy));
    let lists = shell_config::Lists::new(policy, wanted.shell_config);
    found.extend(start_up_file::check(policy, &lists, wanted.errors_alone));
    found.extend(writable_path::check(policy, &lists, wanted.errors_alone));
    if wanted.errors_alone {
        return once_each(found);
    }
    found.extend(broad_grant::check(policy));
    found.extend(write_and_run::check(policy));
    once_each(found)
}

/// One finding of a kind for a target: `{a,b}` is as many rules, of which each says the same.
fn once_each(found: Vec<Diagnostic>) -> Vec<Diagnostic> {
    let mut seen = HashSet::new();
    found.into_iter().filter(|said| said.span().is_none_or(|span| seen.insert((said.code.name, span)))).collect()
}

/// Whether a rule is one of those that are looked at: no embedded module's.
fn is_given(rule: &Rule) -> bool {
    rule.origin != Origin::Std
}
