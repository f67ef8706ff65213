//! A minimal `/dev`: a few of the host's own nodes, a devpts of the run's own, and the usual links.

use super::control::Failure;
use super::kernel::{self, NOEXEC, NOSUID};
use super::mounts::node::{Shape, make, memory, open};
use nix::errno::Errno;
use nix::sys::stat::{SFlag, fstat};
use std::ffi::{CStr, CString};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

/// What a program expects beside the nodes: (name, target).
pub const LINKS: [(&CStr, &CStr); 5] = [
    (c"fd", c"/proc/self/fd"),
    (c"stdin", c"/proc/self/fd/0"),
    (c"stdout", c"/proc/self/fd/1"),
    (c"stderr", c"/proc/self/fd/2"),
    (c"ptmx", c"pts/ptmx"),
];

/// Mounts a tmpfs on `place`, and puts copies of the host's nodes of these names, a devpts and the links into it.
pub fn mount(host: BorrowedFd<'_>, nodes: &[impl AsRef<str>], place: &OwnedFd) -> Result<OwnedFd, Failure> {
    let dev =
        memory(c"0755", NOSUID | NOEXEC, None).map_err(|errno| Failure::setup("make a tmpfs for `/dev`", errno))?;
    kernel::attach(dev.as_fd(), place.as_fd()).map_err(|errno| Failure::setup("mount on `/dev`", errno))?;
    let theirs = open(host, b"/dev").map_err(|errno| Failure::setup("open the host's `/dev`", errno))?;
    for name in nodes {
        let name = name.as_ref();
        let failed = |errno| Failure::setup(format!("take `/dev/{name}` from the host"), errno);
        let entry = CString::new(name).map_err(|_| failed(Errno::EINVAL))?;
        let copy = kernel::copy_tree(theirs.as_fd(), &entry, false).map_err(failed)?;
        let seen = fstat(&copy).map_err(failed)?;
        // A file that somebody left in the place of `/dev/null` would be a way to write to the host.
        if SFlag::from_bits_truncate(seen.st_mode & SFlag::S_IFMT.bits()) != SFlag::S_IFCHR {
            return Err(failed(Errno::ENODEV));
        }
        kernel::restrict_mount(copy.as_fd(), NOSUID | NOEXEC, false).map_err(failed)?;
        let failed = |errno| Failure::setup(format!("make `/dev/{name}`"), errno);
        make(&dev, &entry, Shape::File).map_err(failed)?;
        kernel::attach_at(copy.as_fd(), dev.as_fd(), &entry).map_err(failed)?;
    }
    make(&dev, c"pts", Shape::Directory).map_err(|errno| Failure::setup("make `/dev/pts`", errno))?;
    terminals(dev.as_fd(), b"pts")?;
    for (name, target) in LINKS {
        nix::unistd::symlinkat(target, &dev, name)
            .map_err(|errno| Failure::setup(format!("make `/dev/{}`", name.to_string_lossy()), errno))?;
    }
    Ok(dev)
}

/// Mounts a devpts of the run's own.
pub fn terminals(at: BorrowedFd<'_>, path: &[u8]) -> Result<(), Failure> {
    let failed = |errno| Failure::setup("mount `/dev/pts`", errno);
    let options = [(c"ptmxmode", c"0666"), (c"mode", c"620")];
    let terminals = kernel::new_filesystem(c"devpts", &options, &[c"newinstance"], NOSUID | NOEXEC).map_err(failed)?;
    let place = open(at, path).map_err(failed)?;
    kernel::attach(terminals.as_fd(), place.as_fd()).map_err(failed)
}
