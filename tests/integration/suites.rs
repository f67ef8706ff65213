//! `srt test`: what it says of suites that hold, that do not, and that cannot be read.

use crate::support::{Scene, output};
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;

const POLICY: &str = "\
# An agent.
srt 1
use std/system
use std/secrets
default read deny
allow read, write $WORKSPACE
deny read $WORKSPACE/private
allow read $WORKSPACE/private/notes
allow connect [api.example.com:443, $registry]
on macos {
  allow mach com.example.one
}
";

const SUITES: &[(&str, &str)] = &[
    (
        "holds",
        "policy: agent.policy\nvariables: { registry: packages.example.net, WORKSPACE: /srv/p }\ncases:\n\
         - allow: read $WORKSPACE/a\n\
         - { deny: read /srv/p/private/x, rule: deny read $WORKSPACE/private }\n\
         - { allow: read $WORKSPACE/private/notes, rule: agent.policy:8 }\n\
         - { deny: write ~/x, rule: default }\n\
         - { allow: 'connect packages.example.net:443', rule: 9 }\n\
         - { deny: 'connect localhost:443' }\n\
         - { deny: env AWS_SECRET_ACCESS_KEY, reason: it is a key }\n\
         - { allow: mach com.example.one, system: macos }\n",
    ),
    (
        "fails",
        "policy: agent.policy\nvariables: { registry: r.example }\ncases:\n\
         \x20 - name: the diary\n    allow: read $WORKSPACE/private/diary\n    reason: it was asked for\n\
         \x20 - access: read $WORKSPACE/x\n    expect: allow\n    rule: 7\n\
         \x20 - deny: raed /x\n\
         \x20 - deny: read x\n\
         \x20 - deny: read $NOWHERE/x\n\
         \x20 - deny: connect a b\n\
         \x20 - { allow: read /x, policy: none.policy }\n",
    ),
    ("key", "policy: agent.policy\ncases:\n  - allow: read /x\n  - alow: read /x\n"),
    ("both", "policy: agent.policy\ncases:\n  - allow: read /x\n  - allow: read /x\n    deny: read /x\n"),
    ("none", "cases:\n  - allow: read /x\n"),
    ("type", "policy: agent.policy\ncases: read\n"),
    ("system", "policy: agent.policy\nsystem: beos\ncases: []\n"),
    ("yaml", "policy: [\n"),
    ("empty", ""),
    ("twice", "policy: agent.policy\npolicy: agent.policy\ncases: []\n"),
    ("nothing", "policy: agent.policy\ncases: []\n"),
    ("verb", "policy: agent.policy\ncases:\n  - allow: read\n"),
];

fn scene() -> Scene {
    let scene = Scene::new().file("work/agent.policy", POLICY);
    SUITES.iter().fold(scene, |scene, (name, text)| scene.file(&format!("work/{name}.yaml"), text))
}

#[test]
fn suites_say_what_holds() {
    let scene = scene();
    let mut text = String::new();
    let mut run = |arguments: &[&str]| {
        let ended = output(&mut scene.srt([&["test"], arguments].concat()));
        text.push_str(&format!("$ srt test {}\n{}", arguments.join(" "), ended.stdout));
        if !ended.stderr.is_empty() {
            text.push_str(&format!("--- stderr\n{}", ended.stderr));
        }
        text.push_str(&format!("--- exit {}\n\n", ended.code));
    };
    for (name, _) in SUITES {
        run(&[&format!("{name}.yaml")]);
    }
    run(&["--format", "json", "fails.yaml"]);
    run(&["--format", "junit", "holds.yaml", "fails.yaml", "key.yaml"]);
    run(&["--min-coverage", "100", "fails.yaml"]);
    run(&["--min-coverage", "101", "holds.yaml"]);
    run(&["missing.yaml"]);
    run(&[]);
    let mut settings = insta::Settings::clone_current();
    settings.set_snapshot_path(Path::new(env!("CARGO_MANIFEST_DIR")).join("snapshots/cli"));
    settings.set_prepend_module_to_snapshot(false);
    settings.set_omit_expression(true);
    settings.bind(|| insta::assert_snapshot!("test", text));
}

