//! The filters, read back and proved to be the policy.
//!
//! Shares nothing with what emits them. The text is read as the system would take it: what it would refuse, or take in more
//! ways than one, is a fault. Addresses and ports are then cut wherever a filter or a rule begins or ends, and each piece is
//! compared with `decide`: all connections there are, not a sample.

use crate::backend::gap::{Gap, Operation};
use crate::backend::wfp::{KEPT_PORTS, PROXY_REACHED};
use crate::ir::{Access, Policy, Rule, Subject, decide};
use crate::sets::address::{AddressSet, canonical};
use crate::sets::peer::{Endpoint, Protocol};
use crate::verify::Fault;
use crate::vocabulary::{Effect, Verb};
use serde_json::Value;
use std::collections::BTreeSet;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::ops::RangeInclusive;

type Read<T> = Result<T, Fault>;

/// Every layer that must be closed; each ends in `_V4` and `_V6`.
const CONNECT: &str = "FWPM_LAYER_ALE_AUTH_CONNECT";
const LISTEN: &str = "FWPM_LAYER_ALE_AUTH_LISTEN";
const ACCEPT: &str = "FWPM_LAYER_ALE_AUTH_RECV_ACCEPT";
const ASSIGN: &str = "FWPM_LAYER_ALE_RESOURCE_ASSIGNMENT";

/// The fields that the classification of each layer carries, of those that may be asked about (fwpmu.h, and "Filtering
/// conditions available at each filtering layer").
const FIELDS: &[(&str, &[Field])] = &[
    (
        CONNECT,
        &[Field::User, Field::Protocol, Field::LocalAddress, Field::LocalPort, Field::RemoteAddress, Field::RemotePort],
    ),
    (
        ACCEPT,
        &[Field::User, Field::Protocol, Field::LocalAddress, Field::LocalPort, Field::RemoteAddress, Field::RemotePort],
    ),
    (LISTEN, &[Field::User, Field::LocalAddress, Field::LocalPort]),
    (ASSIGN, &[Field::User, Field::Protocol, Field::LocalAddress, Field::LocalPort]),
];

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Field {
    User,
    Protocol,
    LocalAddress,
    LocalPort,
    RemoteAddress,
    RemotePort,
}

impl Field {
    fn named(name: &str) -> Read<Self> {
        Ok(match name {
            "FWPM_CONDITION_ALE_USER_ID" => Field::User,
            "FWPM_CONDITION_IP_PROTOCOL" => Field::Protocol,
            "FWPM_CONDITION_IP_LOCAL_ADDRESS" => Field::LocalAddress,
            "FWPM_CONDITION_IP_LOCAL_PORT" => Field::LocalPort,
            "FWPM_CONDITION_IP_REMOTE_ADDRESS" => Field::RemoteAddress,
            "FWPM_CONDITION_IP_REMOTE_PORT" => Field::RemotePort,
            _ => return Err(unread(format!("the field `{name}` is not known"))),
        })
    }
}

/// A filter as the system takes it.
struct Filter {
    layer: String,
    v6: bool,
    permits: bool,
    weight: u64,
    key: String,
    /// Each field that is asked about, once, with the intervals that satisfy it.
    asks: Vec<(Field, Vec<(u128, u128)>)>,
}

/// What is classified: the value of each field that a layer carries.
#[derive(Clone, Copy)]
struct Packet {
    protocol: u8,
    local: (u128, u16),
    remote: (u128, u16),
}

