//! The last steps before the command: from a child of pid 1 to exec, inside the finished tree.
//!
//! Runs in a process with one thread; nothing here may panic, and every step that fails is the end.

use super::beside::Bell;
use super::control::{Control, Failure, Report, Stage};
use super::defence::Defence;
use super::{kernel, landlock, wire};
use crate::backend::bubblewrap::Landlock;
use crate::backend::bubblewrap::seccomp::{self, Architecture, Watch};
use crate::backend::limits::Limits;
use nix::errno::Errno;
use nix::fcntl::{FcntlArg, FdFlag, fcntl};
use nix::sys::resource::{Resource, getrlimit, setrlimit};
use nix::sys::signal::{SigSet, SigmaskHow, Signal, sigprocmask};
use nix::sys::stat::{Mode, umask};
use std::ffi::{CStr, CString};
use std::os::fd::{AsFd, OwnedFd, RawFd};

/// Everything the inner half needs beside the mounts.
#[derive(Debug, Clone, serde::Serialize, serde::Deserialize)]
pub struct Command {
    pub arguments: Vec<CString>,
    /// `NAME=VALUE`
    pub environment: Vec<CString>,
    /// The same, in the place of those of the same name, where nothing but variables leads to the proxy.
    pub alone: Vec<CString>,
    pub directory: CString,
    pub keep: Vec<RawFd>,
    pub syscalls: seccomp::Table,
    /// Without somebody who listens to the filter, nothing is run.
    pub sockets: bool,
    /// Without a listener it runs all the same, with what mounts hold.
    pub unheard: bool,
    pub landlock: Option<Landlock>,
    pub limits: Limits,
    pub umask: u32,
    /// Soft and hard limit of open files, as the caller had it.
    pub open_files: (u64, u64),
    /// What a test took out.
    pub missing: Vec<Defence>,
}

impl Command {
    pub fn has(&self, defence: &Defence) -> bool {
        !self.missing.contains(defence)
    }

    /// Nothing but variables leads to the proxy.
    pub fn is_alone(&mut self) {
        let name = |entry: &CString| entry.to_bytes().split(|byte| *byte == b'=').next().map(<[u8]>::to_vec);
        for entry in std::mem::take(&mut self.alone) {
            self.environment.retain(|other| name(other) != name(&entry));
            self.environment.push(entry);
        }
    }
}

/// The machine's own kind, `None` where no filter is written for it.
pub const ARCHITECTURE: Option<Architecture> = if cfg!(target_arch = "x86_64") {
    Some(Architecture::X86_64)
} else if cfg!(target_arch = "aarch64") {
    Some(Architecture::Aarch64)
} else {
    None
};

/// Becomes the command, or says why not and ends. For a process that was started inside the finished tree; `first` is pid 1,
/// which listens to the filter if it can.
pub fn start(command: &Command, control: &Control, first: &Control) -> ! {
    let become_it = || {
        let filter = prepare(command)?;
        let Some(listens) = first.await_turn() else { kernel::exit(125) };
        confine_and_filter(command, &filter, first, listens, || Ok(()))?;
        Ok(run(command))
    };
    let failure = match become_it() {
        Ok(failure) | Err(failure) => failure,
    };
    end(control, failure)
}

/// The same for a process that is started before there is a tree or a command: pid 1 rings and hands the command over, with a
/// turn that says whether it listens, rings again once the tree is the root, and gives it the last turn once nothing else is
/// reached from there. The filter is loaded while the tree is made.
pub fn await_turns(first: &Control, bell: &Bell, control: &Control) -> ! {
    let rung = || match bell.wait(first.as_fd()) {
        Ok(true) => Ok(()),
        // Pid 1 has given up, and says why.
        Ok(false) => kernel::exit(125),
        Err(errno) => Err(Failure::setup("wait for the tree", errno)),
    };
    let command = rung().ok().and_then(|()| first.take_over().ok().flatten()).unwrap_or_else(|| kernel::exit(125));
    let turn = || first.await_turn().unwrap_or_else(|| kernel::exit(125));
    let become_it = || {
        let mut command: Command =
            wire::read(&command).ok_or_else(|| Failure::setup("understand what to run", Errno::EBADMSG))?;
        let filter = prepare(&command)?;
        confine_and_filter(&command, &filter, first, turn(), rung)?;
        if turn() {
            command.is_alone();
        }
        Ok(run(&command))
    };
    let failure = match become_it() {
        Ok(failure) | Err(failure) => failure,
    };
    end(control, failure)
}

fn end(control: &Control, failure: Failure) -> ! {
    let _ = control.report(&Report::Failed(failure));
    kernel::exit(125)
}

