//! `srt draft`: the drafted policy allows each thing that it is for, and nothing that is forbidden or secret; what it cannot
//! allow is told with why.

use super::support::{Output, Scene, output};
use proptest::prelude::*;
use proptest::test_runner::{Config, TestRunner};
use sandbox_runtime::draft::{Ground, Refusal, Wish, draft};
use sandbox_runtime::ir::{Access, Policy, Rule, decide};
use sandbox_runtime::resolve::{Files, Options, Text, resolve};
use sandbox_runtime::sets::path::AbsPath;
use sandbox_runtime::source::Sources;
use sandbox_runtime::vocabulary::{Effect, System, Verb};
use serde_json::{Value, json};
use std::cell::Cell;
use std::collections::BTreeSet;
use std::fs;
use std::io;

struct NoFiles;

impl Files for NoFiles {
    fn read(&self, _: &str) -> io::Result<Text> {
        Err(io::ErrorKind::NotFound.into())
    }
}

fn policy(text: &str) -> Option<Policy> {
    let mut sources = Sources::default();
    let given = sources.add("test", text);
    let options = Options { system: System::Linux, defines: std::collections::BTreeMap::default() };
    let (policy, said) = resolve(&[given], &mut sources, &NoFiles, &options);
    policy.filter(|_| !sandbox_runtime::diagnostic::any_error(&said))
}

fn rules(statements: &str) -> Option<Vec<Rule>> {
    Some(policy(&format!("srt 1\ndefault read allow\n{statements}\n"))?.rules)
}

const NAMES: [&str; 5] = ["a", "b", "t1", "t2", "t9"];

/// Every path of up to three names.
fn universe() -> Vec<AbsPath> {
    let mut level = vec![AbsPath::root()];
    let mut all = level.clone();
    for _ in 0..3 {
        level = level.iter().flat_map(|path| NAMES.map(|name| path.join(name))).collect();
        all.extend(level.iter().cloned());
    }
    all
}

fn segment() -> impl Strategy<Value = String> {
    prop_oneof![
        6 => prop::sample::select(NAMES.to_vec()).prop_map(str::to_owned),
        1 => Just("*".to_owned()),
        1 => Just("t*".to_owned()),
    ]
}

fn target() -> impl Strategy<Value = String> {
    let reach = prop::sample::select(vec!["", "", "exact ", "below "]);
    (reach, any::<bool>(), prop::collection::vec(segment(), 1..4))
        .prop_map(|(reach, deep, segments)| format!("{reach}{}/{}", if deep { "/**" } else { "" }, segments.join("/")))
}

/// Rules, each of them one line.
fn lines(effects: &'static [&'static str], most: usize) -> impl Strategy<Value = Vec<String>> {
    let verbs = prop::sample::select(vec!["read", "write", "read, write"]);
    let line = (prop::sample::select(effects), verbs, target());
    prop::collection::vec(line.prop_map(|(effect, verb, target)| format!("{effect} {verb} {target}")), 0..most)
}

fn asked() -> impl Strategy<Value = Vec<(bool, Vec<&'static str>)>> {
    let name = prop::sample::select(NAMES.to_vec());
    prop::collection::vec((any::<bool>(), prop::collection::vec(name, 1..4)), 1..10)
}

/// The accesses by which the policy is tried.
fn tried() -> Vec<Access> {
    universe().into_iter().flat_map(|path| [Access::Read(path.clone()), Access::Write(path)]).collect()
}

