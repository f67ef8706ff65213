//! `limit`: by the kernel's own limits, and the wall clock.

use crate::sandbox::Run;
use std::time::{Duration, Instant};

#[test]
fn the_wall_clock_ends_everything() {
    let mut run = Run::shell("trap '' TERM; sleep 1000 & sleep 1000");
    run.plan.limits.time = Some(300);
    let begin = Instant::now();
    assert_eq!(run.status(), 124);
    assert!(begin.elapsed() < Duration::from_secs(20));
}

#[test]
fn the_kernels_limits_hold_inside() {
    let mut run = Run::python(
        "
import resource
for name in ['RLIMIT_DATA', 'RLIMIT_NPROC', 'RLIMIT_NOFILE', 'RLIMIT_FSIZE', 'RLIMIT_CPU']:
    print(*resource.getrlimit(getattr(resource, name)))
try:
    bytearray(1 << 30)
    print('memory')
except MemoryError:
    print('no memory')
",
    );
    run.plan.limits.memory = Some(256 << 20);
    run.plan.limits.processes = Some(50);
    run.plan.limits.files = Some(64);
    run.plan.limits.filesize = Some(1 << 20);
    run.plan.limits.cpu = Some(10);
    let memory = 256 << 20;
    assert_eq!(run.succeeds(), format!("{memory} {memory}\n50 50\n64 64\n1048576 1048576\n10 11\nno memory\n"));
}

#[test]
fn processes_are_counted_in_the_sandbox_alone() {
    use crate::sandbox::{USER, users};
    // Root outside is exempt.
    for user in users().into_iter().filter(|user| *user == Some(USER)) {
        let mut run = Run::python(
            "
import os, time
made = 0
try:
    for _ in range(100):
        if os.fork() == 0:
            time.sleep(100)
        made += 1
except OSError:
    pass
print(made)
",
        )
        .as_user_of(user);
        run.plan.limits.processes = Some(20);
        let made: u32 = run.succeeds().trim().parse().unwrap();
        assert!((10..20).contains(&made), "{made}");
    }
}
