//! What the proxy asks of the policy, always through [`decide`](crate::ir::decide()): whether a name could be allowed at all, before anyone
//! resolves it, and which of its addresses may be dialled, after.
//!
//! Pure. Of one request nothing is remembered for the next but which rule is more specific than which.

use super::Rules;
use super::authority::{Authority, Host, LOOPBACK};
use super::dial::Route;
use super::refusal::{Failure, Refused};
use super::remedy::remedy;
use crate::event::{RuleText, Violation};
use crate::ir::special::{NOMINAL, special};
use crate::ir::{Access, Kept, Policy, Rule, RuleId, Subject, Verdict};
use crate::sets::host::Name;
use crate::sets::peer::{Endpoint, PeerSet, Protocol};
use crate::sets::port::PortSet;
use crate::vocabulary::{Effect, Verb};
use std::collections::BTreeSet;
use std::net::IpAddr;
use std::sync::Arc;

/// A policy, prepared for the two questions.
pub struct Gate {
    pub rules: Arc<Rules>,
    /// The `connect` rules.
    all: Part,
    /// Those about names.
    names: Part,
    /// The ports of those that deny addresses which are not special anyway.
    denying: Vec<(PortSet, RuleId)>,
}

/// Some rules of a policy, and which ones they are: a part is small to copy, where a whole policy has the files of a
/// machine in it.
struct Part {
    policy: Kept,
    ids: Vec<RuleId>,
}

impl Gate {
    pub fn new(rules: Arc<Rules>) -> Self {
        let is_connect = |rule: &Rule| rule.verb == Verb::Connect;
        let is_name = |rule: &Rule| {
            is_connect(rule)
                && matches!(&rule.subject, Subject::Peers(peers) if matches!(peers.endpoint, Endpoint::Hosts(_)))
        };
        let all = Part::new(&rules.policy, is_connect, rules.policy.facts.own_addresses.clone());
        let names = Part::new(&rules.policy, is_name, Vec::new());
        let denying = (0..).map(RuleId).zip(&rules.policy.rules).filter_map(|(id, rule)| match &rule.subject {
            Subject::Peers(PeerSet { endpoint: Endpoint::Addresses(addresses), tcp: true, ports, .. })
                if is_connect(rule) && rule.effect != Effect::Allow && addresses.is_subset(&special()).is_err() =>
            {
                Some((ports.clone(), id))
            }
            _ => None,
        });
        let denying = denying.collect();
        Self { rules, all, names, denying }
    }

    /// A rule that denies addresses at this port, if there is one: without the address of a name, nothing can be said of it.
    fn denying_addresses(&self, port: u16) -> Option<RuleId> {
        self.denying.iter().find(|(ports, _)| ports.contains(port)).map(|(_, id)| *id)
    }

    /// Whether a connection that was made may go on.
    ///
    /// # Errors
    /// The refusal.
    pub fn holds(&self, route: &Route) -> Result<(), Failure> {
        let authority = &route.authority;
        let passed = match (&authority.host, route.address) {
            (_, Some(address)) => self.passed(authority, &[address]),
            (Host::Name(name), None) => return self.passes_unseen(authority, name, &route.seen),
            (Host::Address(address), None) => self.passed(authority, &[*address]),
            (Host::Localhost(_), None) => self.passed(authority, &LOOPBACK),
        };
        passed.map(drop).map_err(Failure::Refused)
    }

    /// Whether a name may be connected to whose address another proxy finds: by every address that this machine has found, as
    /// that one may find any of them. Where this machine found none, by the name alone, unless a rule that denies is about
    /// addresses.
    ///
    /// # Errors
    /// The refusal, or that an address needed to be known.
    pub fn passes_unseen(&self, authority: &Authority, name: &Name, known: &[IpAddr]) -> Result<(), Failure> {
        self.could_pass(name, authority.port).map_err(Failure::Refused)?;
        for address in known {
            self.passed(authority, &[*address]).map_err(Failure::Refused)?;
        }
        match self.denying_addresses(authority.port) {
            Some(rule) if known.is_empty() => Err(Failure::Unseen { name: name.clone(), port: authority.port, rule }),
            _ => Ok(()),
        }
    }

