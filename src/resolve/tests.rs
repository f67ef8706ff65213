#![allow(clippy::unwrap_used)]
//! What policies resolve to: snapshots of the rules, and each finding on the text that raises it.

use super::{Files, Options, Text, resolve};
use crate::diagnostic::{Diagnostic, Level, any_error};
use crate::ir::{Policy, Subject, Unset};
use crate::sets::peer::Endpoint;
use crate::source::Sources;
use crate::vocabulary::System;
use ::std::collections::BTreeMap;
use ::std::fmt::Write as _;
use ::std::io;

/// Files by path; one whose path ends in `!` is writable by others.
pub(crate) struct Texts<'a>(pub &'a [(&'a str, &'a str)]);

impl Files for Texts<'_> {
    fn read(&self, path: &str) -> io::Result<Text> {
        let found = self.0.iter().find(|(name, _)| name.trim_end_matches('!') == path);
        let (name, text) = found.ok_or_else(|| io::Error::from(io::ErrorKind::NotFound))?;
        Ok(Text { text: (*text).to_owned(), writable_by_others: name.ends_with('!') })
    }
}

pub(crate) struct Outcome {
    pub policy: Option<Policy>,
    pub diagnostics: Vec<Diagnostic>,
    pub sources: Sources,
}

/// Resolves the first of some files on Linux; the others are there to be used.
pub(crate) fn of(files: &[(&str, &str)]) -> Outcome {
    with(files, System::Linux, &[])
}

fn with(files: &[(&str, &str)], system: System, defines: &[(&str, &str)]) -> Outcome {
    let mut sources = Sources::default();
    let given = sources.add(files[0].0, files[0].1);
    let defines = defines.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect();
    let options = Options { system, defines };
    let (policy, diagnostics) = resolve(&[given], &mut sources, &Texts(files), &options);
    Outcome { policy, diagnostics, sources }
}

/// `srt 1` and `default read deny`, then this.
fn body(text: &str) -> Outcome {
    of(&[("a.policy", &format!("srt 1\ndefault read deny\n{text}\n"))])
}

impl Outcome {
    /// The policy, of which nothing bad was said.
    pub fn policy(&self) -> &Policy {
        assert!(self.diagnostics.iter().all(|d| d.level != Level::Error), "{}", self.said());
        self.policy.as_ref().unwrap()
    }

    /// One line a finding: code, place, message.
    pub fn said(&self) -> String {
        let mut text = String::new();
        for diagnostic in &self.diagnostics {
            let place = diagnostic.span().map(|span| self.sources.location(span).to_string()).unwrap_or_default();
            writeln!(text, "{} {place} {}", diagnostic.code.name, diagnostic.message).unwrap();
        }
        text
    }

    fn codes(&self) -> Vec<&str> {
        self.diagnostics.iter().map(|diagnostic| diagnostic.code.name).collect()
    }

    /// One line a rule.
    pub fn rules(&self) -> Vec<String> {
        self.policy()
            .rules
            .iter()
            .map(|rule| format!("{} {} {}", rule.effect, rule.verb, subject(&rule.subject)))
            .collect()
    }
}

/// A set, as it would be written.
pub(crate) fn subject(subject: &Subject) -> String {
    fn list<T: ::std::fmt::Display>(include: &[T], exclude: &[T]) -> String {
        let join = |all: &[T]| all.iter().map(ToString::to_string).collect::<Vec<_>>().join(", ");
        if exclude.is_empty() { join(include) } else { format!("{} except {}", join(include), join(exclude)) }
    }
    match subject {
        Subject::Paths(set) => list(&set.include, &set.exclude),
        Subject::Names(set) => list(&set.include, &set.exclude),
        Subject::Peers(peers) => {
            let place = match &peers.endpoint {
                Endpoint::Hosts(set) => list(&written_out(&set.include), &written_out(&set.exclude)),
                Endpoint::Addresses(set) => {
                    let range = |(low, high)| if low == high { format!("{low}") } else { format!("{low}–{high}") };
                    set.ranges().map(range).collect::<Vec<_>>().join(", ")
                }
            };
            let ports = peers.ports.ranges().map(|r| match (r.start(), r.end()) {
                (low, high) if low == high => low.to_string(),
                (low, high) => format!("{low}-{high}"),
            });
            let protocols = match (peers.tcp, peers.udp) {
                (true, true) => "tcp, udp",
                (true, false) => "tcp",
                (false, true) => "udp",
                (false, false) => "nothing",
            };
            format!("{place} : {} ({protocols})", ports.collect::<Vec<_>>().join(", "))
        }
    }
}

