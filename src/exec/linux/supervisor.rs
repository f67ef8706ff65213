//! The half that stays outside: passes signals in, serves the proxy, watches the wall clock, and tells how it ended.

mod files;
mod sockets;

use super::control::{Control, Failure, Missing, Report, Stage, Word};
use super::listen::{self, Wish};
use super::terminal::Terminal;
use super::tree::Breach;
use super::{Error, Exit, capture, kernel, landlock};
use crate::backend::limits::Limits;
use crate::event::{self, Event, Sink, timestamp};
use crate::ir::{Access, decide};
use crate::proxy::upstream::Upstream;
use crate::proxy::{self, Doors, InForce, Rules};
use crate::vocabulary::LimitKind;
use nix::errno::Errno;
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use nix::sys::resource::{Resource, getrlimit, setrlimit};
use nix::sys::signal::{SigSet, SigmaskHow, Signal, sigprocmask};
use nix::sys::signalfd::{SfdFlags, SignalFd};
use nix::sys::socket::{MsgFlags, SockType, getsockopt, sockopt};
use nix::unistd::Pid;
use std::collections::VecDeque;
use std::net::TcpListener;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::Arc;
use std::time::{Duration, Instant, SystemTime};
use tokio::io::{Interest, unix::AsyncFd};
use tokio::sync::oneshot;

/// How many reports are taken in at once: as many as a socket holds, and more.
const ROUND: usize = 512;

/// Signals that are passed on when somebody sends them.
const FORWARDED: [Signal; 7] = [
    Signal::SIGTERM,
    Signal::SIGINT,
    Signal::SIGHUP,
    Signal::SIGQUIT,
    Signal::SIGUSR1,
    Signal::SIGUSR2,
    Signal::SIGWINCH,
];

/// Signals held back from before the sandbox is made, so that none is lost and none ends us halfway.
pub struct Signals {
    file: SignalFd,
    before: SigSet,
}

impl Signals {
    /// Those that the caller has set to be ignored (`nohup`, a shell's background) stay so, here and inside.
    pub fn hold() -> Result<Signals, Errno> {
        let mut mask = SigSet::empty();
        for signal in FORWARDED.into_iter().filter(|signal| !kernel::is_ignored(*signal as i32)) {
            mask.add(signal);
        }
        mask.add(Signal::SIGCONT);
        let before = mask.thread_swap_mask(SigmaskHow::SIG_BLOCK)?;
        let file = SignalFd::with_flags(&mask, SfdFlags::SFD_CLOEXEC | SfdFlags::SFD_NONBLOCK)?;
        Ok(Signals { file, before })
    }
}

