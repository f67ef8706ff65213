//! The sandbox's processes exist before there is a plan: what they hold while they wait for it, and what becomes of them if
//! it never comes. The policy is a FIFO, which makes that time as long as a test likes.

use crate::support::{Scene, am_root, output, srt, users};
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use std::ffi::OsString;
use std::fs;
use std::os::unix::process::ExitStatusExt;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

const POLICY: &str = "srt 1\nuse std/system\ndefault read allow\nallow read, write $WORKSPACE\n";

/// A run that waits for its policy.
struct Waiting {
    srt: Child,
    /// pid 1, and the process that becomes the command.
    inside: [i32; 2],
    fifo: PathBuf,
}

impl Waiting {
    fn new(scene: &Scene, arguments: &[&str], command: &str, around: impl FnOnce(&mut Command)) -> Waiting {
        let fifo = scene.home().join("late.policy");
        let mode = nix::sys::stat::Mode::from_bits_truncate(0o644);
        nix::unistd::mkfifo(&fifo, mode).unwrap();
        let mut line: Vec<OsString> = vec!["run".into(), "--policy".into(), (&fifo).into()];
        line.extend(arguments.iter().map(OsString::from));
        line.extend(["--", "sh", "-c", command].map(OsString::from));
        let mut process = scene.srt(line);
        process.stdout(Stdio::piped()).stderr(Stdio::piped());
        around(&mut process);
        let srt = process.spawn().unwrap();
        let id = i32::try_from(srt.id()).unwrap();
        let mut inside = [0; 2];
        eventually("both are there", || {
            let Some(first) = only_child(id) else { return false };
            let Some(second) = only_child(first) else { return false };
            inside = [first, second];
            waits(first) && waits(second)
        });
        Waiting { srt, inside, fifo }
    }

    fn id(&self) -> Pid {
        Pid::from_raw(i32::try_from(self.srt.id()).unwrap())
    }

    /// Whether anything is left; what nobody has taken note of yet is not.
    fn lives(&self) -> bool {
        self.inside.iter().any(|process| state(*process).is_some_and(|state| state != 'Z'))
    }
}

fn only_child(of: i32) -> Option<i32> {
    fs::read_to_string(format!("/proc/{of}/task/{of}/children")).ok()?.trim().parse().ok()
}

fn state(of: i32) -> Option<char> {
    let stat = fs::read_to_string(format!("/proc/{of}/stat")).ok()?;
    stat.rsplit(") ").next()?.chars().next()
}

/// Asleep, and so done with what it does before the plan.
fn waits(process: i32) -> bool {
    (0..5).all(|_| {
        std::thread::sleep(Duration::from_millis(2));
        state(process) == Some('S')
    })
}

fn eventually(what: &str, mut holds: impl FnMut() -> bool) {
    let begin = Instant::now();
    while !holds() {
        assert!(begin.elapsed() < Duration::from_secs(10), "not so: {what}");
        std::thread::sleep(Duration::from_millis(5));
    }
}

fn open_in(process: i32) -> Vec<(i32, String)> {
    let entries = fs::read_dir(format!("/proc/{process}/fd")).unwrap();
    let mut open: Vec<_> = entries
        .map(|entry| {
            let path = entry.unwrap().path();
            let number = path.file_name().unwrap().to_str().unwrap().parse().unwrap();
            (number, fs::read_link(&path).unwrap().to_string_lossy().into_owned())
        })
        .collect();
    open.sort();
    open
}

#[test]
fn what_waits_for_its_plan_dies_with_the_supervisor() {
    for user in users() {
        for signal in [Signal::SIGKILL, Signal::SIGTERM, Signal::SIGINT, Signal::SIGHUP] {
            let scene = Scene::new().by(user);
            let mut waiting = Waiting::new(&scene, &[], "exit 0", |_| ());
            assert!(waiting.lives());
            kill(waiting.id(), signal).unwrap();
            assert_eq!(waiting.srt.wait().unwrap().signal(), Some(signal as i32));
            eventually("nothing is left", || !waiting.lives());
        }
    }
}

#[test]
fn a_policy_in_error_leaves_no_process() {
    for user in users() {
        let scene = Scene::new().by(user);
        let waiting = Waiting::new(&scene, &[], "echo ran", |_| ());
        fs::write(&waiting.fifo, "srt 1\ndefault read allow\nallow nonsense\n").unwrap();
        let inside = waiting.inside;
        let said = waiting.srt.wait_with_output().unwrap();
        assert_eq!(said.status.code(), Some(125));
        assert!(said.stdout.is_empty() && String::from_utf8_lossy(&said.stderr).contains("nonsense"));
        // Gone and taken note of, not merely about to be.
        assert_eq!(inside.map(state), [None, None]);
    }
}

