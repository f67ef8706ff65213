//! Running a command on Linux, by our own mounts (`native`) or by bubblewrap.
//!
//! ```text
//! supervisor (host)   policy → plan; signals, wall clock, proxy
//!  └ pid 1            id maps, loopback, `/proc`, `/dev`; ← plan: mounts, listener → supervisor; then reaps
//!     └ the command   no capabilities, no_new_privs, Landlock, seccomp, exec
//! ```
//!
//! The native engine's processes are made first, and prepare what no plan changes while the policy is still compiled.

// The clippy bans on `std::fs` and `process::Command` keep other rooms out; this is one that may.
#![allow(clippy::disallowed_methods)]

mod beside;
mod broker;
mod bwrap;
mod caller;
mod capture;
mod channel;
mod command;
mod control;
mod defence;
mod devices;
pub mod doctor;
mod environment;
mod event_file;
mod heap;
mod init;
mod kernel;
mod landlock;
mod listen;
mod mounts;
mod native;
mod network;
mod nftables;
mod output;
mod proc;
mod supervisor;
mod terminal;
mod wire;

use crate::backend::bubblewrap::seccomp::Table;
pub use crate::backend::bubblewrap::seccomp::Watch;
use crate::backend::bubblewrap::{Network, Plan};
use crate::event::Sink;
use crate::ir::Policy;
use crate::proxy::upstream::Upstream;
use crate::proxy::{InForce, Rules};
use crate::vocabulary::{Effect, Verb};
pub use bwrap::inner_main;
pub use caller::caller;
pub use channel::Channel;
use command::Command;
pub use defence::Defence;
pub use environment::upstream;
pub use event_file::EventFile;
pub use heap::keep as keep_memory;
pub use native::Prepared;
pub use output::end_output;
use std::collections::BTreeSet;
use std::ffi::{CString, OsString};
use std::io;
use std::os::unix::ffi::OsStringExt;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;
use supervisor::{Decides, Proxied, Served};

/// Who does the mounts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Engine {
    Native,
    Bwrap,
}

/// What to run, and how.
pub struct Launch {
    pub engine: Engine,
    /// For the native engine: what [`prepare`] made; without it, that is done now.
    pub prepared: Option<Prepared>,
    /// The program and its arguments; the program is looked up on the PATH of `environment`, inside.
    pub command: Vec<OsString>,
    /// The whole environment; proxy variables are added by [`run`], which knows the listener.
    pub environment: Vec<(OsString, OsString)>,
    /// The names in `environment` whose values the policy itself sets: these win over proxy variables.
    pub set: BTreeSet<OsString>,
    /// The directory the command starts in.
    pub directory: PathBuf,
    /// Descriptors beyond 0–2 that the command keeps.
    pub keep: Vec<i32>,
    /// What the proxy, connections to unix sockets, and listeners are decided by. Without rules no socket of the host is
    /// reached; needed where the plan's network is a proxy, or something is listened at.
    pub rules: Option<Arc<Rules>>,
    /// What the proxy's connections go through, if it is another proxy.
    pub upstream: Option<Upstream>,
    /// Started on a thread of its own once the command is, with the rules in force, to replace them. It keeps the right to read
    /// files, which the thread that serves the proxy gives up.
    pub live: Option<Box<dyn FnOnce(Arc<InForce>) + Send>>,
    pub events: Arc<dyn Sink>,
    /// Of which calls about files it is told that `rules` refuse them; without rules, of none.
    pub watch: Watch,
    /// Told what works otherwise than it usually does, in a sentence; the command runs all the same.
    pub announce: fn(&str),
}

impl Launch {
    /// By the native engine, with descriptors 0–2, no proxy, no socket of the host, and nothing said beside the events.
    pub fn new(
        command: Vec<OsString>,
        environment: Vec<(OsString, OsString)>,
        directory: PathBuf,
        events: Arc<dyn Sink>,
    ) -> Self {
        Self {
            engine: Engine::Native,
            prepared: None,
            command,
            environment,
            set: BTreeSet::new(),
            directory,
            keep: Vec::new(),
            rules: None,
            upstream: None,
            live: None,
            events,
            watch: Watch::Writes,
            announce: |_| {},
        }
    }
}

/// How the command ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Exit {
    /// Its own status.
    Code(u8),
    Signal(i32),
    /// Ended by `limit time`.
    TimedOut,
}

impl Exit {
    /// The status to end with, as shells and timeout(1) have it.
    pub fn status(self) -> u8 {
        match self {
            Exit::Code(code) => code,
            Exit::Signal(signal) => u8::try_from(signal).unwrap_or(127).saturating_add(128),
            Exit::TimedOut => 124,
        }
    }
}

/// Why nothing was run, or the run was given up.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The sandbox could not be set up (exit 125).
    #[error("cannot {act}: {source}")]
    Setup { act: String, source: io::Error },
    /// A place is no longer what the plan was made for (exit 125); planning anew may help.
    #[error("`{path}` is not what it was when the policy was bound: it was replaced or removed meanwhile")]
    Changed { path: String },
    /// The command could not be started (126 or 127).
    #[error("cannot run `{command}`: {source}")]
    Start { command: String, source: io::Error },
    /// While the command ran (exit 125).
    #[error("the sandbox's first process was killed from outside, and everything in the sandbox with it")]
    Killed,
}