#[test]
fn a_draft_allows_what_it_is_for_and_nothing_forbidden_or_secret() {
    let (proposed, general, secret, forbidden) = (Cell::new(0), Cell::new(0), Cell::new(0), Cell::new(0));
    let tried = tried();
    let case = (lines(&["allow", "deny", "deny", "forbid"], 6), lines(&["deny"], 3), asked(), any::<bool>());
    let mut runner = TestRunner::new(Config { failure_persistence: None, ..Config::default() });
    let ran = runner.run(&case, |(lines, secrets, asked, included)| {
        let mut text = format!("srt 1\ndefault read deny\n{}\n", lines.join("\n"));
        if included {
            text.push_str(&format!("{}\n", secrets.join("\n")));
        }
        let before = policy(&text).unwrap();
        let secrets: Vec<Rule> = rules(&secrets.join("\n")).unwrap();
        let secrets: Vec<Rule> = secrets.into_iter().filter(|rule| rule.verb == Verb::Read).collect();
        let wishes: Vec<Wish> = asked
            .iter()
            .map(|(writes, names)| {
                let path = names.iter().fold(AbsPath::root(), |path, name| path.join(name));
                let access = if *writes { Access::Write(path) } else { Access::Read(path) };
                Wish { accesses: vec![access], without_port: false }
            })
            .collect();
        let places = [("", AbsPath::root())];
        let ground = Ground {
            policy: &before,
            secrets: &secrets,
            places: &places,
            is_directory: &|_| false,
            general: true,
            read: &|statement| rules(statement),
        };
        let drafted = draft(&ground, &wishes);
        let mut after = before.clone();
        after.rules.extend(drafted.proposals.iter().flat_map(|proposal| proposal.rules.clone()));
        // Each wish has an answer.
        let mut answered: Vec<usize> = drafted.proposals.iter().flat_map(|it| it.wishes.clone()).collect();
        answered.extend(drafted.refused.iter().map(|(number, _)| *number));
        answered.extend(&drafted.allowed);
        let distinct: BTreeSet<usize> = answered.iter().copied().collect();
        prop_assert_eq!(distinct, (0..wishes.len()).collect::<BTreeSet<_>>());
        prop_assert_eq!(answered.len(), wishes.len());
        for number in drafted.proposals.iter().flat_map(|it| &it.wishes).chain(&drafted.allowed) {
            prop_assert!(decide(&after, &wishes[*number].accesses[0]).allowed, "{} {:?}", text, drafted);
        }
        let holds = |rule: &Rule, access: &Access| match (&rule.subject, access) {
            (sandbox_runtime::ir::Subject::Paths(set), Access::Read(path) | Access::Write(path)) => set.contains(path),
            _ => false,
        };
        for access in &tried {
            let verb = access.words().0;
            let forbids = |rule: &&Rule| {
                rule.effect == Effect::Forbid && (rule.verb == verb || rule.verb == Verb::Read) && holds(rule, access)
            };
            let allowed = decide(&after, access).allowed;
            prop_assert!(
                !(allowed && before.rules.iter().any(|rule| forbids(&rule))),
                "{} {:?} {}",
                text,
                drafted,
                access
            );
            let kept = secrets.iter().any(|rule| holds(rule, access)) && !decide(&before, access).allowed;
            prop_assert!(!(allowed && kept), "{} {:?} {}", text, drafted, access);
        }
        proposed.set(proposed.get() + drafted.proposals.len());
        general.set(general.get() + drafted.proposals.iter().filter(|it| it.general.is_some()).count());
        for (_, refusal) in &drafted.refused {
            match refusal {
                Refusal::Secret(_) => secret.set(secret.get() + 1),
                Refusal::Forbidden(_) => forbidden.set(forbidden.get() + 1),
                _ => {}
            }
        }
        Ok(())
    });
    ran.unwrap();
    for (what, count) in [("proposals", proposed), ("general", general), ("secret", secret), ("forbidden", forbidden)] {
        assert!(count.get() >= 20, "{what}: only {}", count.get());
    }
}

const POLICY: &str = "\
# An agent.
srt 1

use std/system
use std/secrets
use std/shell-config

default read deny

allow read, write $WORKSPACE
# lint: allow(later-names) it is there before any command is started
deny write $WORKSPACE/deploy because \"releases are made by people\"
forbid write [$WORKSPACE/kept, $WORKSPACE/agent.policy]
allow connect api.example.com

expect deny read ~/.ssh
";

fn refused(operation: &str, object: &str) -> Value {
    let mut event = json!({
        "type": "violation", "timestamp": "2026-01-02T03:04:05.006Z", "pid": 7, "comm": "make",
        "operation": operation, "outcome": "predicted", "why": "default",
    });
    match object.rsplit_once(':') {
        Some((host, port)) => {
            event["host"] = json!(host);
            event["port"] = port.parse::<u16>().map_or(Value::Null, |port| json!(port));
        }
        None => event["path"] = json!(object),
    }
    event
}

fn drafted(objects: &[(&str, &str)]) -> (Scene, Output) {
    let scene = Scene::new().folder("work/deploy").folder("work/kept").folder("logs").folder("data/many");
    let home = scene.home().display().to_string();
    let line = |(operation, object): &(&str, &str)| refused(operation, &object.replace('~', &home)).to_string() + "\n";
    let text: String = objects.iter().map(line).collect();
    let scene = scene.file("events", &text).file("work/agent.policy", POLICY);
    let output = output(&mut scene.srt(["draft", "../events", "--policy", "agent.policy"]));
    (scene, output)
}

/// The lines that a patch adds, its comments apart.
fn added(patch: &str) -> Vec<&str> {
    patch.lines().filter_map(|line| line.strip_prefix('+')).filter(|line| !line.starts_with(['+', '#'])).collect()
}

