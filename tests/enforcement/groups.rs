//! Limits that a control group holds: what it sees and a look at the processes does not, and that nothing of it is left. Needs cgroup v2
//! with controllers, in which these users may have groups: `make cgroups` runs this in machines that have that.

use crate::sandbox::{Run, for_each_user};
use crate::support::{Scene, srt, users};
use sandbox_runtime::exec::linux::Defence;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::{Duration, Instant};

/// Where the groups of this machine are, and how those of a run are called.
const GROUPS: &str = "/sys/fs/cgroup";

/// Every group of a run that is there now.
fn groups() -> Vec<PathBuf> {
    fn below(group: &Path, found: &mut Vec<PathBuf>) {
        for entry in std::fs::read_dir(group).into_iter().flatten().filter_map(Result::ok) {
            if entry.file_type().is_ok_and(|kind| kind.is_dir()) {
                if entry.file_name().to_string_lossy().starts_with("srt-") {
                    found.push(entry.path());
                }
                below(&entry.path(), found);
            }
        }
    }
    let mut found = Vec::new();
    below(Path::new(GROUPS), &mut found);
    found
}

/// Other tests have groups meanwhile; this one's are gone within a while.
fn are_gone(own: &[PathBuf]) {
    let begin = Instant::now();
    while own.iter().any(|group| group.exists()) {
        assert!(begin.elapsed() < Duration::from_secs(20), "{own:?}");
        std::thread::sleep(Duration::from_millis(20));
    }
}

/// Where the group is, as it is said.
fn group_of(said: &str) -> PathBuf {
    let line = said.lines().find_map(|line| line.split_once("are held by a ")).unwrap_or_else(|| panic!("{said}")).1;
    line.split_once(", ").unwrap().1.into()
}

/// With a group it is ended; without, it goes on to its own end.
fn is_ended_by_the_group(run: impl Fn() -> Run, user: Option<u32>) {
    let run = || run().as_user_of(user);
    for (run, status) in [(run(), 137), (run().without(Defence::ControlGroup), 0)] {
        let output = run.output();
        assert_eq!(output.status.code(), Some(status), "{user:?} {output:?}");
    }
}

/// The kernel adds the time of nobody's children to nobody's.
#[test]
#[ignore = "needs cgroup v2; make cgroups"]
fn the_time_of_children_that_nobody_waits_for_counts() {
    for_each_user(|user, _| {
        let run = || {
            let mut run = Run::python(
                "
import os, signal, time
signal.signal(signal.SIGCHLD, signal.SIG_IGN)
for _ in range(30):
    if os.fork() == 0:
        while time.process_time() < 0.2:
            pass
        os._exit(0)
    # Until it is gone, and then there is nobody to be told of.
    try:
        os.wait()
    except ChildProcessError:
        pass
",
            );
            run.plan.limits.cpu = Some(2);
            run
        };
        is_ended_by_the_group(run, user);
    });
}

#[test]
#[ignore = "needs cgroup v2; make cgroups"]
fn files_in_memory_count() {
    for_each_user(|user, _| {
        let run = || {
            let mut run = Run::shell("for file in a b c d; do head -c 30000000 /dev/zero > /tmp/$file; done; exit 0");
            run.plan.limits.memory = Some(64 << 20);
            run
        };
        is_ended_by_the_group(run, user);
    });
}

/// As many as the policy says, and none of ours.
#[test]
#[ignore = "needs cgroup v2; make cgroups"]
fn the_command_has_every_process_that_it_may_have() {
    for_each_user(|user, _| {
        let script =
            |children: &str| format!("for n in {children}; do sleep 0.5 & done; wait; echo all > /tmp/x && echo all");
        let mut run = Run::shell(&script("1 2 3 4 5 6 7")).as_user_of(user);
        run.plan.limits.processes = Some(8);
        assert_eq!(run.succeeds(), "all\n", "{user:?}");
        let mut run = Run::shell(&script("1 2 3 4 5 6 7 8")).as_user_of(user);
        run.plan.limits.processes = Some(8);
        assert_eq!(run.status(), 137, "{user:?}");
    });
}

#[test]
#[ignore = "needs cgroup v2; make cgroups"]
fn doctor_finds_a_group_and_leaves_none() {
    for user in users() {
        let output = Scene::new().by(user).srt(["doctor"]).output().unwrap();
        let said = String::from_utf8(output.stdout).unwrap();
        assert!(said.contains("ok       limits: held by "), "{said}");
        let group = said.lines().find_map(|line| line.split_once("limits: held by ")?.1.split_once(", ")).unwrap().1;
        assert!(!Path::new(group).exists(), "{group}");
    }
}

/// However a run ends, its groups go with it: by its own end, a limit, or a signal that nobody can catch.
#[test]
#[ignore = "needs cgroup v2; make cgroups"]
fn no_group_outlives_its_run() {
    let each = ["native", "bwrap"].into_iter().flat_map(|engine| users().into_iter().map(move |user| (engine, user)));
    for (engine, user) in each {
        let scene = Scene::new().by(user).with(["--engine", engine, "--debug"]);
        let scene = scene.policy("allow read, write $WORKSPACE\nlimit memory 200MiB, processes 20, cpu 60s");
        for (script, status) in [
            ("exit 7", 7),
            ("for n in 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 19 20; do sleep 60 & done; wait", 137),
        ] {
            let output = scene.run(script);
            assert_eq!(output.code, status, "{engine} {user:?} {output:?}");
            let group = group_of(&output.stderr);
            assert!(group.starts_with(GROUPS) && !group.exists(), "{output:?}");
        }
        let before = groups();
        let mut run =
            scene.sandboxed(["sh", "-c", "echo begun > begun; sleep 600"]).stderr(Stdio::null()).spawn().unwrap();
        let begin = Instant::now();
        while !scene.workspace().join("begun").exists() {
            assert!(begin.elapsed() < Duration::from_secs(60), "{engine} {user:?}");
            std::thread::sleep(Duration::from_millis(20));
        }
        let own: Vec<PathBuf> = groups().into_iter().filter(|group| !before.contains(group)).collect();
        let holds = |name: &str, value: &str| {
            own.iter().any(|group| std::fs::read_to_string(group.join(name)).is_ok_and(|text| text.trim() == value))
        };
        assert!(holds("memory.max", "209715200") && holds("pids.max", "20"), "{own:?}");
        run.kill().unwrap();
        run.wait().unwrap();
        are_gone(&own);
    }
}

/// The group's limits are not the command's to change, where it may write whatever its user may.
#[test]
#[ignore = "needs cgroup v2; make cgroups"]
fn the_command_cannot_change_its_limits() {
    assert!(srt().exists());
    for user in users() {
        let scene = Scene::new().by(user).with(["--debug"]);
        let scene =
            scene.policy("allow read, write $WORKSPACE\nallow read /sys/fs/cgroup\nlimit memory 200MiB, processes 20");
        let script = "for file in $(find /sys/fs/cgroup -name memory.max -o -name pids.max -o -name cgroup.procs); do \
                      echo max 2>/dev/null > $file && echo $file; echo 0 2>/dev/null > $file && echo $file; done; true";
        let output = scene.run(script);
        assert_eq!((output.code, &*output.stdout), (0, ""), "{user:?} {output:?}");
    }
}
