#![allow(clippy::unwrap_used)]

mod generated;
mod later;
mod simulate;

use super::*;
use crate::backend::bubblewrap::{Mount, Network, PROC_HIDDEN, Ports, Root};
use crate::diagnostic::Level;
use crate::ir::{Facts, LinkFact, Node, NodeKind, Origin, Policy, Rule, RuleId, Setting, Subject, Unset};
use crate::sets::address::parse_network;
use crate::sets::path::{AbsPath, PathSet, Pattern};
use crate::sets::peer::{Endpoint, PeerSet};
use crate::sets::port::PortSet;
use crate::source::{SourceId, Sources, Span};
use crate::vocabulary::{Effect, Reach, System, Verb};
use simulate::Listing;

pub(super) fn path(text: &str) -> AbsPath {
    AbsPath::parse(text).unwrap()
}

pub(super) fn pattern(text: &str) -> Pattern {
    Pattern::written(text)
}

pub(super) fn source() -> SourceId {
    Sources::default().add("test", "")
}

pub(super) fn span(at: usize) -> Span {
    Span::new(source(), at..at + 1)
}

/// `allow read, write PATTERN except PATTERN`, one rule a verb.
pub(super) fn rules(lines: &[&str]) -> Vec<Rule> {
    let mut rules = Vec::new();
    for line in lines {
        let (effect, rest) = line.split_once(' ').unwrap();
        let (targets, exclude) = match rest.split_once(" except ") {
            Some((targets, exclude)) => (targets, vec![pattern(exclude)]),
            None => (rest, Vec::new()),
        };
        let mut words = targets.splitn(2, [' ']);
        let mut verbs = vec![words.next().unwrap()];
        let mut rest = words.next().unwrap();
        while verbs.last().unwrap().ends_with(',') {
            let (verb, after) = rest.split_once(' ').unwrap();
            verbs.push(verb);
            rest = after;
        }
        for verb in verbs {
            rules.push(Rule {
                effect: Effect::from_word(effect).unwrap(),
                verb: Verb::from_word(verb.trim_end_matches(',')).unwrap(),
                subject: Subject::Paths(PathSet { include: vec![pattern(rest)], exclude: exclude.clone() }),
                because: None,
                unset: Unset::Refuse,
                span: span(rules.len()),
                origin: Origin::Given,
            });
        }
    }
    rules
}

pub(super) fn policy(default_read: Effect, rules: Vec<Rule>) -> Policy {
    let mut policy = Policy::new(System::Linux, Setting { value: default_read, span: span(0) });
    policy.rules = rules;
    policy
}

/// What `bind` does, for a policy without variables: looks at literal targets and their ancestors, and expands globs.
pub(super) fn bind(mut policy: Policy, listing: &Listing) -> BoundPolicy {
    let mut facts = Facts { mounts: listing.mounts.clone(), ..Facts::default() };
    let mut see = |seen: &AbsPath| {
        for place in seen.ancestors() {
            let own = [path("/dev"), path("/proc")];
            if let Some(node) = listing.node(&place).filter(|_| !own.iter().any(|own| place.is_inside(own))) {
                facts.nodes.insert(place, node);
            }
        }
    };
    for (at, rule) in policy.rules.iter().enumerate() {
        let Subject::Paths(set) = &rule.subject else { continue };
        for pattern in set.patterns() {
            if let Some(path) = pattern.as_literal() {
                see(&path);
                continue;
            }
            let matched = Pattern { reach: Reach::Exact, ..pattern.clone() };
            for path in listing.paths().filter(|path| matched.contains(path)) {
                let inner = path.parent().is_some_and(|parent| pattern.contains(&parent));
                if !inner || pattern.reach == Reach::Exact {
                    see(path);
                    facts.expansions.push((RuleId(u32::try_from(at).unwrap()), path.clone()));
                }
            }
        }
    }
    let named: Vec<AbsPath> = facts.nodes.keys().cloned().collect();
    for path in named {
        for alias in facts.aliases(&path) {
            for path in alias.ancestors() {
                if let Some(node) = listing.node(&path) {
                    facts.nodes.insert(path, node);
                }
            }
        }
    }
    facts.fill_elsewhere(&policy.rules);
    policy.facts = facts;
    BoundPolicy(policy)
}

