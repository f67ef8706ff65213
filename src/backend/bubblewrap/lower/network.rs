//! What the plan says of connections, and the rules for which this build has no mechanism on Linux.
//!
//! Connections are redirected where they are made. A port of the loopback is the command's own unless a rule names it as the
//! host's; a rule over all ports would leave the command none.

use super::codes;
use crate::backend::bubblewrap::plan::{Network, Ports};
use crate::diagnostic::Diagnostic;
use crate::ir::{Policy, Rule, Subject};
use crate::sets::address::parse_network;
use crate::sets::peer::Endpoint;
use crate::sets::port::PortSet;
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
    let mut ports: Option<Loopback> = None;
    for rule in allows(Verb::Connect) {
        let Subject::Peers(peers) = &rule.subject else { continue };
        let ports = ports.get_or_insert_default();
        ports.all = ports.all.union(&peers.ports);
        let Endpoint::Addresses(addresses) = &peers.endpoint else { continue };
        let [v4, v6] = [LOOPBACK4, LOOPBACK6].map(|text| parse_network(text).unwrap_or_default());
        let whole = addresses.is_subset(&v4.union(&v6)).is_ok();
        let [v4, v6] = [v4, v6].map(|loopback| !addresses.intersection(&loopback).is_empty());
        if !v4 && !v6 {
            continue;
        }
        if peers.ports.is_all() && whole {
            errors.push(unenforceable(rule, "every port of the loopback at once", "name the ports"));
        } else if peers.ports.is_all() {
            let message =
                "the host's loopback, which this rule covers with every port, is reached through the proxy alone";
            gaps.push(Diagnostic::new(&codes::PROXY_ONLY, message).label(rule.span, "allows connections"));
        } else {
            if v4 {
                ports.v4 = ports.v4.union(&peers.ports);
            }
            if v6 {
                ports.v6 = ports.v6.union(&peers.ports);
            }
        }
    }
    if let Some(rule) = policy.rules.iter().find(|r| r.verb == Verb::Exec && r.effect != Effect::Allow) {
        let message = "a program can still be run from memory, and a script by its interpreter";
        gaps.push(Diagnostic::new(&codes::EXEC_BY_CONTENT, message).label(rule.span, "denies running files"));
    }
    ports.map_or(Network::Loopback, |ports| {
        let ranges = |ports: &PortSet| ports.ranges().map(|range| (*range.start(), *range.end())).collect();
        let (loopback4, loopback6, all) = (ranges(&ports.v4), ranges(&ports.v6), ranges(&ports.all));
        Network::Proxy(Ports { loopback4, loopback6, all })
    })
}

const LOOPBACK4: &str = "127.0.0.0/8";
const LOOPBACK6: &str = "::1/128";

/// The ports of the host's loopback, and of everything.
#[derive(Default)]
struct Loopback {
    v4: PortSet,
    v6: PortSet,
    all: PortSet,
}

fn unenforceable(rule: &Rule, what: &str, help: &str) -> Diagnostic {
    Diagnostic::new(&codes::UNENFORCEABLE, format!("this build cannot enforce `allow {}` on Linux: {what}", rule.verb))
        .label(rule.span, "needs what is not built yet")
        .help(help)
}
