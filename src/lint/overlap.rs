//! A `deny` that takes part of an `allow` it is not inside of.

use super::{is_given, listed};
use crate::analysis::{Answer, Budget, Study};
use crate::diagnostic::Diagnostic;
use crate::diagnostic::codes;
use crate::ir::RuleId;
use crate::vocabulary::Effect;

codes! {
    /// # `overlap`
    ///
    /// ## What it says
    /// A rule that denies and one that allows have accesses in common, and neither is inside the other: what they share is
    /// denied. One such `allow` is named for each rule that denies.
    ///
    /// ## Why
    /// It is often meant (`deny read **/.env` beside any tree), and sometimes not: the `allow` is no exception to the
    /// `deny`, though part of it looks like one.
    ///
    /// ## Example
    /// ```policy
    /// srt 1
    /// default read deny
    /// allow read $WORKSPACE/src/**/fixtures
    /// deny read $WORKSPACE/src/**/secret
    /// ```
    ///
    /// ## Use instead
    /// ```policy
    /// srt 1
    /// default read deny
    /// allow read $WORKSPACE/src/**/fixtures
    /// deny read $WORKSPACE/src/**/fixtures/**/secret
    /// ```
    pub OVERLAP = "overlap", Note;
}

const STEPS: u64 = 1_000_000;

/// One finding for each rule that denies a part of some `allow`, both of them no embedded module's.
pub(super) fn check(study: &Study<'_>) -> Vec<Diagnostic> {
    let policy = study.policy();
    let given = |id: RuleId| is_given(policy.rule(id));
    let mut found = Vec::new();
    for (rule, id) in policy.rules.iter().zip((0..).map(RuleId)).filter(|(rule, _)| rule.effect != Effect::Allow) {
        if !is_given(rule) {
            continue;
        }
        let Answer::Some((allow, access)) = study.overlap(id, given, &mut Budget::new(STEPS)) else { continue };
        let (effect, allow) = (rule.effect, policy.rule(allow));
        let message =
            format!("this `{effect} {}` takes a part of an `allow`, and neither is inside the other", rule.verb);
        found.push(
            Diagnostic::new(&OVERLAP, message)
                .label(rule.span, format!("what they share is denied{}", listed(policy, rule, &access)))
                .label(allow.span, format!("allowed here otherwise{}", listed(policy, allow, &access)))
                .help("write the `deny` inside the `allow`, or the `allow` inside the `deny`, if one is meant as the exception")
                .witness(access.to_string()),
        );
    }
    found
}
