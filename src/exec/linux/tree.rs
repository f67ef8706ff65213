//! What the processes of the sandbox use together, by a look at each: where no control group holds their limits.
//!
//! Where root runs it, pid 1 goes first, since the kernel lets root's processes become as many as they like.
//!
//! The kernel's own limits are of one process (`RLIMIT_DATA`, `RLIMIT_CPU`), or count this process's threads, and root's not at
//! all (`RLIMIT_NPROC`): they hold between two looks. What a look costs is two small reads of procfs a process.

use crate::backend::limits::Limits;
use crate::vocabulary::LimitKind;
use nix::dir::Dir;
use nix::fcntl::{OFlag, openat};
use nix::sys::stat::Mode;
use nix::unistd::{SysconfVar, sysconf};
use std::ffi::CString;
use std::os::fd::{AsFd, AsRawFd, OwnedFd, RawFd};

/// The most of a file of procfs that is read: what is of use stands at its beginning.
const LONGEST: usize = 4096;

/// What is looked at.
pub struct Tree {
    limits: Limits,
    /// The root of the sandbox's own procfs.
    proc: OwnedFd,
    page: u64,
    /// Clock ticks in a second.
    ticks: u64,
    /// Half of a limit is used.
    pub near: bool,
}

/// A limit that was passed, and what was found, in the unit of its kind.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Breach {
    pub limit: LimitKind,
    pub found: u64,
}

/// What the processes of the sandbox use together, pid 1 aside.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
struct Used {
    /// Bytes of their own: not of files, and not shared.
    memory: u64,
    /// Threads, as the kernel counts them.
    processes: u64,
    /// Clock ticks of the processor, those of children that were waited for included.
    cpu: u64,
}

impl Tree {
    /// In this procfs, of which it takes a copy of the descriptor; `None` where the machine does not say how it counts.
    pub fn new(limits: &Limits, proc: &OwnedFd) -> Option<Self> {
        let number = |variable| sysconf(variable).ok().flatten().and_then(|number| u64::try_from(number).ok());
        Some(Self {
            limits: limits.clone(),
            proc: proc.try_clone().ok()?,
            page: number(SysconfVar::PAGE_SIZE)?,
            ticks: number(SysconfVar::CLK_TCK).filter(|ticks| *ticks > 0)?,
            near: true,
        })
    }

    /// What must stay open.
    pub fn descriptor(&self) -> RawFd {
        self.proc.as_raw_fd()
    }

    /// The first limit that is passed.
    pub fn look(&mut self) -> Option<Breach> {
        let used = self.used();
        let limits = [
            (LimitKind::Processes, self.limits.processes, used.processes),
            (LimitKind::Memory, self.limits.memory, used.memory),
            (LimitKind::Cpu, self.limits.cpu.map(|seconds| seconds.saturating_mul(self.ticks)), used.cpu),
        ];
        let some = limits.into_iter().filter_map(|(limit, most, found)| Some((limit, most?, found)));
        self.near = some.clone().any(|(_, most, found)| found >= most / 2);
        let (limit, _, found) = some.clone().find(|(_, most, found)| found > most)?;
        let unit = if limit == LimitKind::Cpu { self.ticks } else { 1 };
        Some(Breach { limit, found: found / unit })
    }

    fn used(&self) -> Used {
        let flags = OFlag::O_RDONLY | OFlag::O_DIRECTORY | OFlag::O_CLOEXEC;
        let mut used = Used::default();
        let Ok(mut processes) = Dir::openat(self.proc.as_fd(), c".", flags, Mode::empty()) else { return used };
        let numbers = processes.iter().filter_map(|entry| {
            let entry = entry.ok()?;
            std::str::from_utf8(entry.file_name().to_bytes()).ok()?.parse::<u32>().ok()
        });
        let numbers: Vec<u32> = numbers.collect();
        // Where there are too many, to look at each would give them time to become more.
        let count = numbers.iter().filter(|number| **number != 1).count() as u64;
        if self.limits.processes.is_some_and(|most| count > most) {
            used.processes = count;
            return used;
        }
        for number in numbers {
            let one = self.read(number, "stat").and_then(|stat| of_stat(&stat));
            // Who has gone meanwhile uses nothing.
            let Some(one) = one else { continue };
            if number == 1 {
                // Ours, but for what it waited for.
                used.cpu += one.children;
                continue;
            }
            used.processes += one.threads;
            used.cpu += one.own + one.children;
            used.memory += self.memory(number);
        }
        used
    }