/// Proves that the filters permit to the account what the policy permits of connections, but for two gaps: that the proxy is
/// reached at `proxy_ports` of loopback, and that nobody else listens there. Each is in force where it is declared, and
/// declared only where it is in force.
///
/// # Errors
/// The first fault, with a witness.
pub fn prove_filters(
    policy: &Policy,
    gaps: &[Gap],
    proxy_ports: &RangeInclusive<u16>,
    text: &str,
) -> Result<(), Fault> {
    let filters = read(text)?;
    let declared = |code| gaps.iter().any(|gap| gap.kind.code == code);
    let connects = policy.rules_of(Verb::Connect).any(|(_, rule)| rule.effect == Effect::Allow);
    if declared(&PROXY_REACHED) && !connects {
        return Err(Fault::NoGap { gap: PROXY_REACHED.name });
    }
    let kept = |rule: &Rule| match &rule.subject {
        Subject::Peers(set) => rule.effect == Effect::Allow && proxy_ports.clone().any(|port| set.ports.contains(port)),
        _ => false,
    };
    if declared(&KEPT_PORTS) && !policy.rules_of(Verb::Listen).any(|(_, rule)| kept(rule)) {
        return Err(Fault::NoGap { gap: KEPT_PORTS.name });
    }
    for v6 in [false, true] {
        let own = |layer: &str| -> Vec<&Filter> {
            let mut own: Vec<&Filter> =
                filters.iter().filter(|filter| filter.layer == layer && filter.v6 == v6).collect();
            own.sort_by_key(|filter| std::cmp::Reverse(filter.weight));
            own
        };
        let proof = Proof {
            policy,
            proxy_ports,
            proxied: declared(&PROXY_REACHED),
            kept: declared(&KEPT_PORTS),
            v6,
            connect: own(CONNECT),
            listen: own(LISTEN),
            accept: own(ACCEPT),
            assign: own(ASSIGN),
        };
        for layer in [&proof.connect, &proof.listen, &proof.accept, &proof.assign] {
            unambiguous(layer)?;
        }
        proof.connections()?;
        proof.listening()?;
        proof.others()?;
    }
    Ok(())
}

struct Proof<'a> {
    policy: &'a Policy,
    proxy_ports: &'a RangeInclusive<u16>,
    /// Whether it is declared that the proxy is reached there, and that nobody else listens there.
    proxied: bool,
    kept: bool,
    v6: bool,
    connect: Vec<&'a Filter>,
    listen: Vec<&'a Filter>,
    accept: Vec<&'a Filter>,
    assign: Vec<&'a Filter>,
}

