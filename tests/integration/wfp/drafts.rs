//! Generated policies about addresses, and what is asked of their filters.

use sandbox_runtime::ir::{Origin, Policy, Rule, Setting, Subject, Unset};
use sandbox_runtime::sets::address::{AddressSet, parse_network};
use sandbox_runtime::sets::peer::{Endpoint, PeerSet, Protocol};
use sandbox_runtime::sets::port::PortSet;
use sandbox_runtime::source::{Sources, Span};
pub use sandbox_runtime::vocabulary::Effect;
use sandbox_runtime::vocabulary::{System, Verb};
use serde_json::{Value, json};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// Nested, touching, equal and apart; forms that carry addresses of others; ends of both families.
const NETWORKS: &[&str] = &[
    "0.0.0.0/0",
    "0.0.0.0",
    "10.0.0.0/8",
    "10.0.0.0/9",
    "10.1.0.0/16",
    "10.1.2.0/24",
    "10.1.2.3",
    "10.1.2.4",
    "127.0.0.0/8",
    "127.0.0.1",
    "192.168.0.0/16",
    "255.255.255.255",
    "[::]/0",
    "[::]",
    "[::1]",
    "[2001:db8::]/32",
    "[2001:db8:1::]/48",
    "[2001:db8:1::5]",
    "[64:ff9b::]/96",
    "[64:ff9b::a01:203]",
    "[2002:a01::]/32",
    "[ffff:ffff:ffff:ffff:ffff:ffff:ffff:ffff]",
    "[::ffff:10.1.2.0]/120",
];

const PORTS: &[&[(u16, u16)]] = &[
    &[(1, 65535)],
    &[(80, 80), (443, 443)],
    &[(443, 443)],
    &[(1, 1023)],
    &[(8000, 8999)],
    &[(22, 22), (80, 80), (8080, 8081)],
    &[(65535, 65535)],
    &[(47085, 47095)],
    &[(1, 442), (444, 65535)],
];

/// A generator of numbers (splitmix64), so that a seed says everything.
pub struct Chance(u64);

/// Drawn anew for each run; `WFP_SEED` repeats one.
pub fn seed() -> u64 {
    let given = std::env::var("WFP_SEED").ok().and_then(|seed| seed.parse().ok());
    let seed = given.unwrap_or_else(|| {
        let since = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap();
        since.as_secs() ^ u64::from(since.subsec_nanos()) << 32
    });
    println!("WFP_SEED={seed}");
    seed
}

impl Chance {
    pub fn new(seed: u64) -> Self {
        Self(seed)
    }

    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (self.0 ^ self.0 >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mixed = (mixed ^ mixed >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ mixed >> 31
    }

    pub fn below(&mut self, end: usize) -> usize {
        usize::try_from(self.next() % end as u64).unwrap()
    }

    /// One in so many.
    pub fn one_in(&mut self, many: usize) -> bool {
        self.below(many) == 0
    }

    pub fn of<T: Copy>(&mut self, all: &[T]) -> T {
        all[self.below(all.len())]
    }
}

/// A policy, as choices.
pub struct Draft {
    rules: Vec<(Effect, Verb, PeerSet)>,
}

/// What is asked.
#[derive(Debug, Clone, Copy)]
pub enum Probe {
    Connect {
        address: IpAddr,
        port: u16,
        protocol: Protocol,
    },
    Listen {
        address: IpAddr,
        port: u16,
    },
    /// ICMP.
    Ping {
        address: IpAddr,
    },
    /// A datagram that nobody asked for.
    Receive {
        address: IpAddr,
        port: u16,
    },
    /// A local port is taken, or a raw socket opened.
    Bind {
        address: IpAddr,
        port: u16,
        protocol: u8,
    },
    /// A connection of another account.
    Other {
        address: IpAddr,
        port: u16,
    },
}

impl Draft {
    pub fn new(chance: &mut Chance) -> Self {
        let count = 1 + chance.below(9);
        let rules = (0..count).map(|_| {
            let effect = if chance.one_in(3) { Effect::Deny } else { Effect::Allow };
            let effect = if chance.one_in(25) { Effect::Forbid } else { effect };
            let verb = if chance.one_in(3) { Verb::Listen } else { Verb::Connect };
            (effect, verb, Self::set(effect, chance))
        });
        Self { rules: rules.collect() }
    }

    /// An allow is usually narrow and a deny wide, so that one opens the other.
    fn set(effect: Effect, chance: &mut Chance) -> PeerSet {
        let mut one = || parse_network(chance.of(NETWORKS)).unwrap();
        let mut addresses = one();
        if effect != Effect::Allow {
            let other = one();
            if addresses.is_subset(&other).is_ok() {
                addresses = other;
            }
        }
        let (more, less) = (one(), one());
        if chance.one_in(6) {
            addresses = addresses.union(&more);
        }
        if chance.one_in(6) {
            addresses = addresses.difference(&less);
        }
        let ports = if effect != Effect::Allow && !chance.one_in(3) { PORTS[0] } else { chance.of(PORTS) };
        let ports = PortSet::from_ranges(ports.iter().map(|(low, high)| *low..=*high));
        let (tcp, udp) = chance.of(&[(true, false), (true, true), (true, false), (false, true)]);
        let (tcp, udp) = if effect == Effect::Allow { (tcp, udp) } else { (true, true) };
        PeerSet { endpoint: Endpoint::Addresses(addresses), tcp, udp, ports }
    }

