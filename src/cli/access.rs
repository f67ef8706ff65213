//! An access as a command line or a suite names it: a verb and a target; of connections `HOST[:PORT]` or `ADDRESS[:PORT]`.

use sandbox_runtime::ir::{Access, request, special};
use sandbox_runtime::sets::path::AbsPath;
use sandbox_runtime::sets::peer::Protocol;
use sandbox_runtime::vocabulary::Verb;

/// The port of a target that names none.
const HTTPS: u16 = 443;

/// The accesses that a verb and a target mean: one, but for `localhost`, which has two addresses. `path` is the target as a
/// path.
///
/// # Errors
/// A sentence for the command line.
pub fn accesses(
    verb: Verb,
    target: &str,
    path: impl FnOnce() -> Result<AbsPath, String>,
) -> Result<Vec<Access>, String> {
    Ok(match verb {
        Verb::Read => vec![Access::Read(path()?)],
        Verb::Write => vec![Access::Write(path()?)],
        Verb::Exec => vec![Access::Exec(path()?)],
        Verb::Socket => vec![Access::Socket(path()?)],
        Verb::Connect | Verb::Listen => connections(verb, target)?,
        Verb::Env => vec![Access::Env(target.strip_prefix('$').unwrap_or(target).to_owned())],
        Verb::Mach => vec![Access::Mach(target.to_owned())],
    })
}

fn connections(verb: Verb, target: &str) -> Result<Vec<Access>, String> {
    let (target, protocol) = match target.strip_suffix("/udp") {
        Some(target) => (target, Protocol::Udp),
        None => (target, Protocol::Tcp),
    };
    let (host, port) = split(target)?;
    if verb == Verb::Listen {
        let address = host.parse().map_err(|_| format!("`{host}` is not an address"))?;
        return Ok(vec![Access::Listen { address, port }]);
    }
    let target = request::target(host).map_err(|error| format!("`{host}` is not a host: {error}"))?;
    Ok(target.accesses(&[special::NOMINAL], port, protocol))
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
