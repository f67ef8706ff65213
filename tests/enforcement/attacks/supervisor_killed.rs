//! What outlives its supervisor is held by nobody: a process that has left the session, and heeds no signal.

use crate::first::{processes, signal};
use crate::sandbox::{Run, for_each_user};
use nix::sys::signal::Signal;
use std::io::{BufRead, BufReader};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

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
        signal(left[0], Signal::SIGKILL);
    });
}