fn lowered(default_read: Effect, lines: &[&str], listing: &[&str]) -> Lowered {
    let bound = bind(policy(default_read, rules(lines)), &Listing::new(listing));
    lower(&bound, &Needs::default()).unwrap()
}

/// The mounts of a plan, one a line.
pub(super) fn show(mounts: &[Mount]) -> Vec<String> {
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    let line = |mount: &Mount| match mount {
        Mount::Bind { path, write, exec, .. } => {
            let flags = [(*write, "rw"), (!write, "ro"), (!exec, "noexec")];
            let flags: Vec<&str> = flags.iter().filter(|flag| flag.0).map(|flag| flag.1).collect();
            format!("bind {} {}", text(path), flags.join(","))
        }
        Mount::EmptyDirectory { path, listable, .. } => {
            format!("empty {}{}", text(path), if *listable { " listable" } else { "" })
        }
        Mount::Directory { path, listable } => {
            format!("dir {}{}", text(path), if *listable { " listable" } else { "" })
        }
        Mount::MaskFile { path, .. } => format!("mask {}", text(path)),
        Mount::Private { path, mode, exec } => {
            format!("private {} {mode:o}{}", text(path), if *exec { "" } else { " noexec" })
        }
        Mount::File { path, .. } => format!("file {}", text(path)),
        Mount::Symlink { path, to } => format!("link {} -> {}", text(path), text(to)),
        Mount::Devices { nodes } => format!("dev {}", nodes.join(",")),
        Mount::Proc => "proc".into(),
    };
    mounts.iter().map(line).collect()
}

fn gap_lines(gaps: &[Diagnostic]) -> Vec<String> {
    let line = |gap: &Diagnostic| format!("{} {}", gap.code.name, gap.witness.as_deref().unwrap_or("-"));
    gaps.iter().map(line).collect()
}

#[test]
fn an_open_root_with_a_writable_tree_and_what_is_denied_in_it() {
    let lowered = lowered(
        Effect::Allow,
        &["allow write /ws", "deny write /ws/.git/hooks", "deny read /home/u/.ssh", "deny read /ws/.env"],
        &["/ws/.git/hooks/", "/ws/.git/config", "/ws/.env", "/home/u/.ssh/id", "/tmp/"],
    );
    assert_eq!(lowered.plan.root, Root::Host { exec: true });
    assert_eq!(
        show(&lowered.plan.mounts),
        [
            "dev null,zero,full,random,urandom,tty",
            "empty /dev/shm listable",
            "empty /home/u/.ssh",
            "proc",
            "empty /tmp listable",
            "bind /ws rw",
            "mask /ws/.env",
            "bind /ws/.git rw",
            "bind /ws/.git/hooks ro",
        ]
    );
    assert_eq!(gap_lines(&lowered.gaps), [""; 0]);
    let landlock = lowered.plan.landlock.unwrap();
    assert_eq!(landlock.write, [&b"/dev/pts"[..], b"/ws"]);
    assert_eq!(landlock.exec, [b"/"]);
}

#[test]
fn a_closed_root_shows_only_what_is_allowed() {
    let lowered = lowered(
        Effect::Deny,
        &["allow read /usr", "allow read, write /home/u/ws", "deny exec /usr/bin/curl", "allow read, write /tmp/x"],
        &["/usr/bin/curl", "/usr/bin/sh", "/home/u/ws/", "/home/u/.ssh/id", "/etc/passwd", "/tmp/x/"],
    );
    assert_eq!(lowered.plan.root, Root::Empty { listable: false });
    assert_eq!(
        show(&lowered.plan.mounts),
        [
            "dir /etc",
            "file /etc/group",
            "file /etc/passwd",
            "dir /home",
            "dir /home/u",
            "bind /home/u/ws rw",
            "dir /tmp",
            "bind /tmp/x rw",
            "bind /usr ro",
            "bind /usr/bin/curl ro,noexec",
        ]
    );
    let landlock = lowered.plan.landlock.unwrap();
    assert_eq!(landlock.write, [&b"/home/u/ws"[..], b"/tmp/x"]);
    assert_eq!(landlock.exec, [&b"/home/u/ws"[..], b"/tmp/x", b"/usr"]);
}

