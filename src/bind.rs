//! [`Policy`] + [`Host`] → [`BoundPolicy`]: variables within their assumptions, link chains, mount aliases, and one walk
//! for all globs.
//!
//! What a rule's set *is* changes in two ways only: variables become their values, and link aliases are added.
//! Expansions of globs are facts beside the rules.

use crate::diagnostic::Diagnostic;
use crate::host::Host;
use crate::ir::{BoundPolicy, Policy};

/// Binds a policy to a machine. A bound policy must not be used if one of the diagnostics is an error.
pub fn bind(policy: Policy, host: &dyn Host) -> (Option<BoundPolicy>, Vec<Diagnostic>) {
    let _ = (policy, host);
    todo!()
}
