//! A device node in a read-only tree is still written through, since read-only holds for the file system alone.
//!
//! Bubblewrap has no mounts with devices but for `--dev-bind`, so its counter-run is that of the native engine.

use crate::sandbox::{Run, for_each_user};
use nix::sys::stat::{Mode, SFlag, makedev, mknod};
use sandbox_runtime::exec::linux::Defence;

#[test]
fn device_nodes_of_the_host_cannot_be_opened() {
    if !nix::unistd::geteuid().is_root() {
        return;
    }
    for_each_user(|user, scratch| {
        let node = scratch.join("zero");
        mknod(&node, SFlag::S_IFCHR, Mode::from_bits_truncate(0o666), makedev(1, 5)).unwrap();
        std::fs::set_permissions(&node, std::os::unix::fs::PermissionsExt::from_mode(0o666)).unwrap();
        let script = format!("head -c 1 {0} && echo read; echo x > {0} && echo written", node.display());
        let run = Run::shell(&script).as_user_of(user).without_landlock();
        assert_eq!(run.output().stdout, b"");
        let writable = Run::policy("allow write $WORKSPACE", scratch, &script).as_user_of(user).without_landlock();
        assert_eq!(writable.output().stdout, b"");
        if !run.bwrap {
            assert_eq!(run.without(Defence::NoDevices).output().stdout, b"\0read\nwritten\n");
            assert_eq!(writable.without(Defence::NoDevices).output().stdout, b"\0read\nwritten\n");
        }
    });
}
