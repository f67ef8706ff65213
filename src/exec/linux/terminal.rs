//! The caller's terminal: the command may make itself its foreground (a shell does); afterwards it is ours again.

use nix::sys::signal::{SigSet, SigmaskHow, Signal};
use nix::unistd::{getpgrp, tcgetpgrp, tcsetpgrp};
use std::os::fd::AsFd;

/// Whether we were the terminal's foreground.
#[derive(Debug)]
pub struct Terminal {
    foreground: bool,
}

impl Terminal {
    pub fn remember() -> Terminal {
        Terminal { foreground: tcgetpgrp(std::io::stdin().as_fd()).is_ok_and(|group| group == getpgrp()) }
    }

    /// Takes the foreground back from a group that is gone, as the shell does that started us.
    pub fn restore(&self) {
        let stdin = std::io::stdin();
        if !self.foreground || tcgetpgrp(stdin.as_fd()).is_ok_and(|group| group == getpgrp()) {
            return;
        }
        let mut mask = SigSet::empty();
        mask.add(Signal::SIGTTOU);
        if let Ok(before) = mask.thread_swap_mask(SigmaskHow::SIG_BLOCK) {
            let _ = tcsetpgrp(stdin.as_fd(), getpgrp());
            let _ = before.thread_set_mask();
        }
    }
}
