//! [`BoundPolicy`] → [`Plan`].

use super::Plan;
use crate::diagnostic::Diagnostic;
use crate::ir::BoundPolicy;

/// What was asked for beside the policy.
#[derive(Debug, Clone, Copy, Default)]
pub struct Needs {
    /// `--nest`: namespaces and mounts inside are permitted.
    pub nest: bool,
}

/// A plan and what it cannot hold.
#[derive(Debug, Clone)]
pub struct Lowered {
    pub plan: Plan,
    /// Gaps: stricter ones are notes, looser ones errors.
    pub gaps: Vec<Diagnostic>,
}

/// Lowers a bound policy; `Err` when it holds a rule that cannot be enforced on Linux at all.
///
/// # Errors
/// One diagnostic for each such rule.
pub fn lower(policy: &BoundPolicy, needs: Needs) -> Result<Lowered, Vec<Diagnostic>> {
    let _ = (policy, needs);
    todo!()
}
