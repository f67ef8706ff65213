//! The caller's session keyring holds what its tools put there (kerberos tickets, file system keys), and is inherited.
//!
//! Two walls: the calls are closed, and the run has a session keyring of its own. Each is taken out by itself, and both.

use crate::sandbox::{Run, for_each_user};
use sandbox_runtime::exec::linux::Defence;
use std::process::Command;

/// Puts a key into a new session keyring, and becomes the run.
const CALLER: &str = "
import ctypes, os, sys
libc = ctypes.CDLL(None, use_errno=True)
ADD_KEY, KEYCTL, JOIN, SESSION = 248, 250, 1, -3
assert libc.syscall(KEYCTL, JOIN, 0) > 0
assert libc.syscall(ADD_KEY, b'user', b'srt-secret', b'secret', 6, SESSION) > 0
os.execv(sys.argv[1], sys.argv[1:])
";

const ATTACK: &str = "
import ctypes
libc = ctypes.CDLL(None, use_errno=True)
KEYCTL, SEARCH, READ, SESSION = 250, 10, 11, -3
key = libc.syscall(KEYCTL, SEARCH, SESSION, b'user', b'srt-secret', 0)
buffer = ctypes.create_string_buffer(16)
print(buffer.value.decode() if key > 0 and libc.syscall(KEYCTL, READ, key, buffer, 16) > 0 else 'nothing')
";

#[test]
fn the_callers_keys_are_not_found() {
    if !cfg!(target_arch = "x86_64") {
        return;
    }
    for_each_user(|user, _| {
        let found = |run: Run| {
            let (process, _plan) = run.process();
            let mut caller = Command::new("/usr/bin/python3");
            caller.args(["-c", CALLER, "/usr/bin/env"]).arg(process.get_program()).args(process.get_args());
            for (name, value) in process.get_envs() {
                caller.env(name, value.unwrap());
            }
            let output = caller.output().unwrap();
            assert!(output.status.success(), "{output:?}");
            String::from_utf8(output.stdout).unwrap()
        };
        let run = Run::python(ATTACK).as_user_of(user);
        assert_eq!(found(run.clone()), "nothing\n");
        assert_eq!(found(run.clone().with_call("keyctl")), "nothing\n");
        assert_eq!(found(run.clone().without(Defence::Keyring)), "nothing\n");
        assert_eq!(found(run.with_call("keyctl").without(Defence::Keyring)), "secret\n");
    });
}
