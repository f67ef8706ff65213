//! Generated settings, decided by what is imported and by a small model of the documented precedence.
//!
//! The model knows nothing of the language: it holds a path or a host to each entry by itself, and compares entries by what
//! they hold of a small world.

// It is const; for Windows the macro makes something else of it, which the lint takes for the initializer.
#![allow(clippy::missing_const_for_thread_local)]

use super::{alone, policy, translated};
use proptest::prelude::*;
use sandbox_runtime::compat::claude;
use sandbox_runtime::ir::{Access, decide, special};
use sandbox_runtime::sets::{host::Name, path::AbsPath, peer::Protocol};
use sandbox_runtime::vocabulary::System;
use std::cell::RefCell;
use std::collections::BTreeMap;
use std::sync::LazyLock;

const NAMES: [&str; 4] = ["a", "b", ".env", ".vscode"];

/// Every path of a world: up to so many segments below `/srv`, of the names and of two that no entry has.
fn world(depth: usize) -> Vec<Vec<&'static str>> {
    let mut world = vec![vec!["srv"]];
    let mut last = world.clone();
    for _ in 0..depth {
        let longer = |path: &Vec<&'static str>| -> Vec<Vec<&'static str>> {
            NAMES.iter().chain(["other", "another"].iter()).map(|name| [path.as_slice(), &[*name]].concat()).collect()
        };
        last = last.iter().flat_map(longer).collect();
        world.extend(last.clone());
    }
    world
}

/// One segment deeper than any entry, so that what an entry holds and another does not is in it.
static DEEP: LazyLock<Vec<Vec<&'static str>>> = LazyLock::new(|| world(4));

thread_local! {
    static KNOWN: RefCell<BTreeMap<(String, String), bool>> = const { RefCell::new(BTreeMap::new()) };
}

/// Whether one entry holds nothing that the other does not.
fn inside(one: &str, other: &str) -> bool {
    let key = (one.to_owned(), other.to_owned());
    if let Some(known) = KNOWN.with_borrow(|known| known.get(&key).copied()) {
        return known;
    }
    let inside = DEEP.iter().all(|path| !holds(one, path) || holds(other, path));
    KNOWN.with_borrow_mut(|known| known.insert(key, inside));
    inside
}

/// Whether an entry holds a path: it, or a directory above it, is what the pattern says.
fn holds(entry: &str, path: &[&str]) -> bool {
    let parts: Vec<&str> = entry.split('/').filter(|part| !part.is_empty()).collect();
    // `X/**` is all of X.
    let parts = parts.strip_suffix(&["**"]).unwrap_or(&parts);
    (1..=path.len()).any(|length| matches(parts, &path[..length]))
}

fn matches(parts: &[&str], path: &[&str]) -> bool {
    match (parts.split_first(), path.split_first()) {
        (None, None) => true,
        (Some((&"**", rest)), _) => {
            matches(rest, path) || path.split_first().is_some_and(|(_, below)| matches(parts, below))
        }
        (Some((part, rest)), Some((name, below))) => {
            // A `*` at the end of a part stands for any characters.
            let one = part.strip_suffix('*').map_or(part == name, |start| name.starts_with(start));
            one && matches(rest, below)
        }
        _ => false,
    }
}

#[derive(Debug, Clone)]
struct Files {
    deny_read: Vec<String>,
    allow_read: Vec<String>,
    allow_write: Vec<String>,
    deny_write: Vec<String>,
}

impl Files {
    /// `allowRead` beats a `denyRead` that contains it or is the same; so does an `allowWrite` below it. Nothing opens what
    /// ends in `/**`.
    fn reads(&self, path: &[&str]) -> bool {
        self.deny_read.iter().filter(|deny| holds(deny, path)).all(|deny| {
            let opened = |allow: &String| holds(allow, path) && inside(allow, deny);
            let strictly = |allow: &String| opened(allow) && !inside(deny, allow);
            !deny.ends_with("/**") && (self.allow_read.iter().any(opened) || self.allow_write.iter().any(strictly))
        })
    }

    /// `denyWrite` beats every `allowWrite`, and so do the names that are always closed.
    fn writes(&self, path: &[&str]) -> bool {
        self.allow_write.iter().any(|allow| holds(allow, path))
            && !self.deny_write.iter().any(|deny| holds(deny, path))
            && !path.contains(&".vscode")
            && self.reads(path)
    }

    fn json(&self) -> String {
        serde_json::json!({ "filesystem": {
            "denyRead": self.deny_read,
            "allowRead": self.allow_read,
            "allowWrite": self.allow_write,
            "denyWrite": self.deny_write,
        } })
        .to_string()
    }
}

