//! Rules that allow far more than a task needs: whole disks and homes, every host, what strangers may register, every port.
//!
//! Judges each rule by itself; which breadth is too much is a closed table here.

pub(super) mod suffix;

use super::{granted, is_given, listed, place};
use crate::diagnostic::Diagnostic;
use crate::diagnostic::codes;
use crate::ir::{Access, Policy, Rule, RuleId, Subject, decide, special};
use crate::sets::address::AddressSet;
use crate::sets::host::{Host, HostSet, Pattern};
use crate::sets::name::{self, NameSet};
use crate::sets::path::PathSet;
use crate::sets::peer::{Endpoint, PeerSet, Protocol};
use crate::vocabulary::{Effect, Verb};
use std::net::IpAddr;

codes! {
    /// # `broad-grant`
    ///
    /// ## What it says
    /// A rule allows far more than a task needs: the whole disk or a whole home; every host, every name below a suffix that
    /// anyone may register or rent a name under (`*.co.uk`, `*.github.io`), a large network; every port; every variable.
    ///
    /// ## Why
    /// What a rule allows beyond its purpose is what an attacker finds open. A wildcard over a suffix that is sold by the name
    /// lets the command send to a host that was rented for that. Ports that nobody meant are other services.
    ///
    /// ## Example
    /// ```policy
    /// srt 1
    /// use std/system
    /// default read deny
    /// allow read ~
    /// ```
    /// ```policy
    /// srt 1
    /// use std/system
    /// default read deny
    /// allow connect *.github.io
    /// ```
    ///
    /// ## Use instead
    /// ```policy
    /// srt 1
    /// use std/system
    /// default read deny
    /// allow read ~/notes
    /// ```
    /// ```policy
    /// srt 1
    /// use std/system
    /// default read deny
    /// allow connect docs.example.github.io
    /// ```
    pub BROAD_GRANT = "broad-grant", Warning;
}

/// A name that no rule is likely to have for itself.
const ANY: &str = "any-name";

/// More addresses than a /16 of IPv4 holds are a wide network.
const WIDE_V4: u128 = 1 << 16;
/// More than a site's /48 of IPv6 (RFC 6177 section 2).
const WIDE_V6: u128 = 1 << 80;

/// What is too broad about a rule.
struct Broad {
    what: String,
    witness: Access,
    help: &'static str,
}

/// One finding for each rule that is too broad.
pub fn check(policy: &Policy) -> Vec<Diagnostic> {
    let rules = (0..).map(RuleId).zip(&policy.rules);
    let allows = rules.filter(|(_, rule)| rule.effect == Effect::Allow && is_given(rule));
    allows
        .filter_map(|(_, rule)| {
            let broad = match &rule.subject {
                Subject::Paths(set) => paths(policy, rule.verb, set),
                Subject::Peers(set) => peers(policy, rule, set),
                Subject::Names(set) => names(policy, rule.verb, set),
            }?;
            let message = format!("this allows {}", broad.what);
            let text = format!("more than a task needs{}", listed(policy, rule, &broad.witness));
            let diagnostic = Diagnostic::new(&BROAD_GRANT, message).label(rule.span, text);
            Some(diagnostic.witness(broad.witness.to_string()).help(broad.help))
        })
        .collect()
}

fn permitted(policy: &Policy, access: Access) -> Option<Access> {
    decide(policy, &access).allowed.then_some(access)
}

/// Places that hold everything of somebody, the widest first.
const WHOLE: &[(&str, &str)] = &[
    ("/", "the whole disk"),
    ("/home", "every home"),
    ("/Users", "every home"),
    ("~", "a whole home"),
    ("/root", "root's whole home"),
    ("/home/*", "a whole home"),
    ("/Users/*", "a whole home"),
];

fn paths(policy: &Policy, verb: Verb, set: &PathSet) -> Option<Broad> {
    // The default has said so already.
    if verb == Verb::Read && policy.default_read.value == Effect::Allow {
        return None;
    }
    WHOLE.iter().find_map(|(text, what)| {
        let pattern = place::tree(text, policy);
        let top = match pattern.as_literal() {
            Some(top) => top,
            // One home of several: which one is the rule's matter.
            None => set
                .include
                .iter()
                .filter_map(crate::sets::path::Pattern::as_literal)
                .find(|top| top.segments.len() == pattern.segments.len() && pattern.contains(top))?,
        };
        let (below, deeper) = (top.join(ANY), top.join(ANY).join(ANY));
        if !set.include.iter().any(|own| own.contains(&below) && own.contains(&deeper)) {
            return None;
        }
        let witness = permitted(policy, granted::access(verb, below)?)?;
        let help = "name the directories that the task needs, as in `$WORKSPACE`";
        Some(Broad { what: format!("{} {what}", doing(verb)), witness, help })
    })
}

