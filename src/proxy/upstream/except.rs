//! What `NO_PROXY` exempts: names and what is below them, addresses, networks, each with a port or for all; or everything.
//!
//! There is no standard; what most programs agree on is read. The loopback is always exempt.

use crate::proxy::authority::{Authority, Host};
use crate::sets::address::{AddressSet, parse_network};
use crate::sets::host::Name;
use std::net::{IpAddr, Ipv6Addr};

#[derive(Debug, Default)]
pub struct Except {
    entries: Vec<(Which, Option<u16>)>,
    not_understood: Vec<String>,
}

#[derive(Debug)]
enum Which {
    Everything,
    /// This name and all below it.
    Tree(Name),
    Network(AddressSet),
}

impl Except {
    /// Reads entries with commas or blanks between them.
    pub fn parse(text: &str) -> Self {
        let mut except = Self::default();
        for word in text.split([',', ' ', '\t', '\n']).filter(|word| !word.is_empty()) {
            match entry(word) {
                Some(entry) => except.entries.push(entry),
                None => except.not_understood.push(word.to_owned()),
            }
        }
        except
    }

    /// What is neither a host nor a network.
    pub fn not_understood(&self) -> &[String] {
        &self.not_understood
    }

    pub fn covers(&self, to: &Authority) -> bool {
        match &to.host {
            Host::Localhost(_) => return true,
            Host::Address(address) if address.is_loopback() => return true,
            _ => {}
        }
        self.entries.iter().any(|(which, port)| {
            port.is_none_or(|port| port == to.port)
                && match (which, &to.host) {
                    (Which::Everything, _) => true,
                    (Which::Tree(top), Host::Name(name)) => {
                        let above = name.as_str().strip_suffix(top.as_str());
                        above.is_some_and(|above| above.is_empty() || above.ends_with('.'))
                    }
                    (Which::Network(network), Host::Address(address)) => network.contains(*address),
                    _ => false,
                }
        })
    }
}

fn entry(word: &str) -> Option<(Which, Option<u16>)> {
    let whole = |host: &str| host_of(host).map(|which| (which, None));
    // An IPv6 address has colons of its own.
    if word.split('/').next().is_some_and(|address| address.parse::<Ipv6Addr>().is_ok()) {
        return whole(word);
    }
    match word.rsplit_once(':') {
        Some((host, port)) if !port.ends_with(']') && !port.contains("]/") => {
            let port = port.parse().ok().filter(|port| *port != 0)?;
            Some((host_of(host)?, Some(port)))
        }
        _ => whole(word),
    }
}

fn host_of(text: &str) -> Option<Which> {
    if text == "*" {
        return Some(Which::Everything);
    }
    let (address, length) = text.split_once('/').map_or((text, None), |(address, length)| (address, Some(length)));
    let bare = address.strip_prefix('[').and_then(|rest| rest.strip_suffix(']')).unwrap_or(address);
    if let Ok(address) = bare.parse::<IpAddr>() {
        let Some(length) = length else { return Some(Which::Network(AddressSet::from(address.to_canonical()))) };
        let network = if address.is_ipv4() { format!("{address}/{length}") } else { format!("[{address}]/{length}") };
        return parse_network(&network).ok().map(Which::Network);
    }
    let name = text.strip_prefix("*.").or_else(|| text.strip_prefix('.')).unwrap_or(text);
    Name::parse(name).ok().map(Which::Tree)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn names_networks_and_ports() {
        for (list, covered, others) in [
            ("", "localhost 127.0.0.1 127.8.8.8 [::1]", "a.test 192.0.2.7"),
            ("*", "a.test 192.0.2.7 [2001:db8::7]", ""),
            ("a.test", "a.test b.a.test A.TEST", "ba.test test a.test.x"),
            (".a.test", "a.test b.a.test", "ba.test"),
            ("*.a.test, c.test", "b.a.test c.test", "d.test"),
            ("a.test:8080 b.test", "a.test:8080 b.test:1", "a.test"),
            ("192.0.2.7", "192.0.2.7", "192.0.2.8 a.test"),
            ("10.0.0.0/8,192.0.2.0/24:80", "10.1.2.3 192.0.2.9:80", "11.0.0.1 192.0.2.9"),
            ("2001:db8::/32", "[2001:db8::7]", "[2001:db9::7]"),
            ("[2001:db8::7]:80,[2001:db8::8]", "[2001:db8::7]:80 [2001:db8::8]", "[2001:db8::7]"),
            ("[2001:db8::]/32", "[2001:db8::7]", "[2001:db9::7]"),
        ] {
            let except = Except::parse(list);
            assert_eq!(except.not_understood(), <[String; 0]>::default(), "{list}");
            let covers = |text: &str| except.covers(&Authority::parse(text, Some(443)).unwrap());
            for text in covered.split_whitespace() {
                assert!(covers(text), "{list}: {text}");
            }
            for text in others.split_whitespace() {
                assert!(!covers(text), "{list}: {text}");
            }
        }
    }

    #[test]
    fn what_is_no_host_is_told() {
        let except = Except::parse("10.0.0.*, a.test:x ,10.0.0.1/8 a..b <local> c.test");
        assert_eq!(except.not_understood(), ["10.0.0.*", "a.test:x", "10.0.0.1/8", "a..b", "<local>"]);
    }
}
