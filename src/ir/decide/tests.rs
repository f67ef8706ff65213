#![allow(clippy::unwrap_used)]

use super::*;
use crate::ir::{MountFact, Origin, Setting, Unset};
use crate::sets::address::parse_network;
use crate::sets::glob::Glob;
use crate::sets::host::{HostSet, Pattern as HostPattern};
use crate::sets::name::{NameSet, Pattern as NamePattern};
use crate::sets::path::{PathSet, Pattern, Segment};
use crate::sets::port::PortSet;
use crate::source::{Sources, Span};
use crate::vocabulary::{Reach, System};

fn span() -> Span {
    Span::new(Sources::default().add("test", ""), 0..0)
}

fn policy(default_read: Effect, rules: Vec<(Effect, Verb, Subject)>) -> Policy {
    let mut policy = Policy::new(System::Linux, Setting { value: default_read, span: span() });
    policy.rules = rules
        .into_iter()
        .map(|(effect, verb, subject)| Rule {
            effect,
            verb,
            subject,
            because: None,
            unset: Unset::Refuse,
            span: span(),
            origin: Origin::Given,
        })
        .collect();
    policy
}

/// `/a/**/b`: only literals, `*` and `**`.
fn pattern(text: &str) -> Pattern {
    let segment = |text: &str| match text {
        "**" => Segment::AnyDepth,
        "*" => Segment::Glob(Glob::any()),
        _ => Segment::Literal(text.into()),
    };
    let segments = text.split('/').filter(|text| !text.is_empty()).map(segment).collect();
    Pattern { start: crate::sets::path::Start::Root, segments, reach: Reach::Tree }
}

fn paths(text: &str) -> Subject {
    let (include, exclude) = text.split_once(" except ").unwrap_or((text, ""));
    let all = |text: &str| text.split_whitespace().map(pattern).collect();
    Subject::Paths(PathSet { include: all(include), exclude: all(exclude) })
}

fn peers(target: &str, ports: PortSet) -> Subject {
    let endpoint = match parse_network(target) {
        Ok(addresses) => Endpoint::Addresses(addresses),
        Err(_) => Endpoint::Hosts(HostSet::from(HostPattern::parse(target).unwrap())),
    };
    Subject::Peers(PeerSet { endpoint, tcp: true, udp: false, ports })
}

fn port(port: u16) -> PortSet {
    PortSet::from_ranges([port..=port])
}

fn at(text: &str) -> AbsPath {
    AbsPath::parse(text).unwrap()
}

fn connect(name: &str, address: &str, port: u16) -> Access {
    let name = (!name.is_empty()).then(|| Name::parse(name).unwrap());
    Access::Connect { name, address: address.parse().unwrap(), port, protocol: Protocol::Tcp }
}

use Effect::{Allow, Deny, Forbid};
use Verb::{Connect, Exec, Listen, Read, Write};

#[test]
fn the_steps() {
    let policy = policy(
        Deny,
        vec![
            (Allow, Read, paths("/a")),
            (Deny, Read, paths("/a/b")),
            (Allow, Read, paths("/a/b/c")),
            (Forbid, Read, paths("/a/b/c/d")),
            (Allow, Read, paths("/a/b/c/d/e")),
            (Deny, Read, paths("/e")),
            (Allow, Read, paths("/e")),
        ],
    );
    for (path, allowed, why, decisive) in [
        ("/", false, Why::Default, &[][..]),
        ("/a", true, Why::Allowed, &[0]),
        ("/a/b", false, Why::Denied, &[1]),
        ("/a/b/c", true, Why::Allowed, &[2, 1]),
        ("/a/b/c/d/e", false, Why::Forbidden, &[3]),
        ("/e", false, Why::Denied, &[5]),
    ] {
        let verdict = decide(&policy, &Access::Read(at(path)));
        let decisive: Vec<RuleId> = decisive.iter().copied().map(RuleId).collect();
        assert_eq!((verdict.allowed, verdict.why, verdict.decisive), (allowed, why, decisive), "{path}");
    }
    assert_eq!(decide(&policy, &Access::Read(at("/a/b/c"))).matching, [RuleId(0), RuleId(1), RuleId(2)]);
}

