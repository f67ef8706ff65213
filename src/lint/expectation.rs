//! `expect`: the object it names is decided as it says.
//!
//! Asks `decide` about the shortest object of the set, not yet about every one.

use crate::codes;
use crate::diagnostic::Diagnostic;
use crate::ir::{Access, Expect, Policy, Subject, decide, special};
use crate::sets::host::{Host, Name};
use crate::sets::peer::{Endpoint, PeerSet, Protocol};
use crate::vocabulary::Verb;
use std::net::IpAddr;

codes! {
    /// # `expectation`
    ///
    /// ## What it says
    /// An `expect` statement does not hold: the access it names is decided the other way.
    ///
    /// ## Why
    /// An expectation says what a reviewer relies on. A policy that breaks one runs nothing.
    ///
    /// ## Example
    /// ```policy
    /// srt 1
    /// default read allow
    /// expect deny read ~/.ssh
    /// ```
    ///
    /// ## Use instead
    /// ```policy
    /// srt 1
    /// default read allow
    /// deny read ~/.ssh
    /// expect deny read ~/.ssh
    /// ```
    pub EXPECTATION = "expectation", Error;
}

/// One finding for each expectation that fails.
pub fn check(policy: &Policy) -> Vec<Diagnostic> {
    policy.expects.iter().filter_map(|expect| one(policy, expect)).collect()
}

fn one(policy: &Policy, expect: &Expect) -> Option<Diagnostic> {
    let Some(access) = named_object(expect) else {
        return Some(
            Diagnostic::new(&EXPECTATION, "this expectation is about nothing: its set is empty")
                .label(expect.span, "nothing is left of this")
                .help("take the `except` away, or the whole line"),
        );
    };
    let verdict = decide(policy, &access);
    if verdict.allowed == expect.allow {
        return None;
    }
    let (expected, found) = if expect.allow { ("allowed", "denied") } else { ("denied", "allowed") };
    let mut diagnostic = Diagnostic::new(&EXPECTATION, format!("expected to be {expected}, and it is {found}"))
        .label(expect.span, "this does not hold")
        .witness(access.to_string());
    for id in &verdict.decisive {
        diagnostic = diagnostic.label(policy.rule(*id).span, format!("{found} by this"));
    }
    let verb = expect.verb;
    let help = match (expect.allow, verdict.decisive.is_empty()) {
        (true, true) => format!("no rule allows it: add an `allow {verb}` for it"),
        (true, false) => format!("add a more specific `allow {verb}`, or take the rule that denies it away"),
        (false, true) => format!("the default permits it: add a `deny {verb}` for it"),
        (false, false) => format!("add a `deny {verb}` inside that rule, or make the rule narrower"),
    };
    Some(diagnostic.help(help))
}

/// The shortest object of an expectation's set.
fn named_object(expect: &Expect) -> Option<Access> {
    Some(match (&expect.subject, expect.verb) {
        (Subject::Paths(set), verb) => {
            let path = set.shortest()?;
            match verb {
                Verb::Write => Access::Write(path),
                Verb::Exec => Access::Exec(path),
                Verb::Socket => Access::Socket(path),
                _ => Access::Read(path),
            }
        }
        (Subject::Peers(set), Verb::Listen) => {
            let (_, address, port, _) = peer(set)?;
            Access::Listen { address: address?, port }
        }
        (Subject::Peers(set), _) => {
            let (name, address, port, protocol) = peer(set)?;
            Access::Connect { name, address: address.unwrap_or(special::NOMINAL), port, protocol }
        }
        (Subject::Names(set), verb) => {
            let name = set.shortest()?;
            if verb == Verb::Mach { Access::Mach(name) } else { Access::Env(name) }
        }
    })
}

type Peer = (Option<Name>, Option<IpAddr>, u16, Protocol);

fn peer(set: &PeerSet) -> Option<Peer> {
    let port = set.ports.shortest()?;
    let protocol = if set.tcp { Protocol::Tcp } else { Protocol::Udp };
    match &set.endpoint {
        Endpoint::Hosts(hosts) => match hosts.shortest()? {
            Host::Name(name) => Some((Some(name), None, port, protocol)),
            // A host that only a definition names: nothing concrete can be asked about it.
            Host::Variable(_) => None,
        },
        Endpoint::Addresses(addresses) => Some((None, Some(addresses.shortest()?), port, protocol)),
    }
}
