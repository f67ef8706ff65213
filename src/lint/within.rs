//! `within`: an obligation that nothing here can prove yet, and that is therefore not met.

use crate::codes;
use crate::diagnostic::Diagnostic;
use crate::ir::Policy;

codes! {
    /// # `within`
    ///
    /// ## What it says
    /// The policy claims to permit nothing that another file does not, and this build cannot prove that.
    ///
    /// ## Why
    /// A claim that nobody checks is worse than none: whoever reads the file relies on it.
    ///
    /// ## Example
    /// ```policy
    /// srt 1
    /// default read deny
    /// within "ceiling.policy"
    /// allow read $WORKSPACE
    /// ```
    ///
    /// ## Use instead
    /// ```policy
    /// srt 1
    /// default read deny
    /// allow read $WORKSPACE
    /// expect deny read ~/.ssh
    /// ```
    pub WITHIN = "within", Error;
}

/// One finding for each obligation.
pub fn check(policy: &Policy) -> Vec<Diagnostic> {
    let finding =
        |path: &str| Diagnostic::new(&WITHIN, format!("this build cannot prove that the policy is within `{path}`"));
    let help = "take the line out, and say by `expect` what has to hold";
    policy.withins.iter().map(|within| finding(&within.path).label(within.span, "not proved").help(help)).collect()
}
