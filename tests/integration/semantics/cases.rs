//! Generated policies and accesses, and how they look to the library.

use super::brute::{self, Access, Address, Effect, NAME_PATTERNS, NETWORKS, PORTS, SOME_PORTS, Verb, What, Why, World};
use proptest::prelude::*;
use proptest::sample::Index;
use sandbox_runtime::ir::{self, Origin, Policy, Setting, Subject};
use sandbox_runtime::sets::address::{AddressSet, parse_network};
use sandbox_runtime::sets::glob::{Glob, Piece};
use sandbox_runtime::sets::host::{self, HostSet, Name};
use sandbox_runtime::sets::name::{self, NameSet};
use sandbox_runtime::sets::path::{AbsPath, PathSet, Pattern, Segment, Start};
use sandbox_runtime::sets::peer::{Endpoint, PeerSet, Protocol};
use sandbox_runtime::sets::port::PortSet;
use sandbox_runtime::source::{Sources, Span};
use sandbox_runtime::vocabulary::{self, System};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// The choices that make a case; [`Draft::build`] makes it.
#[derive(Debug, Clone)]
pub struct Draft {
    kind: Kind,
    object: Index,
    address: Index,
    port: Index,
    udp: bool,
    open_read: bool,
    open_env: bool,
    rules: Vec<RuleDraft>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Kind {
    Read,
    Write,
    Exec,
    Name,
    Address,
    Env,
}

#[derive(Debug, Clone)]
// Each is a draw of its own.
#[allow(clippy::struct_excessive_bools)]
struct RuleDraft {
    effect: Effect,
    /// Not the verb of the access, but one that bears on it.
    other_verb: bool,
    address: bool,
    /// Chosen among the patterns that hold the object, not among all.
    near: bool,
    nest: bool,
    pick: Index,
    second: Option<Index>,
    except: Option<Index>,
    ports: Index,
    tcp: bool,
    udp: bool,
}

/// A policy and an access, in the terms of the brute force.
#[derive(Debug, Clone)]
pub struct Case {
    pub kind: Kind,
    pub open_read: bool,
    pub open_env: bool,
    pub rules: Vec<brute::Rule>,
    pub access: Access,
}

impl Kind {
    /// The verb that it asks about, for the brute force and for the language.
    pub fn verb(self) -> (Verb, vocabulary::Verb) {
        match self {
            Kind::Read => (Verb::Read, vocabulary::Verb::Read),
            Kind::Write => (Verb::Write, vocabulary::Verb::Write),
            Kind::Exec => (Verb::Exec, vocabulary::Verb::Exec),
            Kind::Name | Kind::Address => (Verb::Connect, vocabulary::Verb::Connect),
            Kind::Env => (Verb::Env, vocabulary::Verb::Env),
        }
    }
}

impl Case {
    /// The part of the rules that one of two policies has: all but those that `skip` alone stands for.
    pub fn part(&self, whose: &[u8], skip: u8) -> Self {
        let rules = self.rules.iter().zip(whose).filter(|(_, who)| **who != skip).map(|(rule, _)| rule.clone());
        Self { rules: rules.collect(), ..self.clone() }
    }
}

/// What a case came to.
#[derive(Debug, Clone, Copy)]
pub struct Reached {
    pub verdict: brute::Verdict,
    pub except: bool,
    pub kind: Kind,
}

pub fn drafts() -> impl Strategy<Value = Draft> {
    let kind = prop_oneof![
        3 => Just(Kind::Read),
        2 => Just(Kind::Write),
        2 => Just(Kind::Exec),
        4 => Just(Kind::Name),
        2 => Just(Kind::Address),
        1 => Just(Kind::Env),
    ];
    let object = (any::<Index>(), any::<Index>(), any::<Index>(), prop::bool::weighted(0.1));
    let rules = prop::collection::vec(rule(), 0..7);
    (kind, object, any::<bool>(), any::<bool>(), rules).prop_map(
        |(kind, (object, address, port, udp), open_read, open_env, rules)| Draft {
            kind,
            object,
            address,
            port,
            udp,
            open_read,
            open_env,
            rules,
        },
    )
}

fn rule() -> impl Strategy<Value = RuleDraft> {
    let effect = prop_oneof![10 => Just(Effect::Allow), 6 => Just(Effect::Deny), 1 => Just(Effect::Forbid)];
    let flags = (
        prop::bool::weighted(0.25),
        prop::bool::weighted(0.3),
        prop::bool::weighted(0.9),
        prop::bool::weighted(0.8),
        prop::bool::weighted(0.95),
        prop::bool::weighted(0.5),
    );
    let extra = (prop::option::weighted(0.05, any::<Index>()), prop::option::weighted(0.15, any::<Index>()));
    (effect, flags, any::<Index>(), extra, any::<Index>()).prop_map(
        |(effect, (other_verb, address, near, nest, tcp, udp), pick, (second, except), ports)| RuleDraft {
            effect,
            other_verb,
            address,
            near,
            nest,
            pick,
            second,
            except,
            ports,
            tcp,
            udp,
        },
    )
}

/// One of `all` that `holds` the object, or any when `near` is off or none does. An allow takes one from the narrower half
/// where `nest` says so, all else from the wider: that is how rules open others.
fn pick(
    rule: &RuleDraft,
    index: Index,
    all: usize,
    holds: impl Fn(usize) -> bool,
    narrow: impl Fn(usize) -> usize,
) -> usize {
    let mut those: Vec<usize> = (0..all).filter(|one| rule.near && holds(*one)).collect();
    if those.is_empty() {
        return index.index(all);
    }
    if rule.nest {
        those.sort_by_key(|one| narrow(*one));
        let half = those.len() / 2;
        those = if rule.effect == Effect::Allow { those.split_off(half) } else { those[..=half].to_vec() };
    }
    those[index.index(those.len())]
}

impl Draft {
    /// The case; `world` is one without mistakes.
    pub fn build(&self, world: &World) -> Case {
        let access = match self.kind {
            Kind::Read => Access::Path { verb: Verb::Read, path: self.object.index(world.paths.len()) },
            Kind::Write => Access::Path { verb: Verb::Write, path: self.object.index(world.paths.len()) },
            Kind::Exec => Access::Path { verb: Verb::Exec, path: self.object.index(world.paths.len()) },
            Kind::Env => Access::Env { name: self.object.index(world.names.len()) },
            Kind::Name | Kind::Address => Access::Connect {
                name: (self.kind == Kind::Name).then(|| self.object.index(world.host_names.len())),
                address: self.address.index(world.addresses.len()),
                port: SOME_PORTS[self.port.index(SOME_PORTS.len())],
                udp: self.udp,
            },
        };
        let near: Vec<bool> = match access {
            Access::Path { path, .. } => (0..world.patterns.len()).map(|one| world.has_path(one, path)).collect(),
            _ => Vec::new(),
        };
        let rules = self.rules.iter().map(|draft| draft.build(world, &access, &near)).collect();
        Case { kind: self.kind, open_read: self.open_read, open_env: self.open_env, rules, access }
    }
}

impl RuleDraft {
    /// `near`: which path patterns hold the object.
    fn build(&self, world: &World, access: &Access, near: &[bool]) -> brute::Rule {
        let several = |all: usize, holds: &dyn Fn(usize) -> bool, narrow: &dyn Fn(usize) -> usize| {
            let mut include = vec![pick(self, self.pick, all, holds, narrow)];
            include.extend(self.second.map(|second| second.index(all)));
            let exclude: Vec<usize> = self.except.map(|except| except.index(all)).into_iter().collect();
            (include, exclude)
        };
        let (verb, what) = match access {
            Access::Path { verb, .. } => {
                let (include, exclude) =
                    several(world.patterns.len(), &|one| near[one], &|one| world.path_narrowness(one));
                let other = if *verb == Verb::Read { Verb::Write } else { Verb::Read };
                (if self.other_verb { other } else { *verb }, What::Paths { include, exclude })
            }
            Access::Env { name } => {
                let (include, exclude) = several(NAME_PATTERNS.len(), &|one| world.has_name(one, *name), &|one| {
                    NAME_PATTERNS[one].replace('*', "").len()
                });
                (Verb::Env, What::Names { include, exclude })
            }
            Access::Connect { name, address, port, .. } => {
                let width =
                    |one: usize| PORTS[one].iter().map(|(low, high)| usize::from(high - low) + 1).sum::<usize>();
                let holds = |one: usize| PORTS[one].iter().any(|(low, high)| (*low..=*high).contains(port));
                let ports = pick(self, self.ports, PORTS.len(), holds, |one| (1 << 16) - width(one));
                let (tcp, udp) = (self.tcp, self.udp || !self.tcp);
                let what = if let (Some(name), false) = (name, self.address) {
                    let (include, exclude) = several(world.hosts.len(), &|one| world.host_has(one, *name), &|one| {
                        world.host_narrowness(one)
                    });
                    What::Hosts { include, exclude, ports, tcp, udp }
                } else {
                    let (include, exclude) =
                        several(NETWORKS.len(), &|one| World::has_network(one, world.addresses[*address]), &|one| {
                            NETWORKS[one].split_once('/').map_or(128, |(_, length)| length.parse().unwrap())
                        });
                    What::Addresses { include, exclude, ports, tcp, udp }
                };
                (Verb::Connect, what)
            }
        };
        brute::Rule { effect: self.effect, verb, what }
    }
}

impl Case {
    pub fn has_except(&self) -> bool {
        self.rules.iter().any(|rule| match &rule.what {
            What::Paths { exclude, .. }
            | What::Hosts { exclude, .. }
            | What::Addresses { exclude, .. }
            | What::Names { exclude, .. } => !exclude.is_empty(),
        })
    }

