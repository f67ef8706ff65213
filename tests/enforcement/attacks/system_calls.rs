//! System calls that are closed, made for real.
//!
//! What a call could be used for stands in files of their own; here it is that the filter, and nothing else, answers. Calls
//! that the kernel refuses by itself to a process without capabilities (`mount`, `chroot`, `pivot_root`, `bpf`, …) are held
//! twice, and answer the same without the filter.

use crate::sandbox::{Run, for_each_user};

/// Prints the name and the errno of each.
const ATTACK: &str = "
import ctypes, platform
libc = ctypes.CDLL(None, use_errno=True)
x86 = platform.machine() == 'x86_64'
calls = {
    'unshare': (272 if x86 else 97, 0x10000000), 'setns': (308 if x86 else 268, 0, 0), 'chroot': (161 if x86 else 51, b'/tmp'),
    'mount': (165 if x86 else 40, b'x', b'/tmp', b'tmpfs', 0, 0), 'umount2': (166 if x86 else 39, b'/tmp', 0),
    'pivot_root': (155 if x86 else 41, b'/', b'/'), 'open_tree': (428, -100, b'/', 1), 'move_mount': (429, 99, b'', 99, b'', 0),
    'fsopen': (430, b'tmpfs', 0), 'mount_setattr': (442, 0, b'', 0, 0, 0), 'bpf': (321 if x86 else 280, 0, 0, 0),
    'keyctl': (250 if x86 else 219, 0, -3, 0), 'userfaultfd': (323 if x86 else 282, 0), 'perf_event_open': (298 if x86 else 241, 0),
    'clone3': (435, 0, 0), 'io_uring_setup': (425, 1, 0), 'openat2': (437, -100, b'/', 0, 24), 'open_by_handle_at': (304 if x86 else 265, 0, 0, 0),
}
for name, (number, *arguments) in calls.items():
    ctypes.set_errno(0)
    arguments = [ctypes.c_long(a) if isinstance(a, int) else a for a in arguments]
    result = libc.syscall(number, *arguments)
    print(name, ctypes.get_errno() if result < 0 else 'done')
import socket
for name, family in [('vsock', 40), ('packet', 17), ('alg', 38), ('bluetooth', 31), ('key', 15)]:
    try:
        socket.socket(family, socket.SOCK_RAW if family in (17, 15) else socket.SOCK_STREAM)
        print(name, 'done')
    except OSError as error:
        print(name, error.errno)
";

#[test]
fn closed_calls_are_refused() {
    const EPERM: &str = "1";
    const ENOSYS: &str = "38";
    const EAFNOSUPPORT: &str = "97";
    for_each_user(|user, _| {
        let text = Run::python(ATTACK).as_user_of(user).succeeds();
        assert_eq!(text.lines().count(), 23, "{text}");
        for line in text.lines() {
            let (name, outcome) = line.split_once(' ').unwrap();
            let wanted = match name {
                "clone3" | "io_uring_setup" | "openat2" | "open_by_handle_at" => ENOSYS,
                "keyctl" | "bpf" | "userfaultfd" | "perf_event_open" if outcome == ENOSYS => ENOSYS,
                "vsock" | "packet" | "alg" | "bluetooth" | "key" => EAFNOSUPPORT,
                _ => EPERM,
            };
            assert_eq!(outcome, wanted, "{name}");
        }
    });
}

#[test]
fn it_is_the_filter_that_answers() {
    for_each_user(|user, _| {
        let run = Run::python(ATTACK).as_user_of(user);
        let closed = run.succeeds();
        for call in
            ["unshare", "setns", "clone3", "io_uring_setup", "openat2", "open_by_handle_at", "keyctl", "mount_setattr"]
        {
            let open = run.clone().with_call(call).succeeds();
            let changed: Vec<&str> = open.lines().filter(|line| !closed.lines().any(|other| other == *line)).collect();
            assert_eq!(changed.len(), 1, "{call}: {changed:?}");
            assert!(changed[0].starts_with(&format!("{call} ")), "{changed:?}");
        }
        let open = run.with_call("socket").succeeds();
        assert!(!open.contains("packet 97"), "{open}");
    });
}
