//! Carrying a policy out: the only stage that acts, the only user of the Windows API, and the only unsafe code.
//!
//! [`run`] is the same on every system. What only one system has is in its own module; what of `macos` and `windows` calls nothing
//! of theirs is built, and tested, everywhere.

mod environment;
#[cfg(not(target_os = "linux"))]
mod idle;
mod launch;
mod probe;
#[cfg(any(not(target_os = "linux"), test))]
mod served;
mod temporary;
#[cfg(unix)]
mod unix;

#[cfg(target_os = "linux")]
pub mod linux;
#[cfg(any(target_os = "macos", all(unix, test)))]
mod macos;
#[cfg(any(windows, test))]
mod windows;

#[cfg(target_os = "linux")]
use linux as system;
#[cfg(target_os = "macos")]
use macos as system;
#[cfg(windows)]
use windows as system;

pub use environment::upstream;
pub use launch::{Act, Engine, Error, Exit, Launch};
pub use probe::Probe;
pub use system::{
    Channel, EventFile, Prepared, account, begin, caller, end_output, first_closed, keep_memory, others_may_change,
    prepare, probes,
};
pub use temporary::Temporary;

use crate::backend::Enforced;

/// Sets the sandbox up, runs the command in it, and waits for its end. Call it before any thread exists.
///
/// # Errors
/// Nothing of the command has run then, [`Error::Setup`] for a run that was given up and [`Error::Killed`] aside. What was made for another system is
/// not run.
pub fn run(enforced: &Enforced, launch: Launch) -> Result<Exit, Error> {
    match enforced {
        #[cfg(target_os = "linux")]
        Enforced::Bubblewrap(plan) => system::run(plan, launch),
        #[cfg(target_os = "macos")]
        Enforced::Seatbelt(profile) => system::run(profile, launch),
        #[cfg(windows)]
        Enforced::Wfp(texts) => system::run(texts, launch),
        _ => Err(Error::elsewhere("run a policy that was compiled for another system")),
    }
}
