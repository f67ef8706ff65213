//! From a path of the command's to the place where a call is made: a directory, opened by its name without following any link, and
//! the last part of the path in it; or a node that a descriptor of the command's is.

use crate::exec::linux::broker::place::{self, End, Way};
use crate::exec::linux::broker::task::Task;
use crate::sets::path::{AbsPath, FileName};
use nix::errno::Errno;
use nix::fcntl::{OFlag, OpenHow, ResolveFlag, openat2, readlinkat};
use nix::sys::stat::{FileStat, Mode, fstat};
use std::ffi::CString;
use std::os::fd::{BorrowedFd, OwnedFd};

pub enum Target {
    Named(Named),
    /// `/`, `.`, `..`, or a descriptor by its name in `/proc`.
    Node(Node),
}

/// A name in a directory, whether or not something has it.
pub struct Named {
    /// Opened by `name`'s own directory.
    pub directory: OwnedFd,
    pub last: CString,
    /// The whole of it.
    pub name: AbsPath,
    /// The path ended in a slash: it means a directory.
    pub slash: bool,
    /// Of the directory.
    pub device: u64,
}

/// A node that is held.
pub struct Node {
    pub place: OwnedFd,
    /// Where it is, if it is anywhere that the sandbox shows.
    pub name: Option<AbsPath>,
    /// The command's descriptor that it is, with what that was opened for.
    pub opened: Option<OFlag>,
}

/// Looks a path up. `follow`: a link in the last place is followed.
pub fn find(task: &Task<'_>, way: Way, follow: bool, proc: BorrowedFd<'_>) -> Result<Target, Errno> {
    match way.walk(task, follow)? {
        End::Descriptor(number) => of_descriptor(task, number, proc).map(Target::Node),
        End::Node(place) => {
            let name = shown(&place, proc)?;
            Ok(Target::Node(Node { place, name: Some(name), opened: None }))
        }
        End::Named { directory, last, slash } => named(&directory, &last, slash, proc).map(Target::Named),
        End::Astray(_) => Err(Errno::ENOENT),
    }
}

/// What a name in a directory is, with the directory opened anew by its own name: whatever the first one was reached by, the
/// call is made where the name says.
fn named(directory: &OwnedFd, last: &[u8], slash: bool, proc: BorrowedFd<'_>) -> Result<Named, Errno> {
    let (above, opened, seen) = by_name(directory, OFlag::O_DIRECTORY, proc)?;
    let name = above.join_all(&[FileName::from(last)]);
    let last = CString::new(last).map_err(|_| Errno::EINVAL)?;
    Ok(Named { directory: opened, last, name, slash, device: seen.st_dev })
}

/// The node that a descriptor of the command's is.
pub fn of_descriptor(task: &Task<'_>, number: i32, proc: BorrowedFd<'_>) -> Result<Node, Errno> {
    let place = task.descriptor(number)?;
    let opened = OFlag::from_bits_retain(nix::fcntl::fcntl(&place, nix::fcntl::FcntlArg::F_GETFL)?);
    // What is too deep for a name has one all the same.
    readlinkat(proc, place::own_name(&place).as_str()).map_err(|_| Errno::EACCES)?;
    let name = shown(&place, proc).ok();
    Ok(Node { place, name, opened: Some(opened) })
}

/// Where the sandbox shows a node. `EACCES`: nowhere; `ENOENT`: not any more.
fn shown(node: &OwnedFd, proc: BorrowedFd<'_>) -> Result<AbsPath, Errno> {
    by_name(node, OFlag::O_NOFOLLOW, proc).map(|(name, ..)| name)
}

/// The same, and the node opened anew by that name, which is this one.
fn by_name(node: &OwnedFd, more: OFlag, proc: BorrowedFd<'_>) -> Result<(AbsPath, OwnedFd, FileStat), Errno> {
    let seen = fstat(node)?;
    let name = place::name_of(node, proc).ok_or(if seen.st_nlink == 0 { Errno::ENOENT } else { Errno::EACCES })?;
    let name = AbsPath::parse(&name).map_err(|_| Errno::EACCES)?;
    let there = open_name(&name, more)?;
    let found = fstat(&there)?;
    same(&seen, &found).map(|()| (name, there, found))
}

/// Opens what a name is, as a place, following no link.
pub fn open_name(name: &AbsPath, more: OFlag) -> Result<OwnedFd, Errno> {
    let root = nix::fcntl::open("/", OFlag::O_PATH | OFlag::O_DIRECTORY | OFlag::O_CLOEXEC, Mode::empty())?;
    if name.segments.is_empty() {
        return Ok(root);
    }
    let path = name.as_bytes().ok_or(Errno::EACCES)?;
    let how = OpenHow::new().flags(OFlag::O_PATH | OFlag::O_CLOEXEC | more);
    let resolve = ResolveFlag::RESOLVE_NO_SYMLINKS | ResolveFlag::RESOLVE_NO_MAGICLINKS;
    match openat2(&root, &path[1..], how.resolve(resolve)) {
        Err(Errno::ELOOP) => Err(Errno::EACCES),
        opened => opened,
    }
}

fn same(one: &FileStat, other: &FileStat) -> Result<(), Errno> {
    if (one.st_dev, one.st_ino) == (other.st_dev, other.st_ino) { Ok(()) } else { Err(Errno::EACCES) }
}
