//! What to run and how, and how it ended: the same words for every system.

use super::Prepared;
use crate::backend::bubblewrap::seccomp::Watch;
use crate::event::Sink;
use crate::proxy::upstream::Upstream;
use crate::proxy::{InForce, Rules};
use crate::vocabulary::LimitKind;
use std::collections::BTreeSet;
use std::ffi::OsString;
use std::io;
use std::path::PathBuf;
use std::sync::Arc;

/// Who does the mounts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Engine {
    Native,
    Bwrap,
}

/// What to run, and how.
pub struct Launch {
    pub engine: Engine,
    /// For the native engine: what [`prepare`](super::prepare) made; without it, that is done now.
    pub prepared: Option<Prepared>,
    /// The program and its arguments; the program is looked up on the PATH of `environment`, inside.
    pub command: Vec<OsString>,
    /// The whole environment; proxy variables are added by [`run`](super::run), which knows the listener.
    pub environment: Vec<(OsString, OsString)>,
    /// The names in `environment` whose values the policy itself sets: these win over proxy variables.
    pub set: BTreeSet<OsString>,
    /// The directory the command starts in.
    pub directory: PathBuf,
    /// Descriptors beyond 0–2 that the command keeps.
    pub keep: Vec<i32>,
    /// What the proxy, connections to unix sockets, and listeners are decided by. Without rules no socket of the host is
    /// reached; needed where the plan's network is a proxy, or something is listened at.
    pub rules: Option<Arc<Rules>>,
    /// What the proxy's connections go through, if it is another proxy.
    pub upstream: Option<Upstream>,
    /// Started on a thread of its own once the command is, with the rules in force, to replace them. It keeps the right to read
    /// files, which the thread that serves the proxy gives up.
    pub live: Option<Box<dyn FnOnce(Arc<InForce>) + Send>>,
    pub events: Arc<dyn Sink>,
    /// Of which calls about files it is told that `rules` refuse them; without rules, of none.
    pub watch: Watch,
    /// Told what works otherwise than it usually does, in a sentence; the command runs all the same.
    pub announce: fn(&str),
    /// It is told as well what works as it usually does.
    pub debug: bool,
}

impl Launch {
    /// By the native engine, with descriptors 0–2, no proxy, no socket of the host, and nothing said beside the events.
    pub fn new(
        command: Vec<OsString>,
        environment: Vec<(OsString, OsString)>,
        directory: PathBuf,
        events: Arc<dyn Sink>,
    ) -> Self {
        Self {
            engine: Engine::Native,
            prepared: None,
            command,
            environment,
            set: BTreeSet::new(),
            directory,
            keep: Vec::new(),
            rules: None,
            upstream: None,
            live: None,
            events,
            watch: Watch::Writes,
            announce: |_| {},
            debug: false,
        }
    }
}

/// How the command ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Exit {
    /// Its own status.
    Code(u8),
    /// Its own status where that is no byte, as on Windows.
    Wide(u32),
    Signal(i32),
    /// Ended by `limit time`.
    TimedOut,
    /// Ended since all of its processes together passed this limit.
    Over(LimitKind),
}

impl Exit {
    /// The status to end with, as shells and timeout(1) have it.
    pub fn status(self) -> u8 {
        match self {
            Exit::Code(code) => code,
            Exit::Wide(code) => u8::try_from(code).unwrap_or(u8::MAX),
            Exit::Signal(signal) => u8::try_from(signal).unwrap_or(127).saturating_add(128),
            Exit::TimedOut => 124,
            // As what SIGKILL ended.
            Exit::Over(_) => 137,
        }
    }
}

/// Why nothing was run, or the run was given up.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The sandbox could not be set up (exit 125).
    #[error("cannot {act}: {source}")]
    Setup { act: String, source: io::Error },
    /// A place is no longer what the plan was made for (exit 125); planning anew may help.
    #[error("`{path}` is not what it was when the policy was bound: it was replaced or removed meanwhile")]
    Changed { path: String },
    /// The command could not be started (126 or 127).
    #[error("cannot run `{command}`: {source}")]
    Start { command: String, source: io::Error },
    /// While the command ran (exit 125).
    #[error("the sandbox's first process was killed from outside, and everything in the sandbox with it")]
    Killed,
}

impl Error {
    /// The status to end with.
    pub fn status(&self) -> u8 {
        match self {
            Error::Setup { .. } | Error::Changed { .. } | Error::Killed => 125,
            Error::Start { source, .. } if source.kind() == io::ErrorKind::NotFound => 127,
            Error::Start { .. } => 126,
        }
    }
}

/// What is to be done with the account that commands run as, on Windows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Act {
    Install,
    Uninstall,
    Status,
}

impl Error {
    /// That this system has nothing of the kind.
    pub(super) fn elsewhere(act: impl Into<String>) -> Self {
        Self::Setup { act: act.into(), source: io::ErrorKind::Unsupported.into() }
    }
}
