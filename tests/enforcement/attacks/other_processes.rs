//! Looking into, tracing or signalling a process outside.

use crate::sandbox::{Run, for_each_user};
use std::process::{Command, Stdio};

#[test]
fn processes_outside_are_out_of_reach() {
    for_each_user(|user, _| {
        let mut outside = Command::new("sleep");
        if let Some(user) = user {
            use std::os::unix::process::CommandExt;
            outside.uid(user).gid(user);
        }
        let mut outside = outside.arg("1000").stdin(Stdio::null()).spawn().unwrap();
        let script = format!(
            "
import ctypes, os
libc = ctypes.CDLL(None, use_errno=True)
pid = {}
print(os.path.exists('/proc/%d' % pid))
PTRACE_ATTACH = 16
print(libc.ptrace(PTRACE_ATTACH, pid, 0, 0))
try:
    os.kill(pid, 9)
    print('killed')
except OSError as error:
    print(error.errno)
",
            outside.id()
        );
        assert_eq!(Run::python(&script).as_user_of(user).without_landlock().succeeds(), "False\n-1\n3\n");
        assert!(outside.try_wait().unwrap().is_none());
        outside.kill().unwrap();
        outside.wait().unwrap();
    });
}
