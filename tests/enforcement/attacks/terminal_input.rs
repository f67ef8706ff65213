//! TIOCSTI types into the caller's terminal, which the command shares: the shell would run it after us.

use crate::sandbox::{Run, users};
use std::process::Command;

const ATTACK: &str = "
import fcntl, sys, termios
for request in (termios.TIOCSTI, termios.TIOCSTI | 1 << 32, 0x541C):
    try:
        fcntl.ioctl(0, request & 0xffffffff, b'x' if request != 0x541C else b'\\x02')
        print('typed')
    except OSError as error:
        print('errno', error.errno)
import ctypes
print(ctypes.CDLL(None, use_errno=True).syscall(16, 0, ctypes.c_long(termios.TIOCSTI | 1 << 32), b'x'))
print('done')
";

#[test]
fn nothing_is_typed_into_the_terminal() {
    for user in users() {
        let (mut process, _plan) = Run::python(ATTACK).as_user_of(user).process();
        process.stdin(std::process::Stdio::inherit());
        let mut session = rexpect::session::spawn_command(process, Some(20_000)).unwrap();
        let said = session.exp_string("done").unwrap();
        assert_eq!(said.matches("errno 1\r").count(), 3, "{said}");
        assert!(said.contains("-1") && !said.contains("typed"), "{said}");
    }
}

#[test]
fn outside_it_would_be() {
    // Where the kernel still lets anybody do it (dev.tty.legacy_tiocsti).
    if std::fs::read_to_string("/proc/sys/dev/tty/legacy_tiocsti").is_ok_and(|text| text.trim() == "0") {
        return;
    }
    let mut process = Command::new("python3");
    process.args(["-c", ATTACK]);
    let mut session = rexpect::session::spawn_command(process, Some(20_000)).unwrap();
    assert!(session.exp_string("done").unwrap().contains("typed"));
}
