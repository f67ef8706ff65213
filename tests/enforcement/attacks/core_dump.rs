//! A crash writes the command's memory where the policy lets it write, or, where `core_pattern` names a program, starts that
//! program on the host, as root.
//!
//! The test changes no machine's `core_pattern`: the counter-run is of a file, and only where the pattern is one.

use crate::sandbox::{Run, for_each_user};
use sandbox_runtime::exec::linux::Defence;

#[test]
fn a_crash_leaves_nothing() {
    for_each_user(|user, scratch| {
        let script = "ulimit -c unlimited; sh -c 'kill -SEGV $$'; ls";
        let run = Run::policy("allow write $WORKSPACE", scratch, script).as_user_of(user);
        assert_eq!(String::from_utf8(run.output().stdout).unwrap(), "");
        let pattern = std::fs::read_to_string("/proc/sys/kernel/core_pattern").unwrap();
        if pattern.starts_with(['|', '/', '@']) {
            return;
        }
        let open = String::from_utf8(run.without(Defence::CoreLimit).output().stdout).unwrap();
        assert!(open.starts_with(pattern.trim().split('%').next().unwrap()) && !open.is_empty(), "{open}");
    });
}
