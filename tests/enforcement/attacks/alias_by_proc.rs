//! The same file by another name: `/proc/self/root`, `/proc/1/root`, what is stacked on top of the root (`/..`), a path through `..`. Masks are mounts, not strings.

use crate::sandbox::{Run, for_each_user, write};

#[test]
fn a_mask_holds_under_every_name() {
    for_each_user(|user, scratch| {
        let secret = scratch.join("secret");
        write(&secret, "secret\n", user);
        let script = format!(
            "cat /..{0} /../../..{0} /proc/self/root/..{0} /proc/self/root{0} /proc/1/root{0} /proc/self/cwd/secret {1}/../{2}/secret; echo x > /proc/self/root{0}",
            secret.display(),
            scratch.display(),
            scratch.file_name().unwrap().to_string_lossy()
        );
        let run = Run::policy("allow write $WORKSPACE", scratch, &script).as_user_of(user);
        // Without the mask each but `/proc/1` gives it away.
        assert_eq!(String::from_utf8(run.output().stdout).unwrap(), "secret\n".repeat(6));
        write(&secret, "secret\n", user);
        let rules = "allow write $WORKSPACE\ndeny read $WORKSPACE/secret";
        assert_eq!(Run::policy(rules, scratch, &script).as_user_of(user).output().stdout, b"");
        assert_eq!(std::fs::read_to_string(&secret).unwrap(), "secret\n");
    });
}
