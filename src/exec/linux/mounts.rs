//! A plan's mounts, carried out with the new mount API: every source and every place is held by descriptor, no link is
//! ever followed, and nothing is created outside file systems of the run's own.
//!
//! The plan says what and in which order; nothing is decided here.

mod masks;
mod names;
pub mod node;
mod stage;
mod table;

pub use masks::Masks;
pub use names::cover_names;
pub use node::{Shape, make, memory, open, open_root};
pub use stage::Stage;
pub use table::{Place, check_places, forbid_running, places};

use super::control::Failure;
use super::defence::Defence;
use super::devices;
use super::kernel::{self, NODEV, NOEXEC, NOSUID, RDONLY};
use crate::backend::bubblewrap::{DEVICES, Mount, Plan, Root};
use crate::ir::{Node, NodeKind};
use nix::errno::Errno;
use nix::fcntl::{OFlag, OpenHow, ResolveFlag, openat, openat2};
use nix::sys::stat::{FchmodatFlags, FileStat, Mode, SFlag, fchmodat, fstat};
use std::collections::BTreeSet;
use std::ffi::CString;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

/// The tree under construction.
pub struct Tree {
    root: OwnedFd,
    /// The devices of the file systems that the run itself made: nothing is created anywhere else.
    own: BTreeSet<u64>,
    /// Mounts that become read-only once everything stands.
    unsealed: Vec<OwnedFd>,
    stage: Stage,
    how: How,
}

/// How the mounts are made: the limit of a tmpfs, and, for tests alone, what is taken out.
#[derive(Clone, Copy)]
struct How {
    /// Bytes of a private tmpfs at the most.
    size: Option<u64>,
    /// What every mount of the host's gets.
    flags: u64,
    same_node: bool,
}

impl How {
    fn new(plan: &Plan, missing: &[Defence]) -> How {
        let flag = |defence, flag| if missing.contains(&defence) { 0 } else { flag };
        How {
            size: plan.limits.memory,
            flags: flag(Defence::NoDevices, NODEV) | flag(Defence::NoSetuid, NOSUID),
            same_node: !missing.contains(&Defence::SameNode),
        }
    }

    fn open(self, at: BorrowedFd<'_>, path: &[u8]) -> Result<OwnedFd, Errno> {
        if self.same_node {
            return open(at, path);
        }
        let start = path.iter().position(|byte| *byte != b'/').unwrap_or(path.len());
        openat(at, &path[start..], OFlag::O_PATH | OFlag::O_CLOEXEC, Mode::empty())
    }
}

/// Builds the plan's tree and makes it the root of this process and of those it has started, which is when `entered` is
/// called; afterwards nothing but the tree can be reached.
///
/// The mounts of the host's are those that there were when this process got its mount namespace; what the host mounts or
/// unmounts until now is followed where its mounts are shared, which is where a system wants that to be so. Where it is
/// not, a place that a rule names has another node here than `bind` saw, and is refused as one that was replaced; and
/// anywhere else, the sandbox shows what stood there when the run began.
pub fn enter(stage: Stage, plan: &Plan, missing: &[Defence], entered: impl FnOnce()) -> Result<(), Failure> {
    let how = How::new(plan, missing);
    kernel::make_private(stage.host.as_fd()).map_err(|errno| Failure::setup("make the mounts private", errno))?;
    let mut tree = Tree::new(stage, plan.root, how)?;
    for (at, mount) in plan.mounts.iter().enumerate() {
        // What is mounted goes to the new tree alone: seen from `host`, the host's stays as it was.
        tree.carry_out(mount, &plan.mounts[at + 1..])?;
    }
    tree.enter(entered)
}

/// A copy of the host's mounts at a place, restricted, and what stands there.
fn source(
    host: BorrowedFd<'_>,
    path: &[u8],
    node: &Node,
    flags: u64,
    how: How,
) -> Result<(OwnedFd, FileStat), Failure> {
    let failed = |errno| match errno {
        // Gone, or a link or another thing than a directory on the way, since it was looked at.
        Errno::ENOENT | Errno::ELOOP | Errno::ENOTDIR => Failure::changed(path),
        errno => at("open", path, errno),
    };
    let place = how.open(host, path).map_err(failed)?;
    let seen = fstat(&place).map_err(failed)?;
    if how.same_node && !same_node(&seen, node) {
        return Err(Failure::changed(path));
    }
    let copy = kernel::copy_tree(place.as_fd(), c"", true).map_err(|errno| at("copy the mounts at", path, errno))?;
    kernel::restrict_mount(copy.as_fd(), how.flags | flags, true)
        .map_err(|errno| at("restrict the mounts at", path, errno))?;
    Ok((copy, seen))
}

