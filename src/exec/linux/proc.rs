//! A fresh procfs, and covers for everything in it that reaches beyond the sandbox.
//!
//! Most of procfs checks the *global* user id, not capabilities: to a caller who is root outside, `/proc/sys` is
//! writable with every capability dropped, and `core_pattern` is a way out. So directories beside those of processes
//! are read-only for everybody, and files are judged by trying to open them for writing, not by the user id.

use super::control::Failure;
use super::kernel::{self, NODEV, NOEXEC, NOSUID};
use super::mounts::Masks;
use crate::backend::bubblewrap::PROC_HIDDEN;
use nix::dir::{Dir, Type};
use nix::errno::Errno;
use nix::fcntl::{OFlag, openat};
use nix::sys::stat::Mode;
use std::ffi::CStr;
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
///
/// Every name is one of the root of a procfs, which the kernel alone gives: no link can come in between.
pub fn cover(proc: BorrowedFd<'_>, masks: &mut Masks) -> Result<(), Failure> {
    let failed = |name: &CStr, errno| Failure::setup(format!("cover `/proc/{}`", name.to_string_lossy()), errno);
    let flags = OFlag::O_RDONLY | OFlag::O_DIRECTORY | OFlag::O_CLOEXEC;
    let mut listing = Dir::openat(proc, c".", flags, Mode::empty()).map_err(|errno| failed(c"", errno))?;
    let names: Vec<_> = listing
        .iter()
        .map(|entry| entry.map(|entry| (entry.file_name().to_owned(), entry.file_type())))
        .collect::<Result<_, _>>()
        .map_err(|errno| failed(c"", errno))?;
    let sealed = masks.seal(proc)?;
    for (name, kind) in names {
        let text = name.to_bytes();
        if text.starts_with(b".") || text.iter().all(u8::is_ascii_digit) {
            continue;
        }
        let directory = match kind {
            Some(Type::Directory) => true,
            // Links (`self`, `net`) lead to the directories of processes.
            Some(Type::Symlink) => continue,
            Some(_) => false,
            None => return Err(failed(&name, Errno::ENOTSUP)),
        };
        let hidden = PROC_HIDDEN.iter().any(|hidden| hidden.as_bytes() == text);
        let cover = match (hidden, directory) {
            (true, true) => masks.directory(false, text)?,
            (true, false) => masks.file(text)?,
            (false, false) if !writable(proc, &name) => continue,
            (false, _) => kernel::copy_tree(sealed.as_fd(), &name, false).map_err(|errno| failed(&name, errno))?,
        };
        kernel::attach_at(cover.as_fd(), proc, &name).map_err(|errno| failed(&name, errno))?;
    }
    Ok(())
}

/// By trying. Everything but a clear refusal counts as writable.
fn writable(proc: BorrowedFd<'_>, name: &CStr) -> bool {
    let flags = OFlag::O_WRONLY | OFlag::O_NONBLOCK | OFlag::O_NOCTTY | OFlag::O_NOFOLLOW | OFlag::O_CLOEXEC;
    !matches!(openat(proc, name, flags, Mode::empty()), Err(Errno::EACCES | Errno::EPERM | Errno::EROFS))
}
