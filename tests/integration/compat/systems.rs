//! The ways in which one settings file is known to mean different things on different systems: here each is decided alike on all
//! of them, each text is proved to say so, and where a system cannot hold it, that is the gap that is told.

use super::{policy_and_sources, translated};
use sandbox_runtime::backend::Target;
use sandbox_runtime::backend::bubblewrap::Needs;
use sandbox_runtime::backend::bubblewrap::seccomp::Watch;
use sandbox_runtime::bind::bind;
use sandbox_runtime::check::Nominal;
use sandbox_runtime::compile::artefact::{self, Emit};
use sandbox_runtime::compile::compile;
use sandbox_runtime::diagnostic::{Diagnostic, Level};
use sandbox_runtime::ir::{Access, Policy, decide};
use sandbox_runtime::sets::host::Name;
use sandbox_runtime::sets::path::AbsPath;
use sandbox_runtime::sets::peer::Protocol;
use sandbox_runtime::source::Sources;
use sandbox_runtime::vocabulary::System;
use std::collections::BTreeSet;
use std::fmt::Write as _;
use std::path::Path;

/// One way: a file, and what it means everywhere.
struct Way {
    name: &'static str,
    settings: &'static str,
    /// `allow` or `deny`, a verb, and an object.
    means: &'static [&'static str],
}

const WAYS: &[Way] = &[
    Way {
        name: "a place to write below a denied one",
        settings: r#"{"filesystem":{"allowWrite":["/srv/work","/srv/work/keep/open"],"denyWrite":["/srv/work/keep"]}}"#,
        means: &["allow write /srv/work/a", "deny write /srv/work/keep/a", "deny write /srv/work/keep/open/a"],
    },
    Way {
        name: "a denial below nothing that is allowed",
        settings: r#"{"filesystem":{"denyWrite":["/srv/other/a"],"allowWrite":["/srv/work"]}}"#,
        means: &["deny write /srv/other/a", "deny write /srv/other/b", "allow read /srv/other/a"],
    },
    Way {
        name: "stars in what may be written",
        settings: r#"{"filesystem":{"allowWrite":["/srv/work/**/*.snap"]}}"#,
        means: &["allow write /srv/work/a/b.snap", "deny write /srv/work/a/b.txt"],
    },
    Way {
        name: "stars in what may not be read, and files that come later",
        settings: r#"{"filesystem":{"denyRead":["/srv/work/**/.env"],"allowWrite":["/srv/work"]}}"#,
        means: &["deny read /srv/work/later/.env", "deny write /srv/work/later/.env", "allow read /srv/work/later/env"],
    },
    Way {
        name: "two stars at the root",
        settings: r#"{"filesystem":{"denyRead":["/**/secrets"],"allowWrite":["/srv/work"]}}"#,
        means: &["deny read /srv/work/a/secrets/key", "deny read /opt/secrets", "allow read /opt/secret"],
    },
    Way {
        name: "a place to write in what may not be read",
        settings: r#"{"filesystem":{"denyRead":["/srv/work/hidden"],"allowWrite":["/srv/work"]}}"#,
        means: &["deny write /srv/work/hidden/a", "deny read /srv/work/hidden/a", "deny exec /srv/work/hidden/a"],
    },
    Way {
        name: "what a denied file looks like: it is there, and closed",
        settings: r#"{"filesystem":{"denyRead":["/srv/work/key"],"allowWrite":["/srv/work"]}}"#,
        means: &["deny read /srv/work/key", "allow read /srv/work"],
    },
    Way {
        name: "a unix socket by its path",
        settings: r#"{"network":{"allowUnixSockets":["/srv/work/run/agent.sock"]}}"#,
        means: &["allow socket /srv/work/run/agent.sock", "deny socket /srv/work/run/other.sock"],
    },
    Way {
        name: "servers of the command's own",
        settings: r#"{"network":{"allowLocalBinding":true}}"#,
        means: &["deny connect example.com 203.0.113.7 443"],
    },
    Way {
        name: "masks: a denied name that is not there leaves nothing behind",
        settings: r#"{"filesystem":{"allowWrite":["/srv/work"],"denyWrite":["/srv/work/absent/file"]}}"#,
        means: &["deny write /srv/work/absent/file", "allow write /srv/work/absent/other"],
    },
    Way {
        name: "node_modules, which is a directory like any other",
        settings: r#"{"filesystem":{"denyRead":["/srv/work/**/.npmrc"],"allowWrite":["/srv/work"]}}"#,
        means: &["deny read /srv/work/node_modules/a/node_modules/b/.npmrc", "allow read /srv/work/node_modules/a/b"],
    },
    Way {
        name: "a place to write that is not there yet",
        settings: r#"{"filesystem":{"allowWrite":["/srv/work/out"]}}"#,
        means: &["allow write /srv/work/out", "allow write /srv/work/out/a", "deny write /srv/work/outer"],
    },
    Way {
        name: "the host's loopback",
        settings: r#"{"network":{"allowedDomains":["localhost:3000"]}}"#,
        means: &["allow connect localhost 127.0.0.1 3000", "deny connect example.com 127.0.0.1 3000"],
    },
    Way {
        name: "names: who may ask for one may connect to it",
        settings: r#"{"network":{"allowedDomains":["api.example.com"],"deniedDomains":["evil.example.com"]}}"#,
        means: &[
            "allow connect api.example.com 203.0.113.7 443",
            "deny connect evil.example.com 203.0.113.7 443",
            "deny connect example.org 203.0.113.7 443",
        ],
    },
    Way {
        name: "an address that an allowed name leads to",
        settings: r#"{"network":{"allowedDomains":["*.example.com"]}}"#,
        means: &["allow connect a.example.com 203.0.113.7 443", "deny connect a.example.com 169.254.169.254 80"],
    },
];