    /// Whether some address of the name could be allowed. Rules about addresses play no part here: they are asked once
    /// the address is known.
    ///
    /// # Errors
    /// The refusal, by rules about names.
    pub fn could_pass(&self, name: &Name, port: u16) -> Result<(), Box<Refused>> {
        let verdict = self.names.decide(&connect(Some(name), NOMINAL, port));
        if verdict.allowed {
            return Ok(());
        }
        Err(Box::new(Refused { host: name.to_string(), name: Some(name.clone()), address: None, port, verdict }))
    }

    /// Whether some port of some address of the name could be allowed.
    ///
    /// # Errors
    /// The refusal, as at port 443.
    pub fn could_resolve(&self, name: &Name) -> Result<(), Box<Refused>> {
        let Err(refused) = self.could_pass(name, 443) else { return Ok(()) };
        // Between these ports, no answer differs.
        let edges = self.names.policy.policy().rules.iter().filter_map(|rule| match &rule.subject {
            Subject::Peers(PeerSet { endpoint: Endpoint::Hosts(hosts), ports, .. }) if hosts.contains(name) => {
                Some(ports)
            }
            _ => None,
        });
        let edges =
            edges.flat_map(|ports| ports.ranges().flat_map(|range| [*range.start(), range.end().saturating_add(1)]));
        let edges: BTreeSet<u16> = edges.collect();
        if edges.into_iter().any(|port| self.could_pass(name, port).is_ok()) { Ok(()) } else { Err(refused) }
    }

    /// Those of `addresses` that may be dialled, in their order.
    ///
    /// # Errors
    /// Where that is none, the refusal of the first one.
    pub fn passed(&self, authority: &Authority, addresses: &[IpAddr]) -> Result<Vec<IpAddr>, Box<Refused>> {
        let name = match &authority.host {
            Host::Name(name) => Some(name),
            // The language has `localhost` mean its addresses before anything is matched.
            Host::Localhost(_) | Host::Address(_) => None,
        };
        let mut passed = Vec::new();
        let mut refused = None;
        for address in addresses.iter().map(IpAddr::to_canonical) {
            let verdict = self.all.decide(&connect(name, address, authority.port));
            if verdict.allowed {
                passed.push(address);
            } else if refused.is_none() {
                let host = authority.host_text();
                let (name, address, port) = (name.cloned(), Some(address), authority.port);
                refused = Some(Box::new(Refused { host, name, address, port, verdict }));
            }
        }
        match refused {
            Some(refused) if passed.is_empty() => Err(refused),
            _ => Ok(passed),
        }
    }

    /// What allows a connection that was dialled.
    pub fn allowing(&self, route: &Route) -> Option<RuleText> {
        let name = match &route.authority.host {
            Host::Name(name) => Some(name),
            Host::Localhost(_) | Host::Address(_) => None,
        };
        let port = route.authority.port;
        let verdict = match (route.address, &route.authority.host) {
            (Some(address), _) => self.all.decide(&connect(name, address, port)),
            (None, Host::Address(address)) => self.all.decide(&connect(None, *address, port)),
            (None, _) => self.names.decide(&connect(name, NOMINAL, port)),
        };
        verdict.decisive.first().map(|id| self.rules.told(*id).0)
    }

    /// What is said about a refusal of this gate.
    pub fn violation(&self, refused: &Refused) -> Violation {
        let (part, address) = match refused.address {
            Some(address) => (&self.all, address),
            None => (&self.names, NOMINAL),
        };
        let access = connect(refused.name.as_ref(), address, refused.port);
        refused.violation(&self.rules, remedy(part.policy.policy(), refused, &access))
    }
}

impl Part {
    fn new(policy: &Policy, which: impl Fn(&Rule) -> bool, own_addresses: Vec<IpAddr>) -> Self {
        let (ids, rules) =
            (0..).map(RuleId).zip(&policy.rules).filter(|(_, rule)| which(rule)).unzip::<_, _, Vec<_>, Vec<_>>();
        let mut part = Policy::new(policy.system, policy.default_read.clone());
        part.rules = rules.into_iter().cloned().collect();
        part.facts.own_addresses = own_addresses;
        Self { policy: Kept::new(part), ids }
    }