impl Proof<'_> {
    fn connections(&self) -> Read<()> {
        let loopback = if self.v6 { Ipv6Addr::LOCALHOST.to_bits() } else { u128::from(Ipv4Addr::LOCALHOST.to_bits()) };
        let (mut addresses, mut ports) =
            self.cuts(Verb::Connect, &self.connect, [Field::RemoteAddress, Field::RemotePort]);
        addresses.extend([loopback, loopback + 1]);
        ports.extend([u32::from(*self.proxy_ports.start()), u32::from(*self.proxy_ports.end()) + 1]);
        for (protocol, number) in [(Protocol::Tcp, 6), (Protocol::Udp, 17)] {
            for at in self.places(&addresses) {
                for port in ports_of(&ports) {
                    let address = self.address(at);
                    let packet = Packet { protocol: number, local: (0, EPHEMERAL), remote: (at, port) };
                    let permitted = passes(&self.assign, packet) && passes(&self.connect, packet);
                    let access = Access::Connect { name: None, address, port, protocol };
                    let proxy = self.proxied && number == 6 && at == loopback && self.proxy_ports.contains(&port);
                    same(permitted, proxy || decide(self.policy, &access).allowed, &access)?;
                }
            }
        }
        Ok(())
    }

    fn listening(&self) -> Read<()> {
        let fields = [Field::LocalAddress, Field::LocalPort];
        let (mut addresses, mut ports) = self.cuts(Verb::Listen, &self.listen, fields);
        for layer in [&self.accept, &self.assign] {
            let (more, of_ports) = self.cuts(Verb::Listen, layer, fields);
            addresses.extend(more);
            ports.extend(of_ports);
        }
        // Each address at once is a place of its own.
        addresses.insert(1);
        ports.extend([u32::from(*self.proxy_ports.start()), u32::from(*self.proxy_ports.end()) + 1]);
        for at in self.places(&addresses) {
            for port in ports_of(&ports) {
                let access = Access::Listen { address: self.address(at), port };
                let packet = Packet { protocol: 6, local: (at, port), remote: (0, EPHEMERAL) };
                let mut permitted = passes(&self.assign, packet) && passes(&self.listen, packet);
                // A connection comes in at one address.
                permitted &= at == 0 || passes(&self.accept, packet);
                let expected = decide(self.policy, &access).allowed && !(self.kept && self.proxy_ports.contains(&port));
                same(permitted, expected, &access)?;
                // What comes in over another socket is decided alike.
                if at != 0 && passes(&self.accept, packet) && !decide(self.policy, &access).allowed {
                    return Err(looser(Operation::Listen, access.words().1));
                }
            }
        }
        Ok(())
    }

    /// Other transports, datagrams from outside, and port 0 are no accesses, and closed.
    fn others(&self) -> Read<()> {
        let ports: BTreeSet<u32> = [1].into();
        for protocol in (0..=u8::MAX).filter(|protocol| ![6, 17].contains(protocol)) {
            let packet = Packet { protocol, local: (1, 1), remote: (1, 1) };
            if passes(&self.assign, packet) {
                return Err(looser(Operation::Listen, format!("a socket of protocol {protocol}")));
            }
        }
        let (addresses, of_ports) = self.cuts(Verb::Listen, &self.accept, [Field::LocalAddress, Field::LocalPort]);
        for at in self.places(&addresses) {
            for port in ports_of(&ports.union(&of_ports).copied().collect()) {
                let packet = Packet { protocol: 17, local: (at, port), remote: (1, 1) };
                if passes(&self.accept, packet) {
                    return Err(looser(Operation::Listen, format!("a datagram to {}:{port}", self.address(at))));
                }
            }
        }
        Ok(())
    }

    /// Where something may begin, of some filters and of the policy's rules.
    fn cuts(&self, verb: Verb, filters: &[&Filter], fields: [Field; 2]) -> (BTreeSet<u128>, BTreeSet<u32>) {
        let (mut addresses, mut ports) = (BTreeSet::from([0]), BTreeSet::from([0]));
        for (field, intervals) in filters.iter().flat_map(|filter| &filter.asks) {
            for (low, high) in intervals {
                if *field == fields[0] {
                    addresses.insert(*low);
                    addresses.extend(high.checked_add(1));
                } else if *field == fields[1] {
                    ports.extend([low, &(high + 1)].map(|port| u32::try_from(*port).unwrap_or(u32::MAX)));
                }
            }
        }
        for (_, rule) in self.policy.rules_of(verb) {
            let Subject::Peers(set) = &rule.subject else { continue };
            for range in set.ports.ranges() {
                ports.extend([u32::from(*range.start()), u32::from(*range.end()) + 1]);
            }
            let Endpoint::Addresses(own) = &set.endpoint else { continue };
            for (low, high) in own.carried().ranges().filter(|(low, _)| low.is_ipv6() == self.v6) {
                addresses.insert(number(low));
                addresses.extend(number(high).checked_add(1));
            }
        }
        (addresses, ports)
    }

    /// One address of each piece, of those the family has: a mapped IPv4 address is none of IPv6.
    fn places(&self, cuts: &BTreeSet<u128>) -> Vec<u128> {
        let last = if self.v6 { u128::MAX } else { u128::from(u32::MAX) };
        let mut cuts: Vec<u128> = cuts.iter().copied().collect();
        if self.v6 {
            let mapped = AddressSet::family(Ipv6Addr::UNSPECIFIED.into());
            cuts.extend(mapped.ranges().map(|(low, _)| number(low)));
        }
        cuts.retain(|at| *at <= last && canonical(self.address(*at)).is_ipv6() == self.v6);
        cuts
    }

    fn address(&self, bits: u128) -> IpAddr {
        if self.v6 {
            Ipv6Addr::from_bits(bits).into()
        } else {
            Ipv4Addr::from_bits(u32::try_from(bits).unwrap_or(u32::MAX)).into()
        }
    }
}

/// A port that a socket is given where it asks for none.
const EPHEMERAL: u16 = 50_000;

fn ports_of(cuts: &BTreeSet<u32>) -> impl Iterator<Item = u16> + '_ {
    cuts.iter().filter_map(|port| u16::try_from(*port).ok())
}

fn same(permitted: bool, expected: bool, access: &Access) -> Read<()> {
    let operation = if matches!(access, Access::Listen { .. }) { Operation::Listen } else { Operation::Connect };
    let witness = access.words().1;
    match (permitted, expected) {
        (true, false) => Err(looser(operation, witness)),
        (false, true) => Err(Fault::Stricter { operation, witness }),
        _ => Ok(()),
    }
}

fn looser(operation: Operation, witness: String) -> Fault {
    Fault::Looser { operation, witness }
}

/// The answer of the first that matches, the highest first; what none matches is permitted.
fn passes(filters: &[&Filter], packet: Packet) -> bool {
    filters.iter().find(|filter| filter.matches(packet)).is_none_or(|filter| filter.permits)
}

