#![allow(clippy::unwrap_used)]
//! Policies bound to machines that are described in a string.

use super::{bind, link::Links};
use crate::diagnostic::{Diagnostic, Level};
use crate::host::{Host, Listing};
use crate::ir::{Access, BoundPolicy, decide};
use crate::resolve::tests::{of, subject};
use crate::sets::path::AbsPath;
use std::fmt::Write as _;

const HOME: &str = "v HOME=/home/u\nd /home/u\nd /home/u/ws\nv WORKSPACE=/home/u/ws\nd /tmp\n";

struct Bound {
    policy: Option<BoundPolicy>,
    diagnostics: Vec<Diagnostic>,
}

/// Binds `srt 1`, `default read deny` and the text.
fn body(text: &str, listing: &str) -> Bound {
    whole(&format!("srt 1\ndefault read deny\n{text}\n"), listing)
}

fn whole(text: &str, listing: &str) -> Bound {
    let outcome = of(&[("a.policy", text)]);
    let policy = outcome.policy().clone();
    let host = Listing::parse(&format!("{HOME}{listing}")).unwrap();
    let (policy, diagnostics) = bind(policy, &host);
    Bound { policy, diagnostics }
}

fn path(text: &str) -> AbsPath {
    AbsPath::parse(text).unwrap()
}

impl Bound {
    fn codes(&self) -> Vec<&str> {
        self.diagnostics.iter().map(|diagnostic| diagnostic.code.name).collect()
    }

    fn said(&self) -> String {
        self.diagnostics.iter().fold(String::new(), |mut text, d| {
            writeln!(text, "{} {}", d.code.name, d.message).unwrap();
            text
        })
    }

    fn policy(&self) -> &BoundPolicy {
        assert!(self.diagnostics.iter().all(|d| d.level != Level::Error), "{}", self.said());
        self.policy.as_ref().unwrap()
    }

    fn rules(&self) -> Vec<String> {
        self.policy()
            .rules
            .iter()
            .map(|rule| format!("{} {} {}", rule.effect, rule.verb, subject(&rule.subject)))
            .collect()
    }

    fn expansions(&self) -> Vec<String> {
        self.policy().facts.expansions.iter().map(|(rule, place)| format!("{} {place}", rule.0)).collect()
    }

    fn links(&self) -> Vec<String> {
        self.policy().facts.links.iter().map(|link| format!("{} -> {}", link.at, link.to)).collect()
    }

    fn reads(&self, place: &str) -> bool {
        decide(self.policy(), &Access::Read(path(place))).allowed
    }

    fn writes(&self, place: &str) -> bool {
        decide(self.policy(), &Access::Write(path(place))).allowed
    }
}

#[test]
fn variables_become_their_values() {
    let bound = body(
        "allow read [~/x, $WORKSPACE, $CONFIG/y, $env.A/z]\nallow connect $env.REGISTRY\nallow connect $env.DB:5432",
        "v CONFIG=/home/u/.config\nv env.A=/a/\nv env.REGISTRY=Registry.Example\nv env.DB=10.0.0.7",
    );
    assert_eq!(
        bound.rules(),
        [
            "allow read /home/u/x",
            "allow read /home/u/ws",
            "allow read /home/u/.config/y",
            "allow read /a/z",
            "allow connect registry.example : 80, 443 (tcp)",
            "allow connect 10.0.0.7 : 5432 (tcp)",
        ]
    );
    assert_eq!(bound.policy().facts.variables["env.A"], "/a");
}