#[test]
fn what_waits_holds_nothing_of_the_callers_but_what_the_command_keeps() {
    let other = fs::File::open("/dev/null").unwrap();
    // Inheritable, as F_DUPFD leaves them.
    let copy = |at| nix::fcntl::fcntl(&other, nix::fcntl::FcntlArg::F_DUPFD(at)).unwrap();
    let (kept, loose) = (copy(70), copy(80));
    for user in users() {
        let scene = Scene::new().by(user);
        let keep = ["--keep-fd", &kept.to_string(), "--events", "events"];
        let waiting = Waiting::new(
            &scene,
            &keep,
            "ls -v /proc/self/fd | xargs; umask; pwd; cat; echo $WORD; readlink /proc/1/fd/* | wc -l",
            |process| {
                process.env("WORD", "said").stdin(Stdio::piped());
            },
        );
        if am_root() {
            let [first, second] = waiting.inside.map(open_in);
            let numbers = |open: &[(i32, String)]| open.iter().map(|(number, _)| *number).collect::<Vec<_>>();
            assert!(!numbers(&first).contains(&kept) && !numbers(&first).contains(&loose), "{first:?}");
            // Mounts, the sockets to the supervisor and to the other, and what one wakes the other by.
            let is_bell = |to: &str| to == "anon_inode:[eventfd]";
            let bells = |open: &[(i32, String)]| open.iter().filter(|(_, to)| is_bell(to)).count();
            assert_eq!((bells(&first), bells(&second)), (1, 1), "{first:?} {second:?}");
            let mounts = first.iter().filter(|(number, to)| *number > 2 && to.starts_with('/'));
            let sockets = first.iter().filter(|(number, to)| *number > 2 && to.starts_with("socket:"));
            assert_eq!((mounts.count() + sockets.clone().count(), sockets.count()), (first.len() - 4, 2), "{first:?}");
            let rest: Vec<_> = second.iter().filter(|(number, _)| *number > 2).collect();
            assert_eq!(rest.len(), 4, "{second:?}");
            assert_eq!(rest.iter().filter(|(_, to)| to.starts_with("socket:")).count(), 2, "{second:?}");
            assert_eq!(rest[3], &(kept, "/dev/null".to_owned()));
        }
        fs::write(&waiting.fifo, POLICY).unwrap();
        let said = waiting.srt.wait_with_output().unwrap();
        let umask = output(Command::new("sh").args(["-c", "umask"])).stdout;
        let here = scene.workspace();
        let wanted = format!("0 1 2 {kept}\n{umask}{}\nsaid\n0\n", here.display());
        let (stdout, stderr) = (String::from_utf8_lossy(&said.stdout), String::from_utf8_lossy(&said.stderr));
        // The directory that `ls` lists is open.
        let listed = stdout.replacen(" 3 ", " ", 1);
        assert_eq!(listed, wanted, "{stderr}");
    }
}

#[test]
fn what_is_wrong_with_a_policy_is_said_before_what_is_wrong_with_the_machine() {
    let scene =
        Scene::new().file("wrong.policy", "srt 1\ndefault read allow\nallow nonsense\n").file("right.policy", POLICY);
    for limit in ["max_user_namespaces", "max_net_namespaces"] {
        let run = |policy: &str| {
            let script = format!("echo 0 > /proc/sys/user/{limit}; exec \"$0\" run --policy \"$1\" -- true");
            let mut process = Command::new("unshare");
            process.args(["-Ur", "sh", "-c", &script]).arg(srt()).arg(scene.home().join(policy));
            output(process.current_dir(scene.workspace()).env("HOME", scene.home()))
        };
        let said = run("right.policy");
        assert!(
            said.fails(125).contains("srt: cannot make another namespace (see `user.max_user_namespaces`): "),
            "{said:?}"
        );
        let said = run("wrong.policy");
        assert!(said.fails(125).contains("nonsense") && !said.stderr.contains("namespace"), "{said:?}");
    }
}

/// A file system that the host mounts meanwhile, in a mount namespace where nothing is shared, and so is not followed.
#[test]
fn what_the_host_mounts_meanwhile_is_not_a_way_around_a_rule() {
    if !am_root() {
        return;
    }
    let scene =
        Scene::new().folder("work/later").file("test.policy", &format!("{POLICY}deny read $WORKSPACE/later/secret\n"));
    let script = r#"
        mount --make-rprivate /
        mkfifo "$HOME/fifo"
        "$0" run --policy "$HOME/fifo" -- sh -c 'cat later/secret; cat later/open' &
        until pgrep -P $! > /dev/null; do sleep 0.01; done
        sleep 0.2
        mount -t tmpfs none later
        echo a secret > later/secret
        echo not a secret > later/open
        while :; do cat "$HOME/test.policy" > "$HOME/fifo"; sleep 0.3; done &
        writer=$!
        wait %1
        status=$?
        kill $writer
        exit $status
    "#;
    let mut process = Command::new("unshare");
    process.args(["-m", "sh", "-c", script]).arg(srt());
    let said = output(process.current_dir(scene.workspace()).env("HOME", scene.home()));
    assert_eq!(said.ok(), "not a secret");
    assert!(said.stderr.contains("later/secret: Permission denied"), "{said:?}");
}

/// Whoever ignores the end of children tells the kernel to forget it.
#[test]
fn a_caller_that_ignores_the_end_of_its_children_hears_of_the_commands() {
    let scene = Scene::new();
    for engine in ["native", "bwrap"] {
        let mut process = Command::new("env");
        process.arg("--ignore-signal=CHLD").arg(srt()).args(["run", "--engine", engine, "--", "sh", "-c", "exit 7"]);
        let mut running = process.current_dir(scene.workspace()).env("HOME", scene.home()).spawn().unwrap();
        let mut status = None;
        eventually("it ends", || {
            status = running.try_wait().unwrap();
            status.is_some()
        });
        assert_eq!(status.unwrap().code(), Some(7), "{engine}");
    }
}
