#![allow(clippy::unwrap_used)]
//! What the lints' own tests share: a policy from its text, and what a lint says of it.

use super::granted::{self, Granted};
use crate::analysis::Study;
use crate::bind::{bind, observe};
use crate::diagnostic::{Diagnostic, Style, any_error, render};
use crate::host::nominal;
use crate::ir::{Access, Policy, Rule, decide, special};
use crate::resolve::{Options, resolve, tests::Texts};
use crate::sets::address;
use crate::sets::host::Name;
use crate::sets::path::{AbsPath, Start};
use crate::sets::peer::Protocol;
use crate::source::Sources;
use crate::vocabulary::{System, Verb};
use std::collections::BTreeMap;
use std::fmt::Write as _;

/// A policy away from any machine.
pub(crate) fn symbolic_on(system: System, text: &str) -> Policy {
    let mut sources = Sources::default();
    let given = sources.add("a.policy", text);
    let options = Options { system, defines: BTreeMap::new() };
    let (policy, said) = resolve(&[given], &mut sources, &Texts(&[]), &options);
    assert!(!any_error(&said), "{text}: {said:?}");
    policy.unwrap()
}

/// The same for Linux.
pub(crate) fn symbolic(text: &str) -> Policy {
    symbolic_on(System::Linux, text)
}

/// A policy on the nominal machine, with more lines of its listing.
pub(crate) fn bound_on(listing: &str, text: &str) -> Policy {
    let machine = nominal().with(listing).unwrap();
    let (policy, said) = bind(symbolic(text), &machine);
    assert!(!any_error(&said), "{text}: {said:?}");
    let mut policy = policy.unwrap();
    observe(&mut policy, &machine);
    policy.0
}

/// A policy on the nominal machine.
pub(crate) fn bound(text: &str) -> Policy {
    bound_on("", text)
}

/// What is answered of what a policy grants.
pub(crate) fn asked<R>(policy: &Policy, ask: impl FnOnce(&Granted<'_, '_>) -> R) -> R {
    let study = Study::new(policy);
    ask(&Granted::new(&study))
}

/// The rules of `std/shell-config`.
pub(crate) fn module(system: System) -> Vec<Rule> {
    crate::resolve::std_rules("shell-config", system)
}

/// What some findings say, one a line: the level, the text they are about, the message and the witness. Each witness is an
/// access that the policy permits; of `wildcard-apex` one that it does not.
pub(crate) fn lines(policy: &Policy, text: &str, found: &[Diagnostic]) -> String {
    let mut lines = String::new();
    for diagnostic in found {
        if let Some(witness) = &diagnostic.witness {
            let allowed = diagnostic.code.name != "wildcard-apex";
            assert_eq!(decide(policy, &access(witness)).allowed, allowed, "{text}: `{witness}` is no witness");
        }
        assert!(diagnostic.help.is_some(), "{}: no help", diagnostic.code.name);
        let about = &text[diagnostic.span().unwrap().range()];
        let witness = diagnostic.witness.as_deref().unwrap_or("nothing");
        let level = format!("{:?}", diagnostic.level).to_lowercase();
        let _ = writeln!(lines, "{level} {about}: {} ({witness})", diagnostic.message);
    }
    lines
}

/// An access, from its words.
fn access(words: &str) -> Access {
    let (verb, object) = words.split_once(' ').unwrap();
    let verb = Verb::from_word(verb).unwrap();
    match verb {
        Verb::Connect | Verb::Listen => {
            let (host, rest) = object.rsplit_once(':').unwrap();
            let (port, udp) = rest.split_once('/').unwrap_or((rest, ""));
            let port = port.parse().unwrap();
            let protocol = if udp == "udp" { Protocol::Udp } else { Protocol::Tcp };
            match (address::parse_address(host), verb) {
                (Ok(address), Verb::Listen) => Access::Listen { address, port },
                (Ok(address), _) => Access::Connect { name: None, address, port, protocol },
                (Err(_), _) => Access::Connect {
                    name: Some(Name::parse(host).unwrap()),
                    address: special::NOMINAL,
                    port,
                    protocol,
                },
            }
        }
        Verb::Env => Access::Env(object.to_owned()),
        Verb::Mach => Access::Mach(object.to_owned()),
        verb => granted::access(verb, path(object)).unwrap(),
    }
}

