//! Hosts as settings files write them: a name, `*.` and a name, an address, each with a port or for all of them.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// Which list an entry stands in.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Side {
    Allowed,
    Denied,
}

/// The targets of one entry.
///
/// # Errors
/// One sentence: what is wrong with it, and what to write instead.
pub fn targets(entry: &str, side: Side) -> Result<Vec<String>, String> {
    let (host, port) = split(entry)?;
    // Without a port every one is meant; a denial without one means every one of UDP too.
    let ports = match (port, side) {
        (Some(port), _) => format!(":{port}"),
        (None, Side::Allowed) => ":*".to_owned(),
        (None, Side::Denied) => String::new(),
    };
    if let Some(address) = bracketed(host)? {
        return Ok(vec![format!("[{address}]{ports}")]);
    }
    if host == "*" {
        return match side {
            Side::Denied => Ok(vec![format!("*{ports}"), format!("0.0.0.0/0{ports}"), format!("[::]/0{ports}")]),
            Side::Allowed => Err("`*` would allow every host; name the hosts, or `*.example.com`".to_owned()),
        };
    }
    if host == "localhost" {
        if side == Side::Allowed && port.is_none() {
            return Err(
                "every port of this machine cannot be opened at once; name one, as in `localhost:3000`".to_owned()
            );
        }
        return Ok(vec![format!("localhost{ports}")]);
    }
    if host.parse::<Ipv4Addr>().is_ok() {
        return Ok(vec![format!("{host}{ports}")]);
    }
    let name = host.strip_prefix("*.").unwrap_or(host);
    let label = |label: &str| !label.is_empty() && label.chars().all(|c| c.is_alphanumeric() || "-_".contains(c));
    let labels: Vec<_> = name.split('.').collect();
    if host.contains("://") || host.contains('/') {
        let rest = host.split_once("://").map_or(host, |(_, rest)| rest);
        let inner = rest.split(['/', ':']).next().unwrap_or_default();
        return Err(format!("`{entry}` is a URL; write the host alone: `{inner}`"));
    }
    if !labels.iter().all(|part| label(part)) {
        return Err(format!("`{entry}` is not a host; write a name such as `example.com`, or `*.example.com`"));
    }
    if labels.len() < 2 {
        let wide = if host.starts_with("*.") { "names a whole top-level domain" } else { "has no dot in it" };
        return Err(format!("`{entry}` {wide}; write the host's whole name"));
    }
    Ok(vec![format!("{host}{ports}")])
}

/// The host and the port.
fn split(entry: &str) -> Result<(&str, Option<u16>), String> {
    let after = if entry.starts_with('[') {
        let close = entry.find(']').ok_or_else(|| format!("`{entry}` lacks a `]`"))?;
        close + 1
    } else {
        match (entry.find(':'), entry.rfind(':')) {
            (Some(first), Some(last)) if first != last && !entry.contains("://") => {
                return Err(format!(
                    "`{entry}` could be read in two ways; write the address in brackets, as in `[::1]:443`"
                ));
            }
            (_, Some(at)) if !entry.contains("://") => at,
            _ => entry.len(),
        }
    };
    let (host, rest) = entry.split_at(after);
    if rest.is_empty() {
        return Ok((host, None));
    }
    let digits = rest.strip_prefix(':').filter(|digits| !digits.starts_with('0'));
    let port =
        digits.filter(|digits| digits.bytes().all(|b| b.is_ascii_digit())).and_then(|digits| digits.parse().ok());
    let port = port.ok_or_else(|| format!("`{rest}` is not a port; write one from 1 to 65535, as in `{host}:443`"))?;
    Ok((host, Some(port)))
}

fn bracketed(host: &str) -> Result<Option<Ipv6Addr>, String> {
    let Some(inner) = host.strip_prefix('[').and_then(|rest| rest.strip_suffix(']')) else { return Ok(None) };
    let address = inner.parse().map_err(|_| format!("`{host}` is not an IPv6 address"))?;
    Ok(Some(address))
}

/// An address or a range, as a target: bits past the range's length are taken away.
///
/// # Errors
/// One sentence.
pub fn range(entry: &str) -> Result<String, String> {
    let wrong = || format!("`{entry}` is not an address or a range; write one as `10.0.0.0/8` or `fc00::/7`");
    let (address, length) = match entry.split_once('/') {
        Some((address, length)) => (address, Some(length.parse::<u32>().map_err(|_| wrong())?)),
        None => (entry, None),
    };
    match (address.parse().map_err(|_| wrong())?, length) {
        (IpAddr::V4(address), None) => Ok(address.to_string()),
        (IpAddr::V6(address), None) => Ok(format!("[{address}]")),
        (IpAddr::V4(address), Some(length @ 0..=32)) => {
            let mask = u32::MAX.checked_shl(32 - length).unwrap_or(0);
            Ok(format!("{}/{length}", Ipv4Addr::from(u32::from(address) & mask)))
        }
        (IpAddr::V6(address), Some(length @ 0..=128)) => {
            let mask = u128::MAX.checked_shl(128 - length).unwrap_or(0);
            Ok(format!("[{}]/{length}", Ipv6Addr::from(u128::from(address) & mask)))
        }
        _ => Err(wrong()),
    }
}