    pub fn brute(&self, world: &World) -> brute::Verdict {
        world.decide(&self.rules, self.open_read, self.open_env, &self.access)
    }

    /// The policy as `ir` has it.
    pub fn policy(&self, world: &World) -> Policy {
        let span = Span::new(Sources::default().add("generated", ""), 0..0);
        let effect = |open| if open { vocabulary::Effect::Allow } else { vocabulary::Effect::Deny };
        let mut policy = Policy::new(System::Linux, Setting { value: effect(self.open_read), span });
        policy.default_env = Some(Setting { value: effect(self.open_env), span });
        for rule in &self.rules {
            policy.rules.push(ir::Rule {
                effect: match rule.effect {
                    Effect::Allow => vocabulary::Effect::Allow,
                    Effect::Deny => vocabulary::Effect::Deny,
                    Effect::Forbid => vocabulary::Effect::Forbid,
                },
                verb: match rule.verb {
                    Verb::Read => vocabulary::Verb::Read,
                    Verb::Write => vocabulary::Verb::Write,
                    Verb::Exec => vocabulary::Verb::Exec,
                    Verb::Connect => vocabulary::Verb::Connect,
                    Verb::Env => vocabulary::Verb::Env,
                },
                subject: subject(world, &rule.what),
                because: None,
                unset: ir::Unset::Refuse,
                span,
                origin: Origin::Given,
            });
        }
        policy
    }

