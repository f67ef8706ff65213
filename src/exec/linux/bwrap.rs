//! The bubblewrap way in: bubblewrap makes the namespaces and mounts, and starts this program again inside, as pid 1,
//! for everything else.
//!
//! The inner half is run by descriptor, since the policy may hide the program's file; what it needs comes in a file in
//! memory. It speaks to the supervisor over the same control socket as the native pid 1.

use super::command::Command;
use super::control::{Control, Failure, Report};
use super::defence::Defence;
use super::numbers::Numbers;
use super::supervisor::Started;
use super::{Error, capture, devices, init, kernel, mounts, network, proc, program};
use crate::backend::bubblewrap::{Argument, Arguments, Mount, Network, Plan, arguments};
use nix::errno::Errno;
use nix::fcntl::{FcntlArg, FdFlag, OFlag, fcntl, open};
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use nix::sys::signal::{SigSet, SigmaskHow, Signal, sigprocmask};
use nix::sys::signalfd::{SfdFlags, SignalFd};
use nix::sys::stat::Mode;
use nix::unistd::Pid;
use std::ffi::{CString, OsString};
use std::io::{Read, Seek};
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;

/// The first argument that makes this program the inner half.
const INNER: &str = "srt-inner";

/// What the inner half is told.
#[derive(serde::Serialize, serde::Deserialize)]
struct Inner {
    command: Command,
    network: Network,
    /// Whether there is a `/proc` to cover, and a `/dev` that wants terminals.
    proc: bool,
    devices: bool,
    /// Where bubblewrap was to mount, and for the host's nodes, what was seen there.
    places: Vec<mounts::Place>,
    noexec: Vec<Vec<u8>>,
    exec: Vec<Vec<u8>>,
}

/// Starts bubblewrap; what fails inside is told over the control socket, what fails before, by bubblewrap itself on
/// standard error.
pub fn start(plan: &Plan, command: Command, path: Option<OsString>) -> Result<Started, Error> {
    let setup = |act: &'static str| move |errno: Errno| Error::Setup { act: act.into(), source: errno.into() };
    let Some(program) = program::program("bwrap", path) else {
        return Err(Error::Setup {
            act: "find `bwrap` on PATH (install the package `bubblewrap`, or use `--engine native`)".into(),
            source: std::io::ErrorKind::NotFound.into(),
        });
    };
    let emitted = arguments(plan).map_err(|unsupported| Error::Setup {
        act: "use bubblewrap".into(),
        source: std::io::Error::new(std::io::ErrorKind::Unsupported, unsupported.to_string()),
    })?;
    let (ours, theirs) = Control::pair().map_err(setup("make a control socket"))?;
    let own = open("/proc/self/exe", OFlag::O_RDONLY | OFlag::O_CLOEXEC, Mode::empty())
        .map_err(setup("open this program's own file"))?;
    let kept = command.keep.clone();
    let has = |wanted: fn(&Mount) -> bool| plan.mounts.iter().any(wanted);
    let (text, mut passed) = spell(plan, &emitted).map_err(setup("make a file in memory"))?;
    let inner = Inner {
        command,
        network: plan.network.clone(),
        proc: has(|mount| matches!(mount, Mount::Proc)),
        devices: has(|mount| matches!(mount, Mount::Devices { .. })),
        places: mounts::places(plan),
        noexec: emitted.noexec,
        exec: emitted.exec,
    };
    if !inner.proc {
        return Err(setup("start inside by descriptor without `/proc` (use `--engine native`)")(Errno::ENOTSUP));
    }
    let inner = serde_json::to_vec(&inner)
        .map_err(|error| Error::Setup { act: "hand the command over".into(), source: error.into() })?;
    let inner = kernel::memory_file(c"inner", &inner).map_err(setup("make a file in memory"))?;
    let text = kernel::memory_file(c"arguments", &text).map_err(setup("make a file in memory"))?;

    let mut line: Vec<CString> = Vec::new();
    let numbers = [own.as_raw_fd(), theirs.as_raw_fd(), inner.as_raw_fd()];
    let mut words = vec![
        "bwrap".to_owned(),
        "--args".into(),
        text.as_raw_fd().to_string(),
        "--".into(),
        format!("/proc/self/fd/{}", numbers[0]),
        INNER.into(),
    ];
    words.extend(numbers.iter().map(ToString::to_string));
    for word in words {
        line.push(CString::new(word).map_err(|_| setup("pass an argument")(Errno::EINVAL))?);
    }
    let program = CString::new(program.as_os_str().as_bytes()).map_err(|_| setup("run bwrap")(Errno::EINVAL))?;
    passed.extend([own, inner, text]);
    match kernel::clone(0).map_err(setup("start bubblewrap"))? {
        kernel::Cloned::Parent(pid, pidfd) => Ok(Started {
            pid,
            pidfd,
            control: ours,
            ending: Signal::SIGTERM,
            silence: "set the sandbox up with bubblewrap, which ended",
        }),
        kernel::Cloned::Child => {
            drop(ours);
            let Err(failure) = keep(&theirs, || become_bwrap(&program, &line, &passed, &kept, &theirs));
            let _ = theirs.report(&Report::Failed(failure));
            kernel::exit(125)
        }
    }
}

