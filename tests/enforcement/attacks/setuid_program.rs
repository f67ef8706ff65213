//! A program that gives its caller more than the caller has: by its owner (setuid), or by capabilities of its own.
//!
//! Three walls hold capabilities of a file: `nosuid`, `no_new_privs`, and the empty bounding set. A setuid program is held by
//! those and by the user namespace, in which nobody but the caller is mapped: there is no counter-run in which it becomes
//! root inside, so that one is made outside.

use crate::sandbox::{Run, USER, for_each_native_user, for_each_user};
use sandbox_runtime::exec::linux::Defence;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::Command;

fn copy(scratch: &Path, mode: u32) {
    let program = scratch.join("program");
    std::fs::copy("/usr/bin/cat", &program).unwrap();
    std::fs::set_permissions(&program, PermissionsExt::from_mode(mode)).unwrap();
}

#[test]
fn its_owner_is_not_become() {
    if !nix::unistd::geteuid().is_root() {
        return;
    }
    for_each_user(|user, scratch| {
        copy(scratch, 0o4755);
        let script = "./program /proc/self/status | grep '^Uid:'";
        let uid = user.unwrap_or(0);
        let own = format!("Uid:\t{uid}\t{uid}\t{uid}\t{uid}\n");
        let run = Run::policy("allow write $WORKSPACE", scratch, script).as_user_of(user);
        assert_eq!(run.succeeds(), own);
        // Everything but the user namespace taken out.
        let open = run.without(Defence::NoPrivileges);
        let open = if open.bwrap { open } else { open.without(Defence::NoSetuid) };
        assert_eq!(open.succeeds(), own);
    });
    let scratch = crate::sandbox::scratch(None);
    copy(scratch.path(), 0o4755);
    let outside = Command::new("setpriv")
        .args([format!("--reuid={USER}"), format!("--regid={USER}"), "--clear-groups".into()])
        .arg(scratch.path().join("program"))
        .arg("/proc/self/status")
        .output()
        .unwrap();
    assert!(String::from_utf8_lossy(&outside.stdout).contains(&format!("Uid:\t{USER}\t0\t0\t0\n")), "{outside:?}");
}

#[test]
fn its_capabilities_are_not_gained() {
    if !nix::unistd::geteuid().is_root() {
        return;
    }
    for_each_native_user(|user, scratch| {
        copy(scratch, 0o755);
        // `struct vfs_cap_data` (linux/capability.h): revision 2, CAP_SYS_ADMIN permitted.
        let words = [0x0200_0000u32, 1 << 21, 0, 0, 0];
        let value: Vec<u8> = words.iter().flat_map(|word| word.to_le_bytes()).collect();
        let set = format!("import os, sys; os.setxattr(sys.argv[1], 'security.capability', bytes({value:?}))");
        let set = Command::new("/usr/bin/python3").args(["-c", &set]).arg(scratch.join("program")).status().unwrap();
        assert!(set.success());
        let script = "./program /proc/self/status | grep '^CapPrm:'";
        let run = Run::policy("allow write $WORKSPACE", scratch, script).as_user_of(user);
        assert_eq!(run.succeeds(), "CapPrm:\t0000000000000000\n");
        assert_eq!(run.clone().without(Defence::NoSetuid).succeeds(), "CapPrm:\t0000000000000000\n");
        if user.is_some() {
            assert_eq!(run.clone().without(Defence::NoPrivileges).succeeds(), "CapPrm:\t0000000000000000\n");
        }
        let open = run.without(Defence::NoPrivileges).without(Defence::NoSetuid).succeeds();
        assert_ne!(open, "CapPrm:\t0000000000000000\n");
    });
}
