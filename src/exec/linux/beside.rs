//! Has the processes of a start run beside each other.
//!
//! Left alone, the kernel often has them wait for one processor while the next is idle: a new process may be put behind the
//! one that made it until that sleeps, and who is woken over a socket or a pipe is taken to go on in the place of its waker,
//! which is about to sleep then. A start is over before the load is balanced.

use nix::errno::Errno;
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use nix::sched::{CpuSet, sched_getaffinity, sched_getcpu, sched_setaffinity};
use nix::sys::eventfd::{EfdFlags, EventFd};
use nix::unistd::Pid;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, RawFd};

/// The processor that this process is on.
pub fn here() -> Option<usize> {
    sched_getcpu().ok()
}

/// Lets a new process begin that was put behind this one.
pub fn give_way() {
    std::thread::yield_now();
}

/// Moves this process to another processor, if it is on this one and may be on others. It may go anywhere afterwards that it
/// could go before.
///
/// # Errors
/// That it may not; then it must not go on.
pub fn move_from(processor: Option<usize>) -> Result<(), Errno> {
    let this = Pid::from_raw(0);
    // More processors than the library counts: they are seldom all at work.
    let (Some(processor), Ok(all)) = (processor.filter(|own| here() == Some(*own)), sched_getaffinity(this)) else {
        return Ok(());
    };
    let mut others = all;
    others.unset(processor)?;
    if others == CpuSet::new() {
        return Ok(());
    }
    sched_setaffinity(this, &others)?;
    sched_setaffinity(this, &all)
}

/// Wakes another process where it slept: an eventfd (eventfd(2)), which says nothing of who rings. It carries no message: those
/// go over a socket.
pub struct Bell(EventFd);

impl Bell {
    /// Each ring ends one wait.
    pub fn new() -> Result<Bell, Errno> {
        EventFd::from_value_and_flags(0, EfdFlags::EFD_SEMAPHORE | EfdFlags::EFD_CLOEXEC).map(Bell)
    }

    pub fn ring(&self) -> Result<(), Errno> {
        self.0.write(1).map(drop)
    }

    /// Waits for a ring. `false`: who would ring has closed the other end of this socket.
    pub fn wait(&self, ringer: BorrowedFd<'_>) -> Result<bool, Errno> {
        loop {
            let mut either = [PollFd::new(self.0.as_fd(), PollFlags::POLLIN), PollFd::new(ringer, PollFlags::empty())];
            match poll(&mut either, PollTimeout::NONE) {
                Err(Errno::EINTR) => continue,
                ready => ready?,
            };
            let rung = either[0].revents().is_some_and(|events| events.contains(PollFlags::POLLIN));
            if !rung {
                return Ok(false);
            }
            match self.0.read() {
                Err(Errno::EINTR) => (),
                rung => return rung.map(|_| true),
            }
        }
    }

    pub fn as_raw_fd(&self) -> RawFd {
        self.0.as_raw_fd()
    }
}
