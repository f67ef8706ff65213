//! `srt run`: a command under a policy.
//!
//! Fails closed: whatever stands between here and a policy in force as written is exit 125 and runs nothing.

use super::arguments::{EngineName, Monitor, Run};
use super::live::Live;
use super::{flags, load, output, print_policy, rule, status};
use sandbox_runtime::backend::Enforced;
use sandbox_runtime::backend::bubblewrap::seccomp::Watch;
use sandbox_runtime::backend::bubblewrap::{Needs, Network, Ports, User};
use sandbox_runtime::bind::{bind, bind_grants};
use sandbox_runtime::compile::artefact::mistake;
use sandbox_runtime::compile::{enforced, environment};
use sandbox_runtime::diagnostic::{Level, any_error, nearest};
use sandbox_runtime::event::{Collector, Ignored, Lines, Repeated, Sink};
use sandbox_runtime::exec::{self, Channel, Engine, Error, EventFile, Exit, Launch, Prepared, Temporary};
use sandbox_runtime::ir::BoundPolicy;
use sandbox_runtime::proxy::InForce;
use sandbox_runtime::proxy::upstream::Upstream;
use sandbox_runtime::vocabulary::{Effect, System};
use std::ffi::OsString;
use std::path::Path;
use std::sync::{Arc, Once, OnceLock};

/// `srt run`, and `srt COMMAND ARG…`
pub fn run(mut run: Run) -> u8 {
    if let Some(line) = run.line.take() {
        run.command = vec![shell().into(), "-c".into(), line];
    }
    let run = &run;
    if run.command.is_empty() && !run.print_policy {
        output::complain("no command to run; write it after `--`, as in `srt run --policy agent.policy -- my-agent`");
        return status::USAGE;
    }
    if let Some(closed) = exec::first_closed(&run.keep_fd) {
        output::complain(format_args!("--keep-fd {closed}: this descriptor is not open"));
        return status::USAGE;
    }
    if let Some(number) = run.control.filter(|number| run.keep_fd.contains(number)) {
        output::complain(format_args!("--control {number}: what changes the rules is not for the command to have"));
        return status::USAGE;
    }
    if run.nest && load::this_system() != System::Linux {
        output::complain("--nest: namespaces are Linux's");
        return refuse();
    }
    if run.nest {
        // user_namespaces(7): who maps the root of the outer namespace needs CAP_SETFCAP there, and nothing inside has it.
        if exec::caller().uid == 0 {
            output::complain(
                "--nest: the kernel lets nothing inside make a namespace when root runs it; be another user",
            );
            return refuse();
        }
        output::complain("--nest: the command may make namespaces and mounts of its own, and Landlock is off");
    }
    match attempts(run) {
        Ok(status) => status,
        Err(Refused::Said) => refuse(),
        Err(Refused::Because(message)) => {
            output::complain(message);
            refuse()
        }
    }
}

/// Who reads a line: the npm package's settings are written for bash.
fn shell() -> &'static str {
    let there =
        |name: &str| ["/bin", "/usr/bin", "/usr/local/bin"].iter().any(|place| Path::new(place).join(name).exists());
    if there("bash") { "bash" } else { "sh" }
}

/// Why nothing was run.
enum Refused {
    /// Diagnostics have said it.
    Said,
    Because(String),
}

impl From<String> for Refused {
    fn from(message: String) -> Self {
        Refused::Because(message)
    }
}

fn refuse() -> u8 {
    output::complain("nothing was run");
    status::SETUP
}

/// Plans and starts; where a file was replaced between the two (an editor's save, a lock file), looks again.
fn attempts(run: &Run) -> Result<u8, Refused> {
    // A lock file that comes and goes all the time is seen in two states; twenty tries find it twice in one.
    const ATTEMPTS: usize = 20;
    // First of all, so that the kernel works while the policy is read and compiled.
    let prepare = || (run.engine == EngineName::Native && !run.print_policy).then(|| exec::prepare(&run.keep_fd));
    let mut prepared = prepare();
    let events = Events::new(run.events.as_deref())?;
    let open = |number| Channel::open(number).map_err(|error| format!("--control {number}: {error}"));
    let channel = run.control.map(open).transpose()?.map(Arc::new);
    for attempt in 1.. {
        match attempt_once(run, prepared, &events, channel.as_ref())? {
            Err(Error::Changed { .. }) if attempt < ATTEMPTS => prepared = prepare(),
            outcome => return end(run, outcome, &events),
        }
    }
    Err(Refused::Said)
}

type Outcome = Result<Option<Exit>, Error>;

