//! Which policy is in force, and how it is chosen.

use crate::support::{Scene, output, users};

/// `srt ARGUMENTS` without a policy named.
fn bare(scene: &Scene, arguments: &[&str]) -> crate::support::Output {
    output(&mut scene.srt(arguments))
}

#[test]
fn without_a_policy_the_workspace_is_writable_and_secrets_are_closed() {
    for user in users() {
        let scene =
            Scene::new().file(".ssh/id_ed25519", "secret").file("notes", "mine").file("work/.envrc", "").by(user);
        assert_eq!(bare(&scene, &["sh", "-c", "echo x > made && cat ../notes && echo y > $TMPDIR/t"]).ok(), "mine");
        assert!(scene.workspace().join("made").exists());
        for attempt in ["cat ../.ssh/id_ed25519", "echo x > ../outside", "echo x > .envrc"] {
            assert_ne!(bare(&scene, &["sh", "-c", attempt]).code, 0, "{user:?}: {attempt}");
        }
    }
}

#[test]
fn a_policy_of_ones_own_is_the_default() {
    for user in users() {
        let own = "srt 1\nuse std/system\ndefault read deny\nallow read $WORKSPACE\n";
        let scene = Scene::new().file(".config/srt/default.policy", own).by(user);
        assert_ne!(bare(&scene, &["sh", "-c", "echo x > made"]).code, 0, "{user:?}");
        let elsewhere = scene.home().join("xdg");
        std::fs::create_dir_all(elsewhere.join("srt")).unwrap();
        std::fs::write(elsewhere.join("srt/default.policy"), own.replace("allow read $W", "allow read, write $W"))
            .unwrap();
        let scene = scene.env("XDG_CONFIG_HOME", elsewhere.to_str().unwrap());
        bare(&scene, &["sh", "-c", "echo x > made"]).ok();
    }
}

#[test]
fn a_default_policy_that_is_wrong_runs_nothing() {
    let scene = Scene::new().file(".config/srt/default.policy", "srt 1\ndefault read allow\nalow write $WORKSPACE\n");
    let output = bare(&scene, &["sh", "-c", "echo x > made"]);
    assert_eq!(output.code, 125, "{output:?}");
    assert!(!scene.workspace().join("made").exists());
}

#[test]
fn nothing_in_the_workspace_is_loaded_by_itself() {
    let open = "srt 1\ndefault read allow\nallow write $HOME\n";
    let names = ["default.policy", "srt.policy", ".srt.policy", "srt/default.policy", ".config/srt/default.policy"];
    let scene = names.iter().fold(Scene::new(), |scene, name| scene.file(&format!("work/{name}"), open));
    assert_ne!(bare(&scene, &["sh", "-c", "echo x > ../outside"]).code, 0);
}

#[test]
fn several_policies_are_a_union_and_their_denies_hold_for_all() {
    for user in users() {
        let scene = Scene::new()
            .file("more/a", "more")
            .file("more/b", "closed")
            .file("more.policy", "srt 1\ndefault read allow\nallow read ~/more\ndeny read ~/more/b\n")
            .by(user);
        let more = scene.home().join("more.policy").display().to_string();
        let scene = scene.policy("allow read $WORKSPACE").with(["--policy", &more]);
        assert_eq!(scene.run("cat ../more/a").ok(), "more", "{user:?}");
        assert_ne!(scene.run("cat ../more/b").code, 0, "{user:?}");
        // `default read deny` of the first wins over the second's.
        assert_ne!(scene.run("cat ../test.policy").code, 0, "{user:?}");
    }
}

#[test]
fn bubblewrap_is_not_started_with_more_mounts_than_it_takes() {
    let mut scene = Scene::new();
    for number in 0..4000 {
        scene = scene.file(&format!("work/d{}/f{number}.key", number % 50), "secret");
    }
    let scene = scene.policy(
        "allow read, write $WORKSPACE\n# lint: allow(later-names) those that are there\ndeny read $WORKSPACE/**/*.key",
    );
    scene.run("true").ok();
    let output = scene.with(["--engine", "bwrap"]).run("echo ran");
    assert_eq!(output.code, 125, "{output:?}");
    assert!(output.stderr.contains("--engine native") && output.stdout.is_empty(), "{}", output.stderr);
}

#[test]
fn a_comment_does_not_make_a_policy_enforceable() {
    for (code, rule) in [
        ("unenforceable", "allow connect 192.0.2.7:53/udp"),
        ("grant-without-read", "allow write $HOME/elsewhere"),
        ("expectation", "expect allow read /etc/shadow"),
    ] {
        let scene = Scene::new().folder("elsewhere");
        let scene = scene.policy(&format!("allow read, write $WORKSPACE\n# lint: allow({code}) no matter\n{rule}"));
        let ran = scene.run("touch ran");
        assert_eq!(ran.code, 125, "{code}: {ran:?}");
        assert!(ran.stderr.contains(code) && !scene.workspace().join("ran").exists(), "{code}: {}", ran.stderr);
        let checked = output(&mut scene.srt(["check", "../test.policy"]));
        assert_eq!(checked.code, 1, "{code}: {checked:?}");
    }
}