fn entry() -> impl Strategy<Value = String> {
    // What a `.vscode` is asked for by name is refused, and so is no part of this.
    let name = prop::sample::select(vec!["a", "b", ".env"]);
    let end = prop::sample::select(vec!["", "", "", "/*", "/a*", "/**", "/**/.env", "/**/a", "/*/b"]);
    (prop::collection::vec(name, 0..3), end).prop_map(|(names, end)| {
        // Three segments at most: the deep world is one deeper.
        let most = 3 - end.matches('/').count();
        let names: String = names.iter().take(most).flat_map(|name| ["/", *name]).collect();
        format!("/srv{names}{end}")
    })
}

fn files() -> impl Strategy<Value = Files> {
    let list = |most| prop::collection::vec(entry(), 0..=most);
    (list(3), list(3), list(2), list(2)).prop_map(|(deny_read, allow_read, allow_write, deny_write)| Files {
        deny_read,
        allow_read,
        allow_write,
        deny_write,
    })
}

/// Entries that hold the same and are written otherwise: ours keeps the denial, the documents do not speak of it.
fn same_in_other_words(files: &Files) -> bool {
    files.deny_read.iter().any(|deny| {
        files.allow_read.iter().any(|allow| {
            deny.trim_end_matches("/**") != allow.trim_end_matches("/**") && inside(allow, deny) && inside(deny, allow)
        })
    })
}

proptest! {
    #[test]
    fn files_are_decided_as_the_documents_say(files in files()) {
        let world = world(3);
        prop_assume!(!same_in_other_words(&files));
        let translation = translated(&files.json());
        prop_assert!(!translation.refused(), "{:#?}", translation.said);
        // As a run takes the settings, and as `srt import` writes them down.
        for parts in [translation.texts("s.json"), alone(translation.policy("s.json"))] {
            let policy = policy(parts, System::Linux);
            for path in &world {
                let written = format!("/{}", path.join("/"));
                let place = AbsPath::parse(&written).unwrap();
                let (read, write) = (Access::Read(place.clone()), Access::Write(place));
                prop_assert_eq!(decide(&policy, &read).allowed, files.reads(path), "read {}", &written);
                prop_assert_eq!(decide(&policy, &write).allowed, files.writes(path), "write {}", &written);
            }
        }
    }

    /// Claude Code's own: a deny beats an ask, which beats an allow; here nobody is asked.
    #[test]
    fn claude_code_is_decided_as_its_documents_say(rules in claude()) {
        let translation = claude::translate(&rules.json());
        prop_assert!(!translation.refused(), "{:#?}", translation.said);
        let policy = policy(alone(translation.policy("s.json")), System::Linux);
        for path in &world(3) {
            let written = format!("/{}", path.join("/"));
            let place = AbsPath::parse(&written).unwrap();
            let (read, write) = (Access::Read(place.clone()), Access::Write(place));
            prop_assert_eq!(decide(&policy, &read).allowed, rules.reads(path), "read {}", &written);
            prop_assert_eq!(decide(&policy, &write).allowed, rules.writes(path), "write {}", &written);
        }
    }

    #[test]
    fn hosts_are_decided_as_the_documents_say(
        allowed in prop::collection::vec(host(), 0..4),
        denied in prop::collection::vec(prop_oneof![4 => host(), 1 => Just("*".to_owned()), 1 => Just("*:22".to_owned())], 0..3),
    ) {
        let json = serde_json::json!({ "network": { "allowedDomains": allowed, "deniedDomains": denied } }).to_string();
        let translation = translated(&json);
        prop_assert!(!translation.refused(), "{:#?}", translation.said);
        let policy = policy(translation.texts("s.json"), System::Linux);
        for name in ["x.test", "a.x.test", "b.a.x.test", "ax.test", "y.test"] {
            for port in [22_u16, 80, 443, 8443] {
                let reached = |entry: &String| {
                    let (pattern, only) = entry.rsplit_once(':').map_or((entry.as_str(), None), |(host, port)| (host, Some(port)));
                    let below = pattern.strip_prefix('*').is_some_and(|end| name.ends_with(end));
                    (pattern == name || below) && only.is_none_or(|only| only == port.to_string())
                };
                let expected = allowed.iter().any(reached) && !denied.iter().any(reached);
                let access = Access::Connect {
                    name: Some(Name::parse(name).unwrap()),
                    address: special::NOMINAL,
                    port,
                    protocol: Protocol::Tcp,
                };
                prop_assert_eq!(decide(&policy, &access).allowed, expected, "{}:{} in {}", name, port, json.clone());
            }
        }
    }
}

