//! Faults that people reported of tools of this kind, tried on ours: files, processes, environment.
//!
//! `tests/reported-faults.md` says which kind each test holds.

use crate::support::{Output, Scene, output, users};
use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::process::Stdio;
use std::time::{Duration, Instant};

/// Everything below a folder, as names, kinds, sizes and times of change.
fn snapshot(folder: &Path) -> BTreeMap<String, (u32, u64, i64)> {
    let mut found = BTreeMap::new();
    let mut folders = vec![folder.to_owned()];
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            let metadata = fs::symlink_metadata(&path).unwrap();
            found.insert(path.display().to_string(), (metadata.mode(), metadata.size(), metadata.mtime()));
            if metadata.is_dir() {
                folders.push(path);
            }
        }
    }
    found
}

fn git(scene: &Scene, arguments: &[&str]) {
    let mut command = std::process::Command::new("git");
    command.args(["-c", "user.name=A", "-c", "user.email=a@example.com", "-c", "init.defaultBranch=main"]);
    let output = output(command.args(arguments).current_dir(scene.workspace()));
    output.ok();
}

fn repository() -> Scene {
    let scene = Scene::new()
        .file(".gitconfig", "[user]\n\tname = A\n\temail = a@example.com\n")
        .file("work/a.txt", "one\n")
        .file("work/.gitignore", ".env\n");
    git(&scene, &["init", "-q"]);
    git(&scene, &["add", "."]);
    git(&scene, &["commit", "-q", "-m", "first"]);
    scene
}

const AGENT: &str = "use std/secrets\nuse std/shell-config\nuse std/git\nallow read, write $WORKSPACE";

#[test]
fn the_host_tree_is_the_same_before_and_after() {
    for user in users() {
        let scene = repository().by(user).policy(AGENT);
        scene.run("true").ok();
        let before = snapshot(scene.home());
        scene.run("cat a.txt; git status --porcelain; ls -la").ok();
        let after = snapshot(scene.home());
        let differs = |path: &String| {
            before.get(path) != after.get(path) && !path.ends_with("/.git") && !path.contains("/.git/index")
        };
        let changed: Vec<_> = before.keys().chain(after.keys()).filter(|path| differs(path)).collect();
        assert!(changed.is_empty(), "{user:?}: {changed:?}");
    }
}

#[test]
fn a_kill_leaves_no_process_and_no_file() {
    for user in users() {
        let scene = repository().by(user).policy(AGENT);
        scene.run("true").ok();
        let before = snapshot(scene.home());
        let temporary = || {
            fs::read_dir("/tmp")
                .unwrap()
                .map(|entry| entry.unwrap().file_name())
                .collect::<std::collections::BTreeSet<_>>()
        };
        let tmp = temporary();
        let mark = format!("sleep 98765{}", std::process::id());
        let mut child = scene
            .sandboxed(["sh", "-c", &format!("echo up; {mark} & {mark}; true")])
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let mut up = [0; 3];
        std::io::Read::read_exact(child.stdout.as_mut().unwrap(), &mut up).unwrap();
        child.kill().unwrap();
        child.wait().unwrap();
        let deadline = Instant::now() + Duration::from_secs(5);
        while running(&mark) > 0 {
            assert!(Instant::now() < deadline, "{user:?}: {} left", running(&mark));
            std::thread::sleep(Duration::from_millis(20));
        }
        assert_eq!(before, snapshot(scene.home()), "{user:?}");
        let left: Vec<_> =
            temporary().difference(&tmp).filter(|name| name.to_string_lossy().contains("srt-")).cloned().collect();
        assert!(left.is_empty(), "{user:?}: {left:?}");
    }
}

/// How many processes have a command line that starts so.
fn running(mark: &str) -> usize {
    let words = mark.replace(' ', "\0");
    fs::read_dir("/proc")
        .unwrap()
        .filter_map(|entry| fs::read(entry.ok()?.path().join("cmdline")).ok())
        .filter(|line| line.starts_with(words.as_bytes()))
        .count()
}