fn doing(verb: Verb) -> &'static str {
    match verb {
        Verb::Write => "writing",
        Verb::Exec => "running anything in",
        Verb::Socket => "connecting to any socket in",
        _ => "reading",
    }
}

fn names(policy: &Policy, verb: Verb, set: &NameSet) -> Option<Broad> {
    let closed = policy.default_env.as_ref().is_some_and(|default| default.value == Effect::Deny);
    let every = set.include.iter().any(|pattern| pattern.contains(ANY) && matches!(pattern, name::Pattern::Glob(_)));
    let (access, what): (fn(String) -> Access, _) = match verb {
        Verb::Env if closed => (Access::Env, "every variable of the environment"),
        Verb::Mach => (Access::Mach, "every mach service"),
        _ => return None,
    };
    let witness = every.then(|| permitted(policy, access(ANY.to_owned())))??;
    Some(Broad { what: what.to_owned(), witness, help: "name those that the task needs" })
}

fn peers(policy: &Policy, rule: &Rule, set: &PeerSet) -> Option<Broad> {
    let (hosts, witness) = match &set.endpoint {
        Endpoint::Hosts(hosts) => {
            let (what, pattern) = host(hosts);
            let one = HostSet { include: vec![pattern?], exclude: hosts.exclude.clone() };
            (what, Peer::Name(one))
        }
        Endpoint::Addresses(addresses) => {
            let (what, least) = address(rule.verb, addresses);
            (what, Peer::Address(least?))
        }
    };
    let ports = set.ports.is_all().then(|| "every port".to_owned());
    let help = match (&hosts, &ports) {
        (Some(_), Some(_)) => "name the hosts and the ports that the task needs, as in `api.example.com:443`",
        (Some(_), None) => "name the hosts that the task needs, as in `api.example.com`",
        _ => "name the ports that the task needs, as in `:{80,443}`",
    };
    let what = [hosts, ports].into_iter().flatten().collect::<Vec<_>>().join(", and ");
    if what.is_empty() {
        return None;
    }
    let access = match witness {
        Peer::Name(one) => {
            let Host::Name(name) = one.shortest()? else { return None };
            connection(set, Some(name), special::NOMINAL)?
        }
        Peer::Address(address) if rule.verb == Verb::Listen => Access::Listen { address, port: set.ports.shortest()? },
        Peer::Address(address) => connection(set, None, address)?,
    };
    Some(Broad { what, witness: permitted(policy, access)?, help })
}

/// Whom the witness is to connect to.
enum Peer {
    Name(HostSet),
    Address(IpAddr),
}

/// What is broad about a set of names, if anything, and the pattern of it that is, or any.
fn host(hosts: &HostSet) -> (Option<String>, Option<Pattern>) {
    let broad = hosts.include.iter().find_map(|pattern| match pattern {
        Pattern::Table(table) => {
            let mut broad = table.wildcards().filter_map(|entry| Some((suffix::open(&entry)?, entry)));
            let (what, entry) = broad.next()?;
            Some((format!("{what}{}", super::more_lines(table, broad.count())), entry))
        }
        _ => Some((suffix::open(pattern)?, pattern.clone())),
    });
    match broad {
        Some((what, pattern)) => (Some(what), Some(pattern)),
        None => (None, hosts.include.first().cloned()),
    }
}

/// What is broad about a set of addresses, if anything, and an address of it.
fn address(verb: Verb, addresses: &AddressSet) -> (Option<String>, Option<IpAddr>) {
    // However many addresses loopback has, they are one machine.
    let loopback = |(low, high): &(IpAddr, IpAddr)| low.is_loopback() && high.is_loopback();
    let wide = addresses.ranges().filter(|range| !loopback(range)).find(wide);
    match wide {
        // Whichever of the host's addresses: it is still this host.
        Some((low, high)) if verb != Verb::Listen => {
            let whole = AddressSet::family(low).is_subset(addresses).is_ok();
            let what = if whole { "every address".to_owned() } else { format!("every address from {low} to {high}") };
            (Some(what), Some(low))
        }
        _ => (None, addresses.shortest()),
    }
}

