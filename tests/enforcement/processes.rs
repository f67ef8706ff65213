//! Exit codes, signals, descriptors, privileges, and what is left after the end.

use crate::sandbox::{Run, for_each_user};
use crate::support::{Scene, output};
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use std::ffi::OsStr;
use std::io::{BufRead, BufReader};
use std::os::fd::AsRawFd;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

#[test]
fn the_commands_own_status_is_returned() {
    assert_eq!(Run::shell("exit 0").status(), 0);
    assert_eq!(Run::shell("exit 42").status(), 42);
    assert_eq!(Run::shell("kill -TERM $$").status(), 143);
    assert_eq!(Run::shell("kill -KILL $$").status(), 137);
}

/// To begin beside each other the processes of a start move to other processors, and are free again afterwards.
#[test]
fn the_command_may_run_wherever_its_caller_may() {
    let allowed = "grep Cpus_allowed: /proc/self/status";
    let scene = Scene::new().policy("allow read $WORKSPACE");
    let run = |processors: Option<&str>, inside: bool| {
        let command = if inside { scene.sandboxed(["sh", "-c", allowed]) } else { Command::new("sh") };
        let mut outer = Command::new(processors.map_or_else(|| command.get_program(), |_| OsStr::new("taskset")));
        if let Some(processors) = processors {
            outer.args(["-c", processors]).arg(command.get_program());
        }
        outer.args(command.get_args());
        if !inside {
            outer.args(["-c", allowed]);
        }
        outer.envs(command.get_envs().filter_map(|(name, value)| Some((name, value?))));
        output(outer.current_dir(scene.workspace())).ok().to_owned()
    };
    // Where they begin is the kernel's to say.
    for processors in [None, None, None, None, None, None, Some("0")] {
        assert_eq!(run(processors, true), run(processors, false), "{processors:?}");
    }
}

/// What is handed to pid 1, and on to the command, may be more than fits in between.
#[test]
fn an_environment_may_be_large() {
    let scene = (0..8).fold(Scene::new().policy("allow read $WORKSPACE"), |scene, number| {
        scene.env(&format!("LARGE{number}"), &"x".repeat(100_000))
    });
    assert_eq!(scene.run("echo ${#LARGE0} ${#LARGE7}").ok(), "100000 100000");
}

#[test]
fn a_command_that_cannot_start_says_so() {
    let mut run = Run::shell("");
    run.command = vec!["no-such-program".into()];
    assert_eq!(run.status(), 127);
    run.command = vec!["/etc/passwd".into()];
    assert_eq!(run.status(), 126);
    assert_eq!(run.fails(), "srt: cannot run `/etc/passwd`: Permission denied (os error 13)\n");
    let run = Run::shell("echo ran").in_directory(std::path::Path::new("/no/such/place"));
    assert_eq!(run.status(), 125);
}

#[test]
fn no_privilege_is_left() {
    for_each_user(|user, _| {
        let text = Run::shell("grep -E '^(Cap|NoNewPrivs|Seccomp):?' /proc/self/status").as_user_of(user).succeeds();
        let wanted = "CapInh:\t0000000000000000\nCapPrm:\t0000000000000000\nCapEff:\t0000000000000000\n\
                      CapBnd:\t0000000000000000\nCapAmb:\t0000000000000000\nNoNewPrivs:\t1\nSeccomp:\t2\n";
        assert!(text.starts_with(wanted), "{text}");
    });
}

/// Starts a run and waits until its command has said a line.
fn started(run: &Run) -> (Child, BufReader<std::process::ChildStdout>, tempfile::NamedTempFile) {
    let (mut process, plan) = run.process();
    let mut child = process.stdout(Stdio::piped()).spawn().unwrap();
    let mut said = BufReader::new(child.stdout.take().unwrap());
    said.read_line(&mut String::new()).unwrap();
    (child, said, plan)
}

fn pid(child: &Child) -> Pid {
    Pid::from_raw(i32::try_from(child.id()).unwrap())
}

