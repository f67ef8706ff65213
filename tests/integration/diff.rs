//! `srt diff` and the ceilings of `srt check`, from outside: files, revisions, statuses.

use crate::support::{Scene, output};

const OLD: &str =
    "srt 1\ndefault read deny\nallow read $WORKSPACE\ndeny read $WORKSPACE/**/.env\nallow connect a.example\n";
/// The same, in other words.
const SAME: &str =
    "srt 1\ndefault read deny\nallow connect a.example:{80,443}\nallow read $WORKSPACE except $WORKSPACE/**/.env\n";
const NEW: &str =
    "srt 1\ndefault read deny\nallow read $WORKSPACE/src\nallow connect a.example\nallow connect 10.0.0.7:5432\n";

fn scene() -> Scene {
    Scene::new().file("old.policy", OLD).file("same.policy", SAME).file("new.policy", NEW)
}

fn json(scene: &Scene, arguments: &[&str]) -> serde_json::Value {
    let ended = output(&mut scene.srt(arguments));
    serde_json::from_str(&ended.stdout).unwrap_or_else(|_| panic!("{ended:?}"))
}

/// What is on one side, a line each.
fn lines(value: &serde_json::Value) -> Vec<String> {
    let text = |change: &serde_json::Value, key: &str| change[key].as_str().unwrap().to_owned();
    let one = |change| format!("{} {}: {}", text(change, "verb"), text(change, "set"), text(change, "witness"));
    value.as_array().unwrap().iter().map(one).collect()
}

#[test]
fn meanings_are_compared_and_not_texts() {
    let scene = scene();
    let ended = output(&mut scene.srt(["diff", "--fail-on", "any", "../old.policy", "../same.policy"]));
    assert_eq!((ended.stdout.as_str(), ended.code), ("no difference\n", 0), "{ended:?}");
    let value = json(&scene, &["diff", "--format", "json", "../old.policy", "../new.policy"]);
    assert_eq!(
        lines(&value["permitted"]),
        [
            "read $WORKSPACE/**/.env: $WORKSPACE/src/.env",
            "exec $WORKSPACE/**/.env: $WORKSPACE/src/.env",
            "connect 10.0.0.7:5432: 10.0.0.7:5432"
        ]
    );
    assert_eq!(lines(&value["denied"]), ["read $WORKSPACE: $WORKSPACE", "exec $WORKSPACE: $WORKSPACE"]);
    let text = output(&mut scene.srt(["diff", "--format", "markdown", "../old.policy", "../new.policy"])).stdout;
    assert!(text.contains("**newly permitted**") && text.contains("| connect | `10.0.0.7:5432` |"), "{text}");
    assert!(text.contains("| old: by default<br>new: `allow connect 10.0.0.7:5432"), "{text}");
    // A line for each, whatever it says.
    let text = output(&mut scene.srt(["diff", "--format", "plain", "../old.policy", "../new.policy"])).stdout;
    assert_eq!(text.lines().count(), 5, "{text}");
    let connect = "newly permitted: connect 10.0.0.7:5432, for example 10.0.0.7:5432. the old policy: by default. \
        the new policy: allow connect 10.0.0.7:5432, in ../new.policy:5.";
    assert_eq!(text.lines().nth(2), Some(connect), "{text}");
    let same = output(&mut scene.srt(["diff", "--format", "plain", "../old.policy", "../same.policy"])).stdout;
    assert_eq!(same, "no difference.\n");
}

/// A name that is written out reaches private addresses, and `*` does not: the rule that does is the one to look at.
#[test]
fn the_rule_that_opens_a_private_address_is_named() {
    let rest = "srt 1\ndefault read deny\nallow connect *\nallow connect nas.home.test\n";
    let scene = Scene::new().file("old.policy", &format!("{rest}deny connect 10.0.0.0/8\n")).file("new.policy", rest);
    let value = json(&scene, &["diff", "--format", "json", "../old.policy", "../new.policy"]);
    assert_eq!(value["permitted"][0]["witness"], "nas.home.test:80 at 10.0.0.0", "{value}");
    let responsible = value["permitted"][0]["new"][0].as_str().unwrap();
    assert!(responsible.starts_with("allow connect nas.home.test "), "{value}");
}

#[test]
fn the_status_says_what_was_asked_for() {
    let scene = scene();
    let status = |arguments: &[&str]| output(&mut scene.srt([&["diff"], arguments].concat())).code;
    assert_eq!(status(&["../old.policy", "../new.policy"]), 0);
    assert_eq!(status(&["--fail-on", "widen", "../old.policy", "../new.policy"]), 1);
    assert_eq!(status(&["--fail-on", "any", "../old.policy", "../new.policy"]), 1);
    assert_eq!(status(&["--fail-on", "any", "../old.policy", "../same.policy"]), 0);
    assert_eq!(status(&["../old.policy", "../none.policy"]), 2);
    let scene = scene
        .file("narrow.policy", "srt 1\ndefault read deny\nallow connect a.example\n")
        .file("wrong.policy", "srt 1\n");
    let status = |arguments: &[&str]| output(&mut scene.srt([&["diff"], arguments].concat())).code;
    assert_eq!(status(&["--fail-on", "widen", "../old.policy", "../narrow.policy"]), 0);
    assert_eq!(status(&["--fail-on", "any", "../old.policy", "../narrow.policy"]), 1);
    assert_eq!(status(&["../old.policy", "../wrong.policy"]), 1);
}