/// Permission rules: lists of tools, each with a path, and the directories that are opened besides.
#[derive(Debug, Clone)]
struct Rules {
    allow: Vec<(&'static str, String)>,
    ask: Vec<(&'static str, String)>,
    deny: Vec<(&'static str, String)>,
    directories: Vec<String>,
}

impl Rules {
    /// Whether a rule that closes, an ask or a deny, is of one of these tools and holds a path.
    fn closes(&self, tools: &[&str], path: &[&str]) -> bool {
        self.ask.iter().chain(&self.deny).any(|(tool, entry)| tools.contains(tool) && holds(entry, path))
    }

    /// What closes reading closes searching as well, and the reverse.
    fn reads(&self, path: &[&str]) -> bool {
        !self.closes(&["Read", "Grep", "Glob"], path)
    }

    /// A rule about edits is one about every tool that edits. What may not be read is not edited.
    fn writes(&self, path: &[&str]) -> bool {
        let edits = ["Edit", "Write", "MultiEdit"];
        let edited = self.allow.iter().any(|(tool, entry)| edits.contains(tool) && holds(entry, path));
        (edited || self.directories.iter().any(|entry| holds(entry, path)))
            && !self.closes(&edits, path)
            && !path.contains(&".vscode")
            && self.reads(path)
    }

    fn json(&self) -> String {
        let list = |rules: &[(&str, String)]| -> Vec<String> {
            // `//` begins an absolute path there.
            rules.iter().map(|(tool, entry)| format!("{tool}(/{entry})")).collect()
        };
        serde_json::json!({ "permissions": {
            "allow": list(&self.allow),
            "ask": list(&self.ask),
            "deny": list(&self.deny),
            "additionalDirectories": self.directories,
            "defaultMode": "acceptEdits",
        } })
        .to_string()
    }
}

fn claude() -> impl Strategy<Value = Rules> {
    let rule = || {
        let tool = prop::sample::select(vec!["Read", "Edit", "Edit", "Write", "MultiEdit", "Grep", "Glob"]);
        (tool, entry())
    };
    let allow = prop::collection::vec(rule(), 0..=3);
    let closing = || prop::collection::vec(rule(), 0..=2);
    (allow, closing(), closing(), prop::collection::vec(entry(), 0..=1))
        .prop_map(|(allow, ask, deny, directories)| Rules { allow, ask, deny, directories })
}

fn host() -> impl Strategy<Value = String> {
    let name = prop::sample::select(vec!["x.test", "a.x.test", "*.x.test", "*.a.x.test", "y.test"]);
    let port = prop::sample::select(vec!["", "", ":22", ":443", ":8443"]);
    (name, port).prop_map(|(name, port)| format!("{name}{port}"))
}

/// What is exported opens nothing that the policy closes, but where it is said.
#[test]
fn what_is_exported_opens_nothing_in_silence() {
    let text = "srt 1\nuse std/system\nuse std/secrets\nuse std/shell-config\ndefault read deny\n\
        allow read, write /srv/a\ndeny read /srv/a/b\nallow read /srv/a/b/a\nforbid write /srv/a/.env\n\
        deny write /srv/a/another\nallow read exact /srv/other\nforbid read /srv/a/other\nallow read /srv/a/other/a\n\
        allow connect [x.test:443, *.y.test, 192.0.2.7:5432]\nforbid connect a.y.test\ndeny connect 10.0.0.0/8\n\
        deny env SECRET\nlimit processes 9\nset CI=1\nignore write /srv/cache\n";
    let original = policy(alone(text.to_owned()), System::Linux);
    let (settings, lost) = sandbox_runtime::compat::export::settings(&original);
    let messages: Vec<_> = lost.iter().filter(|lost| lost.opens).map(|lost| lost.message.as_str()).collect();
    assert!(messages.contains(&"there are no limits"), "{messages:?}");
    let told = lost.iter().find(|lost| lost.message == "every refusal is told there");
    assert!(told.is_some_and(|lost| !lost.opens), "{lost:?}");
    let back = translated(&settings.to_string());
    assert!(!back.refused(), "{:#?}", back.said);
    let back = policy(back.texts("s.json"), System::Linux);
    let mut kept = [0, 0];
    for path in world(3) {
        let place = AbsPath::parse(format!("/{}", path.join("/"))).unwrap();
        for (at, access) in [Access::Read(place.clone()), Access::Write(place)].iter().enumerate() {
            let (before, after) = (decide(&original, access).allowed, decide(&back, access).allowed);
            assert!(before || !after, "{access}");
            kept[at] += usize::from(after);
        }
    }
    assert!(kept[0] > 20 && kept[1] > 5, "{kept:?}: nearly all is lost");
    for (name, port) in [("x.test", 443), ("x.test", 80), ("b.y.test", 443), ("a.y.test", 443), ("z.test", 443)] {
        let name = Name::parse(name).unwrap();
        let access = Access::Connect { name: Some(name), address: special::NOMINAL, port, protocol: Protocol::Tcp };
        assert_eq!(decide(&original, &access).allowed, decide(&back, &access).allowed, "{access}");
    }
    assert!(!decide(&back, &Access::Env("SECRET".to_owned())).allowed);
}