/// Processes on this machine whose command line holds the text.
fn processes_with(text: &str) -> usize {
    let entries = std::fs::read_dir("/proc").unwrap().flatten();
    let lines = entries.filter_map(|entry| std::fs::read(entry.path().join("cmdline")).ok());
    lines.filter(|line| String::from_utf8_lossy(line).replace('\0', " ").starts_with(text)).count()
}

fn eventually(what: &str, holds: impl Fn() -> bool) {
    let begin = Instant::now();
    while !holds() {
        assert!(begin.elapsed() < Duration::from_secs(10), "{what}");
        std::thread::sleep(Duration::from_millis(10));
    }
}

#[test]
fn a_signal_is_passed_on_and_the_commands_answer_returned() {
    for (signal, name) in [
        (Signal::SIGTERM, "TERM"),
        (Signal::SIGINT, "INT"),
        (Signal::SIGHUP, "HUP"),
        (Signal::SIGQUIT, "QUIT"),
        (Signal::SIGUSR1, "USR1"),
        (Signal::SIGUSR2, "USR2"),
        (Signal::SIGWINCH, "WINCH"),
    ] {
        let run = Run::shell(&format!("trap 'exit 42' {name}; echo ready; while :; do sleep 0.01; done"));
        let (mut child, _said, _plan) = started(&run);
        kill(pid(&child), signal).unwrap();
        assert_eq!(child.wait().unwrap().code(), Some(42), "{name}");
    }
    let (mut child, _said, _plan) = started(&Run::shell("echo ready; exec sleep 1000"));
    kill(pid(&child), Signal::SIGTERM).unwrap();
    assert_eq!(child.wait().unwrap().code(), Some(143));
}

#[test]
fn nothing_survives_the_supervisor() {
    for_each_user(|user, _| {
        let time = format!("99{:06}", std::process::id() + user.unwrap_or(0));
        let run =
            Run::shell(&format!("setsid sleep {time} & echo ready; trap '' TERM HUP INT; sleep {time}; sleep {time}"));
        let (mut child, _said, _plan) = started(&run.as_user_of(user));
        let sleep = format!("sleep {time}");
        eventually("the command runs", || processes_with(&sleep) == 2);
        kill(pid(&child), Signal::SIGKILL).unwrap();
        child.wait().unwrap();
        eventually("a process is left", || processes_with(&sleep) == 0);
    });
}

#[test]
fn what_the_command_leaves_in_the_background_ends_with_it() {
    let time = format!("98{:06}", std::process::id());
    Run::shell(&format!("setsid sleep {time} >/dev/null 2>&1 & exit 0")).succeeds();
    eventually("a process is left", || processes_with(&format!("sleep {time}")) == 0);
}

#[test]
fn the_command_gets_three_descriptors_and_what_is_kept() {
    let kept = nix::fcntl::fcntl(std::fs::File::open("/dev/null").unwrap(), nix::fcntl::FcntlArg::F_DUPFD(50)).unwrap();
    let other = std::fs::File::open("/dev/null").unwrap();
    let loose = nix::fcntl::fcntl(&other, nix::fcntl::FcntlArg::F_DUPFD(60)).unwrap();
    assert!(loose > kept && other.as_raw_fd() != loose);
    let mut run = Run::shell("ls -v /proc/$$/fd; exit");
    assert_eq!(run.succeeds(), "0\n1\n2\n");
    run.keep.push(kept);
    assert_eq!(run.succeeds(), format!("0\n1\n2\n{kept}\n"));
    run.keep = vec![999];
    assert_eq!(run.status(), 125);
}