#[test]
fn unset_variables_are_refused_dropped_or_replaced() {
    let bound = body("allow read $env.A", "");
    assert_eq!(bound.codes(), ["unset-variable"]);
    assert!(bound.policy.is_none());
    assert_eq!(bound.diagnostics[0].message, "`$env.A` has no value here");
    assert!(bound.diagnostics[0].span().is_some());

    let bound = body("allow socket $env.A?\nexpect allow socket $env.A?\nallow read /x", "");
    assert_eq!(bound.codes(), ["dropped-rule", "dropped-rule"]);
    assert_eq!(bound.rules(), ["allow read /x"]);
    assert!(bound.policy().expects.is_empty());

    assert_eq!(body("allow read $env.A or /b", "").rules(), ["allow read /b"]);
    assert_eq!(body("allow read $env.A or /b", "v env.A=/a").rules(), ["allow read /a"]);
    assert_eq!(body("allow read $env.A or $env.B", "").codes(), ["unset-variable"]);
    assert_eq!(body("deny read $env.A or ~/b", "").rules(), ["deny read /home/u/b"]);
}

#[test]
fn values_are_literal_absolute_and_normalised() {
    for value in ["x/y", "/a/../b", "/a//b", "~/x", "/a\u{1}b", "./a", "/a/."] {
        assert_eq!(body("allow read $env.A/z", &format!("v env.A={value}")).codes(), ["variable-value"], "{value:?}");
    }
    // A value is never a pattern.
    assert_eq!(body("allow read $env.A", "v env.A=/a/*").rules(), ["allow read /a/*"]);
    assert!(!body("allow read $env.A", "v env.A=/a/*").reads("/a/b"));
    for value in ["https://x.example", "x.example:80", "localhost", "*", ""] {
        assert_eq!(body("allow connect $env.A", &format!("v env.A={value}")).codes(), ["variable-value"], "{value:?}");
    }
    // A relative value where a path is wanted is no host name in disguise.
    assert_eq!(body("allow read $env.A", "v env.A=relative").codes(), ["variable-value"]);
}

#[test]
fn the_workspace_is_a_project_and_not_more() {
    let refused = |workspace: &str, more: &str| {
        let bound = body("allow write $WORKSPACE", &format!("v WORKSPACE={workspace}\n{more}"));
        let message = bound.diagnostics.first().map(|d| d.message.clone()).unwrap_or_default();
        assert_eq!(bound.policy.is_some(), bound.codes().is_empty());
        (bound.codes().join(" "), message)
    };
    let home = "the workspace is your home directory, `/home/u`: a rule for it would hand over all you own";
    assert_eq!(refused("/home/u", ""), ("variable-value".to_owned(), home.to_owned()));
    assert_eq!(refused("/home", "").1, "the workspace `/home` holds your home directory, `/home/u`");
    assert_eq!(refused("/", "").0, "variable-value");
    let dot = "the workspace `/home/u/.config/app` lies in `/home/u/.config`, where programs keep their settings";
    assert_eq!(refused("/home/u/.config/app", "").1, dot);
    assert_eq!(refused("/home/u/src/.hidden", "").0, "");
    assert_eq!(refused("/home/user2", "").0, "");
    // By another name it is the same place.
    assert_eq!(refused("/data/u", "l /home/u -> /data/u").1.replace("/data/u", "/home/u"), home);
    assert_eq!(refused("/tmp/l", "l /tmp/l -> /home/u").1, home);
    // A policy that does not speak of the workspace may be used anywhere.
    assert_eq!(body("allow read /usr", "v WORKSPACE=/home/u").codes(), [""; 0]);
    assert_eq!(body("allow read ~/x", "v HOME=/").codes(), ["variable-value"]);
}

#[test]
fn assumptions_hold_or_nothing_does() {
    let assume = |side: &str, value: &str| {
        let text = format!("assume $env.S {side} [~, /srv/*]\nallow read $env.S/x");
        body(&text, &format!("v env.S={value}")).codes().join(" ")
    };
    assert_eq!(assume("outside", "/var/s"), "");
    assert_eq!(assume("outside", "/home/u/s"), "variable-value");
    assert_eq!(assume("outside", "/home"), "variable-value", "its tree holds what is assumed outside");
    assert_eq!(assume("inside", "/srv/a/b"), "");
    assert_eq!(assume("inside", "/home/u"), "");
    assert_eq!(assume("inside", "/srv"), "variable-value");
}

