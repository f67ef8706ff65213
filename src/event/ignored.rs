//! A sink that passes on what the policy does not ask to be left out, and counts the rest.

use super::{Event, Sink};
use crate::ir::{Access, Ignore, Subject};
use crate::sets::host::Pattern;
use crate::sets::peer::{Endpoint, PeerSet};
use crate::vocabulary::Verb;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// Passes events on, but for refusals of which the policy says `ignore`.
pub struct Ignored {
    ignores: Vec<Ignore>,
    sink: Arc<dyn Sink>,
    count: AtomicU64,
}

impl Ignored {
    /// `ignores` are those of a bound policy.
    pub fn new(ignores: Vec<Ignore>, sink: Arc<dyn Sink>) -> Self {
        Self { ignores, sink, count: AtomicU64::new(0) }
    }

    /// How many refusals were left out.
    pub fn count(&self) -> u64 {
        self.count.load(Ordering::Relaxed)
    }

    fn leaves_out(&self, event: &Event) -> bool {
        // What was wrong without a rule is no decision that anybody expected.
        let Event::Violation(violation) = event else { return false };
        if self.ignores.is_empty() || violation.detail.is_some() {
            return false;
        }
        if violation.operation == "resolve" && violation.host.is_none() {
            return self.ignores.iter().any(is_about_every_name);
        }
        let accesses = violation.accesses();
        !accesses.is_empty() && accesses.iter().all(|access| self.ignores.iter().any(|ignore| holds(ignore, access)))
    }
}

impl Sink for Ignored {
    fn report(&self, event: Event) {
        if self.leaves_out(&event) {
            let more = if let Event::Violation(violation) = &event { violation.count() } else { 1 };
            self.count.fetch_add(more, Ordering::Relaxed);
        } else {
            self.sink.report(event);
        }
    }

    fn wants_connections(&self) -> bool {
        self.sink.wants_connections()
    }
}

/// Whether it leaves out what is asked for whatever name: a look-up of one that nobody saw, too.
fn is_about_every_name(ignore: &Ignore) -> bool {
    let Subject::Peers(PeerSet { endpoint: Endpoint::Hosts(hosts), .. }) = &ignore.subject else { return false };
    ignore.verb == Verb::Connect && hosts.include.contains(&Pattern::Any) && hosts.exclude.is_empty()
}

fn holds(ignore: &Ignore, access: &Access) -> bool {
    if ignore.verb != access.words().0 {
        return false;
    }
    match (&ignore.subject, access) {
        (Subject::Paths(set), Access::Read(path) | Access::Write(path) | Access::Exec(path) | Access::Socket(path)) => {
            set.contains(path)
        }
        (Subject::Peers(set), Access::Connect { name, address, port, protocol }) => {
            let named = name.as_ref().is_some_and(|name| set.contains_name(name, *protocol, *port));
            named || set.contains_address(*address, *protocol, *port)
        }
        (Subject::Peers(set), Access::Listen { address, port }) => {
            set.contains_address(*address, crate::sets::peer::Protocol::Tcp, *port)
        }
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::super::tests::refused;
    use super::super::{Collector, Violation};
    use super::*;
    use crate::ir::Unset;
    use crate::sets::host::HostSet;
    use crate::sets::path::{self, PathSet};
    use crate::sets::port::PortSet;
    use crate::source::{Sources, Span};

    fn ignore(verb: Verb, subject: Subject) -> Ignore {
        let span = Span::new(Sources::default().add("test", ""), 0..0);
        Ignore { verb, subject, because: None, unset: Unset::Refuse, span }
    }

    #[test]
    fn what_is_in_the_set_under_the_verb_is_left_out_and_counted() {
        let hosts = HostSet { include: vec![Pattern::parse("*.test").unwrap()], exclude: Vec::new() };
        let ports = PortSet::from_ranges([80..=80]);
        let peers = PeerSet { endpoint: Endpoint::Hosts(hosts), tcp: true, udp: true, ports };
        let ignores = vec![
            ignore(Verb::Write, Subject::Paths(PathSet::from(path::Pattern::written("/a")))),
            ignore(Verb::Connect, Subject::Peers(peers)),
        ];
        let collector = Arc::new(Collector::default());
        let ignored = Ignored::new(ignores, collector.clone());
        let file = |verb: &str, path: &str| Violation { path: Some(path.into()), ..Violation::refused(verb) };
        let broken = Violation { detail: Some("TLS".into()), ..refused("a.test", 80) };
        for violation in [file("write", "/a/b"), file("write", "/a"), refused("a.test", 80)] {
            ignored.report(Event::Violation(violation));
        }
        assert_eq!((collector.tally().kinds().count(), ignored.count()), (0, 3));
        let others = [
            file("read", "/a"),
            file("write", "/ab"),
            refused("a.test", 81),
            refused("test", 80),
            broken,
            file("x", "/a"),
        ];
        let count = others.len();
        for violation in others {
            ignored.report(Event::Violation(violation));
        }
        ignored.report(Event::Dropped { count: 1 });
        assert_eq!((collector.tally().kinds().count(), ignored.count()), (count, 3));
    }

    #[test]
    fn a_look_up_of_a_name_that_nobody_saw_is_left_out_with_every_name() {
        for (pattern, left_out) in [("*", 1), ("*.test", 0)] {
            let hosts = HostSet { include: vec![Pattern::parse(pattern).unwrap()], exclude: Vec::new() };
            let peers = PeerSet { endpoint: Endpoint::Hosts(hosts), tcp: true, udp: true, ports: PortSet::all() };
            let ignores = vec![ignore(Verb::Connect, Subject::Peers(peers))];
            let ignored = Ignored::new(ignores, Arc::new(Collector::default()));
            ignored.report(Event::Violation(Violation::refused("resolve")));
            assert_eq!(ignored.count(), left_out, "{pattern}");
        }
    }
}