/// A whole policy, one item a line.
pub(crate) fn print(policy: &Policy, sources: &Sources) -> String {
    let mut text = String::new();
    let at = |span| sources.location(span);
    writeln!(text, "default read {}   # {}", policy.default_read.value, at(policy.default_read.span)).unwrap();
    if let Some(env) = &policy.default_env {
        writeln!(text, "default env {}   # {}", env.value, at(env.span)).unwrap();
    }
    for rule in &policy.rules {
        let unset = match &rule.unset {
            Unset::Refuse => String::new(),
            Unset::Drop => " | or nothing".to_owned(),
            Unset::Instead(other) => format!(" | or {}", subject(other)),
        };
        let because = rule.because.as_ref().map(|because| format!(" because {because:?}")).unwrap_or_default();
        let line = format!("{} {} {}{unset}{because}", rule.effect, rule.verb, subject(&rule.subject));
        writeln!(text, "{line}   # {} {:?}", at(rule.span), rule.origin).unwrap();
    }
    for (name, value) in &policy.set {
        writeln!(text, "set {name}={:?}   # {}", value.value, at(value.span)).unwrap();
    }
    for (kind, value) in &policy.limits {
        writeln!(text, "limit {kind} {}   # {}", value.value, at(value.span)).unwrap();
    }
    for expect in &policy.expects {
        let verdict = if expect.allow { "allow" } else { "deny" };
        writeln!(text, "expect {verdict} {} {}   # {}", expect.verb, subject(&expect.subject), at(expect.span))
            .unwrap();
    }
    for assume in &policy.assumes {
        let side = if assume.inside { "inside" } else { "outside" };
        let paths = subject(&Subject::Paths(assume.paths.clone()));
        writeln!(text, "assume ${} {side} {paths}   # {}", assume.variable, at(assume.span)).unwrap();
    }
    for within in &policy.withins {
        writeln!(text, "within {:?}   # {}", within.path, at(within.span)).unwrap();
    }
    for suppression in &policy.suppressions {
        writeln!(text, "lint: allow({}) {}   # {}", suppression.code, suppression.reason, at(suppression.statement))
            .unwrap();
    }
    text
}

fn snapshot(name: &str, files: &[(&str, &str)], outcome: &Outcome) {
    let mut text = String::new();
    for (name, body) in files {
        writeln!(text, "── {name}\n{}", body.trim_end()).unwrap();
    }
    writeln!(text, "── policy").unwrap();
    if let Some(policy) = &outcome.policy {
        text.push_str(&print(policy, &outcome.sources));
    }
    if !outcome.diagnostics.is_empty() {
        writeln!(text, "── findings\n{}", outcome.said().trim_end()).unwrap();
    }
    let mut settings = insta::Settings::clone_current();
    settings.set_snapshot_path(concat!(env!("CARGO_MANIFEST_DIR"), "/snapshots/ir"));
    settings.set_prepend_module_to_snapshot(false);
    settings.set_omit_expression(true);
    settings.bind(|| insta::assert_snapshot!(name, text));
}

/// Hosts with the entries of lists in their place.
fn written_out(patterns: &[crate::sets::host::Pattern]) -> Vec<crate::sets::host::Pattern> {
    let out = patterns.iter().flat_map(|pattern| match pattern {
        crate::sets::host::Pattern::Table(table) => table.patterns().collect(),
        _ => vec![pattern.clone()],
    });
    out.collect()
}

