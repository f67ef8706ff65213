//! The half that stays outside: passes signals in, serves the proxy, watches the wall clock, and tells how it ended.

mod connections;
mod files;
mod first;
mod held;
mod lacking;
mod serving;
mod signals;
mod sockets;

pub use signals::Signals;

use super::control::{Control, Failure, Missing, Report, Stage, Word};
use super::listen::Wish;
use super::terminal::Terminal;
use super::tree::Breach;
use super::{Error, Exit, kernel};
use crate::backend::bubblewrap::Plan;
use crate::event::{self, Event, Sink, timestamp};
use crate::proxy::upstream::Upstream;
use crate::proxy::{InForce, Rules};
use crate::vocabulary::LimitKind;
use first::First;
use held::Holder;
use nix::errno::Errno;
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use nix::sys::resource::{Resource, getrlimit, setrlimit};
use nix::sys::signal::Signal;
use nix::sys::socket::MsgFlags;
use nix::unistd::Pid;
use std::collections::VecDeque;
use std::net::TcpListener;
use std::os::fd::{AsFd, OwnedFd};
use std::sync::Arc;
use std::time::{Duration, Instant, SystemTime};
use tokio::sync::oneshot;

/// How many reports are taken in at once: as many as a socket holds, and more.
const ROUND: usize = 512;

/// A sandbox that is being set up.
pub struct Started {
    pub pid: Pid,
    pub pidfd: OwnedFd,
    pub control: Control,
    /// What ends it, with everything in the sandbox.
    pub ending: Signal,
    /// What it means when it ends without a word, before the command is started.
    pub silence: &'static str,
}

/// By what connections are decided, and who is told.
pub struct Decides {
    /// Those that the command was started with. Without rules nothing is allowed.
    pub rules: Option<Arc<Rules>>,
    pub events: Arc<dyn Sink>,
    /// Whether what the command tries with files shall be told.
    pub watches: bool,
    /// Calls that change files are to be made in the command's place.
    pub performs: bool,
    pub announce: fn(&str),
    /// Told what works as it usually does, if somebody is.
    pub explain: Option<fn(&str)>,
    /// Limits may be held by a control group.
    pub groups: bool,
}

/// What goes on beside the command.
pub struct Served {
    pub proxied: Option<Proxied>,
    /// On the host, for servers of the command's.
    pub listeners: Vec<TcpListener>,
}

/// What the proxy needs.
pub struct Proxied {
    pub in_force: Arc<InForce>,
    pub upstream: Option<Upstream>,
    /// Replaces the rules in force.
    pub live: Option<Box<dyn FnOnce(Arc<InForce>) + Send>>,
}

/// How much of what came over the control socket was taken in.
#[derive(Clone, Copy, PartialEq)]
enum Heard {
    All,
    /// There may be more on it.
    InPart,
    /// Nothing more comes.
    Closed,
}

struct Supervisor<'d> {
    started: Started,
    decides: &'d Decides,
    signals: Signals,
    /// What was made inside, and what was not.
    doors: Option<(Vec<OwnedFd>, Option<Missing>)>,
    ready: bool,
    heard: Heard,
    files: files::Told,
    failure: Option<Failure>,
    exit: Option<Exit>,
    plan: &'d Plan,
    /// Who holds its limits of all processes together. A group goes when this does, after everything in it.
    holder: Holder,
    /// When the command was started.
    begun: Option<Instant>,
    /// pid 1, once the command runs.
    first: Option<First>,
    /// It was told that somebody has stopped that.
    told_of_stop: bool,
    timed_out: bool,
    given_up: Option<i32>,
    /// When the sandbox should be gone at the latest, once its end has come.
    ending: Option<Instant>,
    /// Who waits for a socket of the sandbox's network, in the order in which pid 1 was asked.
    waiting: VecDeque<oneshot::Sender<std::io::Result<OwnedFd>>>,
}

/// Waits for the end of the command.
pub fn supervise(
    started: Started,
    signals: Signals,
    plan: &Plan,
    decides: &Decides,
    mut served: Option<Served>,
) -> Result<Exit, Error> {
    let terminal = Terminal::remember();
    let time = plan.limits.time.map(Duration::from_millis);
    let mut supervisor = Supervisor {
        started,
        decides,
        signals,
        doors: None,
        ready: false,
        heard: Heard::All,
        files: files::Told::default(),
        failure: None,
        exit: None,
        plan,
        holder: Holder::Unknown,
        begun: None,
        first: None,
        told_of_stop: false,
        timed_out: false,
        given_up: None,
        ending: None,
        waiting: VecDeque::new(),
    };
    supervisor.hold_early();
    let mut deadline = None;
    let mut proxy_failure = None;
    while !supervisor.ended(timeout(supervisor.earlier(deadline)))? && !supervisor.is_left() {
        if supervisor.ready && deadline.is_none() {
            supervisor.begin();
            deadline = time.and_then(|time| Instant::now().checked_add(time));
        }
        if let Some((sockets, missing)) = supervisor.doors.take()
            && let Some(served) = served.take()
        {
            if let Some(missing) = missing {
                (decides.announce)(&lacking::not_redirected(&missing));
            }
            proxy_failure = supervisor.serve(sockets, deadline, served)?;
            break;
        }
        if deadline.is_some_and(|deadline| Instant::now() >= deadline) {
            supervisor.time_out();
            deadline = None;
        }
    }
    terminal.restore();
    match proxy_failure {
        Some(source) => Err(Error::Setup { act: "go on without the proxy".into(), source }),
        None => supervisor.outcome(),
    }
}

