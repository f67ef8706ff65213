//! What is said of what was refused, and of what was allowed, as events.

use super::dial::Route;
use super::refusal::{Failure, Refused};
use super::remedy::remedy;
use super::tunnel::{Mismatch, Passed};
use super::{Proxy, Rules};
use crate::event::{Connection, Event, Violation};
use crate::ir::{Access, decide};
use crate::sets::host::Name;
use crate::sets::peer::Protocol;
use std::net::IpAddr;
use std::sync::atomic::Ordering;
use std::time::Duration;

impl Proxy {
    /// Reports a failure that the policy made; what was said of it.
    pub(super) fn report(&self, failure: &Failure) -> Option<Violation> {
        let gate = self.gate();
        let violation = match failure {
            Failure::Refused(refused) => gate.violation(refused),
            Failure::Unseen { name, port, rule } => {
                let (rule, because) = gate.rules.told(*rule);
                let detail =
                    "the proxy that it would go through finds its address, and this machine does not".to_owned();
                let unruled = unruled("connect", Some(name.to_string()), detail);
                Violation { port: Some(*port), rule: Some(rule), because, ..unruled }
            }
            _ => return None,
        };
        self.events.report(Event::Violation(violation.clone()));
        Some(violation)
    }

    /// A name that was asked for, and does not exist inside.
    pub(super) fn report_name(&self, refused: &Refused) {
        let mut violation = self.gate().violation(refused);
        // Nobody has asked for a port yet; without one, a rule means the usual two.
        violation.port = None;
        let remedy = violation.remedy.take();
        violation.remedy = remedy.map(|remedy| remedy.strip_suffix(":443").map_or(remedy.clone(), str::to_owned));
        self.events.report(Event::Violation(violation));
    }

    /// TLS for another server than the one that was allowed.
    pub(super) fn report_mismatch(&self, allowed: &Name, port: u16, mismatch: &Mismatch) {
        let (host, detail) = match mismatch {
            Mismatch::Server(server) => {
                (server.clone(), format!("TLS asks for this server on a connection that was allowed to {allowed}"))
            }
            Mismatch::Broken(why) => (allowed.to_string(), format!("its TLS client hello can't be read: {why}")),
        };
        self.events.report(Event::Violation(Violation { port: Some(port), ..unruled("connect", Some(host), detail) }));
    }

    /// What was allowed, to whoever asks for that; with what passed and how long it took, where it was relayed.
    pub(super) fn report_connection(&self, route: &Route, passed: Option<(&Passed, Duration)>) {
        if !self.events.wants_connections() {
            return;
        }
        self.events.report(Event::Connection(Connection {
            host: Some(route.authority.host_text()),
            port: Some(route.authority.port),
            address: route.address.map(|address| address.to_string()),
            through: route.through.clone(),
            rule: self.gate().allowing(route),
            sent: passed.map(|(passed, _)| passed.sent.load(Ordering::Relaxed)),
            received: passed.map(|(passed, _)| passed.received.load(Ordering::Relaxed)),
            milliseconds: passed.map(|(_, time)| milliseconds(time)),
            ..Connection::allowed("connect")
        }));
    }

    /// Too many questions for names.
    pub(super) fn report_flood(&self, what: &str) {
        self.events.report(Event::Violation(unruled("resolve", None, what.to_owned())));
    }
}

/// What there is to say of a connection to an address, asked for without a name, that a policy refuses; `None` where it allows it.
pub fn refusal_of_address(rules: &Rules, address: IpAddr, port: u16) -> Option<Violation> {
    let access = Access::Connect { name: None, address, port, protocol: Protocol::Tcp };
    let verdict = decide(&rules.policy, &access);
    if verdict.allowed {
        return None;
    }
    let refused = Refused { host: address.to_string(), name: None, address: Some(address), port, verdict };
    Some(refused.violation(rules, remedy(&rules.policy, &refused, &access)))
}

pub(super) fn milliseconds(time: Duration) -> u64 {
    u64::try_from(time.as_millis()).unwrap_or(u64::MAX)
}

/// What no rule is to blame for.
fn unruled(operation: &str, host: Option<String>, detail: String) -> Violation {
    Violation { host, detail: Some(detail), ..Violation::refused(operation) }
}
