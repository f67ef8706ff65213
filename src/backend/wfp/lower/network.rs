//! The rules about addresses → filters. What is decided by name is the proxy's: of it the filters only hold the way there.
//!
//! One rule is one filter in each family it has addresses of, where [`order`](super::order) finds an order; an allow that
//! has none is replaced by blocks of exactly what it permits.

use super::Needs;
use super::order::order;
use crate::backend::wfp::plan::{Action, Family, Filter, Layer, Reason, TCP, UDP};
use crate::ir::{Access, Policy, Rule, RuleId, Subject, decide, more_specific};
use crate::sets::address::AddressSet;
use crate::sets::peer::{Endpoint, PeerSet, Protocol};
use crate::sets::port::PortSet;
use crate::vocabulary::{Effect, Verb};
use std::collections::BTreeMap;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

pub(super) const FAMILIES: [Family; 2] = [Family::V4, Family::V6];

impl Family {
    pub(super) fn of(address: IpAddr) -> Self {
        if address.is_ipv4() { Family::V4 } else { Family::V6 }
    }

    /// Its loopback address as Windows programs reach the proxy by it.
    fn loopback(self) -> IpAddr {
        match self {
            Family::V4 => Ipv4Addr::LOCALHOST.into(),
            Family::V6 => Ipv6Addr::LOCALHOST.into(),
        }
    }

    fn unspecified(self) -> IpAddr {
        match self {
            Family::V4 => Ipv4Addr::UNSPECIFIED.into(),
            Family::V6 => Ipv6Addr::UNSPECIFIED.into(),
        }
    }
}

/// The ports of each transport.
type Services = BTreeMap<u8, Vec<(u16, u16)>>;

/// A rule about addresses, and what it matches: of an allow its addresses, of what denies all forms that carry them too.
struct Ruled<'p> {
    id: RuleId,
    rule: &'p Rule,
    set: PeerSet,
}

pub(super) fn filters(policy: &Policy, needs: &Needs) -> Vec<Filter> {
    let mut filters = Vec::new();
    filters.extend(Verbs { policy, verb: Verb::Connect }.filters(&[Layer::Connect]));
    filters.extend(Verbs { policy, verb: Verb::Listen }.filters(&[Layer::Listen, Layer::Accept]));
    filters.extend(own_addresses(policy));
    let top = filters.iter().map(|filter| filter.weight).max().unwrap_or(0);
    for family in FAMILIES {
        let bare = |layer, action, weight, reason| Filter {
            layer,
            family,
            action,
            weight,
            protocols: Vec::new(),
            addresses: Vec::new(),
            ports: Vec::new(),
            reason,
        };
        let ports = vec![(*needs.proxy_ports.start(), *needs.proxy_ports.end())];
        if proxied(policy) {
            let proxy = bare(Layer::Connect, Action::Permit, top + 1, Reason::Proxy);
            let at = family.loopback();
            filters.push(Filter { protocols: vec![TCP], addresses: vec![(at, at)], ports: ports.clone(), ..proxy });
        }
        let taking = bare(Layer::Assign, Action::Block, 2, Reason::ProxyPorts);
        filters.push(Filter { protocols: vec![TCP], ports, ..taking });
        let binding = bare(Layer::Assign, Action::Permit, 1, Reason::Binding);
        filters.push(Filter { protocols: vec![TCP, UDP], ..binding });
        for layer in [Layer::Connect, Layer::Listen, Layer::Accept, Layer::Assign] {
            filters.push(bare(layer, Action::Block, 0, Reason::Default));
        }
    }
    once_each(filters)
}

/// Whether the command is given a proxy: as soon as anything may be connected to, since programs that are told of a proxy
/// go to addresses by it too.
pub(super) fn proxied(policy: &Policy) -> bool {
    policy.rules_of(Verb::Connect).any(|(_, rule)| rule.effect == Effect::Allow)
}

