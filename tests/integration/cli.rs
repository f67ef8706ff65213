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
        .file("small.policy", "srt 1\ndefault read deny\nallow read $WORKSPACE\nset CI=1\nlimit time 30s\n")
        .file(
            "accepted.policy",
            "srt 1\nuse std/system\ndefault read deny\n# lint: allow(later-names) nothing here needs it\nallow read $WORKSPACE\n",
        )
        .file("my policies/odd.policy", "srt 1\ndefault read deny\nallow read \"$WORKSPACE/a b\"\n")
        .file("work/a b/c$d.txt", "hello\n")
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
    without_lines(&text.replace(&home, "[HOME]"))
}

/// The embedded modules change, and their lines with them.
fn without_lines(text: &str) -> String {
    let mut parts = text.split("std/");
    let mut kept = parts.next().unwrap().to_owned();
    for part in parts {
        kept.push_str("std/");
        match part.split_once(':') {
            Some((module, rest)) if module.chars().all(|c| c.is_ascii_lowercase() || c == '-') => {
                let rest = rest.trim_start_matches(|c: char| c.is_ascii_digit() || c == ':');
                kept.push_str(&format!("{module}:N"));
                kept.push_str(if rest.starts_with(' ') { ":" } else { "" });
                kept.push_str(rest.strip_prefix(':').unwrap_or(rest));
            }
            _ => kept.push_str(part),
        }
    }
    kept
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
        &[
            &["--help"],
            &["run", "--help"],
            &["check", "--help"],
            &["explain", "--help"],
            &["fmt", "--help"],
            &["log", "--help"],
            &["draft", "--help"],
            &["lsp", "--help"],
            &["doctor", "--help"],
            &["completions", "--help"],
        ],
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
            &["check", "../none.policy", "../small.policy"],
            &["check", "../small.policy", "../agent.policy", "-A", "reopens"],
            &["check", "--format", "json", "../small.policy"],
            &["check", ".."],
            &["check", "std/system"],
            &["check", "../accepted.policy"],
            &["check", "--host", "../agent.policy"],
            &["check", "--host", "--deny", "warnings", "../accepted.policy"],
            &["check", "-D", "no-such-code", "../agent.policy"],
        ],
    );
}

#[test]
fn check_speaks_the_forms_of_others() {
    let scene = scene();
    let check =
        |format: &'static str| ["check", "--format", format, "../wrong.policy", "../small.policy", "../none.policy"];
    snapshot("check-formats", &scene, &[&check("sarif"), &check("github"), &check("junit"), &check("plain")]);
    // Nothing is drawn: a finding is one line of the letters that it is written with.
    let plain = output(scene.srt(check("plain")).env("CLICOLOR_FORCE", "1")).stderr;
    let drawn = |c: char| !c.is_ascii() || c.is_ascii_control() && c != '\n' || c == '^';
    assert!(plain.contains(" in ../wrong.policy, line ") && !plain.contains(drawn), "{plain}");
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
        explain("read", "."),
        explain("read", "../work/../work/src/none.rs"),
        explain("read", "~/.config"),
        explain("read", "$TMP/scratch"),
        explain("read", "/dev/null"),
        explain("read", "/proc/1/environ"),
        explain("exec", "src/tool"),
        explain("exec", "/root/tool"),
        vec!["explain", "--policy", "../my policies/odd.policy", "write", "a b/c$d.txt"],
        vec!["explain", "--policy", "../my policies/odd.policy", "read", "none/x{1,2}"],
        vec!["explain", "--policy", "../wrong.policy", "read", "."],
        vec!["explain", "read"],
        vec!["explain", "std/sytem"],
        explain("connect", "localhost:8080"),
        explain("connect", "not a host"),
        explain("connect", "api.example.com:99999"),
        explain("listen", "0.0.0.0:80"),
        explain("env", "PATH"),
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
fn explain_says_what_a_line_is_good_for() {
    let scene = scene().file(
        "lines.policy",
        "\
srt 1
default read deny
allow read, write $WORKSPACE
deny read [
  $WORKSPACE/private,
  $WORKSPACE/keys,
] because \"nobody's business\"
allow read $WORKSPACE/private/{notes,todo}
deny read $WORKSPACE/keys/old
allow read $WORKSPACE/src
forbid read $WORKSPACE/keep
allow read $WORKSPACE/keep/it
allow connect 10.0.0.0/8:5432
on linux {
  deny connect 10.1.0.0/16:*
}
expect deny read $WORKSPACE/keys/old/one
expect allow read $WORKSPACE/private/notes
",
    );
    let lines = ["3", "4", "6", "8", "9", "10", "../lines.policy:11", "12", "13", "14", "15"];
    let mut calls: Vec<_> =
        lines.iter().map(|line| vec!["explain", "--policy", "../lines.policy", "--rule", line]).collect();
    for line in ["2", "99", "0", "x", "../agent.policy:5"] {
        calls.push(vec!["explain", "--policy", "../lines.policy", "--rule", line]);
    }
    calls.extend([
        vec!["explain", "--policy", "../lines.policy", "--policy", "../small.policy", "--rule", "3"],
        vec!["explain", "--policy", "../lines.policy", "--policy", "../small.policy", "--rule", "../small.policy:3"],
        vec!["explain", "--policy", "../wrong.policy", "--rule", "3"],
        vec!["explain", "--policy", "../lines.policy", "--rule", "3", "read", "."],
        vec!["explain", "--policy", "../lines.policy"],
        vec!["explain", "--policy", "../lines.policy", "--format", "json", "--rule", "9"],
    ]);
    let calls: Vec<&[&str]> = calls.iter().map(Vec::as_slice).collect();
    snapshot("explain-line", &scene, &calls);
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
            &["run", "--policy", "std/default", "--", "true"],
            &["run", "--define", "1x=y", "--", "true"],
            &["run", "--workspace", "/", "--", "true"],
        ],
    );
}