fn path(text: &str) -> AbsPath {
    let Some(rest) = text.strip_prefix('$') else { return AbsPath::parse(text).unwrap() };
    let (name, below) = rest.split_once('/').map_or((rest, ""), |(name, _)| (name, &rest[name.len()..]));
    let below = if below.is_empty() { AbsPath::root() } else { AbsPath::parse(below).unwrap() };
    AbsPath { start: Start::Variable(name.into()), ..below }
}

#[test]
fn a_rule_that_is_a_list_is_shown_with_the_line_of_its_file() {
    let text =
        "srt 1\ndefault read deny\nlet ads = lines(\"ads.txt\")\nallow connect b.example.net\ndeny connect $ads\n";
    let mut sources = Sources::default();
    let given = sources.add("a.policy", text);
    let options = Options { system: System::Linux, defines: BTreeMap::new() };
    let wanted = super::Wanted { errors_alone: false, shell_config: module };
    // A long list is studied by a few of its entries.
    for more in [0, 100] {
        let more: String = (0..more).fold(String::new(), |list, number| list + &format!("x{number}.example.org\n"));
        let list = format!("a.example.net\n# more\nb.example.net\n{more}");
        let files = [("ads.txt", list.as_str())];
        let (policy, _) = resolve(&[given], &mut sources, &Texts(&files), &options);
        let found = super::run(&policy.unwrap(), wanted);
        let reopens = found.iter().find(|said| said.code.name == "reopens").unwrap();
        let labels: Vec<&str> = reopens.labels.iter().map(|label| label.text.as_str()).collect();
        assert_eq!(labels, ["opens a part", "of this (ads.txt:3)"]);
    }
    let text = "srt 1\ndefault read deny\nlet shut = lines(\"shut.txt\")\nallow read $WORKSPACE/b/c\ndeny read $shut\n";
    let given = sources.add("b.policy", text);
    let files = Texts(&[("shut.txt", "$WORKSPACE/a\n\n$WORKSPACE/b\n")]);
    let (policy, _) = resolve(&[given], &mut sources, &files, &options);
    let found = super::run(&policy.unwrap(), wanted);
    let reopens = found.iter().find(|said| said.code.name == "reopens").unwrap();
    assert_eq!(reopens.labels[1].text, "of this (shut.txt:3)");
}

/// What people see: each finding of a policy that has one of each.
#[test]
fn findings_as_they_are_shown() {
    let text = "\
srt 1
default read deny
allow read, write [~, /usr/local, /srv/data]
allow read, write $WORKSPACE
allow read $WORKSPACE/Src
deny  read $WORKSPACE/src
allow connect [*.github.io, 0.0.0.0/0:*, *.example.com, \u{430}pple.example]
allow socket /run/docker.sock
allow read /var/run/x
";
    let mut shown = String::new();
    for system in [System::Linux, System::Macos] {
        let mut sources = Sources::default();
        let given = sources.add("agent.policy", text);
        let options = Options { system, defines: BTreeMap::new() };
        let (policy, _) = resolve(&[given], &mut sources, &Texts(&[]), &options);
        let wanted = super::Wanted { errors_alone: false, shell_config: module };
        let _ = writeln!(shown, "on {system}\n");
        let policy = policy.unwrap();
        for diagnostic in super::by_rule(&policy, &Study::new(&policy), wanted) {
            let _ = writeln!(shown, "{}", render(&diagnostic, &sources, Style { colour: false, width: 100 }));
        }
    }
    let mut settings = insta::Settings::clone_current();
    settings.set_snapshot_path(std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("snapshots/diagnostics"));
    settings.set_prepend_module_to_snapshot(false);
    settings.set_omit_expression(true);
    settings.bind(|| insta::assert_snapshot!("lint", shown));
}
