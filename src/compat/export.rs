//! A policy as settings of `@anthropic-ai/sandbox-runtime`, and what they cannot say of it.
//!
//! Nothing is opened that the policy closes without its being said: what has no counterpart is left out where it opens, and
//! said to stay open where it closes.

use crate::ir::{Policy, Rule, Subject};
use crate::sets::host;
use crate::sets::path::{Pattern, Segment, Start};
use crate::sets::peer::{Endpoint, PeerSet};
use crate::source::Span;
use crate::vocabulary::{Effect, Reach, Verb};
use serde_json::{Value, json};
use std::collections::BTreeSet;

/// What a settings file cannot say.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Lost {
    pub span: Span,
    pub message: String,
    /// Under the settings more is open than under the policy; else less, or the same.
    pub opens: bool,
}

#[derive(Default)]
struct Settings {
    deny_read: Vec<String>,
    allow_read: Vec<String>,
    allow_write: Vec<String>,
    deny_write: Vec<String>,
    allowed: Vec<String>,
    denied: Vec<String>,
    addresses: Vec<String>,
    variables: Vec<String>,
    lost: BTreeSet<Lost>,
}

/// The settings, and the losses in the order of the text.
pub fn settings(policy: &Policy) -> (Value, Vec<Lost>) {
    let mut out = Settings::default();
    if policy.default_read.value != Effect::Allow {
        out.deny_read.push("/".to_owned());
    }
    for rule in &policy.rules {
        match (&rule.subject, rule.verb) {
            (Subject::Paths(set), Verb::Read | Verb::Write) => {
                if !set.exclude.is_empty() {
                    out.lose(rule, "`except` has no counterpart", rule.effect == Effect::Allow);
                }
                for pattern in &set.include {
                    out.path(policy, rule, pattern);
                }
            }
            (Subject::Paths(_), Verb::Exec) => {
                out.lose(rule, "what may be read may be run there", rule.effect != Effect::Allow);
            }
            (Subject::Peers(set), Verb::Connect) => out.peer(policy, rule, set),
            (Subject::Names(set), Verb::Env) => {
                for pattern in &set.include {
                    match pattern {
                        crate::sets::name::Pattern::Literal(name) if rule.effect != Effect::Allow => {
                            out.variables.push(name.clone());
                        }
                        _ => out.lose(
                            rule,
                            "variables are only closed there, each by its name",
                            rule.effect != Effect::Allow,
                        ),
                    }
                }
            }
            _ => out.lose(rule, "nothing of this kind is opened there", rule.effect != Effect::Allow),
        }
    }
    if let Some(default) = &policy.default_env {
        out.say(default.span, "the environment is open there", true);
    }
    for ignore in &policy.ignores {
        out.say(ignore.span, "every refusal is told there", false);
    }
    for setting in policy.set.values() {
        out.say(setting.span, "variables are not set there", false);
    }
    for limit in policy.limits.values() {
        out.say(limit.span, "there are no limits", true);
    }
    let lost = std::mem::take(&mut out.lost);
    (out.json(), lost.into_iter().collect())
}

impl Settings {
    fn say(&mut self, span: Span, message: impl Into<String>, opens: bool) {
        self.lost.insert(Lost { span, message: message.into(), opens });
    }

    fn lose(&mut self, rule: &Rule, message: impl Into<String>, opens: bool) {
        self.say(rule.span, message, opens);
    }

    fn path(&mut self, policy: &Policy, rule: &Rule, pattern: &Pattern) {
        let allow = rule.effect == Effect::Allow;
        let Some(text) = self.spelled(rule, pattern, allow) else { return };
        if pattern.reach != Reach::Tree {
            if allow {
                self.lose(rule, "a path is always a whole tree there, so that this stays closed", false);
                return;
            }
            self.lose(rule, "a path is always a whole tree there, so that all of it is closed", false);
        }
        let inside = |effects: &[Effect], other_inside: bool| {
            policy.rules_of(rule.verb).any(|(_, other)| {
                let (a, b) =
                    if other_inside { (&other.subject, &rule.subject) } else { (&rule.subject, &other.subject) };
                let (Subject::Paths(a), Subject::Paths(b)) = (a, b) else { return false };
                effects.contains(&other.effect) && a.is_inside(b)
            })
        };
        match (rule.verb, allow) {
            // What a `forbid` holds is not opened by it, and must not be there.
            (Verb::Read, true) if inside(&[Effect::Forbid], false) => {}
            (Verb::Read, true) => self.allow_read.push(text),
            (Verb::Read, false) => {
                // What cannot be read cannot be written here; there, each is closed by itself.
                let writable = policy.rules_of(Verb::Write).any(|(_, other)| {
                    let (Subject::Paths(a), Subject::Paths(b)) = (&other.subject, &rule.subject) else { return false };
                    other.effect == Effect::Allow && a.overlap(b).is_some()
                });
                if writable {
                    self.deny_write.push(text.clone());
                }
                self.deny_read.push(text);
            }
            (_, true) => self.allow_write.push(text),
            (_, false) => {
                if rule.effect == Effect::Deny && inside(&[Effect::Allow], true) {
                    self.lose(rule, "an allow does not open it again there", false);
                }
                if !pattern.is_literal() {
                    self.lose(rule, "patterns that close writing are passed over on Linux there", true);
                }
                self.deny_write.push(text);
            }
        }
    }