fn access(words: &[&str]) -> Access {
    let path = |text: &str| AbsPath::parse(text).unwrap();
    match *words {
        ["read", object] => Access::Read(path(object)),
        ["write", object] => Access::Write(path(object)),
        ["exec", object] => Access::Exec(path(object)),
        ["socket", object] => Access::Socket(path(object)),
        ["connect", name, address, port] => Access::Connect {
            name: Some(Name::parse(name).unwrap()),
            address: address.parse().unwrap(),
            port: port.parse().unwrap(),
            protocol: Protocol::Tcp,
        },
        _ => panic!("{words:?}"),
    }
}

/// The gaps of a policy on its system, each text proved to be it but for them; or the codes of what cannot be enforced there.
fn gaps(policy: &Policy, sources: &Sources) -> BTreeSet<String> {
    let errors = |said: &[Diagnostic]| -> BTreeSet<String> {
        let errors = said.iter().filter(|said| said.level == Level::Error);
        errors.map(|said| format!("refused: {}", said.code.name)).collect()
    };
    let built = match policy.system {
        System::Macos => artefact::seatbelt(policy, sources, &[Emit::Sbpl]).unwrap(),
        System::Windows => artefact::wfp(policy, sources, &[Emit::Wfp, Emit::Acl]).unwrap(),
        System::Linux => {
            let bound = bind(policy.clone(), &Nominal::of(policy)).0.unwrap();
            let compiled = compile(&bound, &Needs { performs: Watch::Writes, ..Needs::default() });
            let mut found = errors(&compiled.diagnostics);
            let kinds = Target::Bubblewrap.gaps();
            let direction = |code| kinds.iter().find(|kind| kind.code == code).unwrap().direction;
            found.extend(compiled.gaps.iter().map(|gap| format!("{:?}: {}", direction(gap.code), gap.code.name)));
            return found;
        }
    };
    let mut found = errors(&built.diagnostics);
    found.extend(built.gaps.iter().map(|gap| format!("{:?}: {}", gap.direction, gap.code)));
    found
}

#[test]
fn one_settings_file_means_the_same_on_every_system_or_says_what_does_not() {
    assert_eq!(WAYS.len(), 15);
    let mut table = String::new();
    for way in WAYS {
        let translation = translated(way.settings);
        assert!(!translation.refused(), "{}: {:?}", way.name, translation.said);
        let _ = writeln!(table, "{}", way.name);
        for system in System::ALL {
            let (policy, sources) = policy_and_sources(translation.texts("settings.json"), *system);
            for line in way.means {
                let words: Vec<&str> = line.split(' ').collect();
                let allowed = decide(&policy, &access(&words[1..])).allowed;
                assert_eq!(allowed, words[0] == "allow", "{} on {system}: {line}", way.name);
            }
            let gaps = gaps(&policy, &sources);
            let gaps = gaps.iter().map(|gap| gap.to_lowercase()).collect::<Vec<_>>().join(", ");
            let _ = writeln!(table, "    {system}: {}", if gaps.is_empty() { "as written" } else { &gaps });
        }
    }
    let mut settings = insta::Settings::clone_current();
    settings.set_snapshot_path(Path::new(env!("CARGO_MANIFEST_DIR")).join("snapshots/compat"));
    settings.set_prepend_module_to_snapshot(false);
    settings.set_omit_expression(true);
    settings.bind(|| insta::assert_snapshot!("systems", table));
}
