//! Looking into, tracing or signalling a process outside.
//!
//! Without a process namespace it is seen and killed. It still cannot be traced, since it is in another user namespace,
//! and no kernel makes that an exception: so for `ptrace` and `process_vm_readv` there is no counter-run.

use crate::sandbox::{Run, for_each_user};
use sandbox_runtime::exec::linux::Defence;
use std::os::unix::process::ExitStatusExt;
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
buffer = (ctypes.c_char * 16)()
vector = (ctypes.c_size_t * 2)(ctypes.addressof(buffer), 16)
print(libc.process_vm_readv(pid, vector, 1, vector, 1, 0))
try:
    os.kill(pid, 9)
    print('killed')
except OSError as error:
    print(error.errno)
",
            outside.id()
        );
        let run = Run::python(&script).as_user_of(user).without_landlock();
        assert_eq!(run.succeeds(), "False\n-1\n-1\n3\n");
        assert!(outside.try_wait().unwrap().is_none());
        if !run.bwrap {
            // A `/proc` of the run's own needs the namespace; the host's is there instead.
            let open = run.without_mount("/proc").without(Defence::ProcessNamespace);
            assert_eq!(open.succeeds(), "True\n-1\n-1\nkilled\n");
            assert_eq!(outside.wait().unwrap().signal(), Some(9));
            return;
        }
        outside.kill().unwrap();
        outside.wait().unwrap();
    });
}