#[test]
fn a_patch_has_the_narrowest_statements() {
    let (scene, said) = drafted(&[
        ("write", "~/work/deploy/run"),
        ("write", "~/work/deploy/run"),
        ("read", "~/data/x"),
        ("read", "~/data"),
        ("read", "~/data/many/a"),
        ("read", "~/data/many/b"),
        ("read", "~/data/many/c"),
        ("read", "~/data/many/d"),
        ("read", "~/logs/build-1.log"),
        ("read", "~/logs/build-12.log"),
        ("connect", "registry.example.org:443"),
        ("connect", "registry.example.org:80"),
        ("connect", "db.example.org:5432"),
        ("connect", "api.example.com:443"),
    ]);
    let patch = said.ok();
    let expected = [
        "allow read ~/data/many",
        "allow read ~/logs/build-*.log",
        "allow read exact ~/data",
        "allow read ~/data/x",
        "allow write $WORKSPACE/deploy/run",
        "allow connect db.example.org:5432",
        "allow connect registry.example.org:{80,443}",
    ];
    assert_eq!(added(patch), expected, "{said:?}");
    let reason = "+# drafted: write 2 ×, by make; denied by agent.policy:12 (releases are made by people)\n\
                  +allow write $WORKSPACE/deploy/run\n";
    assert!(patch.contains(reason), "{patch}");
    assert!(
        said.stderr.starts_with("srt: 7 rules for 12 of 13 kinds of refusals\n1 kind allowed already\n"),
        "{said:?}"
    );
    assert!(said.stderr.contains("newly permitted:\n  read ~/data/many\n"), "{said:?}");
    // The patch applies, its policy is as it is laid out, and there is nothing left to draft.
    let mut patched = std::process::Command::new("patch");
    patched.args(["-p0", "--quiet"]).current_dir(scene.workspace()).stdin(std::process::Stdio::piped());
    let mut child = patched.spawn().unwrap();
    io::Write::write_all(child.stdin.as_mut().unwrap(), said.stdout.as_bytes()).unwrap();
    assert!(child.wait().unwrap().success());
    output(&mut scene.srt(["fmt", "--check", "agent.policy"])).ok();
    let again = output(&mut scene.srt(["draft", "../events", "--policy", "agent.policy"]));
    assert_eq!(again.ok(), "");
    assert_eq!(again.stderr, "srt: nothing is drafted for 13 kinds of refusals\n13 kinds allowed already\n");
}

/// Several names of one domain are that domain, unless it is nobody's own, a rule denies one of them, or their ports differ.
#[test]
fn names_of_one_domain_are_drafted_together() {
    let names = |domain: &str, port: &str| ["a", "b", "c"].map(|name| format!("{name}.{domain}:{port}"));
    let drafted = |hosts: &[[String; 3]]| {
        let objects: Vec<_> = hosts.iter().flatten().map(|host| ("connect", host.as_str())).collect();
        let (_, said) = drafted(&objects);
        let lines: Vec<String> = added(said.ok()).into_iter().map(str::to_owned).collect();
        assert!(said.stderr.contains(&format!(" for {0} of {0} kinds", objects.len())), "{said:?}");
        (lines, said.stdout)
    };
    let (lines, patch) = drafted(&[names("example.org", "443"), names("deep.example.org", "22")]);
    assert_eq!(lines, ["allow connect *.deep.example.org:22", "allow connect *.example.org:443"]);
    let reason = "connect 3 × in 3 places, by make; all names below the domain, as several of them were asked for";
    assert!(patch.contains(reason), "{patch}");
    // Strangers have names there, or all of it is a top-level domain.
    for domain in ["co.uk", "github.io", "s3.amazonaws.com", "org"] {
        let (lines, _) = drafted(&[names(domain, "443")]);
        assert_eq!(lines, names(domain, "443").map(|name| format!("allow connect {name}")), "{domain}");
    }
    // Not the same is asked for, or too little.
    let mixed = ["a.example.org:443", "b.example.org:443", "c.example.org:80"].map(str::to_owned);
    assert_eq!(drafted(std::slice::from_ref(&mixed)).0, mixed.map(|name| format!("allow connect {name}")));
}

