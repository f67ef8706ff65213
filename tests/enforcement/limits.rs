//! `limit`: by the kernel's own limits, the wall clock, and a control group or looks at the whole tree, whichever the machine has; with
//! each engine. What a control group alone does is in `groups`.

use crate::sandbox::{Run, for_each_user};
use crate::support::{Scene, users};
use sandbox_runtime::exec::linux::Defence;
use std::time::{Duration, Instant};

#[test]
fn the_wall_clock_ends_everything() {
    for_each_user(|user, _| {
        let mut run = Run::shell("trap '' TERM; sleep 1000 & sleep 1000").as_user_of(user);
        run.plan.limits.time = Some(300);
        let begin = Instant::now();
        assert_eq!(run.status(), 124, "{user:?}");
        assert!(begin.elapsed() < Duration::from_secs(20), "{user:?}");
    });
}

#[test]
fn the_kernels_limits_hold_inside() {
    for_each_user(|user, _| {
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
        )
        .as_user_of(user);
        run.plan.limits.memory = Some(256 << 20);
        run.plan.limits.processes = Some(50);
        run.plan.limits.files = Some(64);
        run.plan.limits.filesize = Some(1 << 20);
        run.plan.limits.cpu = Some(10);
        let memory = 256 << 20;
        // Beside the command's processes the kernel counts threads of pid 1; and its end of one that computes comes after ours.
        assert_eq!(
            run.succeeds(),
            format!("{memory} {memory}\n114 114\n64 64\n1048576 1048576\n11 12\nno memory\n"),
            "{user:?}"
        );
    });
}

/// The looks, on a machine that has more.
#[test]
fn without_a_control_group_the_processes_are_looked_at() {
    for_each_user(|user, _| {
        let mut run = Run::shell("for n in 1 2 3 4 5 6 7 8 9; do sleep 60 & done; wait").without(Defence::ControlGroup);
        run.plan.limits.processes = Some(5);
        is_ended(run, user);
    });
}

/// Which of them holds the limits is said: the weaker one always, the other where it is asked for.
#[test]
fn who_holds_limits_is_said() {
    for user in users() {
        for (limit, told) in [("processes 20", true), ("memory 1GiB", true), ("cpu 60s", true), ("time 60s", false)] {
            let policy = format!("allow read, write $WORKSPACE\nlimit {limit}");
            let output = Scene::new().by(user).policy(&policy).with(["--debug"]).run("cat /proc/self/cgroup");
            assert_eq!(output.code, 0, "{output:?}");
            let lines: Vec<_> = output.stderr.lines().filter(|line| line.contains("limits of all processes")).collect();
            assert_eq!(lines.len(), usize::from(told), "{limit}: {output:?}");
            // Nothing of where the group is can be seen inside.
            assert!(output.stdout.ends_with("0::/\n"), "{limit}: {output:?}");
        }
    }
}

/// Who may write to groups could leave its own.
#[test]
fn no_group_holds_whoever_may_change_it() {
    for user in users() {
        for (rules, told) in
            [("allow read, write /sys", true), ("allow read, write /sys/fs/cgroup", true), ("allow read /sys", false)]
        {
            let scene = Scene::new().by(user).policy(&format!("allow read, write $WORKSPACE\n{rules}\nlimit cpu 60s"));
            let output = scene.run("true");
            assert_eq!(output.code, 0, "{output:?}");
            let lets = output.stderr.contains("a rule lets the command write in /sys/fs/cgroup");
            assert_eq!(lets, told, "{rules}: {output:?}");
        }
    }
}

/// What ends soon, and with the status of what was killed; the host has none of it left.
fn is_ended(mut run: Run, user: Option<u32>) {
    run = run.as_user_of(user);
    let begin = Instant::now();
    assert_eq!(run.status(), 137, "{user:?}");
    assert!(begin.elapsed() < Duration::from_secs(60), "{user:?} {:?}", begin.elapsed());
}

#[test]
fn a_fork_bomb_ends_whoever_runs_it() {
    for_each_user(|user, _| {
        // What is forked in the background ignores the ends of others.
        let mut run = Run::shell("trap '' TERM HUP INT; bomb() { bomb | bomb & }; bomb; sleep 1000");
        run.plan.limits.processes = Some(60);
        is_ended(run, user);
        let mut run =
            Run::python("import os\nwhile True:\n    try:\n        os.fork()\n    except OSError:\n        pass");
        run.plan.limits.processes = Some(60);
        is_ended(run, user);
    });
}

/// Where the kernel can: room for the limit, and for little more. What root may have is counted so alone.
#[test]
fn the_kernel_has_no_numbers_for_many_more() {
    let number = || std::fs::read_to_string("/proc/sys/kernel/pid_max").unwrap().trim().parse::<u64>().unwrap();
    let release = std::fs::read_to_string("/proc/sys/kernel/osrelease").unwrap();
    let version: Vec<u32> = release.split(|c: char| !c.is_ascii_digit()).flat_map(str::parse).collect();
    let before = number();
    for_each_user(|user, _| {
        let mut run = Run::shell("cat /proc/sys/kernel/pid_max").as_user_of(user);
        run.plan.limits.processes = Some(1200);
        let inside: u64 = run.succeeds().trim().parse().unwrap();
        assert_eq!(inside < 1200 + 400, version[..2] >= [6, 14][..], "{user:?}: {inside} on {release}");
        assert_eq!(number(), before, "the machine's own is as it was");
    });
}