impl Tree {
    fn new(stage: Stage, root: Root, how: How) -> Result<Tree, Failure> {
        let mut own = BTreeSet::new();
        let mut unsealed = Vec::new();
        let failed = |errno| Failure::setup("make the sandbox's root", errno);
        let root = match root {
            Root::Host { exec } => {
                let copy = kernel::copy_tree(stage.host.as_fd(), c"", true).map_err(failed)?;
                let flags = RDONLY | how.flags | if exec { 0 } else { NOEXEC };
                kernel::restrict_mount(copy.as_fd(), flags, true).map_err(failed)?;
                copy
            }
            Root::Empty { listable } => {
                let mode = if listable { c"0555" } else { c"0111" };
                let root = memory(mode, NOSUID | NODEV | NOEXEC, None).map_err(failed)?;
                own.insert(fstat(&root).map_err(failed)?.st_dev);
                unsealed.push(root.try_clone().map_err(|_| failed(Errno::EMFILE))?);
                root
            }
        };
        // On top of the stage's root, where only descriptors lead.
        kernel::attach(root.as_fd(), stage.place.as_fd()).map_err(failed)?;
        Ok(Tree { root, own, unsealed, stage, how })
    }

    fn carry_out(&mut self, mount: &Mount, later: &[Mount]) -> Result<(), Failure> {
        match mount {
            Mount::Bind { path, node, write, exec } => {
                let flags = if *write { 0 } else { RDONLY } | if *exec { 0 } else { NOEXEC };
                let (copy, seen) = source(self.stage.host.as_fd(), path, node, flags, self.how)?;
                let shape = shape(&seen);
                let place = self.place(path, shape)?;
                let there = fstat(&place).map_err(|errno| at("look at", path, errno))?;
                if !self.own.contains(&there.st_dev) && (there.st_dev, there.st_ino) != (seen.st_dev, seen.st_ino) {
                    return Err(Failure::changed(path));
                }
                if path == b"/" {
                    return Err(at("bind", path, Errno::EBUSY));
                }
                attach(copy.as_fd(), &place, path)
            }
            Mount::EmptyDirectory { path, node, listable } => {
                let Some(place) = self.reachable(path, Shape::Directory)? else { return Ok(()) };
                self.must_be_seen(&place, node.as_ref(), path)?;
                if later.iter().any(|other| is_below(target(other), path)) {
                    let mode = if *listable { c"0555" } else { c"0111" };
                    let mount = memory(mode, NOSUID | NODEV | NOEXEC, None)
                        .map_err(|errno| at("make a tmpfs for", path, errno))?;
                    self.adopt(&mount, path)?;
                    attach(mount.as_fd(), &place, path)?;
                    self.unsealed.push(mount);
                    Ok(())
                } else {
                    attach(self.stage.masks.directory(*listable, path)?.as_fd(), &place, path)
                }
            }
            Mount::Directory { path, listable } => {
                let (parent, name) = self.entry(path)?;
                let failed = |errno| at("make", path, errno);
                match make(&parent, &name, Shape::Directory) {
                    Ok(()) | Err(Errno::EEXIST) => (),
                    Err(errno) => return Err(failed(errno)),
                }
                let place = open(parent.as_fd(), name.as_bytes()).map_err(failed)?;
                self.must_be_own(&place, path)?;
                let mode = Mode::from_bits_truncate(if *listable { 0o555 } else { 0o111 });
                fchmodat(&parent, name.as_c_str(), mode, FchmodatFlags::FollowSymlink).map_err(failed)
            }
            Mount::MaskFile { path, node } => {
                let Some(place) = self.reachable(path, Shape::File)? else { return Ok(()) };
                self.must_be_seen(&place, Some(node), path)?;
                attach(self.stage.masks.file(path)?.as_fd(), &place, path)
            }
            Mount::Private { path, mode, exec } => {
                let flags = NOSUID | NODEV | if *exec { 0 } else { NOEXEC };
                let place = self.place(path, Shape::Directory)?;
                let failed = |errno| at("make a tmpfs for", path, errno);
                let mode = CString::new(format!("{:o}", mode & 0o7777)).map_err(|_| failed(Errno::EINVAL))?;
                let mount = memory(&mode, flags, self.how.size).map_err(failed)?;
                self.adopt(&mount, path)?;
                attach(mount.as_fd(), &place, path)
            }
            Mount::File { path, text } => {
                let (parent, name) = self.entry(path)?;
                let failed = |errno| at("write", path, errno);
                let flags = OFlag::O_WRONLY | OFlag::O_CREAT | OFlag::O_EXCL | OFlag::O_CLOEXEC | OFlag::O_NOFOLLOW;
                let file = openat(&parent, name.as_c_str(), flags, Mode::from_bits_truncate(0o444)).map_err(failed)?;
                let mut rest = &text[..];
                while !rest.is_empty() {
                    let written = nix::unistd::write(&file, rest).map_err(failed)?;
                    rest = &rest[written..];
                }
                Ok(())
            }
            Mount::Symlink { path, to } => {
                let (parent, name) = self.entry(path)?;
                nix::unistd::symlinkat(&to[..], &parent, name.as_c_str()).map_err(|errno| at("link", path, errno))
            }
            Mount::Devices { nodes } => {
                let path = b"/dev";
                let place = self.place(path, Shape::Directory)?;
                let mount = if nodes[..] == DEVICES {
                    let mount = take(&mut self.stage.devices)?;
                    attach(mount.as_fd(), &place, path)?;
                    mount
                } else {
                    devices::mount(self.stage.host.as_fd(), nodes, &place)?
                };
                self.adopt(&mount, path)?;
                self.unsealed.push(mount);
                Ok(())
            }
            Mount::Proc => {
                let place = self.place(b"/proc", Shape::Directory)?;
                // Its covers go with it.
                attach(take(&mut self.stage.proc)?.as_fd(), &place, b"/proc")
            }
        }
    }

