//! pid 1 of the sandbox: starts the command, passes signals on, reaps, and takes everything down with the supervisor.
//!
//! It holds nothing but its control socket, and never runs another program.

use super::capture::Doors;
use super::command::{self, Command};
use super::control::{Control, Failure, Report, Request};
use super::defence::Defence;
use super::kernel::{self, Change};
use super::network;
use nix::errno::Errno;
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use nix::sys::signal::{SigSet, SigmaskHow, Signal, sigprocmask};
use nix::sys::signalfd::{SfdFlags, SignalFd};
use nix::unistd::Pid;
use std::os::fd::{AsFd, AsRawFd};

/// What pid 1 is before it has a child; a child is all of that too.
pub fn settle(missing: &[Defence]) -> Result<(), Failure> {
    sigprocmask(SigmaskHow::SIG_SETMASK, Some(&SigSet::all()), None)
        .map_err(|errno| Failure::setup("block signals", errno))?;
    // A caller that ignores it would have the kernel reap the command, and nobody be told of its end.
    kernel::default_action(Signal::SIGCHLD).map_err(|errno| Failure::setup("reset signals", errno))?;
    // The command may share our user id: it must not look into this process, which began as a copy of the supervisor.
    if !missing.contains(&Defence::ClosedPid1) {
        nix::sys::prctl::set_dumpable(false).map_err(|errno| Failure::setup("protect pid 1", errno))?;
    }
    if !missing.contains(&Defence::NoPrivileges) {
        kernel::drop_bounding_set().map_err(|errno| Failure::setup("drop capabilities", errno))?;
    }
    Ok(())
}

/// Tells that the sandbox stands.
pub fn ready(control: &Control, doors: Option<Doors>) -> Result<(), Failure> {
    let (sockets, missing) = doors.map(|doors| (doors.sockets, doors.missing)).unwrap_or_default();
    control.report(&Report::Ready(sockets, missing)).map_err(|errno| Failure::setup("speak to the supervisor", errno))
}

/// In the finished tree: tells that it stands, starts the command, and stays until it ends.
pub fn run(control: &Control, command: Command, doors: Option<Doors>) -> Result<std::convert::Infallible, Failure> {
    settle(&command.missing)?;
    ready(control, doors)?;
    let Some(child) = kernel::fork().map_err(|errno| Failure::setup("fork", errno))? else {
        command::start(&command, control)
    };
    drop(command);
    attend(control, child)
}

/// Stays until the command, which is this child, ends.
pub fn attend(control: &Control, child: Pid) -> Result<std::convert::Infallible, Failure> {
    kernel::close_all_but(&[control.as_raw_fd()]).map_err(|errno| Failure::setup("close descriptors", errno))?;
    kernel::drop_capabilities().map_err(|errno| Failure::setup("drop capabilities", errno))?;
    let mut mask = SigSet::empty();
    mask.add(Signal::SIGCHLD);
    let children = SignalFd::with_flags(&mask, SfdFlags::SFD_CLOEXEC | SfdFlags::SFD_NONBLOCK)
        .map_err(|errno| Failure::setup("watch for children", errno))?;
    loop {
        let mut ready =
            [PollFd::new(control.as_fd(), PollFlags::POLLIN), PollFd::new(children.as_fd(), PollFlags::POLLIN)];
        match poll(&mut ready, PollTimeout::NONE) {
            Ok(_) | Err(Errno::EINTR) => (),
            Err(_) => kernel::exit(125),
        }
        forward(control, child);
        while let Ok(Some(_)) = children.read_signal() {}
        reap(control, child);
    }
}

/// Does what the supervisor asks for. The end of pid 1 is the end of every process in the sandbox.
fn forward(control: &Control, child: Pid) {
    loop {
        match control.asked() {
            Ok(Some(Request::Socket { v6 })) => {
                let socket = network::connection(v6).map_err(|errno| errno as i32);
                if control.report(&Report::Socket(socket)).is_err() {
                    kernel::exit(125);
                }
            }
            Ok(Some(Request::Signal(signal))) => {
                if let Ok(signal) = Signal::try_from(signal) {
                    let _ = nix::sys::signal::kill(child, signal);
                }
            }
            Err(Errno::EAGAIN) => return,
            Err(Errno::EINTR) => (),
            Ok(None) | Err(_) => kernel::exit(125),
        }
    }
}

fn reap(control: &Control, child: Pid) {
    loop {
        let change = match kernel::changed_child() {
            Ok(None) | Err(Errno::ECHILD) => return,
            Ok(Some((pid, change))) if pid == child => change,
            Ok(Some(_)) | Err(Errno::EINTR) => continue,
            Err(_) => kernel::exit(125),
        };
        let (report, ended) = match change {
            Change::Exited(code) => (Report::Exited(code), true),
            Change::Signaled(signal) => (Report::Signaled(signal), true),
            Change::Stopped(signal) => (Report::Stopped(signal), false),
        };
        let sent = control.report(&report).is_ok();
        if ended {
            kernel::exit(if sent { 0 } else { 125 });
        }
    }
}