    /// The policy, and a text for its spans to point into.
    pub fn policy(&self) -> (Policy, Sources) {
        let mut sources = Sources::default();
        let source = sources.add("generated", "somewhere");
        let span = Span::new(source, 0..9);
        let mut policy = Policy::new(System::Windows, Setting { value: Effect::Deny, span });
        policy.rules = self
            .rules
            .iter()
            .map(|(effect, verb, set)| Rule {
                effect: *effect,
                verb: *verb,
                subject: Subject::Peers(if *verb == Verb::Listen {
                    PeerSet { tcp: true, udp: false, ..set.clone() }
                } else {
                    set.clone()
                }),
                because: None,
                unset: Unset::Refuse,
                span,
                origin: Origin::Given,
            })
            .collect();
        (policy, sources)
    }

    /// Something near where the rules begin and end.
    pub fn probe(&self, chance: &mut Chance) -> Probe {
        let verb = if chance.one_in(3) { Verb::Listen } else { Verb::Connect };
        let allows = !chance.one_in(4);
        let near = self.rules.iter().filter(|rule| rule.1 == verb && (rule.0 == Effect::Allow || !allows));
        let near: Vec<&PeerSet> = near.map(|rule| &rule.2).collect();
        let any = AddressSet::default();
        let (mut set, mut ports) =
            (parse_network(chance.of(NETWORKS)).unwrap(), PORTS[chance.below(PORTS.len())].to_vec());
        if !near.is_empty() && !chance.one_in(4) {
            let near = near[chance.below(near.len())];
            ports = near.ports.ranges().map(|range| (*range.start(), *range.end())).collect();
            let Endpoint::Addresses(addresses) = &near.endpoint else { unreachable!() };
            set = if addresses.is_empty() { any } else { addresses.clone() };
        }
        let ranges: Vec<(IpAddr, IpAddr)> = set.ranges().collect();
        let address = if ranges.is_empty() {
            Ipv4Addr::LOCALHOST.into()
        } else {
            let (low, high) = chance.of(&ranges);
            let end = if chance.one_in(2) { low } else { high };
            let step = chance.of(&[0, 0, 0, 0, 0, 0, -1, 1]);
            let inside = chance.one_in(3);
            between(low, high, end, step, inside.then(|| chance.next()))
        };
        let (low, high) = if ports.is_empty() { (1, 1) } else { chance.of(&ports) };
        let port = if chance.one_in(4) {
            chance.of(&[low.saturating_sub(1), high.saturating_add(1), 0])
        } else {
            chance.of(&[low, high, low / 2 + high.div_ceil(2)])
        };
        let address = if chance.one_in(20) { Ipv4Addr::LOCALHOST.into() } else { address };
        let (address, port) = if chance.one_in(15) {
            (
                chance.of(&[IpAddr::from(Ipv4Addr::LOCALHOST), Ipv6Addr::LOCALHOST.into()]),
                47079 + u16::try_from(chance.below(12)).unwrap(),
            )
        } else {
            (address, port)
        };
        match chance.below(30) {
            0 => Probe::Ping { address },
            1 => Probe::Receive { address, port },
            2 => Probe::Other { address, port },
            3 => Probe::Bind { address, port, protocol: chance.of(&[0, 1, 6, 17, 58, 255]) },
            _ if verb == Verb::Listen => Probe::Listen { address, port },
            _ => Probe::Connect { address, port, protocol: chance.of(&[Protocol::Tcp, Protocol::Tcp, Protocol::Udp]) },
        }
    }
}

fn between(low: IpAddr, high: IpAddr, end: IpAddr, step: i8, inside: Option<u64>) -> IpAddr {
    match (low, high, end) {
        (IpAddr::V4(low), IpAddr::V4(high), IpAddr::V4(end)) => {
            let (low, high) = (low.to_bits(), high.to_bits());
            let at = match inside {
                Some(chosen) if high > low => low + u32::try_from(chosen % u64::from(high - low)).unwrap(),
                _ => end.to_bits().saturating_add_signed(step.into()),
            };
            Ipv4Addr::from_bits(at).into()
        }
        (IpAddr::V6(low), IpAddr::V6(high), IpAddr::V6(end)) => {
            let (low, high) = (low.to_bits(), high.to_bits());
            let at = match inside {
                Some(chosen) if high > low => low + u128::from(chosen) * 0x1_0000_0001_0000_0001 % (high - low),
                _ => end.to_bits().saturating_add_signed(step.into()),
            };
            Ipv6Addr::from_bits(at).into()
        }
        _ => end,
    }
}

impl Probe {
    /// As the evaluator takes it.
    pub fn json(&self) -> Value {
        let number = |protocol| if protocol == Protocol::Udp { 17 } else { 6 };
        match *self {
            Probe::Connect { address, port, protocol } => {
                json!({ "operation": "connect", "address": address, "port": port, "protocol": number(protocol) })
            }
            Probe::Listen { address, port } => {
                json!({ "operation": "listen", "address": address, "port": port, "protocol": 6 })
            }
            Probe::Ping { address } => {
                json!({ "operation": "connect", "address": address, "port": 0, "protocol": if address.is_ipv4() { 1 } else { 58 } })
            }
            Probe::Receive { address, port } => {
                json!({ "operation": "receive", "address": address, "port": port, "protocol": 17 })
            }
            Probe::Bind { address, port, protocol } => {
                json!({ "operation": "bind", "address": address, "port": port, "protocol": protocol })
            }
            Probe::Other { address, port } => {
                json!({ "operation": "connect", "address": address, "port": port, "protocol": 6, "user": "S-1-5-21-1-2-3-1001" })
            }
        }
    }
}
