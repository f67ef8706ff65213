//! Standard output of this process.

use nix::errno::Errno;
use nix::fcntl::{OFlag, open};
use nix::sys::stat::Mode;

/// Ends it, so that its reader sees the end while this process goes on; what is written later goes nowhere.
///
/// # Errors
/// Where there is no `/dev/null` to put in its place.
pub fn end_output() -> Result<(), Errno> {
    let nowhere = open("/dev/null", OFlag::O_WRONLY | OFlag::O_CLOEXEC, Mode::empty())?;
    nix::unistd::dup2_stdout(&nowhere)
}
