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