#[test]
fn git_sees_no_node_that_is_not_there() {
    for user in users() {
        let scene = repository().by(user).policy(AGENT);
        let output = scene.run("git add . && git status --porcelain && git stash list && ls -A");
        assert_eq!(output.ok(), ".git\n.gitignore\na.txt", "{user:?}");
    }
}

#[test]
fn an_absent_worktree_config_stays_absent() {
    for user in users() {
        let scene = repository();
        git(&scene, &["config", "extensions.worktreeConfig", "true"]);
        let scene = scene.by(user).policy(AGENT);
        scene.run("git status && test ! -e .git/config.worktree").ok();
    }
}

#[test]
fn a_masked_file_is_a_plain_file_that_cannot_be_opened() {
    for user in users() {
        let scene = Scene::new()
            .file("work/.env", "KEY=1")
            .by(user)
            .policy("allow read, write $WORKSPACE\ndeny read $WORKSPACE/.env");
        assert_eq!(scene.run("stat -c %F .env").ok(), "regular empty file", "{user:?}");
        for attempt in [
            "cat .env",
            "echo x > .env",
            "echo x >> .env",
            "rm -f .env",
            "mv .env e",
            "ln .env e",
            "cp .env e",
            "chmod 644 .env && cat .env",
        ] {
            let output = scene.run(attempt);
            assert_ne!(output.code, 0, "{user:?}: `{attempt}`: {output:?}");
        }
        assert_eq!(fs::read_to_string(scene.workspace().join(".env")).unwrap(), "KEY=1");
    }
}

#[test]
fn a_denied_folder_behind_a_link_is_denied_as_a_folder() {
    for user in users() {
        let scene = Scene::new()
            .file("other/real/key", "secret")
            .link("work/link", "../other/real")
            .by(user)
            .policy("allow read, write $HOME/other\nallow read $WORKSPACE\ndeny read, write $WORKSPACE/link");
        let output = scene.run("cat link/key || cat ../other/real/key || echo x > ../other/real/new");
        assert_ne!(output.code, 0, "{user:?}: {output:?}");
        assert!(!scene.home().join("other/real/new").exists());
    }
}

#[test]
fn a_link_made_inside_does_not_lead_the_next_run_out() {
    for user in users() {
        let scene = Scene::new()
            .file("secret/key", "secret")
            .folder("work/build/out")
            .by(user)
            .policy("allow read, write $WORKSPACE/build\nallow read, write $WORKSPACE/build/out");
        scene.run("rm -r build/out && ln -s ../../secret build/out").ok();
        let output = scene.run("cat build/out/key; echo x > build/out/new");
        assert_eq!(output.code, 125, "{user:?}: {output:?}");
        assert!(output.stderr.contains("link"), "{user:?}: {}", output.stderr);
        assert!(!scene.home().join("secret/new").exists());
    }
}

#[test]
fn a_write_rule_through_a_link_opens_the_resolved_place_alone() {
    for user in users() {
        let scene = Scene::new()
            .folder("real/inner")
            .link("alias", "real/inner")
            .by(user)
            .policy("allow read $HOME\nallow write $HOME/alias");
        scene.run("echo x > ../real/inner/new && echo y > ../alias/other").ok();
        assert_ne!(scene.run("echo x > ../real/new").code, 0, "{user:?}");
        assert_ne!(scene.run("ln -sfn /etc ../alias").code, 0, "{user:?}");
    }
}

#[test]
fn a_workspace_that_is_read_only_or_not_owned_needs_no_stub() {
    for user in users() {
        let scene = Scene::new().policy("use std/shell-config\nallow read $WORKSPACE");
        fs::set_permissions(scene.workspace(), std::os::unix::fs::PermissionsExt::from_mode(0o555)).unwrap();
        scene.by(user).run("true").ok();
    }
}

#[test]
fn two_stars_at_the_end_mean_the_tree() {
    for user in users() {
        let scene =
            Scene::new().folder("work/d/e").by(user).policy("allow read $WORKSPACE\nallow write $WORKSPACE/d/**");
        scene.run("echo x > d/e/f && echo y > d/g").ok();
        assert_ne!(scene.run("echo x > outside").code, 0, "{user:?}");
    }
}

