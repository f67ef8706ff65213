//! Rules that change while a command runs, by `--control`.

use super::world::{ENGINES, greeter};
use crate::support::{Scene, server, users};
use nix::sys::socket::{AddressFamily, SockFlag, SockType, socketpair};
use serde_json::{Value, json};
use std::io::{BufRead, BufReader, Read, Write};
use std::os::fd::AsRawFd;
use std::os::unix::net::UnixStream;
use std::process::{Child, ChildStdin, ChildStdout, Stdio};

/// A run whose rules the test changes, and whose command, a shell, does what it is told.
struct Session {
    child: Child,
    control: BufReader<UnixStream>,
    shell: ChildStdin,
    said: BufReader<ChildStdout>,
    /// Gone with the session.
    _scene: Scene,
}

impl Session {
    fn new(scene: Scene) -> Self {
        // Not closed by exec: one end is the child's.
        let (ours, theirs) = socketpair(AddressFamily::Unix, SockType::Stream, None, SockFlag::empty()).unwrap();
        let scene = scene.with(["--control", &theirs.as_raw_fd().to_string()]);
        let mut command = scene.sandboxed(["sh"]);
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = command.spawn().unwrap();
        drop(theirs);
        let control = UnixStream::from(ours);
        control.set_read_timeout(Some(std::time::Duration::from_secs(30))).unwrap();
        let (shell, said) = (child.stdin.take().unwrap(), BufReader::new(child.stdout.take().unwrap()));
        Self { child, control: BufReader::new(control), shell, said, _scene: scene }
    }

    /// One line of the command's.
    fn line(&mut self) -> String {
        let mut line = String::new();
        self.said.read_line(&mut line).unwrap();
        line.trim_end().to_owned()
    }

    fn tell(&mut self, script: &str) {
        self.shell.write_all(format!("{script}\n").as_bytes()).unwrap();
    }

    fn ask(&mut self, request: &str) -> Value {
        self.control.get_mut().write_all(format!("{request}\n").as_bytes()).unwrap();
        let mut line = String::new();
        self.control.read_line(&mut line).unwrap();
        serde_json::from_str(&line).unwrap_or_else(|error| panic!("{request}: {line:?}: {error}"))
    }

    /// What `curl` says of a port of the host's loopback that was named at the start.
    fn status(&mut self, port: u16) -> String {
        self.tell(&format!("curl -s -m 10 --noproxy '' -o /dev/null -w '%{{http_code}}\\n' http://127.0.0.1:{port}/"));
        self.line()
    }

    /// Ends it, and gives what was said on standard error.
    fn end(mut self) -> String {
        drop(self.shell);
        let mut said = String::new();
        self.child.stderr.take().unwrap().read_to_string(&mut said).unwrap();
        assert!(self.child.wait().unwrap().success(), "{said}");
        said
    }
}

