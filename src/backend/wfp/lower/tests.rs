#![allow(clippy::unwrap_used)]

use super::*;
use crate::backend::wfp::{Action, Family, Layer, Reason};
use crate::ir::{Access, Origin, Rule, Setting, Subject, Unset, decide};
use crate::sets::address::{AddressSet, parse_network};
use crate::sets::peer::{Endpoint, PeerSet, Protocol};
use crate::sets::port::PortSet;
use crate::source::{Sources, Span};
use crate::vocabulary::{Effect, System, Verb};

/// Rules about connections: an effect, networks, ports.
fn policy(rules: &[(Effect, &[&str], &[u16])]) -> Policy {
    let span = Span::new(Sources::default().add("test", "text"), 0..4);
    let mut policy = Policy::new(System::Windows, Setting { value: Effect::Deny, span });
    policy.rules = rules
        .iter()
        .map(|(effect, networks, ports)| {
            let addresses: AddressSet = networks.iter().map(|network| parse_network(network).unwrap()).collect();
            let ports = if ports.is_empty() {
                PortSet::all()
            } else {
                PortSet::from_ranges(ports.iter().map(|port| *port..=*port))
            };
            Rule {
                effect: *effect,
                verb: Verb::Connect,
                subject: Subject::Peers(PeerSet {
                    endpoint: Endpoint::Addresses(addresses),
                    tcp: true,
                    udp: false,
                    ports,
                }),
                because: None,
                unset: Unset::Refuse,
                span,
                origin: Origin::Given,
            }
        })
        .collect();
    policy
}

/// The filters of rules at the layer of connections.
fn ruled(policy: &Policy) -> Vec<(u64, Action, usize)> {
    let filters = lower(policy, &Needs::default()).unwrap().plan.filters;
    let own = filters.into_iter().filter(|filter| {
        (filter.layer, filter.family) == (Layer::Connect, Family::V4) && matches!(filter.reason, Reason::Rules(_))
    });
    own.map(|filter| (filter.weight, filter.action, filter.addresses.len())).collect()
}

#[test]
fn one_rule_is_one_filter() {
    let policy = policy(&[
        (Effect::Allow, &["10.0.0.0/8"], &[]),
        (Effect::Deny, &["10.1.0.0/16"], &[]),
        (Effect::Allow, &["10.1.2.3"], &[443]),
    ]);
    assert_eq!(ruled(&policy), [(3, Action::Permit, 1), (2, Action::Block, 1), (1, Action::Permit, 1)]);
}

#[test]
fn a_knot_is_replaced_by_what_it_permits() {
    let policy = policy(&[
        (Effect::Allow, &["10.0.0.0/8"], &[80, 443]),
        (Effect::Deny, &["10.0.0.0/8"], &[]),
        (Effect::Allow, &["10.1.0.0/16", "11.0.0.0/16"], &[80]),
        (Effect::Deny, &["0.0.0.0/0"], &[80]),
    ]);
    // Each denial is opened by another allow.
    let address = "10.1.0.1".parse().unwrap();
    let access = Access::Connect { name: None, address, port: 80, protocol: Protocol::Tcp };
    assert!(decide(&policy, &access).allowed);
    let found = ruled(&policy);
    assert!(found.iter().filter(|(_, action, _)| *action == Action::Block).all(|(weight, ..)| *weight == 1));
    assert!(found.iter().filter(|(_, action, _)| *action == Action::Permit).all(|(weight, ..)| *weight == 2));
}

#[test]
fn a_policy_without_connections_has_no_way_to_the_proxy() {
    let found = |policy: &Policy| {
        let filters = lower(policy, &Needs::default()).unwrap().plan.filters;
        filters.iter().filter(|filter| filter.reason == Reason::Proxy).count()
    };
    assert_eq!(found(&policy(&[])), 0);
    assert_eq!(found(&policy(&[(Effect::Deny, &["0.0.0.0/0"], &[])])), 0);
    assert_eq!(found(&policy(&[(Effect::Allow, &["10.0.0.1"], &[])])), 2);
}
