//! The statement that would allow what was refused, if it were added: proposed only after `decide` has agreed.

use super::refusal::Refused;
use crate::ir::{Access, Origin, Policy, Rule, Subject, Unset, decide};
use crate::sets::address::{AddressSet, parse_network};
use crate::sets::host::{HostSet, Pattern};
use crate::sets::peer::{Endpoint, PeerSet};
use crate::sets::port::PortSet;
use crate::vocabulary::{Effect, Verb};
use std::net::{IpAddr, Ipv6Addr};

/// The shortest addition to `policy` that allows `access`, the one that was refused; `None` where one statement is not
/// enough.
pub fn remedy(policy: &Policy, refused: &Refused, access: &Access) -> Option<String> {
    let mut amended = policy.clone();
    let before = amended.rules.len();
    for (target, endpoints) in candidates(refused) {
        amended.rules.truncate(before);
        amended.rules.extend(endpoints.into_iter().map(|endpoint| allow(policy, endpoint, refused.port)));
        if decide(&amended, access).allowed {
            return Some(format!("allow connect {target}:{}", refused.port));
        }
    }
    None
}

/// Targets without their port, and what each means; the one that opens least comes first.
fn candidates(refused: &Refused) -> Vec<(String, Vec<Endpoint>)> {
    let mut candidates = Vec::new();
    if let Some(name) = &refused.name {
        let set = HostSet { include: vec![Pattern::literal(name)], exclude: Vec::new() };
        candidates.push((name.to_string(), vec![Endpoint::Hosts(set)]));
    }
    if let Some(address) = refused.address {
        if refused.name.is_none() && refused.host.parse::<IpAddr>().is_err() {
            // `localhost` means both families, in a rule as in a request.
            if let Ok(v4) = parse_network("127.0.0.0/8") {
                let v6 = AddressSet::from(IpAddr::V6(Ipv6Addr::LOCALHOST));
                candidates.push((refused.host.clone(), vec![Endpoint::Addresses(v4), Endpoint::Addresses(v6)]));
            }
        }
        let text = match address {
            IpAddr::V4(v4) => v4.to_string(),
            IpAddr::V6(v6) => format!("[{v6}]"),
        };
        candidates.push((text, vec![Endpoint::Addresses(AddressSet::from(address))]));
    }
    candidates
}

fn allow(policy: &Policy, endpoint: Endpoint, port: u16) -> Rule {
    let ports = PortSet::from_ranges([port..=port]);
    Rule {
        effect: Effect::Allow,
        verb: Verb::Connect,
        subject: Subject::Peers(PeerSet { endpoint, tcp: true, udp: false, ports }),
        because: None,
        unset: Unset::Refuse,
        // Never shown: any place of the policy does.
        span: policy.default_read.span,
        origin: Origin::Given,
    }
}