/// What needs no tree. Returns the filter.
fn prepare(command: &Command) -> Result<Vec<seccomp::Instruction>, Failure> {
    let step = |act: &'static str| move |errno| Failure::setup(act, errno);
    let filter = assemble(command, command.syscalls.notified)?;
    // The caller's terminal stays, and with it the session and the process group: job control works.
    kernel::close_on_exec(3).map_err(step("close descriptors"))?;
    for &fd in &command.keep {
        kernel::borrow(fd)
            .and_then(|fd| fcntl(fd, FcntlArg::F_SETFD(FdFlag::empty())))
            .map_err(|errno| Failure::setup(format!("keep descriptor {fd}"), errno))?;
    }
    if command.has(&Defence::Keyring) {
        match kernel::new_keyring() {
            Ok(()) | Err(Errno::ENOSYS) => (),
            Err(errno) => return Err(Failure::setup("make a session keyring", errno)),
        }
    }
    limit(command)?;
    Ok(filter)
}

/// The filter for whether somebody listens to it.
fn assemble(command: &Command, notified: bool) -> Result<Vec<seccomp::Instruction>, Failure> {
    let architecture =
        ARCHITECTURE.ok_or_else(|| Failure::setup("filter system calls on this machine", Errno::ENOTSUP))?;
    let closed = |entry: &seccomp::Entry| command.has(&Defence::SystemCall(entry.call.to_owned()));
    let table = seccomp::Table { notified, ..command.syscalls.clone() };
    let entries: Vec<_> = seccomp::entries(&table).into_iter().filter(closed).collect();
    Ok(seccomp::assemble(&entries, architecture))
}

/// The filter first, which takes the longest, and once `rung` says that there is a tree, what stands in it; where the filter
/// tells of whatever is opened, and so of what this opens, it comes last.
fn confine_and_filter(
    command: &Command,
    filter: &[seccomp::Instruction],
    first: &Control,
    listens: bool,
    rung: impl Fn() -> Result<(), Failure>,
) -> Result<(), Failure> {
    let step = |act: &'static str| move |errno| Failure::setup(act, errno);
    if command.limits.of_tree() {
        // It may be in a group of its own by now: what is above that is not for it to see, nor, where the groups are mounted so
        // (`nsdelegate`, cgroups(7)), that group's limits to change, whatever of them it may write to.
        kernel::unshare(libc::CLONE_NEWCGROUP).map_err(step("make a cgroup namespace"))?;
    }
    // What both the filter and Landlock want of whoever has no capability.
    if command.has(&Defence::NoPrivileges) {
        nix::sys::prctl::set_no_new_privs().map_err(step("set no_new_privs"))?;
    }
    let last = command.syscalls.watch.max(command.syscalls.performed) == Watch::Opens;
    if !last {
        filter_calls(command, filter, first, listens)?;
    }
    rung()?;
    confine(command)?;
    if last {
        filter_calls(command, filter, first, listens)?;
    }
    Ok(())
}

/// Puts the filter in force, and gives pid 1 what listens to it. Nothing that it closes is done by this process from now on,
/// nor anything that it notifies of, until the command runs.
fn filter_calls(
    command: &Command,
    filter: &[seccomp::Instruction],
    first: &Control,
    listens: bool,
) -> Result<(), Failure> {
    let step = |act: &'static str| move |errno| Failure::setup(act, errno);
    let listener = if command.has(&Defence::SystemCalls) { load(command, filter, listens)? } else { Err(None) };
    match first.hand_listener(listener) {
        // It has given up, and says why.
        Err(Errno::EPIPE | Errno::ECONNRESET) => kernel::exit(125),
        handed => handed.map_err(step("hand over what listens to the filter")),
    }
}

/// What stands in the finished tree.
fn confine(command: &Command) -> Result<(), Failure> {
    let step = |act: &'static str| move |errno| Failure::setup(act, errno);
    let mut passed = vec![0, 1, 2];
    passed.extend(&command.keep);
    let ruleset = command.landlock.as_ref().map(|plan| landlock::prepare(plan, &passed)).transpose()?;
    if command.has(&Defence::NoPrivileges) {
        kernel::drop_capabilities().map_err(step("drop capabilities"))?;
    }
    nix::unistd::chdir(command.directory.as_c_str()).map_err(|errno| {
        let directory = command.directory.to_string_lossy();
        Failure::setup(format!("start in `{directory}`, which the policy does not let the command reach"), errno)
    })?;
    umask(Mode::from_bits_truncate(command.umask));
    // Ours, not the caller's: Rust ignores it from the start.
    kernel::default_action(Signal::SIGPIPE).map_err(step("reset signals"))?;
    sigprocmask(SigmaskHow::SIG_SETMASK, Some(&SigSet::empty()), None).map_err(step("reset signals"))?;
    if let Some(ruleset) = ruleset {
        kernel::landlock_restrict(ruleset.as_fd()).map_err(step("put Landlock in force"))?;
    }
    Ok(())
}

