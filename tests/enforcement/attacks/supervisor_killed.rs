//! What outlives its supervisor is held by nobody: a process that has left the session, and heeds no signal.

use crate::sandbox::{Run, for_each_user};
use crate::support::{Scene, users};
use std::io::{BufRead, BufReader};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

/// The processes on this machine whose command line is this.
fn processes(mark: &str) -> Vec<i32> {
    let found = std::fs::read_dir("/proc").unwrap().flatten().filter(|entry| {
        let line = std::fs::read(entry.path().join("cmdline")).unwrap_or_default();
        String::from_utf8_lossy(&line).replace('\0', " ").trim_end() == mark
    });
    found.filter_map(|entry| entry.file_name().to_str()?.parse().ok()).collect()
}

fn names(place: &str) -> Vec<std::ffi::OsString> {
    let mut names: Vec<_> = std::fs::read_dir(place).unwrap().map(|entry| entry.unwrap().file_name()).collect();
    names.sort();
    names
}

#[test]
fn nothing_outlives_it_and_nothing_is_left() {
    for_each_user(|user, scratch| {
        let time = format!("97{:07}", std::process::id() + user.unwrap_or(0));
        let script = format!(
            "trap '' HUP TERM INT QUIT; setsid sh -c 'trap \"\" HUP TERM INT QUIT; sleep {time}; :' & echo ready; wait"
        );
        let run = Run::policy("allow write $WORKSPACE", scratch, &script).as_user_of(user);
        let kill = |mut process: Command| {
            let mut child = process.stdout(Stdio::piped()).spawn().unwrap();
            let mut said = BufReader::new(child.stdout.take().unwrap());
            said.read_line(&mut String::new()).unwrap();
            let begin = Instant::now();
            while processes(&format!("sleep {time}")).is_empty() {
                assert!(begin.elapsed() < Duration::from_secs(10));
                std::thread::sleep(Duration::from_millis(10));
            }
            child.kill().unwrap();
            child.wait().unwrap();
        };
        let (process, _plan) = run.process();
        kill(process);
        let begin = Instant::now();
        while !processes(&format!("sleep {time}")).is_empty() {
            assert!(begin.elapsed() < Duration::from_secs(10), "a process is left");
            std::thread::sleep(Duration::from_millis(10));
        }
        assert!(names(scratch.to_str().unwrap()).is_empty());
        // The same script by itself goes on.
        let mut outside = Command::new("sh");
        outside.args(["-c", &script]);
        kill(outside);
        std::thread::sleep(Duration::from_millis(300));
        let left = processes(&format!("sleep {time}"));
        assert_eq!(left.len(), 1);
        kill_by_id(left[0]);
    });
}

/// The process that is the first one of its namespace below a supervisor, whatever stands between (proc(5), `NSpid`).
fn first_below(supervisor: u32) -> Option<i32> {
    let fields = |process: &str, name: &str| -> Option<Vec<u32>> {
        let status = std::fs::read_to_string(format!("/proc/{process}/status")).ok()?;
        let line = status.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(':'))?;
        Some(line.split_whitespace().filter_map(|word| word.parse().ok()).collect())
    };
    let is_below = |process: &str| {
        let mut process = process.to_owned();
        for _ in 0..8 {
            match fields(&process, "PPid")?[..] {
                [parent] if parent == supervisor => return Some(()),
                [parent] if parent > 1 => process = parent.to_string(),
                _ => return None,
            }
        }
        None
    };
    std::fs::read_dir("/proc").unwrap().flatten().find_map(|entry| {
        let name = entry.file_name().into_string().ok()?;
        let number = name.parse().ok()?;
        let numbers = fields(&name, "NSpid")?;
        (numbers.len() > 1 && numbers.last() == Some(&1)).then_some(())?;
        is_below(&name)?;
        Some(number)
    })
}

/// Its first process alone is killed, as by a host that is short of memory: all of it ends, and what is said of it is true.
#[test]
fn the_end_of_the_first_process_is_the_end_of_all_and_is_said() {
    let each = ["native", "bwrap"].into_iter().flat_map(|engine| users().into_iter().map(move |user| (engine, user)));
    for (number, (engine, user)) in each.enumerate() {
        let time = format!("96{:06}{number}", std::process::id());
        let scene =
            Scene::new().policy("allow connect localhost:9\nallow read $WORKSPACE").with(["--engine", engine]).by(user);
        let mut process = scene.sandboxed(["sh", "-c", &format!("cat /etc/shadow; echo ready; sleep {time}; :")]);
        let mut srt = process.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        let mut said = BufReader::new(srt.stdout.take().unwrap());
        said.read_line(&mut String::new()).unwrap();
        kill_by_id(first_below(srt.id()).unwrap());
        let output = srt.wait_with_output().unwrap();
        let told = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(125), "{engine} {user:?}: {told}");
        assert!(told.contains("srt: the sandbox's first process was killed from outside"), "{engine} {user:?}: {told}");
        assert!(!told.contains("nothing was run"), "{engine} {user:?}: {told}");
        assert!(processes(&format!("sleep {time}")).is_empty(), "{engine} {user:?}");
    }
}

fn kill_by_id(process: i32) {
    nix::sys::signal::kill(nix::unistd::Pid::from_raw(process), nix::sys::signal::Signal::SIGKILL).unwrap();
}