    /// The verdict, in ids of the whole policy.
    fn decide(&self, access: &Access) -> Verdict {
        let mut verdict = self.policy.decide(access);
        for id in verdict.decisive.iter_mut().chain(&mut verdict.matching) {
            *id = self.ids.get(id.0 as usize).copied().unwrap_or(*id);
        }
        verdict
    }
}

fn connect(name: Option<&Name>, address: IpAddr, port: u16) -> Access {
    Access::Connect { name: name.cloned(), address, port, protocol: Protocol::Tcp }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::super::tests::harness::{ANY, Setup, port};
    use super::*;
    use crate::ir::Why;
    use Effect::{Allow, Deny, Forbid};

    fn name(text: &str) -> Name {
        Name::parse(text).unwrap()
    }

    fn passed(gate: &Gate, authority: &str, addresses: &[&str]) -> Result<Vec<String>, Why> {
        let authority = Authority::parse(authority, Some(80)).unwrap();
        let addresses: Vec<IpAddr> = addresses.iter().map(|text| text.parse().unwrap()).collect();
        match gate.passed(&authority, &addresses) {
            Ok(passed) => Ok(passed.iter().map(IpAddr::to_string).collect()),
            Err(refused) => Err(refused.verdict.why),
        }
    }

    #[test]
    fn a_name_is_asked_about_before_its_address_is_known() {
        let setup = Setup::new()
            .net(Deny, "0.0.0.0/0", ANY)
            .net(Allow, "10.0.0.7/32", port(80))
            .host(Allow, "db.test", port(80))
            .host(Forbid, "*.x.test", ANY);
        let gate = Gate::new(setup.rules());
        // An address rule against every public address does not hide that a private one is allowed.
        assert!(gate.could_pass(&name("db.test"), 80).is_ok());
        assert_eq!(passed(&gate, "db.test:80", &["10.0.0.7"]), Ok(vec!["10.0.0.7".into()]));
        assert_eq!(passed(&gate, "db.test:80", &["192.0.2.7"]), Err(Why::Denied));
        assert_eq!(gate.could_pass(&name("db.test"), 81).unwrap_err().verdict.why, Why::Default);
        let forbidden = gate.could_pass(&name("a.x.test"), 80).unwrap_err();
        assert_eq!(forbidden.verdict.decisive, [RuleId(3)], "as the whole policy counts");
    }

    #[test]
    fn a_name_exists_if_any_port_of_it_is_allowed() {
        let could = |setup: Setup, text: &str| Gate::new(setup.rules()).could_resolve(&name(text)).is_ok();
        let new = Setup::new;
        assert!(could(new().host(Allow, "a.test", port(5432)), "a.test"));
        assert!(!could(new().host(Allow, "a.test", port(5432)), "b.test"));
        assert!(could(new().host(Allow, "*.test", ANY).host(Deny, "a.test", 1..=65534), "a.test"));
        assert!(!could(new().host(Allow, "*.test", ANY).host(Deny, "a.test", ANY), "a.test"));
        assert!(could(new().host(Allow, "a.test", port(9)).host(Deny, "*.test", ANY), "a.test"));
        assert!(!could(new().host(Allow, "a.test", port(9)).host(Forbid, "*", 9..=10), "a.test"));
        assert!(!could(new().net(Allow, "0.0.0.0/0", ANY), "a.test"));
    }

    #[test]
    fn a_private_address_needs_a_name_that_is_written_out() {
        for private in ["10.0.0.1", "172.16.0.1", "192.168.1.1", "100.64.0.1", "fd00::1", "::ffff:10.0.0.1"] {
            let gate = Gate::new(Setup::new().host(Allow, "*.test", ANY).host(Allow, "db.test", ANY).rules());
            assert_eq!(passed(&gate, "a.test", &[private]), Err(Why::Special), "{private}");
            assert_eq!(passed(&gate, "db.test", &[private]).unwrap().len(), 1, "{private}");
        }
    }

    #[test]
    fn no_name_leads_to_a_special_address_by_itself() {
        let gate = Gate::new(Setup::new().host(Allow, "a.test", ANY).rules());
        for special in [
            "127.0.0.1",
            "0.0.0.0",
            "169.254.169.254",
            "192.0.0.1",
            "224.0.0.1",
            "255.255.255.255",
            "::",
            "::1",
            "fe80::1",
            "fec0::1",
            "ff02::1",
            "64:ff9b::127.0.0.1",
            "64:ff9b::a9fe:a9fe",
            "2002:7f00:1::",
            "64:ff9b:1::1",
            "::ffff:127.0.0.1",
            "100.100.100.200",
            "168.63.129.16",
            "fd00:ec2::254",
        ] {
            assert_eq!(passed(&gate, "a.test", &[special]), Err(Why::Special), "{special}");
        }
        assert_eq!(passed(&gate, "a.test", &["192.0.2.7", "2001:db8::7"]).unwrap(), ["192.0.2.7", "2001:db8::7"]);
    }

    #[test]
    fn this_hosts_own_addresses_are_special() {
        let setup = Setup::new().host(Allow, "a.test", ANY).own_address("192.0.2.99");
        let gate = Gate::new(setup.rules());
        assert!(gate.could_pass(&name("a.test"), 80).is_ok());
        assert_eq!(passed(&gate, "a.test", &["192.0.2.99"]), Err(Why::Special));
    }

    #[test]
    fn only_what_passed_is_left() {
        let gate = Gate::new(Setup::new().host(Allow, "a.test", ANY).net(Forbid, "192.0.2.0/25", ANY).rules());
        assert_eq!(passed(&gate, "a.test", &["192.0.2.7", "127.0.0.1", "192.0.2.200"]).unwrap(), ["192.0.2.200"]);
        assert_eq!(passed(&gate, "a.test", &["192.0.2.7", "127.0.0.1"]), Err(Why::Forbidden));
        assert_eq!(passed(&gate, "a.test", &["64:ff9b::192.0.2.7"]), Err(Why::Forbidden), "the form that carries it");
    }

    #[test]
    fn every_host_and_address_can_be_allowed_in_words() {
        let open = Setup::new().host(Allow, "*", ANY).net(Allow, "0.0.0.0/0", ANY).net(Allow, "[::]/0", ANY);
        let gate = Gate::new(open.rules());
        for address in ["192.0.2.7", "10.0.0.1", "127.0.0.1", "169.254.169.254", "2001:db8::7", "::1", "fe80::1"] {
            assert_eq!(passed(&gate, "a.test", &[address]), Ok(vec![address.into()]), "{address}");
        }
    }

    #[test]
    fn a_remedy_is_what_decide_agrees_to() {
        let remedy = |setup: Setup, authority: &str, address: &str| {
            let gate = Gate::new(setup.rules());
            let authority = Authority::parse(authority, Some(80)).unwrap();
            let refused = gate.passed(&authority, &[address.parse().unwrap()]).unwrap_err();
            gate.violation(&refused).remedy
        };
        let new = Setup::new;
        for (setup, authority, address, expected) in [
            (new(), "192.0.2.7:81", "192.0.2.7", Some("allow connect 192.0.2.7:81")),
            (new(), "localhost:3000", "127.0.0.1", Some("allow connect localhost:3000")),
            (new(), "[2001:db8::7]:81", "2001:db8::7", Some("allow connect [2001:db8::7]:81")),
            (new().host(Allow, "*.test", ANY), "a.test", "10.0.0.1", Some("allow connect a.test:80")),
            (new().host(Allow, "a.test", ANY), "a.test", "127.0.0.1", Some("allow connect 127.0.0.1:80")),
            (new().host(Deny, "*.test", ANY), "a.test", "192.0.2.7", Some("allow connect a.test:80")),
            (new().net(Deny, "192.0.2.0/24", ANY), "192.0.2.7", "192.0.2.7", Some("allow connect 192.0.2.7:80")),
            (new().net(Forbid, "192.0.2.0/24", ANY), "192.0.2.7", "192.0.2.7", None),
            (new().net(Deny, "192.0.2.0/24", ANY), "a.test", "192.0.2.7", None),
        ] {
            assert_eq!(remedy(setup, authority, address).as_deref(), expected, "{authority} at {address}");
        }
    }
}
