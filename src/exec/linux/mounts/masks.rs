//! The nodes that masks are copies of.

use super::{Shape, at, make, memory, open};
use crate::exec::linux::control::Failure;
use crate::exec::linux::kernel::{self, NODEV, NOEXEC, NOSUID, RDONLY};
use nix::errno::Errno;
use nix::fcntl::{OFlag, openat};
use nix::sys::stat::{Mode, mkdirat};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

/// The nodes that masks are copies of: one file system each, however many masks.
pub struct Masks {
    /// Its root is 0700: what lies in it is reached by the copies alone.
    stage: OwnedFd,
    listable: Option<OwnedFd>,
    searchable: Option<OwnedFd>,
}

impl Masks {
    /// Stands on this place until everything is mounted.
    pub fn new(place: BorrowedFd<'_>) -> Result<Masks, Failure> {
        let failed = |errno| Failure::setup("make the masks", errno);
        let stage = memory(c"0700", NOSUID | NODEV | NOEXEC, None).map_err(failed)?;
        let flags = OFlag::O_WRONLY | OFlag::O_CREAT | OFlag::O_EXCL | OFlag::O_CLOEXEC;
        openat(&stage, c"file", flags, Mode::empty()).map_err(failed)?;
        make(&stage, c"listable", Shape::Directory).map_err(failed)?;
        make(&stage, c"sealed", Shape::Directory).map_err(failed)?;
        mkdirat(&stage, c"searchable", Mode::from_bits_truncate(0o111)).map_err(failed)?;
        kernel::restrict_mount(stage.as_fd(), RDONLY, false).map_err(failed)?;
        // Only an attached mount can be copied before Linux 6.15.
        kernel::attach(stage.as_fd(), place).map_err(failed)?;
        Ok(Masks { stage, listable: None, searchable: None })
    }

    pub fn remove(&self) -> Result<(), Failure> {
        let failed = |errno| Failure::setup("put the masks' stage away", errno);
        nix::unistd::fchdir(&self.stage).map_err(failed)?;
        nix::mount::umount2(".", nix::mount::MntFlags::MNT_DETACH).map_err(failed)
    }

    /// A read-only copy of this mount, of which parts can be copied in turn: once.
    pub fn seal(&self, mount: BorrowedFd<'_>) -> Result<OwnedFd, Failure> {
        let failed = |errno| Failure::setup("make a read-only copy of `/proc`", errno);
        let copy = kernel::copy_tree(mount, c"", false).map_err(failed)?;
        kernel::restrict_mount(copy.as_fd(), RDONLY, false).map_err(failed)?;
        kernel::attach_at(copy.as_fd(), self.stage.as_fd(), c"sealed").map_err(failed)?;
        Ok(copy)
    }

    pub fn file(&mut self, path: &[u8]) -> Result<OwnedFd, Failure> {
        kernel::copy_tree(self.stage.as_fd(), c"file", false).map_err(|errno| at("make a mask for", path, errno))
    }

    pub fn directory(&mut self, listable: bool, path: &[u8]) -> Result<OwnedFd, Failure> {
        let (kept, name) =
            if listable { (&mut self.listable, c"listable") } else { (&mut self.searchable, c"searchable") };
        let failed = |errno| at("make a mask for", path, errno);
        if kept.is_none() {
            *kept = Some(open(self.stage.as_fd(), name.to_bytes()).map_err(failed)?);
        }
        match kept {
            Some(directory) => kernel::copy_tree(directory.as_fd(), c"", false).map_err(failed),
            None => Err(failed(Errno::ENOENT)),
        }
    }
}
