//! Addresses of metadata services: whoever reaches one has the machine's own credentials.
//!
//! The addresses are those of the table in [`special`]; a name never reaches one, so rules about addresses are all there is.

use super::is_given;
use crate::diagnostic::Diagnostic;
use crate::diagnostic::codes;
use crate::ir::special::{self, Range};
use crate::ir::{Access, Policy, Rule, RuleId, Subject, decide, more_specific};
use crate::sets::address::{self, AddressSet};
use crate::sets::peer::{Endpoint, PeerSet, Protocol};
use crate::vocabulary::{Effect, Verb};
use std::net::IpAddr;

codes! {
    /// # `metadata-address`
    ///
    /// ## What it says
    /// A rule lets the command connect to an address at which a cloud's metadata service answers.
    ///
    /// ## Why
    /// On a machine in a cloud, whoever reaches that address is given the machine's credentials. A name never leads there, since
    /// those addresses are closed to names; a rule about addresses opens them, a wide one (`0.0.0.0/0`) by the way.
    ///
    /// ## Example
    /// ```policy
    /// srt 1
    /// use std/system
    /// default read deny
    /// allow connect 169.254.0.0/16:80
    /// ```
    ///
    /// ## Use instead
    /// ```policy
    /// srt 1
    /// use std/system
    /// default read deny
    /// allow connect 10.20.0.7:5432
    /// ```
    pub METADATA_ADDRESS = "metadata-address", Error;
}

/// The rest of the link-local range is anybody's; of it these are the services' own. The ranges outside it are in [`special`].
const LINK_LOCAL: &[Range] = &[
    special::range(
        "169.254.169.254",
        "the metadata service of most clouds",
        "Amazon EC2, Google Cloud, Azure, Oracle: instance metadata",
    ),
    special::range("169.254.170.2", "Amazon ECS credentials", "Amazon ECS: task IAM role"),
    special::range("169.254.170.23", "Amazon EKS credentials", "Amazon EKS: Pod Identity"),
    special::range("169.254.42.42", "Scaleway metadata", "Scaleway: instance metadata"),
    special::range("192.0.0.192", "Oracle Cloud metadata of older images", "Oracle Cloud: instance metadata service"),
];

/// One finding for each rule that reaches such an address.
pub fn check(policy: &Policy) -> Vec<Diagnostic> {
    let mut found = Vec::new();
    for (id, rule) in policy.rules_of(Verb::Connect) {
        let Subject::Peers(peers) = &rule.subject else { continue };
        let Endpoint::Addresses(own) = &peers.endpoint else { continue };
        if rule.effect != Effect::Allow || !is_given(rule) {
            continue;
        }
        let reached = LINK_LOCAL.iter().chain(special::METADATA).find_map(|service| {
            let addresses = address::parse_network(service.network).ok()?.intersection(own);
            let access = witness(policy, id, peers, &addresses)?;
            Some((service, access))
        });
        let Some((service, access)) = reached else { continue };
        let message = format!("this reaches `{}`: {}", service.network, service.what);
        let diagnostic =
            Diagnostic::new(&METADATA_ADDRESS, message).label(rule.span, "hands over the machine's credentials");
        found.push(diagnostic.witness(access.to_string()).help(format!(
            "add `deny connect {}`, which holds beside a wider rule, or name the addresses that the task needs",
            service.network
        )));
    }
    found
}

/// A permitted connection to one of some addresses, by this rule.
fn witness(policy: &Policy, id: RuleId, peers: &PeerSet, addresses: &AddressSet) -> Option<Access> {
    addresses.shortest()?;
    let denied = policy.rules_of(Verb::Connect).filter(|(other, rule)| match rule.effect {
        Effect::Allow => false,
        Effect::Forbid => true,
        Effect::Deny => !more_specific(policy, id, *other),
    });
    let denied = denied.filter_map(|(_, rule): (RuleId, &Rule)| match &rule.subject {
        Subject::Peers(denied) => match &denied.endpoint {
            Endpoint::Addresses(set) => Some((denied, set)),
            Endpoint::Hosts(_) => None,
        },
        _ => None,
    });
    // Ports and protocols of a rule are a few ranges: each has one try, its least that is not denied there.
    let mut left = addresses.clone();
    let mut ports = peers.ports.clone();
    for (denied, set) in denied {
        if peers.ports.is_subset(&denied.ports).is_ok() {
            left = left.difference(set);
        } else if addresses.is_subset(set).is_ok() {
            ports = ports.difference(&denied.ports);
        }
    }
    let (address, port): (IpAddr, u16) = (left.shortest()?, ports.shortest()?);
    let protocols = [(Protocol::Tcp, peers.tcp), (Protocol::Udp, peers.udp)];
    let accesses = protocols.iter().filter(|(_, has)| *has).map(|(protocol, _)| Access::Connect {
        name: None,
        address,
        port,
        protocol: *protocol,
    });
    accesses.into_iter().find(|access| decide(policy, access).allowed)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::*;
    use crate::lint::tests::{lines, symbolic};

    fn said(rules: &str) -> String {
        let text = format!("srt 1\ndefault read deny\n{rules}\n");
        let policy = symbolic(&text);
        lines(&policy, &text, &check(&policy))
    }

    #[test]
    fn each_service_is_recognised() {
        for service in LINK_LOCAL.iter().chain(special::METADATA) {
            assert!(!service.source.is_empty());
            assert!(
                said(&format!("allow connect {}:80", service.network)).contains(service.what),
                "{}",
                service.network
            );
            let class = special::class(address::parse_network(service.network).unwrap().shortest().unwrap(), &[]);
            assert_eq!(class, special::Class::Special, "{}: a name reaches it", service.network);
        }
    }

    #[test]
    fn a_wide_rule_reaches_them_unless_they_are_denied() {
        let open = "allow connect [0.0.0.0/0:443, [::]/0:443]";
        assert_eq!(
            said(open),
            "error 0.0.0.0/0:443: this reaches `169.254.169.254`: the metadata service of most clouds (connect 169.254.169.254:443)\n\
             error [::]/0:443: this reaches `[fd00:ec2::]/32`: Amazon EC2 metadata, time and name services (connect [fd00:ec2::]:443)\n"
        );
        let closed = "deny connect [169.254.0.0/16, 192.0.0.192, 100.100.100.200, 168.63.129.16, [fd00:ec2::]/32, [fd20:ce::254], [fd00:42::42]]";
        assert_eq!(said(&format!("{open}\n{closed}")), "");
        assert_eq!(
            said("allow connect 0.0.0.0/0:443\ndeny connect 0.0.0.0/0"),
            "error 0.0.0.0/0:443: this reaches `169.254.169.254`: the metadata service of most clouds (connect 169.254.169.254:443)\n"
        );
        assert_eq!(said("allow connect 0.0.0.0/0:443\nforbid connect 0.0.0.0/0"), "");
        assert!(
            said("allow connect 169.254.169.254:{80,443}\nforbid connect 169.254.0.0/16:80")
                .contains("connect 169.254.169.254:443")
        );
        assert_eq!(said("allow connect [*, 10.0.0.7:5432, 127.0.0.1:80]"), "");
    }
}
