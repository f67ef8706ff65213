//! The other end of a connection: a host or an address, with protocol and port, as one product.

use super::host::{Host, Name};
use super::{address, address::AddressSet, host::HostSet, port::PortSet};
use std::fmt;
use std::net::IpAddr;

/// The transport.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, serde::Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Protocol {
    Tcp,
    Udp,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash, serde::Serialize, serde::Deserialize)]
pub enum Endpoint {
    Hosts(HostSet),
    Addresses(AddressSet),
}

/// `endpoint` × protocols × ports.
#[derive(Debug, Clone, PartialEq, Eq, Hash, serde::Serialize, serde::Deserialize)]
pub struct PeerSet {
    pub endpoint: Endpoint,
    pub tcp: bool,
    pub udp: bool,
    pub ports: PortSet,
}

/// One member of a set: a witness.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Peer {
    pub at: Place,
    pub port: u16,
    pub protocol: Protocol,
}

/// Where a peer is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Place {
    Host(Host),
    Address(IpAddr),
}

impl fmt::Display for Protocol {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Protocol::Tcp => "tcp",
            Protocol::Udp => "udp",
        })
    }
}

/// As a target is written.
impl fmt::Display for Peer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.at {
            Place::Host(host) => write!(f, "{host}")?,
            Place::Address(IpAddr::V4(v4)) => write!(f, "{v4}")?,
            Place::Address(IpAddr::V6(v6)) => write!(f, "[{v6}]")?,
        }
        write!(f, ":{}", self.port)?;
        if self.protocol == Protocol::Udp { f.write_str("/udp") } else { Ok(()) }
    }
}

impl PeerSet {
    /// Whether the set covers a transport and a port, wherever.
    pub fn covers(&self, protocol: Protocol, port: u16) -> bool {
        self.has(protocol) && self.ports.contains(port)
    }

    /// Whether this is a set of names and holds this one.
    pub fn contains_name(&self, name: &Name, protocol: Protocol, port: u16) -> bool {
        matches!(&self.endpoint, Endpoint::Hosts(hosts) if hosts.contains(name)) && self.covers(protocol, port)
    }

    /// Whether this is a set of addresses and holds this one.
    pub fn contains_address(&self, address: IpAddr, protocol: Protocol, port: u16) -> bool {
        matches!(&self.endpoint, Endpoint::Addresses(set) if set.contains(address)) && self.covers(protocol, port)
    }

    /// As [`contains_address`](Self::contains_address), of an address or the one it carries: what a deny or forbid means.
    pub fn contains_carried(&self, address: IpAddr, protocol: Protocol, port: u16) -> bool {
        self.contains_address(address, protocol, port)
            || address::carried(address).is_some_and(|v4| self.contains_address(v4.into(), protocol, port))
    }

    fn has(&self, protocol: Protocol) -> bool {
        match protocol {
            Protocol::Tcp => self.tcp,
            Protocol::Udp => self.udp,
        }
    }

