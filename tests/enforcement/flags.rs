//! The flags alone: `srt --allow-read … --allow-write … --network-allowlist … COMMAND`.

use crate::support::{Output, Scene, User, output, server, skip, users};
use std::path::PathBuf;
use std::process::Command;

fn scene(user: User) -> Scene {
    Scene::new()
        .by(user)
        .file("work/a.txt", "hello\n")
        .file("work/.env", "KEY=secret\n")
        .folder("work/output")
        .file("beside.txt", "private\n")
        .file(".ssh/id_ed25519", "private\n")
}

/// A shell script under these flags.
fn run(scene: &Scene, flags: &[&str], script: &str) -> Output {
    output(&mut scene.srt(flags.iter().chain(&["sh", "-c", script])))
}

#[test]
fn what_no_flag_names_is_closed() {
    for user in users() {
        let scene = scene(user);
        let flags = ["--allow-read", ".", "--allow-write", "output"];
        run(&scene, &flags, "cat a.txt && echo x > output/x && cat output/x && rm output/x && ls . > /dev/null").ok();
        for closed in [
            "cat ../beside.txt",
            "cat ../.ssh/id_ed25519",
            "cat .env",
            "ls ..",
            "echo x > a.txt",
            "echo x > new.txt",
            "echo x > ../beside.txt",
            "rm a.txt",
            "mv output elsewhere",
            "chmod 600 a.txt",
            "cat /var/log/dpkg.log || ls /var/log",
        ] {
            let ended = run(&scene, &flags, closed);
            assert_ne!(ended.code, 0, "{closed}: {ended:?}");
            assert_ne!(ended.code, 125, "{closed}: {ended:?}");
        }
        assert_eq!(std::fs::read_to_string(scene.workspace().join("a.txt")).unwrap(), "hello\n");
        assert!(!scene.workspace().join("new.txt").exists());
        // What programs need is there, and a place for what is temporary.
        run(&scene, &flags, "env true && mktemp && date > /dev/null").ok();
    }
}

/// `srt draft` looks for the ceiling of the machine's owner, here in an `/etc` of its own.
#[test]
fn a_draft_stays_below_the_ceiling_of_the_machine() {
    let event = |path: &str| {
        format!(
            "{{\"type\":\"violation\",\"timestamp\":\"2026-01-02T03:04:05.006Z\",\"operation\":\"read\",\"path\":\"{path}\",\"outcome\":\"predicted\",\"why\":\"default\"}}\n"
        )
    };
    let scene = Scene::new()
        .file("events", &[event("/srv/open"), event("/srv/other")].concat())
        .file("p.policy", "srt 1\nuse std/system\ndefault read deny\n")
        .file("ceiling.policy", "srt 1\nuse std/system\ndefault read deny\nallow read /srv/open\n");
    let srt = scene.srt(["draft", "../events", "--policy", "../p.policy"]);
    let mut apart = Command::new("unshare");
    let script =
        "mount -t tmpfs srt-test /etc && mkdir /etc/srt && cp ../ceiling.policy /etc/srt && exec \"$0\" \"$@\"";
    apart.args(["--user", "--map-root-user", "--mount", "sh", "-c", script]);
    apart.arg(srt.get_program()).args(srt.get_args()).current_dir(scene.workspace()).env("HOME", scene.home());
    let said = output(&mut apart);
    assert!(said.ok().contains("+allow read /srv/open") && !said.stdout.contains("+allow read /srv/other"), "{said:?}");
    assert!(said.stderr.contains("`within`: this permits what `/etc/srt/ceiling.policy` does not"), "{said:?}");
}

#[test]
fn a_path_means_itself_whatever_characters_it_has() {
    for name in [
        "with space",
        "st*r",
        "q?",
        "[ab]",
        "{a,b}",
        "$HOME",
        "~",
        "a#b",
        "q\"uote",
        "back\\slash",
        "a,b",
        "-dash",
        "üñí",
        "@x",
    ] {
        // A neighbour that a pattern of this name would match.
        let scene = Scene::new().file(&format!("work/{name}/in.txt"), "hello\n").file("work/stir/in.txt", "no\n");
        let scene = scene.file("work/a/in.txt", "no\n").file("work/qq/in.txt", "no\n");
        let script = "cat \"$1/in.txt\" && echo x > \"$1/out\"";
        let at = scene.workspace().join(name);
        // The command starts in the directory that it may read; the flag's path is taken from there.
        let mut command = scene.srt(["--allow-read", ".", "--allow-write", ".", "sh", "-c", script, "sh"]);
        let ended = output(command.arg(&at).current_dir(&at));
        assert_eq!(ended.ok(), "hello", "{name}");
        for other in ["stir", "a", "qq"] {
            let mut command = scene.srt(["--allow-read", ".", "cat"]);
            let ended = output(command.arg(scene.workspace().join(other).join("in.txt")).current_dir(&at));
            assert_ne!(ended.code, 0, "{name} opens {other}");
        }
    }
}

