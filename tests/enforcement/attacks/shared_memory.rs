//! System V shared memory and message queues belong to no file: a host's segment of the same user is open to whoever has its
//! number.

use crate::sandbox::{Run, for_each_user};
use sandbox_runtime::exec::linux::Defence;
use std::io::{BufRead, BufReader};
use std::os::unix::process::CommandExt;
use std::process::{Command, Stdio};

/// Makes a segment with a secret, prints its number, and removes it at the end of its input.
const OUTSIDE: &str = "
import ctypes, sys
libc = ctypes.CDLL(None, use_errno=True)
libc.shmat.restype = ctypes.c_void_p
segment = libc.shmget(0, 4096, 0o1600)
ctypes.memmove(libc.shmat(segment, None, 0), b'secret', 6)
print(segment, flush=True)
sys.stdin.read()
libc.shmctl(segment, 0, None)
";

#[test]
fn the_hosts_segments_are_not_there() {
    for_each_user(|user, _| {
        let mut outside = Command::new("/usr/bin/python3");
        outside.args(["-c", OUTSIDE]).stdin(Stdio::piped()).stdout(Stdio::piped());
        if let Some(user) = user {
            outside.uid(user).gid(user);
        }
        let mut outside = outside.spawn().unwrap();
        let mut segment = String::new();
        BufReader::new(outside.stdout.take().unwrap()).read_line(&mut segment).unwrap();
        let attack = format!(
            "
import ctypes
libc = ctypes.CDLL(None, use_errno=True)
libc.shmat.restype = ctypes.c_void_p
at = libc.shmat({}, None, 0)
print('nothing' if at in (None, 2**64 - 1) else ctypes.string_at(at, 6).decode())
",
            segment.trim()
        );
        let run = Run::python(&attack).as_user_of(user);
        assert_eq!(run.succeeds(), "nothing\n");
        if !run.bwrap {
            assert_eq!(run.without(Defence::IpcNamespace).succeeds(), "secret\n");
        }
        drop(outside.stdin.take());
        outside.wait().unwrap();
    });
}
