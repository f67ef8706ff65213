//! What a command is refused of files is told: by which rule, why, and what would allow it; and nothing else is.

use crate::support::{Output, Scene, User, users};
use serde_json::{Value, json};
use std::fs;

/// A test for each engine and user.
fn each(test: impl Fn(&str, User)) {
    for engine in ["native", "bwrap"] {
        for user in users() {
            test(engine, user);
        }
    }
}

/// The events of a run that wrote them to `events` in the home.
fn events(scene: &Scene) -> Vec<Value> {
    let text = fs::read_to_string(scene.home().join("events")).unwrap();
    text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

/// How many refusals events stand for.
fn counted(events: &[Value]) -> u64 {
    events.iter().map(|event| event["count"].as_u64().unwrap_or(1)).sum()
}

/// A scene whose refusals are written down.
fn scene(engine: &str, rules: &str) -> Scene {
    Scene::new().policy(rules).with(["--engine", engine, "--events", "../events"])
}

/// The verb and path of each event, in order, each once.
fn told(scene: &Scene) -> Vec<String> {
    let mut told = Vec::new();
    for event in events(scene) {
        let path = event["path"].as_str().unwrap();
        let path = path.replace(&*scene.home().to_string_lossy(), "~");
        let line = format!("{} {path}", event["operation"].as_str().unwrap());
        if !told.contains(&line) {
            told.push(line);
        }
    }
    told
}

#[test]
fn a_refused_write_is_told_with_its_rule_its_reason_and_what_would_allow_it() {
    each(|engine, user| {
        let rules = "allow read, write $WORKSPACE\ndeny write $WORKSPACE/kept because \"it is reviewed\"\n\
                     allow read $HOME/other\nforbid write $WORKSPACE/never";
        let scene = scene(engine, rules).by(user).file("work/kept/a", "a").file("work/never", "").file("other/b", "b");
        let output = scene.run(
            "for i in 1 2 3; do echo x > kept/a; done; echo x > ~/other/b; echo x > never; echo ok > mine; cat mine",
        );
        assert_eq!(output.stdout, "ok\n", "{engine} {user:?} {output:?}");
        let home = scene.home().display();
        let policy = scene.home().join("test.policy").display().to_string();
        for line in [
            format!(
                "3 writes to {home}/work/kept/a expected to be refused by {policy}:5 (because it is reviewed); to allow: `allow write {home}/work/kept/a`"
            ),
            format!(
                "1 write to {home}/other/b expected to be refused: no rule allows it; to allow: `allow write {home}/other/b`"
            ),
            format!("1 write to {home}/work/never expected to be refused by {policy}:7\n"),
        ] {
            assert!(output.stderr.contains(&line), "{engine} {user:?}: {line}\n{}", output.stderr);
        }
        let events = events(&scene);
        assert_eq!(counted(&events), 5, "{events:?}");
        let mut first = events[0].clone();
        assert!(first["pid"].as_i64().unwrap() > 1 && first["timestamp"].as_str().unwrap().ends_with('Z'));
        for field in ["pid", "timestamp"] {
            first.as_object_mut().unwrap().remove(field);
        }
        let expected = json!({
            "type": "violation",
            "comm": "sh",
            "operation": "write",
            "path": format!("{home}/work/kept/a"),
            "outcome": "predicted",
            "why": "denied",
            "rule": { "file": policy, "line": 5, "text": "deny write $WORKSPACE/kept" },
            "because": "it is reviewed",
            "remedy": format!("allow write {home}/work/kept/a"),
        });
        assert_eq!(first, expected, "{engine} {user:?}");
    });
}

/// What is probed again and again, and the kernel decides, is told at once and then counted; what was refused is told each time.
#[test]
fn a_probe_is_told_once_with_how_often() {
    each(|engine, user| {
        let rules = "allow read, write $WORKSPACE\ndeny write $WORKSPACE/kept";
        let scene = scene(engine, rules).by(user).file("work/kept/a", "a");
        let begin = std::time::Instant::now();
        scene.run("i=0; while [ $i -lt 300 ]; do echo x > kept/a; i=$((i + 1)); done; true").ok();
        let seconds = begin.elapsed().as_secs();
        let probes = events(&scene);
        assert_eq!(counted(&probes), 300, "{engine} {user:?} {probes:?}");
        assert!(probes.len() as u64 <= seconds + 2, "{engine} {user:?} {seconds} {probes:?}");
        assert_eq!(probes[0].get("count"), None);

        let scene = scene.policy("allow read, write $WORKSPACE\ndeny write $WORKSPACE/**/*.denied");
        scene.run("for i in 1 2 3 4 5; do echo x > a.denied; done; true").ok();
        let refused = events(&scene);
        assert_eq!(refused.len(), 5, "{engine} {user:?} {refused:?}");
        assert!(refused.iter().all(|event| event["outcome"] == "refused" && event.get("count").is_none()));
    });
}

/// A policy that lets nothing be connected to: who tries is told, and by which rule, or none, it is refused.
#[test]
fn where_there_is_no_network_connecting_and_looking_up_are_told() {
    const TRIES: &str = r#"
import errno, socket
def connect(family, kind, *address):
    with socket.socket(family, kind) as socket_:
        socket_.settimeout(5)
        try:
            socket_.connect(address)
        except OSError as error:
            print(errno.errorcode[error.errno], *address, flush=True)
four, six, stream, datagram = socket.AF_INET, socket.AF_INET6, socket.SOCK_STREAM, socket.SOCK_DGRAM
connect(four, stream, "192.0.2.1", 443)
connect(four, stream, "198.51.100.7", 22)
connect(six, stream, "2001:db8::1", 80)
# None of these is: its own loopback, and what only chooses an address to come from.
connect(four, stream, "127.0.0.1", 9)
connect(six, stream, "::1", 9)
connect(four, datagram, "192.0.2.1", 9)
try:
    socket.getaddrinfo("a.example", 443)
except OSError:
    print("unknown")
"#;
    each(|engine, user| {
        let rules = "use std/python\nallow read, write $WORKSPACE\ndeny connect 192.0.2.0/24 because \"it is a test\"";
        let scene = scene(engine, rules).by(user);
        let output = scene.run_command(["python3", "-S", "-c", TRIES]);
        let said = output.ok().lines().filter(|line| line.starts_with("ECONNREFUSED") || *line == "unknown").count();
        assert_eq!(said, 3, "{engine} {user:?} {output:?}");
        let (names, connections): (Vec<_>, Vec<_>) =
            events(&scene).into_iter().partition(|event| event["operation"] == "resolve");
        let policy = scene.home().join("test.policy").display().to_string();
        let told: Vec<_> = connections
            .iter()
            .map(|event| {
                assert_eq!((&event["outcome"], &event["comm"]), (&"refused".into(), &"python3".into()), "{event}");
                assert!(event["pid"].as_i64().unwrap() > 1);
                (event["host"].clone(), event["port"].clone(), event["rule"]["line"].clone(), event["remedy"].clone())
            })
            .collect();
        let text = |text: &str| Value::from(text);
        let expected = [
            (text("192.0.2.1"), json!(443), json!(6), text("allow connect 192.0.2.1:443")),
            (text("198.51.100.7"), json!(22), Value::Null, text("allow connect 198.51.100.7:22")),
            (text("2001:db8::1"), json!(80), Value::Null, text("allow connect [2001:db8::1]:80")),
        ];
        assert_eq!(told, expected, "{engine} {user:?}");
        assert!(!names.is_empty() && names.iter().all(|event| event.get("host").is_none()), "{names:?}");
        for line in [
            format!("1 connection to 192.0.2.1:443 refused by {policy}:6 (because it is a test)"),
            format!("{} look-up", counted(&names)),
        ] {
            assert!(output.stderr.contains(&line), "{engine} {user:?}: {line}\n{}", output.stderr);
        }
    });
}

/// What the policy ignores is refused all the same, counted, and not told; all else is.
#[test]
fn what_is_ignored_is_refused_and_not_told() {
    each(|engine, user| {
        let rules = "allow read, write $WORKSPACE\nallow read $HOME/other\nignore write $HOME/other/** except $HOME/other/kept \
                     because \"it looks for a cache\"\nignore connect a.test";
        let scene = scene(engine, rules).by(user).file("other/a", "a").file("other/kept", "k");
        let output =
            scene.run("for i in 1 2 3; do echo x > ~/other/a; done; echo x > ~/other/kept; cat ~/other/a ~/other/kept");
        assert_eq!(output.stdout, "ak", "{engine} {user:?} {output:?}");
        assert_eq!(told(&scene), ["write ~/other/kept"], "{engine} {user:?}");
        assert!(
            output.stderr.ends_with("\n3 refusals ignored, as the policy says\n"),
            "{engine} {user:?} {}",
            output.stderr
        );
        assert!(!output.stderr.contains("other/a expected"), "{}", output.stderr);
        let quiet = scene.with(["--quiet"]).run("echo x > ~/other/a; true");
        assert!(!quiet.stderr.contains("ignored"), "{quiet:?}");
    });
}

/// The statement that is proposed does allow it.
#[test]
fn what_is_proposed_is_enough() {
    for user in users() {
        let rules = "allow read, write $WORKSPACE\ndeny write $WORKSPACE/kept";
        let script = "echo x > kept/a && echo y > ~/hidden/b";
        let scene = scene("native", rules).by(user).file("work/kept/a", "a").folder("hidden");
        let mut rules = rules.to_owned();
        let mut scene = scene;
        for _ in 0..2 {
            assert_ne!(scene.run(script).code, 0);
            let events = events(&scene);
            rules = format!("{rules}\n{}", events[0]["remedy"].as_str().unwrap());
            scene = scene.policy(&rules);
        }
        assert!(rules.contains("allow read, write"), "what may be written must be readable: {rules}");
        fs::write(scene.home().join("hidden/b"), "").unwrap();
        scene.run(script).ok();
    }
}

const EVERYTHING: &str = r#"
import os, sys
def attempt(act, *arguments, **named):
    try:
        act(*arguments, **named)
        print("done", act.__name__, arguments)
    except OSError:
        pass
def all_of(name):
    at = lambda more: f"{name}/{more}"
    for flags in (os.O_WRONLY, os.O_RDWR, os.O_RDONLY | os.O_TRUNC, os.O_WRONLY | os.O_APPEND):
        attempt(os.open, at(f"open{flags}"), flags)
    attempt(os.open, at("new"), os.O_CREAT)
    attempt(os.truncate, at("truncate"), 0)
    attempt(os.mkdir, at("mkdir"))
    attempt(os.mkfifo, at("mkfifo"))
    attempt(os.symlink, "x", at("symlink"))
    attempt(os.unlink, at("unlink"))
    attempt(os.rmdir, at("rmdir"))
    attempt(os.rename, at("rename"), "x")
    attempt(os.rename, "mine", at("renamed"))
    attempt(os.link, "mine", at("linked"))
    attempt(os.chmod, at("chmod"), 0o700)
    attempt(os.chown, at("chown"), -1, os.getgid())
    attempt(os.utime, at("utime"))
    attempt(os.setxattr, at("setxattr"), "user.x", b"x")
    attempt(os.removexattr, at("removexattr"), "user.x")
    directory = os.open(name, os.O_RDONLY)
    attempt(os.open, "openat", os.O_WRONLY, dir_fd=directory)
    attempt(os.unlink, "unlinkat", dir_fd=directory)
    attempt(os.mkdir, "mkdirat", dir_fd=directory)
    attempt(os.rename, "renameat", "y", src_dir_fd=directory, dst_dir_fd=directory)
    attempt(os.chmod, "fchmodat", 0o700, dir_fd=directory)
    os.chdir(name)
    attempt(os.open, "relative", os.O_WRONLY)
    attempt(os.open, "../kept/./dots", os.O_WRONLY)
    attempt(os.open, "/proc/self/cwd/by-proc", os.O_WRONLY)
    attempt(os.open, "link", os.O_WRONLY)
    os.chdir("..")
all_of("kept")
"#;

/// Each call by which a file is changed is seen, however its path is written.
#[test]
fn every_way_of_changing_a_file_is_told() {
    each(|engine, user| {
        let names = "open1 open2 open512 open1025 truncate unlink rename chmod chown utime setxattr removexattr openat \
                     unlinkat renameat fchmodat relative dots by-proc led";
        let mut scene =
            scene(engine, "use std/python\nallow read, write $WORKSPACE\ndeny write $WORKSPACE/kept").by(user);
        for name in names.split_whitespace() {
            scene = scene.file(&format!("work/kept/{name}"), "");
        }
        let scene = scene.folder("work/kept/rmdir").file("work/mine", "").link("work/kept/link", "led");
        scene.run_command(["python3", "-S", "-c", EVERYTHING]).ok();
        let made = ["new", "mkdir", "mkfifo", "symlink", "rmdir", "renamed", "linked", "mkdirat"];
        let mut expected: Vec<String> =
            names.split_whitespace().chain(made).map(|name| format!("write ~/work/kept/{name}")).collect();
        expected.sort();
        let mut told = told(&scene);
        told.sort();
        assert_eq!(told, expected, "{engine} {user:?}");
    });
}

/// What fails for a reason of its own is not the policy's doing, nor are looks.
#[test]
fn nothing_is_told_of_what_is_allowed_or_fails_by_itself() {
    each(|engine, user| {
        let rules = "use std/python\nallow read, write $WORKSPACE\nallow read $HOME/seen";
        let scene = scene(engine, rules).by(user).file("seen/file", "").link("work/nowhere", "gone/x");
        let script = r#"
import os, tempfile
home = os.environ["HOME"]
def fails(act, *arguments):
    try:
        act(*arguments)
    except OSError:
        return
    raise SystemExit(f"{act} {arguments}")
fails(os.open, home + "/seen/none", os.O_WRONLY)
fails(os.open, home + "/seen/none/deeper", os.O_WRONLY | os.O_CREAT)
fails(os.open, home + "/seen/file", os.O_WRONLY | os.O_CREAT | os.O_EXCL)
fails(os.open, "nowhere", os.O_WRONLY | os.O_CREAT)
fails(os.mkdir, home + "/seen")
fails(os.unlink, home + "/seen/none")
fails(os.rename, home + "/seen/none", "x")
fails(os.link, home + "/seen/none", "x")
fails(os.symlink, "x", home + "/seen/file")
fails(os.stat, home + "/secret")
fails(os.open, home + "/secret", os.O_RDONLY)
for device in ("/dev/null", "/dev/zero", "/dev/full"):
    os.open(device, os.O_RDWR)
os.open("/proc/self/oom_score_adj", os.O_WRONLY)
reading, writing = os.pipe()
os.open(f"/proc/self/fd/{writing}", os.O_WRONLY)
os.open(f"/dev/fd/{writing}", os.O_WRONLY)
with tempfile.TemporaryFile() as file:
    file.write(b"x")
with tempfile.NamedTemporaryFile(dir=".") as file:
    file.write(b"x")
os.open(".", os.O_TMPFILE | os.O_WRONLY)
os.makedirs("a/b/c")
os.rename("a/b", "d")
os.close(os.memfd_create("x"))
"#;
        let output = scene.run_command(["python3", "-S", "-c", script]);
        assert_eq!((output.ok(), &*output.stderr), ("", ""), "{engine} {user:?}");
        assert_eq!(events(&scene), Vec::<Value>::new(), "{engine} {user:?}");
    });
}

/// Where reading is closed, what the policy hides is told as what it is; what is not there for anybody is not.
#[test]
fn what_is_hidden_is_told_and_reads_where_asked_for() {
    each(|engine, user| {
        let rules = "allow read, write $WORKSPACE\ndeny read $WORKSPACE/.env because \"it holds keys\"";
        let files = |scene: Scene| scene.by(user).file("work/.env", "KEY=1").file("hidden/x", "");
        let script =
            "cat .env ~/hidden/x none; echo x > ~/hidden/y; echo x > ~/hidden/deep/y; ls > listing; cat listing";
        let written = ["write ~/hidden/y", "write ~/hidden/deep/y"];
        let unasked = files(scene(engine, rules));
        assert_eq!(unasked.run(script).stdout, "listing\n", "{engine} {user:?}");
        assert_eq!(told(&unasked), written, "{engine} {user:?}");
        let asked = files(scene(engine, rules).with(["--monitor", "reads"]));
        let output = asked.run(script);
        let told = told(&asked);
        for line in ["read ~/work/.env", "write ~/hidden/y"] {
            assert!(told.iter().any(|told| told == line), "{engine} {user:?} {line}: {told:?}");
        }
        assert!(!told.iter().any(|line| line.contains("none")), "{told:?}");
        let policy = asked.home().join("test.policy").display().to_string();
        let read = format!(
            "1 read of {}/.env expected to be refused by {policy}:5 (because it holds keys)",
            asked.workspace().display()
        );
        assert!(output.stderr.contains(&read), "{engine} {user:?}: {}", output.stderr);
    });
}

/// A tree of processes, threads, and what a program starts: who tried it is told.
#[test]
fn whoever_tries_it_is_seen() {
    each(|engine, user| {
        let rules = "use std/python\nallow read, write $WORKSPACE\nallow read $HOME/seen";
        let scene = scene(engine, rules).by(user).file("seen/thread", "").file("seen/child", "").file("seen/grand", "");
        let script = r#"
import os, subprocess, threading
def write(name):
    try:
        os.open(os.environ["HOME"] + "/seen/" + name, os.O_WRONLY)
    except OSError as error:
        print(error.errno, flush=True)
thread = threading.Thread(target=write, args=("thread",))
thread.start()
thread.join()
if os.fork() == 0:
    write("child")
    subprocess.run(["sh", "-c", "exec 2>/dev/null; (exec true > ~/seen/grand)"])
    os._exit(0)
os.wait()
"#;
        let output = scene.run_command(["python3", "-S", "-c", script]);
        assert_eq!(output.ok(), "30\n30", "{engine} {user:?} {output:?}");
        let seen: Vec<_> = events(&scene)
            .iter()
            .map(|event| {
                format!(
                    "{} {}",
                    event["comm"].as_str().unwrap(),
                    event["path"].as_str().unwrap().rsplit('/').next().unwrap()
                )
            })
            .collect();
        assert_eq!(seen, ["python3 thread", "python3 child", "sh grand"], "{engine} {user:?}");
        let pids: Vec<_> = events(&scene).iter().map(|event| event["pid"].as_i64().unwrap()).collect();
        assert!(pids[0] < pids[1] && pids[1] < pids[2], "{pids:?}");
    });
}

/// A loop that is refused all the time ends in time; each of its attempts is counted, one by one or as one of those that were
/// too many.
#[test]
fn a_flood_is_counted_and_holds_up_nobody() {
    const EACH: u64 = 4000;
    each(|engine, user| {
        let rules = "use std/python\nallow read, write $WORKSPACE\nallow read $HOME/seen";
        let scene = scene(engine, rules).by(user).folder("seen");
        let script = format!(
            r#"
import os
children = []
for _ in range(2):
    child = os.fork()
    children = children + [child] if child else []
for n in range({EACH}):
    try:
        os.open(f"{{os.environ['HOME']}}/seen/{{n}}", os.O_WRONLY | os.O_CREAT)
    except OSError:
        pass
for child in children:
    if child:
        os.waitpid(child, 0)
"#
        );
        let output = scene.run_command(["python3", "-S", "-c", &script]);
        output.ok();
        assert_eq!(counted(&events(&scene)), 4 * EACH, "{engine} {user:?}");
        let said: u64 = output.stderr.split_whitespace().find_map(|word| word.parse().ok()).unwrap();
        assert!(said > 0 && output.stderr.contains("more refused"), "{}", output.stderr);
    });
}

/// Programs that a rule denies to run, however they are started; not what is not there.
#[test]
fn what_is_denied_to_run_is_told() {
    each(|engine, user| {
        let rules =
            "use std/python\nallow read, write $WORKSPACE\ndeny exec $WORKSPACE/tool because \"it was not reviewed\"";
        let script = "#!/bin/sh\necho ran\n";
        let scene = scene(engine, rules).by(user).file("work/tool", script).file("work/other", script);
        for name in ["tool", "other"] {
            let mode = std::os::unix::fs::PermissionsExt::from_mode(0o755);
            fs::set_permissions(scene.workspace().join(name), mode).unwrap();
        }
        let attempts = r"
import os
for path in ('./tool', 'none', './other'):
    if os.fork() == 0:
        try:
            os.execv(path, [path])
        except OSError as error:
            print(path, error.errno, flush=True)
        os._exit(0)
    os.wait()
if os.fork() == 0:
    try:
        os.execve(os.open('tool', os.O_RDONLY | os.O_CLOEXEC), ['tool'], {})
    except OSError as error:
        print(error.errno, flush=True)
    os._exit(0)
os.wait()
os.chdir('/')
os.system('cd ~/work; PATH=.:$PATH; tool 2>/dev/null || true')
";
        let output = scene.run_command(["python3", "-S", "-c", attempts]);
        assert_eq!(output.ok(), "./tool 13\nnone 2\nran\n13", "{engine} {user:?} {output:?}");
        assert_eq!(told(&scene), ["exec ~/work/tool"], "{engine} {user:?}");
        let events = events(&scene);
        assert!(events.len() >= 2, "{events:?}");
        assert_eq!(events[0]["because"], "it was not reviewed");
        assert_eq!(events[0]["outcome"], "predicted");
    });
}

/// Who wants to hear nothing is told nothing, at no cost: no call is then looked at.
#[test]
fn quiet_is_quiet() {
    each(|engine, user| {
        let scene = Scene::new().with(["--engine", engine, "--quiet"]).by(user);
        let output = scene.run("echo x > /etc/x; true");
        assert!(!output.stderr.contains("expected to be refused"), "{output:?}");
        let script = "import os; [os.open(f'f{n}', os.O_CREAT | os.O_WRONLY) for n in range(3)]; \
                      print(open('/proc/1/status').read().split('Threads:')[1].split()[0])";
        let threads = |scene: Scene| -> Output {
            scene
                .policy("use std/python\nallow read, write $WORKSPACE")
                .by(user)
                .run_command(["python3", "-S", "-c", script])
        };
        assert_eq!(threads(Scene::new().with(["--engine", engine, "-q"])).ok(), "1", "{engine} {user:?}");
        assert_ne!(threads(Scene::new().with(["--engine", engine])).ok(), "1", "{engine} {user:?}");
    });
}
