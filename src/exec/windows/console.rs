//! What is typed to end a command is the command's: this process stays until it has put everything back.

use super::os::done;
use std::io;
use windows_sys::Win32::System::Console::{CTRL_BREAK_EVENT, CTRL_C_EVENT, CTRL_CLOSE_EVENT, SetConsoleCtrlHandler};

/// Whether somebody asked for an end. The command has no console of ours, and cannot hear it by itself.
static ASKED: std::sync::atomic::AtomicBool = std::sync::atomic::AtomicBool::new(false);

extern "system" fn asked(event: u32) -> i32 {
    let known = matches!(event, CTRL_C_EVENT | CTRL_BREAK_EVENT | CTRL_CLOSE_EVENT);
    if known {
        ASKED.store(true, std::sync::atomic::Ordering::SeqCst);
    }
    i32::from(known)
}

/// Does not end by Ctrl-C and the like, and remembers that it was asked to.
///
/// # Errors
/// Whatever the system does not take.
#[allow(unsafe_code)]
pub fn take_interrupts() -> io::Result<()> {
    // SAFETY: the function is there as long as the process, and does nothing but set a flag.
    done(unsafe { SetConsoleCtrlHandler(Some(asked), 1) })
}

/// Whether somebody asked for an end since then.
pub fn is_asked() -> bool {
    ASKED.load(std::sync::atomic::Ordering::SeqCst)
}
