//! Statements for connections: of one host with its ports, or of all names below a domain of which several were asked for.

use super::{Drafter, General, Refusal, Wish, bracketed};
use crate::ir::special;
use std::collections::{BTreeMap, BTreeSet};
use std::net::IpAddr;

/// So many names of one domain, for the same ports, are asked for one by one.
const FEW: usize = 2;

/// What was asked for of one host.
#[derive(Debug, Clone)]
pub(super) struct Connections {
    /// A name, and no address.
    is_name: bool,
    ports: BTreeSet<u16>,
    addresses: BTreeSet<IpAddr>,
    without_port: bool,
    /// No rule denies it.
    by_default: bool,
    wishes: Vec<usize>,
}

impl Connections {
    pub fn new(is_name: bool) -> Self {
        let (ports, addresses, wishes) = (BTreeSet::new(), BTreeSet::new(), Vec::new());
        Self { is_name, ports, addresses, without_port: false, by_default: true, wishes }
    }

    pub fn add(&mut self, number: usize, wish: &Wish, (address, port): (IpAddr, u16), by_default: bool) {
        self.wishes.push(number);
        self.without_port |= wish.without_port;
        self.by_default &= by_default;
        if !wish.without_port {
            self.ports.insert(port);
        }
        self.addresses.insert(address);
    }

    /// The ports as a target has them, and whether nobody named any.
    fn ports(&self) -> (String, bool) {
        let ports: Vec<String> = self.ports.iter().map(u16::to_string).collect();
        match &ports[..] {
            _ if self.without_port && self.ports.iter().all(|port| [80, 443].contains(port)) => (String::new(), true),
            [port] => (format!(":{port}"), false),
            _ => (format!(":{{{}}}", ports.join(",")), false),
        }
    }
}

impl Drafter<'_> {
    pub(super) fn hosts(&mut self, mut hosts: BTreeMap<String, Connections>, wishes: &[Wish]) {
        if self.ground.general {
            for ((domain, ports), names) in domains(&hosts) {
                let numbers = names.iter().flat_map(|name| hosts[name].wishes.clone()).collect();
                let statement = format!("allow connect *.{domain}{ports}");
                if self.propose(vec![statement], numbers, wishes, Some(General::Domain)) {
                    hosts.retain(|name, _| !names.contains(name));
                }
            }
        }
        for (host, asked) in hosts {
            self.host(&host, &asked, wishes);
        }
    }

    fn host(&mut self, host: &str, asked: &Connections, wishes: &[Wish]) {
        let (ports, usual) = asked.ports();
        let general = usual.then_some(General::Ports);
        let first = format!("allow connect {host}{ports}");
        if self.propose(vec![first.clone()], asked.wishes.clone(), wishes, general) {
            return;
        }
        // A name may lead to an address that a name alone does not open.
        let ports = if usual { ":{80,443}" } else { &ports };
        let addresses = asked.addresses.iter().filter(|address| **address != special::NOMINAL);
        let more = addresses.map(|address| format!("allow connect {}{ports}", bracketed(*address)));
        let statements = std::iter::once(first).chain(more).collect();
        if !self.propose(statements, asked.wishes.clone(), wishes, general) {
            asked.wishes.iter().for_each(|number| self.refuse(*number, Refusal::NotEnough));
        }
    }
}

/// Domains of which more names were asked for, by nobody's rule denied, for the same ports: with these. None of one label,
/// which is nobody's own; below which others strangers have names, the findings know.
fn domains(hosts: &BTreeMap<String, Connections>) -> Vec<((String, String), BTreeSet<String>)> {
    let mut domains: BTreeMap<(String, String), BTreeSet<String>> = BTreeMap::new();
    for (name, asked) in hosts.iter().filter(|(_, asked)| asked.is_name && asked.by_default) {
        if let Some((_, domain)) = name.split_once('.').filter(|(_, domain)| domain.contains('.')) {
            domains.entry((domain.to_owned(), asked.ports().0)).or_default().insert(name.clone());
        }
    }
    domains.into_iter().filter(|(_, names)| names.len() > FEW).collect()
}
