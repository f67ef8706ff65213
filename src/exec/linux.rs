//! Running a command on Linux, by our own mounts (`native`) or by bubblewrap.

use crate::backend::bubblewrap::Plan;
use crate::event::Sink;
use crate::proxy::Rules;
use std::ffi::OsString;
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
    /// The program and its arguments; the program is looked up on the PATH of `environment`, inside.
    pub command: Vec<OsString>,
    /// The whole environment; proxy variables are added by [`run`], which knows the listener.
    pub environment: Vec<(OsString, OsString)>,
    /// The directory the command starts in.
    pub directory: PathBuf,
    /// Descriptors beyond 0–2 that the command keeps.
    pub keep: Vec<i32>,
    /// `--nest`
    pub nest: bool,
    pub rules: Arc<Rules>,
    pub events: Arc<dyn Sink>,
}

/// How the command ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Exit {
    /// Its own status.
    Code(u8),
    Signal(i32),
    /// Ended by `limit time`.
    TimedOut,
}

/// Why nothing was run, or the run was given up.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The sandbox could not be set up (exit 125).
    #[error("cannot {act}: {source}")]
    Setup { act: String, source: std::io::Error },
    /// The command could not be started (126 or 127).
    #[error("cannot run `{command}`: {source}")]
    Start { command: String, source: std::io::Error },
}

/// Sets the sandbox up, runs the command in it, and waits for its end. Call it before any thread exists.
///
/// # Errors
/// Nothing of the command has run then.
pub fn run(plan: &Plan, launch: Launch) -> Result<Exit, Error> {
    let _ = (plan, launch);
    todo!()
}
