//! TIOCSTI types into the caller's terminal, which the command shares: the shell would run it after us.

use crate::sandbox::{Run, for_each_user};

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

fn said(run: &Run) -> String {
    let (mut process, _plan) = run.process();
    process.stdin(std::process::Stdio::inherit());
    let mut session = rexpect::session::spawn_command(process, Some(20_000)).unwrap();
    session.exp_string("done").unwrap()
}

#[test]
fn nothing_is_typed_into_the_terminal() {
    for_each_user(|user, _| {
        let run = Run::python(ATTACK).as_user_of(user);
        let defended = said(&run);
        assert_eq!(defended.matches("errno 1\r").count(), 3, "{defended}");
        assert!(defended.contains("-1") && !defended.contains("typed"), "{defended}");
        // Some kernels have closed TIOCSTI themselves (dev.tty.legacy_tiocsti): then there is nothing to show.
        if std::fs::read_to_string("/proc/sys/dev/tty/legacy_tiocsti").is_ok_and(|text| text.trim() == "0") {
            return;
        }
        let open = said(&run.with_call("ioctl"));
        // The filter cut to 32 bits what the kernel cuts as well.
        assert!(open.matches("typed").count() >= 2 && open.contains("\n0\r"), "{open}");
    });
}