/// The arguments for `--args`, each ended by NUL, and the descriptors they name.
///
/// Bubblewrap's own `--dev` makes a second user namespace for everybody but root, in which pid 1 could no longer mount:
/// the same is said piece by piece, and the terminals are mounted by pid 1.
fn spell(plan: &Plan, emitted: &Arguments) -> Result<(Vec<u8>, Vec<OwnedFd>), Errno> {
    let mut text = Vec::new();
    let mut files = Vec::new();
    let mut words = emitted.list.iter();
    let mut put = |word: &[u8]| {
        text.extend(word);
        text.push(0);
    };
    while let Some(word) = words.next() {
        match word {
            Argument::Text(word) if word == b"--dev" => {
                words.next();
                for word in ["--perms", "0755", "--tmpfs", "/dev", "--dir", "/dev/pts"] {
                    put(word.as_bytes());
                }
                for mount in &plan.mounts {
                    let Mount::Devices { nodes } = mount else { continue };
                    for node in nodes {
                        let node = format!("/dev/{node}");
                        for word in ["--dev-bind", &node, &node] {
                            put(word.as_bytes());
                        }
                    }
                }
                for (name, target) in devices::LINKS {
                    put(b"--symlink");
                    put(target.to_bytes());
                    put(&[b"/dev/", name.to_bytes()].concat());
                }
            }
            Argument::Text(word) => put(word),
            Argument::Data(data) => {
                let file = kernel::memory_file(c"data", data)?;
                put(file.as_raw_fd().to_string().as_bytes());
                files.push(file);
            }
        }
    }
    Ok((text, files))
}

/// Stands between the supervisor and bubblewrap until nothing of it is left.
///
/// Bubblewrap's second process waits for a word of its first and does not see it die (0.8.0, an eventfd), so that whoever
/// ends the first at that moment leaves the second behind for good. Orphans come back to this process, which ends them.
fn keep(control: &Control, bwrap: impl FnOnce() -> Failure) -> Result<std::convert::Infallible, Failure> {
    let step = |act: &'static str| move |errno| Failure::setup(act, errno);
    let supervisor = nix::unistd::getppid().as_raw().cast_unsigned();
    // A caller that ignores it would have the kernel reap bubblewrap, and bubblewrap's own children, unheard.
    kernel::default_action(Signal::SIGCHLD).map_err(step("reset signals"))?;
    nix::sys::prctl::set_child_subreaper(true).map_err(step("take orphans in"))?;
    let Some(child) = kernel::fork().map_err(step("fork"))? else { return Err(bwrap()) };
    // Whoever reads what the command writes does not wait for this process, which may have to stay a while.
    kernel::close_all_but(&[control.as_raw_fd()]).map_err(step("close descriptors"))?;
    let mut mask = SigSet::empty();
    mask.add(Signal::SIGCHLD);
    mask.add(Signal::SIGTERM);
    sigprocmask(SigmaskHow::SIG_SETMASK, Some(&SigSet::all()), None).map_err(step("block signals"))?;
    let signals = SignalFd::with_flags(&mask, SfdFlags::SFD_CLOEXEC | SfdFlags::SFD_NONBLOCK)
        .map_err(step("watch for children"))?;
    loop {
        let mut ready =
            [PollFd::new(control.as_fd(), PollFlags::empty()), PollFd::new(signals.as_fd(), PollFlags::POLLIN)];
        let mut over = match poll(&mut ready, PollTimeout::NONE) {
            // The supervisor is gone.
            Ok(_) => ready[0].any().unwrap_or(true),
            Err(Errno::EINTR) => false,
            Err(_) => true,
        };
        while let Ok(Some(signal)) = signals.read_signal() {
            // Not from the command, which belongs to the same process group.
            over |= i32::try_from(signal.ssi_signo) == Ok(libc::SIGTERM) && signal.ssi_pid == supervisor;
        }
        while let Ok(Some((pid, change))) = kernel::changed_child() {
            over |= pid == child && !matches!(change, kernel::Change::Stopped(_));
        }
        if over {
            end_children(child);
            kernel::exit(0);
        }
    }
}

/// Ends every child, and the orphans that come back meanwhile.
fn end_children(first: Pid) {
    let _ = nix::sys::signal::kill(first, Signal::SIGKILL);
    loop {
        let list = std::fs::read_to_string("/proc/thread-self/children").unwrap_or_default();
        for child in list.split_whitespace().filter_map(|child| child.parse().ok()) {
            let _ = nix::sys::signal::kill(Pid::from_raw(child), Signal::SIGKILL);
        }
        match nix::sys::wait::waitpid(None, None) {
            Ok(_) | Err(Errno::EINTR) => (),
            Err(_) => return,
        }
    }
}

