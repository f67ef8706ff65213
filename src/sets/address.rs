//! Sets of IP addresses, as intervals. A mapped address (`::ffff:a.b.c.d`) *is* its IPv4 address.
//!
//! The spellings that are accepted are the canonical ones; the odd ones that `inet_aton` takes are recognised so that
//! they can be refused by name.

use super::intervals;
use ipnet::IpNet;
use std::fmt;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// Disjoint, sorted, inclusive intervals of both families.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Default, serde::Serialize, serde::Deserialize)]
pub struct AddressSet {
    v4: Vec<(u32, u32)>,
    /// Without the mapped ones.
    v6: Vec<(u128, u128)>,
}

/// Why a text is no address or network.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum AddressError {
    #[error("this is not an IP address or network")]
    Not,
    #[error("`{given}` is an odd spelling of `{canonical}`")]
    Odd { given: String, canonical: String },
    #[error("a network has no host bits set: `{given}` lies in `{network}`")]
    HostBits { given: String, network: String },
}

/// `::ffff:0:0/96` (RFC 4291 section 2.5.5.2).
const MAPPED: (u128, u128) = (0xffff_0000_0000, 0xffff_ffff_ffff);
/// `64:ff9b::/96`, the well-known prefix of translators (RFC 6052 section 2.1).
const TRANSLATED: u128 = 0x0064_ff9b << 96;
/// `2002::/16`, 6to4 (RFC 3056 section 2).
const SIX_TO_FOUR: u128 = 0x2002 << 112;

/// The address itself, or the IPv4 address that it is mapped from.
pub fn canonical(address: IpAddr) -> IpAddr {
    address.to_canonical()
}

/// The IPv4 address that a translator (64:ff9b::/96) or 6to4 (2002::/16) would reach through an IPv6 one.
pub fn carried(address: IpAddr) -> Option<Ipv4Addr> {
    let IpAddr::V6(v6) = canonical(address) else { return None };
    let bits = v6.to_bits();
    if bits >> 32 == TRANSLATED >> 32 {
        return Some(Ipv4Addr::from_bits(low_word(bits)));
    }
    (bits >> 112 == SIX_TO_FOUR >> 112).then(|| Ipv4Addr::from_bits(low_word(bits >> 80)))
}

fn low_word(bits: u128) -> u32 {
    u32::try_from(bits & 0xffff_ffff).unwrap_or(u32::MAX)
}

/// Reads an address as a policy writes it: `10.0.0.7`, or an IPv6 one with or without its brackets. The result is
/// canonical.
///
/// # Errors
/// When it is none, or an odd spelling of one.
pub fn parse_address(text: &str) -> Result<IpAddr, AddressError> {
    let bare = text.strip_prefix('[').and_then(|rest| rest.strip_suffix(']')).filter(|inner| inner.contains(':'));
    if let Ok(address) = bare.unwrap_or(text).parse::<IpAddr>() {
        return Ok(canonical(address));
    }
    match odd_spelling(text) {
        Some(address) => Err(AddressError::Odd { given: text.into(), canonical: address.to_string() }),
        None => Err(AddressError::Not),
    }
}

/// Reads an address or a network as a policy writes it: `10.0.0.0/8`, `[2001:db8::]/32`, or what [`parse_address`] takes.
///
/// # Errors
/// When it is none, an odd spelling of one, or has host bits set.
pub fn parse_network(text: &str) -> Result<AddressSet, AddressError> {
    let Some((address, length)) = text.split_once('/') else {
        return parse_address(text).map(AddressSet::from);
    };
    let plain = length.bytes().all(|byte| byte.is_ascii_digit()) && (length == "0" || !length.starts_with('0'));
    let length = length.parse::<u8>().ok().filter(|_| plain).ok_or(AddressError::Not)?;
    let bare = address.strip_prefix('[').and_then(|rest| rest.strip_suffix(']')).filter(|inner| inner.contains(':'));
    let Ok(address) = bare.unwrap_or(address).parse::<IpAddr>() else {
        return Err(match parse_address(address) {
            Err(AddressError::Odd { canonical, .. }) => {
                AddressError::Odd { given: text.into(), canonical: format!("{canonical}/{length}") }
            }
            _ => AddressError::Not,
        });
    };
    let network = IpNet::new(address, length).map_err(|_| AddressError::Not)?;
    if network.trunc() != network {
        let network = match network.trunc() {
            IpNet::V4(network) => network.to_string(),
            IpNet::V6(network) => format!("[{}]/{length}", network.network()),
        };
        return Err(AddressError::HostBits { given: text.into(), network });
    }
    Ok(AddressSet::from(network))
}

