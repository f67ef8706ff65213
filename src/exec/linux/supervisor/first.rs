//! The sandbox's first process as it looks from outside: whether somebody has stopped it. What the command asks of it waits then, and
//! no signal reaches the command. Decides nothing.

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use std::fs::{File, read_to_string};
use std::os::unix::fs::FileExt;

/// So many processes stand between us and it at most: with bubblewrap, two.
const BETWEEN: usize = 4;

/// More than the beginning of `/proc/PID/stat` up to the state.
const BEGINNING: usize = 256;

pub struct First {
    pub pid: Pid,
    /// Opened while we may open files. What is read of it is of that process, and of no later one of its number.
    stat: File,
}

impl First {
    /// At or below a process of ours: the one that is the first of its namespace (`NSpid`, proc(5)). `None` where that cannot be
    /// seen.
    pub fn find(top: Pid) -> Option<First> {
        let mut pid = top;
        for _ in 0..BETWEEN {
            let status = read_to_string(format!("/proc/{pid}/status")).ok()?;
            let mut numbers = status.lines().find_map(|line| line.strip_prefix("NSpid:"))?.split_whitespace();
            if numbers.next_back() == Some("1") && numbers.next().is_some() {
                return Some(First { pid, stat: File::open(format!("/proc/{pid}/stat")).ok()? });
            }
            pid = child(pid)?;
        }
        None
    }

    /// The command, or what becomes it: the one process that it has made before that runs.
    pub fn command(&self) -> Option<Pid> {
        child(self.pid)
    }

    pub fn is_stopped(&self) -> bool {
        let mut text = [0; BEGINNING];
        // The name, in parentheses, may hold anything.
        let state = |text: &[u8]| {
            let end = text.iter().rposition(|byte| *byte == b')')?;
            text.get(end + 2).copied()
        };
        self.stat.read_at(&mut text, 0).ok().and_then(|length| state(&text[..length])) == Some(b'T')
    }

    /// Lets it go on.
    pub fn go_on(&self) {
        let _ = kill(self.pid, Signal::SIGCONT);
    }
}

/// The first child of a process's first thread (proc_pid_task_tid_children(5)).
fn child(pid: Pid) -> Option<Pid> {
    let children = read_to_string(format!("/proc/{pid}/task/{pid}/children")).ok()?;
    Some(Pid::from_raw(children.split_whitespace().next()?.parse().ok()?))
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn what_is_stopped_is_seen_to_be() {
        let mut child = std::process::Command::new("sleep").arg("60").spawn().unwrap();
        let pid = Pid::from_raw(child.id().try_into().unwrap());
        assert!(First::find(pid).is_none());
        let first = First { pid, stat: File::open(format!("/proc/{pid}/stat")).unwrap() };
        assert!(!first.is_stopped());
        kill(pid, Signal::SIGSTOP).unwrap();
        nix::sys::wait::waitpid(pid, Some(nix::sys::wait::WaitPidFlag::WUNTRACED)).unwrap();
        assert!(first.is_stopped());
        first.go_on();
        child.kill().unwrap();
        child.wait().unwrap();
        assert!(!first.is_stopped());
    }
}
