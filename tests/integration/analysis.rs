//! Questions about whole policies: by hand here, against a brute force in `generated` and `worth`.

mod alone;
pub mod generated;
mod oracle;
mod worth;

use sandbox_runtime::analysis::{self, Answer, Budget};
use sandbox_runtime::diagnostic::any_error;
use sandbox_runtime::ir::{Policy, decide};
use sandbox_runtime::resolve::{Files, Options, Text, resolve};
use sandbox_runtime::source::Sources;
use sandbox_runtime::vocabulary::{System, Verb};
use std::collections::BTreeMap;

struct NoFiles;

impl Files for NoFiles {
    fn read(&self, _: &str) -> std::io::Result<Text> {
        Err(std::io::ErrorKind::NotFound.into())
    }
}

/// A policy for Linux, variables and all.
pub fn policy(text: &str) -> Policy {
    let mut sources = Sources::default();
    let given = sources.add("test.policy", format!("srt 1\n{text}\n"));
    let options = Options { system: System::Linux, defines: BTreeMap::new() };
    let (policy, diagnostics) = resolve(&[given], &mut sources, &NoFiles, &options);
    assert!(!any_error(&diagnostics), "{text}: {diagnostics:?}");
    policy.unwrap()
}

/// Whether each expectation of a text holds for every access, and if not, the access for which it does not.
fn expectations(text: &str) -> Vec<Option<String>> {
    let policy = policy(text);
    let one = |expect: &sandbox_runtime::ir::Expect| {
        let budget = &mut Budget::new(1_000_000);
        let answer = if expect.allow {
            analysis::denied(&policy, expect.verb, &expect.subject, budget)
        } else {
            analysis::permitted(&policy, expect.verb, &expect.subject, budget)
        };
        match answer {
            Answer::None => None,
            Answer::Some(access) => {
                assert_eq!(decide(&policy, &access).allowed, !expect.allow, "{access}");
                Some(access.to_string())
            }
            Answer::Unknown => Some("unknown".to_owned()),
        }
    };
    policy.expects.iter().map(one).collect()
}

fn widened(old: &str, new: &str, verb: Verb) -> Option<String> {
    let (old, new) = (policy(old), policy(new));
    match analysis::difference(&old, &new, verb, &mut Budget::new(1_000_000)) {
        Answer::None => None,
        Answer::Some(access) => {
            let both = [decide(&old, &access).allowed, decide(&new, &access).allowed];
            assert_eq!(both, [false, true], "{access}");
            Some(access.to_string())
        }
        Answer::Unknown => Some("unknown".to_owned()),
    }
}

/// An allow is inside a denial that names no place, wherever others say that there are some; what it opens is in the denial.
#[test]
fn what_is_opened_was_denied() {
    let old = "default read allow\ndeny exec /*\ndeny exec / except exact $WORKSPACE/a/*";
    let new = format!("{old}\nallow exec exact /**/**/a?\nallow exec /");
    assert_eq!(widened(old, &new, Verb::Exec), None);
}

#[test]
fn what_holds_of_every_path() {
    for (text, expected) in [
        ("default read allow\nexpect deny read ~/.ssh", Some("read $HOME/.ssh")),
        ("default read allow\ndeny read ~/.ssh\nexpect deny read ~/.ssh", None),
        ("default read allow\ndeny read exact ~/.ssh\nexpect deny read ~/.ssh", Some("read $HOME/.ssh/x")),
        (
            "default read allow\ndeny read ~/.ssh\nallow read ~/.ssh/config\nexpect deny read ~/.ssh",
            Some("read $HOME/.ssh/config"),
        ),
        (
            "default read allow\ndeny read ~/.ssh\nallow read ~/.ssh/config\nexpect deny read ~/.ssh except ~/.ssh/config",
            None,
        ),
        ("default read deny\nallow read /a\ndeny read /a/**/.env\nexpect allow read /a", Some("read /a/.env")),
        ("default read deny\nallow read /a\ndeny read /a/**/.env\nexpect allow read /a except **/.env", None),
        ("default read deny\nallow read /a\ndeny read /a/*/b*\nexpect allow read /a", Some("read /a/x/b")),
        ("default read deny\nallow read, write /a\nforbid read /a/b\nexpect deny write /a/b", None),
        ("default read deny\nallow read, write /a\nforbid read /a/b\nexpect allow write /a", Some("write /a/b")),
        // Without the place of a variable the allow is empty, and so inside the deny, which it opens there.
        (
            "default read deny\nallow read below / except /*\ndeny read below /\nexpect deny read $WORKSPACE",
            Some("read $WORKSPACE"),
        ),
        ("default read deny\nallow read /a\ndeny exec /a/b\nexpect allow exec /a", Some("exec /a/b")),
        ("default read deny\nallow read /a\nexpect deny exec /", Some("exec /a")),
        ("default read deny\nexpect deny exec /", None),
        // Two allows, each of which opens one of two denies: together they open both.
        (
            "default read deny\nallow read /a\ndeny read **/x\ndeny read **/x/**/y\nallow read /a/x\nallow read /a/**/y\n\
             expect allow read exact /a/x/y",
            Some("read /a/x/y"),
        ),
        (
            "default env deny\ndefault read deny\nallow env AWS_*\ndeny env *_KEY\nexpect allow env AWS_*",
            Some("env AWS_KEY"),
        ),
        ("default read deny\ndeny env AWS_*\nexpect deny env AWS_*", None),
    ] {
        assert_eq!(expectations(text), [expected.map(str::to_owned)], "{text}");
    }
}

