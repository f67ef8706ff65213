//! The caller's terminal: job control, Ctrl-C once, and the foreground back afterwards.

use crate::sandbox::{Run, for_each_user};
use std::process::Command;

fn session(run: &Run) -> (rexpect::session::PtySession, tempfile::NamedTempFile) {
    let (mut process, plan) = run.process();
    process.stdin(std::process::Stdio::inherit());
    (rexpect::session::spawn_command(process, Some(20_000)).unwrap(), plan)
}

#[test]
fn what_the_terminal_generates_arrives_once() {
    for_each_user(|user, _| {
        let script = "trap 'n=$((n+1))' INT; n=0; echo ready; sleep 1; sleep 0.3; echo got $n";
        let (mut session, _plan) = session(&Run::shell(script).as_user_of(user));
        session.exp_string("ready").unwrap();
        session.send_control('c').unwrap();
        session.exp_string("got 1").unwrap();
        session.exp_eof().unwrap();
    });
}

#[test]
fn a_shell_inside_has_job_control() {
    for_each_user(|user, _| {
        let mut run = Run::shell("").as_user_of(user);
        run.command = ["/bin/bash", "--norc", "--noprofile", "-i"].map(String::from).to_vec();
        run.environment.push(("PS1".into(), "inside> ".into()));
        run.environment.push(("TERM".into(), "dumb".into()));
        let (mut session, _plan) = session(&run);
        session.exp_string("inside> ").unwrap();
        session.send_line("sleep 1000").unwrap();
        std::thread::sleep(std::time::Duration::from_millis(300));
        session.send_control('z').unwrap();
        session.exp_string("Stopped").unwrap();
        session.send_line("bg; jobs; kill %1; wait; echo over").unwrap();
        session.exp_string("Running").unwrap();
        session.exp_string("over").unwrap();
        session.send_line("exit 3").unwrap();
        session.exp_eof().unwrap();
    });
}

#[test]
fn the_shell_outside_stops_and_continues_it() {
    // bash, job control on, runs the sandbox as its job.
    let run = Run::shell("echo ready; read line; echo read $line");
    let (process, _plan) = run.process();
    let mut shell = Command::new("bash");
    shell.args(["--norc", "--noprofile", "-i"]).env("PS1", "outside> ").env("TERM", "dumb");
    for (name, value) in process.get_envs() {
        shell.env(name, value.unwrap());
    }
    let mut session = rexpect::session::spawn_command(shell, Some(20_000)).unwrap();
    session.exp_string("outside> ").unwrap();
    session.send_line(&process.get_program().to_string_lossy()).unwrap();
    session.exp_string("ready").unwrap();
    std::thread::sleep(std::time::Duration::from_millis(200));
    session.send_control('z').unwrap();
    session.exp_string("Stopped").unwrap();
    session.exp_string("outside> ").unwrap();
    session.send_line("fg").unwrap();
    std::thread::sleep(std::time::Duration::from_millis(300));
    session.send_line("hello").unwrap();
    session.exp_string("read hello").unwrap();
    session.exp_string("outside> ").unwrap();
    session.send_line("exit").unwrap();
    session.exp_eof().unwrap();
}

#[test]
fn the_foreground_is_given_back() {
    // The sandbox's shell makes itself the foreground and is gone; a script outside then reads the terminal.
    let mut run = Run::shell("");
    run.command = ["/bin/bash", "--norc", "--noprofile", "-ic", "true"].map(String::from).to_vec();
    let (process, _plan) = run.process();
    let mut script = Command::new("sh");
    script.args(["-c", "\"$0\"; echo ready; read line; echo read $line"]).arg(process.get_program());
    for (name, value) in process.get_envs() {
        script.env(name, value.unwrap());
    }
    let mut session = rexpect::session::spawn_command(script, Some(20_000)).unwrap();
    session.exp_string("ready").unwrap();
    session.send_line("hello").unwrap();
    session.exp_string("read hello").unwrap();
}

#[test]
fn ctrl_c_gives_the_commands_own_status() {
    for_each_user(|user, _| {
        for (script, status) in [
            ("trap 'exit 42' INT; echo ready; sleep 1000 & wait", 42),
            ("echo ready; exec sleep 1000", 130),
            ("trap '' INT; echo ready; sleep 1; exit 5", 5),
        ] {
            let (mut session, _plan) = session(&Run::shell(script).as_user_of(user));
            session.exp_string("ready").unwrap();
            std::thread::sleep(std::time::Duration::from_millis(200));
            session.send_control('c').unwrap();
            session.exp_eof().unwrap();
            let ended = session.process().wait().unwrap();
            assert!(format!("{ended:?}").contains(&format!(", {status})")), "{script}: {ended:?}");
        }
    });
}
