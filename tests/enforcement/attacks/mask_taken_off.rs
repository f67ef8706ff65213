//! A mask is a mount, and who may mount takes it off.
//!
//! Three walls: the calls are closed, the command has no capability, and in namespaces of its own (`--nest`) the mounts it
//! came with are locked. The counter-run of the first two together is root's: without its capabilities given up it takes the
//! mask off. Anyone else loses them by exec alone. That mounts of another user namespace are locked is the kernel's; there is
//! no counter-run of that.

use crate::sandbox::{Run, for_each_native_user, write};
use sandbox_runtime::exec::linux::Defence;

const ATTACK: &str = "umount secret 2>/dev/null; cat secret";

#[test]
fn a_mask_cannot_be_taken_off() {
    for_each_native_user(|user, scratch| {
        write(&scratch.join("secret"), "secret\n", user);
        let rules = "allow write $WORKSPACE\ndeny read $WORKSPACE/secret";
        let run = Run::policy(rules, scratch, ATTACK).as_user_of(user).without_landlock();
        assert_eq!(run.output().stdout, b"");
        assert_eq!(run.clone().without(Defence::SystemCalls).output().stdout, b"");
        assert_eq!(run.clone().without(Defence::NoPrivileges).output().stdout, b"");
        let both = run.clone().without(Defence::SystemCalls).without(Defence::NoPrivileges).output().stdout;
        let root = user.is_none() && nix::unistd::geteuid().is_root();
        assert_eq!(both, if root { &b"secret\n"[..] } else { b"" });
        // By calls, since another program would lose the capabilities of the new namespace.
        let nest = "
import ctypes
libc = ctypes.CDLL(None, use_errno=True)
CLONE_NEWUSER_NEWNS, MNT_DETACH, EINVAL = 0x10020000, 2, 22
print(libc.unshare(CLONE_NEWUSER_NEWNS), libc.mount(b'none', b'/tmp', b'tmpfs', 0, None))
for flags in (0, MNT_DETACH):
    print(libc.umount2(b'secret', flags), ctypes.get_errno() == EINVAL)
print(open('secret').read())
";
        let mut nested = Run::policy(rules, scratch, "").with_python(nest).as_user_of(user).without_landlock();
        nested.plan.syscalls.nest = true;
        let nested = nested.output();
        assert_eq!(String::from_utf8_lossy(&nested.stdout), "0 0\n-1 True\n-1 True\n", "{nested:?}");
        assert!(String::from_utf8_lossy(&nested.stderr).contains("PermissionError"), "{nested:?}");
    });
}
