//! Notifications of system calls and the answers to them (seccomp_unotify(2)): the kernel's own structures, and nothing decided.

use crate::exec::linux::kernel::checked;
use nix::errno::Errno;
use nix::unistd::Pid;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};

/// What listens to the command's filter.
pub struct Listener(OwnedFd);

/// A call that waits for its answer.
#[derive(Debug)]
pub struct Call {
    pub id: u64,
    /// The thread that makes it, as this process's namespace numbers it.
    pub thread: Pid,
    pub number: i64,
    pub arguments: [u64; 6],
}

/// What a call comes to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Answer {
    /// It was done, in the caller's place.
    Done,
    Failed(Errno),
    /// The kernel does it, with whatever the command has made of its arguments by then.
    Continue,
    /// Whoever made it is gone, or has been answered.
    Nobody,
}

impl Answer {
    pub fn of(done: Result<(), Errno>) -> Answer {
        done.map_or_else(Answer::Failed, |()| Answer::Done)
    }
}

/// `struct seccomp_notif` (linux/seccomp.h), with `struct seccomp_data` in it.
#[repr(C)]
#[derive(Default)]
struct Notif {
    id: u64,
    pid: u32,
    flags: u32,
    number: i32,
    architecture: u32,
    instruction: u64,
    arguments: [u64; 6],
}

/// `struct seccomp_notif_resp`.
#[repr(C)]
struct Response {
    id: u64,
    value: i64,
    error: i32,
    flags: u32,
}

/// `struct seccomp_notif_addfd`.
#[repr(C)]
struct Addition {
    id: u64,
    flags: u32,
    source: u32,
    number: u32,
    number_flags: u32,
}

const RECEIVE: libc::c_ulong = 0xc050_2100;
const SEND: libc::c_ulong = 0xc018_2101;
const ID_VALID: libc::c_ulong = 0x4008_2102;
const SET_FLAGS: libc::c_ulong = 0x4008_2104;
const SYNC_WAKE_UP: libc::c_ulong = 1;
const FLAG_CONTINUE: u32 = 1;
const ADD_DESCRIPTOR: libc::c_ulong = 0x4018_2103;
const FLAG_SEND: u32 = 1 << 1;

impl Listener {
    #[allow(unsafe_code)]
    pub fn new(listener: OwnedFd) -> Listener {
        // Who answers and who waits take turns on one processor (Linux 6.6): faster, and no more than that.
        // SAFETY: the request takes an integer.
        let _ = checked(unsafe { libc::ioctl(listener.as_raw_fd(), SET_FLAGS, SYNC_WAKE_UP) });
        Listener(listener)
    }

    /// Waits for the next call. `ENOENT`: its thread has just been killed; `EINTR`: there may be another.
    #[allow(unsafe_code)]
    pub fn receive(&self) -> Result<Call, Errno> {
        let mut notif = Notif::default();
        // SAFETY: the request writes a `struct seccomp_notif`, of the size that its number has, and wants it zeroed.
        checked(unsafe { libc::ioctl(self.0.as_raw_fd(), RECEIVE, &raw mut notif) })?;
        Ok(Call {
            id: notif.id,
            thread: Pid::from_raw(notif.pid.cast_signed()),
            number: i64::from(notif.number),
            arguments: notif.arguments,
        })
    }

    /// Whether the thread still waits for this answer: what was read of it by then was its own.
    #[allow(unsafe_code)]
    pub fn waits(&self, id: u64) -> bool {
        // SAFETY: the request reads a 64-bit number.
        checked(unsafe { libc::ioctl(self.0.as_raw_fd(), ID_VALID, &raw const id) }).is_ok()
    }

    /// Answers with a descriptor of the caller's for what a file is, in one step (`SECCOMP_ADDFD_FLAG_SEND`, Linux 5.14).
    #[allow(unsafe_code)]
    pub fn hand_over(&self, id: u64, file: &OwnedFd, cloexec: bool) -> Result<Answer, Errno> {
        let flags = if cloexec { libc::O_CLOEXEC.cast_unsigned() } else { 0 };
        let source = u32::try_from(file.as_raw_fd()).map_err(|_| Errno::EBADF)?;
        let mut addition = Addition { id, flags: FLAG_SEND, source, number: 0, number_flags: flags };
        // SAFETY: the request reads a `struct seccomp_notif_addfd`, of the size that its number has.
        match checked(unsafe { libc::ioctl(self.0.as_raw_fd(), ADD_DESCRIPTOR, &raw mut addition) }) {
            // It was answered with that, or is gone.
            Ok(_) | Err(Errno::ENOENT) => Ok(Answer::Nobody),
            Err(errno) => Err(errno),
        }
    }

    /// Fails with `ENOENT` where nobody waits any more.
    #[allow(unsafe_code)]
    pub fn answer(&self, id: u64, answer: Answer) -> Result<(), Errno> {
        let (error, flags) = match answer {
            Answer::Done => (0, 0),
            Answer::Failed(errno) => (-(errno as i32), 0),
            Answer::Continue => (0, FLAG_CONTINUE),
            Answer::Nobody => return Ok(()),
        };
        let mut response = Response { id, value: 0, error, flags };
        // SAFETY: the request reads a `struct seccomp_notif_resp`, of the size that its number has.
        checked(unsafe { libc::ioctl(self.0.as_raw_fd(), SEND, &raw mut response) }).map(drop)
    }
}

impl AsFd for Listener {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The numbers of the requests hold the sizes of what they read and write.
    #[test]
    fn the_structures_have_the_kernels_sizes() {
        assert_eq!(size_of::<Notif>() as libc::c_ulong, RECEIVE >> 16 & 0x3fff);
        assert_eq!(size_of::<Response>() as libc::c_ulong, SEND >> 16 & 0x3fff);
        assert_eq!(size_of::<Addition>() as libc::c_ulong, ADD_DESCRIPTOR >> 16 & 0x3fff);
    }
}