#[test]
fn links_are_followed_once_and_recorded() {
    let listing = "l /lib -> usr/lib\nd /usr/lib/x86\nl /home/u/a -> b\nl /home/u/b -> /data/./c/../c\nf /data/c/f\n";
    let bound = body("allow read [/lib/x86, ~/a/f]\ndeny read ~/a/secret", listing);
    assert_eq!(
        bound.rules(),
        [
            "allow read /usr/lib/x86",
            "allow read /data/c/f",
            "deny read /data/c/secret",
            "deny read /home/u/a/secret, /home/u/b/secret",
        ]
    );
    assert_eq!(bound.links(), ["/home/u/a -> /data/c", "/home/u/b -> /data/c", "/lib -> /usr/lib"]);
    let nodes: Vec<_> = bound.policy().facts.nodes.keys().map(ToString::to_string).collect();
    assert!(nodes.contains(&"/data/c/f".to_owned()) && !nodes.contains(&"/data/c/secret".to_owned()), "{nodes:?}");
    assert!(nodes.contains(&"/data".to_owned()), "the way to it as well: {nodes:?}");
}

#[test]
fn exceptions_take_the_other_way_round() {
    let listing = "l /home/u/l -> /data\nd /data";
    assert_eq!(body("allow read ~ except ~/l", listing).rules(), ["allow read /home/u except /data, /home/u/l"]);
    assert_eq!(body("deny read ~ except ~/l", listing).rules(), ["deny read /home/u except /data"]);
}

#[test]
fn a_denied_link_opens_nothing() {
    // Were the link's own name in the deny's set, the equal allow would be the smaller one.
    let bound = body("deny read ~/keys\nallow read ~/keys", "l /home/u/keys -> /data/keys\nd /data/keys");
    assert!(!bound.reads("/data/keys/id"));
    assert!(!bound.reads("/home/u/keys"));
}

#[test]
fn dangling_links_lead_where_they_would() {
    let bound = body("allow read ~/l/x\ndeny write ~/m", "l /home/u/l -> /nowhere/y\nl /home/u/m -> gone");
    assert_eq!(bound.rules(), ["allow read /nowhere/y/x", "deny write /home/u/gone", "deny write /home/u/m"]);
}

#[test]
fn links_without_an_end_are_refused() {
    let listing = "l /home/u/a -> b\nl /home/u/b -> a\nl /home/u/c -> c/d";
    assert_eq!(body("allow read ~/a/x", listing).codes(), ["link-loop"]);
    assert_eq!(body("deny read ~/c", listing).codes(), ["link-loop"]);
    let chain: String = (0..60).fold(String::new(), |text, at| format!("{text}l /c{at} -> /c{}\n", at + 1));
    assert_eq!(body("allow read /c0", &chain).codes(), ["link-loop"]);
    assert_eq!(body("allow read /c30", &chain).rules(), ["allow read /c60"]);
}

#[test]
fn a_link_that_the_command_can_replace_is_never_followed() {
    let listing = "l /home/u/ws/build -> /data/build\nd /data/build/out\n";
    for verb in ["allow write", "allow read", "deny read", "forbid write"] {
        let text = format!("allow read, write $WORKSPACE\n{verb} $WORKSPACE/build/out");
        let bound = body(&text, listing);
        assert_eq!(bound.codes(), ["link-in-writable"], "{verb}: {}", bound.said());
        assert!(
            bound.diagnostics[0].help.as_ref().unwrap().contains("`/data/build`"),
            "{:?}",
            bound.diagnostics[0].help
        );
    }
    // A link in a place that only reading is allowed in is followed.
    assert_eq!(body("allow read $WORKSPACE\nallow write $WORKSPACE/build/out", listing).codes(), [""; 0]);
    // The link itself denied: the directory around it is still the command's.
    let bound = body("allow read, write $WORKSPACE\ndeny write $WORKSPACE/build", listing);
    assert_eq!(bound.codes(), ["link-in-writable"]);
    // The directory around it denied: nobody can replace it.
    let text = "allow read, write $WORKSPACE\ndeny write $WORKSPACE/fixed\nallow read $WORKSPACE/fixed/l/x";
    assert_eq!(body(text, "l /home/u/ws/fixed/l -> /data\nd /data").codes(), [""; 0]);
    // A workspace that is itself reached through a link outside it.
    let bound = body("allow read, write $WORKSPACE", "l /home/u/ws -> /data/ws\nd /data/ws");
    assert_eq!(bound.rules(), ["allow read /data/ws", "allow write /data/ws"]);
}