/// One try; `None` when there was nothing to run.
fn attempt_once(
    run: &Run,
    prepared: Option<Prepared>,
    events: &Events,
    channel: Option<&Arc<Channel>>,
) -> Result<Outcome, Refused> {
    let bind = if run.print_policy || run.debug { bind } else { bind_grants };
    let temporary = temporary(run)?;
    let place = temporary.as_ref().map(Temporary::path);
    let loaded = load::bound_within(&run.choice, flags::ceilings(&run.within, true)?, bind, place)?;
    let sources = loaded.sources;
    let Some(policy) = loaded.policy.filter(|_| !any_error(&loaded.diagnostics)) else {
        output::print_diagnostics(&loaded.diagnostics, &sources, Level::Error);
        return Err(Refused::Said);
    };
    // Only a root that is closed by default shows who the caller is, and to look that up takes a while.
    let closed = policy.default_read.value != Effect::Allow;
    let user = if closed { exec::caller() } else { User::default() };
    let performs = if run.strict_reads { Watch::Opens } else { Watch::Writes };
    let needs = Needs { nest: run.nest, errors_alone: !run.debug, performs, user };
    let made = enforced(&policy, &sources, &needs).map_err(|fault| mistake(&fault))?;
    let Some(mut enforced) = made.enforced else {
        output::print_diagnostics(&made.diagnostics, &sources, Level::Error);
        return Err(Refused::Said);
    };
    if run.debug {
        output::print_diagnostics(&made.diagnostics, &sources, Level::Note);
    }
    if run.print_policy {
        print_policy::print(&policy, &sources);
        return Ok(Ok(None));
    }
    let directory = std::env::current_dir().map_err(|error| format!("cannot tell where this is: {error}"))?;
    let set = policy.set.keys().map(Into::into).collect();
    let environment = environment(&policy, std::env::vars_os());
    let live = match channel {
        Some(channel) => {
            // What is not allowed now may be later.
            may_connect(&mut enforced);
            Some(Live::new(run, Arc::clone(channel), &policy, &enforced, &sources, &directory)?)
        }
        None => None,
    };
    let upstream = if connects(&enforced) { upstream(run.quiet)? } else { None };
    let told = events.told(&policy);
    let rules = Arc::new(rule::rules(policy, sources));
    let launch = Launch {
        engine: match run.engine {
            EngineName::Native => Engine::Native,
            EngineName::Bwrap => Engine::Bwrap,
        },
        prepared,
        command: run.command.clone(),
        environment,
        set,
        directory,
        keep: run.keep_fd.clone(),
        rules: Some(Arc::clone(&rules)),
        upstream,
        live: live.map(|live| Box::new(move |in_force: Arc<InForce>| live.serve(&in_force)) as _),
        events: told,
        watch: watch(run),
        announce: |said| output::complain(said),
        debug: run.debug,
    };
    let outcome = exec::run(&enforced, launch);
    leave((enforced, rules));
    Ok(outcome.map(Some))
}

/// A directory of the run's own, on systems where no namespace gives it one. What is only printed needs none.
fn temporary(run: &Run) -> Result<Option<Temporary>, String> {
    if run.print_policy {
        return Ok(None);
    }
    Temporary::make().map_err(|error| format!("cannot make a directory for temporary files: {error}"))
}

/// Whether there is a proxy.
fn connects(enforced: &Enforced) -> bool {
    match enforced {
        Enforced::Bubblewrap(plan) => matches!(plan.network, Network::Proxy(_)),
        Enforced::Seatbelt(profile) => profile.proxy,
        Enforced::Wfp(texts) => texts.proxy.is_some(),
    }
}

/// Puts a proxy there, if the system can be told of one after the policy is compiled.
fn may_connect(enforced: &mut Enforced) {
    if let Enforced::Bubblewrap(plan) = enforced
        && plan.network == Network::Loopback
    {
        plan.network = Network::Proxy(Ports::default());
    }
}

/// What is refused of files is worked out where somebody is told.
fn watch(run: &Run) -> Watch {
    match run.monitor {
        Some(Monitor::Reads) => Watch::Opens,
        None if run.quiet && run.events.is_none() => Watch::Nothing,
        None => Watch::Writes,
    }
}

/// To take a policy apart piece by piece takes time, for which the command, or who waits for its end, would wait. The process
/// ends soon, and all memory with it; a policy that is looked at again, at most a few times, costs one more.
fn leave<T>(value: T) {
    std::mem::forget(value);
}

