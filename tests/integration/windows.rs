//! The command line on Windows: paths from a drive, variables, endings of lines, and a run that sets nothing up halfway.
//!
//! Under Wine there is no account to run as, and access lists are made up: what is tried is everything up to that.

use crate::support::{Output, Scene, output};

const POLICY: &str = "\
srt 1\r
default read deny\r
allow read, write $WORKSPACE\r
deny read $WORKSPACE/private because \"that is nobody's business\"\r
on windows { allow read C:/Tools }\r
allow connect api.example.com\r
allow env [PATH, *_HOME]\r
";

fn scene() -> Scene {
    Scene::new().file("agent.policy", POLICY).file("work/private/notes.txt", "x\r\n")
}

fn srt(scene: &Scene, arguments: &[&str]) -> Output {
    output(&mut scene.srt(arguments))
}

/// What `explain` says of an access: whether it is allowed, and the line that says so.
fn explained(scene: &Scene, verb: &str, target: &str) -> (bool, String) {
    let ended = srt(scene, &["explain", "--policy", "../agent.policy", "--format", "json", verb, target]);
    let said: serde_json::Value = serde_json::from_str(ended.ok()).unwrap();
    let said = said.as_array().map_or(&said, |accesses| &accesses[0]);
    let rules = said["decisive"].as_array().or(said["rules"].as_array());
    let rule = rules.and_then(|rules| rules.first()).map_or(String::new(), |rule| rule["text"].to_string());
    (said["allowed"] == true || said["verdict"] == "allowed", rule)
}

#[test]
fn paths_of_this_machine_are_decided() {
    let scene = scene();
    assert!(explained(&scene, "read", r"private\notes.txt").1.contains("$WORKSPACE/private"));
    for (target, allowed) in [
        ("a.txt", true),
        (r"sub\a.txt", true),
        ("private", false),
        (r"C:\Tools\x.exe", true),
        ("C:/windows/x", false),
        ("~", false),
    ] {
        assert_eq!(explained(&scene, "read", target).0, allowed, "{target}");
    }
}

#[test]
fn a_text_with_the_systems_ends_of_lines_is_read_checked_and_kept() {
    let scene = scene();
    srt(&scene, &["check", "../agent.policy"]).ok();
    let ended = srt(&scene, &["fmt", "--check", "../agent.policy"]);
    assert!(ended.code == 0 || ended.code == 1, "{ended:?}");
    let wrong = srt(
        &scene.file("wrong.policy", "srt 1\r\nalow read $WORKSPACE\r\n"),
        &["check", "--format", "json", "../wrong.policy"],
    );
    let said: serde_json::Value = serde_json::from_str(&wrong.stdout).unwrap();
    let label = &said[0]["diagnostics"][0]["labels"][0];
    assert_eq!((wrong.code, label["line"].as_u64()), (1, Some(2)), "{said}");
}

#[test]
fn what_is_in_force_is_printed_with_the_places_of_this_machine() {
    let scene = scene();
    let ended = srt(&scene, &["run", "--policy", "../agent.policy", "--print-policy"]);
    let workspace = std::fs::canonicalize(scene.workspace()).unwrap();
    let workspace = workspace.to_str().unwrap().trim_start_matches(r"\\?\").replace('\\', "/");
    let said = ended.ok();
    assert!(said.contains(&format!("# $WORKSPACE is {workspace}")), "{said}");
    assert!(said.contains("allow read $WORKSPACE") && said.contains("allow read C:/Tools"), "{said}");
}

#[test]
fn texts_are_compiled_for_this_machine() {
    let scene = scene();
    let ended = srt(&scene, &["compile", "../agent.policy", "--target", "windows", "--emit", "wfp"]);
    let filters: serde_json::Value = serde_json::from_str(ended.ok()).unwrap();
    assert!(filters["filters"].as_array().unwrap().len() > 8);
}

#[test]
fn without_the_account_nothing_is_run() {
    let scene = scene();
    let ended = srt(&scene, &["run", "--policy", "../agent.policy", "--", "cmd", "/c", "echo ran> ran.txt"]);
    assert_eq!(ended.code, 125, "{ended:?}");
    assert!(ended.stderr.contains("srt windows install") && ended.stderr.contains("nothing was run"), "{ended:?}");
    assert!(!scene.workspace().join("ran.txt").exists());
    for refused in [&["--engine", "bwrap"][..], &["--nest"], &["--keep-fd", "3"], &["--control", "3"]] {
        let arguments = [&["run", "--policy", "../agent.policy"], refused, &["--", "cmd"]].concat();
        assert!([2, 125].contains(&srt(&scene, &arguments).code), "{refused:?}");
    }
}

#[test]
fn the_account_can_be_asked_for() {
    let ended = srt(&scene(), &["windows", "status"]);
    assert!(ended.ok().contains("account: "), "{ended:?}");
}