#[test]
fn threads_are_processes_too() {
    for_each_user(|user, _| {
        let mut run = Run::python(
            "import threading, time\nfor _ in range(100):\n    threading.Thread(target=time.sleep, args=(60,)).start()",
        );
        run.plan.limits.processes = Some(60);
        is_ended(run, user);
    });
}

/// Each of them may have what all of them may not.
#[test]
fn a_tree_that_hogs_memory_ends() {
    for_each_user(|user, _| {
        let mut run = Run::python(
            "
import os, time
for _ in range(6):
    if os.fork() == 0:
        memory = bytearray(b'x') * (60 << 20)
        time.sleep(60)
time.sleep(60)
",
        );
        run.plan.limits.memory = Some(200 << 20);
        is_ended(run, user);
    });
}

/// What a process has together with its parent is one memory.
#[test]
fn memory_that_is_shared_since_a_fork_counts_once() {
    for_each_user(|user, _| {
        let mut run = Run::python(
            "
import os, time
memory = bytearray(b'x') * (60 << 20)
for _ in range(6):
    if os.fork() == 0:
        time.sleep(1.5)
        os._exit(0)
for _ in range(6):
    os.wait()
print(len(memory) >> 20)
",
        )
        .as_user_of(user);
        run.plan.limits.memory = Some(200 << 20);
        assert_eq!(run.succeeds(), "60\n", "{user:?}");
    });
}

#[test]
fn a_tree_that_computes_too_long_ends() {
    for_each_user(|user, _| {
        let mut run = Run::shell("for n in 1 2 3 4; do (while :; do :; done) & done; wait");
        run.plan.limits.cpu = Some(2);
        is_ended(run, user);
        // Also where the kernel ends the only process that computes.
        let mut run = Run::shell("(while :; do :; done) & wait");
        run.plan.limits.cpu = Some(1);
        is_ended(run, user);
        // Also where each process ends before the limit of one does.
        let mut run = Run::shell("while :; do (n=0; while [ $n -lt 20000 ]; do n=$((n + 1)); done); done");
        run.plan.limits.cpu = Some(2);
        is_ended(run, user);
    });
}

#[test]
fn the_threads_of_pid_1_are_not_the_commands() {
    for_each_user(|user, _| {
        // A notified call has threads of ours started.
        let mut run = Run::shell("echo x > \"$TMPDIR/x\"; for n in 1 2 3 4 5 6 7; do sleep 1 & done; wait; echo all")
            .as_user_of(user);
        run.plan.limits.processes = Some(8);
        assert_eq!(run.succeeds(), "all\n", "{user:?}");
    });
}

/// The event, the last line, and the status.
#[test]
fn a_breach_is_told() {
    let each = ["native", "bwrap"].into_iter().flat_map(|engine| users().into_iter().map(move |user| (engine, user)));
    for (engine, user) in each {
        let scene = || Scene::new().by(user).with(["--engine", engine, "--events", "../events"]);
        let told = |scene: Scene, limit: &str, script: &str| {
            let scene = scene.policy(&format!("allow read, write $WORKSPACE\nlimit {limit}"));
            let output = scene.run(script);
            let text = std::fs::read_to_string(scene.home().join("events")).unwrap();
            let event: serde_json::Value = serde_json::from_str(text.lines().last().unwrap()).unwrap();
            (output, event)
        };
        let (output, event) = told(
            scene(),
            "processes 20",
            "for n in 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 19 20 21 22 23 24 25; do sleep 60 & done; wait",
        );
        assert_eq!(output.code, 137, "{output:?}");
        // The shell may have been about to say something.
        assert!(output.stderr.ends_with("srt: `sh` was ended: it passed `limit processes`\n"), "{output:?}");
        assert_eq!(
            (&event["type"], &event["limit"], &event["most"]),
            (&"limit".into(), &"processes".into(), &20.into())
        );
        // The kernel itself stops there.
        assert!(event["found"].as_u64().unwrap() >= 20, "{event}");
        let (output, event) = told(scene(), "time 1s", "sleep 60");
        assert_eq!((output.code, &*output.stderr), (124, "srt: `sh` was ended: its time limit is over\n"));
        assert_eq!((&event["limit"], &event["most"]), (&"time".into(), &1000.into()));
        let (output, event) = told(scene(), "filesize 4KiB", "exec dd if=/dev/zero of=x bs=8192 count=1");
        assert_eq!((output.code, &event["limit"]), (137, &"filesize".into()), "{output:?}");
    }
}
