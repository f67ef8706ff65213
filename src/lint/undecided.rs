//! What could not be decided within its budget: never taken for yes.

use crate::diagnostic::Diagnostic;
use crate::diagnostic::codes;
use crate::source::Span;

codes! {
    /// # `undecided`
    ///
    /// ## What it says
    /// A proof needs more steps than it may take, so whether it holds is not known.
    ///
    /// ## Why
    /// Every question about a policy can be decided, but one over many `**` and `*` that overlap can take long. A proof that
    /// was given up is no proof: it stops the policy as one that failed does, and `srt check` ends with a status of its own.
    ///
    /// ## Example
    /// ```policy
    /// srt 1
    /// default read deny
    /// allow read exact $WORKSPACE/**/a*/*/*/*/*/*/*/*/*/*/*/*/*/*/*
    /// allow read exact $WORKSPACE/**/b*/*/*/*/*/*/*/*/*/*/*/*/*/*/*
    /// expect allow read below $WORKSPACE/*/*/*/*/*/*/*/*/*/*/*/*/*/* except $WORKSPACE/**/[!ab]*
    /// ```
    ///
    /// ## Use instead
    /// ```policy
    /// srt 1
    /// default read deny
    /// allow read below $WORKSPACE/*/*/*/*/*/*/*/*/*/*/*/*/*/*
    /// expect allow read below $WORKSPACE/*/*/*/*/*/*/*/*/*/*/*/*/*/* except $WORKSPACE/**/[!ab]*
    /// ```
    pub UNDECIDED = "undecided", Error;
}

/// That a question was given up.
pub fn undecided(what: &str, span: Span) -> Diagnostic {
    Diagnostic::new(&UNDECIDED, format!("{what} is not known: it takes more steps than a proof may"))
        .label(span, "not decided")
        .help("say it of smaller sets, or with fewer `**` and `*` in the rules that meet here")
}