#[test]
fn a_workspace_in_the_private_temporary_directory() {
    let mut policy = policy(
        Effect::Deny,
        rules(&["allow read, write /tmp except /tmp/a/ws", "allow read, write /tmp/a/ws", "deny write /tmp/a/ws/keep"]),
    );
    policy.facts.variables.insert("TMP".into(), "/tmp".into());
    let variables = policy.facts.variables.clone();
    let mut bound = bind(policy, &Listing::new(&["/tmp/a/ws/keep", "/tmp/a/other", "/tmp/secret"]));
    bound.0.facts.variables = variables;
    let lowered = lower(&bound, &Needs::default()).unwrap();
    let mounts = show(&lowered.plan.mounts);
    let mounts: Vec<&str> = mounts.iter().map(String::as_str).filter(|line| line.contains("/tmp")).collect();
    assert_eq!(mounts, ["private /tmp 1777", "private /tmp/a 755", "bind /tmp/a/ws rw", "bind /tmp/a/ws/keep ro"]);
}

#[test]
fn links_on_the_way_are_made() {
    let mut policy = policy(Effect::Deny, rules(&["allow read /usr/lib"]));
    policy.facts.links = vec![
        LinkFact { at: path("/lib"), to: path("/usr/lib") },
        LinkFact { at: path("/opt/gone"), to: path("/nowhere") },
    ];
    let links = policy.facts.links.clone();
    let mut bound = bind(policy, &Listing::new(&["/usr/lib/libc.so"]));
    bound.0.facts.links = links;
    let mounts = show(&lower(&bound, &Needs::default()).unwrap().plan.mounts);
    assert!(mounts.contains(&"link /lib -> /usr/lib".to_owned()), "{mounts:?}");
    assert!(!mounts.iter().any(|line| line.contains("/opt")), "{mounts:?}");
}

#[test]
fn device_nodes_and_proc_only_where_the_policy_shows_them() {
    let lowered = lowered(
        Effect::Deny,
        &[
            "allow read, write /dev/null",
            "allow read /dev/urandom",
            "allow read, write /dev/kvm",
            "allow read /proc",
            "deny read /proc/cpuinfo",
            "deny read /dev/random",
            "deny read /dev/pts",
        ],
        &[],
    );
    let mounts = show(&lowered.plan.mounts);
    assert!(mounts.contains(&"dev null,urandom".to_owned()), "{mounts:?}");
    assert!(mounts.contains(&"proc".to_owned()), "{mounts:?}");
    assert_eq!(lowered.plan.landlock.unwrap().write, [&b"/dev/null"[..], b"/dev/pts"]);
    assert_eq!(
        gap_lines(&lowered.gaps),
        ["private-place -", "private-place -", "shown-as-a-whole read /proc/cpuinfo", "shown-as-a-whole read /dev/pts"]
    );
}

#[test]
fn proc_is_written_only_where_the_policy_says() {
    let write = |lines: &[&str]| lowered(Effect::Allow, lines, &[]).plan.landlock.unwrap().write;
    assert_eq!(write(&["allow write /proc"]), [&b"/dev/pts"[..], b"/proc"]);
    assert_eq!(write(&[]), [b"/dev/pts"]);
    let mounts = show(&lowered(Effect::Allow, &["deny read /proc", "deny read /dev"], &[]).plan.mounts);
    assert_eq!(mounts, ["empty /dev", "empty /proc", "empty /tmp listable"]);
}