/// Loads the filter; what listens to it, or why nothing does.
fn load(
    command: &Command,
    filter: &[seccomp::Instruction],
    listens: bool,
) -> Result<Result<OwnedFd, Option<Errno>>, Failure> {
    let step = |act: &'static str| move |errno| Failure::setup(act, errno);
    if !command.syscalls.notified {
        return kernel::load_filter(filter).map(|()| Err(None)).map_err(step("load the system call filter"));
    }
    // An older kernel does not know what is asked for (EINVAL); around another sandbox somebody listens already (EBUSY).
    let errno = if listens {
        match kernel::load_notifying_filter(filter) {
            Ok(listener) => return Ok(Ok(listener)),
            Err(errno) => errno,
        }
    } else {
        Errno::EPERM
    };
    if command.syscalls.performed != Watch::Nothing && !command.unheard {
        return Err(Failure::setup("change files in the command's place (see `srt doctor`)", errno));
    }
    if command.sockets {
        return Err(Failure::setup("connect to unix sockets in the command's place (see `srt doctor`)", errno));
    }
    let closed = assemble(command, false)?;
    kernel::load_filter(&closed).map(|()| Err(Some(errno))).map_err(step("load the system call filter"))
}

/// More threads than pid 1 has, but where very many calls of the command wait for something.
pub const OWN_THREADS: u64 = 64;

fn limit(command: &Command) -> Result<(), Failure> {
    let (limits, open_files) = (&command.limits, command.open_files);
    let set = |resource: Resource, soft: u64, hard: u64, name: &str| {
        setrlimit(resource, soft, hard).map_err(|errno| Failure::setup(format!("limit {name}"), errno))
    };
    // A limit is never raised by a policy.
    let lower = |resource: Resource, value: u64, name: &str| {
        let (_, hard) = getrlimit(resource).map_err(|errno| Failure::setup(format!("limit {name}"), errno))?;
        let value = value.min(hard);
        set(resource, value, value, name)
    };
    set(Resource::RLIMIT_NOFILE, open_files.0, open_files.1, "open files")?;
    if let Some(files) = limits.files {
        lower(Resource::RLIMIT_NOFILE, files, "files")?;
    }
    if command.has(&Defence::CoreLimit) {
        // 0 would still start a handler that `core_pattern` pipes to; 1 byte does not (core(5)).
        lower(Resource::RLIMIT_CORE, 1, "core dumps")?;
    }
    if let Some(memory) = limits.memory {
        lower(Resource::RLIMIT_DATA, memory, "memory")?;
    }
    if let Some(processes) = limits.processes {
        // The kernel counts pid 1 and its threads too, and root's processes not at all: `tree` counts the command's alone, and
        // this holds between two looks.
        lower(Resource::RLIMIT_NPROC, processes.saturating_add(OWN_THREADS), "processes")?;
    }
    if let Some(size) = limits.filesize {
        lower(Resource::RLIMIT_FSIZE, size, "filesize")?;
    }
    if let Some(seconds) = limits.cpu {
        let (_, hard) = getrlimit(Resource::RLIMIT_CPU).map_err(|errno| Failure::setup("limit cpu", errno))?;
        // Whoever looks at all processes together ends them at the limit, and says so: the kernel, which counts one process and by
        // ticks, is to come after that. SIGXCPU first, SIGKILL a second later.
        let [first, last] = [1, 2].map(|more| seconds.saturating_add(more).min(hard));
        set(Resource::RLIMIT_CPU, first, last, "cpu")?;
    }
    Ok(())
}

/// Finds the program on the command's own PATH, as execvp(3) does. Returns only if it cannot be run.
fn run(command: &Command) -> Failure {
    let Some(name) = command.arguments.first() else { return Failure::setup("run nothing", Errno::EINVAL) };
    let failed =
        |errno: Errno| Failure { stage: Stage::Start, act: name.to_string_lossy().into_owned(), errno: errno as i32 };
    let environment = pointers(&command.environment);
    if name.to_bytes().contains(&b'/') {
        return failed(attempt(name, command, &environment));
    }
    let path = command.environment.iter().find_map(|entry| entry.to_bytes().strip_prefix(b"PATH="));
    let mut refused = None;
    for directory in path.unwrap_or(b"/usr/local/bin:/usr/bin:/bin").split(|byte| *byte == b':') {
        let mut program = if directory.is_empty() { b".".to_vec() } else { directory.to_vec() };
        program.push(b'/');
        program.extend(name.to_bytes());
        let Ok(program) = CString::new(program) else { continue };
        match attempt(&program, command, &environment) {
            Errno::EACCES => refused = Some(Errno::EACCES),
            Errno::ENOENT | Errno::ENOTDIR | Errno::ESTALE | Errno::ENODEV | Errno::ETIMEDOUT => (),
            errno => return failed(errno),
        }
    }
    failed(refused.unwrap_or(Errno::ENOENT))
}

fn attempt(program: &CStr, command: &Command, environment: &[*const libc::c_char]) -> Errno {
    let errno = kernel::exec(program, &pointers(&command.arguments), environment);
    if errno != Errno::ENOEXEC {
        return errno;
    }
    // A script without `#!`: POSIX gives it to the shell.
    let mut arguments = vec![c"/bin/sh".as_ptr(), program.as_ptr()];
    arguments.extend(command.arguments.iter().skip(1).map(|argument| argument.as_ptr()));
    arguments.push(std::ptr::null());
    kernel::exec(c"/bin/sh", &arguments, environment)
}

fn pointers(strings: &[CString]) -> Vec<*const libc::c_char> {
    strings.iter().map(|string| string.as_ptr()).chain([std::ptr::null()]).collect()
}
