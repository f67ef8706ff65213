//! A rule in words: what people see of it beside its file and line.

use sandbox_runtime::event::RuleText;
use sandbox_runtime::ir::{Access, BoundPolicy, Policy, Rule};
use sandbox_runtime::proxy::Rules;
use sandbox_runtime::source::Sources;
use std::fmt::Write as _;

/// `deny read ~/.ssh`: the one effect, verb and target of the rule, out of a statement that may list many.
pub fn words(rule: &Rule, sources: &Sources) -> String {
    rule.words(sources)
}

/// ` (ads.txt:8812)`: the entry of a list by which the rule matches an access.
pub fn entry(policy: &Policy, rule: &Rule, access: &Access) -> String {
    policy.listed(rule, access).map_or_else(String::new, |(file, line)| format!(" ({file}:{line})"))
}

/// The same, with the reason it gives.
pub fn with_reason(rule: &Rule, sources: &Sources) -> String {
    let mut text = words(rule, sources);
    if let Some(because) = &rule.because {
        // Writing into a string does not fail.
        let _ = write!(text, " because {because:?}");
    }
    text
}

/// A rule for programs, under the words that its answer has for it.
pub fn json(rule: &Rule, sources: &Sources, text: &str) -> serde_json::Value {
    let location = sources.location(rule.span);
    serde_json::json!({
        "file": location.name,
        "line": location.line,
        "text": text,
        "effect": rule.effect,
        "because": rule.because,
    })
}

/// The policy for whatever decides at run time, with the words by which people find its rules.
pub fn rules(policy: BoundPolicy, sources: Sources) -> Rules {
    let texts = move |rule: &Rule| {
        let location = sources.location(rule.span);
        RuleText { file: location.name, line: location.line, text: words(rule, &sources) }
    };
    Rules { policy, texts: Box::new(texts) }
}