    /// The access as `ir` has it.
    pub fn ir_access(&self, world: &World) -> ir::Access {
        match self.access {
            Access::Path { verb, path } => {
                let path = &world.paths[path];
                let start = if path.variable { AbsPath::variable("W") } else { AbsPath::root() };
                let path = path.segments.iter().fold(start, |path, segment| path.join(segment));
                match verb {
                    Verb::Write => ir::Access::Write(path),
                    Verb::Exec => ir::Access::Exec(path),
                    _ => ir::Access::Read(path),
                }
            }
            Access::Env { name } => ir::Access::Env(world.names[name].clone()),
            Access::Connect { name, address, port, udp } => ir::Access::Connect {
                name: name.map(|name| Name::parse(&world.host_names[name].join(".")).unwrap()),
                address: match world.addresses[address] {
                    Address::V4(bits) => IpAddr::V4(Ipv4Addr::from(bits)),
                    Address::V6(bits) => IpAddr::V6(Ipv6Addr::from(bits)),
                },
                port,
                protocol: if udp { Protocol::Udp } else { Protocol::Tcp },
            },
        }
    }

    /// The rules, for people.
    pub fn describe(&self, world: &World) -> String {
        let mut text = format!("read open {}, env open {}\n", self.open_read, self.open_env);
        for (index, rule) in self.rules.iter().enumerate() {
            text += &format!("{index}: {:?} {:?} ", rule.effect, rule.verb);
            text += &match &rule.what {
                What::Paths { include, exclude } => {
                    let all = |list: &[usize]| list.iter().map(|one| world.path_text(*one)).collect::<Vec<_>>();
                    format!("{:?} except {:?}", all(include), all(exclude))
                }
                What::Hosts { include, exclude, ports, tcp, udp } => {
                    let all = |list: &[usize]| list.iter().map(|one| world.hosts[*one].clone()).collect::<Vec<_>>();
                    format!("{:?} except {:?} {:?} {tcp} {udp}", all(include), all(exclude), PORTS[*ports])
                }
                What::Addresses { include, exclude, ports, tcp, udp } => {
                    let all = |list: &[usize]| list.iter().map(|one| NETWORKS[*one]).collect::<Vec<_>>();
                    format!("{:?} except {:?} {:?} {tcp} {udp}", all(include), all(exclude), PORTS[*ports])
                }
                What::Names { include, exclude } => {
                    let all = |list: &[usize]| list.iter().map(|one| NAME_PATTERNS[*one]).collect::<Vec<_>>();
                    format!("{:?} except {:?}", all(include), all(exclude))
                }
            };
            text.push('\n');
        }
        text
    }
}

pub fn subject(world: &World, what: &What) -> Subject {
    let peers = |endpoint, ports: usize, tcp: bool, udp: bool| {
        let ports = PortSet::from_ranges(PORTS[ports].iter().map(|(low, high)| *low..=*high));
        Subject::Peers(PeerSet { endpoint, tcp, udp, ports })
    };
    match what {
        What::Paths { include, exclude } => Subject::Paths(path_set(world, include, exclude)),
        What::Hosts { include, exclude, ports, tcp, udp } => {
            peers(Endpoint::Hosts(host_set(world, include, exclude)), *ports, *tcp, *udp)
        }
        What::Addresses { include, exclude, ports, tcp, udp } => {
            let all = |list: &[usize]| -> AddressSet {
                list.iter().map(|network| parse_network(NETWORKS[*network]).unwrap()).collect()
            };
            peers(Endpoint::Addresses(all(include).difference(&all(exclude))), *ports, *tcp, *udp)
        }
        What::Names { include, exclude } => {
            let all = |list: &[usize]| list.iter().map(|one| name_pattern(NAME_PATTERNS[*one])).collect();
            Subject::Names(NameSet { include: all(include), exclude: all(exclude) })
        }
    }
}

pub fn path_set(world: &World, include: &[usize], exclude: &[usize]) -> PathSet {
    let all = |list: &[usize]| list.iter().map(|one| path_pattern(&world.patterns[*one])).collect();
    PathSet { include: all(include), exclude: all(exclude) }
}

pub fn host_set(world: &World, include: &[usize], exclude: &[usize]) -> HostSet {
    let all = |list: &[usize]| list.iter().map(|one| host_pattern(&world.hosts[*one])).collect();
    HostSet { include: all(include), exclude: all(exclude) }
}

fn path_pattern(pattern: &brute::PathPattern) -> Pattern {
    let segment = |text: &&str| match *text {
        "**" => Segment::AnyDepth,
        text => glob(text).map_or_else(|| Segment::Literal(text.into()), Segment::Glob),
    };
    Pattern {
        start: if pattern.variable { Start::Variable("W".into()) } else { Start::Root },
        segments: pattern.segments.iter().map(segment).collect(),
        reach: match pattern.reach {
            brute::Reach::Tree => vocabulary::Reach::Tree,
            brute::Reach::Exact => vocabulary::Reach::Exact,
            brute::Reach::Below => vocabulary::Reach::Below,
        },
    }
}

fn host_pattern(pattern: &brute::HostPattern) -> host::Pattern {
    if pattern.labels.is_empty() {
        return host::Pattern::Any;
    }
    let star = if pattern.below { "*." } else { "" };
    host::Pattern::parse(&format!("{star}{}", pattern.labels.join("."))).unwrap()
}

fn name_pattern(text: &str) -> name::Pattern {
    glob(text).map_or_else(|| name::Pattern::Literal(text.into()), name::Pattern::Glob)
}

fn glob(text: &str) -> Option<Glob> {
    if !text.contains(['*', '?', '[']) {
        return None;
    }
    let mut pieces: Vec<Piece> = Vec::new();
    let mut rest = text;
    while let Some(char) = rest.chars().next() {
        rest = &rest[char.len_utf8()..];
        match char {
            '*' => pieces.push(Piece::AnyRun),
            '?' => pieces.push(Piece::AnyChar),
            '[' => {
                rest = rest.strip_prefix("!a]").unwrap();
                pieces.push(Piece::Class { negated: true, ranges: vec![('a', 'a')] });
            }
            _ => match pieces.last_mut() {
                Some(Piece::Text(text)) => text.extend(char.to_string().bytes()),
                _ => pieces.push(Piece::Text(char.to_string().into_bytes())),
            },
        }
    }
    Some(Glob::from(pieces))
}

/// A batch that reaches too little proves nothing.
pub fn assert_coverage(batch: &[Reached]) {
    let share = |what: &str, least: usize, of: &dyn Fn(&Reached) -> bool, among: &dyn Fn(&Reached) -> bool| {
        let whole = batch.iter().filter(|one| among(one)).count();
        let part = batch.iter().filter(|one| among(one) && of(one)).count();
        println!("{what}: {part} of {whole}");
        assert!(part * 100 >= whole * least && part > 0, "{what}: {part} of {whole} is less than {least} %");
    };
    let all = |_: &Reached| true;
    for why in [Why::Forbidden, Why::Denied, Why::Allowed, Why::Default] {
        share(&format!("{why:?}"), 5, &|one| one.verdict.why == why, &all);
    }
    share("read denied", 5, &|one| one.verdict.why == Why::ReadDenied, &|one| {
        matches!(one.kind, Kind::Write | Kind::Exec)
    });
    share("special", 5, &|one| one.verdict.why == Why::Special, &|one| one.kind == Kind::Name);
    share("allowed", 20, &|one| one.verdict.allowed, &all);
    share("refused", 20, &|one| !one.verdict.allowed, &all);
    share("reopened", 10, &|one| one.verdict.reopened, &all);
    share("with except", 5, &|one| one.except, &all);
}
