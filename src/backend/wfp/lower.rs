//! [`Policy`] → [`Plan`] for Windows, and what the plan does not hold.
//!
//! Away from a machine: variables stay variables, and of a glob only what it matches by itself is known. Nothing here
//! looks at a disk.

mod files;
mod gaps;
mod held;
mod network;
mod order;
#[cfg(test)]
mod tests;

use super::plan::Plan;
use crate::analysis::permission::{Permission, Prepared};
use crate::backend::gap::Gap;
use crate::diagnostic::Diagnostic;
use crate::ir::Policy;
use crate::vocabulary::Verb;
use std::ops::RangeInclusive;

/// What was asked for beside the policy.
#[derive(Debug, Clone)]
pub struct Needs {
    /// The ports of loopback at which the proxy may be.
    pub proxy_ports: RangeInclusive<u16>,
}

/// Below the range from which Windows gives ports away (49152 and up, RFC 6335 section 6), and assigned to nobody.
pub const PROXY_PORTS: RangeInclusive<u16> = 47080..=47089;

impl Default for Needs {
    fn default() -> Self {
        Self { proxy_ports: PROXY_PORTS }
    }
}

/// A plan and what it cannot hold.
#[derive(Debug, Clone)]
pub struct Lowered {
    pub plan: Plan,
    /// Of the kinds in [`GAPS`](super::GAPS).
    pub gaps: Vec<Gap>,
    /// What the plan holds of the policy's rules about files: those with globs are narrowed to what can be named, or gone.
    pub held: Policy,
}

/// Lowers a policy for Windows; `Err` when it holds a rule that cannot be enforced there at all.
///
/// # Errors
/// One diagnostic for each such rule.
pub fn lower(policy: &Policy, needs: &Needs) -> Result<Lowered, Vec<Diagnostic>> {
    let held = held::held(policy);
    let mut errors = gaps::refused(policy);
    let files = files::Files::new(&held);
    errors.extend(files.errors());
    if !errors.is_empty() {
        return Err(errors);
    }
    let write = Permission::of(policy, Verb::Write);
    let (files, of_nodes) = files.entries(&Prepared::new(&write));
    let plan = Plan { filters: network::filters(policy, needs), files };
    let mut gaps = gaps::gaps(policy, needs);
    gaps.extend(gaps::of_files(policy, &held));
    gaps.extend(of_nodes);
    Ok(Lowered { plan, gaps, held })
}
