//! Signals to the supervisor, which are passed on: held from before the sandbox is made to its end. And pid 1, which passes them on
//! inside, where somebody has stopped it.

use super::{Supervisor, Word};
use crate::exec::linux::kernel;
use crate::exec::unix::inherited::FORWARDED;
use nix::errno::Errno;
use nix::sys::signal::{SigSet, SigmaskHow, Signal, sigprocmask};
use nix::sys::signalfd::{SfdFlags, SignalFd};

/// Signals held back from before the sandbox is made, so that none is lost and none ends us halfway.
pub struct Signals {
    pub(super) file: SignalFd,
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
        // That a process of ours was stopped is told by it.
        mask.add(Signal::SIGCHLD);
        let before = mask.thread_swap_mask(SigmaskHow::SIG_BLOCK)?;
        let file = SignalFd::with_flags(&mask, SfdFlags::SFD_CLOEXEC | SfdFlags::SFD_NONBLOCK)?;
        Ok(Signals { file, before })
    }
}

impl Supervisor<'_> {
    /// Whether we were stopped and continued meanwhile.
    pub(super) fn pass_signals(&mut self) -> bool {
        let (mut continued, mut changed) = (false, false);
        while let Ok(Some(information)) = self.signals.file.read_signal() {
            let Ok(number) = i32::try_from(information.ssi_signo) else { continue };
            if number == Signal::SIGCHLD as i32 {
                changed = true;
                continue;
            }
            if number == Signal::SIGCONT as i32 {
                // We were stopped, and what was reported before is over: the command goes on with us.
                self.wake_first();
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
            if ends {
                self.wake_first();
            }
            if !self.ready && ends {
                self.given_up = Some(number);
                self.kill();
            } else if sent {
                let _ = self.started.control.say(Word::Signal(number));
            }
        }
        // Who stops the whole of our process group stops pid 1 with us, and continues both.
        if changed && !continued {
            self.tell_of_stop();
        }
        continued
    }

    /// Has pid 1 go on where somebody has stopped it: no signal would reach the command, and its end would not be told.
    fn wake_first(&mut self) {
        self.tell_of_stop();
        if let Some(first) = self.first.as_ref().filter(|first| first.is_stopped()) {
            first.go_on();
        }
    }

    /// Says so where pid 1 is stopped: whoever wonders why nothing goes on could not know.
    pub(super) fn tell_of_stop(&mut self) {
        if let Some(first) = self.first.as_ref().filter(|first| !self.told_of_stop && first.is_stopped()) {
            (self.decides.announce)(&format!(
                "the sandbox's first process, {}, was stopped from outside: what the command asks of it waits until somebody continues it, or ends srt",
                first.pid
            ));
            self.told_of_stop = true;
        }
    }
}

impl Drop for Signals {
    fn drop(&mut self) {
        while let Ok(Some(_)) = self.file.read_signal() {}
        let _ = sigprocmask(SigmaskHow::SIG_SETMASK, Some(&self.before), None);
    }
}
