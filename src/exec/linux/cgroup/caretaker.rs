//! Removes a run's group when the run is over: a process of its own, since whoever is killed can remove nothing.
//!
//! It is a copy of the supervisor that holds one end of a pipe and nothing else, and is in no process group but its own. Where it is killed
//! as well, empty groups stay; under systemd until their unit ends.

use super::place::processes;
use super::put;
use crate::exec::linux::kernel;
use nix::errno::Errno;
use nix::fcntl::OFlag;
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use nix::sys::signal::{SigSet, SigmaskHow, Signal, kill, sigprocmask};
use nix::unistd::Pid;
use std::fs;
use std::io;
use std::os::fd::{AsFd, AsRawFd, OwnedFd};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

/// The kernel lets nobody go who waits for a file system that does not answer.
const PATIENCE: Duration = Duration::from_secs(60);

/// How long the end of a run waits for it, in milliseconds: it takes one.
const WAIT: u16 = 2000;

/// What it is to remove.
pub struct Charge {
    pub leaf: PathBuf,
    pub parent: PathBuf,
    /// Where whoever was in `parent` went, and goes back from.
    pub aside: Option<PathBuf>,
    /// Which `parent` gives its children.
    pub controllers: Vec<&'static str>,
}

/// Dropped, it does its work, and is gone.
pub struct Caretaker {
    pid: Pid,
    pidfd: OwnedFd,
    /// The end of which it waits for.
    alive: Option<OwnedFd>,
}

impl Caretaker {
    /// Call it before any thread exists.
    pub fn start(charge: &Charge) -> Result<Caretaker, Errno> {
        let (ended, alive) = nix::unistd::pipe2(OFlag::O_CLOEXEC)?;
        match kernel::clone(0)? {
            kernel::Cloned::Parent(pid, pidfd) => Ok(Caretaker { pid, pidfd, alive: Some(alive) }),
            kernel::Cloned::Child => {
                let work = || {
                    wait(&ended);
                    charge.remove();
                };
                let done = std::panic::catch_unwind(std::panic::AssertUnwindSafe(work));
                kernel::exit(i32::from(done.is_err()))
            }
        }
    }
}

impl Drop for Caretaker {
    fn drop(&mut self) {
        drop(self.alive.take());
        let mut ended = [PollFd::new(self.pidfd.as_fd(), PollFlags::POLLIN)];
        // Else it goes on without us.
        if poll(&mut ended, PollTimeout::from(WAIT)).is_ok_and(|ready| ready > 0) {
            let _ = nix::sys::wait::waitpid(self.pid, None);
        }
    }
}

/// Until nobody holds the other end.
fn wait(ended: &OwnedFd) {
    // No terminal's signal, and no signal to the whole process group, is meant for it.
    let _ = nix::unistd::setsid();
    let _ = sigprocmask(SigmaskHow::SIG_SETMASK, Some(&SigSet::all()), None);
    // The end that it waits for is open here too; and whoever reads what the command writes does not wait for this process.
    let _ = kernel::close_all_but(&[ended.as_raw_fd()]);
    let _ = nix::unistd::chdir("/");
    let mut ready = [PollFd::new(ended.as_fd(), PollFlags::empty())];
    while poll(&mut ready, PollTimeout::NONE) == Err(Errno::EINTR) {}
}

impl Charge {
    fn remove(&self) {
        // Linux 5.14.
        if put(&self.leaf.join("cgroup.kill"), "1").is_err() {
            for process in processes(&self.leaf).unwrap_or_default().into_iter().filter(|process| *process > 0) {
                let _ = kill(Pid::from_raw(process), Signal::SIGKILL);
            }
        }
        if !remove(&self.leaf) {
            return;
        }
        if let Some(aside) = &self.aside {
            self.go_back(aside);
        }
    }

    /// As it was before. Who has made a group there meanwhile keeps the controllers.
    fn go_back(&self, aside: &Path) {
        let groups = fs::read_dir(&self.parent).into_iter().flatten().filter_map(Result::ok);
        if groups.filter(|entry| entry.file_type().is_ok_and(|kind| kind.is_dir())).any(|entry| entry.path() != aside) {
            return;
        }
        for controller in &self.controllers {
            let _ = put(&self.parent.join("cgroup.subtree_control"), &format!("-{controller}"));
        }
        for process in processes(aside).unwrap_or_default() {
            let _ = put(&self.parent.join("cgroup.procs"), &process.to_string());
        }
        remove(aside);
    }
}

/// Once whoever was ended in it is gone.
fn remove(group: &Path) -> bool {
    let begin = Instant::now();
    let mut pause = Duration::from_millis(1);
    loop {
        match fs::remove_dir(group) {
            Ok(()) => return true,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return true,
            Err(_) if begin.elapsed() > PATIENCE => return false,
            Err(_) => std::thread::sleep(pause),
        }
        pause = (pause * 2).min(Duration::from_millis(100));
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    /// It is not started here: a copy of a process with threads may wait for one that it does not have.
    #[test]
    fn what_it_has_charge_of_is_removed() {
        let folder = tempfile::tempdir().unwrap();
        let at = |name: &str| folder.path().join(name);
        let remove = |aside: Option<&str>| {
            let charge = Charge {
                leaf: at("leaf"),
                parent: folder.path().into(),
                aside: aside.map(at),
                controllers: vec!["memory"],
            };
            charge.remove();
        };
        for group in ["leaf", "self", "another"] {
            fs::create_dir(at(group)).unwrap();
        }
        fs::write(at("cgroup.subtree_control"), "memory").unwrap();
        remove(Some("self"));
        let control = || fs::read_to_string(at("cgroup.subtree_control")).unwrap();
        assert!(!at("leaf").exists() && at("self").exists(), "another run needs its controllers");
        assert_eq!(control(), "memory");
        fs::remove_dir(at("another")).unwrap();
        remove(Some("self"));
        assert!(!at("self").exists());
        assert!(control().starts_with("-memory"));
        remove(None);
    }
}
