//! Signals to the supervisor, which are passed on: held from before the sandbox is made to its end.

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
