//! The dynamic loader runs what may not be run, by mapping it: the file needs no right to be executed for that. A mount
//! without that right refuses the mapping as well.

use crate::sandbox::{Run, for_each_user};
use sandbox_runtime::backend::bubblewrap::Mount;

const ATTACK: &str = "
for loader in /lib64/ld-linux-*.so.* /lib/ld-linux-*.so.*; do [ -e $loader ] && $loader ./program ran && exit 0; done
./program ran
";

#[test]
fn the_loader_does_not_run_it() {
    for_each_user(|user, scratch| {
        std::fs::copy("/bin/echo", scratch.join("program")).unwrap();
        let run = Run::policy("allow write $WORKSPACE\ndeny exec $WORKSPACE", scratch, ATTACK).as_user_of(user);
        assert_eq!(run.output().stdout, b"");
        // Each wall by itself: Landlock does not see a mapping.
        assert_eq!(run.clone().without_landlock().output().stdout, b"");
        let mut open = run;
        for mount in &mut open.plan.mounts {
            if let Mount::Bind { exec, .. } = mount {
                *exec = true;
            }
        }
        assert_eq!(open.output().stdout, b"ran\n");
    });
}
