//! What the verbs say and how they exit, as snapshots: the command, its status, both streams.

use crate::support::{Scene, output};
use std::path::Path;

/// A scene with one policy that shows most of what the verbs can say.
fn scene() -> Scene {
    Scene::new()
        .file(
            "agent.policy",
            "\
# An agent.
srt 1
use std/system
default read deny
allow read, write $WORKSPACE
deny read $WORKSPACE/private because \"that is nobody's business\"
allow read $WORKSPACE/private/notes
forbid write $WORKSPACE/keep
allow connect api.example.com
deny env *_TOKEN
set CI=1
limit processes 64, time 30s
expect deny write $WORKSPACE/keep
",
        )
        .file(
            "wrong.policy",
            "srt 1\ndefault read deny\nalow read $WORKSPACE\nallow read src\nallow connect 127.1:80\n",
        )
        .file("untidy.policy", "srt   1\n\n\n\ndefault   read deny # closed\nallow read [ $WORKSPACE ,\n  /usr ]\n")
        .folder("work/private")
        .folder("work/keep")
}

/// The command, its status and both streams, with what differs from machine to machine replaced.
fn said(scene: &Scene, arguments: &[&str]) -> String {
    let ended = output(&mut scene.srt(arguments));
    let home = scene.home().display().to_string();
    let mut text = format!("$ srt {}\n", arguments.join(" "));
    text.push_str(&ended.stdout);
    if !ended.stderr.is_empty() {
        text.push_str("--- stderr\n");
        text.push_str(&ended.stderr);
    }
    text.push_str(&format!("--- exit {}\n", ended.code));
    text.replace(&home, "[HOME]")
}

#[track_caller]
fn snapshot(name: &str, scene: &Scene, calls: &[&[&str]]) {
    let text: Vec<_> = calls.iter().map(|arguments| said(scene, arguments)).collect();
    let mut settings = insta::Settings::clone_current();
    settings.set_snapshot_path(Path::new(env!("CARGO_MANIFEST_DIR")).join("snapshots/cli"));
    settings.set_prepend_module_to_snapshot(false);
    settings.set_omit_expression(true);
    settings.bind(|| insta::assert_snapshot!(name, text.join("\n")));
}

#[test]
fn help_teaches() {
    snapshot(
        "help",
        &scene(),
        &[&["--help"], &["run", "--help"], &["check", "--help"], &["explain", "--help"], &["fmt", "--help"]],
    );
}

#[test]
fn check_says_what_is_wrong() {
    let scene = scene();
    snapshot(
        "check",
        &scene,
        &[
            &["check", "../agent.policy"],
            &["check", "../wrong.policy"],
            &["check", "--format", "json", "../wrong.policy"],
            &["check", "../none.policy"],
            &["check", "-D", "no-such-code", "../agent.policy"],
        ],
    );
}

#[test]
fn explain_names_the_lines() {
    let scene = scene();
    let explain = |verb: &'static str, target: &'static str| -> Vec<&'static str> {
        vec!["explain", "--policy", "../agent.policy", verb, target]
    };
    let calls = [
        explain("read", "private/diary"),
        explain("read", "private/notes"),
        explain("read", "/root/.ssh/id_ed25519"),
        explain("write", "keep/this"),
        explain("write", "src/main.rs"),
        explain("connect", "api.example.com:443"),
        explain("connect", "api.example.com:22"),
        explain("connect", "169.254.169.254:80"),
        explain("env", "NPM_TOKEN"),
        explain("reed", "x"),
        vec!["explain", "--policy", "../agent.policy", "--format", "json", "read", "private/diary"],
        vec!["explain", "later-names"],
        vec!["explain", "later-name"],
    ];
    let calls: Vec<&[&str]> = calls.iter().map(Vec::as_slice).collect();
    snapshot("explain", &scene, &calls);
}

#[test]
fn fmt_has_one_layout() {
    let scene = scene();
    snapshot(
        "fmt",
        &scene,
        &[&["fmt", "--check", "../untidy.policy"], &["fmt", "--check", "../agent.policy"], &["fmt", "../wrong.policy"]],
    );
    output(&mut scene.srt(["fmt", "../untidy.policy"])).ok();
    output(&mut scene.srt(["fmt", "--check", "../untidy.policy"])).ok();
    // Nothing beside it is left.
    let beside: Vec<_> = std::fs::read_dir(scene.home()).unwrap().map(|entry| entry.unwrap().file_name()).collect();
    assert!(!beside.iter().any(|name| name.to_string_lossy().ends_with(".tmp")), "{beside:?}");
}

#[test]
fn run_refuses_before_it_runs() {
    let scene = scene();
    snapshot(
        "run-refusals",
        &scene,
        &[
            &["run"],
            &["run", "--policy", "../none.policy", "--", "true"],
            &["run", "--policy", "../wrong.policy", "--", "true"],
            &["run", "--define", "1x=y", "--", "true"],
            &["run", "--workspace", "/", "--", "true"],
        ],
    );
}

#[test]
fn print_policy_shows_where_each_rule_came_from() {
    let scene = scene()
        .file("small.policy", "srt 1\ndefault read deny\nallow read, write $WORKSPACE\nset CI=1\nlimit time 30s\n");
    snapshot("print-policy", &scene, &[&["run", "--policy", "../small.policy", "--print-policy"]]);
}