#[test]
fn what_is_below_tmp_and_named_is_not_the_runs_own() {
    let text = "allow read, write $TMP\nallow read, write $WORKSPACE";
    let bound = body(text, "v WORKSPACE=/tmp/ws\nd /tmp/ws");
    assert_eq!(bound.rules()[0], "allow read /tmp except /tmp/ws");
    assert_eq!(bound.policy().facts.variables["TMP"], "/tmp");

    let bound = body("allow write $TMP\nallow write /tmp/x\nallow write /tmp/none", "d /tmp/x");
    assert_eq!(bound.rules(), ["allow write /tmp except /tmp/x", "allow write /tmp/x", "allow write /tmp/none"]);

    for text in ["allow write $TMP\nallow write /tmp", "allow write $TMP\nallow write /"] {
        let bound = body(text, "");
        assert_eq!(bound.rules()[0], "allow write /dev/shm", "{text}");
        assert_eq!(bound.policy().facts.variables["TMP"], "/dev/shm");
    }
    assert_eq!(body("allow write $TMP\nallow read /tmp", "").rules()[0], "allow write /tmp", "reading it is not meant");
    let bound = body("deny read /tmp except $TMP/x\nallow read /tmp/w", "d /tmp/w");
    assert_eq!(bound.codes(), ["variable-value"], "{}", bound.said());
    let nodes = &body("allow write $TMP/x", "f /tmp/x").policy().facts.nodes.clone();
    assert!(!nodes.contains_key(&path("/tmp/x")), "the host's is not there");
}

#[test]
fn places_of_the_sandboxs_own_are_not_looked_at() {
    let bound =
        body("allow read [/proc/self/status, /dev/stdin]", "l /proc/self -> 4242\nl /dev/stdin -> /proc/self/fd/0");
    assert_eq!(bound.rules(), ["allow read /proc/self/status", "allow read /dev/stdin"]);
    assert!(bound.links().is_empty());
}

#[test]
fn patterns_are_looked_for_where_it_matters() {
    let listing = "f /home/u/ws/.env\nf /home/u/ws/a/b/.env\nf /home/u/other/.env\nd /home/u/ws/n/node_modules/x/node_modules\n\
                   f /home/u/ws/a/keep/.env\nl /home/u/ws/link -> /home/u/other\nd /home/u/ws/.git/hooks\nf /srv/.env\n";
    let text = "allow read, write $WORKSPACE\ndeny read **/.env except **/keep/.env\nforbid write **/.git/hooks\n\
                deny exec $WORKSPACE/*/node_modules\ndeny read $WORKSPACE/**/node_modules";
    let bound = body(text, listing);
    assert_eq!(
        bound.expansions(),
        [
            "2 /home/u/ws/.env",
            "2 /home/u/ws/a/b/.env",
            "2 /home/u/ws/a/keep/.env",
            "3 /home/u/ws/.git/hooks",
            "4 /home/u/ws/n/node_modules",
            "5 /home/u/ws/n/node_modules",
        ],
        "only where something is allowed, links not followed, a tree once"
    );
    assert!(bound.codes().is_empty(), "{}", bound.said());
    for (_, place) in &bound.policy().facts.expansions {
        assert!(bound.policy().facts.nodes.contains_key(place));
    }
}

#[test]
fn a_pattern_may_match_above_where_it_starts() {
    let listing = "d /home/u/ws/sub\n";
    let bound = body("allow read $WORKSPACE/sub\ndeny read **/ws", listing);
    assert_eq!(bound.expansions(), ["1 /home/u/ws"]);
    assert!(bound.reads("/home/u/ws/sub/x"), "the allow is the more specific one");
}

