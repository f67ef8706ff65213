//! The half that stays outside: starts the command in a process group of its own, passes signals on, gives it the terminal, watches
//! the wall clock, and tells how it ended.

use super::super::launch::{Error, Exit};
use super::super::unix::inherited::{self, FORWARDED};
use super::command::Command;
use super::limits::Held;
use nix::errno::Errno;
use nix::sys::signal::{SigSet, SigmaskHow, Signal, killpg, raise};
use nix::unistd::{Pid, getpgrp, tcgetpgrp, tcsetpgrp};
use std::io;
use std::os::fd::AsFd;
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::process::Child;
use std::sync::mpsc;
use std::thread;
use std::time::{Duration, Instant};

/// What happens while the command runs.
#[derive(Debug)]
pub enum Event {
    /// It has ended, and waits for being asked how.
    Ended,
    Stopped,
    Signal(Signal),
    Proxy(io::Error),
}

/// Signals held back from before any thread is there, so that none is lost and none ends us halfway.
pub struct Signals {
    held: SigSet,
    before: SigSet,
}

impl Signals {
    /// Those that the caller has set to be ignored (`nohup`) stay so, here and inside.
    ///
    /// # Errors
    /// Whatever sigprocmask(2) fails with.
    pub fn hold() -> io::Result<Self> {
        let mut held = SigSet::empty();
        for signal in FORWARDED.into_iter().filter(|signal| !inherited::is_ignored(*signal as i32)) {
            held.add(signal);
        }
        let before = held.thread_swap_mask(SigmaskHow::SIG_BLOCK)?;
        Ok(Self { held, before })
    }
}

/// Starts the command and waits for its end.
///
/// # Errors
/// Where it could not be started, or the run was given up.
pub fn supervise(
    command: &Command,
    held: Held,
    keep: &[i32],
    signals: Option<Signals>,
    events: &mpsc::Sender<Event>,
    happened: &mpsc::Receiver<Event>,
) -> Result<Exit, Error> {
    let terminal = Terminal::of_ours();
    let mask = signals.as_ref().map_or_else(SigSet::thread_get_mask, |signals| Ok(signals.before));
    let setup = |act: &str| {
        let act = act.to_owned();
        move |source: io::Error| Error::Setup { act, source }
    };
    let mask = mask.map_err(io::Error::from).map_err(setup("hold signals back"))?;
    let child = start(command, held, keep, mask, terminal).map_err(setup("start sandbox-exec"))?;
    let group = Pid::from_raw(child.id().cast_signed());
    let mut supervised = Supervised { child, group, terminal, ended: false };
    let told = watch(group, signals, events).map_err(setup("wait for the command"));
    let ended = told.and_then(|()| supervised.wait(happened, command.time.map(Duration::from_millis)));
    supervised.kill();
    terminal.take(getpgrp());
    ended
}

/// Starts the threads that tell what happens.
fn watch(group: Pid, signals: Option<Signals>, events: &mpsc::Sender<Event>) -> io::Result<()> {
    let to = events.clone();
    // Whoever waits may be gone; then so is what is told.
    thread::Builder::new().spawn(move || {
        loop {
            let event = changed(group);
            let last = matches!(event, Event::Ended);
            if to.send(event).is_err() || last {
                return;
            }
        }
    })?;
    if let Some(signals) = signals {
        let to = events.clone();
        thread::Builder::new().spawn(move || {
            while let Ok(signal) = signals.held.wait() {
                if to.send(Event::Signal(signal)).is_err() {
                    return;
                }
            }
        })?;
    }
    Ok(())
}

#[allow(unsafe_code)]
fn start(command: &Command, held: Held, keep: &[i32], mask: SigSet, terminal: Terminal) -> io::Result<Child> {
    let keep: Vec<i32> = keep.to_vec();
    let mut started = command.started();
    started.process_group(0);
    let before = move || {
        close_others(&keep);
        if terminal.foreground {
            // Before it can read from there, or it would be stopped. It is not in front yet, and must not be stopped for this.
            let mut stops = SigSet::empty();
            stops.add(Signal::SIGTTOU);
            stops.thread_swap_mask(SigmaskHow::SIG_BLOCK)?;
            tcsetpgrp(inherited::borrow(0)?, getpgrp())?;
        }
        held.set()?;
        mask.thread_set_mask()?;
        Ok(())
    };
    // SAFETY: between fork and exec there is one thread, and the closure makes system calls alone: it allocates nothing and takes
    // no lock.
    unsafe { started.pre_exec(before) };
    started.spawn()
}

