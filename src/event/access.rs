//! What an event says was tried, as the policy decides about it.

use super::{Event, Violation};
use crate::ir::{Access, request, special};
use crate::sets::path::AbsPath;
use crate::sets::peer::Protocol;
use std::net::IpAddr;

/// The port of a name that was looked up, where no port was asked for yet: the one that people mean.
const HTTPS: u16 = 443;

impl Event {
    /// The accesses that were tried: one, but for `localhost`, which has two addresses; none where the event names nothing that
    /// a rule could be about.
    pub fn accesses(&self) -> Vec<Access> {
        match self {
            Event::Violation(violation) => violation.accesses(),
            Event::Connection(it) => {
                let (host, path) = (it.host.as_deref(), it.path.as_deref());
                accesses(&it.operation, host, it.port, it.address.as_deref(), path)
            }
            Event::Limit(_) | Event::Dropped { .. } => Vec::new(),
        }
    }
}

impl Violation {
    /// As [`Event::accesses`].
    pub fn accesses(&self) -> Vec<Access> {
        let (host, path) = (self.host.as_deref(), self.path.as_deref());
        accesses(&self.operation, host, self.port, self.address.as_deref(), path)
    }
}

fn accesses(
    operation: &str,
    host: Option<&str>,
    port: Option<u16>,
    address: Option<&str>,
    path: Option<&str>,
) -> Vec<Access> {
    let path = || path.and_then(|path| AbsPath::parse(path).ok());
    let of_a_path = |access: fn(AbsPath) -> Access| path().map(access).into_iter().collect();
    match operation {
        "read" => of_a_path(Access::Read),
        "write" => of_a_path(Access::Write),
        "exec" => of_a_path(Access::Exec),
        "socket" => of_a_path(Access::Socket),
        "connect" | "resolve" => {
            let Some(target) = host.and_then(|host| request::target(host).ok()) else { return Vec::new() };
            // Where none was looked up, one that is neither special nor private.
            let address: IpAddr = address.and_then(|address| address.parse().ok()).unwrap_or(special::NOMINAL);
            target.accesses(&[address], port.unwrap_or(HTTPS), Protocol::Tcp)
        }
        "listen" => {
            let address = host.and_then(|host| host.parse().ok());
            let access = |(address, port)| Access::Listen { address, port };
            address.zip(port).map(access).into_iter().collect()
        }
        _ => Vec::new(),
    }
}

#[cfg(test)]
mod tests {
    use super::super::tests::refused;
    use super::*;

    #[test]
    fn what_was_tried_is_what_is_decided_about() {
        let words = |violation: &Violation| -> Vec<String> {
            let words = Access::to_string;
            violation.accesses().iter().map(words).collect()
        };
        let file =
            |operation: &str, path: &str| Violation { path: Some(path.to_owned()), ..Violation::refused(operation) };
        assert_eq!(words(&refused("a.test", 80)), ["connect a.test:80"]);
        assert_eq!(words(&refused("10.0.0.7", 22)), ["connect 10.0.0.7:22"]);
        assert_eq!(words(&refused("localhost", 1)).len(), 2);
        assert_eq!(words(&Violation { port: None, ..refused("a.test", 1) }), ["connect a.test:443"]);
        assert_eq!(words(&file("write", "/a/b")), ["write /a/b"]);
        assert_eq!(words(&file("socket", "/run/x")), ["socket /run/x"]);
        for other in [file("write", "a/b"), file("write", "/a/../b"), file("stat", "/a"), refused("a b", 1)] {
            assert_eq!(words(&other), [""; 0], "{other:?}");
        }
    }
}
