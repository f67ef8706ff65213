//! What happened at run time: JSON lines for machines, a summary for people.
//!
//! An event names the rule that made it by file, line and text; it decides nothing. Whoever reports one is in the way
//! of the command, so no [`Sink`] waits: [`Collector`] keeps a bounded tally, [`Lines`] writes what its writer takes at
//! once and keeps the rest in a bounded buffer, and both count what they had to drop. [`Repeated`] stands before [`Lines`] and has
//! one line of what is tried again and again. What was written is read back by
//! [`Reader`], which believes none of it, and shown as [`sentence`]s or a [`page()`].

mod access;
mod clock;
mod collector;
mod ignored;
mod lines;
mod page;
mod reader;
mod repeated;
mod summary;
mod tally;
mod tree;

pub use clock::timestamp;
pub use collector::Collector;
pub use ignored::Ignored;
pub use lines::Lines;
pub use page::page;
pub use reader::Reader;
pub use repeated::Repeated;
pub use summary::{printable, sentence, summary};
pub use tally::{Kind, Tally};

use crate::ir::Why;
use crate::vocabulary::LimitKind;
use serde::{Deserialize, Serialize};
use std::sync::Arc;
use std::time::SystemTime;

/// One thing that was refused, or (where asked for) done.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "kebab-case")]
pub enum Event {
    Violation(Violation),
    Connection(Connection),
    /// A limit was passed, and the command ended.
    Limit(Limit),
    /// So many others are missing here.
    Dropped {
        count: u64,
    },
}

/// A connection that was allowed: told once it has ended; a request that was passed on, and a connection to a unix socket, when
/// it was.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Connection {
    /// RFC 3339, UTC; see [`timestamp`].
    pub timestamp: String,
    /// `connect`; `listen` for one from outside to a server of the command's; `socket`.
    pub operation: String,
    /// The unix socket.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub path: Option<String>,
    /// The name or address that was asked for; of a `listen`, where it came in.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub host: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub port: Option<u16>,
    /// The address that was dialled; of a `listen`, where it came from.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub address: Option<String>,
    /// The other proxy that it went through.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub through: Option<String>,
    pub outcome: Outcome,
    /// What allowed it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub rule: Option<RuleText>,
    /// Bytes from the command, and to it; of a connection that was relayed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub sent: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub received: Option<u64>,
    /// How long it lasted.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub milliseconds: Option<u64>,
}

/// The command was ended, since it passed a limit of the policy's.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Limit {
    /// RFC 3339, UTC; see [`timestamp`].
    pub timestamp: String,
    pub limit: LimitKind,
    /// What it may be, and what it was when somebody looked; in the unit of its kind.
    pub most: u64,
    pub found: u64,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Violation {
    /// RFC 3339, UTC; see [`timestamp`].
    pub timestamp: String,
    /// Who tried it, as its process is numbered inside; where that is known.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub pid: Option<i32>,
    /// What that process calls itself (`comm`, proc(5)).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub comm: Option<String>,
    /// How many times, where that is more than once: this is the last of them.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub count: Option<u64>,
    /// The verb, or the operation where it is known.
    pub operation: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub path: Option<String>,
    /// The name or address that was asked for.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub host: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub port: Option<u16>,
    /// The address that was decided, where a name led to it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub address: Option<String>,
    pub outcome: Outcome,
    /// Which step of the meaning decided.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub why: Option<Why>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub rule: Option<RuleText>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub because: Option<String>,
    /// The statement that would allow it if it were added, where one is enough.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub remedy: Option<String>,
    /// What was wrong with it, where that is no rule.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub detail: Option<String>,
}

impl Connection {
    /// Something that is allowed now, of which nothing more is known.
    pub fn allowed(operation: &str) -> Self {
        Self {
            timestamp: timestamp(SystemTime::now()),
            operation: operation.to_owned(),
            path: None,
            host: None,
            port: None,
            address: None,
            through: None,
            outcome: Outcome::Allowed,
            rule: None,
            sent: None,
            received: None,
            milliseconds: None,
        }
    }
}