/// What the sandbox covers by itself may be denied, and is not granted.
#[test]
fn what_is_covered_in_proc_is_no_gap() {
    let gaps = |lines: &[&str]| gap_lines(&lowered(Effect::Allow, lines, &[]).gaps);
    let covered =
        ["allow write /proc", "deny write /proc/sys", "deny write /proc/sysrq-trigger", "deny read, write /proc/kcore"];
    assert_eq!(gaps(&covered), [""; 0]);
    assert_eq!(gaps(&["allow write /proc", "deny write /proc/self/mem"]), ["shown-as-a-whole write /proc/self/mem"]);
    assert_eq!(gaps(&["allow write /proc", "deny read /proc/version"]), ["shown-as-a-whole read /proc/version"]);
    assert_eq!(gaps(&["allow write /proc", "allow write /proc/sys/vm"]), ["private-place -"]);
    assert_eq!(gaps(&["allow write /proc", "allow write /proc/self/comm"]), [""; 0]);
}

/// The shipped module says of each what the executor does.
#[test]
fn the_system_module_denies_what_is_hidden_in_proc() {
    let (_, text) = crate::resolve::STD.iter().find(|(name, _)| *name == "system").unwrap();
    let list = text.split("deny read, write [").nth(1).unwrap().split(']').next().unwrap();
    let named: Vec<&str> = list.split(',').map(str::trim).filter(|name| !name.is_empty()).collect();
    let hidden: Vec<String> = PROC_HIDDEN.iter().map(|name| format!("/proc/{name}")).collect();
    assert_eq!(named, hidden);
}

#[test]
fn names_that_come_later() {
    let lowered = lowered(
        Effect::Allow,
        &[
            "allow write /ws",
            "deny write /ws/**/.env",       // a glob in a writable place
            "deny write /ws/missing/hooks", // missing, in a writable place
            "deny read /home/u/.aws",       // missing, in a read-only place
            "allow write /data/absent",     // missing, not writable
            "deny write /etc/**/shadow*",   // a glob where nothing is writable
            "deny write /ws/.git",          // there
        ],
        &["/ws/.git/", "/ws/a/.env", "/home/u/", "/data/", "/etc/"],
    );
    assert_eq!(
        gap_lines(&lowered.gaps),
        [
            "later-names write /ws/.env",
            "later-names write /ws/missing/hooks",
            "not-granted write /data/absent",
            "later-from-outside read /home/u/.aws",
        ]
    );
    let levels: Vec<Level> = lowered.gaps.iter().map(|gap| gap.level).collect();
    assert_eq!(levels, [Level::Error, Level::Error, Level::Note, Level::Note]);
}

/// Where a rule opens names that are not there, whoever performs makes them: in a directory that is writable, but for what is
/// closed in it. What is there and open already is no mount, so that it can be replaced.
#[test]
fn names_that_a_rule_opens_later() {
    let lines = ["allow write /ws/**/*.snap", "allow write /ws/out", "deny write /ws/kept", "allow write /data/x"];
    let host = ["/ws/a.snap", "/ws/src/main.rs", "/ws/src/b.snap", "/ws/kept/c.snap", "/data/y"];
    let plan = |performs: Watch| {
        let bound = bind(policy(Effect::Allow, rules(&lines)), &Listing::new(&host));
        let lowered = lower(&bound, &Needs { performs, ..Needs::default() }).unwrap();
        let own = |line: &String| line.contains("/ws") || line.contains("/data");
        let mounts: Vec<String> = show(&lowered.plan.mounts).into_iter().filter(own).collect();
        (mounts, gap_lines(&lowered.gaps), lowered.plan.syscalls.performed, lowered.plan.unheard)
    };
    let (mounts, gaps, performed, unheard) = plan(Watch::Writes);
    assert_eq!(mounts, ["bind /data rw", "bind /ws rw", "bind /ws/kept ro"]);
    assert_eq!((gaps, performed, unheard), (vec![], seccomp::Watch::Writes, false));
    let (mounts, gaps, performed, _) = plan(Watch::Nothing);
    assert!(
        mounts.contains(&"bind /ws/a.snap rw".to_owned()) && !mounts.contains(&"bind /ws rw".to_owned()),
        "{mounts:?}"
    );
    assert!(gaps.iter().filter(|gap| gap.starts_with("not-granted write ")).count() == 3, "{gaps:?}");
    assert_eq!(performed, seccomp::Watch::Nothing);
}

