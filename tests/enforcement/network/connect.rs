//! `srt connect`, as ssh uses it: what it reaches, and what is read of a refusal.

use super::world::{greeter, try_with};
use crate::support::{Scene, output, srt};

/// A policy under which `srt` itself can be run inside.
fn scene(rules: &str) -> Scene {
    Scene::new().policy(&format!("allow read $WORKSPACE\nallow read {}\n{rules}", srt().display()))
}

#[test]
fn both_sides_are_heard_to_their_end() {
    let port = greeter("220 ready\r\n");
    let srt = srt().display();
    let script = format!(
        "printf 'EHLO x' | {srt} connect a.test {port}; echo \" $?\"
         # As much as no buffer holds, both ways; the end of what is said comes through, and so does the answer after it.
         head -c 3000000 /dev/zero | {srt} connect 127.0.0.1 {port} | wc -c
         (sleep 0.2; printf late) | {srt} connect localhost {port}; echo \" $?\"
         {srt} connect a.test {port} < /dev/null | head -c 3"
    );
    let rules = format!("allow connect [a.test:{port}, localhost:{port}]");
    try_with(
        || scene(&rules),
        &script,
        |done, who| {
            assert_eq!(done.ok(), "220 ready\r\nEHLO x 0\n3000011\n220 ready\r\nlate 0\n220", "{who}: {}", done.stderr);
        },
    );
}

#[test]
fn a_refusal_is_read_in_the_output_of_ssh() {
    let srt = srt().display();
    let script = format!(
        "ssh -F none -o ProxyCommand='{srt} connect %h %p' git@denied.test; echo $?
         GIT_SSH_COMMAND=\"ssh -F none -o ProxyCommand='{srt} connect %h %p'\" git ls-remote git@denied.test:x/y; echo $?
         {srt} connect none.wild.test 22; echo $?; {srt} connect 192.0.2.7 22 </dev/null; echo $?"
    );
    try_with(
        || scene("use std/git\nallow connect *.wild.test:22"),
        &script,
        |done, who| {
            assert_eq!(done.ok(), "255\n128\n1\n1", "{who}: {}", done.stderr);
            let refused = "srt: connecting to denied.test:22 is refused\nsrt: no rule allows it\n\
                 srt: to allow it, add: allow connect denied.test:22\n";
            assert_eq!(done.stderr.matches(refused).count(), 2, "{who}: {}", done.stderr);
            assert!(done.stderr.contains("srt: allowed, but the name can't be resolved"), "{who}: {}", done.stderr);
            assert!(done.stderr.contains("srt: connecting to 192.0.2.7:22 is refused"), "{who}: {}", done.stderr);
        },
    );
}

#[test]
fn mistakes_are_told_and_no_secret_with_them() {
    let connect = |proxy: Option<&str>, words: [&str; 2]| {
        let scene = Scene::new();
        let mut command = scene.srt(["connect", words[0], words[1]]);
        command.envs(proxy.map(|proxy| ("HTTPS_PROXY", proxy)));
        output(&mut command)
    };
    for (proxy, words, says) in [
        (None, ["a.test", "22"], "no variable names a proxy"),
        (
            Some("https://user:hunter2@h"),
            ["a.test", "22"],
            "`HTTPS_PROXY` names no proxy: a proxy that is itself spoken to in TLS",
        ),
        (Some("http://user:hunter2@h/x"), ["a.test", "22"], "a path stands behind the host"),
        (Some("http://127.0.0.1:1"), ["a b", "22"], "`a b` is no host"),
        (Some("http://127.0.0.1:1"), ["a.test", "0"], "invalid value '0'"),
    ] {
        let done = connect(proxy, words);
        assert!(done.fails(2).contains(says), "{done:?}");
        assert!(!done.stderr.contains("hunter"), "{done:?}");
    }
    let done = connect(Some("http://user:hunter2@127.0.0.1:1"), ["::1", "22"]);
    assert_eq!(done.fails(1), "srt: cannot connect to [::1]:22: the proxy can't be reached: Connection refused");
}
