//! Where a request wants to go: `host:port` of CONNECT and of an absolute URI (RFC 9112, sections 3.2.2 and 3.2.3), from
//! text that may be anything.
//!
//! One spelling has one meaning, and it is the one that is decided and dialled: what other programs read differently
//! (userinfo, percent-encoding, `127.1`, a zone, brackets round a name) is refused, never repaired. Pure; resolves
//! nothing.

use crate::sets::host::Name;
use std::fmt;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// A host and a port, canonical.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Authority {
    pub host: Host,
    /// Never 0.
    pub port: u16,
}

/// The host of an [`Authority`].
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Host {
    Name(Name),
    /// `localhost` or a name under it: the two loopback addresses, never asked of a resolver (RFC 6761, section 6.3).
    Localhost(Name),
    /// A mapped address is its IPv4 address.
    Address(IpAddr),
}

/// The two loopback addresses: where [`Host::Localhost`] leads.
pub const LOOPBACK: [IpAddr; 2] = [IpAddr::V4(Ipv4Addr::LOCALHOST), IpAddr::V6(Ipv6Addr::LOCALHOST)];

/// Why a text is no authority.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Malformed {
    #[error("the host is missing")]
    NoHost,
    #[error("the port is missing")]
    NoPort,
    #[error("a port is a number from 1 to 65535, without sign or leading zero")]
    Port,
    #[error("a user or password before the host is not taken")]
    Userinfo,
    #[error("the character {0:?} stands in no host")]
    Character(char),
    #[error("brackets stand only round an IPv6 address, without a zone")]
    Brackets,
    #[error("an IPv6 address stands in brackets")]
    Unbracketed,
    #[error("an IPv4 address has four decimal parts without leading zeros")]
    Number,
    #[error("that is no host name: {0}")]
    Name(String),
}

impl Authority {
    /// Reads `host:port`; without a port it is `default_port`, and an error where that is `None`.
    ///
    /// # Errors
    /// The first reason why the text is not the one spelling of a host and a port.
    pub fn parse(text: &str, default_port: Option<u16>) -> Result<Self, Malformed> {
        if text.contains('@') {
            return Err(Malformed::Userinfo);
        }
        if let Some(character) = text.chars().find(|c| !c.is_ascii_graphic() || "%/\\?#".contains(*c)) {
            return Err(Malformed::Character(character));
        }
        let (host, port) = if let Some(rest) = text.strip_prefix('[') {
            let (inside, after) = rest.split_once(']').ok_or(Malformed::Brackets)?;
            let address: Ipv6Addr = inside.parse().map_err(|_| Malformed::Brackets)?;
            let port = match after.strip_prefix(':') {
                Some(port) => Some(port),
                None if after.is_empty() => None,
                None => return Err(Malformed::Brackets),
            };
            (Host::Address(IpAddr::V6(address).to_canonical()), port)
        } else {
            let (host, port) = match text.split_once(':') {
                Some((host, port)) => (host, Some(port)),
                None => (text, None),
            };
            if port.is_some_and(|port| port.contains(':')) {
                return Err(Malformed::Unbracketed);
            }
            (host_without_brackets(host)?, port)
        };
        let port = match port {
            Some(digits) => read_port(digits)?,
            None => default_port.ok_or(Malformed::NoPort)?,
        };
        Ok(Self { host, port })
    }

    /// The name or address alone, an IPv6 address without brackets.
    pub fn host_text(&self) -> String {
        match &self.host {
            Host::Name(name) | Host::Localhost(name) => name.to_string(),
            Host::Address(address) => address.to_string(),
        }
    }

    /// The value of a `Host` field: the port is left out where it is `default_port`.
    pub fn host_field(&self, default_port: u16) -> String {
        let text = self.to_string();
        match text.rsplit_once(':') {
            Some((host, _)) if self.port == default_port => host.to_owned(),
            _ => text,
        }
    }
}

/// `host:port`, an IPv6 address in brackets.
impl fmt::Display for Authority {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.host {
            Host::Name(name) | Host::Localhost(name) => write!(f, "{name}:{}", self.port),
            Host::Address(IpAddr::V4(address)) => write!(f, "{address}:{}", self.port),
            Host::Address(IpAddr::V6(address)) => write!(f, "[{address}]:{}", self.port),
        }
    }
}

fn host_without_brackets(text: &str) -> Result<Host, Malformed> {
    if text.is_empty() {
        return Err(Malformed::NoHost);
    }
    if text.contains(['[', ']']) {
        return Err(Malformed::Brackets);
    }
    if let Ok(address) = text.parse::<Ipv4Addr>() {
        return Ok(Host::Address(address.into()));
    }
    if reads_as_number(text) {
        return Err(Malformed::Number);
    }
    let name = Name::parse(text).map_err(|error| Malformed::Name(error.to_string()))?;
    Ok(if name.is_localhost() { Host::Localhost(name) } else { Host::Name(name) })
}

/// Whether `inet_aton` or a browser might take the text for an IPv4 address: its last label is a number (the URL
/// standard's "ends in a number").
fn reads_as_number(text: &str) -> bool {
    let text = text.strip_suffix('.').unwrap_or(text);
    let last = text.rsplit('.').next().unwrap_or(text);
    let hexadecimal = last.strip_prefix("0x").or_else(|| last.strip_prefix("0X"));
    match hexadecimal {
        Some(digits) => digits.bytes().all(|byte| byte.is_ascii_hexdigit()),
        None => !last.is_empty() && last.bytes().all(|byte| byte.is_ascii_digit()),
    }
}

/// Digits alone: `str::parse` would take `+80`, and others read `080` differently.
fn read_port(digits: &str) -> Result<u16, Malformed> {
    if digits.starts_with('0') || !digits.bytes().all(|byte| byte.is_ascii_digit()) {
        return Err(Malformed::Port);
    }
    digits.parse().map_err(|_| Malformed::Port)
}

#[cfg(test)]
mod tests;
