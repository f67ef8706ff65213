//! The variables by which programs find the proxy.

// The caller's environment says what proxy it has.
#![allow(clippy::disallowed_methods)]

use crate::ir::{Access, BoundPolicy, Subject, decide};
use crate::proxy::upstream::{BadVariable, Upstream, VARIABLES};
use crate::sets::path::AbsPath;
use crate::sets::peer::Endpoint;
use crate::sets::port::PortSet;
use crate::vocabulary::{Effect, Verb};
use std::collections::BTreeSet;
use std::ffi::OsString;
use std::net::SocketAddr;
use std::path::Path;

/// Curl asks an HTTP proxy for `ftp:` URLs, which no server answers; by SOCKS it goes there itself. The other variables
/// name HTTP, on the same port: httpx ends with an error where one of them names SOCKS, if it has no package for that.
const FTP: [&str; 2] = ["FTP_PROXY", "ftp_proxy"];
/// A host and a port alone, spoken to by CONNECT.
const RSYNC: &str = "RSYNC_PROXY";
const EXCEPTIONS: [&str; 2] = ["NO_PROXY", "no_proxy"];
/// By which git reaches what it speaks ssh to (git(1)).
const SSH: &str = "GIT_SSH_COMMAND";

/// The proxy that the caller's environment names for connections.
///
/// # Errors
/// A variable that names none.
pub fn upstream() -> Result<Option<Upstream>, BadVariable> {
    Upstream::from_variables(|name| std::env::var_os(name).map(|value| value.to_string_lossy().into_owned()))
}

/// Without the variables by which programs find the caller's own proxy: nothing inside can reach it but by ours, and there may
/// be a password in them. What the policy itself sets stays.
pub fn without_proxies(
    mut environment: Vec<(OsString, OsString)>,
    set: &BTreeSet<OsString>,
) -> Vec<(OsString, OsString)> {
    environment.retain(|(name, _)| set.contains(name) || !name.to_str().is_some_and(names_a_proxy));
    environment
}

fn names_a_proxy(name: &str) -> bool {
    const OWNERS: [&str; 6] = ["NPM_CONFIG_", "CARGO_", "PIP_", "YARN_", "GLOBAL_AGENT_", "BUN_CONFIG_"];
    const KINDS: [&str; 10] = ["HTTP", "HTTPS", "ALL", "FTP", "RSYNC", "SOCKS", "WS", "WSS", "GRPC", "NO"];
    let name = name.to_ascii_uppercase();
    let owned = OWNERS.iter().find_map(|owner| name.strip_prefix(owner));
    if matches!(owned, Some("PROXY" | "NOPROXY")) {
        return true;
    }
    owned.unwrap_or(&name).strip_suffix("_PROXY").is_some_and(|kind| KINDS.contains(&kind))
}

/// Adds the variables for the proxy, over what the caller had, but never over what the policy itself sets.
pub fn with_proxy(
    environment: &[(OsString, OsString)],
    set: &BTreeSet<OsString>,
    loopback: bool,
    proxy: SocketAddr,
) -> Vec<(OsString, OsString)> {
    let mut result: Vec<_> = environment.to_vec();
    let address = format!("http://{proxy}");
    let (socks, plain) = (format!("socks5h://{proxy}"), proxy.to_string());
    let exceptions = if loopback { "" } else { "localhost,127.0.0.1,::1" };
    let variables = VARIABLES
        .iter()
        .map(|name| (*name, address.as_str()))
        .chain(FTP.iter().map(|name| (*name, socks.as_str())))
        .chain([(RSYNC, plain.as_str())])
        .chain(EXCEPTIONS.iter().map(|name| (*name, exceptions)))
        .chain([("NODE_USE_ENV_PROXY", "1")]);
    for (name, value) in variables {
        let name = OsString::from(name);
        if set.contains(&name) {
            continue;
        }
        result.retain(|(other, _)| *other != name);
        result.push((name, value.into()));
    }
    result
}

