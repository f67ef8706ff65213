//! What this process was given by whoever started it: descriptors by number, signals that it shall ignore or pass on.

use nix::errno::Errno;
use nix::sys::signal::Signal;
use std::os::fd::{BorrowedFd, FromRawFd, OwnedFd, RawFd};

/// Signals that the command gets when somebody sends them to its supervisor.
pub const FORWARDED: [Signal; 7] = [
    Signal::SIGTERM,
    Signal::SIGINT,
    Signal::SIGHUP,
    Signal::SIGQUIT,
    Signal::SIGUSR1,
    Signal::SIGUSR2,
    Signal::SIGWINCH,
];

/// The first of these descriptors that is not open. Call it before anything else is opened: a number that the caller did
/// not open would later be one of our own, and not the command's to have.
pub fn first_closed(descriptors: &[i32]) -> Option<i32> {
    descriptors.iter().copied().find(|descriptor| borrow(*descriptor).is_err())
}

/// Borrows a descriptor by number, for a few calls in a row.
#[allow(unsafe_code)]
pub fn borrow(fd: RawFd) -> Result<BorrowedFd<'static>, Errno> {
    // SAFETY: fcntl(F_GETFD) takes integers only.
    Errno::result(unsafe { libc::fcntl(fd, libc::F_GETFD) })?;
    // SAFETY: the descriptor is open, as was just seen, and was given to this process by its caller to use.
    Ok(unsafe { BorrowedFd::borrow_raw(fd) })
}

/// Takes over a descriptor that this process inherited by number.
#[allow(unsafe_code)]
pub fn take(fd: RawFd) -> Result<OwnedFd, Errno> {
    borrow(fd)?;
    // SAFETY: open, as was just seen; it was inherited for the caller alone, who asks once.
    Ok(unsafe { OwnedFd::from_raw_fd(fd) })
}

/// Whether a signal is ignored by this process.
#[allow(unsafe_code)]
pub fn is_ignored(signal: i32) -> bool {
    // SAFETY: `sigaction` is plain data, for which zero is a valid value; a null new action only asks.
    unsafe {
        let mut action: libc::sigaction = std::mem::zeroed();
        libc::sigaction(signal, std::ptr::null(), &raw mut action) == 0 && action.sa_sigaction == libc::SIG_IGN
    }
}