#[test]
fn pid_one_holds_what_it_serves_with_and_nothing_of_the_callers() {
    if !nix::unistd::geteuid().is_root() {
        return;
    }
    let (mut child, _said, _plan) = started(&Run::shell("echo ready; exec sleep 1000"));
    let children = std::fs::read_to_string(format!("/proc/{0}/task/{0}/children", child.id())).unwrap();
    let init = children.trim();
    eventually("pid 1 has settled", || std::fs::read_dir(format!("/proc/{init}/fd")).unwrap().count() == 5);
    let mut open: Vec<_> = std::fs::read_dir(format!("/proc/{init}/fd"))
        .unwrap()
        .map(|entry| std::fs::read_link(entry.unwrap().path()).unwrap().to_string_lossy().into_owned())
        .collect();
    open.sort();
    // Its control socket twice: the second is that of the threads that serve system calls.
    assert_eq!(open[..3], ["/proc", "anon_inode:[signalfd]", "anon_inode:seccomp notify"]);
    assert!(open[3].starts_with("socket:") && open[3] == open[4], "{open:?}");
    child.kill().unwrap();
    child.wait().unwrap();
}

#[test]
fn orphans_are_reaped_whatever_ended_them() {
    // A real-time signal too, for which there is no name.
    let script = "for i in 1 2 3 4 5; do (sh -c 'kill -40 $$' & ) ; done; (sh -c 'exit 3' &); sleep 0.3; ps -e -o stat= | grep -c Z; exit 0";
    assert_eq!(Run::shell(script).succeeds().trim(), "0");
}

#[test]
fn the_commands_limits_are_the_callers() {
    let limits = "ulimit -n; ulimit -Hn; ulimit -Hc; umask";
    let run = Run::shell(limits);
    let lines = run.succeeds();
    let outside = std::process::Command::new("sh").args(["-c", limits]).output().unwrap();
    let outside = String::from_utf8(outside.stdout).unwrap();
    let outside: Vec<_> = outside.lines().collect();
    assert_eq!(lines, format!("{}\n{}\n0\n{}\n", outside[0], outside[1], outside[3]));
}

#[test]
fn a_terminal_stops_and_continues_the_command() {
    let run = Run::shell("echo begin; kill -STOP $$; echo end");
    let (mut child, mut said, _plan) = started(&run);
    let state = || std::fs::read_to_string(format!("/proc/{}/stat", child.id())).unwrap();
    eventually("stopped", || state().contains(") T "));
    kill(pid(&child), Signal::SIGCONT).unwrap();
    let mut line = String::new();
    said.read_line(&mut line).unwrap();
    assert_eq!(line, "end\n");
    assert!(child.wait().unwrap().success());
}

#[test]
fn a_signal_at_any_moment_ends_the_run_and_leaves_nothing() {
    for_each_user(|user, _| {
        let time = format!("96{:06}", std::process::id() + user.unwrap_or(0));
        let before = orphans();
        for delay in [0, 1, 2, 3, 4, 6, 8, 11, 15, 20, 30, 50, 80] {
            let run = Run::shell(&format!("exec sleep {time}")).as_user_of(user);
            let (mut process, _plan) = run.process();
            let mut child = process.spawn().unwrap();
            std::thread::sleep(Duration::from_millis(delay));
            kill(pid(&child), Signal::SIGTERM).unwrap();
            let begin = Instant::now();
            let status = loop {
                if let Some(status) = child.try_wait().unwrap() {
                    break status;
                }
                assert!(begin.elapsed() < Duration::from_secs(10), "after {delay} ms: it goes on");
                std::thread::sleep(Duration::from_millis(2));
            };
            use std::os::unix::process::ExitStatusExt;
            // Before the program held signals back, by the signal itself.
            assert!(status.code() == Some(143) || status.signal() == Some(15), "after {delay} ms: {status:?}");
            eventually("a process is left", || processes_with(&format!("sleep {time}")) == 0);
            // Nor one that has not come so far.
            eventually("an orphan is left", || orphans().is_subset(&before));
        }
    });
}

/// The processes of bubblewrap that have no parent but the machine's first.
fn orphans() -> std::collections::BTreeSet<std::ffi::OsString> {
    let entries = std::fs::read_dir("/proc").unwrap().flatten();
    let stuck = entries.filter(|entry| {
        let read = |name: &str| std::fs::read_to_string(entry.path().join(name)).unwrap_or_default();
        read("cmdline").starts_with("bwrap\0") && read("status").contains("\nPPid:\t1\n")
    });
    stuck.map(|entry| entry.file_name()).collect()
}
