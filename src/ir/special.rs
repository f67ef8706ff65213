//! The closed table of addresses that a name does not open: special ones, the metadata services of clouds, and private
//! ranges.

use crate::sets::address::{self, AddressSet};
use std::net::{IpAddr, Ipv4Addr};
use std::sync::LazyLock;

/// Stands for "an address that is neither special nor private" where a name is decided and not looked up: of TEST-NET-3
/// (RFC 5737), which nothing routes and no host has.
pub const NOMINAL: IpAddr = IpAddr::V4(Ipv4Addr::new(203, 0, 113, 1));

/// A line of the table.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Range {
    /// As a policy writes it.
    pub network: &'static str,
    /// What lives there.
    pub what: &'static str,
    /// Where that is laid down.
    pub source: &'static str,
}

/// A line of such a table.
pub const fn range(network: &'static str, what: &'static str, source: &'static str) -> Range {
    Range { network, what, source }
}

/// A name reaches these only where an IP rule allows the address.
pub const SPECIAL: &[Range] = &[
    range("0.0.0.0/8", "this network", "RFC 791 section 3.2, RFC 6890 table 1"),
    range("127.0.0.0/8", "loopback", "RFC 1122 section 3.2.1.3"),
    range("169.254.0.0/16", "link-local; metadata services of most clouds", "RFC 3927 section 2.1"),
    range("192.0.0.0/24", "IETF protocol assignments", "RFC 6890 section 2.1"),
    range("224.0.0.0/4", "multicast", "RFC 5771 section 3"),
    range("240.0.0.0/4", "reserved, and limited broadcast", "RFC 1112 section 4, RFC 8190 section 2.1"),
    range("[::]", "unspecified", "RFC 4291 section 2.5.2"),
    range("[::1]", "loopback", "RFC 4291 section 2.5.3"),
    range("[fe80::]/10", "link-local", "RFC 4291 section 2.5.6"),
    range("[fec0::]/10", "site-local, deprecated", "RFC 3879 section 4"),
    range("[ff00::]/8", "multicast", "RFC 4291 section 2.7"),
    range("[64:ff9b:1::]/48", "translation of local use, whose IPv4 part cannot be told", "RFC 8215 section 3"),
];

/// Metadata services outside the ranges of [`SPECIAL`], and special like them.
pub const METADATA: &[Range] = &[
    range("100.100.100.200", "Alibaba Cloud metadata", "Alibaba Cloud, ECS: instance metadata"),
    range("168.63.129.16", "Azure platform services", "Microsoft Azure: what is IP address 168.63.129.16"),
    range("[fd00:ec2::]/32", "Amazon EC2 metadata, time and name services", "Amazon EC2: instance metadata options"),
    range("[fd20:ce::254]", "Google Cloud metadata", "Google Compute Engine: metadata server"),
    range("[fd00:42::42]", "Scaleway metadata", "Scaleway: instance metadata"),
];

/// A name reaches these where an IP rule allows the address, or a matching allow has no `*`.
pub const PRIVATE: &[Range] = &[
    range("10.0.0.0/8", "private use", "RFC 1918 section 3"),
    range("172.16.0.0/12", "private use", "RFC 1918 section 3"),
    range("192.168.0.0/16", "private use", "RFC 1918 section 3"),
    range("100.64.0.0/10", "shared address space", "RFC 6598 section 7"),
    range("[fc00::]/7", "unique local", "RFC 4193 section 3.1"),
];

/// What the guard says of an address.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, serde::Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Class {
    Public,
    Private,
    Special,
}

static SPECIAL_SET: LazyLock<AddressSet> = LazyLock::new(|| set(SPECIAL).union(&set(METADATA)));
static PRIVATE_SET: LazyLock<AddressSet> = LazyLock::new(|| set(PRIVATE));

fn set(table: &[Range]) -> AddressSet {
    table.iter().map(|range| address::parse_network(range.network).expect("the table holds networks")).collect()
}

