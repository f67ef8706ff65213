//! Single nodes and file systems, by descriptors: opened without following links, made, mounted nowhere yet.
//!
//! What stands where in the sandbox is not known here.

use crate::exec::linux::kernel;
use nix::errno::Errno;
use nix::fcntl::{OFlag, OpenHow, ResolveFlag, openat2};
use nix::sys::stat::{Mode, SFlag, mkdirat, mknodat};
use std::ffi::{CStr, CString};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

/// What a mount point has to be.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Shape {
    Directory,
    File,
}

/// Opens what `path`, absolute or not, names below `at`, as a place only (`O_PATH`); no link is followed, neither on the way nor at the end.
pub fn open(at: BorrowedFd<'_>, path: &[u8]) -> Result<OwnedFd, Errno> {
    let how = OpenHow::new()
        .flags(OFlag::O_PATH | OFlag::O_CLOEXEC | OFlag::O_NOFOLLOW)
        .resolve(ResolveFlag::RESOLVE_NO_SYMLINKS | ResolveFlag::RESOLVE_NO_MAGICLINKS);
    let start = path.iter().position(|byte| *byte != b'/').unwrap_or(path.len());
    let path = if start == path.len() { &b"."[..] } else { &path[start..] };
    openat2(at, path, how)
}

/// This process's root, as a place.
pub fn open_root() -> Result<OwnedFd, Errno> {
    nix::fcntl::open("/", OFlag::O_PATH | OFlag::O_DIRECTORY | OFlag::O_CLOEXEC, Mode::empty())
}

/// Makes a mount point.
pub fn make(directory: impl AsFd, name: &CStr, shape: Shape) -> Result<(), Errno> {
    match shape {
        Shape::Directory => mkdirat(directory, name, Mode::from_bits_truncate(0o555)),
        Shape::File => mknodat(directory, name, SFlag::S_IFREG, Mode::from_bits_truncate(0o444), 0),
    }
}

/// A detached tmpfs, of so many bytes at the most.
pub fn memory(mode: &CStr, flags: u64, size: Option<u64>) -> Result<OwnedFd, Errno> {
    let size = size.and_then(|size| CString::new(size.max(4096).to_string()).ok());
    let mut options = vec![(c"mode", mode)];
    if let Some(size) = &size {
        options.push((c"size", size.as_c_str()));
    }
    kernel::new_filesystem(c"tmpfs", &options, &[], flags)
}