/// Lets nobody inherit what is not to be kept. Descriptors of ours are closed by exec already; these are the caller's.
#[allow(unsafe_code)]
fn close_others(keep: &[i32]) {
    // SAFETY: asks for a number.
    let most = unsafe { libc::sysconf(libc::_SC_OPEN_MAX) };
    let most = i32::try_from(most).unwrap_or(i32::MAX).clamp(3, 1 << 16);
    for fd in 3..most {
        if keep.contains(&fd) {
            continue;
        }
        // SAFETY: takes integers only; of a number that is not open it is an error, which is none of ours.
        unsafe { libc::fcntl(fd, libc::F_SETFD, libc::FD_CLOEXEC) };
    }
}

/// Waits until a child has stopped or ended. One that has ended stays to be asked, so that its number is nobody else's.
#[allow(unsafe_code)]
fn changed(child: Pid) -> Event {
    let id = libc::id_t::try_from(child.as_raw()).unwrap_or_default();
    loop {
        // SAFETY: plain data, for which zero is a valid value.
        let mut told: libc::siginfo_t = unsafe { std::mem::zeroed() };
        let options = libc::WEXITED | libc::WSTOPPED | libc::WNOWAIT;
        // SAFETY: of a child of ours; the call fills in the structure.
        let answer = unsafe { libc::waitid(libc::P_PID, id, &raw mut told, options) };
        if answer != 0 {
            if Errno::last() == Errno::EINTR {
                continue;
            }
            return Event::Ended;
        }
        if told.si_code != libc::CLD_STOPPED {
            return Event::Ended;
        }
        // SAFETY: as above. That it has stopped is told once.
        unsafe { libc::waitid(libc::P_PID, id, &raw mut told, libc::WSTOPPED) };
        return Event::Stopped;
    }
}

struct Supervised {
    child: Child,
    group: Pid,
    terminal: Terminal,
    ended: bool,
}

impl Supervised {
    fn wait(&mut self, happened: &mpsc::Receiver<Event>, time: Option<Duration>) -> Result<Exit, Error> {
        let end = time.and_then(|time| Instant::now().checked_add(time));
        loop {
            let event = match end {
                None => happened.recv().ok(),
                Some(end) => match happened.recv_timeout(end.saturating_duration_since(Instant::now())) {
                    Ok(event) => Some(event),
                    Err(mpsc::RecvTimeoutError::Timeout) => return Ok(Exit::TimedOut),
                    Err(mpsc::RecvTimeoutError::Disconnected) => None,
                },
            };
            match event {
                Some(Event::Ended) | None => return self.exit(),
                Some(Event::Signal(signal)) => self.pass(signal),
                Some(Event::Stopped) => self.stop(),
                Some(Event::Proxy(source)) => {
                    return Err(Error::Setup { act: "go on without the proxy".into(), source });
                }
            }
        }
    }

    /// How it ended. Nothing that it left in its group outlives it; until it was asked how it ended, the group's number is its own.
    fn exit(&mut self) -> Result<Exit, Error> {
        let _ = killpg(self.group, Signal::SIGKILL);
        self.ended = true;
        let status =
            self.child.wait().map_err(|source| Error::Setup { act: "tell how the command ended".into(), source })?;
        Ok(match (status.code(), status.signal()) {
            (Some(code), _) => Exit::Code(u8::try_from(code).unwrap_or(u8::MAX)),
            (None, signal) => Exit::Signal(signal.unwrap_or_default()),
        })
    }

    /// To all of its group. What the terminal generates it has from there: it is in front, and we are not.
    fn pass(&self, signal: Signal) {
        let _ = killpg(self.group, signal);
    }

    /// Stops with it: whoever started us shall see that, and continue us both.
    fn stop(&self) {
        self.terminal.take(getpgrp());
        let _ = raise(Signal::SIGSTOP);
        self.terminal.take(self.group);
        let _ = killpg(self.group, Signal::SIGCONT);
    }

    /// Ends the whole group, unless that was done.
    fn kill(&mut self) {
        if self.ended {
            return;
        }
        let _ = killpg(self.group, Signal::SIGKILL);
        let _ = self.child.wait();
    }
}

/// The caller's terminal, where we are in front of it.
#[derive(Debug, Clone, Copy)]
struct Terminal {
    foreground: bool,
}

impl Terminal {
    fn of_ours() -> Self {
        Self { foreground: tcgetpgrp(io::stdin().as_fd()).is_ok_and(|group| group == getpgrp()) }
    }

    /// Puts a group in front, as a shell does.
    fn take(self, group: Pid) {
        if !self.foreground {
            return;
        }
        let mut stops = SigSet::empty();
        stops.add(Signal::SIGTTOU);
        if let Ok(before) = stops.thread_swap_mask(SigmaskHow::SIG_BLOCK) {
            let _ = tcsetpgrp(io::stdin().as_fd(), group);
            let _ = before.thread_set_mask();
        }
    }
}
