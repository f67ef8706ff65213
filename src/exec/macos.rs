//! Running a command on macOS: by `sandbox-exec`, with the profile that was proved.
//!
//! ```text
//! srt (supervisor)      signals, wall clock, proxy, `log stream`
//!  └ sandbox-exec       loads the profile, and becomes
//!     └ the command     in a process group of its own
//! ```
//!
//! Everything but the kernel's part is built, and tested, on Linux too.

// The clippy bans on `std::fs` and `process::Command` keep other rooms out; this is one that may.
#![allow(clippy::disallowed_methods)]
// Elsewhere, tests alone use it.
#![cfg_attr(not(target_os = "macos"), allow(dead_code))]

mod command;
#[cfg(target_os = "macos")]
mod doctor;
mod limits;
mod log;
mod supervisor;
#[cfg(test)]
mod tests;
mod violations;

#[cfg(target_os = "macos")]
pub use here::*;

use super::launch::{Engine, Error, Exit, Launch};
use super::served::{Served, Wanted};
use crate::backend::bubblewrap::seccomp::Watch;
use crate::backend::seatbelt::Profile;
use command::Command;
use std::io;
use std::path::PathBuf;
use std::sync::mpsc;
use supervisor::{Event, Signals};
use violations::Violations;

/// The system's own programs.
#[derive(Debug, Clone)]
struct Tools {
    sandbox_exec: PathBuf,
    log: PathBuf,
}

impl Tools {
    fn of_the_system() -> Self {
        Self { sandbox_exec: "/usr/bin/sandbox-exec".into(), log: "/usr/bin/log".into() }
    }
}

/// Sets everything up, runs the command and waits for its end. Call it before any thread exists.
///
/// # Errors
/// Nothing of the command has run then, [`Error::Setup`] for a run that was given up aside.
pub fn run(profile: &Profile, launch: Launch) -> Result<Exit, Error> {
    let signals = Signals::hold().map_err(|source| Error::Setup { act: "hold signals back".into(), source })?;
    run_by(&Tools::of_the_system(), profile, launch, Some(signals))
}

/// The same by other programs; without signals, none is passed on.
fn run_by(tools: &Tools, profile: &Profile, mut launch: Launch, signals: Option<Signals>) -> Result<Exit, Error> {
    if launch.engine != Engine::Native {
        return Err(Error::elsewhere("use bubblewrap on macOS"));
    }
    let held = limits::Held::of(&profile.limits);
    let (events, happened) = mpsc::channel();
    let served = if profile.proxy { Some(serve(&mut launch, &events)?) } else { None };
    let tag = format!("srt-{:016x}", command::random());
    let command = Command::new(tools, profile, &launch, served.as_ref().map(Served::at), &tag)?;
    command.try_profile()?;
    let watches = launch.watch != Watch::Nothing && launch.rules.is_some();
    let violations = launch.rules.clone().filter(|_| watches).map(|rules| {
        Violations::watch(&tools.log, &tag, rules, launch.events.clone()).map_err(|error| {
            (launch.announce)(&format!("what is refused is not told: cannot read the system's log: {error}"));
        })
    });
    let ended = supervisor::supervise(&command, held, &launch.keep, signals, &events, &happened);
    if let Some(Ok(violations)) = violations {
        violations.end();
    }
    ended
}

fn serve(launch: &mut Launch, events: &mpsc::Sender<Event>) -> Result<Served, Error> {
    let Some(rules) = launch.rules.clone() else {
        let source = io::ErrorKind::InvalidInput.into();
        return Err(Error::Setup { act: "start the proxy without rules".into(), source });
    };
    let descriptors = limits::descriptors();
    let (upstream, live) = (launch.upstream.take(), launch.live.take());
    let wanted = Wanted { rules, upstream, events: launch.events.clone(), live, descriptors };
    let events = events.clone();
    // Any port: the profile is told which. Whoever waits may be gone.
    Served::start(0..=0, wanted, move |error| drop(events.send(Event::Proxy(error))))
}

/// What every system offers under the same names.
#[cfg(target_os = "macos")]
mod here {
    pub use super::super::idle::{Prepared, begin, caller, keep_memory, prepare};
    use super::super::launch::{Act, Error};
    pub use super::super::unix::channel::Channel;
    pub use super::super::unix::event_file::EventFile;
    pub use super::super::unix::inherited::first_closed;
    pub use super::super::unix::output::end_output;
    pub use super::doctor::probes;
    use std::io;
    use std::path::Path;

    /// There is none to be made: commands run as their caller.
    ///
    /// # Errors
    /// Always.
    pub fn account(_: Act) -> Result<String, Error> {
        Err(Error::elsewhere("manage an account for sandboxed commands, which Windows alone needs"))
    }

    /// Who may change a file is in its mode, which whoever reads a policy looks at.
    ///
    /// # Errors
    /// None.
    // Elsewhere there are some.
    #[allow(clippy::unnecessary_wraps)]
    pub fn others_may_change(_: &Path) -> io::Result<bool> {
        Ok(false)
    }
}
