//! An `allow connect` and an `allow listen` that meet on a loopback address and port: no machine can do both.

use super::codes::LOOPBACK_CONFLICT;
use super::subject::{LOCALHOST, blocks};
use crate::diagnostic::Diagnostic;
use crate::ir::{Policy, Rule, Subject};
use crate::sets::address::AddressSet;
use crate::sets::peer::{Endpoint, PeerSet};
use crate::vocabulary::{Effect, Verb};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// Says where the two meet, once a pair of rules.
pub(super) fn check(policy: &Policy, diagnostics: &mut Vec<Diagnostic>) {
    let loopback = blocks(&LOCALHOST);
    let of = |verb| policy.rules.iter().filter(move |rule| rule.effect == Effect::Allow && rule.verb == verb);
    let connects: Vec<_> = of(Verb::Connect).filter_map(|rule| on(rule, &loopback)).collect();
    for listen in of(Verb::Listen).filter_map(|rule| on(rule, &loopback)) {
        for connect in &connects {
            let protocols = (listen.peers.tcp && connect.peers.tcp) || (listen.peers.udp && connect.peers.udp);
            if !protocols || listen.peers.ports.overlap(&connect.peers.ports).is_none() {
                continue;
            }
            if listen.addresses.overlap(&connect.addresses).is_none() {
                continue;
            }
            let message = "connecting and listening are both allowed on one loopback address and port";
            let diagnostic = Diagnostic::new(&LOOPBACK_CONFLICT, message).label(listen.rule.span, "listens");
            let diagnostic = diagnostic.label(connect.rule.span, "connects to the host's service");
            diagnostics.push(diagnostic.help("choose another port for one of them"));
        }
    }
}

struct Meeting<'a> {
    rule: &'a Rule,
    peers: &'a PeerSet,
    addresses: AddressSet,
}

/// The loopback part of a rule.
fn on<'a>(rule: &'a Rule, loopback: &AddressSet) -> Option<Meeting<'a>> {
    let Subject::Peers(peers) = &rule.subject else { return None };
    let Endpoint::Addresses(set) = &peers.endpoint else { return None };
    let every = |address| set.contains(address);
    // Listening on the unspecified address is listening on each one of that family.
    let v4 = rule.verb == Verb::Listen && every(IpAddr::V4(Ipv4Addr::UNSPECIFIED));
    let v6 = rule.verb == Verb::Listen && every(IpAddr::V6(Ipv6Addr::UNSPECIFIED));
    let mut set = set.clone();
    if v4 || v6 {
        set = set.union(&blocks(&LOCALHOST[usize::from(!v4)..=usize::from(v6)]));
    }
    let addresses = set.intersection(loopback);
    (!addresses.is_empty()).then_some(Meeting { rule, peers, addresses })
}
