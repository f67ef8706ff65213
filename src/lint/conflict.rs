//! An `allow` and a `deny` of the same set.

use super::{is_given, listed};
use crate::analysis::{Answer, Budget, Study};
use crate::diagnostic::Diagnostic;
use crate::diagnostic::codes;
use crate::ir::RuleId;
use crate::vocabulary::Effect;

codes! {
    /// # `conflict`
    ///
    /// ## What it says
    /// One rule allows what another denies, the same set to the last access, and the denial holds.
    ///
    /// ## Why
    /// Two people, or two files, mean opposite things, and neither rule says which. Order plays no part: of two rules that
    /// are equally specific, the one that denies wins.
    ///
    /// ## Example
    /// ```policy
    /// srt 1
    /// default read deny
    /// deny read $WORKSPACE/src
    /// allow read $WORKSPACE/src/**
    /// ```
    ///
    /// ## Use instead
    /// ```policy
    /// srt 1
    /// default read deny
    /// deny read $WORKSPACE/src
    /// allow read $WORKSPACE
    /// ```
    pub CONFLICT = "conflict", Warning;
}

const STEPS: u64 = 1_000_000;

/// One finding for each `allow` and what denies the same; not where both stand in embedded modules.
pub(super) fn check(study: &Study<'_>) -> Vec<Diagnostic> {
    let policy = study.policy();
    let mut found = Vec::new();
    for (rule, id) in policy.rules.iter().zip((0..).map(RuleId)).filter(|(rule, _)| rule.effect == Effect::Allow) {
        for deny in study.same_as(id).into_iter().map(|deny| policy.rule(deny)) {
            if !is_given(rule) && !is_given(deny) {
                continue;
            }
            let message = format!("one rule allows what another denies, the same set of {} accesses", rule.verb);
            let effect = deny.effect;
            let access = match study.whole().denied(rule.verb, &rule.subject, &mut Budget::new(STEPS)) {
                Answer::Some(access) => Some(access),
                Answer::None | Answer::Unknown => None,
            };
            let line = |rule| access.as_ref().map(|access| listed(policy, rule, access)).unwrap_or_default();
            let mut diagnostic = Diagnostic::new(&CONFLICT, message)
                .label(rule.span, format!("allowed here, to no effect{}", line(rule)))
                .label(deny.span, format!("`{effect}` here{}", line(deny)))
                .help("take one of the two out, or make the `allow` more specific");
            diagnostic.witness = access.map(|access| access.to_string());
            found.push(diagnostic);
        }
    }
    found
}