/// All special addresses of the table, in all forms that carry them.
pub fn special() -> AddressSet {
    SPECIAL_SET.carried()
}

/// All private addresses that are not special, in all forms that carry them.
pub fn private() -> AddressSet {
    PRIVATE_SET.carried().difference(&special())
}

/// The class of an address, or of the one it carries if that is the stricter; `own` are this host's.
pub fn class(address: IpAddr, own: &[IpAddr]) -> Class {
    let address = address::canonical(address);
    let plain = |address: IpAddr| {
        if SPECIAL_SET.contains(address) || own.iter().any(|own| address::canonical(*own) == address) {
            Class::Special
        } else if PRIVATE_SET.contains(address) {
            Class::Private
        } else {
            Class::Public
        }
    };
    let carried = address::carried(address).map_or(Class::Public, |v4: Ipv4Addr| plain(v4.into()));
    plain(address).max(carried)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::*;

    #[test]
    fn each_end_of_each_range_and_its_neighbours() {
        let (special, private) = (special(), private());
        for (table, least) in [(SPECIAL, Class::Special), (METADATA, Class::Special), (PRIVATE, Class::Private)] {
            for line in table {
                for (low, high) in address::parse_network(line.network).unwrap().ranges() {
                    assert!(class(low, &[]) >= least && class(high, &[]) >= least, "{}", line.network);
                }
            }
        }
        for (address, expected) in [
            ("1.0.0.0", Class::Public),
            ("9.255.255.255", Class::Public),
            ("10.0.0.0", Class::Private),
            ("11.0.0.0", Class::Public),
            ("100.63.255.255", Class::Public),
            ("100.64.0.0", Class::Private),
            ("100.100.100.200", Class::Special),
            ("100.128.0.0", Class::Public),
            ("126.255.255.255", Class::Public),
            ("127.255.255.255", Class::Special),
            ("168.63.129.16", Class::Special),
            ("169.254.169.254", Class::Special),
            ("172.15.255.255", Class::Public),
            ("172.31.255.255", Class::Private),
            ("172.32.0.0", Class::Public),
            ("192.0.0.255", Class::Special),
            ("192.0.1.0", Class::Public),
            ("223.255.255.255", Class::Public),
            ("255.255.255.255", Class::Special),
            ("::", Class::Special),
            ("::1", Class::Special),
            ("::ffff:127.0.0.1", Class::Special),
            ("::ffff:8.8.8.8", Class::Public),
            ("64:ff9b::169.254.169.254", Class::Special),
            ("64:ff9b::10.0.0.1", Class::Private),
            ("64:ff9b::8.8.8.8", Class::Public),
            ("64:ff9b:1::8.8.8.8", Class::Special),
            ("2002:7f00:1::", Class::Special),
            ("2002:0a00:1::5", Class::Private),
            ("fd00:ec2::254", Class::Special),
            ("fd20:ce::254", Class::Special),
            ("fd20:ce::253", Class::Private),
            ("fd00::1", Class::Private),
            ("fe80::1", Class::Special),
            ("2001:db8::1", Class::Public),
        ] {
            let ip: IpAddr = address.parse().unwrap();
            assert_eq!(class(ip, &[]), expected, "{address}");
            assert_eq!(special.contains(ip), expected == Class::Special, "{address}");
            assert_eq!(private.contains(ip), expected == Class::Private, "{address}");
        }
    }

    #[test]
    fn the_hosts_own_addresses_are_special() {
        let own = ["8.8.8.8".parse().unwrap()];
        assert_eq!(class("8.8.8.8".parse().unwrap(), &own), Class::Special);
        assert_eq!(class("64:ff9b::8.8.8.8".parse().unwrap(), &own), Class::Special);
        assert_eq!(class("8.8.4.4".parse().unwrap(), &own), Class::Public);
    }
}