#[test]
fn a_ceiling_is_a_policy_of_its_own() {
    let given = ("a.policy", "srt 1\ndefault read deny\nwithin \"ceiling.policy\"\n");
    let ceiling = |text| of(&[given, ("ceiling.policy", text)]);
    let outcome = ceiling("srt 1\ndefault read deny\nuse std/secrets\nallow read /x\nexpect deny read /x\n");
    let policy = outcome.policy.as_ref().unwrap();
    let above = policy.withins[0].ceiling.as_deref().unwrap();
    assert!(policy.rules.is_empty() && !above.rules.is_empty() && above.expects.is_empty());
    // What is wrong with it keeps it from being believed.
    for text in ["srt 1\nallow read /x\n", "srt 1\ndefault read deny\nallow read x\n"] {
        let outcome = ceiling(text);
        assert!(any_error(&outcome.diagnostics) && outcome.policy.unwrap().withins[0].ceiling.is_none(), "{text}");
    }
    let missing = of(&[given]);
    assert!(any_error(&missing.diagnostics) && missing.policy.unwrap().withins[0].ceiling.is_none());
}

#[test]
fn a_policy_of_everything() {
    let files = [
        (
            "policies/agent.policy",
            r#"srt 1
use "../team/base.policy"
let llm = [api.anthropic.com, api.openai.com]
let src = $WORKSPACE/src
default read deny
default env deny

allow read, write $WORKSPACE except $WORKSPACE/{dist,build}
deny read $WORKSPACE/**/.env because "secrets stay out of the model's context"
forbid write **/.git/hooks
deny exec [/usr/bin/curl, "/usr/bin/w get"]
allow write exact $src/main.rs
allow connect $llm
allow connect [github.com, *.githubusercontent.com, localhost:3000]
allow connect github.com:22
allow connect 10.20.0.0/16:5432 except 10.20.1.0/24
deny connect [192.0.2.0/24, *.example.com]
allow connect dns.example.net:53/udp
allow listen 127.0.0.1:3000-3010
# lint: allow(control-socket) keys stay in ssh-agent
allow socket $env.SSH_AUTH_SOCK?
allow socket $env.DOCKER_SOCK or /run/docker.sock
deny env [AWS_*, *_TOKEN]
allow env GITHUB_TOKEN
set CI=1
limit memory 4GiB, processes 512
on macos { allow mach com.apple.SecurityServer }
on linux { allow read /proc }
expect deny read ~/.ssh
expect allow connect api.github.com:443
within "../ceiling.policy"
"#,
        ),
        (
            "team/base.policy",
            "srt 1\ndefault read allow\nlet llm = [other.example]\nallow connect $llm\nlimit processes 64, time 1m\nset CI=1\n",
        ),
        ("ceiling.policy", "srt 1\ndefault read allow\nexpect deny read /\nwithin \"none.policy\"\n"),
    ];
    let outcome = of(&files);
    // One finding is meant to be there: connecting and listening meet on a loopback port.
    snapshot("everything", &files, &outcome);
}

#[test]
fn on_blocks_count_on_their_systems() {
    let text = "srt 1\ndefault read deny\nlet apps = /Applications\nlet mac = [$apps]\non macos { allow read $mac }\non linux, windows { allow read /x }\n";
    let rules = |system| with(&[("a.policy", text)], system, &[]).rules();
    assert_eq!(rules(System::Linux), ["allow read /x"]);
    assert_eq!(rules(System::Macos), ["allow read /Applications"]);
    assert_eq!(
        with(&[("a.policy", text)], System::Linux, &[]).codes(),
        [""; 0],
        "a let that another system uses is used"
    );
}

#[test]
fn includes_are_found_once_and_beside_their_file() {
    let outcome = of(&[
        ("d/a.policy", "srt 1\ndefault read deny\nuse \"sub/b.policy\"\nuse \"sub/c.policy\"\n"),
        ("d/sub/b.policy", "srt 1\nuse \"../sub/c.policy\"\nallow read /b\n"),
        ("d/sub/c.policy", "srt 1\nallow read /c\n"),
    ]);
    assert_eq!(outcome.rules(), ["allow read /b", "allow read /c"]);
}

