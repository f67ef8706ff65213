//! `kill(0, …)`: for the terminal's sake the command stays in the caller's process group, to which the caller and its
//! other children belong too.

use crate::sandbox::{Run, for_each_user};
use std::os::unix::process::{CommandExt, ExitStatusExt};

#[test]
fn the_callers_process_group_is_out_of_reach() {
    for_each_user(|user, _| {
        let run = Run::shell("trap '' USR1; kill -USR1 0; exit 7").as_user_of(user);
        let (mut process, _plan) = run.process();
        let status = process.process_group(0).status().unwrap();
        assert_eq!((status.code(), status.signal()), (Some(7), None));
        // Without it the supervisor is hit, and here killed.
        let run = Run::shell("kill -KILL 0; sleep 5; exit 7").as_user_of(user).without_landlock();
        let (mut process, _plan) = run.process();
        assert_eq!(process.process_group(0).status().unwrap().signal(), Some(9));
        let run = Run::shell("kill -KILL 0; sleep 5; exit 7").as_user_of(user);
        let (mut process, _plan) = run.process();
        assert_eq!(process.process_group(0).status().unwrap().code(), Some(137));
    });
}
