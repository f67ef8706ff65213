//! pid 1 began as a copy of the supervisor: its memory holds the caller's whole environment, and it is of the same user.

use crate::sandbox::{Run, for_each_user};

#[test]
fn pid_one_gives_nothing_away() {
    for_each_user(|user, _| {
        let run = Run::shell(
            "cat /proc/1/environ; head -c 1 /proc/1/mem; readlink /proc/1/cwd /proc/1/root /proc/1/exe /proc/1/fd/*; echo x > /proc/1/fd/0; cat /proc/1/maps; \
             kill -KILL 1; kill -STOP 1; kill -TERM 1; echo alive",
        )
        .as_user_of(user)
        .without_landlock();
        assert_eq!(run.succeeds(), "alive\n");
    });
}