fn become_bwrap(program: &CString, line: &[CString], passed: &[OwnedFd], kept: &[i32], control: &Control) -> Failure {
    if let Err(errno) = nix::sys::prctl::set_pdeathsig(Signal::SIGKILL) {
        return Failure::setup("tie bubblewrap to its supervisor", errno);
    }
    // Nothing but what is passed: bubblewrap hands down whatever it inherits.
    if let Err(errno) = kernel::close_on_exec(3) {
        return Failure::setup("close descriptors", errno);
    }
    let pass = |fd: BorrowedFd<'_>| fcntl(fd, FcntlArg::F_SETFD(FdFlag::empty())).map(drop);
    let passed = passed.iter().map(AsFd::as_fd).chain([control.as_fd()]).map(Ok);
    for fd in passed.chain(kept.iter().map(|fd| kernel::borrow(*fd))) {
        if let Err(errno) = fd.and_then(pass) {
            return Failure::setup("pass descriptors to bubblewrap", errno);
        }
    }
    let mut arguments: Vec<_> = line.iter().map(|word| word.as_ptr()).collect();
    arguments.push(std::ptr::null());
    // An empty environment: the command's own is in the file.
    let errno = kernel::exec(program, &arguments, &[std::ptr::null()]);
    Failure::setup("run bubblewrap", errno)
}

/// Whether this process was started as the inner half; if so, becomes it and never returns. Call it first in main.
pub fn inner_main() {
    let mut words = std::env::args_os();
    let by_descriptor = words.next().is_some_and(|name| name.as_bytes().starts_with(b"/proc/self/fd/"));
    if !by_descriptor || words.next().is_none_or(|word| word != INNER) {
        return;
    }
    let numbers: Vec<i32> = words.filter_map(|word| word.to_str()?.parse().ok()).collect();
    let &[own, control, inner] = &numbers[..] else { kernel::exit(125) };
    let (Ok(own), Ok(control), Ok(inner)) = (kernel::take(own), kernel::take(control), kernel::take(inner)) else {
        kernel::exit(125)
    };
    drop(own);
    let control = Control::from_descriptor(control);
    let run = || {
        let Err(failure) = become_inner(inner, &control);
        let _ = control.report(&Report::Failed(failure));
    };
    let _ = std::panic::catch_unwind(std::panic::AssertUnwindSafe(run));
    kernel::exit(125)
}

fn become_inner(inner: OwnedFd, control: &Control) -> Result<std::convert::Infallible, Failure> {
    let failed = |error: std::io::Error| {
        Failure::setup("read what to run", Errno::from_raw(error.raw_os_error().unwrap_or(libc::EIO)))
    };
    nix::sys::prctl::set_pdeathsig(Signal::SIGKILL)
        .map_err(|errno| Failure::setup("tie the sandbox to its supervisor", errno))?;
    let mut file = std::fs::File::from(inner);
    file.rewind().map_err(failed)?;
    let mut text = Vec::new();
    file.read_to_end(&mut text).map_err(failed)?;
    drop(file);
    let mut inner: Inner =
        serde_json::from_slice(&text).map_err(|_| Failure::setup("understand what to run", Errno::EBADMSG))?;
    network::set_up()?;
    let doors = match &inner.network {
        Network::Proxy(ports) => Some(capture::open(ports, true)?),
        Network::Loopback => None,
    };
    if doors.as_ref().is_some_and(capture::Doors::alone) {
        inner.command.is_alone();
    }
    let step = |act: &'static str| move |errno| Failure::setup(act, errno);
    let root = mounts::open_root().map_err(step("open `/`"))?;
    // Bubblewrap follows links, and does not ask what a place is: a node replaced since it was looked at shows here,
    // before anything of the command runs.
    if inner.command.has(&Defence::SameNode) {
        mounts::check_places(root.as_fd(), &inner.places)?;
    }
    if inner.devices {
        devices::terminals(root.as_fd(), b"dev/pts")?;
    }
    if inner.proc {
        let place = mounts::open(root.as_fd(), b"proc").map_err(step("open `/proc`"))?;
        if let Some(numbers) = Numbers::open(place.as_fd()) {
            numbers.bound(&inner.command.limits);
        }
        let mut masks = mounts::Masks::new(root.as_fd())?;
        if inner.command.has(&Defence::ProcCovers) {
            proc::cover(place.as_fd(), &mut masks)?;
        }
        masks.remove()?;
        nix::unistd::chdir("/").map_err(step("enter `/`"))?;
    }
    mounts::forbid_running(root.as_fd(), &inner.noexec, &inner.exec)?;
    if doors.is_some() {
        mounts::cover_names()?;
    }
    mounts::nothing_on_top(root.as_fd())?;
    let proc = mounts::open(root.as_fd(), b"proc").ok().filter(|_| inner.proc);
    init::run(control, inner.command, doors, proc)
}
