//! `srt compile`: what is written, that it is kept true with `--check`, and that a compiled policy is what runs.

use crate::support::{Scene, output};
use std::fs;
use std::path::Path;

const POLICY: &str = "\
srt 1
use std/system
default read deny
# lint: allow(start-up-file) what it leaves is reviewed before it is opened in an editor
allow read, write $WORKSPACE
# lint: allow(later-names) the directory is there
deny read $WORKSPACE/private because \"nobody's business\"
allow connect api.example.com
expect deny read $WORKSPACE/private
";

fn scene() -> Scene {
    Scene::new()
        .file("agent.policy", POLICY)
        .folder("work/private")
        .file("work/private/key", "secret\n")
        .file("work/a", "hello\n")
}

fn srt(scene: &Scene, arguments: &[&str]) -> crate::support::Output {
    output(scene.srt(arguments).current_dir(scene.home()))
}

#[test]
fn a_profile_is_printed_and_names_its_lines() {
    let scene = scene();
    let ended = srt(&scene, &["compile", "--target", "macos", "agent.policy"]);
    assert_eq!(ended.code, 0, "{}", ended.stderr);
    let private = ended.stdout.lines().find(|line| line.contains("[Pp][Rr][Ii][Vv][Aa][Tt][Ee]")).unwrap();
    assert!(
        private.contains("(param \"WORKSPACE.regex\")") && private.ends_with("; agent.policy:7 $WORKSPACE/private"),
        "{private}"
    );
    assert!(ended.stdout.contains("(remote tcp (string-append \"localhost:\" (param \"proxy.port\")))"));
    assert!(ended.stderr.contains("other-spellings"), "{}", ended.stderr);
    assert_eq!(srt(&scene, &["compile", "--target", "macos", "agent.policy"]).stdout, ended.stdout);
}

#[test]
fn what_is_checked_in_is_kept_true() {
    let scene = scene();
    let all = ["compile", "agent.policy", "-o", "compiled"];
    assert_eq!(srt(&scene, &[&all[..], &["--check"]].concat()).code, 1, "nothing is there");
    assert_eq!(srt(&scene, &all).code, 0);
    let names = |place: &str| {
        let mut names: Vec<_> =
            fs::read_dir(scene.home().join(place)).unwrap().map(|entry| entry.unwrap().file_name()).collect();
        names.sort();
        names
    };
    assert_eq!(names("compiled"), ["agent.acl.json", "agent.sb", "agent.seccomp", "agent.wfp.json"]);
    assert_eq!(srt(&scene, &[&all[..], &["--check"]].concat()).code, 0);
    let file = scene.home().join("agent.policy");
    fs::write(&file, POLICY.replace("private", "secret")).unwrap();
    let drift = srt(&scene, &[&all[..], &["--check"]].concat());
    assert_eq!(drift.code, 1);
    let changed = Path::new("compiled").join("agent.sb");
    let said = format!("`{}` is not what the policy compiles to", changed.display());
    assert!(drift.stderr.contains(&said), "{}", drift.stderr);
    assert!(drift.stdout.contains("\n-") && drift.stdout.contains("\n+"), "{}", drift.stdout);
    assert!(!drift.stderr.contains("agent.seccomp"), "{}", drift.stderr);
}

#[test]
fn what_cannot_be_held_is_not_written() {
    let scene = Scene::new().file(
        "agent.policy",
        "srt 1\ndefault read deny\n# lint: allow(start-up-file) reviewed\nallow read, write $WORKSPACE\ndeny write $WORKSPACE/a/**/b\n",
    );
    let ended = srt(&scene, &["compile", "--target", "macos", "agent.policy", "-o", "agent.sb"]);
    assert_eq!(ended.code, 1);
    assert!(
        ended.stderr.contains("moved-directory") && ended.stderr.contains("nothing is written"),
        "{}",
        ended.stderr
    );
    assert!(!scene.home().join("agent.sb").exists());
    let listen = Scene::new().file("agent.policy", "srt 1\ndefault read allow\nallow listen 127.0.0.1:80\n");
    let ended = srt(&listen, &["compile", "--target", "macos", "agent.policy"]);
    assert_eq!((ended.code, &ended.stdout[..]), (1, ""));
    assert!(ended.stderr.contains("unenforceable"), "{}", ended.stderr);
}

#[test]
fn rules_and_filters() {
    let scene = scene();
    let rules = srt(&scene, &["compile", "--target", "windows", "--emit", "ir", "agent.policy"]);
    assert_eq!(rules.code, 0, "{}", rules.stderr);
    assert!(
        rules
            .stdout
            .contains("- {effect: deny, verb: read, targets: [\"$WORKSPACE/private\"], from: \"agent.policy:7\""),
        "{}",
        rules.stdout
    );
    let filter = srt(&scene, &["compile", "--emit", "seccomp-text", "agent.policy"]);
    assert!(filter.stdout.contains("x86_64:\nl0: ld [4]\n"), "{}", filter.stdout);
    assert_eq!(srt(&scene, &["compile", "--emit", "bwrap", "agent.policy"]).code, 2, "it depends on what exists");
}

