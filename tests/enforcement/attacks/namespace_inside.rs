//! A user namespace of the command's own gives it a full set of capabilities, and with them mounts: `--nest` alone
//! permits that.

use crate::sandbox::{Run, for_each_user};

const ATTACK: &str = "
import ctypes
libc = ctypes.CDLL(None, use_errno=True)
CLONE_NEWUSER_NEWNS = 0x10020000
print(libc.unshare(CLONE_NEWUSER_NEWNS))
print(libc.mount(b'none', b'/tmp', b'tmpfs', 0, None))
";

#[test]
fn namespaces_and_mounts_are_closed() {
    for_each_user(|user, _| {
        let mut run = Run::python(ATTACK).as_user_of(user).without_landlock();
        assert_eq!(run.succeeds(), "-1\n-1\n");
        run.plan.syscalls.nest = true;
        assert_eq!(run.succeeds(), "0\n0\n");
    });
}
