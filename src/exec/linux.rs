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
mod cgroup;
mod command;
mod control;
mod defence;
mod devices;
pub mod doctor;
mod end;
mod heap;
mod init;
mod kernel;
mod landlock;
mod listen;
mod lookout;
mod mounts;
mod native;
mod network;
mod nftables;
mod numbers;
mod proc;
mod program;
mod supervisor;
mod terminal;
mod tree;
mod wire;

use super::environment;
use super::launch::Act;
pub use super::launch::{Engine, Error, Exit, Launch};
pub use super::probe::Probe;
pub use super::unix::channel::Channel;
pub use super::unix::event_file::EventFile;
pub use super::unix::inherited::first_closed;
pub use super::unix::output::end_output;
use crate::backend::bubblewrap::seccomp::Table;
pub use crate::backend::bubblewrap::seccomp::Watch;
use crate::backend::bubblewrap::{Network, Plan};
use crate::ir::Policy;
use crate::proxy::InForce;
use crate::vocabulary::{Effect, Verb};
pub use bwrap::inner_main;
pub use bwrap::inner_main as begin;
pub use caller::caller;
use command::Command;
pub use defence::Defence;
pub use doctor::probes;
pub use heap::keep as keep_memory;
pub use native::Prepared;
use std::ffi::{CString, OsString};
use std::io;
use std::os::unix::ffi::OsStringExt;
use std::path::Path;
use std::sync::Arc;
use supervisor::{Decides, Proxied, Served};

/// There is none to be made: commands run as their caller.
///
/// # Errors
/// Always.
pub fn account(_: Act) -> Result<String, Error> {
    Err(Error::elsewhere("manage an account for sandboxed commands, which Windows alone needs"))
}

/// Who may change a file is in its mode, which whoever reads a policy looks at.
///
/// # Errors
/// None.
// Elsewhere there are some.
#[allow(clippy::unnecessary_wraps)]
pub fn others_may_change(_: &Path) -> io::Result<bool> {
    Ok(false)
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
            environment = environment::with_proxy(&environment, &launch.set, loopback, network::PROXY.into());
            let own = std::env::current_exe().ok();
            alone = Some(environment::alone(&environment, &launch.set, &rules.policy, own.as_deref()));
        }
        None if proxied || !plan.listen.is_empty() => return Err(invalid("start the proxy without rules")),
        _ => {}
    }
    let listeners = listen::bind(&plan.listen)?;
    let passed = |variables| {
        strings(variables).map_err(|name| invalid(&format!("pass the variable `{}`", name.to_string_lossy())))
    };
    let (environment, alone) = (passed(environment)?, passed(alone.unwrap_or_default())?);
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
    let decides = Decides {
        rules: launch.rules.clone(),
        events: launch.events,
        watches,
        performs: plan.syscalls.performed != Watch::Nothing,
        announce: launch.announce,
        explain: launch.debug.then_some(launch.announce),
        groups: !missing.contains(&Defence::ControlGroup),
    };
    let served = launch.rules.filter(|_| proxied || !listeners.is_empty()).map(|rules| Served {
        proxied: proxied.then(|| Proxied {
            in_force: Arc::new(InForce::new(rules)),
            upstream: launch.upstream,
            live: launch.live,
        }),
        listeners,
    });
    supervisor::supervise(started, signals, plan, &decides, served)
}

/// Whether some program may be read, and not be run: else what cannot be run is hidden.
fn denies_running(policy: &Policy) -> bool {
    policy.rules_of(Verb::Exec).any(|(_, rule)| rule.effect != Effect::Allow)
}

/// `NAME=VALUE` each; what cannot be handed over (an empty name, a NUL) is an error that names the variable.
fn strings(environment: Vec<(OsString, OsString)>) -> Result<Vec<CString>, OsString> {
    environment
        .into_iter()
        .map(|(name, value)| {
            let mut entry = name.clone().into_vec();
            entry.push(b'=');
            entry.extend(value.into_vec());
            CString::new(entry).map_err(|_| name)
        })
        .collect()
}

fn invalid(act: &str) -> Error {
    Error::Setup { act: act.into(), source: io::ErrorKind::InvalidInput.into() }
}

fn current_umask() -> u32 {
    let mask = nix::sys::stat::umask(nix::sys::stat::Mode::empty());
    nix::sys::stat::umask(mask);
    mask.bits()
}