/// Where each open is decided, something outside makes nothing that could be read; whoever may mount inside goes round that.
#[test]
fn names_that_are_hidden_when_they_appear() {
    let lower = |nest: bool, performs: Watch| {
        let bound = bind(policy(Effect::Allow, rules(&["deny read /data/absent"])), &Listing::new(&["/data/"]));
        lower(&bound, &Needs { nest, performs, ..Needs::default() })
    };
    let lax = lower(false, Watch::Writes).unwrap();
    assert_eq!(gap_lines(&lax.gaps), ["later-from-outside read /data/absent"]);
    assert_eq!(lax.plan.syscalls.performed, seccomp::Watch::Nothing);
    let strict = lower(false, Watch::Opens).unwrap();
    assert_eq!(gap_lines(&strict.gaps), [""; 0]);
    assert_eq!(strict.plan.syscalls.performed, seccomp::Watch::Opens);
    assert_eq!(lower(true, Watch::Opens).unwrap_err()[0].code.name, "nest-conflict");
}

#[test]
fn a_reopened_shortest_name_does_not_hide_the_others() {
    let lowered = lowered(Effect::Allow, &["allow write /ws", "deny write **/.env", "allow write /ws/.env"], &["/ws/"]);
    let gaps = gap_lines(&lowered.gaps);
    assert!(gaps[0].starts_with("later-names write /ws/") && gaps[0].ends_with("/.env"), "{gaps:?}");
    assert_ne!(gaps[0], "later-names write /ws/.env");
}

#[test]
fn nesting_is_refused_with_names_that_come_later() {
    let bound = |lines: &[&str]| bind(policy(Effect::Allow, rules(lines)), &Listing::new(&["/ws/.git/"]));
    let needs = Needs { nest: true, ..Needs::default() };
    let errors = lower(&bound(&["allow write /ws", "deny write /ws/*.lock"]), &needs).unwrap_err();
    assert_eq!(errors[0].code.name, "nest-conflict");
    let lowered = lower(&bound(&["allow write /ws", "deny write /ws/.git"]), &needs).unwrap();
    assert_eq!(lowered.plan.landlock, None);
    assert!(lowered.plan.syscalls.nest);
}

#[test]
fn writing_without_reading_is_an_error_with_its_witness() {
    let bound = bind(policy(Effect::Deny, rules(&["allow write /ws"])), &Listing::new(&["/ws/"]));
    let errors = lower(&bound, &Needs::default()).unwrap_err();
    assert_eq!(errors.len(), 1, "{errors:?}");
    assert_eq!(errors[0].code.name, "grant-without-read");
    assert_eq!(errors[0].witness.as_deref(), Some("/ws"));
}

#[test]
fn what_a_glob_opens_in_a_closed_place_is_an_error_whatever_is_wanted() {
    let statements = ["allow read exact /*", "allow read, write exact /[ab]*/*", "allow write below /a/*/a"];
    let bound = bind(policy(Effect::Deny, rules(&statements)), &Listing::new(&["/a/a/"]));
    for errors_alone in [false, true] {
        let errors = lower(&bound, &Needs { errors_alone, ..Needs::default() }).unwrap_err();
        assert_eq!(errors[0].code.name, "grant-without-read", "errors alone: {errors_alone}");
    }
}

#[test]
fn rules_without_a_mechanism_are_refused() {
    let peers = PeerSet {
        endpoint: Endpoint::Addresses(parse_network("127.0.0.1/32").unwrap()),
        tcp: true,
        udp: false,
        ports: PortSet::from_ranges([80..=80]),
    };
    // To be reached at more places than can be listened at, and datagrams.
    for (verb, udp, ports) in [(Verb::Listen, false, 1..=2000), (Verb::Connect, true, 80..=80)] {
        let peers = PeerSet { udp, ports: PortSet::from_ranges([ports]), ..peers.clone() };
        let rule = Rule { verb, subject: Subject::Peers(peers), ..rules(&["allow read /x"]).remove(0) };
        let bound = bind(policy(Effect::Allow, vec![rule]), &Listing::new(&[]));
        let errors = lower(&bound, &Needs::default()).unwrap_err();
        assert_eq!(errors[0].code.name, "unenforceable");
    }
}