    fn adopt(&mut self, mount: &OwnedFd, path: &[u8]) -> Result<(), Failure> {
        self.own.insert(fstat(mount).map_err(|errno| at("look at", path, errno))?.st_dev);
        Ok(())
    }

    /// The place for a mount; made, with the directories on the way, where it lies in a file system of the run's own.
    fn place(&self, path: &[u8], shape: Shape) -> Result<OwnedFd, Failure> {
        match self.how.open(self.root.as_fd(), path) {
            Ok(place) => {
                let seen = fstat(&place).map_err(|errno| at("look at", path, errno))?;
                let kind = kind(&seen);
                let fits = (kind == Some(NodeKind::Directory)) == (shape == Shape::Directory);
                if fits && kind != Some(NodeKind::Link) { Ok(place) } else { Err(Failure::changed(path)) }
            }
            Err(Errno::ENOENT) => {
                let (parent, name) = self.entry(path)?;
                let failed = |errno| at("make a place for", path, errno);
                make(&parent, &name, shape).map_err(failed)?;
                open(parent.as_fd(), name.as_bytes()).map_err(failed)
            }
            Err(Errno::ELOOP | Errno::ENOTDIR) => Err(Failure::changed(path)),
            Err(errno) => Err(at("open", path, errno)),
        }
    }

    /// The place of a mask. `None` where this process, which has every right the command will have and more, may not
    /// even go: there is nothing left to hide.
    fn reachable(&self, path: &[u8], shape: Shape) -> Result<Option<OwnedFd>, Failure> {
        match open(self.root.as_fd(), path) {
            Err(Errno::EACCES) => Ok(None),
            _ => self.place(path, shape).map(Some),
        }
    }

    /// What a mask hides is what was seen: had it been replaced, the old node would be somewhere else, under no mask.
    fn must_be_seen(&self, place: &OwnedFd, node: Option<&Node>, path: &[u8]) -> Result<(), Failure> {
        let Some(node) = node.filter(|_| self.how.same_node) else { return Ok(()) };
        let there = fstat(place).map_err(|errno| at("look at", path, errno))?;
        if self.own.contains(&there.st_dev) || same_node(&there, node) { Ok(()) } else { Err(Failure::changed(path)) }
    }

    /// The directory that `path` lies in, which is the run's own, and the name of the last segment.
    fn entry(&self, path: &[u8]) -> Result<(OwnedFd, CString), Failure> {
        let failed = |errno| at("make a place for", path, errno);
        let mut segments: Vec<&[u8]> = path.split(|byte| *byte == b'/').filter(|part| !part.is_empty()).collect();
        let Some(last) = segments.pop() else { return Err(failed(Errno::EINVAL)) };
        let mut directory = self.root.try_clone().map_err(|_| failed(Errno::EMFILE))?;
        for segment in segments {
            directory = match open(directory.as_fd(), segment) {
                Ok(next) => next,
                Err(Errno::ENOENT) => {
                    self.must_be_own(&directory, path)?;
                    let name = CString::new(segment).map_err(|_| failed(Errno::EINVAL))?;
                    make(&directory, &name, Shape::Directory).map_err(failed)?;
                    open(directory.as_fd(), segment).map_err(failed)?
                }
                Err(errno) => return Err(failed(errno)),
            };
        }
        self.must_be_own(&directory, path)?;
        Ok((directory, CString::new(last).map_err(|_| failed(Errno::EINVAL))?))
    }