impl Error {
    /// The status to end with.
    pub fn status(&self) -> u8 {
        match self {
            Error::Setup { .. } | Error::Changed { .. } | Error::Killed => 125,
            Error::Start { source, .. } if source.kind() == io::ErrorKind::NotFound => 127,
            Error::Start { .. } => 126,
        }
    }
}

/// The first of these descriptors that is not open. Call it before anything else is opened: a number that the caller did
/// not open would later be one of our own, and not the command's to have.
pub fn first_closed(descriptors: &[i32]) -> Option<i32> {
    descriptors.iter().copied().find(|descriptor| kernel::borrow(*descriptor).is_err())
}

/// Starts a sandbox of the native engine before its plan is there, so that the kernel's part is done meanwhile. Call it
/// before any thread exists, with the descriptors that the command will keep. Fails only when it is used.
pub fn prepare(keep: &[i32]) -> Prepared {
    Prepared::new(keep, &[])
}

/// Sets the sandbox up, runs the command in it, and waits for its end. Call it before any thread exists.
///
/// # Errors
/// Nothing of the command has run then, [`Error::Setup`] for a run that was given up and [`Error::Killed`] aside.
pub fn run(plan: &Plan, launch: Launch) -> Result<Exit, Error> {
    // user_namespaces(7): who maps the root of the outer namespace needs CAP_SETFCAP there, and nothing inside has it.
    if plan.syscalls.nest && nix::unistd::getuid().is_root() {
        return Err(invalid("let a command of root's make namespaces"));
    }
    run_without(plan, launch, &[])
}

/// [`run`] with walls taken out. For tests, which show that a known escape works then: it holds nobody.
///
/// # Errors
/// As [`run`].
#[doc(hidden)]
pub fn run_without(plan: &Plan, launch: Launch, missing: &[Defence]) -> Result<Exit, Error> {
    let mut environment = environment::without_proxies(launch.environment, &launch.set);
    let proxied = matches!(plan.network, Network::Proxy(_));
    let mut alone = None;
    match &launch.rules {
        Some(rules) if proxied => {
            let loopback = environment::reaches_whole_loopback(&rules.policy);
            environment = environment::with_proxy(&environment, &launch.set, loopback);
            let own = std::env::current_exe().ok();
            alone = Some(environment::alone(&environment, &launch.set, &rules.policy, own.as_deref()));
        }
        None if proxied || !plan.listen.is_empty() => return Err(invalid("start the proxy without rules")),
        _ => {}
    }
    let listeners = listen::bind(&plan.listen)?;
    let strings = |variables| {
        environment::strings(variables)
            .map_err(|name| invalid(&format!("pass the variable `{}`", name.to_string_lossy())))
    };
    let (environment, alone) = (strings(environment)?, strings(alone.unwrap_or_default())?);
    let arguments = launch.command.into_iter().map(|argument| CString::new(argument.into_vec()));
    let arguments: Vec<CString> = arguments.collect::<Result<_, _>>().map_err(|_| invalid("pass an argument"))?;
    let directory = CString::new(launch.directory.into_os_string().into_vec()).map_err(|_| invalid("start there"))?;
    let open_files = nix::sys::resource::getrlimit(nix::sys::resource::Resource::RLIMIT_NOFILE)
        .map_err(|errno| Error::Setup { act: "read the limit of open files".into(), source: errno.into() })?;
    let command = Command {
        arguments,
        environment,
        alone,
        directory,
        keep: launch.keep,
        syscalls: Table {
            watch: if launch.rules.is_some() { launch.watch } else { Watch::Nothing },
            runs: launch.watch != Watch::Nothing
                && launch.rules.as_ref().is_some_and(|rules| denies_running(&rules.policy)),
            ..plan.syscalls.clone()
        },
        sockets: plan.sockets,
        unheard: plan.unheard,
        landlock: plan.landlock.clone(),
        limits: plan.limits.clone(),
        umask: current_umask(),
        open_files,
        missing: missing.to_vec(),
    };
    let watches = command.syscalls.watch != Watch::Nothing;
    let signals = supervisor::Signals::hold()
        .map_err(|errno| Error::Setup { act: "hold signals back".into(), source: errno.into() })?;
    let started = match launch.engine {
        Engine::Native => {
            native::start(launch.prepared.unwrap_or_else(|| Prepared::new(&command.keep, missing)), plan, &command)?
        }
        Engine::Bwrap => bwrap::start(plan, command, std::env::var_os("PATH"))?,
    };
    let time = plan.limits.time.map(Duration::from_millis);
    let decides = Decides {
        rules: launch.rules.clone(),
        events: launch.events,
        watches,
        performs: plan.syscalls.performed != Watch::Nothing,
        announce: launch.announce,
    };
    let served = launch.rules.filter(|_| proxied || !listeners.is_empty()).map(|rules| Served {
        proxied: proxied.then(|| Proxied {
            in_force: Arc::new(InForce::new(rules)),
            upstream: launch.upstream,
            live: launch.live,
        }),
        listeners,
    });
    supervisor::supervise(started, signals, time, &decides, served)
}

/// Whether some program may be read, and not be run: else what cannot be run is hidden.
fn denies_running(policy: &Policy) -> bool {
    policy.rules_of(Verb::Exec).any(|(_, rule)| rule.effect != Effect::Allow)
}

fn invalid(act: &str) -> Error {
    Error::Setup { act: act.into(), source: io::ErrorKind::InvalidInput.into() }
}

fn current_umask() -> u32 {
    let mask = nix::sys::stat::umask(nix::sys::stat::Mode::empty());
    nix::sys::stat::umask(mask);
    mask.bits()
}
