//! An `allow` without which nothing would change.

use super::dead_rule::removal;
use super::listed;
use crate::analysis::{Study, Worth};
use crate::diagnostic::codes;
use crate::diagnostic::{Diagnostic, Label};
use crate::ir::{Access, RuleId};
use crate::vocabulary::Effect;
use std::collections::HashSet;

codes! {
    /// # `redundant-rule`
    ///
    /// ## What it says
    /// An `allow` changes nothing: everything it permits would be permitted without it, by the rules that are named or by
    /// the default. It is not said of a `deny` or a `forbid`: what is denied twice is still denied when one of them goes.
    ///
    /// ## Why
    /// Who takes it out to close something finds that nothing closes.
    ///
    /// ## Example
    /// ```policy
    /// srt 1
    /// default read deny
    /// allow read $WORKSPACE
    /// allow read $WORKSPACE/src
    /// ```
    ///
    /// ## Use instead
    /// ```policy
    /// srt 1
    /// default read deny
    /// allow read $WORKSPACE
    /// ```
    pub REDUNDANT_RULE = "redundant-rule", Note;
}

/// One finding for each `allow` whose removal changes nothing.
pub(super) fn check(study: &Study<'_>, worths: &[(RuleId, Worth)]) -> Vec<Diagnostic> {
    let policy = study.policy();
    let redundant = worths.iter().filter_map(|(id, worth)| match worth {
        Worth::Redundant(access) => Some((*id, access)),
        Worth::Dead | Worth::Needed(_) => None,
    });
    // Of several verbs over one target it is enough that one of them is needed.
    let needed = worths.iter().filter(|(_, worth)| matches!(worth, Worth::Needed(_)));
    let needed: HashSet<_> = needed.map(|(id, _)| policy.rule(*id).span).collect();
    let redundant = redundant.filter(|(id, _)| !needed.contains(&policy.rule(*id).span));
    let one = |(id, access): (RuleId, &Access)| {
        let rule = policy.rule(id);
        let message = format!("nothing changes without this `allow {}`", rule.verb);
        let mut diagnostic = Diagnostic::new(&REDUNDANT_RULE, message)
            .label(rule.span, format!("adds nothing{}", listed(policy, rule, access)));
        let others = study.decide(access).matching.into_iter().filter(|other| *other != id);
        let mut others = others.filter(|other| policy.rule(*other).effect == Effect::Allow).peekable();
        let help = if others.peek().is_some() {
            "take it out, or the wider rule"
        } else {
            "take it out: the default permits it"
        };
        let (span, line) = match others.next().map(|other| policy.rule(other)) {
            Some(other) => (Some(other.span), listed(policy, other, access)),
            None => (policy.default_of(access.words().0), String::new()),
        };
        let text = format!("permitted by this as well{line}");
        diagnostic.labels.extend(span.map(|span| Label { span, text }));
        diagnostic.help(help).witness(access.to_string()).fix(removal(study, worths, id))
    };
    redundant.map(one).collect()
}