/// A socket that a rule names is there, whatever may be read around it; nothing else is.
#[test]
fn sockets_that_may_be_connected_to_are_shown() {
    let host = Listing::new(&["/run/", "/run/a.sock=", "/run/b.sock=", "/run/pg/5432=", "/run/d/x", "/dev/log="]);
    let plan = |default, lines: &[&str]| {
        let lowered = lower(&bind(policy(default, rules(lines)), &host), &Needs::default()).unwrap();
        let gaps: Vec<String> = lowered.gaps.iter().map(|gap| gap.message.clone()).collect();
        let shown = lowered.plan.mounts.iter().filter_map(|mount| match mount {
            Mount::Bind { path, write: false, exec: false, .. } => Some(String::from_utf8(path.clone()).unwrap()),
            _ => None,
        });
        (shown.collect::<Vec<_>>(), gaps, lowered.plan.sockets)
    };
    let none: [String; 0] = [];
    // Closed: it is mounted by itself.
    assert_eq!(
        plan(Effect::Deny, &["allow socket /run/a.sock"]),
        (vec!["/run/a.sock".to_owned()], none.to_vec(), true)
    );
    // Open: it is there already, or shown through what hides it.
    assert_eq!(plan(Effect::Allow, &["allow socket /run/a.sock"]), (none.to_vec(), none.to_vec(), true));
    let through = plan(Effect::Allow, &["deny read /run", "allow socket /run/a.sock"]);
    assert_eq!(through.0, ["/run/a.sock"]);
    let denied = plan(Effect::Deny, &["allow socket /run/a.sock", "deny socket /run/a.sock"]);
    assert_eq!((denied.0, denied.2), (none.to_vec(), true));
    assert!(!plan(Effect::Allow, &["deny socket /run/a.sock"]).2);
    // What is not there, and is not shown.
    for (rule, said) in [
        ("allow socket /run/pg", "`/run/pg` is not shown to the command, so that no socket in it is reached"),
        ("allow socket /run/z.sock", "`/run/z.sock` does not exist, so that nothing is granted there"),
        ("allow socket /dev/log", "`/dev/log` does not exist, so that nothing is granted there"),
    ] {
        assert_eq!(
            plan(Effect::Deny, &[rule, "allow read /dev"]).1.iter().filter(|gap| *gap == said).count(),
            1,
            "{rule}"
        );
    }
    assert_eq!(plan(Effect::Allow, &["allow socket /run/z.sock", "allow socket /run/pg"]).1, none);
    assert_eq!(plan(Effect::Deny, &["allow read /run/pg", "allow socket /run/pg"]).1, none);
}

#[test]
fn ports_of_the_loopback_that_a_rule_names_are_the_hosts() {
    let rule = |target: &str, low: u16, high: u16| {
        let endpoint = match parse_network(target) {
            Ok(addresses) => Endpoint::Addresses(addresses),
            Err(_) => Endpoint::Hosts(crate::sets::host::Pattern::parse(target).unwrap().into()),
        };
        let peers = PeerSet { endpoint, tcp: true, udp: false, ports: PortSet::from_ranges([low..=high]) };
        Rule { verb: Verb::Connect, subject: Subject::Peers(peers), ..rules(&["allow read /x"]).remove(0) }
    };
    let network = |rules: Vec<Rule>| {
        let bound = bind(policy(Effect::Allow, rules), &Listing::new(&[]));
        let lowered = lower(&bound, &Needs::default()).unwrap();
        let codes: Vec<_> = lowered.gaps.iter().map(|gap| gap.code.name).collect();
        (lowered.plan.network, codes)
    };
    let ports = |loopback4: &[(u16, u16)], loopback6: &[(u16, u16)], all: &[(u16, u16)]| {
        Network::Proxy(Ports { loopback4: loopback4.into(), loopback6: loopback6.into(), all: all.into() })
    };
    assert_eq!(network(vec![rule("a.test", 80, 81)]), (ports(&[], &[], &[(80, 81)]), vec![]));
    assert_eq!(
        network(vec![
            rule("127.0.0.0/8", 3000, 3010),
            rule("::1", 3000, 3010),
            rule("127.0.0.1", 3005, 3020),
            rule("*", 1, 65535)
        ]),
        (ports(&[(3000, 3020)], &[(3000, 3010)], &[(1, 65535)]), vec![])
    );
    assert_eq!(network(vec![rule("::/0", 443, 443)]), (ports(&[], &[(443, 443)], &[(443, 443)]), vec![]));
    assert_eq!(network(vec![rule("10.0.0.0/8", 1, 65535)]), (ports(&[], &[], &[(1, 65535)]), vec![]));
    assert_eq!(network(vec![rule("0.0.0.0/0", 1, 65535)]), (ports(&[], &[], &[(1, 65535)]), vec!["proxy-only"]));
    let all = bind(policy(Effect::Allow, vec![rule("127.0.0.1", 1, 65535)]), &Listing::new(&[]));
    let errors = lower(&all, &Needs::default()).unwrap_err();
    assert_eq!((errors[0].code.name, errors[0].help.as_deref()), ("unenforceable", Some("name the ports")));
}