#[test]
fn what_is_wrong_with_includes_is_said() {
    let outcome = of(&[
        ("a.policy", "srt 1\ndefault read deny\nuse \"b.policy\"\n"),
        ("b.policy", "srt 1\nuse \"c.policy\"\n"),
        ("c.policy", "srt 1\nuse \"./x/../b.policy\"\n"),
    ]);
    assert_eq!(outcome.codes(), ["include"]);
    assert_eq!(outcome.diagnostics[0].message, "this file uses itself: `b.policy` uses `c.policy` uses `b.policy`");

    let outcome = of(&[("a.policy", "srt 1\ndefault read deny\nuse \"none.policy\"\nuse std/sytem\n")]);
    assert_eq!(outcome.codes(), ["include", "include"]);
    assert_eq!(outcome.diagnostics[0].message, "there is no file `none.policy`");
    assert_eq!(outcome.diagnostics[1].help.as_deref(), Some("use `std/system`"));

    let outcome =
        of(&[("a.policy", "srt 1\ndefault read deny\nuse \"b.policy\"\n"), ("b.policy!", "srt 1\nallow read /x\n")]);
    assert_eq!(outcome.codes(), ["writable-include"]);
}

#[test]
fn sixteen_deep_is_the_most() {
    let chain = |length: usize| {
        let names: Vec<_> = (0..=length).map(|at| format!("{at}.policy")).collect();
        let texts: Vec<_> = (0..=length)
            .map(|at| match at {
                0 => "srt 1\ndefault read deny\nuse \"1.policy\"\n".to_owned(),
                at if at == length => "srt 1\nallow read /end\n".to_owned(),
                at => format!("srt 1\nuse \"{}.policy\"\n", at + 1),
            })
            .collect();
        let files: Vec<_> = names.iter().zip(&texts).map(|(name, text)| (name.as_str(), text.as_str())).collect();
        of(&files).diagnostics.iter().map(|d| d.code.name).collect::<Vec<_>>()
    };
    assert_eq!(chain(16), [""; 0]);
    assert_eq!(chain(17), ["include"]);
}

#[test]
fn names_are_looked_up_in_their_own_file() {
    let outcome = of(&[
        ("a.policy", "srt 1\ndefault read deny\nuse \"b.policy\"\nallow read $there\n"),
        ("b.policy", "srt 1\nlet there = /x\nallow read $there\n"),
    ]);
    assert_eq!(outcome.codes(), ["unknown-variable"]);
    assert_eq!(outcome.sources.location(outcome.diagnostics[0].span().unwrap()).to_string(), "a.policy:4");
}

#[test]
fn what_is_wrong_with_names_is_said() {
    for (text, code, help) in [
        ("allow read $WORKSPCE", "unknown-variable", Some("use `$WORKSPACE`")),
        ("let docs = /d\nallow read [$docs, $dosc]", "unknown-variable", Some("use `$docs`")),
        ("let HOME = /x", "invalid-variable", None),
        ("let a = /x\nlet a = /y\nallow read $a", "invalid-variable", None),
        ("let a = $b\nlet b = $a\nallow read $a", "invalid-variable", None),
        ("let a = [/x, /y]\nallow read $a/z", "invalid-variable", None),
        ("let a = /x/*\nallow read $a/z", "invalid-variable", None),
        ("let a = [/x, /y]\nallow read exact $a", "invalid-variable", None),
        ("let a = [x.example, y.example]\nallow connect $a:22", "invalid-variable", None),
        ("let a = x.example:80\nallow connect $a:22", "invalid-variable", None),
        ("deny socket $env.S?", "invalid-variable", None),
        ("allow read /x except $env.S?", "invalid-variable", None),
        ("let a = /x", "unused-variable", None),
        ("allow connect $WORKSPACE", "verb-target", None),
        ("let a = 10.0.0.1\nallow connect $a", "ports", None),
        ("allow connect 10.0.0.0/8:443 except a.example", "except-kind", None),
        ("allow connect a.example except 10.0.0.1", "except-kind", None),
        ("deny connect a.example except a.example:22", "ports", None),
        ("set A=1\nset A=2", "set-conflict", None),
        ("allow connect localhost:80\nallow listen 127.0.0.2:1-100", "loopback-conflict", None),
        ("allow connect [::1]:80\nallow listen [::]:80", "loopback-conflict", None),
    ] {
        let outcome = body(text);
        assert!(outcome.codes().first() == Some(&code), "{text}\n{}", outcome.said());
        assert_eq!(outcome.codes().len(), 1, "{text}\n{}", outcome.said());
        assert!(help.is_none() || outcome.diagnostics[0].help.as_deref() == help, "{:?}", outcome.diagnostics[0].help);
        assert!(outcome.diagnostics[0].help.is_some() && outcome.diagnostics[0].span().is_some(), "{text}");
    }
}