#[test]
fn a_star_in_the_middle_of_a_denied_path_holds() {
    for user in users() {
        let scene = Scene::new().file("work/a/b/secret", "s").file("work/a/c/secret", "s").by(user).policy(
            "allow read, write $WORKSPACE\n# lint: allow(later-names) what is there now is what matters\ndeny write $WORKSPACE/a/*/secret",
        );
        for attempt in ["echo x > a/b/secret", "rm a/c/secret", "mv a/b a/x", "mv a z"] {
            assert_ne!(scene.run(attempt).code, 0, "{user:?}: {attempt}");
        }
        scene.run("echo x > a/b/other").ok();
    }
}

#[test]
fn a_read_glob_holds_for_every_command() {
    for user in users() {
        let scene = Scene::new().file("work/a/b/.env", "KEY=1").file("work/.env", "KEY=2").by(user).policy(
            "allow read $WORKSPACE\n# lint: allow(later-names) what is there now is what matters\ndeny read $WORKSPACE/**/.env",
        );
        for attempt in [
            "cat .env",
            "bash -c 'cat a/b/.env'",
            "python3 -c 'print(open(\"a/b/.env\").read())'",
            "cat /proc/self/root$PWD/.env",
            "cat /proc/$$/cwd/.env",
        ] {
            let output = scene.run(attempt);
            assert!(output.code != 0 && !output.stdout.contains("KEY"), "{user:?}: {attempt}: {output:?}");
        }
    }
}

#[test]
fn a_glob_over_later_names_holds() {
    for engine in ["native", "bwrap"] {
        for user in users() {
            let rules = "allow read, write $WORKSPACE\ndeny write $WORKSPACE/**/*.lock";
            let scene = Scene::new().by(user).policy(rules).with(["--engine", engine]);
            let output = scene.run("mkdir d; echo x > d/a.lock; echo x > d/b; ls d");
            assert_eq!(output.ok(), "b", "{engine} {user:?} {output:?}");
            assert!(output.stderr.contains("/d/a.lock refused by "), "{engine} {user:?}: {}", output.stderr);
        }
    }
}

/// What is compiled for bubblewrap has nobody who makes calls for the command.
#[test]
fn a_glob_over_later_names_is_said_to_be_looser_where_it_is_compiled() {
    let scene = Scene::new().policy("allow read, write $WORKSPACE\ndeny write $WORKSPACE/**/*.lock");
    scene.run("true").ok();
    let output =
        crate::support::output(&mut scene.srt(["compile", "--host", "--emit", "bwrap-shell", "../test.policy"]));
    assert_eq!(output.code, 1, "{output:?}");
    assert!(output.stderr.contains("later-names"), "{}", output.stderr);
}

#[test]
fn the_deeper_rule_wins() {
    for user in users() {
        let scene = Scene::new()
            .file("p/file", "open")
            .file("p/s/key", "closed")
            .file("q/file", "closed")
            .by(user)
            .policy("deny read $HOME\nallow read $HOME/p\ndeny read $HOME/p/s\nallow read $WORKSPACE");
        assert_eq!(scene.run("cat ../p/file").ok(), "open", "{user:?}");
        assert_ne!(scene.run("cat ../p/s/key").code, 0, "{user:?}");
        assert_ne!(scene.run("cat ../q/file").code, 0, "{user:?}");
    }
}

#[test]
fn a_forbidden_path_is_not_opened_by_another_file() {
    for user in users() {
        let scene = Scene::new()
            .file("keys/k", "closed")
            .file("more.policy", "srt 1\ndefault read allow\nallow read ~/keys/k\n")
            .by(user);
        let scene = scene.policy("forbid read ~/keys\nallow read $WORKSPACE");
        let more = scene.home().join("more.policy");
        let scene = scene.with(["--policy".as_ref(), more.as_os_str()]);
        assert_ne!(scene.run("cat ../keys/k").code, 0, "{user:?}");
    }
}

