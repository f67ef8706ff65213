//! What the compiler finds in a policy beyond whether it can be read: one file a finding.
//!
//! Knows the meaning alone: no text, no machine, no target.

mod expectation;
mod suppression;
mod within;

use crate::diagnostic::{Code, Diagnostic};
use crate::ir::Policy;

pub use suppression::{suppress, unused};

/// Every code raised here.
pub static CODES: &[&[&Code]] = &[expectation::CODES, suppression::CODES, within::CODES];

/// Everything found in a policy, suppressed or not.
pub fn run(policy: &Policy) -> Vec<Diagnostic> {
    let mut found = expectation::check(policy);
    found.extend(within::check(policy));
    found
}