/// What replaces variables of the same name where nothing is redirected, and no port is listened on but the proxy's: whatever
/// a rule lets the command reach on the loopback is reached through the proxy alone, and so is git over ssh, by this very
/// program, if the command may read and run it.
pub fn alone(
    environment: &[(OsString, OsString)],
    set: &BTreeSet<OsString>,
    policy: &BoundPolicy,
    own: Option<&Path>,
) -> Vec<(OsString, OsString)> {
    let mut variables = Vec::new();
    if reaches_loopback(policy, |_| true) {
        let names = EXCEPTIONS.iter().map(OsString::from).filter(|name| !set.contains(name));
        variables.extend(names.map(|name| (name, OsString::new())));
    }
    let has_its_own = environment.iter().any(|(name, _)| name == SSH || name == "GIT_SSH");
    if let Some(own) = own.and_then(Path::to_str).filter(|_| !has_its_own) {
        // It goes through two shells.
        let plain = own.chars().all(|c| c.is_ascii_alphanumeric() || "/._+-".contains(c));
        let allowed = AbsPath::parse(own).is_ok_and(|own| {
            decide(policy, &Access::Read(own.clone())).allowed && decide(policy, &Access::Exec(own)).allowed
        });
        if plain && allowed {
            variables.push((SSH.into(), format!("ssh -o ProxyCommand='{own} connect %h %p'").into()));
        }
    }
    variables
}

/// Whether a rule lets the command reach every port of the host's loopback. Connections to single ports are redirected, and
/// to others they stay inside; to all of them, they can only mean the host where the proxy is asked.
pub fn reaches_whole_loopback(policy: &BoundPolicy) -> bool {
    reaches_loopback(policy, PortSet::is_all)
}

/// Whether a rule lets the command reach such ports of the host's loopback.
fn reaches_loopback(policy: &BoundPolicy, ports: impl Fn(&PortSet) -> bool) -> bool {
    policy.rules.iter().filter(|rule| rule.effect == Effect::Allow && rule.verb == Verb::Connect).any(|rule| {
        let Subject::Peers(peers) = &rule.subject else { return false };
        if !ports(&peers.ports) {
            return false;
        }
        match &peers.endpoint {
            Endpoint::Addresses(addresses) => {
                ["127.0.0.1", "::1"].iter().any(|text| text.parse().is_ok_and(|address| addresses.contains(address)))
            }
            Endpoint::Hosts(_) => false,
        }
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::net::{IpAddr, Ipv4Addr};

    const PROXY: SocketAddr = SocketAddr::new(IpAddr::V4(Ipv4Addr::new(198, 18, 0, 1)), 3128);

    fn value(environment: &[(OsString, OsString)], name: &str) -> Vec<String> {
        environment.iter().filter(|(n, _)| n == name).map(|(_, v)| v.to_string_lossy().into_owned()).collect()
    }

    #[test]
    fn the_callers_own_proxy_is_replaced_and_the_policys_kept() {
        let before = [("http_proxy", "http://corporate:1"), ("HTTP_PROXY", "http://mine:2"), ("A", "b")]
            .map(|(name, value)| (OsString::from(name), OsString::from(value)));
        let after = with_proxy(&before, &BTreeSet::from(["HTTP_PROXY".into()]), false, PROXY);
        assert_eq!(value(&after, "http_proxy"), ["http://198.18.0.1:3128"]);
        assert_eq!(value(&after, "HTTP_PROXY"), ["http://mine:2"]);
        assert_eq!(value(&after, "ftp_proxy"), ["socks5h://198.18.0.1:3128"]);
        assert_eq!(value(&after, "NO_PROXY"), ["localhost,127.0.0.1,::1"]);
        assert_eq!(value(&after, "A"), ["b"]);
    }

    #[test]
    fn nothing_of_the_callers_proxy_comes_in_but_what_the_policy_sets() {
        let names = [
            "HTTP_PROXY",
            "https_proxy",
            "NO_PROXY",
            "npm_config_https_proxy",
            "npm_config_noproxy",
            "npm_config_proxy",
            "CARGO_HTTP_PROXY",
            "wss_proxy",
            "GLOBAL_AGENT_HTTP_PROXY",
            "PIP_PROXY",
            "ALL_PROXY",
        ];
        let stays = ["PATH", "GOPROXY", "MY_PROXY", "PROXY", "NODE_USE_ENV_PROXY", "npm_config_registry"];
        let all =
            names.iter().chain(&stays).map(|name| (OsString::from(name), "http://u:secret@corp".into())).collect();
        let left = without_proxies(all, &BTreeSet::from(["ALL_PROXY".into()]));
        let left: Vec<_> = left.iter().map(|(name, _)| name.to_str().unwrap_or_default()).collect();
        assert_eq!(left, [&["ALL_PROXY"][..], &stays].concat());
    }

    #[test]
    fn what_the_proxy_must_see_is_no_exception() {
        assert_eq!(value(&with_proxy(&[], &BTreeSet::new(), true, PROXY), "no_proxy"), [""]);
    }
}
