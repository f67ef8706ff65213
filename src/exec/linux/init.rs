//! pid 1 of the sandbox: starts the command, passes signals on, reaps, and takes everything down with the supervisor.
//!
//! It holds its control socket, and what it takes to serve the command's notified system calls; it never runs another program.

use super::broker::{self, Broker};
use super::capture::Doors;
use super::cgroup::Files;
use super::command::{self, Command};
use super::control::{Control, Failure, Report, Word};
use super::defence::Defence;
use super::end::end;
use super::kernel::{self, Change};
use super::lookout::Lookout;
use super::{network, supervisor};
use crate::backend::bubblewrap::seccomp::Watch;
use crate::backend::limits::Limits;
use nix::errno::Errno;
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use nix::sys::signal::{SigSet, SigmaskHow, Signal, sigprocmask};
use nix::sys::signalfd::{SfdFlags, SignalFd};
use nix::unistd::Pid;
use std::os::fd::{AsFd, AsRawFd, OwnedFd};
use std::sync::Arc;

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

/// In the finished tree: tells that it stands, starts the command, and stays until it ends. `proc` is the root of a procfs.
pub fn run(
    control: &Control,
    command: Command,
    doors: Option<Doors>,
    proc: Option<OwnedFd>,
) -> Result<std::convert::Infallible, Failure> {
    settle(&command.missing)?;
    let procfs = proc.as_ref().and_then(|proc| proc.try_clone().ok());
    let proc = proc.filter(|_| broker::may_look().is_ok());
    // What is served takes descriptors of ours; the command gets the caller's limit back.
    supervisor::raise_open_files().map_err(|errno| Failure::setup("raise the limit of open files", errno))?;
    let is_apart = doors.is_none();
    let (ours, theirs) = Control::pair().map_err(|errno| Failure::setup("make a control socket", errno))?;
    let Some(child) = kernel::fork().map_err(|errno| Failure::setup("fork", errno))? else {
        drop(ours);
        command::start(&command, control, &theirs)
    };
    drop(theirs);
    // Only now, since who hears it may let this process go before others, and the command with it if it were made later.
    ready(control, doors)?;
    let lookout = lookout(control, child, &command.limits, procfs.as_ref())?;
    ours.give_turn(proc.is_some()).map_err(|errno| Failure::setup("start the command", errno))?;
    let broker = hear(control, &ours, proc, &command.missing, command.syscalls.performed, is_apart)?;
    drop((ours, command));
    attend(control, child, broker.as_ref(), lookout)
}

/// Once the sandbox stands, and before the command is begun: who watches the limits of all its processes, `None` where there are none.
/// Waits until the supervisor has put the command, which is this child, into the group that holds them, or has found none.
pub fn lookout(
    control: &Control,
    child: Pid,
    limits: &Limits,
    proc: Option<&OwnedFd>,
) -> Result<Option<Lookout>, Failure> {
    if !limits.of_tree() {
        return Ok(None);
    }
    let mut group = None;
    while group.is_none() {
        let mut ready = [PollFd::new(control.as_fd(), PollFlags::POLLIN)];
        match poll(&mut ready, PollTimeout::NONE) {
            Ok(_) | Err(Errno::EINTR) => group = heed(control, child, None),
            Err(_) => end(125),
        }
    }
    Lookout::new(limits, group.flatten(), proc).map(Some)
}

/// Who serves what the command's filter notifies of, in a network that leads nowhere or that the supervisor serves; waits until it is
/// in force. The command has ended where it is not.
pub fn hear(
    control: &Control,
    command: &Control,
    proc: Option<OwnedFd>,
    missing: &[Defence],
    performed: Watch,
    is_apart: bool,
) -> Result<Option<Arc<Broker>>, Failure> {
    let failed = |errno| Failure::setup("listen to the system call filter", errno);
    match (command.take_listener(), proc) {
        (Ok(listener), Some(proc)) => {
            let control = control.try_clone().map_err(failed)?;
            Ok(Some(Broker::new(listener, proc, control, performed, is_apart, missing)))
        }
        (Ok(_), None) => Err(failed(Errno::ENOTSUP)),
        (Err(why), _) => {
            if let Some(errno) = why {
                control.report(&Report::Unheard(errno as i32)).map_err(failed)?;
            }
            Ok(None)
        }
    }
}