#[test]
fn what_may_not_be_read_by_a_rule_may_not_be_written_or_run() {
    let policy = policy(
        Deny,
        vec![
            (Allow, Read, paths("/a")),
            (Deny, Read, paths("/a/s")),
            (Allow, Write, paths("/a")),
            (Allow, Write, paths("/w")),
            (Allow, Exec, paths("/a/s")),
            (Deny, Exec, paths("/a/x")),
        ],
    );
    for (access, allowed, why) in [
        (Access::Write(at("/a")), true, Why::Allowed),
        (Access::Write(at("/a/s")), false, Why::ReadDenied),
        (Access::Write(at("/w")), true, Why::Allowed),
        (Access::Write(at("/z")), false, Why::Default),
        (Access::Exec(at("/a")), true, Why::Default),
        (Access::Exec(at("/a/s")), false, Why::ReadDenied),
        (Access::Exec(at("/a/x")), false, Why::Denied),
        (Access::Exec(at("/w")), false, Why::Default),
        (Access::Socket(at("/a")), false, Why::Default),
    ] {
        let verdict = decide(&policy, &access);
        assert_eq!((verdict.allowed, verdict.why), (allowed, why), "{access:?}");
    }
}

#[test]
fn what_denies_does_so_under_every_name_and_what_allows_does_not() {
    let mut policy = policy(
        Deny,
        vec![(Allow, Read, paths("/w")), (Deny, Read, paths("/secret")), (Allow, Read, paths("/secret/open"))],
    );
    let mount = |root: &str, place: &str| MountFact {
        device: (8, 1),
        root: at(root),
        at: at(place),
        kind: "ext4".into(),
        read_only: false,
    };
    policy.facts.mounts = vec![mount("/", "/"), mount("/secret", "/w/s")];
    for (path, why) in
        [("/w/s/key", Why::Denied), ("/w/s/open", Why::Denied), ("/secret/open", Why::Allowed), ("/w/x", Why::Allowed)]
    {
        assert_eq!(decide(&policy, &Access::Read(at(path))).why, why, "{path}");
    }
}

#[test]
fn connections() {
    let policy = policy(
        Deny,
        vec![
            (Allow, Connect, peers("*.x.test", PortSet::all())),
            (Deny, Connect, peers("*.bad.x.test", PortSet::all())),
            (Allow, Connect, peers("ok.bad.x.test", port(443))),
            (Allow, Connect, peers("intra.test", port(443))),
            (Allow, Connect, peers("10.0.0.7", port(5432))),
            (Deny, Connect, peers("1.2.3.0/24", PortSet::all())),
            (Allow, Connect, peers("1.2.3.4", PortSet::all())),
            (Allow, Connect, peers("127.0.0.1", port(3000))),
            (Forbid, Connect, peers("9.9.9.9", PortSet::all())),
        ],
    );
    for (access, why, allowed) in [
        (connect("a.x.test", "8.8.8.8", 443), Why::Allowed, true),
        (connect("x.test", "8.8.8.8", 443), Why::Default, false),
        (connect("a.bad.x.test", "8.8.8.8", 443), Why::Denied, false),
        (connect("ok.bad.x.test", "8.8.8.8", 443), Why::Allowed, true),
        (connect("ok.bad.x.test", "8.8.8.8", 80), Why::Denied, false),
        // The guard.
        (connect("a.x.test", "169.254.169.254", 443), Why::Special, false),
        (connect("a.x.test", "::ffff:169.254.169.254", 443), Why::Special, false),
        (connect("a.x.test", "64:ff9b::169.254.169.254", 443), Why::Special, false),
        (connect("a.x.test", "10.0.0.1", 443), Why::Special, false),
        (connect("intra.test", "10.0.0.1", 443), Why::Allowed, true),
        (connect("intra.test", "127.0.0.1", 443), Why::Special, false),
        (connect("a.x.test", "127.0.0.1", 3000), Why::Allowed, true),
        (connect("a.x.test", "10.0.0.7", 5432), Why::Allowed, true),
        // Addresses.
        (connect("", "10.0.0.7", 5432), Why::Allowed, true),
        (connect("", "::ffff:10.0.0.7", 5432), Why::Allowed, true),
        (connect("", "64:ff9b::10.0.0.7", 5432), Why::Default, false),
        (connect("", "10.0.0.7", 5433), Why::Default, false),
        (connect("", "1.2.3.4", 80), Why::Allowed, true),
        (connect("", "1.2.3.5", 80), Why::Denied, false),
        (connect("a.x.test", "1.2.3.5", 80), Why::Denied, false),
        (connect("a.x.test", "2002:102:305::1", 80), Why::Denied, false),
        (connect("a.x.test", "64:ff9b::9.9.9.9", 80), Why::Forbidden, false),
        // `localhost` is an address, whatever else it resolves to.
        (connect("localhost", "127.0.0.1", 3000), Why::Allowed, true),
        (connect("a.localhost", "127.0.0.1", 3001), Why::Default, false),
    ] {
        let verdict = decide(&policy, &access);
        assert_eq!((verdict.why, verdict.allowed), (why, allowed), "{access:?} {verdict:?}");
    }
    let udp = Access::Connect { name: None, address: "10.0.0.7".parse().unwrap(), port: 5432, protocol: Protocol::Udp };
    assert!(!decide(&policy, &udp).allowed);
}

