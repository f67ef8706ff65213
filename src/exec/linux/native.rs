//! The native way in: `clone3(2)` into new namespaces, whose child maps itself, mounts, and becomes pid 1.
//!
//! pid 1 is made before there is a plan, so that the kernel makes namespaces and mounts while the policy is compiled. What
//! differs from run to run is handed over afterwards: nothing that this process knew when it was copied is used there, but
//! who it is, and what a test takes out.

use super::beside::{self, Bell};
use super::capture::Doors;
use super::command::{self, Command};
use super::control::{Control, Failure, Report};
use super::defence::Defence;
use super::mounts::{self, Stage};
use super::supervisor::{self, Started};
use super::{Error, broker, capture, heap, init, kernel, network, wire};
use crate::backend::bubblewrap::{Network, Plan};
use nix::errno::Errno;
use nix::fcntl::{OFlag, open};
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use nix::sys::signal::Signal;
use nix::sys::stat::{Mode, umask};
use std::convert::Infallible;
use std::os::fd::{AsFd, AsRawFd, RawFd};

/// What the sandbox has of its own.
pub const NAMESPACES: i32 = FIRST | LATER;

/// Those that a process can only be born into.
const FIRST: i32 = libc::CLONE_NEWUSER | libc::CLONE_NEWPID;

/// Those that it moves to by itself, while its parent goes on: to make them takes a while.
const LATER: i32 =
    libc::CLONE_NEWNS | libc::CLONE_NEWNET | libc::CLONE_NEWIPC | libc::CLONE_NEWUTS | libc::CLONE_NEWCGROUP;

/// A sandbox without a plan: its first process, which waits for one, in namespaces of its own. Dropped, it is gone.
pub struct Prepared {
    /// That it could not be made is told when it is used, if it is: what is wrong with a policy is told first.
    started: Option<Result<Started, Error>>,
}

impl Prepared {
    /// Makes one, whose command may keep these descriptors. Call it before any thread exists.
    pub fn new(keep: &[RawFd], missing: &[Defence]) -> Prepared {
        Prepared { started: Some(begin(keep, missing)) }
    }
}

impl Drop for Prepared {
    fn drop(&mut self) {
        if let Some(Ok(started)) = &self.started {
            let _ = kernel::send_signal(started.pidfd.as_fd(), Signal::SIGKILL as i32);
            let _ = nix::sys::wait::waitpid(started.pid, None);
        }
    }
}

fn begin(keep: &[RawFd], missing: &[Defence]) -> Result<Started, Error> {
    let (ours, theirs) =
        Control::pair().map_err(|errno| Error::Setup { act: "make a control socket".into(), source: errno.into() })?;
    let ids = (nix::unistd::geteuid().as_raw(), nix::unistd::getegid().as_raw());
    let flags = u64::from(without(FIRST, missing).cast_unsigned());
    let here = beside::here();
    match kernel::clone(flags) {
        Ok(kernel::Cloned::Parent(pid, pidfd)) => {
            beside::give_way();
            heap::grow();
            Ok(Started {
                pid,
                pidfd,
                control: ours,
                ending: Signal::SIGKILL,
                silence: "go on: the sandbox's first process is gone",
            })
        }
        Ok(kernel::Cloned::Child) => {
            drop(ours);
            first(&theirs, ids, here, keep, missing)
        }
        Err(errno) => Err(Error::Setup { act: cannot_make_namespaces(errno).into(), source: errno.into() }),
    }
}

/// Hands the plan and the command over; what fails inside, or has failed by now, is told over the control socket.
pub fn start(mut prepared: Prepared, plan: &Plan, command: &Command) -> Result<Started, Error> {
    let failed = |source| Error::Setup { act: "hand the plan over".into(), source };
    if let Some(Ok(started)) = &prepared.started {
        for text in [wire::write(command).map_err(failed)?, wire::write(plan).map_err(failed)?] {
            match started.control.hand_over(&text) {
                // It has ended, and said why.
                Ok(()) | Err(Errno::EPIPE | Errno::ECONNRESET) => (),
                Err(errno) => return Err(failed(errno.into())),
            }
        }
    }
    prepared.started.take().unwrap_or_else(|| Err(failed(std::io::ErrorKind::NotFound.into())))
}

/// These namespaces, less what a test takes out.
fn without(flags: i32, missing: &[Defence]) -> i32 {
    let of = [
        (Defence::ProcessNamespace, libc::CLONE_NEWPID),
        (Defence::NetworkNamespace, libc::CLONE_NEWNET),
        (Defence::IpcNamespace, libc::CLONE_NEWIPC),
    ];
    let missing = of.iter().filter(|(defence, _)| missing.contains(defence)).fold(0, |flags, (_, flag)| flags | flag);
    flags & !missing
}

fn cannot_make_namespaces(errno: Errno) -> &'static str {
    match errno {
        Errno::ENOSYS => "make namespaces (`clone3` is not there, or closed by an outer sandbox)",
        Errno::EINVAL => "make namespaces (this kernel lacks one of: user, mount, pid, net, ipc, uts, cgroup)",
        Errno::EPERM => "make namespaces without privilege (see `srt doctor`)",
        Errno::ENOSPC | Errno::EUSERS => "make another namespace (see `user.max_user_namespaces`)",
        _ => "make namespaces",
    }
}