/// The address that `inet_aton` (POSIX) reads where [`parse_address`] reads none: `127.1`, `0x7f.1`, `2130706433`, `010.0.0.1`.
pub fn odd_spelling(text: &str) -> Option<Ipv4Addr> {
    let parts = text.split('.').map(number).collect::<Option<Vec<u64>>>()?;
    let (last, above) = parts.split_last()?;
    if parts.len() > 4 || above.iter().any(|part| *part > 0xff) {
        return None;
    }
    let room = 8 * u32::try_from(4 - above.len()).ok()?;
    if *last >= 1 << room {
        return None;
    }
    let high = above.iter().fold(0, |bits, part| bits << 8 | part) << room;
    u32::try_from(high | last).ok().map(Ipv4Addr::from_bits)
}

/// A number in C's notation; too large ones saturate.
fn number(text: &str) -> Option<u64> {
    let lower = text.to_ascii_lowercase();
    let (digits, radix) = match lower.strip_prefix("0x") {
        Some(digits) => (digits, 16),
        None if lower.len() > 1 && lower.starts_with('0') => (&lower[1..], 8),
        None => (&lower[..], 10),
    };
    if digits.is_empty() && radix != 16 || !digits.chars().all(|digit| digit.is_digit(radix)) {
        return None;
    }
    Some(if digits.is_empty() { 0 } else { u64::from_str_radix(digits, radix).unwrap_or(u64::MAX) })
}

impl From<IpAddr> for AddressSet {
    fn from(address: IpAddr) -> Self {
        match canonical(address) {
            IpAddr::V4(v4) => Self { v4: vec![(v4.to_bits(), v4.to_bits())], v6: Vec::new() },
            IpAddr::V6(v6) => Self { v4: Vec::new(), v6: vec![(v6.to_bits(), v6.to_bits())] },
        }
    }
}

/// A network below `::ffff:0:0/96` is an IPv4 one; a wider IPv6 one holds no IPv4 address.
impl From<IpNet> for AddressSet {
    fn from(network: IpNet) -> Self {
        match network {
            IpNet::V4(network) => {
                Self { v4: vec![(network.network().to_bits(), network.broadcast().to_bits())], v6: Vec::new() }
            }
            IpNet::V6(network) => {
                let whole = vec![(network.network().to_bits(), network.broadcast().to_bits())];
                if network.prefix_len() >= 96 && intervals::contains(&[MAPPED], whole[0].0) {
                    return Self { v4: vec![(low_word(whole[0].0), low_word(whole[0].1))], v6: Vec::new() };
                }
                Self { v4: Vec::new(), v6: intervals::difference(&whole, &[MAPPED]) }
            }
        }
    }
}

impl FromIterator<AddressSet> for AddressSet {
    fn from_iter<I: IntoIterator<Item = AddressSet>>(sets: I) -> Self {
        let (mut v4, mut v6) = (Vec::new(), Vec::new());
        for set in sets {
            v4.extend(set.v4);
            v6.extend(set.v6);
        }
        Self { v4: intervals::normal(v4), v6: intervals::normal(v6) }
    }
}

impl AddressSet {
    /// The union of inclusive ranges, each with both ends in one family; any other is left out.
    pub fn from_ranges(ranges: impl IntoIterator<Item = (IpAddr, IpAddr)>) -> Self {
        let (mut v4, mut v6) = (Vec::new(), Vec::new());
        for range in ranges {
            match range {
                (IpAddr::V4(low), IpAddr::V4(high)) => v4.push((low.to_bits(), high.to_bits())),
                (IpAddr::V6(low), IpAddr::V6(high)) => v6.push((low.to_bits(), high.to_bits())),
                _ => {}
            }
        }
        Self { v4: intervals::normal(v4), v6: intervals::difference(&intervals::normal(v6), &[MAPPED]) }
    }

