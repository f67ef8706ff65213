//! How many processes the kernel itself permits in the sandbox: as many as there are numbers for in its pid namespace
//! (`/proc/sys/kernel/pid_max`, of each namespace since Linux 6.14; kernel/pid_namespace.c).
//!
//! Wider than the policy's limit, which [`tree`](super::tree) keeps by looking: it holds between two looks, for root's processes
//! too, so that a machine has room left whatever is started. Where the kernel is older, or does not let it be set, there is none.

use super::command::OWN_THREADS;
use crate::backend::limits::Limits;
use nix::fcntl::{OFlag, openat};
use nix::sys::stat::Mode;
use nix::sys::utsname::uname;
use std::os::fd::{BorrowedFd, OwnedFd};

/// Before it, the one of the whole machine would be set.
const SINCE: (u32, u32) = (6, 14);

/// Numbers that are given out once alone (`RESERVED_PIDS`, linux/pid.h): room beside those of the command.
const RESERVED: u64 = 300;

/// What a kernel takes where it has so many processors that less is too few for it (`PIDS_PER_CPU_MIN`, linux/threads.h).
const WIDER: [u64; 2] = [4096, 32768];

/// Where the number is set, of the namespace of whoever writes.
pub struct Numbers(OwnedFd);

impl Numbers {
    /// `proc` is the root of a procfs of this process's own pid namespace, of which nothing is covered yet. `None` where it cannot
    /// be set.
    pub fn open(proc: BorrowedFd<'_>) -> Option<Self> {
        let flags = OFlag::O_WRONLY | OFlag::O_NOFOLLOW | OFlag::O_CLOEXEC;
        let own = || uname().ok().is_some_and(|name| is_own(name.release().to_str().unwrap_or_default()));
        own().then(|| openat(proc, c"sys/kernel/pid_max", flags, Mode::empty()).ok()).flatten().map(Self)
    }

    /// Leaves room for what the policy permits, and for the threads of pid 1.
    pub fn bound(self, limits: &Limits) {
        let Some(processes) = limits.processes else { return };
        let least = processes.saturating_add(OWN_THREADS).saturating_add(RESERVED);
        let wider = WIDER.into_iter().filter(|wider| *wider > least);
        for number in std::iter::once(least).chain(wider) {
            if nix::unistd::write(&self.0, number.to_string().as_bytes()).is_ok() {
                return;
            }
        }
    }
}

/// Whether a kernel of this release keeps the number for each namespace by itself.
fn is_own(release: &str) -> bool {
    let mut parts = release.split(|c: char| !c.is_ascii_digit()).map(str::parse);
    matches!((parts.next(), parts.next()), (Some(Ok(major)), Some(Ok(minor))) if (major, minor) >= SINCE)
}

#[cfg(test)]
mod tests {
    use super::is_own;

    #[test]
    fn releases() {
        for (release, own) in [("6.14.0-rc1", true), ("6.13.9", false), ("7.0", true), ("5.15.0-91-generic", false)] {
            assert_eq!(is_own(release), own, "{release}");
        }
        assert!(!is_own("") && !is_own("linux") && !is_own("6"));
    }
}
