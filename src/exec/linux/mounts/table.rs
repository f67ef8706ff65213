//! Mounts that another program made, looked at and restricted afterwards by what the kernel's table says of them.

use super::{at, is_below, open, same_node, target};
use crate::backend::bubblewrap::{Mount, Plan};
use crate::exec::linux::control::Failure;
use crate::exec::linux::kernel::{self, NOEXEC};
use crate::ir::Node;
use nix::errno::Errno;
use nix::sys::stat::fstat;
use std::collections::BTreeSet;
use std::os::fd::{AsFd, BorrowedFd};

/// Where a plan mounts something, and for the host's nodes, which.
pub fn places(plan: &Plan) -> Vec<(Vec<u8>, Option<Node>)> {
    let mounts = plan.mounts.iter().filter_map(|mount| match mount {
        Mount::Bind { path, node, .. } => Some((path.clone(), Some(*node))),
        Mount::Directory { .. } | Mount::File { .. } | Mount::Symlink { .. } => None,
        other => Some((target(other).to_vec(), None)),
    });
    mounts.collect()
}

/// Refuses to go on where a place is no mount point, or no link-free way to the node that was seen: for mounts made by
/// another program, afterwards.
pub fn check_places(root: BorrowedFd<'_>, places: &[(Vec<u8>, Option<Node>)]) -> Result<(), Failure> {
    let points: BTreeSet<Vec<u8>> = mount_points()?.into_iter().collect();
    for (path, node) in places {
        if !points.contains(path) {
            return Err(Failure::changed(path));
        }
        let Some(node) = node else { continue };
        let place = open(root, path).map_err(|errno| at("open", path, errno))?;
        let seen = fstat(&place).map_err(|errno| at("look at", path, errno))?;
        if !same_node(&seen, node) {
            return Err(Failure::changed(path));
        }
    }
    Ok(())
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