    /// Every address of the family of this one.
    pub fn family(address: IpAddr) -> Self {
        match canonical(address) {
            IpAddr::V4(_) => Self { v4: vec![(0, u32::MAX)], v6: Vec::new() },
            IpAddr::V6(_) => Self { v4: Vec::new(), v6: intervals::difference(&[(0, u128::MAX)], &[MAPPED]) },
        }
    }

    /// Whether an address is in the set; a mapped one counts as its IPv4 address.
    pub fn contains(&self, address: IpAddr) -> bool {
        match canonical(address) {
            IpAddr::V4(v4) => intervals::contains(&self.v4, v4.to_bits()),
            IpAddr::V6(v6) => intervals::contains(&self.v6, v6.to_bits()),
        }
    }

    /// Whether no address is in the set.
    pub fn is_empty(&self) -> bool {
        self.v4.is_empty() && self.v6.is_empty()
    }

    /// The least address in the set, IPv4 first.
    pub fn shortest(&self) -> Option<IpAddr> {
        let v4 = self.v4.first().map(|range| IpAddr::V4(Ipv4Addr::from_bits(range.0)));
        v4.or_else(|| self.v6.first().map(|range| IpAddr::V6(Ipv6Addr::from_bits(range.0))))
    }

    /// All addresses of both.
    #[must_use]
    pub fn union(&self, other: &Self) -> Self {
        Self { v4: intervals::union(&self.v4, &other.v4), v6: intervals::union(&self.v6, &other.v6) }
    }

    /// The addresses in both.
    #[must_use]
    pub fn intersection(&self, other: &Self) -> Self {
        Self { v4: intervals::intersection(&self.v4, &other.v4), v6: intervals::intersection(&self.v6, &other.v6) }
    }

    /// The addresses that are not in `other`.
    #[must_use]
    pub fn difference(&self, other: &Self) -> Self {
        Self { v4: intervals::difference(&self.v4, &other.v4), v6: intervals::difference(&self.v6, &other.v6) }
    }

    /// Whether every address is in `other`.
    ///
    /// # Errors
    /// The least address that is not.
    pub fn is_subset(&self, other: &Self) -> Result<(), IpAddr> {
        self.difference(other).shortest().map_or(Ok(()), Err)
    }

    /// Whether this set is inside `other` and not equal to it.
    pub fn is_strictly_inside(&self, other: &Self) -> bool {
        self.is_subset(other).is_ok() && self != other
    }

    /// The least address in both.
    pub fn overlap(&self, other: &Self) -> Option<IpAddr> {
        self.intersection(other).shortest()
    }

    /// The set with the IPv6 forms that carry its IPv4 addresses: 64:ff9b::/96 and 2002::/16.
    #[must_use]
    pub fn carried(&self) -> Self {
        let mut v6 = self.v6.clone();
        for &(low, high) in &self.v4 {
            let (low, high) = (u128::from(low), u128::from(high));
            v6.push((TRANSLATED | low, TRANSLATED | high));
            v6.push((SIX_TO_FOUR | low << 80, SIX_TO_FOUR | high << 80 | ((1 << 80) - 1)));
        }
        Self { v4: self.v4.clone(), v6: intervals::normal(v6) }
    }

    /// The inclusive ranges, IPv4 first.
    pub fn ranges(&self) -> impl Iterator<Item = (IpAddr, IpAddr)> + '_ {
        let v4 = |bits| IpAddr::V4(Ipv4Addr::from_bits(bits));
        let v6 = |bits| IpAddr::V6(Ipv6Addr::from_bits(bits));
        let first = self.v4.iter().map(move |&(low, high)| (v4(low), v4(high)));
        first.chain(self.v6.iter().map(move |&(low, high)| (v6(low), v6(high))))
    }
}