    /// A pattern as it is written there.
    fn spelled(&mut self, rule: &Rule, pattern: &Pattern, allow: bool) -> Option<String> {
        let special =
            |bytes: &[u8]| bytes.iter().any(|byte| b"*?[]".contains(byte)) || std::str::from_utf8(bytes).is_err();
        let literal = |segment: &Segment| matches!(segment, Segment::Literal(name) if special(name));
        if pattern.segments.iter().any(literal) {
            self.lose(rule, "a name with `*`, `?` or brackets in it cannot be written there", !allow);
            return None;
        }
        let start = match &pattern.start {
            Start::Root => "",
            Start::Drive(_) => return None,
            Start::Variable(name) => match &**name {
                "WORKSPACE" => ".",
                "HOME" => "~",
                "GIT_COMMON_DIR" => "./.git",
                "CONFIG" => "~/.config",
                "CACHE" => "~/.cache",
                "DATA" => "~/.local/share",
                // The run has a place of its own there too.
                "TMP" if allow => return None,
                other => {
                    let message = format!("`${other}` has no counterpart");
                    self.lose(rule, message, !allow);
                    return None;
                }
            },
        };
        let tree = Pattern { start: Start::Root, reach: Reach::Tree, ..pattern.clone() };
        let text = tree.to_string();
        let text = if text.starts_with('/') { text } else { format!("/{text}") };
        Some(match (start, text.as_str()) {
            ("", _) => text,
            (_, "/") => start.to_owned(),
            _ => format!("{start}{text}"),
        })
    }

    fn peer(&mut self, policy: &Policy, rule: &Rule, set: &PeerSet) {
        let allow = rule.effect == Effect::Allow;
        if !set.tcp {
            self.lose(rule, "there is no UDP there", false);
            return;
        }
        let all = set.ports.is_all();
        let ports: Vec<String> = if all {
            vec![String::new()]
        } else {
            let listed: Vec<_> = set.ports.ranges().flatten().take(17).map(|port| format!(":{port}")).collect();
            if listed.len() > 16 {
                self.lose(rule, "a range of ports cannot be written there", !allow);
                return;
            }
            listed
        };
        let strictly =
            |other: &Rule| other.effect == Effect::Allow && other.subject.is_strictly_inside(&rule.subject, rule.verb);
        if rule.effect == Effect::Deny && policy.rules_of(Verb::Connect).any(|(_, other)| strictly(other)) {
            self.lose(rule, "an allow does not open it again there", false);
        }
        let names: Vec<String> = match &set.endpoint {
            Endpoint::Hosts(hosts) => {
                if !hosts.exclude.is_empty() {
                    self.lose(rule, "`except` has no counterpart", allow);
                }
                let mut names = Vec::new();
                for pattern in &hosts.include {
                    let text = pattern.to_string();
                    let plain = !text.strip_prefix("*.").unwrap_or(&text).contains('*');
                    match pattern {
                        host::Pattern::Any if !allow => names.push("*".to_owned()),
                        host::Pattern::Labels { labels, .. } if plain && labels.len() > 1 => names.push(text),
                        _ => self.lose(rule, format!("`{text}` cannot be written there"), !allow),
                    }
                }
                names
            }
            Endpoint::Addresses(addresses) => {
                let mut names = Vec::new();
                for text in addresses.to_string().split(", ") {
                    if !text.contains('/') {
                        names.push(text.to_owned());
                    } else if !allow && all {
                        // It closes names that lead there; by its number nothing is reached there that is not allowed.
                        self.addresses.push(text.replace(['[', ']'], ""));
                    } else {
                        self.lose(rule, "a range of addresses cannot be written there", !allow);
                    }
                }
                names
            }
        };
        for name in names {
            let list = if allow { &mut self.allowed } else { &mut self.denied };
            list.extend(ports.iter().map(|port| format!("{name}{port}")));
        }
    }

    fn json(mut self) -> Value {
        for list in [
            &mut self.deny_read,
            &mut self.allow_read,
            &mut self.allow_write,
            &mut self.deny_write,
            &mut self.allowed,
            &mut self.denied,
            &mut self.addresses,
            &mut self.variables,
        ] {
            let mut seen = BTreeSet::new();
            list.retain(|entry| seen.insert(entry.clone()));
        }
        let mut value = json!({
            "network": { "allowedDomains": self.allowed, "deniedDomains": self.denied },
            "filesystem": {
                "denyRead": self.deny_read,
                "allowRead": self.allow_read,
                "allowWrite": self.allow_write,
                "denyWrite": self.deny_write,
            },
        });
        if !self.addresses.is_empty() {
            value["network"]["deniedResolvedAddresses"] = json!(self.addresses);
        }
        if !self.variables.is_empty() {
            let entry = |name: &String| json!({ "name": name, "mode": "deny" });
            value["credentials"] = json!({ "envVars": self.variables.iter().map(entry).collect::<Vec<_>>() });
        }
        value
    }
}
