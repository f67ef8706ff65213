//! Connections and listening: products of a name or none, an address, a protocol and a port, with the guard that keeps names
//! away from special and private addresses.
//!
//! Ports are cut into the stretches that rules tell apart, and addresses, for each of those, likewise; of stretches that the
//! same rules cover one is looked at. What is left of each is a question about names.

mod change;
mod overlap;
mod worth;

use super::layer::{Layer, Scope, compiled, variables};
use super::objects::Best;
use super::spread::stretches;
use super::{Study, View};
use crate::ir::special::{self, NOMINAL};
use crate::ir::{Access, Policy, RuleId, Subject, more_specific};
use crate::sets::address::AddressSet;
use crate::sets::host::{Host, HostSet, Pattern};
use crate::sets::many::{Budget, Compiled, Exhausted, Index, Kind, Member, Refusal, Space};
use crate::sets::peer::{Endpoint, PeerSet, Protocol};
use crate::vocabulary::{Effect, Verb};
use std::collections::{BTreeMap, BTreeSet};
use std::net::IpAddr;
use std::sync::LazyLock;

pub(super) use change::{changes, widened};
pub(super) use overlap::{address_overlap, name_overlap};
pub(super) use worth::{AddressWorth, Named, address_worth, name_worth};

/// The rules of a verb over addresses, with the addresses that each means.
pub(super) struct Addresses {
    rules: Vec<(RuleId, AddressSet)>,
    /// The allows that are more specific than a deny, by id.
    openers: BTreeMap<RuleId, Vec<RuleId>>,
}

impl Addresses {
    fn new(policy: &Policy, verb: Verb) -> Self {
        let mut rules = Vec::new();
        for (id, rule) in policy.rules_of(verb) {
            let Subject::Peers(PeerSet { endpoint: Endpoint::Addresses(set), .. }) = &rule.subject else { continue };
            let mut set = set.clone();
            if verb == Verb::Listen {
                set = each_of_the_host(&set);
            }
            rules.push((id, if rule.effect == Effect::Allow { set } else { set.carried() }));
        }
        let mut openers = BTreeMap::new();
        let of = |effect| rules.iter().map(|(id, _)| *id).filter(move |id| policy.rule(*id).effect == effect);
        let allows: Vec<_> = of(Effect::Allow).collect();
        for deny in of(Effect::Deny) {
            let own: Vec<_> = allows.iter().copied().filter(|allow| more_specific(policy, *allow, deny)).collect();
            if !own.is_empty() {
                openers.insert(deny, own);
            }
        }
        Self { rules, openers }
    }
}

impl Addresses {
    /// The denies that an allow is more specific than.
    pub fn opened_by(&self, allow: RuleId) -> Vec<RuleId> {
        self.openers.iter().filter(|(_, openers)| openers.contains(&allow)).map(|(deny, _)| *deny).collect()
    }
}

/// Listening on the unspecified address is listening on each address of its family.
fn each_of_the_host(set: &AddressSet) -> AddressSet {
    let unspecified = [IpAddr::from([0_u8; 4]), IpAddr::from([0_u8; 16])];
    let whole = unspecified.into_iter().filter(|address| set.contains(*address)).map(AddressSet::family);
    whole.fold(set.clone(), |set, family| set.union(&family))
}

impl Study<'_> {
    pub(super) fn addresses(&self, verb: Verb) -> &Addresses {
        self.addresses[usize::from(verb == Verb::Listen)].get_or_init(|| Addresses::new(self.policy, verb))
    }
}

/// A port and protocol that stands for all those which the same rules cover.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct Service {
    port: u16,
    protocol: Protocol,
}

fn peers(policy: &Policy, id: RuleId) -> Option<&PeerSet> {
    match &policy.rule(id).subject {
        Subject::Peers(set) => Some(set),
        _ => None,
    }
}

