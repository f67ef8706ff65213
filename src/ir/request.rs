//! The host part of a request, as a stranger wrote it, into the accesses that it asks for.
//!
//! Looks nothing up: a name's addresses come from whoever resolves it.

use super::Access;
use crate::sets::address::{self, AddressError};
use crate::sets::host::{Name, NameError};
use crate::sets::peer::Protocol;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// What a request names.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Target {
    /// A name, to be resolved first.
    Name(Name),
    /// An address, or those of `localhost` and the names below it, whatever a resolver says (RFC 6761 section 6.3).
    Addresses(Vec<IpAddr>),
}

/// Reads a host: a name, an IPv4 address, or an IPv6 address with or without brackets; no port, no user, no zone.
///
/// # Errors
/// When it is none of these, or an odd spelling of an address.
pub fn target(host: &str) -> Result<Target, NameError> {
    match address::parse_address(host) {
        Ok(address) => return Ok(Target::Addresses(vec![address])),
        Err(AddressError::Odd { canonical, .. }) => return Err(NameError::Address(canonical.parse().ok())),
        Err(_) => {}
    }
    let name = Name::parse(host)?;
    if name.is_localhost() {
        return Ok(Target::Addresses(vec![Ipv4Addr::LOCALHOST.into(), Ipv6Addr::LOCALHOST.into()]));
    }
    Ok(Target::Name(name))
}

impl Target {
    /// The name to resolve, if any.
    pub fn name(&self) -> Option<&Name> {
        match self {
            Target::Name(name) => Some(name),
            Target::Addresses(_) => None,
        }
    }

    /// The accesses it asks for, one for each address that may be dialled: those a name resolved to (`resolved` is not looked
    /// at for the rest), or its own.
    pub fn accesses(&self, resolved: &[IpAddr], port: u16, protocol: Protocol) -> Vec<Access> {
        let addresses = match self {
            Target::Name(_) => resolved,
            Target::Addresses(own) => own,
        };
        let access = |address: &IpAddr| Access::Connect {
            name: self.name().cloned(),
            address: address::canonical(*address),
            port,
            protocol,
        };
        addresses.iter().map(access).collect()
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::*;

    #[test]
    fn hosts_of_requests() {
        let addresses = |texts: &[&str]| Target::Addresses(texts.iter().map(|text| text.parse().unwrap()).collect());
        for (host, expected) in [
            ("10.0.0.7", addresses(&["10.0.0.7"])),
            ("[2001:DB8::1]", addresses(&["2001:db8::1"])),
            ("::1", addresses(&["::1"])),
            ("[::ffff:10.0.0.7]", addresses(&["10.0.0.7"])),
            ("localhost", addresses(&["127.0.0.1", "::1"])),
            ("LOCALHOST.", addresses(&["127.0.0.1", "::1"])),
            ("db.localhost", addresses(&["127.0.0.1", "::1"])),
            ("A.Example.", Target::Name(Name::parse("a.example").unwrap())),
            ("localhost.example", Target::Name(Name::parse("localhost.example").unwrap())),
        ] {
            assert_eq!(target(host), Ok(expected), "{host}");
        }
        for bad in [
            "",
            "[10.0.0.7]",
            "[a.example]",
            "fe80::1%eth0",
            "127.1",
            "0x7f000001",
            "a.example\0.b",
            "a.example:80",
            "u@a",
        ] {
            assert!(target(bad).is_err(), "{bad:?}");
        }
    }

    #[test]
    fn one_access_for_each_address() {
        let name = target("a.example").unwrap();
        let resolved = ["1.2.3.4".parse().unwrap(), "::ffff:1.2.3.5".parse().unwrap()];
        let accesses = name.accesses(&resolved, 443, Protocol::Tcp);
        assert_eq!(accesses.len(), 2);
        let Access::Connect { address, name: Some(_), .. } = &accesses[1] else { panic!() };
        assert_eq!(address.to_string(), "1.2.3.5");
        assert_eq!(target("localhost").unwrap().accesses(&resolved, 443, Protocol::Tcp).len(), 2);
    }
}
