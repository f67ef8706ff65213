//! The native way in: one `clone3(2)` into new namespaces, whose child maps itself, mounts, and becomes pid 1.

use super::command::Command;
use super::control::{Control, Failure, Report};
use super::defence::Defence;
use super::supervisor::{self, Started};
use super::{Error, init, kernel, mounts, network};
use crate::backend::bubblewrap::{Network, Plan};
use nix::errno::Errno;
use nix::fcntl::{OFlag, open};
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use nix::sys::signal::Signal;
use nix::sys::stat::{Mode, umask};
use std::os::fd::AsFd;

/// What the sandbox has of its own.
pub const NAMESPACES: i32 = libc::CLONE_NEWUSER
    | libc::CLONE_NEWNS
    | libc::CLONE_NEWPID
    | libc::CLONE_NEWNET
    | libc::CLONE_NEWIPC
    | libc::CLONE_NEWUTS
    | libc::CLONE_NEWCGROUP;

/// Starts setting up; what fails inside is told over the control socket.
pub fn start(plan: &Plan, command: Command) -> Result<Started, Error> {
    let setup = |act: &str, errno: Errno| Error::Setup { act: act.into(), source: errno.into() };
    let (ours, theirs) = Control::pair().map_err(|errno| setup("make a control socket", errno))?;
    let ids = (nix::unistd::geteuid().as_raw(), nix::unistd::getegid().as_raw());
    let missing = [
        (Defence::ProcessNamespace, libc::CLONE_NEWPID),
        (Defence::NetworkNamespace, libc::CLONE_NEWNET),
        (Defence::IpcNamespace, libc::CLONE_NEWIPC),
    ];
    let missing = missing.iter().filter(|(defence, _)| !command.has(defence)).fold(0, |flags, (_, flag)| flags | flag);
    let cloned = kernel::clone(u64::from((NAMESPACES & !missing).cast_unsigned())).map_err(|errno| {
        let why = match errno {
            Errno::ENOSYS => "make namespaces (`clone3` is not there, or closed by an outer sandbox)",
            Errno::EINVAL => "make namespaces (this kernel lacks one of: user, mount, pid, net, ipc, uts, cgroup)",
            Errno::EPERM => "make namespaces without privilege (see `srt doctor`)",
            Errno::ENOSPC | Errno::EUSERS => "make another namespace (see `user.max_user_namespaces`)",
            _ => "make namespaces",
        };
        setup(why, errno)
    })?;
    match cloned {
        kernel::Cloned::Parent(pid, pidfd) => Ok(Started {
            pid,
            pidfd,
            control: ours,
            ending: Signal::SIGKILL,
            silence: "go on: the sandbox's first process is gone",
        }),
        kernel::Cloned::Child => {
            drop(ours);
            inside(plan, command, ids, &theirs)
        }
    }
}

/// pid 1. Never returns, and never unwinds into the copy of the parent's stack it stands on.
fn inside(plan: &Plan, command: Command, ids: (u32, u32), control: &Control) -> ! {
    let set_up = || {
        let failure = match prepare(plan, &command, ids, control) {
            Ok(listener) => {
                let Err(failure) = init::run(control, command, listener);
                failure
            }
            Err(failure) => failure,
        };
        let _ = control.report(&Report::Failed(failure));
    };
    let _ = std::panic::catch_unwind(std::panic::AssertUnwindSafe(set_up));
    kernel::exit(125)
}

fn prepare(
    plan: &Plan,
    command: &Command,
    (uid, gid): (u32, u32),
    control: &Control,
) -> Result<Option<std::os::fd::OwnedFd>, Failure> {
    nix::sys::prctl::set_pdeathsig(Signal::SIGKILL)
        .map_err(|errno| Failure::setup("tie the sandbox to its supervisor", errno))?;
    // Whoever died before that line has closed the other end.
    let mut gone = [PollFd::new(control.as_fd(), PollFlags::POLLHUP)];
    if poll(&mut gone, PollTimeout::ZERO).is_ok_and(|ready| ready > 0) {
        kernel::exit(125);
    }
    map_ids(uid, gid)?;
    umask(Mode::empty());
    raise_open_files()?;
    let listener =
        if command.has(&Defence::NetworkNamespace) { network::set_up(plan.network == Network::Proxy)? } else { None };
    mounts::enter(plan, command)?;
    Ok(listener)
}

/// The caller is who it was, inside as outside; nobody else is mapped (`user_namespaces(7)`).
pub fn map_ids(uid: u32, gid: u32) -> Result<(), Failure> {
    write("/proc/self/setgroups", "deny")?;
    write("/proc/self/uid_map", &format!("{uid} {uid} 1"))?;
    write("/proc/self/gid_map", &format!("{gid} {gid} 1"))
}

fn write(path: &str, text: &str) -> Result<(), Failure> {
    let failed = |errno| Failure::setup(format!("write `{path}` (see `srt doctor`)"), errno);
    let file = open(path, OFlag::O_WRONLY | OFlag::O_CLOEXEC, Mode::empty()).map_err(failed)?;
    nix::unistd::write(&file, text.as_bytes()).map_err(failed).map(drop)
}

/// Every source of the plan is open at the same time. The command gets the caller's limit back.
fn raise_open_files() -> Result<(), Failure> {
    supervisor::raise_open_files().map(drop).map_err(|errno| Failure::setup("raise the limit of open files", errno))
}