    /// Nothing is ever made on the host: a name that is missing there was taken away since it was looked at.
    fn must_be_own(&self, directory: &OwnedFd, path: &[u8]) -> Result<(), Failure> {
        let device = fstat(directory).map_err(|errno| at("look at", path, errno))?.st_dev;
        if self.own.contains(&device) { Ok(()) } else { Err(Failure::changed(path)) }
    }

    fn enter(self, entered: impl FnOnce()) -> Result<(), Failure> {
        for mount in &self.unsealed {
            kernel::restrict_mount(mount.as_fd(), RDONLY, false)
                .map_err(|errno| Failure::setup("make the sandbox's own directories read-only", errno))?;
        }
        let step = |act: &'static str| move |errno| Failure::setup(act, errno);
        nix::unistd::fchdir(&self.root).map_err(step("enter the sandbox's root"))?;
        kernel::pivot_root_here(c".").map_err(step("change the root"))?;
        entered();
        // The stage, and with it the host's tree.
        nix::mount::umount2(".", nix::mount::MntFlags::MNT_DETACH).map_err(step("let go of the host's root"))?;
        nix::unistd::chdir("/").map_err(step("enter `/`"))?;
        nothing_on_top(self.root.as_fd())
    }
}

/// `/..` leads to whatever is mounted on top of the root: nothing must be left there.
pub fn nothing_on_top(root: BorrowedFd<'_>) -> Result<(), Failure> {
    let how = OpenHow::new().flags(OFlag::O_PATH | OFlag::O_CLOEXEC).resolve(ResolveFlag::RESOLVE_NO_XDEV);
    openat2(root, "..", how).map(drop).map_err(|errno| Failure::setup("let go of everything on top of `/`", errno))
}

/// What was made on the stage, which is there once.
fn take(made: &mut Result<OwnedFd, Failure>) -> Result<OwnedFd, Failure> {
    std::mem::replace(made, Err(Failure::setup("mount the same twice", Errno::EEXIST)))
}

fn attach(mount: BorrowedFd<'_>, place: &OwnedFd, path: &[u8]) -> Result<(), Failure> {
    kernel::attach(mount, place.as_fd()).map_err(|errno| match errno {
        // A file over a directory or the other way round; or the place was removed meanwhile.
        Errno::ENOTDIR | Errno::ENOENT => Failure::changed(path),
        errno => at("mount on", path, errno),
    })
}

fn at(act: &str, path: &[u8], errno: Errno) -> Failure {
    Failure::setup(format!("{act} {}", quoted(path)), errno)
}

fn quoted(path: &[u8]) -> String {
    format!("`{}`", String::from_utf8_lossy(path))
}

fn shape(seen: &FileStat) -> Shape {
    if kind(seen) == Some(NodeKind::Directory) { Shape::Directory } else { Shape::File }
}

fn same_node(seen: &FileStat, node: &Node) -> bool {
    seen.st_dev == node.device && seen.st_ino == node.inode && kind(seen) == Some(node.kind)
}

fn kind(seen: &FileStat) -> Option<NodeKind> {
    Some(match SFlag::from_bits_truncate(seen.st_mode & SFlag::S_IFMT.bits()) {
        SFlag::S_IFREG => NodeKind::File,
        SFlag::S_IFDIR => NodeKind::Directory,
        SFlag::S_IFLNK => NodeKind::Link,
        SFlag::S_IFSOCK => NodeKind::Socket,
        SFlag::S_IFIFO => NodeKind::Fifo,
        SFlag::S_IFCHR | SFlag::S_IFBLK => NodeKind::Device,
        _ => return None,
    })
}

fn target(mount: &Mount) -> &[u8] {
    match mount {
        Mount::Bind { path, .. }
        | Mount::EmptyDirectory { path, .. }
        | Mount::Directory { path, .. }
        | Mount::MaskFile { path, .. }
        | Mount::Private { path, .. }
        | Mount::File { path, .. }
        | Mount::Symlink { path, .. } => path,
        Mount::Devices { .. } => b"/dev",
        Mount::Proc => b"/proc",
    }
}

/// Whether `path` lies strictly below `directory`.
fn is_below(path: &[u8], directory: &[u8]) -> bool {
    path.strip_prefix(directory).is_some_and(|rest| rest.starts_with(b"/"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn below_is_by_whole_segments() {
        assert!(is_below(b"/a/b", b"/a"));
        assert!(!is_below(b"/ab", b"/a") && !is_below(b"/a", b"/a"));
    }
}