/// What the policy must be within is not exceeded, and what reaches further than it is drafted narrower.
#[test]
fn nothing_is_drafted_beyond_what_the_policy_must_be_within() {
    let (scene, _) = drafted(&[
        ("read", "~/data/many/a"),
        ("read", "~/data/many/b"),
        ("read", "~/data/many/c"),
        ("read", "~/data/many/d"),
        ("read", "~/logs/x"),
        ("connect", "a.example.org:443"),
        ("connect", "b.example.org:443"),
        ("connect", "c.example.org:443"),
        ("connect", "d.example.org:443"),
    ]);
    let ceiling = "srt 1\nuse std/system\ndefault read deny\nallow read, write $WORKSPACE\n\
                   allow read [~/data/many/a, ~/data/many/b, ~/data/many/c]\n\
                   allow connect [api.example.com, a.example.org, b.example.org, c.example.org]\n";
    let scene = scene.file("ceiling.policy", ceiling);
    let draft =
        |more: &[&str]| output(&mut scene.srt([&["draft", "../events", "--policy", "agent.policy"], more].concat()));
    let whole = ["allow read ~/data/many", "allow read ~/logs/x", "allow connect *.example.org:443"];
    assert_eq!(added(draft(&[]).ok()), whole);
    let said = draft(&["--within", "../ceiling.policy"]);
    let expected = [
        "allow read ~/data/many/a",
        "allow read ~/data/many/b",
        "allow read ~/data/many/c",
        "allow connect a.example.org:443",
        "allow connect b.example.org:443",
        "allow connect c.example.org:443",
    ];
    assert_eq!(added(said.ok()), expected, "{said:?}");
    for object in ["read ~/data/many/d", "read ~/logs/x", "connect d.example.org:443"] {
        let object = object.replace('~', &scene.home().display().to_string());
        let line = said.stderr.lines().find(|line| line.starts_with(&format!("not drafted: {object}: ")));
        let why = "is left out: `within`: this permits what `";
        assert!(line.is_some_and(|line| line.contains(why)), "{object}: {said:?}");
    }
    assert!(said.stderr.starts_with("srt: 6 rules for 6 of 9 kinds of refusals\n"), "{said:?}");
}

#[test]
fn what_is_not_drafted_is_told_with_why() {
    let (_, said) = drafted(&[
        ("read", "~/.ssh/id_ed25519"),
        ("read", "~/work/.env"),
        ("write", "~/work/kept/a"),
        ("write", "~/.bashrc"),
        ("write", "/etc/cron.d/x"),
        ("socket", "/run/docker.sock"),
        ("connect", "169.254.169.254:80"),
        ("stat", "~/x"),
    ]);
    assert_eq!(said.ok(), "", "{said:?}");
    let why: Vec<_> = said.stderr.lines().skip(1).map(|line| line.splitn(3, ": ").nth(2).unwrap()).collect();
    for (line, start) in why.iter().zip([
        "std/secrets:",
        "it is a secret: std/secrets:",
        "agent.policy:13 says `forbid write $WORKSPACE/kept`",
        "no narrower statement opens what denies it, or one would open a secret",
        "`allow read, write /etc/cron.d/x`, `deny exec /etc/cron.d/x` is left out: `start-up-file`",
        "`allow socket /run/docker.sock` is left out: `control-socket`",
        "169.254.169.254 is the address of a metadata service",
        "no rule could be about it",
    ]) {
        assert!(line.starts_with(start), "{line}\n{start}");
    }
    assert_eq!(why.len(), 8);
}

/// The words of an event go into a policy as comments: none of them ends the line, or accepts a finding.
#[test]
fn a_strangers_words_stay_in_the_comment() {
    let (scene, _) = drafted(&[]);
    let mut event = refused("read", &format!("{}/x", scene.home().display()));
    event["comm"] = json!("x\nallow read /\n# lint: allow(broad-grant) y\u{a0}\u{202e}");
    fs::write(scene.home().join("events"), format!("{event}\n")).unwrap();
    let said = output(&mut scene.srt(["draft", "../events", "--policy", "agent.policy"]));
    assert_eq!(added(said.ok()), ["allow read ~/x"]);
    let hidden: Vec<char> = said.stdout.chars().filter(|c| sandbox_runtime::source::hides(*c)).collect();
    assert!(hidden.is_empty(), "{hidden:?}");
    let comments = said.stdout.lines().filter(|line| line.starts_with("+#")).count();
    assert_eq!(comments, 1, "{}", said.stdout);
}

#[test]
fn a_policy_with_errors_gets_no_draft() {
    let (scene, _) = drafted(&[("read", "~/x")]);
    fs::write(scene.workspace().join("agent.policy"), "srt 1\n").unwrap();
    assert_eq!(output(&mut scene.srt(["draft", "../events", "--policy", "agent.policy"])).code, 1);
    assert_eq!(output(&mut scene.srt(["draft", "../none", "--policy", "agent.policy"])).code, 2);
    assert_eq!(output(&mut scene.srt(["draft", "../events", "--policy", "none.policy"])).code, 2);
}