impl Filter {
    fn matches(&self, packet: Packet) -> bool {
        self.asks.iter().all(|(field, intervals)| {
            let value = match field {
                Field::User => return true,
                Field::Protocol => u128::from(packet.protocol),
                Field::LocalAddress => packet.local.0,
                Field::LocalPort => u128::from(packet.local.1),
                Field::RemoteAddress => packet.remote.0,
                Field::RemotePort => u128::from(packet.remote.1),
            };
            intervals.iter().any(|(low, high)| (*low..=*high).contains(&value))
        })
    }

    /// Whether something may match both.
    fn meets(&self, other: &Filter) -> bool {
        self.asks.iter().all(|(field, own)| {
            let theirs = other.asks.iter().find(|(of, _)| of == field);
            theirs.is_none_or(|(_, theirs)| {
                own.iter().any(|(low, high)| theirs.iter().any(|(from, to)| low <= to && from <= high))
            })
        })
    }
}

/// Of filters with one weight the system takes any first.
fn unambiguous(filters: &[&Filter]) -> Read<()> {
    for (at, filter) in filters.iter().enumerate() {
        for other in filters[at + 1..].iter().take_while(|other| other.weight == filter.weight) {
            if other.permits != filter.permits && filter.meets(other) {
                return Err(unread(format!("the filters {} and {} share a weight", filter.key, other.key)));
            }
        }
    }
    Ok(())
}

fn read(text: &str) -> Read<Vec<Filter>> {
    let whole: Value = serde_json::from_str(text).map_err(|error| unread(error.to_string()))?;
    if whole["version"] != 1 {
        return Err(unread("the version is not 1".to_owned()));
    }
    let sublayer = string(&whole["sublayer"]["subLayerKey"])?;
    let provider = string(&whole["provider"]["providerKey"])?;
    let filters = whole["filters"].as_array().ok_or_else(|| unread("there is no list of filters".to_owned()))?;
    let mut keys = BTreeSet::new();
    let mut read = Vec::new();
    for filter in filters {
        let filter = one(filter, sublayer, provider)?;
        if !keys.insert(filter.key.clone()) {
            return Err(unread(format!("two filters have the key {}", filter.key)));
        }
        read.push(filter);
    }
    Ok(read)
}

fn one(filter: &Value, sublayer: &str, provider: &str) -> Read<Filter> {
    let key = string(&filter["filterKey"])?.to_owned();
    if filter["subLayerKey"] != sublayer || filter["providerKey"] != provider {
        return Err(unread(format!("the filter {key} is of another sublayer or provider")));
    }
    if filter["flags"].as_array().is_none_or(|flags| !flags.is_empty()) {
        return Err(unread(format!("the filter {key} has flags")));
    }
    let permits = match filter["action"]["type"].as_str() {
        Some("FWP_ACTION_PERMIT") => true,
        Some("FWP_ACTION_BLOCK") => false,
        _ => return Err(unread(format!("the filter {key} neither permits nor blocks"))),
    };
    let weight = filter["weight"]["uint64"].as_u64().filter(|_| filter["weight"]["type"] == "FWP_UINT64");
    let weight = weight.ok_or_else(|| unread(format!("the filter {key} has no exact weight")))?;
    let name = string(&filter["layerKey"])?;
    let (layer, v6) = match (name.strip_suffix("_V4"), name.strip_suffix("_V6")) {
        (Some(layer), _) => (layer, false),
        (_, Some(layer)) => (layer, true),
        _ => return Err(unread(format!("the layer `{name}` is not known"))),
    };
    let Some((_, fields)) = FIELDS.iter().find(|(known, _)| *known == layer) else {
        return Err(unread(format!("the layer `{name}` is not known")));
    };
    let mut asks: Vec<(Field, Vec<(u128, u128)>)> = Vec::new();
    for condition in filter["filterCondition"].as_array().ok_or_else(|| unread(format!("{key} has no conditions")))? {
        let field = Field::named(string(&condition["fieldKey"])?)?;
        if !fields.contains(&field) {
            return Err(unread(format!("the filter {key} asks {field:?} at `{name}`, which does not carry it")));
        }
        let interval = interval(field, condition, v6)?;
        // Only neighbours are alternatives.
        let again = asks.iter().any(|(known, _)| *known == field);
        match asks.last_mut() {
            Some((last, intervals)) if *last == field => intervals.push(interval),
            _ if again => return Err(unread(format!("the filter {key} asks {field:?} in two places"))),
            _ => asks.push((field, vec![interval])),
        }
    }
    if asks.first().is_none_or(|(field, intervals)| *field != Field::User || intervals.len() != 1) {
        return Err(unread(format!("the filter {key} is not for the command's account alone")));
    }
    Ok(Filter { layer: layer.to_owned(), v6, permits, weight, key, asks })
}