fn connection(set: &PeerSet, name: Option<crate::sets::host::Name>, address: IpAddr) -> Option<Access> {
    let protocol = if set.tcp { Protocol::Tcp } else { Protocol::Udp };
    Some(Access::Connect { name, address, port: set.ports.shortest()?, protocol })
}

fn wide(range: &(IpAddr, IpAddr)) -> bool {
    match *range {
        (IpAddr::V4(low), IpAddr::V4(high)) => u128::from(high.to_bits() - low.to_bits()) >= WIDE_V4,
        (IpAddr::V6(low), IpAddr::V6(high)) => high.to_bits() - low.to_bits() >= WIDE_V6,
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::lint::tests::{bound, lines, symbolic};

    fn said(rules: &str) -> String {
        let text = format!("srt 1\ndefault read deny\ndefault env deny\n{rules}\n");
        let policy = symbolic(&text);
        lines(&policy, &text, &check(&policy))
    }

    #[test]
    fn whole_places() {
        for (rule, expected) in [
            ("allow read /", "warning /: this allows reading the whole disk (read /any-name)\n"),
            ("allow write ~", "warning ~: this allows writing a whole home (write $HOME/any-name)\n"),
            ("allow read /home", "warning /home: this allows reading every home (read /home/any-name)\n"),
            ("allow read /home/ann", "warning /home/ann: this allows reading a whole home (read /home/ann/any-name)\n"),
            ("allow read ~ except ~/.ssh", "warning ~: this allows reading a whole home (read $HOME/any-name)\n"),
            ("allow read ~/*", "warning ~/*: this allows reading a whole home (read $HOME/any-name)\n"),
            ("allow exec /", "warning /: this allows running anything in the whole disk (exec /any-name)\n"),
            ("allow read ~/.config", ""),
            ("allow read [exact ~, ~/src, /usr, $WORKSPACE, **/x, exact /]", ""),
            ("allow read ~\ndeny read ~/*", ""),
        ] {
            // `exec` needs the right to read, too.
            let rules =
                if rule.contains("exec") { format!("{rule}\nallow read exact /any-name") } else { rule.to_owned() };
            assert_eq!(said(&rules), expected, "{rule}");
        }
    }

    #[test]
    fn a_home_is_found_on_a_machine_too() {
        let text = "srt 1\ndefault read deny\nallow read /home/user\n";
        let policy = bound(text);
        assert!(lines(&policy, text, &check(&policy)).contains("a whole home (read /home/user/any-name)"));
        let text = "srt 1\ndefault read allow\nallow read /\n";
        let policy = symbolic(text);
        assert!(check(&policy).is_empty(), "the default said so");
    }

    #[test]
    fn hosts_ports_and_networks() {
        for (rule, expected) in [
            ("allow connect *", "warning *: this allows every host (connect x:80)\n"),
            ("allow connect *:*", "warning *:*: this allows every host, and every port (connect x:1)\n"),
            ("allow connect github.com:*", "warning github.com:*: this allows every port (connect github.com:1)\n"),
            (
                "allow connect 10.0.0.0/8:443",
                "warning 10.0.0.0/8:443: this allows every address from 10.0.0.0 to 10.255.255.255 (connect 10.0.0.0:443)\n",
            ),
            ("allow connect 0.0.0.0/0:443", "warning 0.0.0.0/0:443: this allows every address (connect 0.0.0.0:443)\n"),
            ("allow connect [::]/0:443", "warning [::]/0:443: this allows every address (connect [::1:0:0:0]:443)\n"),
            ("allow connect 10.1.0.0/16:443", ""),
            ("allow connect [2001:db8::]/48:443", ""),
            ("allow connect localhost:3000", ""),
            ("allow connect [example.com, *.example.com, api-*.example.com:22]", ""),
            ("allow listen 127.0.0.1:*", "warning 127.0.0.1:*: this allows every port (listen 127.0.0.1:1)\n"),
            ("allow listen 0.0.0.0/0:3000", ""),
            ("deny connect *", ""),
            ("allow connect *\nforbid connect *", ""),
        ] {
            assert_eq!(said(rule), expected, "{rule}");
        }
    }

    #[test]
    fn every_variable() {
        assert_eq!(said("allow env *"), "warning *: this allows every variable of the environment (env any-name)\n");
        assert_eq!(said("allow env [LC_*, PATH]"), "");
        let open = symbolic("srt 1\ndefault read deny\nallow env *\n");
        assert!(check(&open).is_empty(), "it is open by itself");
    }
}