#[test]
fn a_default_for_reads_is_required_and_deny_wins() {
    assert_eq!(of(&[("a.policy", "srt 1\nallow read /x\n")]).codes(), ["missing-default"]);
    let mut sources = Sources::default();
    let given = [
        sources.add("a.policy", "srt 1\ndefault read allow\n"),
        sources.add("b.policy", "srt 1\ndefault read deny\nuse \"a.policy\"\n"),
    ];
    let options = Options { system: System::Linux, defines: BTreeMap::new() };
    let (policy, diagnostics) = resolve(&given, &mut sources, &Texts(&[]), &options);
    assert!(diagnostics.is_empty(), "a given file is not read again: {diagnostics:?}");
    assert_eq!(policy.unwrap().default_read.value, crate::vocabulary::Effect::Deny);
}

#[test]
fn lets_hold_lists_and_other_lets() {
    let outcome = body(
        "let a = [/x, $b]\nlet b = [/y/*, $c]\nlet c = /z\nallow read $a\nallow write $c/sub\nallow exec exact $c\n\
         let h = x.example\nallow connect [$h, $h:22]\nlet p = $env.P or ~/p\nallow read $p/q",
    );
    assert_eq!(
        outcome.rules(),
        [
            "allow read /x",
            "allow read /y/*",
            "allow read /z",
            "allow write /z/sub",
            "allow exec exact /z",
            "allow connect x.example : 80, 443 (tcp)",
            "allow connect x.example : 22 (tcp)",
            "allow read $env.P/q",
        ]
    );
    let Unset::Instead(other) = &outcome.policy().rules[7].unset else { panic!("no fallback") };
    assert_eq!(subject(other), "$HOME/p/q");
}

#[test]
fn definitions_are_literals_and_must_be_used() {
    let text = "srt 1\ndefault read deny\nallow connect $registry\nallow read $data/in\n";
    let defined = |defines: &[(&str, &str)]| with(&[("a.policy", text)], System::Linux, defines);
    let outcome = defined(&[("registry", "Registry.Example."), ("data", "/srv/data")]);
    assert_eq!(outcome.rules(), ["allow connect registry.example : 80, 443 (tcp)", "allow read /srv/data/in"]);
    for (value, wrong) in [("/srv/*", 1), ("srv", 1), ("/srv/../etc", 1), ("/srv/", 1), ("/srv", 0)] {
        let outcome = defined(&[("registry", "r.example"), ("data", value)]);
        assert_eq!(outcome.codes().len(), wrong, "{value}: {}", outcome.said());
    }
    assert_eq!(defined(&[("registry", "r.example"), ("data", "/d"), ("dtaa", "/d")]).codes(), ["unused-variable"]);
    assert_eq!(defined(&[("registry", "r.example"), ("data", "/d"), ("HOME", "/d")]).codes()[0], "invalid-variable");
}