/// The rules of one verb.
#[derive(Clone, Copy)]
struct Verbs<'p> {
    policy: &'p Policy,
    verb: Verb,
}

impl<'p> Verbs<'p> {
    fn filters(self, layers: &[Layer]) -> Vec<Filter> {
        let rules: Vec<Ruled<'p>> = self.policy.rules_of(self.verb).filter_map(|(id, rule)| ruled(id, rule)).collect();
        let (forbids, ordered): (Vec<&Ruled<'p>>, Vec<&Ruled<'p>>) =
            rules.iter().partition(|ruled| ruled.rule.effect == Effect::Forbid);
        let is_allow: Vec<bool> = ordered.iter().map(|ruled| ruled.rule.effect == Effect::Allow).collect();
        let below: Vec<Vec<usize>> = ordered
            .iter()
            .map(|upper| {
                let others = ordered.iter().enumerate();
                others.filter(|(_, lower)| self.stands_above(upper, lower)).map(|(at, _)| at).collect()
            })
            .collect();
        let order = order(&below, &is_allow);
        let mut filters = Vec::new();
        for layer in layers {
            for family in FAMILIES {
                for (ruled, level) in ordered.iter().zip(&order.levels) {
                    match level {
                        Some(level) => filters.extend(whole(ruled, *layer, family, *level)),
                        None => filters.extend(self.blocks(&rules, ruled, *layer, family, order.top + 1)),
                    }
                }
                for ruled in &forbids {
                    filters.extend(whole(ruled, *layer, family, order.top + 1));
                }
            }
        }
        filters
    }

    fn stands_above(self, upper: &Ruled<'p>, lower: &Ruled<'p>) -> bool {
        let inside = |allow: &Ruled<'_>, deny: &Ruled<'_>| more_specific(self.policy, allow.id, deny.id);
        let above = match (upper.rule.effect, lower.rule.effect) {
            (Effect::Allow, Effect::Deny) => inside(upper, lower),
            (Effect::Deny, Effect::Allow) => !inside(lower, upper),
            _ => false,
        };
        above && upper.set.overlap(&lower.set).is_some()
    }