/// They are for the machine that they are written on.
#[cfg(target_os = "linux")]
#[test]
fn arguments_are_for_this_machine() {
    let scene = scene();
    let arguments = srt(&scene, &["compile", "--host", "--emit", "bwrap-shell", "--workspace", "work", "agent.policy"]);
    assert_eq!(arguments.code, 0, "{}", arguments.stderr);
    assert!(arguments.stdout.contains("exec bwrap \\\n  --unshare-user"), "{}", arguments.stdout);
    assert!(
        arguments.stdout.trim_end().lines().any(|line| line.trim_start().starts_with("-- \"$@\"")),
        "{}",
        arguments.stdout
    );
}

#[test]
fn a_compiled_policy_has_the_gaps_of_each_system() {
    let rules = "allow read, write $WORKSPACE\n# lint: allow(later-names) they are there\ndeny read $WORKSPACE/**/.env";
    let scene = Scene::new().file("agent.policy", &format!("srt 1\nuse std/system\ndefault read deny\n{rules}\n"));
    let compiled = srt(&scene, &["compile", "--emit", "bundle", "agent.policy"]);
    let compiled: serde_json::Value = serde_json::from_str(&compiled.stdout).unwrap();
    let told = |system: &str| {
        let gaps = compiled["gaps"][system].as_array().unwrap().iter();
        gaps.map(|gap| (gap["code"].as_str().unwrap(), gap["direction"].as_str().unwrap())).collect::<Vec<_>>()
    };
    // What is accepted is told all the same.
    assert_eq!(told("linux"), [("later-names", "looser")]);
    assert!(told("macos").contains(&("moved-names", "stricter")), "{:?}", told("macos"));
    assert!(told("windows").contains(&("later-names", "looser")), "{:?}", told("windows"));
}

#[test]
fn a_compiled_policy_is_what_runs_without_its_sources() {
    let scene = scene();
    assert_eq!(srt(&scene, &["compile", "agent.policy", "-o", "agent.srtc"]).code, 0);
    let compiled = fs::read_to_string(scene.home().join("agent.srtc")).unwrap();
    assert!(serde_json::from_str::<serde_json::Value>(&compiled).is_ok(), "it is one JSON file");
    // Printed, by its name among the texts.
    assert_eq!(srt(&scene, &["compile", "--emit", "bundle", "agent.policy"]).stdout, compiled);
    srt(&scene, &["compile", "--emit", "bundle,ir", "agent.policy"]).fails(2);
    assert_eq!(srt(&scene, &["compile", "agent.policy", "-o", "agent.srtc", "--check"]).code, 0);
    let printed = |policy: &str| {
        let policy = scene.home().join(policy);
        let ended = output(
            scene.srt(["run", "--print-policy", "--policy", policy.to_str().unwrap()]).current_dir(scene.workspace()),
        );
        assert_eq!(ended.code, 0, "{}", ended.stderr);
        // It was compiled under its name alone.
        let home = scene.home().display().to_string().replace('\\', "/");
        ended.stdout.replace(&format!("{home}/"), "")
    };
    let from_text = printed("agent.policy");
    fs::remove_file(scene.home().join("agent.policy")).unwrap();
    assert_eq!(printed("agent.srtc"), from_text);
    let explained = output(
        scene
            .srt(["explain", "--policy", scene.home().join("agent.srtc").to_str().unwrap(), "read", "private/key"])
            .current_dir(scene.workspace()),
    );
    assert!(explained.stdout.contains("agent.policy:7"), "{}{}", explained.stdout, explained.stderr);
}

#[test]
fn a_compiled_policy_that_is_not_whole_is_refused() {
    let scene = scene();
    assert_eq!(srt(&scene, &["compile", "agent.policy", "-o", "agent.srtc"]).code, 0);
    let file = scene.home().join("agent.srtc");
    let right = fs::read_to_string(&file).unwrap();
    let refusal = |text: &str| {
        fs::write(&file, text).unwrap();
        let ended = srt(&scene, &["run", "--policy", "agent.srtc", "--", "true"]);
        assert_eq!(ended.code, 125, "{}", ended.stderr);
        ended.stderr
    };
    assert!(refusal(&right.replacen("_policy\":1,", "_policy\":2,", 1)).contains("format 2"));
    for changed in [
        right.replacen("\"deny\"", "\"allow\"", 1),
        right.replacen("private", "public", 1),
        right[..right.len() / 2].to_owned(),
        right[..90].to_owned(),
        format!("{right} "),
    ] {
        assert!(refusal(&changed).contains("damaged or was changed"));
    }
    assert!(refusal("").contains("no compiled policy"));
    assert!(refusal(POLICY).contains("no compiled policy"));
    fs::write(&file, &right).unwrap();
    for more in [&["--policy", "agent.policy"][..], &["--allow-read", "work"]] {
        let ended = srt(&scene, &[&["run", "--policy", "agent.srtc"], more, &["--", "true"]].concat());
        assert_eq!(ended.code, 125, "{}", ended.stderr);
    }
    // What it must be within holds for it as for any.
    fs::write(scene.home().join("less.policy"), "srt 1\ndefault read deny\n").unwrap();
    let ended =
        srt(&scene, &["run", "--policy", "agent.srtc", "--within", "less.policy", "--workspace", "work", "--", "true"]);
    assert!(ended.code == 125 && ended.stderr.contains("within"), "{}", ended.stderr);
}