/// One of each kind of service that some sets tell apart, with the sets that cover it; least ports first.
fn services(sets: &[&PeerSet]) -> Vec<(Service, BTreeSet<usize>)> {
    let mut cuts: BTreeSet<u16> = BTreeSet::new();
    for set in sets {
        for range in set.ports.ranges() {
            cuts.insert(*range.start());
            cuts.extend(range.end().checked_add(1));
        }
    }
    let mut known: BTreeMap<BTreeSet<usize>, Service> = BTreeMap::new();
    for port in cuts {
        for protocol in [Protocol::Tcp, Protocol::Udp] {
            let covering: BTreeSet<usize> =
                sets.iter().enumerate().filter(|(_, set)| set.covers(protocol, port)).map(|(index, _)| index).collect();
            known.entry(covering).or_insert(Service { port, protocol });
        }
    }
    let mut services: Vec<_> = known.into_iter().map(|(covering, service)| (service, covering)).collect();
    services.sort();
    services
}

/// What the address rules of a policy say of a stretch of addresses.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct ByAddress {
    denied: bool,
    allowed: bool,
}

/// What a connection by name needs, where an address is given.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Need {
    /// Nothing suffices.
    Impossible,
    /// That the name is allowed.
    Name,
    /// That it is, and by an allow that is free of `*`.
    Literal,
}

/// A stretch of addresses as up to two policies see it.
struct Seen {
    address: IpAddr,
    class: special::Class,
    by: Vec<ByAddress>,
    within: bool,
}

/// The address rules of one view.
#[derive(Clone, Copy)]
struct Side<'s> {
    policy: &'s Policy,
    addresses: &'s Addresses,
    without: Option<RuleId>,
}

impl<'s> Side<'s> {
    fn of(view: &View<'s, '_>, verb: Verb) -> Self {
        let (policy, addresses) = (view.study.policy, view.study.addresses(verb));
        Self { policy, addresses, without: view.without }
    }

    fn decide(&self, matching: &[RuleId]) -> ByAddress {
        let denied = matching.iter().any(|id| match self.policy.rule(*id).effect {
            Effect::Allow => false,
            Effect::Forbid => true,
            Effect::Deny => {
                let openers = self.addresses.openers.get(id);
                !openers.is_some_and(|openers| openers.iter().any(|opener| matching.contains(opener)))
            }
        });
        let allowed = !denied && matching.iter().any(|id| self.policy.rule(*id).effect == Effect::Allow);
        ByAddress { denied, allowed }
    }
}

/// The stretches of addresses for one service.
fn seen(sides: &[Side<'_>], service: Service, within: Option<&AddressSet>) -> Vec<Seen> {
    let mut sets: Vec<&AddressSet> = Vec::new();
    let mut owners: Vec<(usize, RuleId)> = Vec::new();
    for (number, side) in sides.iter().enumerate() {
        for (id, set) in &side.addresses.rules {
            let covers = peers(side.policy, *id).is_some_and(|set| set.covers(service.protocol, service.port));
            if covers && side.without != Some(*id) {
                owners.push((number, *id));
                sets.push(set);
            }
        }
    }
    let rules = sets.len();
    let own: AddressSet =
        sides.iter().flat_map(|side| &side.policy.facts.own_addresses).map(|own| AddressSet::from(*own)).collect();
    let everything = AddressSet::family(IpAddr::from([0_u8; 4])).union(&AddressSet::family(IpAddr::from([0_u8; 16])));
    let guard = [special::special(), special::private(), own.carried(), NOMINAL.into(), everything];
    sets.extend(&guard);
    sets.extend(within);
    let mut seen = Vec::new();
    stretches(&sets, |stretch| {
        let by = (0..sides.len()).map(|number| {
            let inside = stretch.inside.iter().take_while(|set| **set < rules).map(|set| owners[*set]);
            let matching: Vec<RuleId> = inside.filter(|(owner, _)| *owner == number).map(|(_, id)| id).collect();
            sides[number].decide(&matching)
        });
        seen.push(Seen {
            address: stretch.least,
            class: special::class(stretch.least, &sides[0].policy.facts.own_addresses),
            by: by.collect(),
            within: stretch.inside.contains(&(rules + guard.len())),
        });
    });
    seen
}

impl Seen {
    fn need(&self, view: usize) -> Need {
        match (self.by[view], self.class) {
            (ByAddress { denied: true, .. }, _) => Need::Impossible,
            (ByAddress { allowed: true, .. }, _) | (_, special::Class::Public) => Need::Name,
            (_, special::Class::Private) => Need::Literal,
            (_, special::Class::Special) => Need::Impossible,
        }
    }
}

/// Names that are this host's loopback, whatever a rule says of them: no access has one.
static LOCALHOST: LazyLock<HostSet> = LazyLock::new(|| {
    let pattern = |text| Pattern::parse(text).expect("a pattern of the standard");
    HostSet { include: vec![pattern("localhost"), pattern("*.localhost")], exclude: Vec::new() }
});

/// The name rules of one view for one service.
struct Names<'s, 'p> {
    scope: Scope<'s, 'p>,
    literal: &'s Literal<'p>,
}

/// Of each allow, what it names without a `*`.
struct Literal<'p>(Index<'p>);

