//! The executor with stand-ins for the system's programs: one loads no profile and starts the command, the other says what a log
//! would say. What the kernel does with a profile is not tried here.

#![allow(clippy::unwrap_used)]

use super::super::launch::{Error, Exit, Launch};
use super::supervisor::{self, Event};
use super::{Tools, limits, run_by};
use crate::backend::limits::Limits;
use crate::backend::seatbelt::Profile;
use crate::event::{Collector, Event as Told, RuleText, Sink};
use crate::ir::{BoundPolicy, Policy, Setting};
use crate::proxy::Rules;
use crate::vocabulary::{Effect, System};
use nix::sys::signal::Signal;
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::sync::{Arc, Mutex, mpsc};

/// As sandbox-exec(1) takes its options; what it was told it writes beside itself.
const SANDBOX_EXEC: &str = r#"#!/bin/sh
while :; do
  case "$1" in
    -D) echo "$2" >> "$0.told"; shift 2;;
    -p) [ "$2" = bad ] && { echo "sandbox-exec: bad profile" >&2; exit 65; }; shift 2;;
    *) break;;
  esac
done
case "$1" in /dev/null/*) exit 71;; esac
exec "$@"
"#;

const LOG: &str = r#"#!/bin/sh
tag=${5#*\"}
tag=${tag%\"}
echo 'Filtering the log data'
printf '{"eventMessage":"Sandbox: cat(42) deny(1) file-read-data /secret\\n%s"}\n' "$tag"
printf '{"eventMessage":"Sandbox: cat(43) deny(1) file-read-data /other\\nsrt-1"}\n'
exec sleep 60
"#;

struct Stage {
    folder: tempfile::TempDir,
    tools: Tools,
}

impl Stage {
    fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let make = |name: &str, text: &str| {
            let file = folder.path().join(name);
            fs::write(&file, text).unwrap();
            fs::set_permissions(&file, fs::Permissions::from_mode(0o755)).unwrap();
            file
        };
        let tools = Tools { sandbox_exec: make("sandbox-exec", SANDBOX_EXEC), log: make("log", LOG) };
        Self { folder, tools }
    }

    fn launch(&self, words: &[&str], events: Arc<dyn Sink>) -> Launch {
        let environment = vec![("PATH".into(), std::env::var_os("PATH").unwrap()), ("A".into(), "b".into())];
        Launch::new(words.iter().map(Into::into).collect(), environment, self.folder.path().to_owned(), events)
    }

    fn run(&self, profile: &Profile, words: &[&str]) -> Result<Exit, Error> {
        run_by(&self.tools, profile, self.launch(words, Arc::new(Collector::default())), None)
    }

    fn told(&self, name: &str) -> String {
        fs::read_to_string(self.folder.path().join(name)).unwrap()
    }
}

fn profile(text: &str, proxy: bool, limits: Limits) -> Profile {
    Profile { text: text.to_owned(), proxy, limits }
}

fn plain() -> Profile {
    profile("good", false, Limits::default())
}

#[test]
fn how_a_command_ends_is_passed_on() {
    let stage = Stage::new();
    assert_eq!(stage.run(&plain(), &["sh", "-c", "exit 42"]).unwrap(), Exit::Code(42));
    assert_eq!(stage.run(&plain(), &["sh", "-c", "kill -9 $$"]).unwrap(), Exit::Signal(9));
    let missing = stage.run(&plain(), &["no-such-program"]).unwrap_err();
    assert_eq!(missing.status(), 127);
}

#[test]
fn what_is_in_the_environment_is_the_launchs_alone() {
    let stage = Stage::new();
    let script = "env | grep -v '^PATH=\\|^PWD=\\|^_=\\|^SHLVL=\\|^OLDPWD=' > told; pwd >> told";
    assert_eq!(stage.run(&plain(), &["sh", "-c", script]).unwrap(), Exit::Code(0));
    assert_eq!(stage.told("told"), format!("A=b\n{}\n", stage.folder.path().display()));
}

#[test]
fn a_profile_that_is_not_taken_runs_nothing() {
    let stage = Stage::new();
    let refused = stage.run(&profile("bad", false, Limits::default()), &["sh", "-c", ": > ran"]).unwrap_err();
    assert_eq!(refused.status(), 125);
    assert!(refused.to_string().contains("sandbox-exec: bad profile"), "{refused}");
    assert!(!stage.folder.path().join("ran").exists());
}

#[test]
fn time_and_files_are_limited_and_nothing_is_left() {
    let stage = Stage::new();
    let limits = Limits { time: Some(300), files: Some(17), ..Limits::default() };
    let script = "ulimit -n > told; sleep 60 & echo $! > left; wait";
    assert_eq!(stage.run(&profile("good", false, limits), &["sh", "-c", script]).unwrap(), Exit::TimedOut);
    assert_eq!(stage.told("told"), "17\n");
    is_gone(stage.told("left").trim());
}

#[test]
fn what_a_command_leaves_ends_with_it() {
    let stage = Stage::new();
    assert_eq!(stage.run(&plain(), &["sh", "-c", "sleep 60 & echo $! > left"]).unwrap(), Exit::Code(0));
    is_gone(stage.told("left").trim());
}

/// A process that was killed may be there for a moment.
fn is_gone(process: &str) {
    let there = || {
        let state = std::process::Command::new("ps").args(["-o", "stat=", "-p", process]).output().unwrap();
        let state = String::from_utf8_lossy(&state.stdout).trim().to_owned();
        !state.is_empty() && !state.starts_with('Z')
    };
    for _ in 0..100 {
        if !there() {
            return;
        }
        std::thread::sleep(std::time::Duration::from_millis(20));
    }
    panic!("process {process} is still there");
}

#[test]
fn signals_reach_the_command() {
    let stage = Stage::new();
    let launch = stage.launch(
        &["sh", "-c", "trap 'exit 7' TERM; : > ready; while :; do sleep 0.01; done"],
        Arc::new(Collector::default()),
    );
    let command = super::Command::new(&stage.tools, &plain(), &launch, None, "srt-1").unwrap();
    let (events, happened) = mpsc::channel();
    let sender = events.clone();
    let ready = stage.folder.path().join("ready");
    std::thread::spawn(move || {
        while !Path::new(&ready).exists() {
            std::thread::sleep(std::time::Duration::from_millis(10));
        }
        sender.send(Event::Signal(Signal::SIGTERM)).unwrap();
    });
    let held = limits::Held::default();
    let ended = supervisor::supervise(&command, held, &[], None, &events, &happened).unwrap();
    assert_eq!(ended, Exit::Code(7));
}

#[test]
fn a_proxy_that_fails_ends_the_run() {
    let stage = Stage::new();
    let launch = stage.launch(&["sleep", "60"], Arc::new(Collector::default()));
    let command = super::Command::new(&stage.tools, &plain(), &launch, None, "srt-1").unwrap();
    let (events, happened) = mpsc::channel();
    events.send(Event::Proxy(std::io::ErrorKind::BrokenPipe.into())).unwrap();
    let ended = supervisor::supervise(&command, limits::Held::default(), &[], None, &events, &happened);
    assert_eq!(ended.unwrap_err().status(), 125);
}

fn rules() -> Arc<Rules> {
    let mut sources = crate::source::Sources::default();
    let source = sources.add("x.policy", "srt 1\n");
    let span = crate::source::Span::new(source, 0..3);
    let policy = Policy::new(System::Macos, Setting { value: Effect::Deny, span });
    let texts = |_: &_| RuleText { file: "x.policy".into(), line: 1, text: String::new() };
    Arc::new(Rules { policy: BoundPolicy(policy), texts: Box::new(texts) })
}

#[derive(Default)]
struct Kept(Mutex<Vec<String>>);

impl Sink for Kept {
    fn report(&self, event: Told) {
        if let Told::Violation(told) = event {
            let what = (told.pid, told.operation, told.path, told.why);
            self.0.lock().unwrap().push(format!("{what:?}"));
        }
    }
}

#[test]
fn the_proxy_and_the_log_are_the_runs_own() {
    let stage = Stage::new();
    let events = Arc::new(Kept::default());
    let mut launch = stage.launch(&["sh", "-c", "echo \"$http_proxy\" > told; sleep 0.3"], Arc::clone(&events) as _);
    launch.rules = Some(rules());
    let ended = run_by(&stage.tools, &profile("good", true, Limits::default()), launch, None).unwrap();
    assert_eq!(ended, Exit::Code(0));
    let parameters = stage.told("sandbox-exec.told");
    let port = parameters.lines().find_map(|line| line.strip_prefix("proxy.port=")).unwrap();
    assert_eq!(stage.told("told"), format!("http://127.0.0.1:{port}\n"));
    assert_eq!(*events.0.lock().unwrap(), [r#"(Some(42), "read", Some("/secret"), Some(Default))"#]);
}