impl Drop for Signals {
    fn drop(&mut self) {
        while let Ok(Some(_)) = self.file.read_signal() {}
        let _ = sigprocmask(SigmaskHow::SIG_SETMASK, Some(&self.before), None);
    }
}

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
    limits: &'d Limits,
    /// When the command was started.
    begun: Option<Instant>,
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
    limits: &Limits,
    decides: &Decides,
    mut served: Option<Served>,
) -> Result<Exit, Error> {
    let terminal = Terminal::remember();
    let time = limits.time.map(Duration::from_millis);
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
        limits,
        begun: None,
        timed_out: false,
        given_up: None,
        ending: None,
        waiting: VecDeque::new(),
    };
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
                (decides.announce)(&not_redirected(&missing));
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

    /// Whether we were stopped and continued meanwhile.
    fn pass_signals(&mut self) -> bool {
        let mut continued = false;
        while let Ok(Some(information)) = self.signals.file.read_signal() {
            let Ok(number) = i32::try_from(information.ssi_signo) else { continue };
            if number == Signal::SIGCONT as i32 {
                // We were stopped, and what was reported before is over: the command goes on with us.
                self.hear_stale();
                let _ = self.started.control.say(Word::Signal(number));
                continued = true;
                continue;
            }
            // What the terminal generates, the command gets from the terminal: it must not arrive twice.
            let sent = matches!(information.ssi_code, libc::SI_USER | libc::SI_QUEUE | libc::SI_TKILL);
            let ends = [libc::SIGTERM, libc::SIGINT, libc::SIGHUP, libc::SIGQUIT].contains(&number);
            if !self.ready && ends {
                // It may have been said already, and not been heard.
                self.hear_stale();
            }
            if !self.ready && ends {
                self.given_up = Some(number);
                self.kill();
            } else if sent {
                let _ = self.started.control.say(Word::Signal(number));
            }
        }
        continued
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
                (self.decides.announce)(&not_performed(Errno::from_raw(errno), self.decides));
            }
            Report::WantsRules => {
                let _ = self.started.control.say(files::rules(self.decides));
            }
            Report::Tried(attempt) => self.files.tell(self.decides, attempt),
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
            if self.limits.processes.is_some() {
                // Else its looks are late where too many processes run; nobody but root may have so many.
                let _ = kernel::favour(self.started.pid);
            }
        }
    }

    /// Whoever reads events hears of it too.
    fn tell_breach(&self, limit: LimitKind, found: u64) {
        let most = self.limits.value(limit).unwrap_or_default();
        let timestamp = timestamp(SystemTime::now());
        self.decides.events.report(Event::Limit(event::Limit { timestamp, limit, most, found }));
    }

    /// Every process in the sandbox dies with its first.
    fn kill(&mut self) {
        self.soon();
        let _ = kernel::send_signal(self.started.pidfd.as_fd(), self.started.ending as i32);
    }

    fn time_out(&mut self) {
        if self.exit.is_none() {
            self.timed_out = true;
            let found = self.begun.map_or(0, |begun| begun.elapsed().as_millis());
            self.tell_breach(LimitKind::Time, u64::try_from(found).unwrap_or(u64::MAX));
        }
        self.kill();
    }

    /// The same wait beside the proxy, on one thread. What the proxy fails with for good ends the run.
    fn serve(
        &mut self,
        sockets: Vec<OwnedFd>,
        deadline: Option<Instant>,
        served: Served,
    ) -> Result<Option<std::io::Error>, Error> {
        let act = "start the proxy";
        let failed = |source| Error::Setup { act: act.into(), source };
        let Served { mut proxied, listeners } = served;
        if let Some(live) =
            proxied.as_mut().and_then(|proxied| Some((proxied.live.take()?, Arc::clone(&proxied.in_force))))
        {
            // Before this thread gives up files; it ends with the process.
            std::thread::Builder::new().spawn(move || live.0(live.1)).map_err(failed)?;
        }
        landlock::keep_resolver_alone().map_err(|errno| setup("give up files before the proxy is started", errno))?;
        // The command has its limits already; these are ours alone, which it must not be able to use up.
        let descriptors = raise_open_files().map_err(|errno| setup("raise the limit of open files", errno))?;
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().map_err(failed)?;
        runtime.block_on(async {
            let limits = proxy::Limits::STANDARD.within(descriptors);
            let events = Arc::clone(&self.decides.events);
            let (questions, mut asked) = tokio::sync::mpsc::unbounded_channel();
            let inbound = inbound(listeners, self.decides.rules.as_deref(), questions).map_err(failed)?;
            let mut inbound = std::pin::pin!(inbound.serve(Arc::clone(&events), limits));
            let serving = match proxied {
                Some(Proxied { in_force, upstream, live: _ }) => {
                    let doors = doors(sockets).map_err(failed)?;
                    let means = proxy::Means::usual(descriptors, upstream);
                    Some(proxy::serve(doors, in_force, events, means))
                }
                None => None,
            };
            let proxy = async {
                match serving {
                    Some(serving) => serving.await,
                    None => std::future::pending().await,
                }
            };
            let watch = |fd: BorrowedFd<'_>| fd.try_clone_to_owned().and_then(readable).map_err(failed);
            let gone = watch(self.started.pidfd.as_fd())?;
            let signals = watch(self.signals.file.as_fd())?;
            let control = watch(self.started.control.as_fd())?;
            let mut deadline = deadline;
            let mut proxy = std::pin::pin!(proxy);
            let mut failure = None;
            loop {
                let earlier = self.earlier(deadline);
                let at = tokio::time::Instant::from_std(earlier.unwrap_or_else(Instant::now));
                let ready = tokio::select! {
                    ready = gone.readable() => ready,
                    ready = signals.readable() => ready,
                    ready = control.readable(), if self.heard != Heard::Closed => ready,
                    () = tokio::time::sleep_until(at), if earlier.is_some() => {
                        if self.is_left() {
                            return Ok(failure);
                        }
                        self.time_out();
                        deadline = None;
                        continue;
                    }
                    Some(question) = asked.recv() => {
                        self.ask_for_socket(question);
                        continue;
                    }
                    // Readiness is told once.
                    () = tokio::task::yield_now(), if self.heard == Heard::InPart => {
                        if self.ended(PollTimeout::ZERO)? {
                            return Ok(failure);
                        }
                        continue;
                    }
                    () = &mut inbound => continue,
                    served = &mut proxy, if failure.is_none() => {
                        failure = Some(served.err().unwrap_or_else(|| std::io::Error::other("it ended")));
                        self.kill();
                        continue;
                    }
                };
                ready.map_err(failed)?.clear_ready();
                if self.ended(PollTimeout::ZERO)? {
                    return Ok(failure);
                }
            }
        })
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
            if let Some(most) = self.limits.value(limit)
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

fn not_redirected(missing: &Missing) -> String {
    let reached = if missing.alone {
        "reach nothing".to_owned()
    } else if missing.unheard.is_empty() {
        "reach the ports that the policy names, and no others".to_owned()
    } else {
        let ports: Vec<String> = missing.unheard.iter().map(u16::to_string).collect();
        format!("reach the ports that the policy names, but for {}, which cannot be listened on", ports.join(", "))
    };
    format!(
        "connections can't be redirected to the proxy ({}): programs that ignore its variables {reached}; see `srt doctor`",
        missing.errno.desc()
    )
}

/// What comes in from outside, and by which rule.
fn inbound(
    listeners: Vec<TcpListener>,
    rules: Option<&Rules>,
    questions: tokio::sync::mpsc::UnboundedSender<Wish>,
) -> std::io::Result<proxy::Inbound> {
    let mut served = Vec::with_capacity(listeners.len());
    for listener in listeners {
        let at = listener.local_addr()?;
        let access = Access::Listen { address: at.ip(), port: at.port() };
        // Only places that a rule allows are bound.
        let rule = rules.and_then(|rules| Some(rules.told(*decide(&rules.policy, &access).decisive.first()?).0));
        let rule = rule.ok_or_else(|| std::io::Error::from(std::io::ErrorKind::PermissionDenied))?;
        served.push((tokio::net::TcpListener::from_std(listener)?, rule));
    }
    Ok(proxy::Inbound { listeners: served, dial: listen::dial(questions) })
}

fn not_performed(errno: Errno, decides: &Decides) -> String {
    let why = match errno {
        Errno::EBUSY => "another sandbox around this one listens to system calls",
        Errno::EINVAL | Errno::ENOSYS => "Linux 5.19 or newer is needed",
        Errno::EPERM => "nothing here may look into another process",
        errno => errno.desc(),
    };
    let untold = if decides.watches { ", and what it is refused of files is not told" } else { "" };
    let later = if decides.performs { "; rules hold for files that exist now, as their comments accept" } else { "" };
    format!("unix sockets are closed to the command, its own too{untold}{later} ({why}); see `srt doctor`")
}

/// The sockets by what they are. They come from our own process inside, before the command was there.
fn doors(sockets: Vec<OwnedFd>) -> std::io::Result<Doors> {
    let (mut listeners, mut datagrams) = (Vec::new(), Vec::new());
    for socket in sockets {
        if getsockopt(&socket, sockopt::SockType)? == SockType::Stream {
            listeners.push(tokio::net::TcpListener::from_std(socket.into())?);
        } else {
            datagrams.push(tokio::net::UdpSocket::from_std(socket.into())?);
        }
    }
    Ok(Doors::new(listeners, datagrams, Arc::new(capture::target)))
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

#[allow(unsafe_code)]
fn readable(fd: OwnedFd) -> std::io::Result<AsyncFd<OwnedFd>> {
    // SAFETY: an `OwnedFd` stands for the same open descriptor for as long as it lives.
    Ok(unsafe { AsyncFd::register_with_interest(fd, Interest::READABLE) }?)
}

fn setup(act: &str, errno: Errno) -> Error {
    Error::Setup { act: act.into(), source: errno.into() }
}
