//! The other end of a connection as a command line names it: `HOST[:PORT]` or `ADDRESS[:PORT]`.

use sandbox_runtime::ir::Access;
use sandbox_runtime::sets::host::Name;
use sandbox_runtime::sets::peer::Protocol;
use sandbox_runtime::vocabulary::Verb;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// What a name stands for where it is not looked up: an address that is neither special nor private (RFC 5737).
const PUBLIC: IpAddr = IpAddr::V4(Ipv4Addr::new(203, 0, 113, 1));

/// The port of a target that names none.
const HTTPS: u16 = 443;

/// The accesses that a target means: one, but for `localhost`, which has two addresses.
///
/// # Errors
/// A sentence for the command line.
pub fn accesses(verb: Verb, target: &str) -> Result<Vec<Access>, String> {
    let (target, protocol) = match target.strip_suffix("/udp") {
        Some(target) => (target, Protocol::Udp),
        None => (target, Protocol::Tcp),
    };
    let (host, port) = split(target)?;
    let address = host.parse::<IpAddr>().ok();
    if verb == Verb::Listen {
        let address = address.ok_or_else(|| format!("`{host}` is not an address"))?;
        return Ok(vec![Access::Listen { address, port }]);
    }
    let connect = |name, address| Access::Connect { name, address, port, protocol };
    if let Some(address) = address {
        return Ok(vec![connect(None, address)]);
    }
    let name = Name::parse(host).map_err(|error| format!("`{host}` is not a host: {error}"))?;
    let loopback = name.to_string() == "localhost" || name.to_string().ends_with(".localhost");
    if loopback {
        return Ok(vec![connect(None, Ipv4Addr::LOCALHOST.into()), connect(None, Ipv6Addr::LOCALHOST.into())]);
    }
    Ok(vec![connect(Some(name), PUBLIC)])
}

fn split(target: &str) -> Result<(&str, u16), String> {
    let (host, port) = if let Some(rest) = target.strip_prefix('[') {
        let (host, rest) = rest.split_once(']').ok_or_else(|| format!("`{target}` lacks a `]`"))?;
        (host, rest.strip_prefix(':').or(if rest.is_empty() { None } else { Some(rest) }))
    } else {
        match target.rsplit_once(':') {
            // An IPv6 address without brackets has no port.
            Some((host, port)) if !host.contains(':') => (host, Some(port)),
            _ => (target, None),
        }
    };
    let Some(port) = port else { return Ok((host, HTTPS)) };
    match port.parse() {
        Ok(port) if port > 0 => Ok((host, port)),
        _ => Err(format!("`{port}` is not a port")),
    }
}
