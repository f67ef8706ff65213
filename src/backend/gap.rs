//! What a target cannot hold of a policy: kinds of gaps, of which each back end has a closed table, and the gaps of one policy.
//!
//! A gap has sets: `verify` proves that they are exactly what differs between the artefact and the policy.

use crate::diagnostic::{Code, Diagnostic};
use crate::ir::Subject;

/// Which way what is enforced differs from the policy.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, serde::Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Direction {
    /// It denies what the policy permits: a note.
    Stricter,
    /// It permits what the policy denies: an error, unless a comment accepts it.
    Looser,
    /// No access is decided otherwise, but the policy's words promise more than the system can hold: a note.
    Beside,
}

/// A kind of gap.
#[derive(Debug, Clone, Copy)]
pub struct Kind {
    /// Its page says what it is.
    pub code: &'static Code,
    pub direction: Direction,
}

impl Kind {
    pub const fn stricter(code: &'static Code) -> Self {
        Self { code, direction: Direction::Stricter }
    }

    pub const fn looser(code: &'static Code) -> Self {
        Self { code, direction: Direction::Looser }
    }

    pub const fn beside(code: &'static Code) -> Self {
        Self { code, direction: Direction::Beside }
    }
}

/// What is done to an object, as finely as some target tells it apart.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Operation {
    Read,
    /// Changing what is there.
    Write,
    /// Making a name, or taking one away: what a rename needs of both of its names. Governed by `write`.
    Rename,
    Exec,
    Connect,
    Listen,
    Socket,
    Mach,
}

impl std::fmt::Display for Operation {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Self::Read => "read",
            Self::Write => "write",
            Self::Rename => "rename",
            Self::Exec => "exec",
            Self::Connect => "connect",
            Self::Listen => "listen",
            Self::Socket => "socket",
            Self::Mach => "mach",
        })
    }
}

/// One gap of one policy.
#[derive(Debug, Clone)]
pub struct Gap {
    pub kind: &'static Kind,
    /// What is said of it: its place is the rule's, its witness an access.
    pub said: Diagnostic,
    /// Of a stricter gap: none of this is permitted by what is enforced, whatever the policy says. Of a looser one: all of this
    /// is. Of one beside, nothing.
    pub region: Vec<(Operation, Subject)>,
}
