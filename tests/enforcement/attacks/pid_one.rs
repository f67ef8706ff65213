//! pid 1 began as a copy of the supervisor: its memory holds the caller's whole environment, its control socket speaks to
//! the supervisor, and it is of the same user. Where it serves system calls, the two capabilities that it has kept for that
//! are a second wall around it.

use crate::sandbox::{Run, for_each_user};
use sandbox_runtime::exec::linux::Defence;

#[test]
fn pid_one_gives_nothing_away() {
    for_each_user(|user, _| {
        let run = Run::shell(
            "head -c 1 /proc/1/environ; head -c 1 /proc/1/mem; readlink /proc/1/cwd /proc/1/root /proc/1/exe /proc/1/fd/*; \
             echo x > /proc/1/fd/0; head -1 /proc/1/maps; kill -KILL 1; kill -STOP 1; kill -TERM 1; echo alive",
        )
        .as_user_of(user)
        .without_landlock();
        assert_eq!(run.succeeds(), "alive\n");
        let open = run.with_nobody_listening().without(Defence::ClosedPid1).succeeds();
        assert!(open.contains("socket:[") && open.ends_with("alive\n"), "{open}");
    });
}

/// Traces pid 1, and takes each of its descriptors.
const ATTACK: &str = "
import ctypes, os
libc = ctypes.CDLL(None, use_errno=True)
PTRACE_SEIZE, PIDFD_GETFD = 0x4206, 438
print('traced' if libc.ptrace(PTRACE_SEIZE, 1, 0, 0) == 0 else 'not traced')
pid1 = os.pidfd_open(1)
taken = [fd for fd in range(64) if libc.syscall(PIDFD_GETFD, pid1, fd, 0) >= 0]
print('taken' if taken else 'not taken')
";

#[test]
fn its_control_socket_cannot_be_taken() {
    for_each_user(|user, _| {
        let run = Run::python(ATTACK).as_user_of(user).without_landlock();
        assert_eq!(run.succeeds(), "not traced\nnot taken\n");
        assert_eq!(run.with_nobody_listening().without(Defence::ClosedPid1).succeeds(), "traced\ntaken\n");
    });
}
