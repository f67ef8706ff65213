//! What happened at run time: JSON lines for machines, a summary for people.
//!
//! An event names the rule that made it by file, line and text; it decides nothing.

use serde::Serialize;

/// One thing that was refused, or (where asked for) done.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(tag = "type", rename_all = "kebab-case")]
pub enum Event {
    Violation(Violation),
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Violation {
    /// RFC 3339, UTC.
    pub timestamp: String,
    /// The verb, or the operation where it is known.
    pub operation: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub path: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub host: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub port: Option<u16>,
    pub outcome: Outcome,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub rule: Option<RuleText>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub because: Option<String>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Outcome {
    /// It did not happen.
    Refused,
    /// The kernel decides after this was said.
    Predicted,
}

/// A rule as people find it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct RuleText {
    pub file: String,
    pub line: u32,
    pub text: String,
}

/// Where events go. Never blocks whoever reports one.
pub trait Sink: Send + Sync {
    fn report(&self, event: Event);
}