#[test]
fn start_up_files_are_closed_wherever_the_command_starts() {
    for user in users() {
        let scene = Scene::new()
            .file(".bashrc", "")
            .file(".profile", "")
            .by(user)
            .policy("use std/shell-config\nallow read, write $WORKSPACE\n# lint: allow(later-names) those that are there\nallow read, write $HOME");
        for attempt in ["echo x >> ../.bashrc", "echo x >> ../.profile", "mv ../.bashrc ../b"] {
            assert_ne!(scene.run(attempt).code, 0, "{user:?}: {attempt}");
        }
    }
}

#[test]
fn what_is_closed_by_a_module_is_opened_by_a_more_specific_rule() {
    for user in users() {
        let scene = Scene::new().file("work/.vscode/settings.json", "{}").by(user);
        let closed = scene.policy("use std/shell-config\nallow read, write $WORKSPACE");
        assert_ne!(closed.run("echo x > .vscode/settings.json").code, 0, "{user:?}");
        let open = closed
            .policy("use std/shell-config\nallow read, write $WORKSPACE\nallow write $WORKSPACE/.vscode/settings.json");
        open.run("echo x > .vscode/settings.json").ok();
    }
}

#[test]
fn editor_tasks_are_closed_in_nested_folders_too() {
    for user in users() {
        let scene = Scene::new()
            .file("work/node_modules/a/.vscode/tasks.json", "{}")
            .file("work/sub/.git/hooks/pre-commit", "")
            .by(user)
            .policy("use std/shell-config\nallow read, write $WORKSPACE");
        for attempt in
            ["echo x > node_modules/a/.vscode/tasks.json", "echo x > sub/.git/hooks/pre-commit", "mv sub/.git sub/g"]
        {
            assert_ne!(scene.run(attempt).code, 0, "{user:?}: {attempt}");
        }
    }
}

#[test]
fn an_absolute_glob_stays_absolute() {
    for user in users() {
        let scene = Scene::new().file("abs/x/deep/secret", "s").by(user);
        let policy = format!(
            "allow read, write $WORKSPACE\nallow read, write {0}\n# lint: allow(later-names) what is there now\ndeny write {0}/**/secret",
            scene.home().join("abs").display()
        );
        let scene = scene.policy(&policy);
        assert_ne!(scene.run("echo x > ../abs/x/deep/secret").code, 0, "{user:?}");
        scene.run("echo x > ../abs/x/deep/other").ok();
    }
}

#[test]
fn ten_thousand_masked_files_hold() {
    let mut scene = Scene::new();
    for number in 0..10_000 {
        scene = scene.file(&format!("work/d{}/f{number}.key", number % 100), "secret");
    }
    let scene = scene.policy(
        "allow read, write $WORKSPACE\n# lint: allow(later-names) those that are there\ndeny read $WORKSPACE/**/*.key",
    );
    let output = scene.run("cat d1/f1.key d99/f9999.key d50/*.key 2>/dev/null | wc -c");
    assert_eq!(output.ok(), "0");
}

#[test]
fn another_name_of_a_denied_file_is_denied() {
    for user in users() {
        let scene =
            Scene::new().file("secret/key", "secret").by(user).policy("allow read /proc\nallow read $WORKSPACE");
        for attempt in [
            "cat /proc/self/root$HOME/secret/key",
            "cat /proc/1/root$HOME/secret/key",
            "cat /proc/self/cwd/../secret/key",
        ] {
            assert_ne!(scene.run(attempt).code, 0, "{user:?}: {attempt}");
        }
    }
}

#[test]
fn the_loader_does_not_run_what_may_not_be_run() {
    for user in users() {
        let scene = Scene::new().by(user).policy("allow read, write $WORKSPACE\ndeny exec $WORKSPACE");
        scene.run("cp /bin/true copy && chmod +x copy").ok();
        assert_ne!(scene.run("./copy").code, 0, "{user:?}: by itself");
        let by_loader = scene.run("for loader in /lib64/ld-linux-*.so.* /lib/ld-linux-*.so.*; do [ -e $loader ] && exec $loader ./copy; done; exit 1");
        assert_ne!(by_loader.code, 0, "{user:?}: by the loader");
    }
}