#[test]
fn print_policy_shows_where_each_rule_came_from() {
    let scene = scene();
    snapshot("print-policy", &scene, &[&["run", "--policy", "../small.policy", "--print-policy"]]);
}

#[test]
fn flags_are_named_as_flags() {
    let scene = scene().file("data/in put.txt", "hello\n").folder("data/out");
    snapshot(
        "flags",
        &scene,
        &[
            &["run", "--allow-read", "../nowhere", "--", "true"],
            &["run", "--allow-read", "../data", "--allow-write", "../data/outt", "--", "true"],
            &["run", "--network-allowlist", "https://api.example.com/v1", "--", "true"],
            &["run", "--network-allowlist", "api example", "--", "true"],
            &["run", "--network-allowlist", "10.0.0.7", "--", "true"],
            &["explain", "--allow-read", "../data", "read", "../data/in put.txt"],
            &["explain", "--allow-read", "../data", "read", "../agent.policy"],
            &["explain", "--allow-read", "../data", "--allow-write", "../data/out", "write", "../data/out/new"],
            &["explain", "--allow-read", "../data", "--allow-write", "../data/out", "write", "../data/in put.txt"],
            &["explain", "--allow-read", ".", "--network-allowlist", "a.example.com", "connect", "a.example.com:443"],
            &["explain", "--allow-read", ".", "--network-allowlist", "a.example.com", "connect", "b.example.com:443"],
            &["explain", "--policy", "../agent.policy", "--allow-read", "private", "read", "private/diary"],
        ],
    );
    let print =
        ["run", "--allow-read", "../data", "--print-policy", "--network-allowlist", "a.example.com:22,b.example"];
    let printed = output(&mut scene.srt(print)).ok().replace(&scene.home().display().to_string(), "~");
    let of_flags = printed.lines().filter_map(|line| line.split_once("  # --"));
    let of_flags: Vec<_> = of_flags.map(|(rule, flag)| format!("{} # --{flag}", rule.trim_end())).collect();
    assert_eq!(
        of_flags,
        [
            "default read deny # --allow-read",
            "allow read ~/data # --allow-read ../data",
            "allow connect a.example.com:22 # --network-allowlist a.example.com:22",
            "allow connect b.example # --network-allowlist b.example",
            "set npm_config_cache=/tmp/npm # --allow-read",
            "set npm_config_update_notifier=false # --allow-read",
        ]
    );
}

#[test]
fn a_module_is_shown_as_it_is() {
    let scene = scene();
    for (name, text) in sandbox_runtime::resolve::STD {
        assert_eq!(output(&mut scene.srt(["explain", &format!("std/{name}")])).stdout, *text);
    }
}

