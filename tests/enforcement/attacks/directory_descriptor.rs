//! A directory descriptor that the caller left open leads around every mount.

use crate::sandbox::{Run, for_each_user};
use std::os::fd::AsRawFd;

const ATTACK: &str = "
import os
for fd in range(3, 256):
    try:
        os.close(os.open('escaped', os.O_CREAT | os.O_WRONLY, dir_fd=fd))
        print('escaped by', fd)
    except OSError:
        pass
";

#[test]
fn no_descriptor_leaks_and_one_that_is_kept_gives_no_way_to_write() {
    for_each_user(|user, scratch| {
        let directory = std::fs::File::open(scratch).unwrap();
        let fd = nix::fcntl::fcntl(&directory, nix::fcntl::FcntlArg::F_DUPFD(100)).unwrap();
        assert!(fd != directory.as_raw_fd());
        let escaped = scratch.join("escaped");
        let run = Run::python(ATTACK).as_user_of(user);
        assert_eq!(run.clone().without_landlock().succeeds(), "");
        let mut kept = run;
        kept.keep.push(fd);
        assert_eq!(kept.succeeds(), "");
        assert!(!escaped.exists());
        assert_eq!(kept.without_landlock().succeeds(), format!("escaped by {fd}\n"));
        assert!(escaped.exists());
        nix::unistd::close(fd).unwrap();
    });
}