#[test]
fn sockets_of_the_host_are_out_of_reach() {
    for user in users() {
        let scene = Scene::new();
        let listener = std::os::unix::net::UnixListener::bind(scene.workspace().join("s")).unwrap();
        let scene = scene.by(user).policy("allow read, write $WORKSPACE");
        let script = "import socket; s = socket.socket(socket.AF_UNIX); s.connect('s'); print('reached')";
        let output = scene.run_command(["python3", "-c", script]);
        assert!(output.code != 0 && !output.stdout.contains("reached"), "{user:?}: {output:?}");
        drop(listener);
    }
}

#[test]
fn secrets_of_the_environment_stay_outside() {
    for user in users() {
        let scene = Scene::new()
            .env("AWS_SECRET_ACCESS_KEY", "hunter2")
            .env("GITHUB_TOKEN", "hunter2")
            .env("NPM_TOKEN", "hunter2")
            .env("EDITOR", "ed")
            .by(user)
            .policy("use std/secrets\nallow read $WORKSPACE\nallow env GITHUB_TOKEN");
        let output = scene.run("env");
        let seen = output.ok();
        assert!(!seen.contains("AWS_") && !seen.contains("NPM_TOKEN"), "{user:?}: {seen}");
        assert!(seen.contains("GITHUB_TOKEN=hunter2") && seen.contains("EDITOR=ed"), "{user:?}: {seen}");
    }
}

#[test]
fn temporary_folders_can_be_made() {
    for user in users() {
        let long = format!("/var/tmp/{}", "x".repeat(120));
        let scene = Scene::new().env("TMPDIR", &long).by(user);
        let output = scene
            .run("d=$(mktemp -d) && test -d \"$d\" && echo x > \"$d/f\" && f=$(mktemp /tmp/y.XXXX) && echo $TMPDIR");
        assert_eq!(output.ok(), "/tmp", "{user:?}");
        assert!(
            !Path::new("/tmp").read_dir().unwrap().any(|entry| entry
                .unwrap()
                .file_name()
                .to_string_lossy()
                .starts_with("y."))
        );
    }
}

#[test]
fn what_a_command_leaves_running_ends_with_it() {
    let mark = format!("sleep 87654{}", std::process::id());
    for user in users() {
        let scene = Scene::new().by(user);
        scene.run(&format!("{mark} >/dev/null 2>&1 & true")).ok();
        assert_eq!(running(&mark), 0, "{user:?}");
    }
}

#[test]
fn a_signal_gives_the_command_its_say() {
    for user in users() {
        for (signal, name) in [("INT", "INT"), ("TERM", "TERM"), ("HUP", "HUP"), ("USR1", "USR1")] {
            let scene = Scene::new().by(user);
            let script = format!("trap 'exit 42' {name}; echo up; while :; do sleep 0.05; done");
            let mut child = scene.sandboxed(["sh", "-c", &script]).stdout(Stdio::piped()).spawn().unwrap();
            let mut up = [0; 3];
            std::io::Read::read_exact(child.stdout.as_mut().unwrap(), &mut up).unwrap();
            output(std::process::Command::new("kill").args([&format!("-{signal}"), &child.id().to_string()])).ok();
            assert_eq!(child.wait().unwrap().code(), Some(42), "{user:?}: {signal}");
        }
    }
}

#[test]
fn exit_statuses_are_the_commands_own() {
    for user in users() {
        let scene = Scene::new().file("work/plain", "x").by(user);
        assert_eq!(scene.run("exit 0").code, 0);
        assert_eq!(scene.run("exit 37").code, 37);
        assert_eq!(scene.run("kill -9 $$").code, 128 + 9, "{user:?}");
        assert_eq!(scene.run("kill -TERM $$").code, 128 + 15, "{user:?}");
        assert_eq!(scene.run_command(["no-such-command"]).code, 127, "{user:?}");
        assert_eq!(scene.run_command(["./plain"]).code, 126, "{user:?}");
    }
}

