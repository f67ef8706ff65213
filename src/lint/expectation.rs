//! `expect`: every access of its set is decided as it says.

use super::listed;
use super::undecided::undecided;
use crate::analysis::{Answer, Budget, Study};
use crate::diagnostic::Diagnostic;
use crate::diagnostic::codes;
use crate::ir::{Expect, Subject, decide};

codes! {
    /// # `expectation`
    ///
    /// ## What it says
    /// An `expect` statement does not hold: some access of its set is decided the other way. The shortest one is shown.
    ///
    /// ## Why
    /// An expectation says what a reviewer relies on. A policy that breaks one runs nothing.
    ///
    /// ## Example
    /// ```policy
    /// srt 1
    /// default read deny
    /// allow read $WORKSPACE
    /// expect deny read $WORKSPACE/.git
    /// ```
    ///
    /// ## Use instead
    /// ```policy
    /// srt 1
    /// default read deny
    /// allow read $WORKSPACE
    /// deny read $WORKSPACE/.git
    /// expect deny read $WORKSPACE/.git
    /// ```
    pub EXPECTATION = "expectation", Error;
}

/// Steps for one proof.
const STEPS: u64 = 4_000_000;

/// One finding for each expectation that does not hold, or of which it is not known.
pub fn check(study: &Study<'_>) -> Vec<Diagnostic> {
    study.policy().expects.iter().filter_map(|expect| one(study, expect)).collect()
}

fn one(study: &Study<'_>, expect: &Expect) -> Option<Diagnostic> {
    if is_empty(&expect.subject) {
        return Some(
            Diagnostic::new(&EXPECTATION, "this expectation is about nothing: its set is empty")
                .label(expect.span, "nothing is left of this")
                .help("take the `except` away, or the whole line"),
        );
    }
    let (policy, budget) = (study.policy(), &mut Budget::new(STEPS));
    let otherwise = if expect.allow {
        study.whole().denied(expect.verb, &expect.subject, budget)
    } else {
        study.whole().permitted(expect.verb, &expect.subject, budget)
    };
    let access = match otherwise {
        Answer::None => return None,
        Answer::Some(access) => access,
        Answer::Unknown => return Some(undecided("whether this expectation holds", expect.span)),
    };
    let verdict = decide(policy, &access);
    let (expected, found) = if expect.allow { ("allowed", "denied") } else { ("denied", "allowed") };
    let mut diagnostic = Diagnostic::new(&EXPECTATION, format!("expected to be {expected}, and it is {found}"))
        .label(expect.span, "this does not hold")
        .witness(access.to_string());
    for rule in verdict.decisive.iter().map(|id| policy.rule(*id)) {
        diagnostic = diagnostic.label(rule.span, format!("{found} by this{}", listed(policy, rule, &access)));
    }
    if verdict.decisive.is_empty()
        && let Some(default) = policy.default_of(expect.verb)
    {
        diagnostic = diagnostic.label(default, format!("{found} by this default"));
    }
    let verb = expect.verb;
    let help = match (expect.allow, verdict.decisive.is_empty()) {
        (true, true) => format!("no rule allows it: add an `allow {verb}` for it"),
        (true, false) => format!("add a more specific `allow {verb}`, or take the rule that denies it away"),
        (false, true) => format!("the default permits it: add a `deny {verb}` for it"),
        (false, false) => format!("add a `deny {verb}` inside that rule, or make the rule narrower"),
    };
    Some(diagnostic.help(help))
}

fn is_empty(subject: &Subject) -> bool {
    match subject {
        Subject::Paths(set) => set.is_empty(),
        Subject::Peers(set) => set.is_empty(),
        Subject::Names(set) => set.is_empty(),
    }
}