#[test]
fn what_holds_of_every_connection() {
    for (text, expected) in [
        ("allow connect a.example\nexpect allow connect a.example", None),
        (
            "allow connect *.example\ndeny connect b.example\nexpect allow connect *.example",
            Some("connect b.example:80"),
        ),
        ("allow connect *.example\nexpect deny connect example", None),
        ("allow connect *.example:22\nexpect deny connect *", Some("connect x.example:22")),
        ("allow connect 10.0.0.0/8:5432\nexpect deny connect 10.1.0.0/16", Some("connect 10.1.0.0:5432")),
        ("allow connect 10.0.0.0/8:5432\ndeny connect 10.1.0.0/16\nexpect deny connect 10.1.0.0/16", None),
        ("allow connect 10.0.0.0/8:*\nexpect allow connect 10.0.0.0/8:443", None),
        // A name speaks of every public address.
        (
            "allow connect a.example\ndeny connect 8.0.0.0/8\nexpect allow connect a.example",
            Some("connect a.example:80"),
        ),
        ("allow connect a.example\ndeny connect 10.0.0.0/8\nexpect allow connect a.example", None),
        ("allow listen 127.0.0.1:3000\nexpect deny listen 0.0.0.0/0", Some("listen 127.0.0.1:3000")),
    ] {
        assert_eq!(expectations(&format!("default read deny\n{text}")), [expected.map(str::to_owned)], "{text}");
    }
}

#[test]
fn what_one_policy_permits_and_another_does_not() {
    let read = |old: &str, new: &str| {
        widened(&format!("default read deny\n{old}"), &format!("default read deny\n{new}"), Verb::Read)
    };
    assert_eq!(read("allow read /a", "allow read /a"), None);
    assert_eq!(read("allow read /a", "allow read /a/b"), None);
    assert_eq!(read("allow read /a/b", "allow read /a").as_deref(), Some("read /a"));
    assert_eq!(read("allow read /a\ndeny read /a/b", "allow read /a").as_deref(), Some("read /a/b"));
    assert_eq!(read("allow read /a\ndeny read **/b", "allow read /a\ndeny read /a/b").as_deref(), Some("read /a/x/b"));
    // The same, in other words.
    assert_eq!(read("allow read /a except /a/b", "allow read /a\ndeny read /a/b"), None);
    assert_eq!(read("allow read /a\ndeny read /a/b", "allow read /a except /a/b"), None);
    // Narrower, and it opens a deny.
    let (old, new) = ("allow read /a\ndeny read /a", "allow read /a/b\ndeny read /a");
    assert_eq!(read(old, new).as_deref(), Some("read /a/b"));
    let (old, new) = ("default read deny\nallow read /a", "default read allow\ndeny read /b");
    assert_eq!(widened(old, new, Verb::Read).as_deref(), Some("read /"));
    assert_eq!(widened(old, new, Verb::Exec).as_deref(), Some("exec /"));
}

#[test]
fn the_guard_is_part_of_the_question() {
    let connect = |old: &str, new: &str| {
        widened(&format!("default read deny\n{old}"), &format!("default read deny\n{new}"), Verb::Connect)
    };
    // A public block: the names reach it once the deny is gone.
    let found = connect("allow connect *:*\ndeny connect 8.0.0.0/8:*", "allow connect *:*");
    assert!(found.is_some());
    // A private one: only a name without `*` does.
    assert_eq!(connect("allow connect *:*\ndeny connect 10.0.0.0/8:*", "allow connect *:*"), None);
    let found = connect("allow connect db.corp:*\ndeny connect 10.0.0.0/8:*", "allow connect db.corp:*");
    assert_eq!(found.as_deref(), Some("connect db.corp:1"));
    // An address that is allowed lets names reach what is special.
    let found = connect("allow connect *:80", "allow connect *:80\nallow connect 127.0.0.1:80");
    assert_eq!(found.as_deref(), Some("connect 127.0.0.1:80"));
}
