//! A read-only mount inside a writable place: a writable mount over the whole must not make it writable, and nor must the
//! command, in namespaces of its own.
//!
//! The flag came from the mount namespace of the host's user namespace, and so is locked by the kernel: no counter-run can
//! clear it. What stands for one is the host itself, where the same call succeeds.

use crate::sandbox::{Run, for_each_user, make_directory};
use std::process::Command;

#[test]
fn it_stays_read_only() {
    if !nix::unistd::geteuid().is_root() {
        return;
    }
    for_each_user(|user, scratch| {
        let inner = scratch.join("inner");
        make_directory(&inner, user);
        let mount = |arguments: &[&str]| Command::new("mount").args(arguments).arg(&inner).status().unwrap().success();
        assert!(mount(&["-t", "tmpfs", "-o", "mode=777", "none"]));
        assert!(mount(&["-o", "remount,bind,ro"]));
        let attack = "
import ctypes
libc = ctypes.CDLL(None, use_errno=True)
CLONE_NEWUSER_NEWNS, MS_BIND_REMOUNT, EPERM = 0x10020000, 0x1020, 1
def attempt(name):
    try:
        open(name, 'w')
        return True
    except OSError:
        return False
print(attempt('here'), attempt('inner/x'))
print(libc.unshare(CLONE_NEWUSER_NEWNS), libc.mount(None, b'inner', None, MS_BIND_REMOUNT, None), ctypes.get_errno() == EPERM)
print(attempt('inner/y'))
";
        let mut run =
            Run::policy("allow write $WORKSPACE", scratch, "").with_python(attack).as_user_of(user).without_landlock();
        let closed = run.output();
        run.plan.syscalls.nest = true;
        let nested = run.output();
        let outside = mount(&["-o", "remount,bind,rw"]) && std::fs::write(inner.join("x"), "").is_ok();
        assert!(Command::new("umount").arg(&inner).status().unwrap().success());
        assert_eq!(String::from_utf8_lossy(&closed.stdout), "True False\n-1 -1 True\nFalse\n");
        assert_eq!(String::from_utf8_lossy(&nested.stdout), "True False\n0 -1 True\nFalse\n");
        assert!(outside);
    });
}