#[test]
fn a_policy_that_cannot_be_had_runs_nothing() {
    let scene = Scene::new();
    let mark = scene.workspace().join("ran");
    let touch = |policy: &str| output(&mut scene.srt(["run", "--policy", policy, "--", "touch", "ran"]));
    for policy in ["/none", "/", "/dev/null"] {
        let output = touch(policy);
        assert_eq!(output.code, 125, "{policy}: {output:?}");
        assert!(!output.stderr.is_empty());
    }
    fs::write(scene.home().join("bad.policy"), "srt 1\ndefault read allow\nalow write $WORKSPACE\n").unwrap();
    let bad = touch(scene.home().join("bad.policy").to_str().unwrap());
    assert_eq!(bad.code, 125);
    assert!(bad.stderr.contains("allow"), "the near miss is named: {}", bad.stderr);
    assert!(!mark.exists());
}

#[test]
fn the_sandbox_needs_no_file_of_its_own_inside() {
    for user in users() {
        for engine in ["native", "bwrap"] {
            let scene = Scene::new().by(user);
            let hidden = crate::support::srt().parent().unwrap().display().to_string();
            let scene = scene.policy(&format!("allow read $WORKSPACE\ndeny read {hidden}")).with(["--engine", engine]);
            let output = scene.run("echo fine");
            assert_eq!(output.ok(), "fine", "{user:?} {engine}");
        }
    }
}

#[test]
fn nothing_can_be_mounted_inside() {
    for user in users() {
        let scene = Scene::new().by(user);
        for attempt in ["mount -t tmpfs x /tmp", "unshare -Ur true", "unshare -m true", "chroot / true", "umount /proc"]
        {
            let output = scene.run(attempt);
            assert_ne!(output.code, 0, "{user:?}: {attempt}: {output:?}");
        }
        let caps = scene.run("grep -E 'Cap(Prm|Eff|Inh|Bnd|Amb)|NoNewPrivs' /proc/self/status");
        for line in caps.ok().lines() {
            let value = line.split_whitespace().nth(1).unwrap();
            assert!(value.chars().all(|c| c == '0') || line == "NoNewPrivs:\t1", "{user:?}: {line}");
        }
    }
}

#[test]
fn a_file_that_comes_and_goes_while_a_run_starts_breaks_nothing() {
    let scene = Scene::new().policy(
        "allow read, write $WORKSPACE\n# lint: allow(later-names) those that are there\ndeny write $WORKSPACE/*.lock",
    );
    let lock = scene.workspace().join("x.lock");
    let stop = std::sync::atomic::AtomicBool::new(false);
    let outcomes: Vec<Output> = std::thread::scope(|threads| {
        threads.spawn(|| {
            while !stop.load(std::sync::atomic::Ordering::Relaxed) {
                let _ = fs::write(&lock, "");
                let _ = fs::remove_file(&lock);
            }
        });
        let outcomes = (0..40).map(|_| scene.run("true")).collect();
        stop.store(true, std::sync::atomic::Ordering::Relaxed);
        outcomes
    });
    for outcome in outcomes {
        assert_eq!(outcome.code, 0, "{outcome:?}");
    }
}

#[test]
fn explain_and_run_agree() {
    for user in users() {
        let scene = Scene::new()
            .file("work/a/open", "x")
            .file("work/a/closed", "x")
            .file("work/b/.env", "x")
            .file("other/f", "x")
            .by(user)
            .policy("allow read, write $WORKSPACE\ndeny read $WORKSPACE/a/closed\ndeny write $WORKSPACE/b\nallow read $HOME/other");
        scene.run("true").ok();
        for path in [
            "a/open",
            "a/closed",
            "b/.env",
            "../other/f",
            "../test.policy",
            "/proc/sys/kernel/hostname",
            "/proc/keys",
            "/proc/self/comm",
        ] {
            for (verb, attempt) in [("read", format!("cat {path}")), ("write", format!("true >> {path}"))] {
                let target = scene.workspace().join(path);
                let policy = scene.home().join("test.policy");
                let arguments = [
                    "explain",
                    "--format",
                    "json",
                    "--policy",
                    policy.to_str().unwrap(),
                    verb,
                    target.to_str().unwrap(),
                ];
                let explained = output(&mut scene.srt(arguments));
                let answer: serde_json::Value = serde_json::from_str(explained.ok()).unwrap();
                let ran = scene.run(&attempt).code == 0;
                assert_eq!(answer["allowed"].as_bool(), Some(ran), "{user:?}: {verb} {path}: {answer}");
            }
        }
    }
}