fn timeout(deadline: Option<Instant>) -> PollTimeout {
    let Some(deadline) = deadline else { return PollTimeout::NONE };
    let left = deadline.saturating_duration_since(Instant::now()) + Duration::from_millis(1);
    PollTimeout::try_from(left).unwrap_or(PollTimeout::MAX)
}

impl Supervisor<'_> {
    /// Waits for one round of whatever happens first; whether the sandbox is gone.
    fn ended(&mut self, timeout: PollTimeout) -> Result<bool, Error> {
        let (gone, signals, control) = {
            let mut ready = vec![
                PollFd::new(self.started.pidfd.as_fd(), PollFlags::POLLIN),
                PollFd::new(self.signals.file.as_fd(), PollFlags::POLLIN),
            ];
            if self.heard != Heard::Closed {
                ready.push(PollFd::new(self.started.control.as_fd(), PollFlags::POLLIN));
            }
            match poll(&mut ready, timeout) {
                Ok(_) => (),
                Err(Errno::EINTR) => return Ok(false),
                Err(errno) => return Err(setup("wait for the sandbox", errno)),
            }
            let any = |at: usize| ready.get(at).is_some_and(|ready| ready.any().unwrap_or(true));
            (any(0), any(1), any(2))
        };
        if signals {
            self.pass_signals();
        }
        if control || gone || self.heard == Heard::InPart {
            self.hear();
        }
        if gone {
            // Nobody is left who could say more.
            while self.heard == Heard::InPart {
                self.hear();
            }
            let _ = nix::sys::wait::waitpid(self.started.pid, None);
        }
        Ok(gone)
    }

    /// Takes in what came from inside. The command can make reports without end: after what was there when this began, others
    /// have their turn.
    fn hear(&mut self) {
        for _ in 0..ROUND {
            let Some(report) = self.receive() else { return };
            if !matches!(report, Report::Stopped(_)) {
                self.take(report);
            } else if !self.pass_signals() {
                // Stopped by itself, and not together with us by the terminal (then we have been continued by now):
                // whoever started us shall see that, and continue us.
                let _ = nix::sys::signal::raise(Signal::SIGSTOP);
                self.pass_signals();
            }
        }
    }

    /// The same, but for stops, which are over or come again.
    fn hear_stale(&mut self) {
        for _ in 0..ROUND {
            let Some(report) = self.receive() else { return };
            self.take(report);
        }
    }

    fn receive(&mut self) -> Option<Report> {
        while self.heard != Heard::Closed {
            match self.started.control.receive(MsgFlags::MSG_DONTWAIT) {
                Ok(Some(report)) => {
                    self.heard = Heard::InPart;
                    return Some(report);
                }
                Err(Errno::EINTR) => (),
                Err(Errno::EAGAIN) => {
                    self.heard = Heard::All;
                    return None;
                }
                Ok(None) | Err(_) => self.heard = Heard::Closed,
            }
        }
        None
    }

    fn take(&mut self, report: Report) {
        match report {
            Report::Ready(sockets, missing) => {
                self.ready = true;
                self.doors = Some((sockets, missing));
                self.hold();
            }
            Report::Failed(failure) => {
                self.failure.get_or_insert(failure);
            }
            Report::Exited(code) => self.end(Exit::Code(code)),
            Report::Signaled(signal) => self.end(Exit::Signal(signal)),
            Report::Stopped(_) => (),
            Report::Socket(socket) => {
                if let Some(waiting) = self.waiting.pop_front() {
                    // Whoever asked may have given up.
                    let _ = waiting.send(socket.map_err(std::io::Error::from_raw_os_error));
                }
            }
            Report::Unheard(errno) => {
                (self.decides.announce)(&lacking::not_performed(Errno::from_raw(errno), self.decides));
            }
            Report::WantsRules => {
                let _ = self.started.control.say(files::rules(self.decides));
            }
            Report::Tried(attempt) => self.files.tell(self.decides, attempt),
            Report::Unreached(unreached) => connections::unreached(self.decides, &unreached),
            Report::Passed(Breach { limit, found }) => {
                self.tell_breach(limit, found);
                self.end(Exit::Over(limit));
            }
            Report::Untold(count) => self.decides.events.report(Event::Dropped { count }),
            Report::Unseen(what) => sockets::unseen(self.decides, what),
            Report::Asked(question) => {
                let allowed = sockets::may_connect(self.decides, &question);
                let _ = self.started.control.say(Word::Answer(question.number, allowed));
            }
        }
    }

    /// Asks pid 1 for a socket; the answer comes with its reports.
    fn ask_for_socket(&mut self, (v6, answer): Wish) {
        match self.started.control.say(Word::Socket { v6 }) {
            Ok(()) => self.waiting.push_back(answer),
            Err(errno) => drop(answer.send(Err(errno.into()))),
        }
    }

    fn end(&mut self, exit: Exit) {
        self.exit = Some(exit);
        self.soon();
    }

    /// From now on it takes as long as what ends in order takes, and much more.
    fn soon(&mut self) {
        const PATIENCE: Duration = Duration::from_secs(10);
        self.ending = self.ending.or_else(|| Instant::now().checked_add(PATIENCE));
    }

    fn earlier(&self, deadline: Option<Instant>) -> Option<Instant> {
        self.ending.into_iter().chain(deadline).min()
    }

    /// Whether its end has come, and it does not end: the kernel lets nobody go who waits for a file system that does not answer.
    fn is_left(&self) -> bool {
        let is_left = self.ending.is_some_and(|ending| Instant::now() >= ending);
        if is_left {
            let process = self.started.pid;
            (self.decides.announce)(&format!(
                "process {process} of the sandbox cannot end: it waits for a file system that does not answer; what the command was doing there is left to that"
            ));
        }
        is_left
    }

    /// The command was started.
    fn begin(&mut self) {
        if self.begun.is_none() {
            self.begun = Some(Instant::now());
            self.first = First::find(self.started.pid);
            if self.plan.limits.processes.is_some() {
                // Else its looks are late where too many processes run; nobody but root may have so many.
                let _ = kernel::favour(self.first.as_ref().map_or(self.started.pid, |first| first.pid));
            }
        }
    }

    /// Whoever reads events hears of it too.
    fn tell_breach(&self, limit: LimitKind, found: u64) {
        let most = self.plan.limits.value(limit).unwrap_or_default();
        let timestamp = timestamp(SystemTime::now());
        self.decides.events.report(Event::Limit(event::Limit { timestamp, limit, most, found }));
    }

    /// Every process in the sandbox dies with its first.
    fn kill(&mut self) {
        self.soon();
        let _ = kernel::send_signal(self.started.pidfd.as_fd(), self.started.ending as i32);
        // What stands between us and pid 1 may have been stopped.
        let _ = kernel::send_signal(self.started.pidfd.as_fd(), Signal::SIGCONT as i32);
    }

    fn time_out(&mut self) {
        if self.exit.is_none() {
            self.timed_out = true;
            let found = self.begun.map_or(0, |begun| begun.elapsed().as_millis());
            self.tell_breach(LimitKind::Time, u64::try_from(found).unwrap_or(u64::MAX));
            self.tell_of_stop();
        }
        self.kill();
    }

    fn outcome(mut self) -> Result<Exit, Error> {
        if let Some(Failure { stage, act, errno }) = self.failure.take() {
            let source = std::io::Error::from_raw_os_error(errno);
            return Err(match stage {
                Stage::Setup => Error::Setup { act, source },
                Stage::Start => Error::Start { command: act, source },
                Stage::Changed => Error::Changed { path: act },
            });
        }
        if self.timed_out {
            return Ok(Exit::TimedOut);
        }
        // The kernel's own limit of one process came first.
        for (signal, limit) in [(libc::SIGXCPU, LimitKind::Cpu), (libc::SIGXFSZ, LimitKind::Filesize)] {
            if let Some(most) = self.plan.limits.value(limit)
                && self.exit == Some(Exit::Signal(signal))
            {
                self.tell_breach(limit, most);
                self.exit = Some(Exit::Over(limit));
            }
        }
        match (self.exit, self.given_up) {
            (Some(exit), _) => Ok(exit),
            (None, Some(signal)) => Ok(Exit::Signal(signal)),
            // The command has been started, and nobody has told its end.
            (None, None) if self.ready => Err(Error::Killed),
            (None, None) => Err(Error::Setup {
                act: self.started.silence.into(),
                source: std::io::Error::from_raw_os_error(libc::ESRCH),
            }),
        }
    }
}

/// To what the caller may have at all; how many that is.
pub fn raise_open_files() -> Result<u64, Errno> {
    let (_, hard) = getrlimit(Resource::RLIMIT_NOFILE)?;
    setrlimit(Resource::RLIMIT_NOFILE, hard, hard)?;
    Ok(hard)
}

impl Drop for Supervisor<'_> {
    fn drop(&mut self) {
        // On every way out, an error's included.
        self.kill();
    }
}

fn setup(act: &str, errno: Errno) -> Error {
    Error::Setup { act: act.into(), source: errno.into() }
}
