//! A fresh procfs, and covers for everything in it that reaches beyond the sandbox.
//!
//! Most of procfs checks the *global* user id, not capabilities: to a caller who is root outside, `/proc/sys` is
//! writable with every capability dropped, and `core_pattern` is a way out. So directories beside those of processes
//! are read-only for everybody, and files are judged by trying to open them for writing, not by the user id.

use super::control::Failure;
use super::kernel::{self, NODEV, NOEXEC, NOSUID, RDONLY};
use super::mounts::{Masks, open};
use crate::backend::bubblewrap::PROC_HIDDEN;
use nix::dir::Dir;
use nix::errno::Errno;
use nix::fcntl::{OFlag, openat};
use nix::sys::stat::{Mode, SFlag, fstat};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

/// Mounts procfs for this pid namespace on a place.
pub fn mount(place: BorrowedFd<'_>) -> Result<OwnedFd, Failure> {
    let failed = |errno| match errno {
        Errno::EPERM => Failure::setup("mount a fresh `/proc` (the host's is partly masked; see `srt doctor`)", errno),
        errno => Failure::setup("mount a fresh `/proc`", errno),
    };
    let mount = kernel::new_filesystem(c"proc", &[], &[], NOSUID | NODEV | NOEXEC).map_err(failed)?;
    kernel::attach(mount.as_fd(), place).map_err(failed)?;
    Ok(mount)
}

/// Covers, by what there is: names this kernel has and we do not know are judged like all others.
pub fn cover(proc: BorrowedFd<'_>, masks: &mut Masks) -> Result<(), Failure> {
    let failed = |name: &str, errno| Failure::setup(format!("cover `/proc/{name}`"), errno);
    let mut names = Vec::new();
    let flags = OFlag::O_RDONLY | OFlag::O_DIRECTORY | OFlag::O_CLOEXEC;
    let mut listing = Dir::openat(proc, c".", flags, Mode::empty()).map_err(|errno| failed("", errno))?;
    for entry in listing.iter() {
        let entry = entry.map_err(|errno| failed("", errno))?;
        let name = entry.file_name().to_bytes();
        if !name.starts_with(b".") && !name.iter().all(u8::is_ascii_digit) {
            names.push(entry.file_name().to_owned());
        }
    }
    for name in names {
        let text = name.to_string_lossy();
        let place = match open(proc, name.as_bytes()) {
            Ok(place) => place,
            // Links (`self`, `net`) lead to the directories of processes.
            Err(Errno::ELOOP) => continue,
            Err(errno) => return Err(failed(&text, errno)),
        };
        let mode = fstat(&place).map_err(|errno| failed(&text, errno))?.st_mode;
        let kind = SFlag::from_bits_truncate(mode & SFlag::S_IFMT.bits());
        if kind == SFlag::S_IFLNK {
            continue;
        }
        let directory = kind == SFlag::S_IFDIR;
        let cover = if PROC_HIDDEN.contains(&&*text) {
            if directory { masks.directory(false, name.as_bytes())? } else { masks.file(name.as_bytes())? }
        } else if directory || writable(proc, &name) {
            let copy = kernel::copy_tree(place.as_fd(), c"", false).map_err(|errno| failed(&text, errno))?;
            kernel::restrict_mount(copy.as_fd(), RDONLY, false).map_err(|errno| failed(&text, errno))?;
            copy
        } else {
            continue;
        };
        kernel::attach(cover.as_fd(), place.as_fd()).map_err(|errno| failed(&text, errno))?;
    }
    Ok(())
}

/// By trying. Everything but a clear refusal counts as writable.
fn writable(proc: BorrowedFd<'_>, name: &std::ffi::CStr) -> bool {
    let flags = OFlag::O_WRONLY | OFlag::O_NONBLOCK | OFlag::O_NOCTTY | OFlag::O_NOFOLLOW | OFlag::O_CLOEXEC;
    !matches!(openat(proc, name, flags, Mode::empty()), Err(Errno::EACCES | Errno::EPERM | Errno::EROFS))
}