#[test]
fn patterns_that_take_one_node_are_looked_for_below_it_too() {
    let listing = "f /home/u/ws/x/x/x\n";
    let bound = body("allow read $WORKSPACE\ndeny read exact $WORKSPACE/**/x", listing);
    assert_eq!(bound.expansions(), ["1 /home/u/ws/x", "1 /home/u/ws/x/x", "1 /home/u/ws/x/x/x"]);
}

#[test]
fn made_up_and_distant_file_systems_are_not_entered() {
    let listing = "m ext4 8:1 / /\nm proc 0:5 / /home/u/ws/proc\nm nfs4 0:6 / /home/u/ws/far\nm tmpfs 0:7 / /home/u/ws/near\n\
                   f /home/u/ws/proc/.env\nf /home/u/ws/far/.env\nf /home/u/ws/near/.env\nf /home/u/ws/far/named/.env\n";
    let bound = body("allow read $WORKSPACE\ndeny read $WORKSPACE/**/.env", listing);
    assert_eq!(bound.expansions(), ["1 /home/u/ws/near/.env"]);
    let text = "allow read $WORKSPACE\ndeny read $WORKSPACE/**/.env\ndeny read $WORKSPACE/far/other";
    assert_eq!(body(text, listing).expansions().len(), 3, "a rule names a place in it");
}

#[test]
fn the_whole_disk_is_a_finding() {
    let text = "srt 1\ndefault read allow\ndeny read **/.env\n";
    let bound = whole(text, "f /srv/.env\nf /tmp/.env\nf /dev/.env");
    assert_eq!(bound.codes(), ["unanchored-glob"]);
    assert_eq!(bound.diagnostics[0].level, Level::Warning, "it is held all the same");
    assert!(bound.diagnostics[0].help.as_ref().unwrap().contains("`$WORKSPACE/**/.env`"));
    assert_eq!(bound.expansions(), ["0 /srv/.env"], "the host's /tmp and /dev are not there");
}

#[test]
fn past_the_bound_on_names_nothing_runs() {
    let outcome = of(&[("a.policy", "srt 1\ndefault read allow\ndeny read ~/**/.env\n")]);
    let many: String = (0..50).fold(HOME.to_owned(), |text, at| format!("{text}f /home/u/{at}\n"));
    let host = Listing::parse(&many).unwrap();
    let (policy, _) = bind(outcome.policy().clone(), &host);
    let policy = policy.unwrap();
    let private = super::private::Private { place: path("/tmp"), within: Vec::new() };
    let mut diagnostics = Vec::new();
    let links = Links::new(&host, Vec::new());
    super::walk::walk_at_most(20, &policy, &host, &links, &private, &mut diagnostics);
    assert_eq!(diagnostics.len(), 1);
    assert_eq!((diagnostics[0].code.name, diagnostics[0].level), ("unanchored-glob", Level::Error));
}

#[test]
fn a_directory_that_cannot_be_listed_is_said() {
    let listing = "x /home/u/ws/closed\nx /home/u/ws/shut\nf /home/u/ws/.env";
    let bound = body("allow read $WORKSPACE\ndeny read $WORKSPACE/**/.env", listing);
    assert_eq!(bound.codes(), ["unlisted-directory"]);
    assert!(bound.diagnostics[0].message.contains("and 1 more"), "{}", bound.said());
    assert_eq!(bound.expansions(), ["1 /home/u/ws/.env"]);
}