#[test]
fn an_assumption_declares_a_variable() {
    let outcome = body("assume $scratch outside [~, /etc]\nallow write $scratch/x");
    assert_eq!(outcome.rules(), ["allow write $scratch/x"]);
    assert_eq!(outcome.policy().assumes.len(), 1);
}

#[test]
fn tables_are_one_rule() {
    let files = |table| {
        [("p/a.policy", "srt 1\ndefault read deny\nlet t = lines(\"t.txt\")\ndeny connect $t\n"), ("p/t.txt", table)]
    };
    let outcome = of(&files("# hosts\nA.example\n\n  *.b.example  \nxn--bcher-kva.example\n"));
    assert_eq!(outcome.rules(), ["deny connect a.example, *.b.example, xn--bcher-kva.example : 1-65535 (tcp, udp)"]);
    let outcome = of(&files("192.0.2.1\n198.51.100.0/24\n"));
    assert!(
        outcome.rules()[0].starts_with("deny connect 192.0.2.1, 198.51.100.0–198.51.100.255"),
        "{:?}",
        outcome.rules()
    );
    for (table, line) in [
        ("a.example\n/x\n", 2),
        ("a.example:22\n", 1),
        ("a b\n", 1),
        ("x-*.example\n", 1),
        ("# nothing\n", 3),
        ("a.example\n10.0.0.1/8\n", 2),
    ] {
        let outcome = of(&files(table));
        assert_eq!(outcome.codes(), ["list-file"], "{table}: {}", outcome.said());
        assert_eq!(outcome.sources.location(outcome.diagnostics[0].span().unwrap()).line, line, "{table}");
    }
    let outcome = of(&[
        ("a.policy", "srt 1\ndefault read deny\nlet t = lines(\"t\")\ndeny read $t\nallow read / except $t\n"),
        ("t", "/x\n~/y\n"),
    ]);
    assert_eq!(outcome.rules(), ["deny read /x, $HOME/y", "allow read / except /x, $HOME/y"]);
}

#[test]
fn denied_addresses_are_denied_in_every_form_after_the_exception() {
    let outcome = body("deny connect 10.0.0.0/30 except 10.0.0.1\nallow connect 10.0.0.0/30:1");
    let rules = outcome.rules();
    assert!(rules[0].contains("10.0.0.0, 10.0.0.2–10.0.0.3") && rules[0].contains("64:ff9b::a00:2"), "{rules:?}");
    assert!(!rules[0].contains("64:ff9b::a00:1,"), "{rules:?}");
    assert_eq!(rules[1], "allow connect 10.0.0.0–10.0.0.3 : 1 (tcp)");
    assert_eq!(body("allow connect [::ffff:10.0.0.7]:1").rules(), ["allow connect 10.0.0.7 : 1 (tcp)"]);
}

#[test]
fn a_tree_is_written_in_one_way() {
    assert_eq!(
        body("allow read [~/x, ~/x/**, **/y, exact /z/**]").rules(),
        ["allow read $HOME/x", "allow read $HOME/x", "allow read **/y", "allow read exact /z/**",]
    );
}

#[test]
fn too_many_patterns_in_an_exception_are_refused() {
    let list = |count: usize| (0..count).map(|at| format!("/x/*{at}")).collect::<Vec<_>>().join(", ");
    assert_eq!(body(&format!("let t = [{}]\nallow read / except $t", list(64))).codes(), [""; 0]);
    assert_eq!(body(&format!("let t = [{}]\nallow read / except $t", list(65))).codes(), ["pattern-limit"]);
}

#[test]
fn every_embedded_module_resolves() {
    for (name, _) in super::STD {
        let text = format!("srt 1\ndefault read deny\nuse std/{name}\n");
        let outcome = of(&[("a.policy", &text)]);
        // What its text says of itself is `syntax`'s to judge.
        let ours = outcome.diagnostics.iter().filter(|d| super::CODES.contains(&d.code)).count();
        assert!(ours == 0 && outcome.policy.is_some(), "{name}: {}", outcome.said());
    }
}
