//! What people see: each message with its place and its help, in one snapshot a group.

use super::read_in;
use crate::diagnostic::{Style, render};
use crate::source::Sources;
use std::fmt::Write;
use std::path::Path;

fn shown(texts: &[&str]) -> String {
    let mut out = String::new();
    for text in texts {
        let mut sources = Sources::default();
        let (_, diagnostics) = read_in(&mut sources, text);
        for diagnostic in diagnostics {
            writeln!(out, "{}", render(&diagnostic, &sources, Style { colour: false, width: 100 })).unwrap();
        }
    }
    out
}

/// The lines, each in a policy of its own.
fn lines(lines: &[&str]) -> String {
    let texts: Vec<String> = lines.iter().map(|line| format!("srt 1\n{line}\n")).collect();
    shown(&texts.iter().map(String::as_str).collect::<Vec<_>>())
}

fn check(name: &str, text: &str) {
    let mut settings = insta::Settings::clone_current();
    settings.set_snapshot_path(Path::new(env!("CARGO_MANIFEST_DIR")).join("snapshots/diagnostics/syntax"));
    settings.set_prepend_module_to_snapshot(false);
    settings.set_omit_expression(true);
    settings.bind(|| insta::assert_snapshot!(name, text));
}

#[test]
fn statements() {
    check(
        "statements",
        &lines(&[
            "alow read /a",
            "read /a",
            "except /a",
            "permit read /a",
            "/usr/bin",
            "allow",
            "allow raed /a",
            "allow /a",
            "allow read",
            "allow read, write",
            "allow read write /a",
            "allow read /a /b",
            "allow read /a, /b",
            "allow read /a becuase \"x\"",
            "allow read /a \"x\"",
            "allow read /a because x",
            "allow read /a because \"\"",
            "allow read /a allow read /b",
            "use system",
            "use ../base.policy",
            "let llm [a.b]",
            "let x-y = /a",
            "let x = lines(hosts)",
            "default write deny",
            "default read forbid",
            "default raed deny",
            "set A = 1",
            "set A=b c",
            "limit memory 4GB",
            "limit memory 4",
            "limit memry 4GiB",
            "limit processes",
            "within base.policy",
            "expect forbid read /a",
            "expect deny read /a because \"x\"",
            "assume CACHE inside /a",
            "assume $CACHE insde /a",
        ]),
    );
}

#[test]
fn brackets() {
    check(
        "brackets",
        &shown(&[
            "srt 1\nallow connect [\n  a.b,\n  c.d\nallow read /a\n",
            "srt 1\nallow connect [a.b c.d]\n",
            "srt 1\nallow read []\n",
            "srt 1\nallow read /a/{b,c\n",
            "srt 1\nallow read \"/a b\n",
            "srt 1\nallow read /a\"b\"\n",
            "srt 1\nallow read /a }\n",
            "srt 1\nallow read /a]\n",
            "srt 1\non linux {\n  allow read /a\n\nallow read /b\n",
            "srt 1\non linux\n  allow read /a\n}\n",
            "srt 1\non linx {\n  allow read /a\n}\n",
            "srt 1\non linux {\n  let x = /a\n}\n",
            "srt 1\non linux { allow read /a } allow read /b\n",
            "srt 1\n}\n",
            "srt 1\nallow read /a\n  except [/a/b\n  because \"x\"\n",
        ]),
    );
}

#[test]
fn versions() {
    check(
        "versions",
        &shown(&["default read deny\n", "srt 2\n", "use std/git\nsrt 1\n", "srt 1\nsrt 1\n", "srt one\n", "# empty\n"]),
    );
}

#[test]
fn targets() {
    check(
        "targets",
        &lines(&[
            "allow read src",
            "allow read ../src",
            "allow read /a/../b",
            "allow read /a//b",
            "allow read ~/a/",
            "allow read /a#b",
            "allow read /home/$USER/x",
            "allow read ${HOME}",
            "allow read $HOME.ssh",
            "allow read $HOME?",
            "allow read /{1..3}",
            "allow read /a/**b",
            "allow read /[^a]",
            "allow read [/a, src, /b/]",
            "allow connect https://api.example.com/v1",
            "allow connect api.example.com/v1",
            "allow connect api.example.com:https",
            "allow connect api..com",
            "allow connect a.*.com",
            "allow connect /run/x.sock",
            "allow connect 10.0.0.7",
            "allow connect 10.0.0.7/8:22",
            "allow connect 127.1:80",
            "allow connect 010.0.0.1:80",
            "allow connect 2130706433:80",
            "allow connect 2001:db8::1",
            "allow connect [2001:db8::1]/32:443",
            "allow listen localhost:3000",
            "allow read, connect /a",
            "allow env A=1",
            "allow read C:/x",
            "allow read /a\u{a0}b",
            "allow read /a\u{202e}b",
            "# lint: allow(broad-grant)\nallow read /",
            "# lint: allow(broad-grant) all of it\n\nallow read /",
            "# lint: deny(broad-grant) all of it\nallow read /",
        ]),
    );
}
