//! What the compiler finds in a policy beyond whether it can be read: one file a finding.
//!
//! Knows the meaning alone: no text, no machine, no target.

mod broad_grant;
mod conflict;
mod control_socket;
mod dead_rule;
mod expectation;
mod granted;
mod hard_link;
mod metadata_address;
mod mixed_script;
mod mount_inside;
mod name_collision;
mod overlap;
mod place;
mod placement;
mod policy_writable;
mod redundant_rule;
mod reopens;
mod shell_config;
mod start_up_file;
mod suppression;
mod symlink;
#[cfg(test)]
mod tests;
mod undecided;
mod wildcard_apex;
mod within;
mod writable_path;
mod write_and_run;

use crate::analysis::{Study, short};
use crate::diagnostic::{Code, Diagnostic};
use crate::ir::{Access, Origin, Policy, Rule};
use crate::sets::host::Table;
use crate::vocabulary::System;
use std::borrow::Cow;
use std::collections::HashSet;

pub use placement::assumed_place;
pub use suppression::{UNUSED_SUPPRESSION, suppress, unused};
pub use undecided::UNDECIDED;

/// Every code raised here.
pub static CODES: &[&[&Code]] = &[
    broad_grant::CODES,
    conflict::CODES,
    control_socket::CODES,
    dead_rule::CODES,
    expectation::CODES,
    hard_link::CODES,
    metadata_address::CODES,
    mixed_script::CODES,
    mount_inside::CODES,
    name_collision::CODES,
    overlap::CODES,
    placement::CODES,
    policy_writable::CODES,
    redundant_rule::CODES,
    reopens::CODES,
    start_up_file::CODES,
    suppression::CODES,
    symlink::CODES,
    undecided::CODES,
    wildcard_apex::CODES,
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

impl Wanted {
    /// What is studied: of the errors only the obligations ask about hosts.
    fn short(self, policy: &Policy) -> Cow<'_, Policy> {
        let asked = !self.errors_alone || !policy.expects.is_empty() || !policy.withins.is_empty();
        if asked { short(policy) } else { Cow::Borrowed(policy) }
    }
}

/// Everything found in a policy, suppressed or not.
pub fn run(policy: &Policy, wanted: Wanted) -> Vec<Diagnostic> {
    let short = wanted.short(policy);
    let study = Study::new(&short);
    let mut said = proofs_of(&study);
    let mut found = by_rule(policy, &study, wanted);
    if !wanted.errors_alone {
        found.extend(precedence(&study));
    }
    said.extend(once_each(found));
    said
}

/// What is found for a system that the policy is not bound on: how its rules stand to each other is said for one system.
pub fn elsewhere(policy: &Policy, wanted: Wanted) -> Vec<Diagnostic> {
    let short = wanted.short(policy);
    let study = Study::new(&short);
    let mut said = proofs_of(&study);
    said.extend(once_each(by_rule(policy, &study, wanted)));
    said
}

/// The obligations that hold at the first place which a variable is assumed to have, and not at another one; of a policy
/// that is not bound.
pub fn placements(policy: &Policy) -> Vec<Diagnostic> {
    placement::check(policy)
}

/// What is found in rules each by itself.
fn by_rule(policy: &Policy, study: &Study<'_>, wanted: Wanted) -> Vec<Diagnostic> {
    let granted = granted::Granted::new(study);
    let mut found = control_socket::check(&granted);
    found.extend(metadata_address::check(policy));
    found.extend(policy_writable::check(policy));
    let lists = shell_config::Lists::new(&granted, wanted.shell_config);
    found.extend(start_up_file::check(&granted, &lists, wanted.errors_alone));
    found.extend(writable_path::check(&granted, &lists, wanted.errors_alone));
    if wanted.errors_alone {
        found.extend(granted.unknown());
        return found;
    }
    found.extend(broad_grant::check(policy));
    found.extend(write_and_run::check(&granted));
    found.extend(granted.unknown());
    found.extend(mixed_script::check(policy));
    found.extend(name_collision::check(policy));
    found.extend(symlink::check(policy));
    found.extend(hard_link::check(policy));
    found.extend(mount_inside::check(policy));
    found.extend(wildcard_apex::check(policy));
    found
}

/// How the rules of a policy stand to each other.
fn precedence(study: &Study<'_>) -> Vec<Diagnostic> {
    let worths = dead_rule::worths(study);
    let mut found = dead_rule::check(study, &worths);
    found.extend(redundant_rule::check(study, &worths));
    found.extend(conflict::check(study));
    found.extend(reopens::check(study, &worths));
    found.extend(overlap::check(study));
    found
}

/// The obligations of a policy that are not met, or not known to be. Variables need no value: each is a place apart then.
pub fn proofs(policy: &Policy) -> Vec<Diagnostic> {
    if policy.expects.is_empty() && policy.withins.is_empty() {
        return Vec::new();
    }
    proofs_of(&Study::new(&short(policy)))
}

fn proofs_of(study: &Study<'_>) -> Vec<Diagnostic> {
    let mut found = expectation::check(study);
    found.extend(within::check(study));
    found
}

/// One finding of a kind for a target: `{a,b}` is as many rules, of which each says the same.
fn once_each(found: Vec<Diagnostic>) -> Vec<Diagnostic> {
    let mut seen = HashSet::new();
    found.into_iter().filter(|said| said.span().is_none_or(|span| seen.insert((said.code.name, span)))).collect()
}

/// ` (and 812 more lines of ads.txt)`: what is said of one entry of a list holds for more.
fn more_lines(table: &Table, more: usize) -> String {
    match more {
        0 => String::new(),
        1 => format!(" (and 1 more line of `{}`)", table.file()),
        _ => format!(" (and {more} more lines of `{}`)", table.file()),
    }
}

/// ` (ads.txt:12)`: the line by which a rule holds an access, where its set is a list in a file.
fn listed(policy: &Policy, rule: &Rule, access: &Access) -> String {
    policy.listed(rule, access).map_or_else(String::new, |(file, line)| format!(" ({file}:{line})"))
}

/// Whether a rule is one of those that are looked at: no embedded module's.
fn is_given(rule: &Rule) -> bool {
    rule.origin != Origin::Std
}