    fn protocols(&self) -> impl Iterator<Item = Protocol> + '_ {
        [Protocol::Tcp, Protocol::Udp].into_iter().filter(|protocol| self.has(*protocol))
    }

    /// The set with its addresses in all their IPv6 forms.
    #[must_use]
    pub fn carried(&self) -> Self {
        let endpoint = match &self.endpoint {
            Endpoint::Hosts(hosts) => Endpoint::Hosts(hosts.clone()),
            Endpoint::Addresses(set) => Endpoint::Addresses(set.carried()),
        };
        Self { endpoint, ..self.clone() }
    }

    fn place(&self) -> Option<Place> {
        match &self.endpoint {
            Endpoint::Hosts(hosts) => hosts.shortest().map(Place::Host),
            Endpoint::Addresses(set) => set.shortest().map(Place::Address),
        }
    }

    /// A least member; `None` when there is none.
    pub fn shortest(&self) -> Option<Peer> {
        let (protocol, port) = (self.protocols().next()?, self.ports.shortest()?);
        Some(Peer { at: self.place()?, port, protocol })
    }

    /// Whether it has no member.
    pub fn is_empty(&self) -> bool {
        self.shortest().is_none()
    }

    /// Whether every (host, protocol, port) of this set is in `other`, addresses as they stand: names and addresses are
    /// apart.
    ///
    /// # Errors
    /// A least one that is not.
    pub fn is_subset(&self, other: &Self) -> Result<(), Peer> {
        let Some(least) = self.shortest() else { return Ok(()) };
        let outside = match (&self.endpoint, &other.endpoint) {
            (Endpoint::Hosts(own), Endpoint::Hosts(whole)) => own.is_subset(whole).err().map(Place::Host),
            (Endpoint::Addresses(own), Endpoint::Addresses(whole)) => own.is_subset(whole).err().map(Place::Address),
            _ => Some(least.at.clone()),
        };
        if let Some(at) = outside {
            return Err(Peer { at, ..least });
        }
        if let Some(protocol) = self.protocols().find(|protocol| !other.has(*protocol)) {
            return Err(Peer { protocol, ..least });
        }
        match self.ports.is_subset(&other.ports) {
            Ok(()) => Ok(()),
            Err(port) => Err(Peer { port, ..least }),
        }
    }

    /// Whether this set is inside `other` and not equal to it, the addresses of both taken with all their IPv6 forms.
    pub fn is_strictly_inside(&self, other: &Self) -> bool {
        if matches!((&self.endpoint, &other.endpoint), (Endpoint::Hosts(_), Endpoint::Hosts(_))) {
            return self.is_subset(other).is_ok() && other.is_subset(self).is_err();
        }
        let (own, whole) = (self.carried(), other.carried());
        own.is_subset(&whole).is_ok() && whole.is_subset(&own).is_err()
    }

    /// A least member of both, addresses as they stand.
    pub fn overlap(&self, other: &Self) -> Option<Peer> {
        let at = match (&self.endpoint, &other.endpoint) {
            (Endpoint::Hosts(own), Endpoint::Hosts(theirs)) => Place::Host(own.overlap(theirs)?),
            (Endpoint::Addresses(own), Endpoint::Addresses(theirs)) => Place::Address(own.overlap(theirs)?),
            _ => return None,
        };
        let protocol = self.protocols().find(|protocol| other.has(*protocol))?;
        Some(Peer { at, protocol, port: self.ports.overlap(&other.ports)? })
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::*;
    use crate::sets::{address::parse_network, host::Pattern};

    fn hosts(pattern: &str, ports: PortSet) -> PeerSet {
        let endpoint = Endpoint::Hosts(Pattern::parse(pattern).unwrap().into());
        PeerSet { endpoint, tcp: true, udp: false, ports }
    }

    fn addresses(network: &str, ports: PortSet) -> PeerSet {
        PeerSet { endpoint: Endpoint::Addresses(parse_network(network).unwrap()), tcp: true, udp: false, ports }
    }

    #[test]
    fn a_narrower_name_with_more_ports_is_not_inside() {
        let ssh = PortSet::from_ranges([22..=22]);
        assert!(hosts("a.x", PortSet::all()).is_strictly_inside(&hosts("*.x", PortSet::all())));
        assert!(!hosts("a.x", PortSet::all()).is_strictly_inside(&hosts("*.x", ssh.clone())));
        assert!(hosts("a.x", ssh.clone()).is_strictly_inside(&hosts("a.x", PortSet::all())));
        assert!(!hosts("a.x", ssh.clone()).is_strictly_inside(&hosts("a.x", ssh)));
    }

    #[test]
    fn names_and_addresses_are_apart() {
        let (any, all) = (hosts("*", PortSet::all()), addresses("0.0.0.0/0", PortSet::all()));
        assert!(!any.is_strictly_inside(&all) && !all.is_strictly_inside(&any));
        assert_eq!(any.overlap(&all), None);
    }

    #[test]
    fn inclusion_takes_all_forms_of_an_address() {
        let carrier = addresses("[64:ff9b::]/96", PortSet::all());
        let all = addresses("0.0.0.0/0", PortSet::all());
        assert!(carrier.is_strictly_inside(&all));
        assert!(carrier.is_subset(&all).is_err());
        let both = PeerSet { udp: true, ..all.clone() };
        assert!(all.is_strictly_inside(&both));
        assert_eq!(both.is_subset(&all).unwrap_err().to_string(), "0.0.0.0:1/udp");
        assert!(all.contains_carried("2002:a00:1::".parse().unwrap(), Protocol::Tcp, 9));
    }
}
