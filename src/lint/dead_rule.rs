//! An `allow` that decides nothing, since all of it is denied.

use super::{is_given, listed};
use crate::analysis::{Answer, Budget, Study, Worth};
use crate::diagnostic::codes;
use crate::diagnostic::{Diagnostic, Fix};
use crate::ir::{Access, RuleId};
use crate::source::Span;
use crate::vocabulary::Effect;
use std::collections::HashSet;

codes! {
    /// # `dead-rule`
    ///
    /// ## What it says
    /// An `allow` decides nothing: every access in its set is denied by other rules, which are named.
    ///
    /// ## Why
    /// Whoever wrote it meant something to be allowed, and it is not. A `deny` is opened only by an `allow` that is strictly
    /// inside it; a `forbid` by none.
    ///
    /// ## Example
    /// ```policy
    /// srt 1
    /// default read deny
    /// allow read $WORKSPACE
    /// forbid read $WORKSPACE/src
    /// allow read $WORKSPACE/src/generated
    /// ```
    ///
    /// ## Use instead
    /// ```policy
    /// srt 1
    /// default read deny
    /// allow read $WORKSPACE
    /// forbid read $WORKSPACE/src except $WORKSPACE/src/generated
    /// ```
    pub DEAD_RULE = "dead-rule", Warning;
}

/// Steps for one rule.
const STEPS: u64 = 1_000_000;

/// What each `allow` is worth that no embedded module brings; of those it is not known for, nothing is said.
pub(super) fn worths(study: &Study<'_>) -> Vec<(RuleId, Worth)> {
    let rules = (0..).map(RuleId).zip(&study.policy().rules);
    let allows = rules.filter(|(_, rule)| rule.effect == Effect::Allow && is_given(rule));
    let worth = |(id, _)| match study.worth(id, &mut Budget::new(STEPS)) {
        Answer::Some(worth) => Some((id, worth)),
        Answer::None | Answer::Unknown => None,
    };
    allows.filter_map(worth).collect()
}

/// One finding for each `allow` that is dead, and not for being denied as a whole in the same words.
pub(super) fn check(study: &Study<'_>, worths: &[(RuleId, Worth)]) -> Vec<Diagnostic> {
    let dead = worths.iter().filter(|(_, worth)| *worth == Worth::Dead);
    dead.filter_map(|(id, _)| Some(one(study, *id)?.fix(removal(study, worths, *id)))).collect()
}

/// To take out what a rule is written as: where it is several, under several verbs or by braces, each of them is for nothing.
pub(super) fn removal(study: &Study<'_>, worths: &[(RuleId, Worth)], id: RuleId) -> Option<Fix> {
    let span: Span = study.policy().rule(id).span;
    let idle = worths.iter().filter(|(_, worth)| matches!(worth, Worth::Dead | Worth::Redundant(_)));
    let idle: HashSet<RuleId> = idle.map(|(id, _)| *id).collect();
    let all = (0..).map(RuleId).zip(&study.policy().rules);
    let mut written = all.filter(|(_, rule)| rule.span == span);
    written.all(|(id, _)| idle.contains(&id)).then_some(Fix::Remove(span))
}

fn one(study: &Study<'_>, id: RuleId) -> Option<Diagnostic> {
    let policy = study.policy();
    let rule = policy.rule(id);
    if !study.same_as(id).is_empty() {
        return None;
    }
    let Some(access) = study.denied_of_dead(id, &mut Budget::new(STEPS)) else {
        // Not even an access that it is about: its set is empty.
        let diagnostic = Diagnostic::new(&DEAD_RULE, "this `allow` is about nothing: its set is empty");
        let help = "take the `except` away, or the whole rule";
        return Some(diagnostic.label(rule.span, "nothing is left of this").help(help));
    };
    let message = format!("this `allow {}` decides nothing: all of it is denied", rule.verb);
    let mut diagnostic = Diagnostic::new(&DEAD_RULE, message)
        .label(rule.span, format!("decides nothing{}", listed(policy, rule, &access)));
    for deny in covering(study, &access).into_iter().map(|deny| policy.rule(deny)) {
        diagnostic = diagnostic.label(deny.span, format!("denied by this{}", listed(policy, deny, &access)));
    }
    let help = "take it out, or write what denies it so that this is strictly inside of it";
    Some(diagnostic.help(help).witness(access.to_string()))
}

/// The rules that deny an access.
fn covering(study: &Study<'_>, access: &Access) -> Vec<RuleId> {
    study.decide(access).decisive
}