#[test]
fn gaps_of_single_nodes() {
    let lowered = lowered(
        Effect::Deny,
        &[
            "allow read /ws",
            "allow write /ws/Cargo.lock",
            "allow read below /data",
            "allow write below /ws/out",
            "allow read exact /srv",
        ],
        &["/ws/Cargo.lock", "/ws/out/x", "/data/x", "/srv/x"],
    );
    let mut gaps = gap_lines(&lowered.gaps);
    gaps.sort();
    assert_eq!(
        gaps,
        [
            "directory-alone /srv",
            "directory-attributes /ws/out",
            "directory-listing /data",
            "pinned-file /ws/Cargo.lock"
        ]
    );
}

#[test]
fn a_narrow_glob_never_opens_a_whole_directory() {
    let lowered = lowered(Effect::Deny, &["allow read /ws/[!.]*"], &["/ws/a", "/ws/.env"]);
    let mounts = show(&lowered.plan.mounts);
    assert!(mounts.contains(&"dir /ws".to_owned()) && mounts.contains(&"bind /ws/a ro".to_owned()), "{mounts:?}");
    assert!(!mounts.iter().any(|line| line.contains(".env")), "{mounts:?}");
}

#[test]
fn globs_that_cover_every_name_between_them_are_refused() {
    let bound =
        bind(policy(Effect::Deny, rules(&["allow read /ws/[!.]*", "deny read /ws/.*"])), &Listing::new(&["/ws/"]));
    let errors = lower(&bound, &Needs::default()).unwrap_err();
    assert_eq!(errors[0].code.name, "unenforceable");
}

#[test]
fn another_name_of_a_denied_tree_is_masked_too() {
    let mut listing = Listing::new(&["/home/u/.ssh/id", "/mnt/u/.ssh/id"]);
    listing.alias("/home", "/mnt");
    let bound = bind(policy(Effect::Allow, rules(&["deny read /home/u/.ssh"])), &listing);
    let mounts = show(&lower(&bound, &Needs::default()).unwrap().plan.mounts);
    assert!(mounts.contains(&"empty /home/u/.ssh".to_owned()) && mounts.contains(&"empty /mnt/u/.ssh".to_owned()));
}

#[test]
fn a_denied_link_in_a_writable_tree_is_a_gap() {
    let lowered = lowered(Effect::Allow, &["allow write /ws", "deny write /ws/link"], &["/ws/link@"]);
    assert_eq!(gap_lines(&lowered.gaps), ["replaceable-link /ws/link"]);
}

#[test]
fn deep_trees_do_not_exhaust_the_stack() {
    let deep = "/d".repeat(900);
    let bound = bind(
        policy(Effect::Allow, rules(&["allow write /d", &format!("deny write {deep}")])),
        &Listing::new(&[&format!("{deep}/")]),
    );
    assert!(lower(&bound, &Needs::default()).unwrap().plan.mounts.len() > 899);
}

pub(super) fn node(kind: NodeKind, inode: u64) -> Node {
    Node { kind, device: 1, inode }
}