impl Violation {
    /// Something that is refused now, of which nothing more is known.
    pub fn refused(operation: &str) -> Self {
        Self {
            timestamp: timestamp(SystemTime::now()),
            pid: None,
            comm: None,
            count: None,
            operation: operation.to_owned(),
            path: None,
            host: None,
            port: None,
            address: None,
            outcome: Outcome::Refused,
            why: None,
            rule: None,
            because: None,
            remedy: None,
            detail: None,
        }
    }

    /// How many times it was.
    pub fn count(&self) -> u64 {
        self.count.unwrap_or(1)
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Outcome {
    /// A rule allows it.
    Allowed,
    /// It did not happen.
    Refused,
    /// The kernel decides after this was said.
    Predicted,
}

/// A rule as people find it.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct RuleText {
    pub file: String,
    pub line: u32,
    pub text: String,
}

impl Event {
    /// When it was; of those that are missing that is not known.
    pub fn timestamp(&self) -> Option<&str> {
        match self {
            Event::Violation(Violation { timestamp, .. })
            | Event::Connection(Connection { timestamp, .. })
            | Event::Limit(Limit { timestamp, .. }) => Some(timestamp),
            Event::Dropped { .. } => None,
        }
    }

    /// The same without what differs from one time to the next: when, by which process, how much.
    #[must_use]
    pub fn bare(&self) -> Event {
        match self.clone() {
            Event::Violation(violation) => Event::Violation(Violation {
                timestamp: String::new(),
                pid: None,
                comm: None,
                count: None,
                ..violation
            }),
            Event::Connection(connection) => Event::Connection(Connection {
                timestamp: String::new(),
                sent: None,
                received: None,
                milliseconds: None,
                ..connection
            }),
            Event::Limit(limit) => Event::Limit(Limit { timestamp: String::new(), found: 0, ..limit }),
            Event::Dropped { .. } => Event::Dropped { count: 0 },
        }
    }
}

/// Where events go. Never blocks whoever reports one.
pub trait Sink: Send + Sync {
    fn report(&self, event: Event);

    /// Whether anything is made of what was allowed: else it is not even worked out.
    fn wants_connections(&self) -> bool {
        false
    }
}

/// Every event to each of them.
impl Sink for Vec<Arc<dyn Sink>> {
    fn report(&self, event: Event) {
        if let Some((last, others)) = self.split_last() {
            for sink in others {
                sink.report(event.clone());
            }
            last.report(event);
        }
    }

    fn wants_connections(&self) -> bool {
        self.iter().any(Sink::wants_connections)
    }
}

impl<S: Sink + ?Sized> Sink for Arc<S> {
    fn report(&self, event: Event) {
        self.as_ref().report(event);
    }

    fn wants_connections(&self) -> bool {
        self.as_ref().wants_connections()
    }
}

/// Locks in spite of a panic elsewhere: what is behind the locks of a run is whole between two calls.
pub(crate) fn lock<T>(mutex: &std::sync::Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(std::sync::PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    /// A refused connection as the proxy reports one.
    pub(super) fn refused(host: &str, port: u16) -> Violation {
        Violation {
            timestamp: "2026-01-02T03:04:05.006Z".into(),
            host: Some(host.into()),
            port: Some(port),
            why: Some(Why::Default),
            remedy: Some(format!("allow connect {host}:{port}")),
            ..Violation::refused("connect")
        }
    }

    #[test]
    fn an_event_is_one_flat_object_with_its_type_first() {
        let mut violation = refused("evil.test", 80);
        violation.rule = Some(RuleText { file: "agent.policy".into(), line: 12, text: "deny connect *.test".into() });
        violation.because = Some("no".into());
        violation.why = Some(Why::Denied);
        let json = serde_json::to_string(&Event::Violation(violation)).unwrap();
        assert_eq!(
            json,
            r#"{"type":"violation","timestamp":"2026-01-02T03:04:05.006Z","operation":"connect","host":"evil.test","port":80,"outcome":"refused","why":"denied","rule":{"file":"agent.policy","line":12,"text":"deny connect *.test"},"because":"no","remedy":"allow connect evil.test:80"}"#
        );
    }

    #[test]
    fn every_sink_of_a_list_hears_every_event() {
        let (one, two) = (Arc::new(Collector::default()), Arc::new(Collector::default()));
        let both: Vec<Arc<dyn Sink>> = vec![one.clone(), two.clone()];
        both.report(Event::Violation(refused("a.test", 80)));
        assert_eq!(one.summary(), two.summary());
        assert!(one.summary().is_some());
    }
}