    /// What a rule permits, in blocks of one transport or both, some addresses and some ports.
    fn blocks(self, rules: &[Ruled<'p>], allow: &Ruled<'p>, layer: Layer, family: Family, weight: u64) -> Vec<Filter> {
        let sets = || rules.iter().map(|ruled| &ruled.set);
        let mut ports = pieces(sets().flat_map(|set| intervals(&set.ports)));
        ports.retain(|(low, _)| allow.set.ports.contains(*low));
        let addresses = pieces(sets().flat_map(|set| ranges(set, family)).map(|(low, high)| (bits(low), bits(high))));
        let addresses: Vec<(IpAddr, IpAddr)> = addresses
            .into_iter()
            .map(|(low, high)| (address(family, low), address(family, high)))
            .filter(|(low, _)| matches!(&allow.set.endpoint, Endpoint::Addresses(set) if set.contains(*low)))
            .collect();
        // The transports and ports that permit the same addresses go together.
        let mut blocks: BTreeMap<Vec<(IpAddr, IpAddr)>, Services> = BTreeMap::new();
        for (protocol, number) in [(Protocol::Tcp, TCP), (Protocol::Udp, UDP)] {
            for (low, high) in &ports {
                if !allow.set.covers(protocol, *low) {
                    continue;
                }
                let permitted = |at: &&(IpAddr, IpAddr)| self.permits(at.0, *low, protocol);
                let permitted: Vec<_> = addresses.iter().filter(permitted).copied().collect();
                if !permitted.is_empty() {
                    let permitted = AddressSet::from_ranges(permitted).ranges().collect();
                    blocks.entry(permitted).or_default().entry(number).or_default().push((*low, *high));
                }
            }
        }
        let mut filters = Vec::new();
        for (addresses, by_protocol) in blocks {
            let mut by_ports: BTreeMap<Vec<(u16, u16)>, Vec<u8>> = BTreeMap::new();
            for (protocol, ports) in by_protocol {
                let ports = PortSet::from_ranges(ports.into_iter().map(|(low, high)| low..=high));
                by_ports.entry(intervals(&ports)).or_default().push(protocol);
            }
            for (ports, protocols) in by_ports {
                let protocols = if layer == Layer::Listen { Vec::new() } else { protocols };
                let (action, addresses) = (Action::Permit, addresses.clone());
                filters.push(Filter {
                    layer,
                    family,
                    action,
                    weight,
                    protocols,
                    addresses,
                    ports,
                    reason: reason(allow),
                });
            }
        }
        filters
    }

    fn permits(self, address: IpAddr, port: u16, protocol: Protocol) -> bool {
        let access = match self.verb {
            Verb::Listen => Access::Listen { address, port },
            _ => Access::Connect { name: None, address, port, protocol },
        };
        decide(self.policy, &access).allowed
    }
}

/// A rule whose set is one of addresses.
fn ruled(id: RuleId, rule: &Rule) -> Option<Ruled<'_>> {
    let Subject::Peers(set) = &rule.subject else { return None };
    let Endpoint::Addresses(addresses) = &set.endpoint else { return None };
    let mut addresses = addresses.clone();
    let mut set = set.clone();
    if rule.verb == Verb::Listen {
        // The unspecified address is each address of its family.
        for unspecified in FAMILIES.map(Family::unspecified) {
            if addresses.contains(unspecified) {
                addresses = addresses.union(&AddressSet::family(unspecified));
            }
        }
        set.udp = false;
    }
    if rule.effect != Effect::Allow {
        addresses = addresses.carried();
    }
    set.endpoint = Endpoint::Addresses(addresses);
    Some(Ruled { id, rule, set })
}

/// The filter of a rule, unless it has no addresses of the family.
fn whole(ruled: &Ruled<'_>, layer: Layer, family: Family, weight: u64) -> Option<Filter> {
    let mut addresses: Vec<(IpAddr, IpAddr)> = ranges(&ruled.set, family).collect();
    if addresses.is_empty() || ruled.set.ports.is_empty() {
        return None;
    }
    if addresses == AddressSet::family(family.unspecified()).ranges().collect::<Vec<_>>() {
        addresses.clear();
    }
    let mut protocols = Vec::new();
    if layer != Layer::Listen {
        protocols.extend(ruled.set.tcp.then_some(TCP));
        protocols.extend(ruled.set.udp.then_some(UDP));
        if protocols.is_empty() {
            return None;
        }
    }
    let action = if ruled.rule.effect == Effect::Allow { Action::Permit } else { Action::Block };
    let ports = intervals(&ruled.set.ports);
    Some(Filter { layer, family, action, weight, protocols, addresses, ports, reason: reason(ruled) })
}

/// Where listening on each address at once is denied because one of the machine's own is: known once the policy is bound.
fn own_addresses(policy: &Policy) -> Vec<Filter> {
    let mut elsewhere = policy.clone();
    elsewhere.facts.own_addresses.clear();
    let cuts = policy.rules_of(Verb::Listen).filter_map(|(_, rule)| match &rule.subject {
        Subject::Peers(set) => Some(intervals(&set.ports)),
        _ => None,
    });
    let ports = pieces(cuts.flatten());
    let mut filters = Vec::new();
    for family in FAMILIES {
        let at = family.unspecified();
        let allowed = |policy: &Policy, port| decide(policy, &Access::Listen { address: at, port }).allowed;
        let refused = ports.iter().filter(|(low, _)| allowed(&elsewhere, *low) && !allowed(policy, *low));
        let refused = refused.map(|(low, high)| *low..=*high);
        let refused = PortSet::from_ranges(refused);
        if !refused.is_empty() {
            filters.push(Filter {
                layer: Layer::Listen,
                family,
                action: Action::Block,
                // Above every rule of listening: there are not that many.
                weight: u64::from(u32::MAX),
                protocols: Vec::new(),
                addresses: vec![(at, at)],
                ports: intervals(&refused),
                reason: Reason::OwnAddresses,
            });
        }
    }
    filters
}