#[test]
fn rules_are_added_replaced_and_taken_away_and_a_bad_line_changes_nothing() {
    let (port, other) = (server(), server());
    for user in users() {
        for engine in ENGINES {
            let scene = Scene::new().policy(&format!("allow read $WORKSPACE\nallow connect 127.0.0.1:{port}"));
            let home = scene.home().to_owned();
            let mut session = Session::new(scene.with(["--engine", engine]).by(user));
            assert_eq!(session.status(port), "200", "{user:?} {engine}");
            assert_eq!(session.status(other), "403");

            let answer = session.ask(&format!(r#"{{"id": 1, "add": "allow connect 127.0.0.1:{other}"}}"#));
            assert_eq!(answer["ok"], json!(true), "{answer}");
            assert_eq!((&answer["id"], &answer["rules"]), (&json!(1), &json!(2)), "{answer}");
            assert!(answer["notes"][0].as_str().unwrap().contains("through the proxy alone"), "{answer}");
            assert_eq!((session.status(port), session.status(other)), ("200".into(), "200".into()));

            for (bad, says) in [
                ("nonsense", "no request"),
                (r#"{"id": "x", "add": "alow connect a.test"}"#, "errors"),
                (r#"{"add": "allow read /etc"}"#, "network rules alone"),
                (r#"{"rules": "use std/system"}"#, "network rules alone"),
                (r#"{"add": "set A=b"}"#, "network rules alone"),
                (r#"{"add": "default env deny"}"#, "network rules alone"),
                (r#"{"add": "allow listen 127.0.0.1:1"}"#, "network rules alone"),
                (r#"{"add": "allow connect a.test:53/udp"}"#, "cannot be in force"),
                (r#"{"policy": "nowhere.policy"}"#, "cannot read the policy"),
            ] {
                let answer = session.ask(bad);
                assert_eq!(answer["ok"], json!(false), "{bad}: {answer}");
                assert!(answer["error"].as_str().unwrap().contains(says), "{bad}: {answer}");
            }
            let answer = session.ask(r#"{"add": "\nalow connect a.test"}"#);
            assert_eq!(answer["findings"][0]["labels"][0]["line"], json!(2), "{answer}");
            let long = format!("{{\"add\": \"{}\"}}", "#".repeat(2 << 20));
            assert!(session.ask(&long)["error"].as_str().unwrap().contains("bytes"));
            assert_eq!((session.status(port), session.status(other)), ("200".into(), "200".into()));

            let answer = session.ask(&format!(r#"{{"rules": "allow connect 127.0.0.1:{other}"}}"#));
            assert_eq!(answer["ok"], json!(true), "{answer}");
            assert_eq!((session.status(port), session.status(other)), ("403".into(), "200".into()));

            // The policy, changed where it is about connections, and where it is not.
            let text = std::fs::read_to_string(home.join("test.policy")).unwrap();
            let changed = text.replace(&format!("127.0.0.1:{port}"), &format!("[127.0.0.1:{port}, b.test]"));
            std::fs::write(home.join("changed.policy"), &changed).unwrap();
            let answer = session.ask(r#"{"policy": "../changed.policy"}"#);
            assert_eq!(answer["ok"], json!(true), "{answer}");
            assert_eq!((session.status(port), session.status(other)), ("200".into(), "403".into()));
            std::fs::write(home.join("changed.policy"), format!("{changed}allow write $WORKSPACE\n")).unwrap();
            let answer = session.ask(r#"{"policy": "../changed.policy"}"#);
            assert!(answer["error"].as_str().unwrap().contains("network rules alone"), "{answer}");
            // What the run was started with is compared as it was then, though its file says otherwise by now.
            std::fs::write(home.join("test.policy"), format!("{text}allow write $WORKSPACE\n")).unwrap();
            let answer = session.ask(r#"{"policy": "../test.policy"}"#);
            assert!(answer["error"].as_str().unwrap().contains("network rules alone"), "{answer}");
            // The command has no part in it.
            session.tell("ls /proc/self/fd | wc -l");
            assert_eq!(session.line(), "4");
            let said = session.end();
            assert!(said.contains(&format!("127.0.0.1:{port} refused")), "{said}");
        }
    }
}

#[test]
fn a_live_denial_closes_the_connections_that_it_denies() {
    let (port, other) = (greeter("hello"), greeter("hello"));
    let script = "
import socket, sys
held = [socket.create_connection(('127.0.0.1', int(port)), 10) for port in sys.argv[1:]]
print([s.recv(5).decode() for s in held], flush=True)
held[0].settimeout(20)
try: print(held[0].recv(5))
except OSError as error: print(type(error).__name__)
held[1].sendall(b'there'); print(held[1].recv(5).decode(), flush=True)
";
    for user in users() {
        for engine in ENGINES {
            let rules = format!("allow read $WORKSPACE\nallow connect [127.0.0.1:{port}, 127.0.0.1:{other}]");
            let scene = Scene::new().policy(&rules).file("work/hold.py", script).with(["--engine", engine]).by(user);
            let mut session = Session::new(scene);
            session.tell(&format!("/usr/bin/python3 hold.py {port} {other}"));
            assert_eq!(session.line(), "['hello', 'hello']", "{user:?} {engine}");
            let answer = session.ask(&format!(r#"{{"add": "forbid connect 127.0.0.1:{port}"}}"#));
            assert_eq!(answer["ok"], json!(true), "{answer}");
            assert_eq!((session.line(), session.line()), ("ConnectionResetError".into(), "there".into()));
            let said = session.end();
            assert!(said.contains(&format!("127.0.0.1:{port} refused by --control:")), "{said}");
        }
    }
}

#[test]
fn what_a_ceiling_does_not_permit_is_not_added() {
    let scene = Scene::new().file(
        "team.policy",
        "srt 1\ndefault read allow\nallow read, write, exec **/*\nallow connect [a.test, b.test]\n",
    );
    let scene = scene
        .policy("srt 1\nuse std/system\ndefault read allow\nallow connect a.test\n")
        .with(["--within", "../team.policy"]);
    let ceiling = scene.workspace().join("../team.policy");
    let mut session = Session::new(scene);
    assert_eq!(session.ask(r#"{"add": "allow connect b.test"}"#)["ok"], json!(true));
    let answer = session.ask(r#"{"add": "allow connect c.test"}"#);
    assert_eq!(answer["ok"], json!(false), "{answer}");
    assert!(answer["findings"][0]["witness"].as_str().unwrap().contains("c.test"), "{answer}");
    // The ceiling is the one of the start.
    std::fs::write(ceiling, "srt 1\ndefault read allow\nallow read, write, exec **/*\nallow connect *\n").unwrap();
    assert_eq!(session.ask(r#"{"add": "allow connect c.test"}"#)["ok"], json!(false));
    session.end();
}

#[test]
fn a_descriptor_that_cannot_be_spoken_over_runs_nothing() {
    let scene = Scene::new();
    for (arguments, says) in [
        (vec!["--control", "200"], "--control 200: "),
        (vec!["--control", "200", "--keep-fd", "200"], "this descriptor is not open"),
        (vec!["--control", "2"], "invalid value"),
    ] {
        let mut command = scene.srt([&["run"][..], &arguments, &["--", "echo", "ran"]].concat());
        let done = crate::support::output(&mut command);
        assert!([2, 125].contains(&done.code) && done.stdout.is_empty(), "{done:?}");
        assert!(done.stderr.contains(says), "{done:?}");
    }
}