#[test]
fn colour_is_where_it_is_asked_for() {
    let coloured = |set: &[(&str, &str)]| {
        let scene = set.iter().fold(scene(), |scene, (name, value)| scene.env(name, value));
        let check = output(&mut scene.srt(["check", "../wrong.policy"])).stderr;
        let explain = output(&mut scene.srt(["explain", "--policy", "../small.policy", "read", "x"])).stdout;
        let doctor = output(&mut scene.srt(["doctor"])).stdout;
        let found: Vec<_> = [check, explain, doctor].iter().map(|text| text.contains('\u{1b}')).collect();
        assert!(found.iter().all(|one| *one == found[0]), "{set:?}: {found:?}");
        found[0]
    };
    assert!(!coloured(&[]), "no terminal");
    assert!(coloured(&[("CLICOLOR_FORCE", "1")]));
    assert!(!coloured(&[("CLICOLOR_FORCE", "0")]));
    assert!(!coloured(&[("CLICOLOR_FORCE", "1"), ("NO_COLOR", "1")]));
    assert!(coloured(&[("CLICOLOR_FORCE", "1"), ("NO_COLOR", "")]), "an empty NO_COLOR is none");
}

#[test]
fn json_has_the_shapes_that_the_book_describes() {
    let scene = scene();
    let json = |arguments: &[&str]| -> serde_json::Value {
        serde_json::from_str(&output(&mut scene.srt(arguments)).stdout).unwrap()
    };
    let keys = |value: &serde_json::Value| -> Vec<String> { value.as_object().unwrap().keys().cloned().collect() };
    let check = json(&["check", "--format", "json", "../wrong.policy"]);
    assert_eq!(keys(&check[0]), ["diagnostics", "file"]);
    let finding = &check[0]["diagnostics"][0];
    assert_eq!(keys(finding), ["code", "fix", "help", "labels", "level", "message", "witness"]);
    assert_eq!(keys(&finding["labels"][0]), ["column", "end", "file", "line", "start", "text"]);
    let explain = json(&["explain", "--policy", "../agent.policy", "--format", "json", "read", "private/diary"]);
    assert_eq!(keys(&explain), ["allowed", "decisive", "matching", "object", "raises", "suggestion", "verb", "why"]);
    assert_eq!(keys(&explain["decisive"][0]), ["because", "effect", "file", "line", "text"]);
    let line = json(&["explain", "--policy", "../agent.policy", "--format", "json", "--rule", "8"]);
    assert_eq!(keys(&line), ["findings", "rules", "without"]);
    assert_eq!(keys(&line["rules"][0]), ["alone", "instead", "rule", "witness"]);
    let page = json(&["explain", "--format", "json", "later-names"]);
    assert_eq!(keys(&page), ["code", "level", "page"]);
    let doctor = json(&["doctor", "--format", "json"]);
    assert_eq!(keys(&doctor[0]), ["costs", "found", "mend", "name", "ok", "required"]);
    // The book names each of these.
    let book = std::fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join("book/src/json.md")).unwrap();
    for value in [
        &check[0],
        finding,
        &finding["labels"][0],
        &explain,
        &explain["decisive"][0],
        &line,
        &line["rules"][0],
        &page,
        &doctor[0],
    ] {
        for key in keys(value) {
            assert!(book.contains(&format!("`{key}`")), "the book does not name `{key}`");
        }
    }
}

#[test]
fn a_default_that_leads_nowhere_is_not_none() {
    let scene = scene().folder(".config/srt");
    std::os::unix::fs::symlink("nowhere", scene.home().join(".config/srt/default.policy")).unwrap();
    let ended = output(&mut scene.srt(["explain", "read", "x"]));
    assert!(ended.code == 2 && ended.stderr.contains("srt/default.policy"), "{ended:?}");
}

/// Whoever reads what is told may have enough of it (`2>&1 | head`): the status stays what it is.
#[test]
fn a_reader_that_went_away_changes_no_status() {
    let scene = scene();
    for (arguments, status) in [
        (&["check", "../wrong.policy"][..], 1),
        (&["check", "--format", "plain", "../wrong.policy"], 1),
        (&["check", "../missing.policy"], 2),
        (&["run", "--policy", "../wrong.policy", "--", "true"], 125),
    ] {
        let (reader, writer) = std::io::pipe().unwrap();
        drop(reader);
        let ended = scene.srt(arguments).stderr(writer).status().unwrap();
        assert_eq!(ended.code(), Some(status), "{arguments:?}: {ended}");
    }
}
