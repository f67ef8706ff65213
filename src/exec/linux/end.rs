//! The end of pid 1, and with it of everything in its namespace.

use super::kernel;
use nix::sys::signal::Signal;
use nix::unistd::Pid;

/// Ends pid 1, and every process in the sandbox: at once, although a thread of this process may have to wait for a file system that
/// does not answer before the kernel takes the rest down.
pub fn end(status: i32) -> ! {
    // To all of them, where they are all of a namespace.
    if nix::unistd::getpid().as_raw() == 1 {
        let _ = nix::sys::signal::kill(Pid::from_raw(-1), Signal::SIGKILL);
    }
    kernel::exit(status)
}
