//! Running a command on Windows: as an account of its own, which filters, access lists and a job hold to a policy.
//!
//! ```text
//! srt (you, elevated)   journal → filters → access lists; proxy; puts all back
//!  └ job                limits; ends with srt
//!     └ the command     the account `srt-sandbox`
//! ```
//!
//! What it sets up are the texts that were proved. The modules that call nothing of the system's are built, and tested, everywhere.

// The clippy bans on `std::fs` and `process::Command` keep other rooms out; this is one that may.
#![allow(clippy::disallowed_methods)]
// Elsewhere, tests alone use them.
#![cfg_attr(not(windows), allow(dead_code))]

mod command_line;
mod journal;
mod program;
mod read;

#[cfg(windows)]
mod access;
#[cfg(windows)]
mod account;
#[cfg(windows)]
mod console;
#[cfg(windows)]
mod doctor;
#[cfg(windows)]
mod events;
#[cfg(windows)]
mod filters;
#[cfg(windows)]
mod install;
#[cfg(windows)]
mod job;
#[cfg(windows)]
mod list;
#[cfg(windows)]
mod os;
#[cfg(windows)]
mod process;
#[cfg(windows)]
mod run;
#[cfg(windows)]
mod sid;
#[cfg(windows)]
mod trust;

#[cfg(windows)]
pub use here::*;

/// What every system offers under the same names.
#[cfg(windows)]
mod here {
    pub use super::super::idle::{Prepared, begin, caller, keep_memory, prepare};
    pub use super::doctor::probes;
    pub use super::events::{Channel, EventFile};
    pub use super::install::account;
    pub use super::run::run;
    pub use super::trust::others_may_change;
    use std::io;

    /// There are no descriptors to be inherited by number.
    pub fn first_closed(descriptors: &[i32]) -> Option<i32> {
        descriptors.first().copied()
    }

    /// Ends standard output, so that its reader sees the end while this process goes on; what is written later goes nowhere.
    ///
    /// # Errors
    /// Whatever closing it fails with.
    #[allow(unsafe_code)]
    pub fn end_output() -> io::Result<()> {
        use super::os::done;
        use windows_sys::Win32::Foundation::CloseHandle;
        use windows_sys::Win32::System::Console::{GetStdHandle, STD_OUTPUT_HANDLE, SetStdHandle};
        // SAFETY: what the process writes to is taken from it before it is closed, so that no later write finds another file under
        // the same number.
        unsafe {
            let output = GetStdHandle(STD_OUTPUT_HANDLE);
            done(SetStdHandle(STD_OUTPUT_HANDLE, std::ptr::null_mut()))?;
            done(CloseHandle(output))
        }
    }
}