#[test]
fn mounts_that_show_one_thing_twice_are_facts() {
    let listing = "m ext4 8:1 / /\nm ext4 8:1 /home /mnt/home\nm tmpfs 0:9 / /run\nm btrfs 0:3 /a /a\nm btrfs 0:3 /b /b\n\
                   d /mnt/home/u\na 10.0.0.5\n";
    let bound = body("deny read ~", listing);
    let facts = &bound.policy().facts;
    let shown: Vec<_> = facts.mounts.iter().map(|mount| mount.at.to_string()).collect();
    assert_eq!(shown, ["/", "/mnt/home", "/run", "/a", "/b"], "all of them: any may stand before a name");
    assert_eq!(facts.own_addresses.len(), 1);
    let host = Listing::parse(&format!("{HOME}{listing}")).unwrap();
    assert_eq!(host.node(&path("/mnt/home/u")).unwrap(), Some(facts.nodes[&path("/home/u")]));
    let apart = body("deny read ~", "m ext4 8:1 / /\nm tmpfs 0:9 / /run\n");
    assert!(apart.policy().facts.mounts.is_empty());
}

#[test]
fn a_linked_worktree_is_written_through_its_variable() {
    let bound = body(
        "allow read, write [$WORKSPACE, $GIT_COMMON_DIR]\ndeny write $GIT_COMMON_DIR/hooks",
        "v GIT_COMMON_DIR=/home/u/main/.git\nd /home/u/main/.git/hooks",
    );
    assert!(bound.writes("/home/u/main/.git/objects/x") && !bound.writes("/home/u/main/.git/hooks/y"));
    assert!(bound.policy().facts.nodes.contains_key(&path("/home/u/main/.git/hooks")));
    assert_eq!(body("allow write $GIT_COMMON_DIR", "").codes(), ["unset-variable"]);
}

mod granted {
    use super::*;
    use crate::bind::bind_grants;
    use crate::ir::Subject;
    use crate::sets::path::Pattern;
    use proptest::prelude::*;

    const NAMES: [&str; 3] = ["a", "b", "c"];

    fn place() -> impl Strategy<Value = String> {
        let top = prop::sample::select(vec!["/home/u", "/home/u", "/home/u/ws", "/tmp", "/dev/shm", "/srv", ""]);
        let names = prop::collection::vec(prop::sample::select(NAMES.to_vec()), 1..4);
        (top, names).prop_map(|(top, names)| format!("{top}/{}", names.join("/")))
    }

    fn line() -> impl Strategy<Value = String> {
        prop_oneof![
            3 => place().prop_map(|at| format!("f {at}")),
            2 => place().prop_map(|at| format!("d {at}")),
            2 => (place(), place()).prop_map(|(at, to)| format!("l {at} -> {to}")),
        ]
    }

    fn target() -> impl Strategy<Value = String> {
        let top = prop::sample::select(vec!["$HOME", "$HOME", "$WORKSPACE", "$TMP", "/tmp", "/srv", "/home/u", ""]);
        let names = vec!["a", "b", "c", "a", "b", "c", "*", "**/a"];
        let names = prop::collection::vec(prop::sample::select(names), 1..4);
        (top, names).prop_map(|(top, names)| format!("{top}/{}", names.join("/")))
    }

    fn rule() -> impl Strategy<Value = String> {
        let effect = prop::sample::select(vec!["deny", "deny", "deny", "forbid", "allow"]);
        let verbs = prop::sample::select(vec!["write", "write", "write", "read", "read, write"]);
        let accepted = prop::bool::weighted(0.3);
        (effect, verbs, target(), prop::option::weighted(0.2, target()), accepted).prop_map(
            |(effect, verbs, target, except, accepted)| {
                let accepts = if accepted { "# lint: allow(later-from-outside) it is\n" } else { "" };
                let except = except.map(|except| format!(" except {except}")).unwrap_or_default();
                format!("{accepts}{effect} {verbs} {target}{except}")
            },
        )
    }

