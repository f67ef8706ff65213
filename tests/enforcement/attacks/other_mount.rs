//! The same tree mounted a second time: a mask over one name leaves the other open.

use crate::sandbox::{Run, for_each_user, make_directory, write};
use std::process::Command;

/// Unmounts, however the test ends.
struct Mounted<'a>(&'a std::path::Path);

impl Drop for Mounted<'_> {
    fn drop(&mut self) {
        let _ = Command::new("umount").arg("-l").arg(self.0).status();
    }
}

#[test]
fn a_mask_holds_under_every_mount() {
    if !nix::unistd::geteuid().is_root() {
        return;
    }
    for_each_user(|user, scratch| {
        let (work, alias) = (scratch.join("work"), scratch.join("alias"));
        make_directory(&work, user);
        make_directory(&work.join("inner"), user);
        make_directory(&alias, user);
        write(&work.join("inner/secret"), "secret\n", user);
        let mounted = Command::new("mount").arg("--bind").args([&work, &alias]).status().unwrap();
        assert!(mounted.success());
        let mounted = Mounted(&alias);
        let script = "cat work/inner/secret alias/inner/secret; echo x > alias/inner/secret";
        let rules = "allow write $WORKSPACE\ndeny read $WORKSPACE/work/inner/secret";
        let run = Run::policy(rules, scratch, script).as_user_of(user);
        let defended = run.output();
        // The mask over the other name is an operation of its own.
        let mut open = run;
        let other = crate::sandbox::bytes(&alias.join("inner/secret"));
        let is_mask = |mount: &_| matches!(mount, sandbox_runtime::backend::bubblewrap::Mount::MaskFile { path, .. } if *path == other);
        let before = open.plan.mounts.len();
        open.plan.mounts.retain(|mount| !is_mask(mount));
        let removed = before - open.plan.mounts.len();
        let open = open.output();
        drop(mounted);
        assert_eq!((defended.stdout, defended.status.success()), (vec![], false));
        assert_eq!(removed, 1);
        assert_eq!(String::from_utf8(open.stdout).unwrap(), "secret\n");
        assert_eq!(std::fs::read_to_string(work.join("inner/secret")).unwrap(), "x\n");
    });
}
