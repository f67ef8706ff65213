//! Mounts that another program made, looked at and restricted afterwards by what the kernel's table says of them.

use super::{at, is_below, kind, open, same_node, target};
use crate::backend::bubblewrap::{Mount, Plan};
use crate::exec::linux::control::Failure;
use crate::exec::linux::kernel::{self, NOEXEC};
use crate::ir::{Node, NodeKind};
use nix::errno::Errno;
use nix::sys::stat::fstat;
use std::collections::BTreeSet;
use std::os::fd::{AsFd, BorrowedFd};

/// A place where a plan mounts something.
#[derive(Debug, serde::Serialize, serde::Deserialize)]
pub struct Place {
    path: Vec<u8>,
    /// What was seen there.
    node: Option<Node>,
    /// A mask hides the node.
    hidden: bool,
}

/// Where a plan mounts something, and for the host's nodes, which.
pub fn places(plan: &Plan) -> Vec<Place> {
    let mounts = plan.mounts.iter().filter_map(|mount| {
        let (node, hidden) = match mount {
            Mount::Bind { node, .. } => (Some(*node), false),
            Mount::MaskFile { node, .. } => (Some(*node), true),
            Mount::EmptyDirectory { node, .. } => (*node, true),
            Mount::Directory { .. } | Mount::File { .. } | Mount::Symlink { .. } => return None,
            _ => (None, false),
        };
        Some(Place { path: target(mount).to_vec(), node, hidden })
    });
    mounts.collect()
}

/// Refuses to go on where a place is no mount point, or no link-free way to the node that was seen: for mounts made by
/// another program, afterwards.
pub fn check_places(root: BorrowedFd<'_>, places: &[Place]) -> Result<(), Failure> {
    let points: BTreeSet<Vec<u8>> = mount_points()?.into_iter().collect();
    for place in places {
        let there = points.contains(&place.path) && place.shows_what_was_seen(root)?;
        if !there {
            return Err(Failure::changed(&place.path));
        }
    }
    Ok(())
}

impl Place {
    /// Below a mask the node is looked for in a copy of the directory's mount, in which the mask is not. Such a copy is not
    /// to be had where the host has mounts of its own below that directory: then the mask alone is looked for.
    fn shows_what_was_seen(&self, root: BorrowedFd<'_>) -> Result<bool, Failure> {
        let (Some(node), path) = (&self.node, &self.path) else { return Ok(true) };
        let failed = |errno| match errno {
            Errno::ENOENT | Errno::ELOOP | Errno::ENOTDIR => Failure::changed(path),
            errno => at("look at", path, errno),
        };
        let look = |directory: BorrowedFd<'_>, name: &[u8]| fstat(open(directory, name)?);
        if !self.hidden {
            return Ok(same_node(&look(root, path).map_err(failed)?, node));
        }
        let end = path.iter().rposition(|byte| *byte == b'/').unwrap_or(0);
        let directory = match open(root, &path[..end]) {
            // Where this process may not go, the command may not either.
            Err(Errno::EACCES) => return Ok(true),
            directory => directory.map_err(failed)?,
        };
        match kernel::copy_tree(directory.as_fd(), c"", false) {
            Ok(copy) => Ok(same_node(&look(copy.as_fd(), &path[end..]).map_err(failed)?, node)),
            Err(Errno::EINVAL) => {
                let mask = look(directory.as_fd(), &path[end..]).map_err(failed)?;
                Ok(!same_node(&mask, node) && kind(&mask) != Some(NodeKind::File))
            }
            Err(errno) => Err(at("copy the mount above", path, errno)),
        }
    }
}

/// The mount points of this mount namespace, as they are seen from its root, in order of their making.
fn mount_points() -> Result<Vec<Vec<u8>>, Failure> {
    let failed = |errno| Failure::setup("read `/proc/self/mountinfo`", errno);
    let table = std::fs::read("/proc/self/mountinfo")
        .map_err(|error| failed(Errno::from_raw(error.raw_os_error().unwrap_or(libc::EIO))))?;
    let lines = table.split(|byte| *byte == b'\n').filter(|line| !line.is_empty());
    lines.map(|line| line.split(|byte| *byte == b' ').nth(4).map(unescape).ok_or(failed(Errno::EBADMSG))).collect()
}

/// Makes noexec every mount that lies at or below one of `noexec`, unless one of `exec` is nearer.
pub fn forbid_running(root: BorrowedFd<'_>, noexec: &[Vec<u8>], exec: &[Vec<u8>]) -> Result<(), Failure> {
    if noexec.is_empty() {
        return Ok(());
    }
    let nearest = |path: &[u8], places: &[Vec<u8>]| {
        let holds = |place: &&Vec<u8>| *place == b"/" || **place == path || is_below(path, place);
        places.iter().filter(holds).map(Vec::len).max()
    };
    for path in mount_points()? {
        let (Some(bad), good) = (nearest(&path, noexec), nearest(&path, exec)) else { continue };
        if good.is_some_and(|good| good > bad) {
            continue;
        }
        match open(root, &path) {
            Ok(place) => kernel::restrict_mount(place.as_fd(), NOEXEC, false)
                .map_err(|errno| at("forbid running programs at", &path, errno))?,
            // Below another mount, where nobody gets to.
            Err(Errno::ENOENT | Errno::ENOTDIR | Errno::EACCES) => (),
            Err(errno) => return Err(at("open", &path, errno)),
        }
    }
    Ok(())
}

/// The mount table writes blanks, line ends and backslashes in octal (proc_pid_mountinfo(5)).
fn unescape(field: &[u8]) -> Vec<u8> {
    let mut path = Vec::with_capacity(field.len());
    let mut rest = field;
    while let Some((&byte, after)) = rest.split_first() {
        let octal = (byte == b'\\').then(|| after.get(..3)).flatten();
        let value = octal.and_then(|digits| u8::from_str_radix(std::str::from_utf8(digits).ok()?, 8).ok());
        path.push(value.unwrap_or(byte));
        rest = if value.is_some() { &after[3..] } else { after };
    }
    path
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_mount_tables_escapes() {
        assert_eq!(unescape(br"/a\040b\134c\011"), b"/a b\\c\t");
        assert_eq!(unescape(br"/a\0"), br"/a\0");
    }
}