fn reason(ruled: &Ruled<'_>) -> Reason {
    Reason::Rules(vec![(ruled.rule.effect, ruled.rule.verb, ruled.rule.span)])
}

fn intervals(ports: &PortSet) -> Vec<(u16, u16)> {
    ports.ranges().map(|range| (*range.start(), *range.end())).collect()
}

fn ranges(set: &PeerSet, family: Family) -> impl Iterator<Item = (IpAddr, IpAddr)> + '_ {
    let addresses = match &set.endpoint {
        Endpoint::Addresses(addresses) => Some(addresses),
        Endpoint::Hosts(_) => None,
    };
    addresses.into_iter().flat_map(AddressSet::ranges).filter(move |(low, _)| Family::of(*low) == family)
}

fn bits(address: IpAddr) -> u128 {
    match address {
        IpAddr::V4(v4) => u128::from(v4.to_bits()),
        IpAddr::V6(v6) => v6.to_bits(),
    }
}

fn address(family: Family, bits: u128) -> IpAddr {
    match family {
        Family::V4 => Ipv4Addr::from_bits(u32::try_from(bits).unwrap_or(u32::MAX)).into(),
        Family::V6 => Ipv6Addr::from_bits(bits).into(),
    }
}

/// The union of inclusive intervals, cut wherever one of them begins or ends.
fn pieces<N: Copy + Ord + Into<u128> + TryFrom<u128>>(intervals: impl Iterator<Item = (N, N)>) -> Vec<(N, N)> {
    let intervals: Vec<(u128, Option<u128>)> =
        intervals.map(|(low, high)| (low.into(), high.into().checked_add(1))).collect();
    let mut cuts: Vec<u128> = intervals.iter().flat_map(|(low, after)| [Some(*low), *after]).flatten().collect();
    cuts.sort_unstable();
    cuts.dedup();
    let end = |at: usize| cuts.get(at + 1).map_or(u128::MAX, |next| next - 1);
    let covered = |at: u128| intervals.iter().any(|(low, after)| *low <= at && after.is_none_or(|after| at < after));
    let all = cuts.iter().enumerate().filter(|(_, low)| covered(**low)).map(|(at, low)| (*low, end(at)));
    all.filter_map(|(low, high)| Some((N::try_from(low).ok()?, N::try_from(high).ok()?))).collect()
}

/// Filters that ask the same and answer the same are one, with the highest weight of them.
fn once_each(filters: Vec<Filter>) -> Vec<Filter> {
    let mut kept: Vec<Filter> = Vec::new();
    for filter in filters {
        let same = |other: &&mut Filter| {
            (filter.layer, filter.family, filter.action) == (other.layer, other.family, other.action)
                && filter.protocols == other.protocols
                && filter.addresses == other.addresses
                && filter.ports == other.ports
        };
        match kept.iter_mut().find(same) {
            Some(other) => {
                other.weight = other.weight.max(filter.weight);
                if let (Reason::Rules(all), Reason::Rules(more)) = (&mut other.reason, filter.reason) {
                    all.extend(more);
                }
            }
            None => kept.push(filter),
        }
    }
    let place = |filter: &Filter| (filter.layer, filter.family, u64::MAX - filter.weight);
    kept.sort_by(|a, b| {
        (place(a), a.action, &a.addresses, &a.ports, &a.protocols).cmp(&(
            place(b),
            b.action,
            &b.addresses,
            &b.ports,
            &b.protocols,
        ))
    });
    kept
}