/// pid 1. Never returns, and never unwinds into the copy of the parent's stack it stands on.
fn first(control: &Control, ids: (u32, u32), maker: Option<usize>, keep: &[RawFd], missing: &[Defence]) -> ! {
    let live = || {
        let moved = beside::move_from(maker).map_err(|errno| Failure::setup("run beside the supervisor", errno));
        let Err(failure) = moved.and_then(|()| prepare(control, ids, keep, missing));
        let _ = control.report(&Report::Failed(failure));
    };
    let _ = std::panic::catch_unwind(std::panic::AssertUnwindSafe(live));
    kernel::exit(125)
}

fn prepare(
    control: &Control,
    (uid, gid): (u32, u32),
    keep: &[RawFd],
    missing: &[Defence],
) -> Result<Infallible, Failure> {
    nix::sys::prctl::set_pdeathsig(Signal::SIGKILL)
        .map_err(|errno| Failure::setup("tie the sandbox to its supervisor", errno))?;
    // Whoever died before that line has closed the other end.
    let mut gone = [PollFd::new(control.as_fd(), PollFlags::POLLHUP)];
    if poll(&mut gone, PollTimeout::ZERO).is_ok_and(|ready| ready > 0) {
        kernel::exit(125);
    }
    kernel::unshare(without(LATER, missing)).map_err(|errno| Failure::setup(cannot_make_namespaces(errno), errno))?;
    map_ids(uid, gid)?;
    umask(Mode::empty());
    init::settle(missing)?;
    nix::unistd::chdir("/").map_err(|errno| Failure::setup("enter `/`", errno))?;
    // The process that becomes the command, also made while there is time.
    let (ours, theirs) = Control::pair().map_err(|errno| Failure::setup("make a control socket", errno))?;
    let bell = Bell::new().map_err(|errno| Failure::setup("make a descriptor to wake by", errno))?;
    let here = beside::here();
    let Some(child) = kernel::fork().map_err(|errno| Failure::setup("fork", errno))? else {
        let held = [&[0, 1, 2, control.as_raw_fd(), theirs.as_raw_fd(), bell.as_raw_fd()], keep].concat();
        if let Err(errno) = kernel::close_all_but(&held) {
            let _ = control.report(&Report::Failed(Failure::setup("close descriptors", errno)));
            kernel::exit(125);
        }
        if let Err(errno) = beside::move_from(here) {
            let _ = control.report(&Report::Failed(Failure::setup("run beside pid 1", errno)));
            kernel::exit(125);
        }
        command::await_turns(&theirs, &bell, control)
    };
    drop(theirs);
    // The standard streams stay until the command runs, for a word about a fault of our own.
    kernel::close_all_but(&[0, 1, 2, control.as_raw_fd(), ours.as_raw_fd(), bell.as_raw_fd()])
        .map_err(|errno| Failure::setup("close descriptors", errno))?;
    raise_open_files()?;
    let own_network = !missing.contains(&Defence::NetworkNamespace);
    if own_network {
        network::set_up()?;
    }
    let mut stage = Stage::new(missing)?;
    let numbers = stage.numbers.take();
    let procfs = stage.proc.as_ref().ok().and_then(|proc| proc.try_clone().ok());
    let proc = procfs.as_ref().and_then(|proc| proc.try_clone().ok()).filter(|_| broker::may_look().is_ok());

    let received = || match control.take_over() {
        Ok(Some(text)) => Ok(text),
        // The supervisor is gone, or has changed its mind.
        Ok(None) => kernel::exit(125),
        Err(errno) => Err(Failure::setup("receive the plan", errno)),
    };
    let turn = |given: Result<(), Errno>| given.map_err(|errno| Failure::setup("start the command", errno));
    let command = received()?;
    // It may be more than fits in between: who reads it is awake.
    turn(bell.ring())?;
    turn(ours.hand_over(&command))?;
    let plan = received()?;
    let plan: Plan = wire::read(&plan).ok_or_else(|| Failure::setup("understand the plan", Errno::EBADMSG))?;
    // Who is put into a group first loads its filter afterwards: in a cgroup namespace that begins there.
    let listens = proc.is_some();
    let grouped = plan.limits.of_tree();
    if !grouped {
        turn(ours.give_turn(listens))?;
    }
    if let Some(numbers) = numbers {
        numbers.bound(&plan.limits);
    }
    let doors = match &plan.network {
        Network::Proxy(ports) if own_network => Some(capture::open(ports, !missing.contains(&Defence::Redirection))?),
        _ => None,
    };
    let alone = doors.as_ref().is_some_and(Doors::alone);
    let mut entered = Ok(());
    mounts::enter(stage, &plan, missing, || entered = bell.ring())?;
    turn(entered)?;
    if doors.is_some() {
        mounts::cover_names()?;
    }
    let is_apart = doors.is_none();
    init::ready(control, doors)?;
    let lookout = init::lookout(control, child, &plan.limits, procfs.as_ref())?;
    if grouped {
        turn(ours.give_turn(listens))?;
    }
    let broker = init::hear(control, &ours, proc, missing, plan.syscalls.performed, is_apart)?;
    turn(ours.give_turn(alone))?;
    drop((ours, bell, plan));
    init::attend(control, child, broker.as_ref(), lookout)
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