/// What the sandbox lets happen is what is decided; where a case says otherwise, that is seen.
#[test]
fn cases_are_tried_in_the_sandbox() {
    let policy = "srt 1\nuse std/system\ndefault read deny\nallow read, write $WORKSPACE\ndeny read $WORKSPACE/private\n\
        forbid write $WORKSPACE/keep\ndeny exec $WORKSPACE/closed\ndeny env SECRET\n";
    let suite = "policy: live.policy\ncases:\n\
        - allow: read $WORKSPACE/keep\n\
        - deny: read $WORKSPACE/private/diary\n\
        - deny: read $WORKSPACE/private\n\
        - deny: write $WORKSPACE/keep\n\
        - allow: write $WORKSPACE\n\
        - allow: write $WORKSPACE/made\n\
        - deny: env SECRET\n\
        - allow: env OTHER\n\
        - allow: env $EMPTY\n\
        - deny: read ~/live.policy\n\
        - allow: exec /bin/sh\n\
        - allow: exec $WORKSPACE/tool\n\
        - deny: exec $WORKSPACE/closed\n\
        - allow: exec $WORKSPACE/keep\n\
        - deny: connect example.com:443\n\
        - allow: read $WORKSPACE/none\n";
    let scene = Scene::new()
        .file("live.policy", policy)
        .file("live.yaml", suite)
        .file("work/keep", "x\n")
        .file("work/private/diary", "x\n")
        .file("work/tool", SCRIPT)
        .file("work/closed", SCRIPT)
        .env("EMPTY", "");
    for program in ["tool", "closed"] {
        executable(&scene.workspace().join(program));
    }
    let ended = output(&mut scene.srt(["test", "--live", "../live.yaml"]));
    assert_eq!(ended.code, 0, "{ended:?}");
    assert!(ended.stdout.contains("  13 cases tried in the sandbox\n"), "{}", ended.stdout);
    assert!(ended.stdout.contains("../live.yaml:18 is not tried there: nothing is there\n"), "{}", ended.stdout);
    assert!(ended.stdout.contains("../live.yaml:16 is not tried there: it is no program\n"), "{}", ended.stdout);
    let left: Vec<_> = std::fs::read_dir(scene.workspace()).unwrap().map(|entry| entry.unwrap().file_name()).collect();
    // Nothing was made, and no program ran.
    assert_eq!(left.len(), 4, "{left:?}");
}

fn executable(path: &Path) {
    std::fs::set_permissions(path, std::fs::Permissions::from_mode(0o755)).unwrap();
}

/// A program that leaves something behind where it runs.
const SCRIPT: &str = "#!/bin/sh\n: > \"${0%/*}/ran\"\n";

/// What a probe made goes, though the probe ended before it said so.
#[test]
fn a_probe_that_dies_leaves_nothing() {
    // The shell that tries it is one that dies with the file made.
    let dies = "#!/bin/sh\n: > \"$5\" && : > \"$HOME/work/was-made\"; kill -9 $$\n";
    let policy = "srt 1\nuse std/system\ndefault read deny\nallow read, write $WORKSPACE\nallow read ~/bin\n";
    let scene = Scene::new()
        .file("live.policy", policy)
        .file("live.yaml", "policy: live.policy\ncases:\n  - allow: write $WORKSPACE/made\n")
        .file("bin/sh", dies);
    executable(&scene.home().join("bin/sh"));
    let path = format!("{}/bin:/usr/bin:/bin", scene.home().display());
    let ended = output(scene.srt(["test", "--live", "../live.yaml"]).env("PATH", path));
    assert!(ended.code == 1 && ended.stdout.contains("it could not be tried"), "{ended:?}");
    assert!(scene.workspace().join("was-made").exists(), "{ended:?}");
    assert!(!scene.workspace().join("made").exists());
}

/// A case is not tried where what tries it did not run: nothing was refused then, whatever the case expects.
#[test]
fn what_did_not_run_was_not_refused() {
    let closed = "srt 1\ndefault read deny\nallow read $WORKSPACE\n";
    let no_programs = "srt 1\nuse std/system\ndefault read deny\nallow read $WORKSPACE\ndeny exec /\n";
    let no_printenv = "srt 1\nuse std/system\ndefault read deny\nforbid read /**/printenv\ndeny env SECRET\n";
    for (policy, cases) in [
        (closed, "  - deny: write $WORKSPACE/keep\n".to_owned()),
        (no_programs, "  - deny: write $WORKSPACE/keep\n  - deny: read ~/live.policy\n".to_owned()),
        (no_printenv, "  - deny: env SECRET\n".to_owned()),
    ] {
        let scene = Scene::new()
            .file("live.policy", policy)
            .file("live.yaml", &format!("policy: live.policy\ncases:\n{cases}"))
            .file("work/keep", "x\n");
        output(&mut scene.srt(["test", "../live.yaml"])).ok();
        let ended = output(&mut scene.srt(["test", "--live", "../live.yaml"]));
        let count = cases.lines().count();
        assert_eq!((ended.code, ended.stdout.matches("but it could not be tried: ").count()), (1, count), "{ended:?}");
    }
}
