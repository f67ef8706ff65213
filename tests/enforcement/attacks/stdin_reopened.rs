//! `command < file`: `/proc/self/fd/0` opens the same file again, for writing, on the host's own mount.

use crate::sandbox::{Run, for_each_user, write};
use std::fs::{File, read_to_string};

#[test]
fn a_descriptor_is_not_opened_again_for_more() {
    for_each_user(|user, scratch| {
        let input = scratch.join("input");
        write(&input, "text\n", user);
        let run = Run::shell("echo x > /proc/self/fd/0 || echo x > /dev/stdin").as_user_of(user);
        let (mut process, _plan) = run.process();
        assert!(!process.stdin(File::open(&input).unwrap()).output().unwrap().status.success());
        assert_eq!(read_to_string(&input).unwrap(), "text\n");
        let run = run.without_landlock();
        let (mut process, _plan) = run.process();
        assert!(process.stdin(File::open(&input).unwrap()).status().unwrap().success());
        assert_eq!(read_to_string(&input).unwrap(), "x\n");
    });
}

#[test]
fn what_is_open_for_writing_may_be_named() {
    for_each_user(|user, scratch| {
        let log = scratch.join("log");
        write(&log, "", user);
        let (mut process, _plan) = Run::shell("echo a > /dev/stdout; echo b >> /dev/stderr").as_user_of(user).process();
        let open = || std::fs::OpenOptions::new().append(true).open(&log).unwrap();
        assert!(process.stdout(open()).stderr(open()).status().unwrap().success());
        assert_eq!(read_to_string(&log).unwrap(), "a\nb\n");
    });
}