/// Stays until the command, which is this child, ends, or a limit is passed.
pub fn attend(
    control: &Control,
    child: Pid,
    broker: Option<&Arc<Broker>>,
    mut lookout: Option<Lookout>,
) -> Result<std::convert::Infallible, Failure> {
    let mut held = vec![control.as_raw_fd()];
    held.extend(lookout.iter().flat_map(Lookout::descriptors));
    held.extend(broker.iter().flat_map(|broker| broker.descriptors()));
    kernel::close_all_but(&held).map_err(|errno| Failure::setup("close descriptors", errno))?;
    let kept = if broker.is_some() { broker::CAPABILITIES } else { 0 };
    kernel::keep_capabilities(kept).map_err(|errno| Failure::setup("drop capabilities", errno))?;
    // Until its first call.
    let mut idle = broker;
    let mut mask = SigSet::empty();
    mask.add(Signal::SIGCHLD);
    let children = SignalFd::with_flags(&mask, SfdFlags::SFD_CLOEXEC | SfdFlags::SFD_NONBLOCK)
        .map_err(|errno| Failure::setup("watch for children", errno))?;
    loop {
        let mut ready =
            vec![PollFd::new(control.as_fd(), PollFlags::POLLIN), PollFd::new(children.as_fd(), PollFlags::POLLIN)];
        ready.extend(idle.as_ref().map(|broker| PollFd::new(broker.listener(), PollFlags::POLLIN)));
        match poll(&mut ready, lookout.as_ref().map_or(PollTimeout::NONE, Lookout::pause)) {
            Ok(_) | Err(Errno::EINTR) => (),
            Err(_) => end(125),
        }
        let called = ready.get(2).and_then(PollFd::revents).unwrap_or(PollFlags::empty());
        if !called.is_empty()
            && let Some(broker) = idle.take()
            && called.contains(PollFlags::POLLIN)
        {
            broker.start()?;
        }
        heed(control, child, broker.map(AsRef::as_ref));
        // The end of pid 1 is the end of every process in the sandbox.
        let seen = look(control, lookout.as_mut());
        while let Ok(Some(_)) = children.read_signal() {}
        reap(control, child, broker.map(AsRef::as_ref), lookout.as_mut());
        // Somebody has removed the group; the command had not ended first.
        if seen.is_err() {
            end(125);
        }
    }
}

/// Ends everything where a limit is passed.
fn look(control: &Control, lookout: Option<&mut Lookout>) -> Result<(), Errno> {
    if let Some(breach) = lookout.map_or(Ok(None), Lookout::look)? {
        kernel::exit(if control.report(&Report::Passed(breach)).is_ok() { 0 } else { 125 });
    }
    Ok(())
}

/// What the supervisor says; what it says of limits, if it does. The end of pid 1 is the end of every process in the sandbox.
#[allow(clippy::option_option)]
fn heed(control: &Control, child: Pid, broker: Option<&Broker>) -> Option<Option<Files>> {
    let mut held = None;
    loop {
        match control.word() {
            Ok(Some(Word::Held(files))) => held = Some(files),
            Ok(Some(Word::Answer(number, allowed))) => {
                if let Some(broker) = broker {
                    broker.answered(number, allowed);
                }
            }
            Ok(Some(Word::Rules(file))) => {
                if let Some(broker) = broker {
                    broker.take_rules(file);
                }
            }
            Ok(Some(Word::Socket { v6 })) => {
                let socket = network::connection(v6).map_err(|errno| errno as i32);
                if control.report(&Report::Socket(socket)).is_err() {
                    end(125);
                }
            }
            Ok(Some(Word::Signal(signal))) => {
                if let Ok(signal) = Signal::try_from(signal) {
                    let _ = nix::sys::signal::kill(child, signal);
                }
            }
            Err(Errno::EAGAIN) => return held,
            Err(Errno::EINTR) => (),
            Ok(None) | Err(_) => end(125),
        }
    }
}

fn reap(control: &Control, child: Pid, broker: Option<&Broker>, mut lookout: Option<&mut Lookout>) {
    loop {
        let change = match kernel::changed_child() {
            Ok(None) | Err(Errno::ECHILD) => return,
            Ok(Some((pid, change))) if pid == child => change,
            Ok(Some(_)) | Err(Errno::EINTR) => continue,
            Err(_) => end(125),
        };
        let (report, ended) = match change {
            Change::Exited(code) => (Report::Exited(code), true),
            Change::Signaled(signal) => (Report::Signaled(signal), true),
            Change::Stopped(signal) => (Report::Stopped(signal), false),
        };
        if ended {
            // It may have ended of what it was refused since the last look. Where nothing can be read any more, it has ended all the same.
            let _ = look(control, lookout.as_deref_mut());
        }
        let sent = control.report(&report).is_ok();
        if ended {
            if let Some(broker) = broker {
                broker.finish();
            }
            end(if sent { 0 } else { 125 });
        }
    }
}