impl<'p> Literal<'p> {
    fn new(policy: &'p Policy, layer: &Layer<'p>) -> Self {
        let sets = layer.allows.iter().map(|id| match peers(policy, *id) {
            Some(PeerSet { endpoint: Endpoint::Hosts(hosts), .. }) => Compiled::literal_hosts(hosts),
            _ => Compiled::all(Kind::Hosts),
        });
        Self(Index::new(sets))
    }
}

impl<'s, 'p> Names<'s, 'p> {
    fn literally_allowed(&self, within: &Compiled<'p>) -> Vec<usize> {
        let mut meeting = self.literal.0.meeting(within);
        meeting.retain(|a| (self.scope.live)(self.scope.layer.allows[*a]));
        meeting
    }

    fn not_literally_allowed(&self) -> Refusal<'s, 'p> {
        let Scope { layer, live } = self.scope;
        let lifted_by = move |a: usize| live(layer.allows[a]).then(Vec::new);
        Refusal::Of { index: &self.literal.0, lifting: &self.literal.0, lifted_by: Box::new(lifted_by) }
    }

    /// For each allow that may be why a name of a set is permitted: what it requires. Which refusals go with it is
    /// [`Scope::not_denied`]'s business.
    fn reasons(&self, need: Need, within: &Compiled<'p>) -> Vec<(usize, &'s Compiled<'p>)> {
        match need {
            Need::Impossible => Vec::new(),
            Need::Name => {
                let allows = self.scope.allows_meeting(within);
                allows.into_iter().map(|a| (a, self.scope.layer.allow.set(a))).collect()
            }
            Need::Literal => {
                let allows = self.literally_allowed(within);
                allows.into_iter().map(|a| (a, self.literal.0.set(a))).collect()
            }
        }
    }
}

/// The part of a set that is about names, or addresses.
fn parts(within: &Subject) -> Option<(&PeerSet, Option<&AddressSet>)> {
    match within {
        Subject::Peers(set) => match &set.endpoint {
            Endpoint::Hosts(_) => Some((set, None)),
            Endpoint::Addresses(addresses) => Some((set, Some(addresses))),
        },
        _ => None,
    }
}

fn connection(verb: Verb, name: Option<crate::sets::host::Name>, address: IpAddr, service: Service) -> Access {
    let Service { port, protocol } = service;
    if verb == Verb::Listen {
        Access::Listen { address, port }
    } else {
        Access::Connect { name, address, port, protocol }
    }
}