// Wine starts no `git`.
#[cfg(unix)]
#[test]
fn a_revision_uses_the_files_of_that_revision() {
    let scene = Scene::new()
        .file("work/base.policy", "srt 1\nallow read /a\n")
        .file("work/policies/agent.policy", "srt 1\nuse \"../base.policy\"\ndefault read deny\n");
    let git = |arguments: &[&str]| {
        let name = ["-c", "user.name=T", "-c", "user.email=t@example.com", "-c", "safe.directory=*"];
        let mut command = std::process::Command::new("git");
        command.current_dir(scene.home().join("work")).env("HOME", scene.home()).args(name).args(arguments);
        assert!(command.output().unwrap().status.success(), "{arguments:?}");
    };
    git(&["init", "-q"]);
    git(&["add", "."]);
    git(&["commit", "-qm", "one"]);
    std::fs::write(scene.home().join("work/base.policy"), "srt 1\nallow read [/a, /b]\n").unwrap();
    let value = json(&scene, &["diff", "--format", "json", "HEAD:policies/agent.policy", "policies/agent.policy"]);
    assert_eq!(lines(&value["permitted"]), ["read /b: /b", "exec /b: /b"]);
    assert_eq!(lines(&value["denied"]), [""; 0]);
    let ended = output(&mut scene.srt(["diff", "none:policies/agent.policy", "policies/agent.policy"]));
    assert_eq!(ended.code, 2, "{ended:?}");
}

#[test]
fn a_ceiling_is_proved_over_every_verb_and_limit() {
    let scene = scene()
        .file("ceiling.policy", "srt 1\ndefault read deny\nallow read, write $WORKSPACE\nallow connect [a.example, *.example]\nlimit processes 64\n")
        .file("inside.policy", "srt 1\ndefault read deny\nallow read $WORKSPACE/src\nallow connect a.example\nlimit processes 8\n")
        .file("wild.policy", "srt 1\ndefault read allow\nallow connect *.example\n")
        .file("many.policy", "srt 1\ndefault read deny\nwithin \"ceiling.policy\"\nallow read $WORKSPACE\n")
        .file("claims.policy", "srt 1\ndefault read deny\nwithin \"none.policy\"\n");
    let check = |arguments: &[&str]| output(&mut scene.srt([&["check"], arguments].concat()));
    let ended = check(&["--within", "../ceiling.policy", "../inside.policy"]);
    assert_eq!(ended.code, 0, "{ended:?}");
    let ended = check(&["--within", "../inside.policy", "../ceiling.policy"]);
    for witness in ["read /", "write /", "connect x.example:80", "`limit processes` is wider"] {
        assert!(ended.stderr.contains(witness), "{witness}: {ended:?}");
    }
    assert_eq!(ended.code, 1);
    // A name without a `*` reaches private addresses too, and one with it does not.
    let ended = check(&["--within", "../wild.policy", "../inside.policy"]);
    assert!(ended.code == 1 && ended.stderr.contains("connect a.example:80 at 10.0.0.0"), "{ended:?}");
    let ended = check(&["../many.policy"]);
    assert!(ended.code == 1 && ended.stderr.contains("`limit processes` is missing"), "{ended:?}");
    assert_eq!(check(&["../claims.policy"]).code, 1);
}

/// What exceeds a ceiling is shown where it is permitted, and where the ceiling does not permit it.
#[test]
fn a_ceiling_from_the_command_line_is_shown_by_its_own_lines() {
    let scene = scene()
        .file(
            "ceiling.policy",
            "srt 1\ndefault read deny\nallow read $WORKSPACE\nforbid read $WORKSPACE/keys\nlimit processes 8\n",
        )
        .file(
            "given.policy",
            "srt 1\ndefault read deny\nallow read $WORKSPACE\nallow write $WORKSPACE/keys\nlimit processes 9\n",
        );
    let arguments = ["check", "--format", "json", "--within", "../ceiling.policy", "../given.policy"];
    let ended = output(&mut scene.srt(arguments));
    let files: serde_json::Value = serde_json::from_str(&ended.stdout).unwrap();
    let said = files[0]["diagnostics"].as_array().unwrap().iter().filter(|said| said["code"] == "within");
    let place = |label: &serde_json::Value| format!("{}:{}", label["file"].as_str().unwrap(), label["line"]);
    let places = |said: &serde_json::Value| {
        let labels = said["labels"].as_array().unwrap();
        labels.iter().take(2).map(place).collect::<Vec<_>>().join(" ")
    };
    let mut found: Vec<String> = said.map(places).collect();
    found.sort();
    found.dedup();
    assert_eq!(
        found,
        [
            "../given.policy:3 ../ceiling.policy:4",
            "../given.policy:4 ../ceiling.policy:2",
            "../given.policy:5 ../ceiling.policy:5",
        ],
        "{ended:?}"
    );
}

#[test]
fn a_proof_that_is_given_up_has_a_status_of_its_own() {
    let any = "*/".repeat(14);
    let any = any.trim_end_matches('/');
    let text = format!(
        "srt 1\ndefault read deny\non macos {{\n  allow read exact $WORKSPACE/**/a*/{any}\n  allow read exact $WORKSPACE/**/[!a]*/{any}\n  allow read below $WORKSPACE/{any}\n  deny read exact $WORKSPACE/**/a*/{any}\n  deny read exact $WORKSPACE/**/[!a]*/{any}\n  expect deny read below $WORKSPACE/{any}\n}}\n"
    );
    let scene = Scene::new().file("hard.policy", &text);
    let ended = output(&mut scene.srt(["check", "../hard.policy"]));
    assert!(ended.code == 3 && ended.stderr.contains("undecided"), "{ended:?}");
}
