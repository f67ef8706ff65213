//! Suites: what a policy is expected to decide, access by access, as YAML beside it.
//!
//! Reads a text and judges verdicts; which policy a suite is about is read and bound by whoever runs it.

mod coverage;
mod place;

pub use coverage::{Coverage, Line};

use crate::ir::{Access, Policy, RuleId, Verdict, Why};
use crate::source::Sources;
use crate::vocabulary::System;
use place::Step;
use serde::Deserialize;
use std::collections::BTreeMap;

/// A whole file.
#[derive(Debug, Clone)]
pub struct Suite {
    pub cases: Vec<Case>,
}

/// One access, and what is expected of it.
#[derive(Debug, Clone)]
pub struct Case {
    /// Its own name, or the access in words.
    pub name: String,
    /// Where it stands: line and column, from one.
    pub place: (u32, u32),
    /// Policy files, relative to the suite's.
    pub policies: Vec<String>,
    pub system: System,
    pub variables: BTreeMap<String, String>,
    /// The verb and the target, as on a command line.
    pub access: (String, String),
    pub allow: bool,
    /// The rule that is expected to decide: its words, its line, or `FILE:LINE`; `default` for none.
    pub rule: Option<String>,
    /// Why it is expected.
    pub reason: Option<String>,
}

/// Why a text is no suite.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
pub struct Error {
    pub message: String,
    /// Line and column, from one.
    pub place: Option<(u32, u32)>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct RawSuite {
    policy: Option<OneOrMany>,
    system: Option<System>,
    #[serde(default)]
    variables: BTreeMap<String, String>,
    cases: Vec<RawCase>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct RawCase {
    name: Option<String>,
    policy: Option<OneOrMany>,
    system: Option<System>,
    #[serde(default)]
    variables: BTreeMap<String, String>,
    access: Option<String>,
    expect: Option<Expected>,
    allow: Option<String>,
    deny: Option<String>,
    rule: Option<Rule>,
    reason: Option<String>,
}

#[derive(Deserialize, Clone)]
#[serde(untagged)]
enum OneOrMany {
    One(String),
    Many(Vec<String>),
}

/// A line alone is a number.
#[derive(Deserialize)]
#[serde(untagged)]
enum Rule {
    Line(u32),
    Words(String),
}

#[derive(Deserialize, Clone, Copy)]
#[serde(rename_all = "lowercase")]
enum Expected {
    Allow,
    Deny,
}

impl OneOrMany {
    fn all(self) -> Vec<String> {
        match self {
            OneOrMany::One(one) => vec![one],
            OneOrMany::Many(many) => many,
        }
    }
}

/// Reads a suite.
///
/// # Errors
/// What is wrong first, and where.
pub fn parse(text: &str) -> Result<Suite, Error> {
    let raw: RawSuite = serde_yaml::from_str(text).map_err(|error| place::error(text, &error))?;
    if raw.cases.is_empty() {
        let place = place::of(text, &[Step::Key("cases")]);
        return Err(Error { message: "a suite without cases tries nothing".to_owned(), place });
    }
    let places = place::of_each(text, "cases", raw.cases.len());
    let mut cases = Vec::new();
    for (case, place) in raw.cases.into_iter().zip(places) {
        let wrong = |message: &str| Error { message: message.to_owned(), place: Some(place) };
        let (access, allow) = match (case.access, case.expect, case.allow, case.deny) {
            (Some(access), Some(expected), None, None) => (access, matches!(expected, Expected::Allow)),
            (None, None, Some(access), None) => (access, true),
            (None, None, None, Some(access)) => (access, false),
            _ => return Err(wrong("a case has `allow: ACCESS`, or `deny: ACCESS`, or `access` and `expect`")),
        };
        let Some((verb, target)) = access.trim().split_once(char::is_whitespace) else {
            return Err(wrong("an access is a verb and a target, as in `read ~/.ssh`"));
        };
        let policies = case.policy.or_else(|| raw.policy.clone()).map(OneOrMany::all).unwrap_or_default();
        if policies.is_empty() {
            return Err(wrong("no policy is named: add `policy: FILE` to the suite or to the case"));
        }
        let mut variables = raw.variables.clone();
        variables.extend(case.variables);
        cases.push(Case {
            name: case.name.unwrap_or_else(|| format!("{} {access}", if allow { "allow" } else { "deny" })),
            place,
            policies,
            system: case.system.or(raw.system).unwrap_or(System::Linux),
            variables,
            access: (verb.to_owned(), target.trim().to_owned()),
            allow,
            rule: case.rule.map(|rule| match rule {
                Rule::Line(line) => line.to_string(),
                Rule::Words(words) => words,
            }),
            reason: case.reason,
        });
    }
    Ok(Suite { cases })
}

/// What is wrong with a verdict, in a sentence; `None` if it is as the case expects.
///
/// `words` gives a rule in the words that people see.
pub fn judge(
    case: &Case,
    policy: &Policy,
    sources: &Sources,
    access: &Access,
    verdict: &Verdict,
    words: &dyn Fn(RuleId) -> String,
) -> Option<String> {
    let decided = if verdict.allowed { "allowed" } else { "denied" };
    let by = by(policy, sources, verdict, words);
    if verdict.allowed != case.allow {
        let expected = if case.allow { "allowed" } else { "denied" };
        return Some(format!("`{access}` is {decided}, not {expected}: {by}"));
    }
    let expected = case.rule.as_ref()?;
    let named = |id: &RuleId| {
        let location = sources.location(policy.rule(*id).span);
        let line = location.line.to_string();
        let at = format!("{}:{line}", location.name);
        *expected == words(*id) || *expected == line || *expected == at || at.ends_with(&format!("/{expected}"))
    };
    let default = expected == "default" && matches!(verdict.why, Why::Default);
    if default || verdict.decisive.iter().any(named) {
        return None;
    }
    Some(format!("`{access}` is {decided}, but not by `{expected}`: {by}"))
}

fn by(policy: &Policy, sources: &Sources, verdict: &Verdict, words: &dyn Fn(RuleId) -> String) -> String {
    let rule = |id: &RuleId| format!("{} {}", sources.location(policy.rule(*id).span), words(*id));
    let rules: Vec<_> = verdict.decisive.iter().map(rule).collect();
    match verdict.why {
        Why::Default if rules.is_empty() => "no rule matches".to_owned(),
        Why::ReadDenied => format!("reading it is denied by {}", rules.join(", ")),
        Why::Special => "only a rule about addresses opens where it leads".to_owned(),
        _ => rules.join(", "),
    }
}