/// A shortest access in a set that is permitted, or denied; of names, at addresses that are neither special nor private.
pub(super) fn decided<'p, 'long: 'p>(
    view: View<'_, 'long>,
    verb: Verb,
    within: &'p Subject,
    permits: bool,
    budget: &mut Budget,
) -> Result<Option<Access>, Exhausted> {
    let Some((set, addresses)) = parts(within) else { return Ok(None) };
    let policy = view.study.policy;
    let rules: Vec<RuleId> = policy.rules_of(verb).map(|(id, _)| id).filter(|id| view.live(*id)).collect();
    let mut sets: Vec<&PeerSet> = rules.iter().filter_map(|id| peers(policy, *id)).collect();
    sets.push(set);
    let localhost = Compiled::hosts(&LOCALHOST);
    let asked = Space { kind: Kind::Hosts, variables: variables(within, Kind::Hosts), absent: Vec::new() };
    let space = view.study.space(Kind::Hosts).and(asked);
    let mut best: Option<((usize, usize), Access)> = None;
    for (service, covering) in services(&sets) {
        budget.spend(sets.len())?;
        if !covering.contains(&(sets.len() - 1)) || verb == Verb::Listen && service.protocol == Protocol::Udp {
            continue;
        }
        let seen = seen(&[Side::of(&view, verb)], service, addresses);
        budget.spend(seen.len())?;
        if addresses.is_some() {
            let found = seen.iter().find(|seen| seen.within && seen.by[0].allowed == permits);
            if let (Some(seen), None) = (found, &best) {
                best = Some(((1, 0), connection(verb, None, seen.address, service)));
            }
            continue;
        }
        let layer = view.study.layer(Verb::Connect);
        let literal = Literal::new(policy, layer);
        let live = |id: RuleId| {
            view.live(id) && peers(policy, id).is_some_and(|set| set.covers(service.protocol, service.port))
        };
        let names = Names { scope: Scope { layer, live: &live }, literal: &literal };
        let Some((_, within)) = compiled(within) else { continue };
        let mut needs: Vec<(Need, IpAddr)> = Vec::new();
        // Where it does not matter which address, it is the one that stands for all.
        let public = seen.iter().filter(|seen| seen.class == special::Class::Public);
        for seen in public.clone().filter(|seen| seen.address == NOMINAL).chain(public) {
            if needs.iter().all(|(need, _)| *need != seen.need(0)) {
                needs.push((seen.need(0), seen.address));
            }
        }
        for (need, address) in needs {
            let mut search = Best::new(space.clone());
            let mut look = |required: &[&Compiled<'p>], refusals, budget: &mut Budget| {
                by_name(&mut search, &localhost, required, refusals, budget)
            };
            if permits {
                for (allow, literal) in names.reasons(need, &within) {
                    look(&[&within, literal], vec![names.scope.not_denied(Some(allow))], budget)?;
                }
            } else if need == Need::Impossible {
                look(&[&within], Vec::new(), budget)?;
            } else {
                look(&[&within], vec![names.scope.not_allowed()], budget)?;
                for deny in names.scope.denies_meeting(&within) {
                    let set = names.scope.layer.deny.set(deny);
                    look(&[&within, set], vec![names.scope.not_opened(deny)], budget)?;
                }
            }
            consider(&mut best, search.found, address, service)?;
        }
    }
    Ok(best.map(|(_, access)| access))
}

/// Looks for a shorter name.
fn by_name<'q, 'p>(
    best: &mut Best<'p>,
    localhost: &'q Compiled<'p>,
    required: &[&Compiled<'p>],
    mut refusals: Vec<Refusal<'q, 'p>>,
    budget: &mut Budget,
) -> Result<(), Exhausted> {
    refusals.push(Refusal::All(vec![localhost]));
    best.look(required, &refusals, budget)
}

/// Keeps the shorter of two connections by name.
fn consider(
    best: &mut Option<((usize, usize), Access)>,
    found: Option<Member>,
    address: IpAddr,
    service: Service,
) -> Result<(), Exhausted> {
    let Some(found) = found else { return Ok(()) };
    let size = found.size();
    if best.as_ref().is_some_and(|(best, _)| *best <= size) {
        return Ok(());
    }
    match found {
        Member::Host(Host::Name(name)) => {
            *best = Some((size, connection(Verb::Connect, Some(name), address, service)));
            Ok(())
        }
        // What a variable stands for is not known, and so no access can be shown.
        _ => Err(Exhausted),
    }
}
