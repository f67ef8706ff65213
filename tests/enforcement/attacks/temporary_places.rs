//! `/tmp` and `/dev/shm` of the host: what other programs leave there is read, and what they will read is planted.

use crate::sandbox::{Run, for_each_user, give};
use std::io::Write;

#[test]
fn the_hosts_are_not_there() {
    for_each_user(|user, _| {
        for place in ["/tmp", "/dev/shm"] {
            let mut theirs = tempfile::Builder::new().prefix("srt-enforcement-").tempfile_in(place).unwrap();
            theirs.write_all(b"secret\n").unwrap();
            give(theirs.path(), user);
            let name = theirs.path().display();
            let planted = format!("{name}-planted");
            let run = Run::shell(&format!("cat {name}; echo x > {planted}; cat {planted}")).as_user_of(user);
            assert_eq!(run.succeeds(), "x\n");
            assert!(!std::path::Path::new(&planted).exists());
            let mut open = run.without_mount(place).without_landlock();
            if place == "/dev/shm" {
                // It is covered twice, since `/dev` is the run's own too.
                open = open.without_mount("/dev");
            }
            // The host's tree is still read-only.
            let open = open.output();
            assert_eq!(open.stdout, b"secret\n", "{place}: {open:?}");
            assert!(!std::path::Path::new(&planted).exists());
        }
    });
}