/// A private address is reached for the rule that names the host, whatever else allows the name.
#[test]
fn who_names_a_host_reaches_its_private_address() {
    let policy = policy(
        Deny,
        vec![
            (Allow, Connect, peers("*", PortSet::all())),
            (Allow, Connect, peers("intra.test", PortSet::all())),
            (Deny, Connect, peers("*.shut.test", PortSet::all())),
            (Allow, Connect, peers("a.shut.test", port(443))),
            (Allow, Connect, peers("a.shut.test", PortSet::all())),
        ],
    );
    let decisive = |name, address| decide(&policy, &connect(name, address, 443)).decisive;
    assert_eq!(decisive("intra.test", "10.0.0.1"), [RuleId(1)]);
    assert_eq!(decisive("intra.test", "8.8.8.8"), [RuleId(0)]);
    assert_eq!(decisive("a.shut.test", "10.0.0.1"), [RuleId(3), RuleId(2)]);
}

#[test]
fn a_ports_list_is_part_of_the_set() {
    let rules = |deny_ports, allow_ports| {
        policy(Deny, vec![(Deny, Connect, peers("*.x", deny_ports)), (Allow, Connect, peers("a.x", allow_ports))])
    };
    assert!(decide(&rules(PortSet::all(), PortSet::all()), &connect("a.x", "8.8.8.8", 22)).allowed);
    assert!(!decide(&rules(port(22), PortSet::all()), &connect("a.x", "8.8.8.8", 22)).allowed);
    assert!(decide(&rules(port(22), PortSet::all()), &connect("a.x", "8.8.8.8", 443)).allowed);
}

#[test]
fn listening() {
    let mut policy = policy(
        Deny,
        vec![
            (Allow, Listen, peers("0.0.0.0", port(80))),
            (Deny, Listen, peers("192.0.2.1", PortSet::all())),
            (Allow, Listen, peers("127.0.0.1", port(3000))),
        ],
    );
    let listen = |address: &str, port| Access::Listen { address: address.parse().unwrap(), port };
    assert!(decide(&policy, &listen("127.0.0.1", 3000)).allowed);
    assert!(!decide(&policy, &listen("0.0.0.0", 3000)).allowed);
    assert!(decide(&policy, &listen("192.0.2.7", 80)).allowed);
    assert!(!decide(&policy, &listen("::1", 80)).allowed);
    assert!(decide(&policy, &listen("0.0.0.0", 80)).allowed);
    policy.facts.own_addresses = vec!["192.0.2.1".parse().unwrap()];
    assert!(!decide(&policy, &listen("0.0.0.0", 80)).allowed);
}

#[test]
fn the_environment_is_open_by_default() {
    let name = |text: &str| Subject::Names(NameSet::from(NamePattern::Literal(text.into())));
    let any = Subject::Names(NameSet::from(NamePattern::Glob(Glob::any())));
    let mut policy = policy(Deny, vec![(Deny, Verb::Env, name("KEY"))]);
    let env = |name: &str| Access::Env(name.into());
    assert!(decide(&policy, &env("PATH")).allowed);
    assert!(!decide(&policy, &env("KEY")).allowed);
    policy.default_env = Some(Setting { value: Deny, span: span() });
    assert!(!decide(&policy, &env("PATH")).allowed);
    policy.rules[0].subject = any;
    policy.rules.push(Rule { effect: Allow, subject: name("PATH"), ..policy.rules[0].clone() });
    assert!(decide(&policy, &env("PATH")).allowed);
    assert!(more_specific(&policy, RuleId(1), RuleId(0)) && !more_specific(&policy, RuleId(0), RuleId(1)));
}

/// The book's examples of what is *not* a law.
#[test]
fn narrowing_an_allow_or_broadening_a_deny_can_open_something() {
    let verdict = |allow: &str, deny: &str, path: &str| {
        let policy = policy(Deny, vec![(Allow, Read, paths(allow)), (Deny, Read, paths(deny))]);
        decide(&policy, &Access::Read(at(path))).allowed
    };
    assert!(!verdict("/a", "/a/**/k", "/a/k"));
    assert!(verdict("/a/k", "/a/**/k", "/a/k"), "a narrower allow opens");
    assert!(!verdict("/a/b", "/a/*/k", "/a/b/k"));
    assert!(verdict("/a/b", "/a", "/a/b/k"), "a broader deny is opened");
}
