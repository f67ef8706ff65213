//! What a node is, and how it is named where a call takes no descriptor of a place.

pub use super::super::place::is_of_processes;
use super::super::place::own_name;
use nix::errno::Errno;
use nix::fcntl::{AtFlags, OFlag, openat};
use nix::sys::stat::{FileStat, Mode, SFlag, fstatat};
use std::ffi::CStr;
use std::os::fd::{BorrowedFd, OwnedFd};

pub fn kind(seen: &FileStat) -> SFlag {
    SFlag::from_bits_truncate(seen.st_mode & SFlag::S_IFMT.bits())
}

pub fn is_directory(seen: &FileStat) -> bool {
    kind(seen) == SFlag::S_IFDIR
}

/// What has a name in a directory, not followed; `None`: nothing.
pub fn look(directory: &OwnedFd, last: &CStr) -> Result<Option<FileStat>, Errno> {
    match fstatat(directory, last, AtFlags::AT_SYMLINK_NOFOLLOW) {
        Ok(seen) => Ok(Some(seen)),
        Err(Errno::ENOENT) => Ok(None),
        Err(errno) => Err(errno),
    }
}

/// What has a name in a directory, as a place, not followed.
pub fn hold(directory: &OwnedFd, last: &CStr) -> Result<OwnedFd, Errno> {
    openat(directory, last, OFlag::O_PATH | OFlag::O_NOFOLLOW | OFlag::O_CLOEXEC, Mode::empty())
}

/// Whether a directory that is held has nothing in it, as far as it may be read.
pub fn is_empty(place: &OwnedFd, proc: BorrowedFd<'_>) -> Result<bool, Errno> {
    let directory = open(place, OFlag::O_RDONLY | OFlag::O_DIRECTORY, proc)?;
    let mut names = nix::dir::Dir::from_fd(directory)?;
    let is_name = |entry: nix::dir::Entry| !matches!(entry.file_name().to_bytes(), b"." | b"..");
    Ok(!names.iter().flatten().any(is_name))
}

/// Opens a node that is held.
pub fn open(place: &OwnedFd, flags: OFlag, proc: BorrowedFd<'_>) -> Result<OwnedFd, Errno> {
    openat(proc, own_name(place).as_str(), flags | OFlag::O_CLOEXEC, Mode::empty())
}