/// As networks, in the fewest.
impl fmt::Display for AddressSet {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut first = true;
        for (low, high) in self.ranges() {
            let networks: Vec<IpNet> = match (low, high) {
                (IpAddr::V4(low), IpAddr::V4(high)) => ipnet::Ipv4Subnets::new(low, high, 0).map(IpNet::from).collect(),
                (IpAddr::V6(low), IpAddr::V6(high)) => ipnet::Ipv6Subnets::new(low, high, 0).map(IpNet::from).collect(),
                _ => Vec::new(),
            };
            for network in networks {
                if !first {
                    f.write_str(", ")?;
                }
                first = false;
                match network {
                    IpNet::V4(network) if network.prefix_len() == 32 => write!(f, "{}", network.addr())?,
                    IpNet::V4(network) => write!(f, "{network}")?,
                    IpNet::V6(network) if network.prefix_len() == 128 => write!(f, "[{}]", network.addr())?,
                    IpNet::V6(network) => write!(f, "[{}]/{}", network.addr(), network.prefix_len())?,
                }
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::*;

    fn set(text: &str) -> AddressSet {
        parse_network(text).unwrap()
    }

    fn ip(text: &str) -> IpAddr {
        text.parse().unwrap()
    }

    #[test]
    fn a_mapped_address_is_its_ipv4_address() {
        assert!(set("10.0.0.0/8").contains(ip("::ffff:10.1.2.3")));
        assert_eq!(set("[::ffff:10.0.0.0]/104"), set("10.0.0.0/8"));
        assert_eq!(set("[::ffff:0:0]/96"), set("0.0.0.0/0"));
        assert!(!set("[::]/0").contains(ip("::ffff:1.2.3.4")));
        assert!(!set("[::]/0").contains(ip("1.2.3.4")));
        assert!(set("[::]/0").contains(ip("::1:0:0:0")));
    }

    #[test]
    fn the_forms_that_carry_an_address() {
        let carried = set("10.0.0.0/8").carried();
        for (address, inside) in [
            ("64:ff9b::10.0.0.0", true),
            ("64:ff9b::10.255.255.255", true),
            ("64:ff9b::11.0.0.0", false),
            ("64:ff9b:0:0:0:1:a00:1", false),
            ("2002:a00::", true),
            ("2002:aff:ffff:ffff:ffff:ffff:ffff:ffff", true),
            ("2002:b00::", false),
            ("10.0.0.1", true),
        ] {
            assert_eq!(carried.contains(ip(address)), inside, "{address}");
            let by_part = set("10.0.0.0/8").contains(ip(address))
                || super::carried(ip(address)).is_some_and(|v4| set("10.0.0.0/8").contains(v4.into()));
            assert_eq!(by_part, inside, "{address}");
        }
        assert_eq!(carried.carried(), carried);
    }

    #[test]
    fn odd_spellings_are_named() {
        for odd in ["127.1", "0x7f.1", "2130706433", "0177.0.0.1", "127.0.0.01", "0x7f000001"] {
            assert_eq!(
                parse_address(odd),
                Err(AddressError::Odd { given: odd.into(), canonical: "127.0.0.1".into() }),
                "{odd}"
            );
        }
        for not in ["", "1.2.3.4.5", "256.1.1.1", "fe80::1%eth0", "[127.0.0.1]", "a.b", "4294967296", "10.0.0.0/8"] {
            assert_eq!(parse_address(not), Err(AddressError::Not), "{not}");
        }
    }

    #[test]
    fn networks() {
        let host_bits =
            |given: &str, network: &str| Err(AddressError::HostBits { given: given.into(), network: network.into() });
        assert_eq!(parse_network("10.1.0.0/8"), host_bits("10.1.0.0/8", "10.0.0.0/8"));
        assert_eq!(parse_network("[2001:db8::1]/32"), host_bits("[2001:db8::1]/32", "[2001:db8::]/32"));
        for not in ["10.0.0.0/33", "10.0.0.0/+8", "10.0.0.0/08", "10.0.0.0/", "/8", "[::]/129"] {
            assert_eq!(parse_network(not), Err(AddressError::Not), "{not}");
        }
        let rest = set("10.0.0.0/8").difference(&set("10.0.0.0/9"));
        assert_eq!(rest.to_string(), "10.128.0.0/9");
        assert!(rest.is_strictly_inside(&set("10.0.0.0/8")) && !rest.is_strictly_inside(&rest));
        assert_eq!(set("0.0.0.0/0").is_subset(&set("0.0.0.0/1")), Err(ip("128.0.0.0")));
        assert_eq!(set("255.255.255.255").overlap(&set("128.0.0.0/1")), Some(ip("255.255.255.255")));
    }
}
