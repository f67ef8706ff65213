//! What stands once in a policy, however many files say it.

use super::codes::SET_CONFLICT;
use crate::diagnostic::Diagnostic;
use crate::ir::{LimitValue, Policy, Setting};
use crate::vocabulary::LimitKind;

/// Adds a `set`; two different values for a name are an error.
pub(super) fn set(policy: &mut Policy, name: String, setting: Setting<String>, diagnostics: &mut Vec<Diagnostic>) {
    match policy.set.get(&name) {
        None => {
            policy.set.insert(name, setting);
        }
        Some(before) if before.value == setting.value => {}
        Some(before) => {
            let message = format!("`{name}` is set to two different values");
            let diagnostic = Diagnostic::new(&SET_CONFLICT, message).label(setting.span, "to this here");
            let diagnostic = diagnostic.label(before.span, "to that here");
            diagnostics.push(diagnostic.help("take one of the two out"));
        }
    }
}

/// Adds a `limit`; the smallest of a kind holds.
pub(super) fn limit(policy: &mut Policy, kind: LimitKind, limit: LimitValue) {
    if policy.limits.get(&kind).is_none_or(|before| limit.value < before.value) {
        policy.limits.insert(kind, limit);
    }
}
