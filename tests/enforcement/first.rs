//! The sandbox's first process, which serves the command's calls, is killed or stopped from outside: nothing outlives it, nobody else
//! waits for it, and what happened is said.

use crate::support::{Scene, User, users};
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use std::io::{BufRead, BufReader, Read};
use std::process::{Child, Stdio};
use std::time::{Duration, Instant};

/// The processes on this machine whose command line is this.
pub fn processes(mark: &str) -> Vec<i32> {
    let found = std::fs::read_dir("/proc").unwrap().flatten().filter(|entry| {
        let line = std::fs::read(entry.path().join("cmdline")).unwrap_or_default();
        String::from_utf8_lossy(&line).replace('\0', " ").trim_end() == mark
    });
    found.filter_map(|entry| entry.file_name().to_str()?.parse().ok()).collect()
}

/// The process that is the first one of its namespace below a supervisor, whatever stands between (proc(5), `NSpid`).
pub fn first_below(supervisor: u32) -> Option<i32> {
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

pub fn signal(process: i32, signal: Signal) {
    kill(Pid::from_raw(process), signal).unwrap();
}

fn each() -> impl Iterator<Item = (&'static str, User)> {
    ["native", "bwrap"].into_iter().flat_map(|engine| users().into_iter().map(move |user| (engine, user)))
}

/// Its first process alone is killed, as by a host that is short of memory: all of it ends, and what is said of it is true.
#[test]
fn the_end_of_the_first_process_is_the_end_of_all_and_is_said() {
    for (number, (engine, user)) in each().enumerate() {
        let time = format!("96{:06}{number}", std::process::id());
        let scene =
            Scene::new().policy("allow connect localhost:9\nallow read $WORKSPACE").with(["--engine", engine]).by(user);
        let mut process = scene.sandboxed(["sh", "-c", &format!("cat /etc/shadow; echo ready; sleep {time}; :")]);
        let mut srt = process.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        let mut said = BufReader::new(srt.stdout.take().unwrap());
        said.read_line(&mut String::new()).unwrap();
        signal(first_below(srt.id()).unwrap(), Signal::SIGKILL);
        let output = srt.wait_with_output().unwrap();
        let told = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(125), "{engine} {user:?}: {told}");
        assert!(told.contains("srt: the sandbox's first process was killed from outside"), "{engine} {user:?}: {told}");
        assert!(!told.contains("nothing was run"), "{engine} {user:?}: {told}");
        assert!(processes(&format!("sleep {time}")).is_empty(), "{engine} {user:?}");
    }
}

/// Waits for something, and not for long.
#[track_caller]
fn comes(what: &str, is_there: impl Fn() -> bool) {
    let begin = Instant::now();
    while !is_there() {
        assert!(begin.elapsed() < Duration::from_secs(20), "{what}");
        std::thread::sleep(Duration::from_millis(10));
    }
}

fn state(process: i32) -> Option<u8> {
    let text = std::fs::read_to_string(format!("/proc/{process}/stat")).ok()?;
    text.rsplit_once(") ")?.1.bytes().next()
}

/// A sandbox whose command makes files all the time, each of them by its first process, which has just been stopped.
fn stopped(scene: &Scene, time: &str) -> (Child, i32) {
    // Nothing of it is read before its end but what it prints.
    let script = format!("exec 2>/dev/null; sleep {time} & while :; do echo x > made; echo ready; done");
    let mut process = scene.sandboxed(["sh", "-c", &script]);
    let mut srt = process.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let mut said = BufReader::new(srt.stdout.take().unwrap());
    said.read_line(&mut String::new()).unwrap();
    let first = first_below(srt.id()).unwrap();
    signal(first, Signal::SIGSTOP);
    comes("it stops", || state(first) == Some(b'T'));
    // The command waits, and not for whoever reads what it says.
    std::thread::spawn(move || std::io::copy(&mut said, &mut std::io::sink()));
    (srt, first)
}

/// What it ended with, and what was said; everything of it is gone.
#[track_caller]
fn ended(mut srt: Child, first: i32, scene: &Scene, time: &str) -> (Option<i32>, String) {
    let begin = Instant::now();
    let status = loop {
        if let Some(status) = srt.try_wait().unwrap() {
            break status;
        }
        if begin.elapsed() > Duration::from_secs(30) {
            signal(first, Signal::SIGKILL);
            panic!("it hangs");
        }
        std::thread::sleep(Duration::from_millis(10));
    };
    comes("nothing is left", || {
        matches!(state(first), None | Some(b'Z')) && processes(&format!("sleep {time}")).is_empty()
    });
    let mut told = String::new();
    srt.stderr.take().unwrap().read_to_string(&mut told).unwrap();
    let names: Vec<_> = std::fs::read_dir(scene.workspace()).unwrap().map(|entry| entry.unwrap().file_name()).collect();
    assert_eq!(names, ["made"]);
    (status.code(), told)
}

const RULES: &str = "allow read, write $WORKSPACE\ndeny write $WORKSPACE/**/*.denied";
const SAID: &str = "was stopped from outside: what the command asks of it waits";

/// Its first process is stopped: nobody else waits for it, and it ends by whatever else ends it.
#[test]
fn whoever_stops_the_first_process_holds_up_its_command_alone() {
    for (number, (engine, user)) in each().enumerate() {
        let time = format!("95{:06}{number}", std::process::id());
        let scene = Scene::new().policy(RULES).with(["--engine", engine]).by(user);
        let (srt, first) = stopped(&scene, &time);
        let other = Scene::new().policy(RULES).with(["--engine", engine]).by(user);
        assert_eq!(other.run("echo x > made; cat made").ok(), "x", "{engine} {user:?}");
        signal(srt.id().try_into().unwrap(), Signal::SIGTERM);
        let (status, told) = ended(srt, first, &scene, &time);
        assert!(told.contains(SAID), "{engine} {user:?}: {told}");
        assert_eq!(status, Some(143), "{engine} {user:?}: {told}");

        let (mut srt, first) = stopped(&scene, &time);
        srt.kill().unwrap();
        let (status, _) = ended(srt, first, &scene, &time);
        assert_eq!(status, None, "{engine} {user:?}");

        let scene = Scene::new().policy(&format!("{RULES}\nlimit time 3s")).with(["--engine", engine]).by(user);
        let (srt, first) = stopped(&scene, &time);
        let (status, told) = ended(srt, first, &scene, &time);
        assert!(told.contains(SAID), "{engine} {user:?}: {told}");
        assert!(told.ends_with("srt: `sh` was ended: its time limit is over\n"), "{engine} {user:?}: {told}");
        assert_eq!(status, Some(124), "{engine} {user:?}");
    }
}