/// The values that satisfy a condition.
fn interval(field: Field, condition: &Value, v6: bool) -> Read<(u128, u128)> {
    let value = &condition["conditionValue"];
    let odd = || unread(format!("a condition is not understood: {condition}"));
    let ranged = match condition["matchType"].as_str() {
        Some("FWP_MATCH_EQUAL") => false,
        Some("FWP_MATCH_RANGE") => true,
        _ => return Err(odd()),
    };
    if ranged {
        if value["type"] != "FWP_RANGE_TYPE" || matches!(field, Field::User | Field::Protocol) {
            return Err(odd());
        }
        let end = |name: &str| scalar(field, &value["rangeValue"][name], v6).ok_or_else(odd);
        let (low, high) = (end("valueLow")?, end("valueHigh")?);
        return if low <= high { Ok((low, high)) } else { Err(odd()) };
    }
    match (field, value["type"].as_str()) {
        (Field::User, Some("FWP_SECURITY_DESCRIPTOR_TYPE")) if value["sd"] == "O:LSD:(A;;CC;;;$ACCOUNT)" => Ok((0, 0)),
        (Field::LocalAddress | Field::RemoteAddress, Some("FWP_V4_ADDR_MASK")) if !v6 => {
            let part = |name: &str| value["v4AddrMask"][name].as_str().and_then(|text| text.parse::<Ipv4Addr>().ok());
            let (Some(address), Some(mask)) = (part("addr"), part("mask")) else { return Err(odd()) };
            let (address, mask) = (address.to_bits(), mask.to_bits());
            // What is not one interval would be a set that nobody meant.
            if mask.leading_ones() + mask.trailing_zeros() != 32 || address & !mask != 0 {
                return Err(odd());
            }
            Ok((u128::from(address), u128::from(address | !mask)))
        }
        (Field::LocalAddress | Field::RemoteAddress, Some("FWP_V6_ADDR_MASK")) if v6 => {
            let value = &value["v6AddrMask"];
            let address = value["addr"].as_str().and_then(|text| text.parse::<Ipv6Addr>().ok()).ok_or_else(odd)?;
            let length = value["prefixLength"].as_u64().filter(|length| *length <= 128).ok_or_else(odd)?;
            let free = if length == 128 { 0 } else { u128::MAX >> length };
            let address = address.to_bits();
            if address & free == 0 { Ok((address, address | free)) } else { Err(odd()) }
        }
        _ => scalar(field, value, v6).map(|value| (value, value)).ok_or_else(odd),
    }
}

/// A single value of the type that the field has.
fn scalar(field: Field, value: &Value, v6: bool) -> Option<u128> {
    match (field, value["type"].as_str()?) {
        (Field::Protocol, "FWP_UINT8") => value["uint8"].as_u64().filter(|value| *value <= 0xff).map(u128::from),
        (Field::LocalPort | Field::RemotePort, "FWP_UINT16") => {
            value["uint16"].as_u64().filter(|value| *value <= 0xffff).map(u128::from)
        }
        (Field::LocalAddress | Field::RemoteAddress, "FWP_UINT32") if !v6 => {
            value["uint32"].as_str()?.parse::<Ipv4Addr>().ok().map(|address| u128::from(address.to_bits()))
        }
        (Field::LocalAddress | Field::RemoteAddress, "FWP_BYTE_ARRAY16_TYPE") if v6 => {
            value["byteArray16"].as_str()?.parse::<Ipv6Addr>().ok().map(Ipv6Addr::to_bits)
        }
        _ => None,
    }
}

fn string(value: &Value) -> Read<&str> {
    value.as_str().ok_or_else(|| unread(format!("`{value}` stands where a text must")))
}

fn number(address: IpAddr) -> u128 {
    match address {
        IpAddr::V4(v4) => u128::from(v4.to_bits()),
        IpAddr::V6(v6) => v6.to_bits(),
    }
}

fn unread(why: String) -> Fault {
    Fault::Unread(why)
}