#[test]
fn a_rule_that_cannot_be_enforced_yet_is_an_error() {
    for rule in ["allow listen 127.0.0.1:1-2000", "allow connect example.com:53/udp"] {
        let scene = Scene::new().policy(&format!("allow read $WORKSPACE\n{rule}"));
        let output = scene.run("true");
        assert_eq!(output.code, 125, "{rule}: {output:?}");
        assert!(output.stderr.contains("cannot") && output.stderr.contains(rule), "{rule}: {}", output.stderr);
    }
}

#[test]
fn a_home_that_is_the_workspace_is_refused_with_what_to_do() {
    let scene = Scene::new();
    let home = scene.home().display().to_string();
    let output = scene.with(["--workspace", &home]).run("true");
    assert_eq!(output.code, 125);
    assert!(output.stderr.contains("--workspace"), "{}", output.stderr);
}

#[test]
fn no_name_resolves_and_no_packet_leaves_without_a_rule() {
    for user in users() {
        let scene = Scene::new().by(user);
        assert_ne!(scene.run("getent hosts example.com").code, 0, "{user:?}");
        let script = "
import socket
s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
try: s.sendto(b'x', ('192.0.2.1', 53)); print('sent')
except OSError as error: print('refused')
try: socket.create_connection(('192.0.2.1', 80), 1); print('connected')
except OSError as error: print('refused')
";
        assert_eq!(scene.run_command(["python3", "-c", script]).ok(), "refused\nrefused", "{user:?}");
        // Its own loopback works.
        let own = "
import socket, threading
l = socket.create_server(('127.0.0.1', 0)); port = l.getsockname()[1]
threading.Thread(target=lambda: l.accept()[0].sendall(b'own')).start()
print(socket.create_connection(('127.0.0.1', port)).recv(3).decode())
";
        assert_eq!(scene.run_command(["python3", "-c", own]).ok(), "own", "{user:?}");
    }
}

#[test]
fn a_kept_descriptor_is_the_callers_or_none() {
    let scene = Scene::new().with(["--keep-fd", "7"]);
    let output = scene.run("true");
    assert_eq!(output.code, 2, "{output:?}");
    assert!(output.stderr.contains("--keep-fd 7"), "{}", output.stderr);
}

#[test]
fn events_are_written_nowhere_but_where_they_were_named() {
    let scene = Scene::new().file("work/precious", "old").link("work/link", "precious").policy("allow read $WORKSPACE");
    let fifo = scene.workspace().join("fifo");
    nix::unistd::mkfifo(&fifo, nix::sys::stat::Mode::S_IRWXU).unwrap();
    for (name, why) in [("link", "it is a link"), ("fifo", "nobody reads it"), (".", "directory")] {
        let arguments = ["run", "--events", name, "--policy", "../test.policy", "--", "true"];
        scene.sandboxed(["true"]);
        let output = output(&mut scene.srt(arguments));
        assert!(output.fails(125).contains(why), "{name}: {}", output.stderr);
    }
    assert_eq!(fs::read_to_string(scene.workspace().join("precious")).unwrap(), "old");
    for name in ["events", "/dev/null", "/dev/stderr", "/dev/fd/1"] {
        let arguments = ["run", "--events", name, "--policy", "../test.policy", "--", "true"];
        output(&mut scene.srt(arguments)).ok();
    }
    assert_eq!(fs::read_to_string(scene.workspace().join("events")).unwrap(), "");
}

#[test]
fn a_sandbox_inside_another_says_why_it_does_not_start() {
    for user in users() {
        let srt = crate::support::srt();
        let scene = Scene::new().by(user);
        let scene =
            scene.policy(&format!("allow read, write $WORKSPACE\nallow read {}", srt.parent().unwrap().display()));
        let output = scene.run_command([srt, "true".as_ref()]);
        assert_eq!(output.code, 125, "{user:?}: {output:?}");
        assert!(output.stderr.contains("outer sandbox"), "{user:?}: {}", output.stderr);
    }
}
