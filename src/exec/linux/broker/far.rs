//! Which file systems that the sandbox shows are of other machines, or of programs: whoever looks something up there may wait for any
//! time, and must not hold what others wait for.

use crate::ir::is_far;
use nix::errno::Errno;
use nix::fcntl::{OFlag, openat};
use nix::sys::stat::{Mode, makedev};
use std::collections::HashSet;
use std::io::Read;
use std::os::fd::BorrowedFd;

/// By the device number of what is in them. None is mounted later.
pub struct Far(HashSet<u64>);

impl Far {
    /// `proc`: the root of a procfs.
    pub fn look(proc: BorrowedFd<'_>) -> Result<Far, Errno> {
        let file = openat(proc, "self/mountinfo", OFlag::O_RDONLY | OFlag::O_CLOEXEC, Mode::empty())?;
        let mut table = Vec::new();
        std::fs::File::from(file)
            .read_to_end(&mut table)
            .map_err(|error| Errno::from_raw(error.raw_os_error().unwrap_or(libc::EIO)))?;
        Ok(Far(String::from_utf8_lossy(&table).lines().filter_map(far).collect()))
    }

    pub fn is_any(&self) -> bool {
        !self.0.is_empty()
    }

    pub fn has(&self, device: u64) -> bool {
        self.0.contains(&device)
    }
}

/// The device of a line of the table (`mountinfo`, proc(5)), if it is one of these.
fn far(line: &str) -> Option<u64> {
    let (mount, kind) = line.split_once(" - ")?;
    let (major, minor) = mount.split(' ').nth(2)?.split_once(':')?;
    let device = makedev(major.parse().ok()?, minor.parse().ok()?);
    kind.split(' ').next().is_some_and(is_far).then_some(device)
}

#[cfg(test)]
mod tests {
    use super::far;
    use nix::sys::stat::makedev;

    #[test]
    fn what_may_take_any_time() {
        let line = |device: &str, kind: &str| far(&format!("36 35 {device} / /m rw master:1 - {kind} x rw"));
        assert_eq!(line("0:48", "fuse.sshfs"), Some(makedev(0, 48)));
        assert_eq!(line("0:49", "nfs4"), Some(makedev(0, 49)));
        assert_eq!(line("8:1", "ext4"), None);
        assert_eq!(far(""), None);
    }
}