    proptest! {
        #![proptest_config(ProptestConfig { cases: ProptestConfig::default().cases.max(1500), ..ProptestConfig::default() })]

        /// What may be left out changes nothing that is permitted, and no error.
        #[test]
        fn what_is_left_out_decides_nothing(
            lines in prop::collection::vec(line(), 0..10),
            rules in prop::collection::vec(rule(), 1..8),
            asked in prop::collection::vec(place(), 20),
            twice in prop::bool::weighted(0.2),
        ) {
            let twice = if twice { "m ext4 8:1 / /\nm ext4 8:1 /home /srv\n" } else { "" };
            let listing = format!("{HOME}{}\n{twice}", lines.join("\n"));
            // A name may be a directory in one line and a file in another.
            let Ok(host) = Listing::parse(&listing) else { return Ok(()) };
            let text = format!("srt 1\ndefault read allow\n{}\n", rules.join("\n"));
            let outcome = of(&[("a.policy", &text)]);
            let Some(policy) = outcome.policy.clone() else { return Ok(()) };
            let (all, said) = bind(policy.clone(), &host);
            let (some, said_of_some) = bind_grants(policy, &host);
            let errors = |said: Vec<Diagnostic>| said.into_iter().filter(|d| d.level == Level::Error).collect::<Vec<_>>();
            prop_assert_eq!(errors(said), errors(said_of_some));
            let (Some(all), Some(some)) = (all, some) else { return Ok(()) };
            // What is not there, and cannot be made by the command, is read by nobody.
            let may_be = |asked: &AbsPath| {
                let may_be_made = |at: &AbsPath| decide(&all, &Access::Write(at.clone())).allowed;
                let there = |at: &AbsPath| !matches!(host.node(at), Ok(None));
                there(asked) || asked.ancestors().any(|at| may_be_made(&at))
            };
            // Those that the rules name, and any.
            let named = all.rules.iter().filter_map(|rule| if let Subject::Paths(set) = &rule.subject { Some(set) } else { None });
            let named = named.flat_map(|set| &set.include).map(Pattern::literal_prefix);
            let named = named.flat_map(|prefix| [prefix.join("a"), prefix]);
            for asked in asked.iter().map(|asked| path(asked)).chain(named).filter(may_be) {
                for access in [Access::Read(asked.clone()), Access::Write(asked.clone()), Access::Exec(asked.clone())] {
                    prop_assert_eq!(decide(&all, &access).allowed, decide(&some, &access).allowed, "{}", access);
                }
            }
            // With what was left out, the same rules say the same.
            let whole = some.with_idle();
            let said = |policy: &crate::ir::Policy, access: &Access| {
                let verdict = decide(policy, access);
                let mut spans: Vec<_> = verdict.matching.iter().map(|id| policy.rule(*id).span).collect();
                spans.sort_unstable();
                (verdict.why, spans)
            };
            for asked in asked.iter().map(|asked| path(asked)) {
                for access in [Access::Read(asked.clone()), Access::Write(asked.clone())] {
                    prop_assert_eq!(said(&all, &access), said(&whole, &access), "{}", access);
                }
            }
        }
    }

    #[test]
    fn only_what_is_granted_nowhere_is_left_out() {
        let text = "srt 1\ndefault read allow\nallow write $WORKSPACE\n\
            deny write $HOME/.a\ndeny write $HOME/.link/b\ndeny write $HOME/ws/c\ndeny write $HOME/**/d\n\
            deny read $HOME/.e\ndeny write /tmp/f\ndeny write /etc/g\n\
            # lint: allow(later-from-outside) it is\ndeny read [$HOME/.f, $HOME/ws/x, $HOME/ws/y, $HOME/.link/z, /etc/*]\n";
        let host = Listing::parse(&format!("{HOME}d /home/u/ws/x\nl /home/u/.link -> ws/x\n")).unwrap();
        let policy = of(&[("a.policy", text)]).policy().clone();
        let policy = Bound { policy: bind_grants(policy, &host).0, diagnostics: Vec::new() };
        insta::assert_snapshot!(policy.rules().join("\n"), @r"
        allow write /home/u/ws
        deny write /home/u/ws/x/b
        deny write /home/u/.link/b
        deny write /home/u/ws/c
        deny write /home/u/**/d
        deny read /home/u/.e
        deny write /tmp/f
        deny read /home/u/ws/x
        deny read /home/u/ws/y
        deny read /home/u/ws/x/z
        deny read /home/u/.link/z
        ");
    }
}
