//! Exit codes, signals, descriptors, privileges, and what is left after the end.

use crate::sandbox::{Run, for_each_user};

#[test]
fn the_commands_own_status_is_returned() {
    assert_eq!(Run::shell("exit 0").status(), 0);
    assert_eq!(Run::shell("exit 42").status(), 42);
    assert_eq!(Run::shell("kill -TERM $$").status(), 143);
    assert_eq!(Run::shell("kill -KILL $$").status(), 137);
}

#[test]
fn a_command_that_cannot_start_says_so() {
    let mut run = Run::shell("");
    run.command = vec!["no-such-program".into()];
    assert_eq!(run.status(), 127);
    run.command = vec!["/etc/passwd".into()];
    assert_eq!(run.status(), 126);
    assert_eq!(run.fails(), "srt: cannot run `/etc/passwd`: Permission denied (os error 13)\n");
    let run = Run::shell("echo ran").in_directory(std::path::Path::new("/no/such/place"));
    assert_eq!(run.status(), 125);
}

#[test]
fn no_privilege_is_left() {
    for_each_user(|user, _| {
        let text = Run::shell("grep -E '^(Cap|NoNewPrivs|Seccomp):?' /proc/self/status").as_user_of(user).succeeds();
        let wanted = "CapInh:\t0000000000000000\nCapPrm:\t0000000000000000\nCapEff:\t0000000000000000\n\
                      CapBnd:\t0000000000000000\nCapAmb:\t0000000000000000\nNoNewPrivs:\t1\nSeccomp:\t2\n";
        assert!(text.starts_with(wanted), "{text}");
    });
}