/// Says how it ended, and what was refused meanwhile.
fn end(run: &Run, outcome: Outcome, events: &Events) -> Result<u8, Refused> {
    let command = run.command.first().map(|command| command.display().to_string()).unwrap_or_default();
    let exit = match outcome {
        Ok(Some(exit)) => exit,
        Ok(None) => return Ok(0),
        Err(error @ Error::Start { .. }) => {
            let hint = hint(&run.command, error.status());
            output::complain(format_args!("{error}{hint}"));
            return Ok(error.status());
        }
        Err(error @ Error::Killed) => {
            output::complain(&error);
            events.end(run.quiet);
            return Ok(error.status());
        }
        Err(error @ Error::Changed { .. }) => return Err(Refused::Because(error.to_string())),
        // The policy's doing, not the machine's.
        Err(error @ Error::Setup { .. }) if error.to_string().starts_with("cannot start in `") => {
            output::complain(&error);
            return Err(Refused::Because("start it in a directory that a rule lets it read".to_owned()));
        }
        Err(error) => {
            output::complain(&error);
            if matches!(&error, Error::Setup { source, .. } if source.raw_os_error().is_some()) {
                output::complain("`srt doctor` says what this machine lacks, and what mends it");
            }
            return Err(Refused::Said);
        }
    };
    events.end(run.quiet);
    // The last line.
    match exit {
        Exit::TimedOut => output::complain(format_args!("`{command}` was ended: its time limit is over")),
        Exit::Over(limit) => output::complain(format_args!("`{command}` was ended: it passed `limit {limit}`")),
        // What `main` returns is a byte.
        Exit::Wide(code) => std::process::exit(code.cast_signed()),
        Exit::Code(_) | Exit::Signal(_) => {}
    }
    Ok(exit.status())
}

/// A hint where a command that is not there is a shell's line, or a verb's misspelling.
fn hint(command: &[OsString], status: u8) -> String {
    const VERBS: [&str; 17] = [
        "run",
        "check",
        "compile",
        "explain",
        "diff",
        "fmt",
        "log",
        "draft",
        "test",
        "init",
        "import",
        "export",
        "mcp",
        "doctor",
        "windows",
        "connect",
        "completions",
    ];
    let word = command.first().and_then(|word| word.to_str()).filter(|_| status == 127);
    let is_line = |word: &str| word.contains(|c: char| c.is_whitespace() || ";&|<>()$`*?~={}\"'".contains(c));
    if command.len() == 1 && word.is_some_and(is_line) {
        return "; if it is a line for a shell, write `-c` before it".to_owned();
    }
    let near = word.and_then(|word| nearest(word, VERBS));
    near.map(|near| format!("; did you mean `srt {near}`?")).unwrap_or_default()
}

/// What was refused: tallied for the end, and written down where asked.
struct Events {
    tally: Arc<Collector>,
    lines: Option<Arc<Lines<EventFile>>>,
    /// What stands before these, with one line of what is tried again and again.
    repeated: Option<Arc<Repeated>>,
    /// What passes them on, once there is a policy.
    passed: OnceLock<Arc<Ignored>>,
}

impl Events {
    fn new(path: Option<&Path>) -> Result<Self, String> {
        let create = |path: &Path| {
            let file = EventFile::open(path)
                .map_err(|error| format!("cannot write events to `{}`: {error}", path.display()))?;
            Ok::<_, String>(Arc::new(Lines::new(file)))
        };
        let lines = path.map(create).transpose()?;
        let repeated = lines.clone().map(|lines| Arc::new(Repeated::new(lines)));
        Ok(Self { tally: Arc::default(), lines, repeated, passed: OnceLock::new() })
    }

    /// Where to tell what is refused, but for what the policy asks to leave out. A policy that is looked at again is the same.
    fn told(&self, policy: &BoundPolicy) -> Arc<dyn Sink> {
        let mut sinks: Vec<Arc<dyn Sink>> = vec![Arc::clone(&self.tally) as _];
        sinks.extend(self.repeated.clone().map(|lines| lines as Arc<dyn Sink>));
        let ignored = || Arc::new(Ignored::new(policy.ignores.clone(), Arc::new(sinks)));
        Arc::clone(self.passed.get_or_init(ignored)) as _
    }

    fn end(&self, quiet: bool) {
        if let Some(repeated) = &self.repeated {
            repeated.flush();
        }
        if let Some(lines) = &self.lines {
            match lines.flush() {
                Ok(0) => {}
                Ok(dropped) => output::complain(format_args!("{} not written", output::count_u64(dropped, "event"))),
                Err(error) => output::complain(format_args!("cannot write events: {error}")),
            }
        }
        if let Some(summary) = self.tally.summary().filter(|_| !quiet) {
            output::tell(&format!("{summary}\n"));
        }
        let ignored = self.passed.get().map_or(0, |passed| passed.count());
        if ignored > 0 && !quiet {
            output::tell(&format!("{} ignored, as the policy says\n", output::count_u64(ignored, "refusal")));
        }
    }
}

/// The proxy that the caller's own environment names for its connections.
fn upstream(quiet: bool) -> Result<Option<Upstream>, String> {
    let upstream = exec::upstream().map_err(|error| error.to_string())?;
    // However often the run is planned anew.
    static SAID: Once = Once::new();
    if let Some(upstream) = upstream.as_ref().filter(|_| !quiet) {
        SAID.call_once(|| output::complain(upstream.says()));
    }
    Ok(upstream)
}
