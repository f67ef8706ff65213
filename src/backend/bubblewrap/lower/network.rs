//! What the plan says of connections to other hosts, and the rules for which this build has no mechanism on Linux.
//!
//! Connections are redirected where they are made. A port of the loopback is the command's own unless a rule names it as the
//! host's; a rule over all ports would leave the command none.

use super::codes;
use crate::backend::bubblewrap::plan::{Network, Ports};
use crate::diagnostic::Diagnostic;
use crate::ir::{Access, Policy, Rule, Subject, decide};
use crate::sets::address::parse_network;
use crate::sets::peer::Endpoint;
use crate::sets::port::PortSet;
use crate::vocabulary::{Effect, Verb};
use std::collections::BTreeSet;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};

pub(super) fn lower(policy: &Policy, gaps: &mut Vec<Diagnostic>, errors: &mut Vec<Diagnostic>) -> Network {
    let allows = |verb: Verb| policy.rules.iter().filter(move |r| r.effect == Effect::Allow && r.verb == verb);
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

/// The most addresses and ports that are listened at: each is a socket of its own.
const MOST: usize = 1024;

/// Where the command may be reached from outside: of what the rules name, the addresses that this host has, or that stand
/// there alone.
pub(super) fn listen(policy: &Policy, errors: &mut Vec<Diagnostic>) -> Vec<SocketAddr> {
    let mut places = BTreeSet::new();
    for rule in policy.rules.iter().filter(|rule| rule.effect == Effect::Allow && rule.verb == Verb::Listen) {
        let Subject::Peers(peers) = &rule.subject else { continue };
        if peers.udp {
            errors.push(unenforceable(rule, "UDP", "drop `/udp`, or leave the rule out"));
            continue;
        }
        let Endpoint::Addresses(addresses) = &peers.endpoint else { continue };
        let named = addresses.ranges().filter(|(low, high)| low == high).map(|(low, _)| low);
        let own = policy.facts.own_addresses.iter().map(IpAddr::to_canonical);
        let here = [IpAddr::V4(Ipv4Addr::LOCALHOST), IpAddr::V6(Ipv6Addr::LOCALHOST)].into_iter().chain(own);
        // Of the unspecified address each one; and one of a link alone needs that link's name.
        let possible = |address: &IpAddr| match address {
            IpAddr::V4(address) => !address.is_unspecified(),
            IpAddr::V6(address) => !address.is_unspecified() && !address.is_unicast_link_local(),
        };
        let here: BTreeSet<IpAddr> = here.chain(named).filter(possible).collect();
        let ports: usize = peers.ports.ranges().map(|range| range.len()).sum();
        if ports > MOST {
            let what = format!("listening at more than {MOST} addresses and ports");
            errors.push(unenforceable(rule, &what, "name the ports"));
            continue;
        }
        for port in peers.ports.ranges().flatten() {
            let allowed = here.iter().filter(|address| {
                // Another rule may open the rest: of this one, what it holds.
                let held = addresses.contains(**address) || addresses.contains(unspecified(**address));
                held && decide(policy, &Access::Listen { address: **address, port }).allowed
            });
            places.extend(allowed.map(|address| SocketAddr::new(*address, port)));
        }
        if places.len() > MOST {
            let what = format!("listening at more than {MOST} addresses and ports");
            errors.push(unenforceable(rule, &what, "name fewer"));
            return Vec::new();
        }
    }
    places.into_iter().collect()
}

fn unspecified(like: IpAddr) -> IpAddr {
    if like.is_ipv4() { Ipv4Addr::UNSPECIFIED.into() } else { Ipv6Addr::UNSPECIFIED.into() }
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
