//! What the plan says of connections, and the rules for which this build has no mechanism on Linux.

use super::codes;
use crate::backend::bubblewrap::plan::Network;
use crate::diagnostic::Diagnostic;
use crate::ir::{Policy, Rule, Subject};
use crate::vocabulary::{Effect, Verb};

pub(super) fn lower(policy: &Policy, gaps: &mut Vec<Diagnostic>, errors: &mut Vec<Diagnostic>) -> Network {
    let allows = |verb: Verb| policy.rules.iter().filter(move |r| r.effect == Effect::Allow && r.verb == verb);
    for rule in allows(Verb::Socket) {
        errors.push(unenforceable(rule, "connecting to a unix socket", "leave the rule out"));
    }
    for rule in allows(Verb::Listen) {
        errors.push(unenforceable(rule, "being reached from outside the sandbox", "leave the rule out"));
    }
    for rule in allows(Verb::Connect) {
        if matches!(&rule.subject, Subject::Peers(peers) if peers.udp) {
            errors.push(unenforceable(rule, "UDP", "drop `/udp`, or leave the rule out"));
        }
    }
    let connects: Vec<&Rule> = allows(Verb::Connect).collect();
    if let Some(first) = connects.first() {
        let others = match connects.len() - 1 {
            0 => String::new(),
            1 => " (and by one more rule)".to_owned(),
            more => format!(" (and by {more} more rules)"),
        };
        let message = format!("what this rule allows{others} is reached through the proxy alone");
        gaps.push(Diagnostic::new(&codes::PROXY_ONLY, message).label(first.span, "allows connections"));
    }
    if let Some(rule) = policy.rules.iter().find(|r| r.verb == Verb::Exec && r.effect != Effect::Allow) {
        let message = "a program can still be run from memory, and a script by its interpreter";
        gaps.push(Diagnostic::new(&codes::EXEC_BY_CONTENT, message).label(rule.span, "denies running files"));
    }
    if connects.is_empty() { Network::Loopback } else { Network::Proxy }
}

fn unenforceable(rule: &Rule, what: &str, help: &str) -> Diagnostic {
    Diagnostic::new(&codes::UNENFORCEABLE, format!("this build cannot enforce `allow {}` on Linux: {what}", rule.verb))
        .label(rule.span, "needs what is not built yet")
        .help(help)
}