    /// What a process has for itself. Pages that it shares with its parent since a fork count for both in `statm`; where that
    /// is much, the kernel is asked for its share of each, which takes longer.
    fn memory(&self, number: u32) -> u64 {
        let Some(most) = self.limits.memory else { return 0 };
        let plain = self.read(number, "statm").and_then(|statm| of_statm(&statm)).unwrap_or_default();
        let plain = plain.saturating_mul(self.page);
        if plain < most / 8 {
            return plain;
        }
        self.read(number, "smaps_rollup").and_then(|rollup| of_rollup(&rollup)).unwrap_or(plain)
    }

    fn read(&self, process: u32, name: &str) -> Option<String> {
        let path = CString::new(format!("{process}/{name}")).ok()?;
        let file =
            openat(self.proc.as_fd(), path.as_c_str(), OFlag::O_RDONLY | OFlag::O_CLOEXEC, Mode::empty()).ok()?;
        let mut bytes = [0; LONGEST];
        let length = nix::unistd::read(&file, &mut bytes).ok()?;
        Some(String::from_utf8_lossy(bytes.get(..length)?).into_owned())
    }
}

/// Of `/proc/PID/stat` (proc_pid_stat(5)).
struct Stat {
    /// utime and stime
    own: u64,
    /// cutime and cstime
    children: u64,
    threads: u64,
}

fn of_stat(text: &str) -> Option<Stat> {
    // The second field is a name, in parentheses, that may hold anything.
    let mut fields = text.get(text.rfind(')')? + 1..)?.split_ascii_whitespace();
    // The third field is the first of these.
    let mut at = |skip: usize| fields.nth(skip)?.parse::<u64>().ok();
    let (user, system) = (at(11)?, at(0)?);
    let (of_children, system_of_children) = (at(0)?, at(0)?);
    let threads = at(2)?;
    Some(Stat { own: user + system, children: of_children + system_of_children, threads })
}

/// Pages that are resident and of no file (proc_pid_statm(5)).
fn of_statm(text: &str) -> Option<u64> {
    let mut fields = text.split_ascii_whitespace().skip(1);
    let (resident, shared) = (fields.next()?.parse::<u64>().ok()?, fields.next()?.parse::<u64>().ok()?);
    Some(resident.saturating_sub(shared))
}

/// Bytes of pages of no file, each divided by how many processes have it (proc_pid_smaps(5)).
fn of_rollup(text: &str) -> Option<u64> {
    let line = text.lines().find_map(|line| line.strip_prefix("Pss_Anon:"))?;
    line.split_ascii_whitespace().next()?.parse::<u64>().ok()?.checked_mul(1024)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn what_procfs_says_of_a_process() {
        let stat =
            "7 (a) 1 2) S 1 7 7 0 -1 4194560 100 200 0 0 11 22 33 44 20 0 5 0 12345 1000 200 18446744073709551615";
        let stat = of_stat(stat).unwrap();
        assert_eq!((stat.own, stat.children, stat.threads), (33, 77, 5));
        assert_eq!(of_statm("1000 300 120 1 0 90 0"), Some(180));
        assert_eq!(of_rollup("x\nPss:  9 kB\nPss_Anon:       12 kB\n"), Some(12 << 10));
        for wrong in ["", "7 (a", "7 (a) S 1", "x"] {
            assert!(of_stat(wrong).is_none() && of_rollup(wrong).is_none(), "{wrong}");
        }
    }

    #[test]
    fn this_very_machine_is_read() {
        let proc: OwnedFd = std::fs::File::open("/proc").unwrap().into();
        let limits = Limits { memory: Some(u64::MAX), processes: Some(u64::MAX), ..Limits::default() };
        let mut watch = Tree::new(&limits, &proc).unwrap();
        let used = watch.used();
        assert!(used.processes > 0 && used.memory > 1 << 20 && used.cpu > 0, "{used:?}");
        assert_eq!(watch.look(), None);
        let few = Limits { processes: Some(0), ..Limits::default() };
        let breach = Tree::new(&few, &proc).unwrap().look().unwrap();
        assert_eq!(breach.limit, LimitKind::Processes);
    }
}