#[test]
fn a_run_by_flags_may_be_started_in_the_home_and_says_where_it_may_not() {
    for user in users() {
        let scene = scene(user);
        let mut command = scene.srt(["--allow-read", "work", "--allow-write", "work/output", "sh", "-c"]);
        let ended = output(command.arg("cat work/a.txt && echo x > work/output/x").current_dir(scene.home()));
        ended.ok();
        // A place that the flags do not open.
        let mut command = scene.srt(["--allow-read", ".", "true"]);
        output(command.current_dir("/")).fails(125);
        let mut command = scene.srt(["--allow-read"]);
        let ended = output(command.arg(scene.workspace()).arg("true").current_dir("/etc/ssl"));
        assert!(ended.code == 0 || ended.stderr.contains("start it in a directory"), "{ended:?}");
    }
}

#[test]
fn the_network_is_the_hosts_that_flags_name() {
    let (port, other) = (server(), server());
    for user in users() {
        let scene = scene(user);
        let host = format!("127.0.0.1:{port}");
        let script = format!(
            "curl -sS http://127.0.0.1:{port}/; curl -sS -o /dev/null -w '%{{http_code}}\n' http://127.0.0.1:{other}/; \
             curl -sS -o /dev/null -w '%{{http_code}}\n' http://example.com/"
        );
        let ended = run(&scene, &["--allow-read", ".", "--network-allowlist", &host], &script);
        assert_eq!(ended.ok(), "hello\n000\n403");
        // Without the flag there is no network at all.
        let ended = run(&scene, &["--allow-read", "."], &format!("curl -sS http://127.0.0.1:{port}/"));
        assert_ne!(ended.code, 0, "{ended:?}");
    }
}

#[test]
fn flags_add_to_a_policy_and_open_nothing_that_it_denies() {
    for user in users() {
        let scene = scene(user).file("data/d.txt", "data\n").file("data/keep/k.txt", "kept\n");
        let policy = "srt 1\nuse std/system\ndefault read deny\nallow read $WORKSPACE\ndeny read ~/data/keep\n";
        let scene = scene.file("p.policy", policy);
        let flags = ["--policy", "../p.policy", "--allow-read", "../data", "--allow-write", "output"];
        run(&scene, &flags, "cat a.txt ../data/d.txt && echo x > output/x").ok();
        for closed in ["cat ../data/keep/k.txt", "cat ../beside.txt", "echo x > a.txt", "echo x > ../data/x"] {
            assert_ne!(run(&scene, &flags, closed).code, 0, "{closed}");
        }
    }
}

#[test]
fn a_misspelt_verb_is_named() {
    let scene = Scene::new();
    let ended = output(&mut scene.srt(["chek", "agent.policy"]));
    assert!(ended.fails(127).ends_with("did you mean `srt check`?"), "{ended:?}");
    let ended = output(&mut scene.srt(["no-such-command"]));
    assert!(!ended.fails(127).contains("did you mean"), "{ended:?}");
}

/// Where a program is, if it is installed where `std/system` lets it be read.
fn find(program: &str) -> Option<PathBuf> {
    ["/usr/local/bin", "/usr/bin"].iter().map(|folder| PathBuf::from(folder).join(program)).find(|path| path.exists())
}

#[test]
fn node_runs_under_flags_alone() {
    if find("node").is_none() {
        return skip("node", "it is not installed");
    }
    for user in users() {
        let script = "const fs = require('fs'); console.log(fs.readFileSync('a.txt', 'utf8').trim());
            fs.writeFileSync('output/o.txt', 'x');
            for (const path of ['a.txt', '../beside.txt']) {
                try { fs.writeFileSync(path, 'x'); console.log('wrote', path) } catch (e) { console.log('held') }
            }";
        let scene = scene(user);
        let mut command = scene.srt(["--allow-read", ".", "--allow-write", "output", "node", "-e"]);
        assert_eq!(output(command.arg(script)).ok(), "hello\nheld\nheld");
    }
}

#[test]
fn npx_fetches_a_server_from_the_registry_and_starts_it() {
    let Some(npm) = find("npm") else { return skip("npx", "npm is not installed") };
    let asked = Command::new(npm).args(["config", "get", "registry"]).output().unwrap();
    let registry = String::from_utf8(asked.stdout).unwrap().trim().to_owned();
    let host = registry.split("://").nth(1).and_then(|rest| rest.split('/').next()).unwrap_or_default().to_owned();
    let reached = Command::new("curl").args(["-sS", "--max-time", "20", "-o", "/dev/null", &registry]).status();
    if host.is_empty() || !reached.is_ok_and(|status| status.success()) {
        return skip("npx", "the registry that npm names is not reached from here");
    }
    let scene = scene(User::Caller).env("npm_config_registry", &registry);
    let flags = ["--allow-read", ".", "--allow-write", "output", "--network-allowlist", &host];
    let ended = run(&scene, &flags, "npx -y semver@7.6.3 1.2.3 && echo x > output/done");
    assert_eq!(ended.ok(), "1.2.3");
    // Nothing is left in the home.
    assert!(!scene.home().join(".npm").exists());
}
