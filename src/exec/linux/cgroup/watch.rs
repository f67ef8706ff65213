//! What the kernel tells of a group: that it refused something for a limit, and how much of the processor's time was used. Read by pid 1.

use crate::backend::limits::Limits;
use crate::exec::linux::tree::Breach;
use crate::vocabulary::LimitKind;
use nix::errno::Errno;
use nix::fcntl::{OFlag, open};
use nix::sys::stat::Mode;
use nix::sys::uio::pread;
use std::io;
use std::os::fd::{AsRawFd, OwnedFd, RawFd};
use std::path::Path;

/// The most of a file that is read: each has fewer lines.
const LONGEST: usize = 4096;

/// In a second, of `cpu.stat`.
const MICROSECONDS: u64 = 1_000_000;

/// Open files of a group, each there where its limit is.
#[derive(Debug, Default)]
pub struct Files {
    /// `memory.events`
    pub memory: Option<OwnedFd>,
    /// `pids.events`
    pub processes: Option<OwnedFd>,
    /// `cpu.stat`
    pub cpu: Option<OwnedFd>,
}

impl Files {
    pub fn open(group: &Path, limits: &Limits) -> io::Result<Files> {
        let file = |limit: Option<u64>, name: &str| {
            limit.map(|_| open(&group.join(name), OFlag::O_RDONLY | OFlag::O_CLOEXEC, Mode::empty())).transpose()
        };
        Ok(Files {
            memory: file(limits.memory, "memory.events")?,
            processes: file(limits.processes, "pids.events")?,
            cpu: file(limits.cpu, "cpu.stat")?,
        })
    }

    pub fn descriptors(&self) -> impl Iterator<Item = RawFd> {
        [&self.memory, &self.processes, &self.cpu].into_iter().flatten().map(AsRawFd::as_raw_fd)
    }
}

/// Files and the limits that they are about.
pub struct Watch {
    pub files: Files,
    pub limits: Limits,
    pub near: bool,
}

impl Watch {
    /// The first limit that was passed.
    ///
    /// # Errors
    /// Whatever reading fails with: then nothing is held that we know of.
    pub fn look(&mut self) -> Result<Option<Breach>, Errno> {
        // `max` in pids.events counts the forks that were refused; until Linux 6.11 for a limit above this group as well.
        let refused = number(self.files.processes.as_ref(), "max")?;
        // `oom` in memory.events counts that this group's own limit left no memory; `oom_kill` would count the host's lack as well.
        let short = number(self.files.memory.as_ref(), "oom")?;
        let used = number(self.files.cpu.as_ref(), "usage_usec")?;
        let used = used.zip(self.limits.cpu.map(|seconds| seconds.saturating_mul(MICROSECONDS)));
        self.near = used.is_some_and(|(used, most)| used >= most / 2);
        let held =
            [(LimitKind::Processes, refused, self.limits.processes), (LimitKind::Memory, short, self.limits.memory)];
        // There is no more than the kernel gives.
        let held = held.into_iter().find(|(_, count, _)| count.is_some_and(|count| count > 0));
        let held = held.and_then(|(limit, _, most)| Some(Breach { limit, found: most? }));
        let passed = used.filter(|(used, most)| used > most);
        Ok(held.or_else(|| passed.map(|(used, _)| Breach { limit: LimitKind::Cpu, found: used / MICROSECONDS })))
    }
}

/// The number that stands after a word, `None` where there is no file.
fn number(file: Option<&OwnedFd>, word: &str) -> Result<Option<u64>, Errno> {
    let Some(file) = file else { return Ok(None) };
    let mut bytes = [0; LONGEST];
    let length = pread(file, &mut bytes, 0)?;
    let text = String::from_utf8_lossy(bytes.get(..length).unwrap_or_default());
    of_lines(&text, word).map(Some).ok_or(Errno::EBADMSG)
}

fn of_lines(text: &str, word: &str) -> Option<u64> {
    text.lines().find_map(|line| line.split_once(' ').filter(|(name, _)| *name == word)?.1.trim().parse().ok())
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use std::fs;

    #[test]
    fn what_the_kernel_counts_is_a_breach() {
        let group = tempfile::tempdir().unwrap();
        let tell = |memory: &str, processes: &str, cpu: &str| {
            for (name, text) in [("memory.events", memory), ("pids.events", processes), ("cpu.stat", cpu)] {
                fs::write(group.path().join(name), text).unwrap();
            }
        };
        let calm = "low 0\nhigh 0\nmax 3\noom 0\noom_kill 0\noom_group_kill 0\n";
        let limits = Limits { memory: Some(1 << 30), processes: Some(20), cpu: Some(2), ..Limits::default() };
        tell(calm, "max 0\n", "usage_usec 900000\nuser_usec 9000000\n");
        let files = Files::open(group.path(), &limits).unwrap();
        let mut watch = Watch { files, limits, near: true };
        assert_eq!((watch.look(), watch.near), (Ok(None), false));
        tell(calm, "max 0\n", "usage_usec 2000000\nuser_usec 0\n");
        assert_eq!((watch.look(), watch.near), (Ok(None), true));
        tell(calm, "max 0\n", "usage_usec 2000001\n");
        assert_eq!(watch.look(), Ok(Some(Breach { limit: LimitKind::Cpu, found: 2 })));
        // The host has no memory left, and the kernel has ended one of ours for it.
        tell("max 0\noom 0\noom_kill 1\n", "max 0\n", "usage_usec 0\n");
        assert_eq!(watch.look(), Ok(None));
        tell("max 9\noom 1\noom_kill 1\n", "max 0\n", "usage_usec 0\n");
        assert_eq!(watch.look(), Ok(Some(Breach { limit: LimitKind::Memory, found: 1 << 30 })));
        tell(calm, "max 7\n", "usage_usec 0\n");
        assert_eq!(watch.look(), Ok(Some(Breach { limit: LimitKind::Processes, found: 20 })));
        for wrong in ["", "max\n", "max x\n", "max -1\n", "maximum 0\n"] {
            tell(calm, wrong, "usage_usec 0\n");
            assert_eq!(watch.look(), Err(Errno::EBADMSG), "{wrong}");
        }
    }

    #[test]
    fn what_has_no_limit_is_not_opened() {
        let group = tempfile::tempdir().unwrap();
        assert_eq!(Files::open(group.path(), &Limits::default()).unwrap().descriptors().count(), 0);
        let limits = Limits { cpu: Some(1), ..Limits::default() };
        assert!(Files::open(group.path(), &limits).is_err());
    }
}
