//! Connections and listening: products of a name or none, an address, a protocol and a port, with the guard that keeps names
//! away from special and private addresses.
//!
//! Ports are cut into the stretches that rules tell apart, and addresses, for each of those, likewise; of stretches that the
//! same rules cover one is looked at. What is left of each is a question about names.

use super::layer::{Changed, Layer, Scope, compiled, variables};
use super::objects::{Best, Cause};
use super::spread::stretches;
use super::{Study, View, Worth};
use crate::ir::special::{self, NOMINAL};
use crate::ir::{Access, Policy, RuleId, Subject, decide, more_specific};
use crate::sets::address::AddressSet;
use crate::sets::host::{Host, HostSet, Pattern};
use crate::sets::many::{Budget, Compiled, Exhausted, Index, Kind, Member, Refusal, Space};
use crate::sets::peer::{Endpoint, PeerSet, Protocol};
use crate::vocabulary::{Effect, Verb};
use std::collections::{BTreeMap, BTreeSet};
use std::net::IpAddr;
use std::sync::LazyLock;

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

/// A shortest access that the new view permits and the old one does not.
pub(super) fn widened(
    old: View<'_, '_>,
    new: View<'_, '_>,
    verb: Verb,
    budget: &mut Budget,
) -> Result<Option<Access>, Exhausted> {
    let changes = changes(old, new, verb, budget)?;
    Ok(changes.into_iter().map(|(_, found)| found).min_by_key(|(size, _)| *size).map(|(_, access)| access))
}

type Sized = ((usize, usize), Access);

/// For each cause a shortest access that the new view permits for it and the old one does not, with its size.
pub(super) fn changes<'p, 'old: 'p, 'new: 'p>(
    old: View<'_, 'old>,
    new: View<'_, 'new>,
    verb: Verb,
    budget: &mut Budget,
) -> Result<Vec<(Cause, Sized)>, Exhausted> {
    let (old_policy, new_policy) = (old.study.policy, new.study.policy);
    let mut sets: Vec<&PeerSet> = Vec::new();
    for side in [Side::of(&old, verb), Side::of(&new, verb)] {
        let live = side.policy.rules_of(verb).map(|(id, _)| id).filter(|id| side.without != Some(*id));
        sets.extend(live.filter_map(|id| peers(side.policy, id)));
    }
    let mut changes: BTreeMap<Cause, Sized> = BTreeMap::new();
    let layers = (verb == Verb::Connect).then(|| (old.study.layer(verb), new.study.layer(verb)));
    let literals = layers.map(|(old, new)| (Literal::new(old_policy, old), Literal::new(new_policy, new)));
    let localhost = Compiled::hosts(&LOCALHOST);
    let space = old.study.space(Kind::Hosts).and(new.study.space(Kind::Hosts));
    let all = Compiled::all(Kind::Hosts);
    for (service, covering) in services(&sets) {
        budget.spend(sets.len())?;
        if covering.is_empty() || verb == Verb::Listen && service.protocol == Protocol::Udp {
            continue;
        }
        let seen = seen(&[Side::of(&old, verb), Side::of(&new, verb)], service, None);
        budget.spend(seen.len())?;
        for seen in seen.iter().filter(|seen| seen.by[1].allowed && !seen.by[0].allowed) {
            let access = connection(verb, None, seen.address, service);
            let cause = address_cause(old_policy, new_policy, &access);
            changes.entry(cause).or_insert(((1, 0), access));
        }
        let (Some((old_layer, new_layer)), Some((old_literal, new_literal))) = (layers, &literals) else { continue };
        let covers = |policy, id| peers(policy, id).is_some_and(|set| set.covers(service.protocol, service.port));
        let old_live = |id: RuleId| old.live(id) && covers(old_policy, id);
        let new_live = |id: RuleId| new.live(id) && covers(new_policy, id);
        let before = Names { scope: Scope { layer: old_layer, live: &old_live }, literal: old_literal };
        let after = Names { scope: Scope { layer: new_layer, live: &new_live }, literal: new_literal };
        let changed = Changed::of((old_policy, before.scope), (new_policy, after.scope));
        let mut needs: Vec<(Need, Need, IpAddr)> = Vec::new();
        for seen in seen.iter().filter(|seen| seen.address == NOMINAL).chain(&seen) {
            let (old, new) = (seen.need(0), seen.need(1));
            if new != Need::Impossible && needs.iter().all(|(was, is, _)| (*was, *is) != (old, new)) {
                needs.push((old, new, seen.address));
            }
        }
        for (was, is, address) in needs {
            let look = |best: &mut Best<'p>, required: &[&Compiled<'p>], refusals, budget: &mut Budget| {
                by_name(best, &localhost, required, refusals, budget)
            };
            let mut found: Vec<(Cause, Option<Member>)> = Vec::new();
            let not_denied = |allow| after.scope.not_denied(Some(allow));
            let mut best = Best::new(space.clone());
            if was == Need::Impossible {
                for (allow, set) in after.reasons(is, &all) {
                    look(&mut best, &[set], vec![not_denied(allow)], budget)?;
                }
                found.push((Cause::Reach, best.found));
            } else {
                if was == Need::Literal {
                    for (allow, set) in after.reasons(is, &all) {
                        look(&mut best, &[set], vec![not_denied(allow), before.not_literally_allowed()], budget)?;
                    }
                    found.push((Cause::Reach, best.found));
                }
                for added in &changed.added {
                    let mut best = Best::new(space.clone());
                    let own = after.scope.layer.allow.set(*added);
                    for (allow, set) in after.reasons(is, own) {
                        if is == Need::Name && allow != *added {
                            continue;
                        }
                        look(&mut best, &[own, set], vec![not_denied(allow), before.scope.not_allowed()], budget)?;
                        for deny in after.scope.layer.opens[*added].iter().filter_map(|d| changed.same(*d)) {
                            let refusals = vec![not_denied(allow), before.scope.not_opened(deny)];
                            look(&mut best, &[own, set], refusals, budget)?;
                        }
                    }
                    found.push((Cause::Added(after.scope.layer.allows[*added]), best.found));
                }
                for removed in &changed.removed {
                    let mut best = Best::new(space.clone());
                    let deny = before.scope.layer.deny.set(*removed);
                    for (allow, set) in after.reasons(is, deny) {
                        let refusals = vec![not_denied(allow), before.scope.not_opened(*removed)];
                        look(&mut best, &[deny, set], refusals, budget)?;
                    }
                    found.push((Cause::Removed(before.scope.layer.denies[*removed]), best.found));
                }
            }
            for (cause, found) in found {
                let mut known = changes.remove(&cause);
                consider(&mut known, found, address, service)?;
                changes.extend(known.map(|known| (cause, known)));
            }
        }
    }
    Ok(changes.into_iter().collect())
}

/// Which of the rules about addresses that one policy has alone is why an access is permitted by it.
fn address_cause(old: &Policy, new: &Policy, access: &Access) -> Cause {
    match (decide(old, access).decisive.first(), decide(new, access).decisive.first()) {
        (Some(deny), _) if old.rule(*deny).effect != Effect::Allow => Cause::Removed(*deny),
        (_, Some(allow)) => Cause::Added(*allow),
        _ => Cause::Reach,
    }
}

/// What single allows of addresses are worth, worked out for all of them at once.
#[derive(Default)]
pub(super) struct AddressWorth {
    alive: BTreeMap<RuleId, Access>,
    needed: BTreeMap<RuleId, Access>,
}

/// What an allow of addresses is worth.
pub(super) fn address_worth(study: &Study<'_>, allow: RuleId) -> Worth {
    let verb = study.policy.rule(allow).verb;
    let worth = study.address_worth[usize::from(verb == Verb::Listen)].get_or_init(|| address_worths(study, verb));
    match (worth.needed.get(&allow), worth.alive.get(&allow)) {
        (Some(access), _) => Worth::Needed(access.clone()),
        (None, Some(access)) => Worth::Redundant(access.clone()),
        (None, None) => Worth::Dead,
    }
}

fn address_worths(study: &Study<'_>, verb: Verb) -> AddressWorth {
    let view = study.whole();
    let side = Side::of(&view, verb);
    let all: Vec<RuleId> = side.addresses.rules.iter().map(|(id, _)| *id).collect();
    let sets: Vec<&PeerSet> = all.iter().filter_map(|id| peers(side.policy, *id)).collect();
    let mut worth = AddressWorth::default();
    for (service, covering) in services(&sets) {
        let those: Vec<usize> = covering.into_iter().collect();
        let sets: Vec<&AddressSet> = those.iter().map(|index| &side.addresses.rules[*index].1).collect();
        stretches(&sets, |stretch| {
            let matching: Vec<RuleId> = stretch.inside.iter().map(|set| all[those[*set]]).collect();
            if !side.decide(&matching).allowed {
                return;
            }
            let access = || connection(verb, None, stretch.least, service);
            for allow in matching.iter().filter(|id| side.policy.rule(**id).effect == Effect::Allow) {
                worth.alive.entry(*allow).or_insert_with(access);
                if !worth.needed.contains_key(allow) {
                    let rest: Vec<RuleId> = matching.iter().copied().filter(|id| id != allow).collect();
                    if !side.decide(&rest).allowed {
                        worth.needed.insert(*allow, access());
                    }
                }
            }
        });
    }
    worth
}

/// The services of a policy, and what a name needs at the addresses of each.
pub(super) struct Named<'p> {
    cells: Vec<(Service, Vec<(Need, IpAddr)>)>,
    literal: Literal<'p>,
}

impl<'p> Named<'p> {
    fn new(study: &Study<'p>) -> Self {
        let view = study.whole();
        let side = Side::of(&view, Verb::Connect);
        let sets: Vec<&PeerSet> =
            side.policy.rules_of(Verb::Connect).filter_map(|(id, _)| peers(side.policy, id)).collect();
        let cell = |(service, _): (Service, BTreeSet<usize>)| {
            let seen = seen(&[side], service, None);
            let mut needs: Vec<(Need, IpAddr)> = Vec::new();
            for seen in seen.iter().filter(|seen| seen.address == NOMINAL).chain(&seen) {
                let need = seen.need(0);
                if need != Need::Impossible && needs.iter().all(|(known, _)| *known != need) {
                    needs.push((need, seen.address));
                }
            }
            (service, needs)
        };
        let cells = services(&sets).into_iter().map(cell).collect();
        Self { cells, literal: Literal::new(study.policy, study.layer(Verb::Connect)) }
    }
}

/// What an allow of names is worth.
pub(super) fn name_worth(study: &Study<'_>, allow: RuleId, budget: &mut Budget) -> Result<Worth, Exhausted> {
    let named = study.named.get_or_init(|| Named::new(study));
    let layer = study.layer(Verb::Connect);
    let policy = study.policy;
    let (Some(place), Some(own)) = (layer.place_of(allow), peers(policy, allow)) else { return Ok(Worth::Dead) };
    let localhost = Compiled::hosts(&LOCALHOST);
    let mut alive: Option<((usize, usize), Access)> = None;
    let mut needed = None;
    let cells = named.cells.iter().filter(|(service, _)| own.covers(service.protocol, service.port));
    for (service, needs) in cells.clone() {
        let covers = |id: RuleId| peers(policy, id).is_some_and(|set| set.covers(service.protocol, service.port));
        let others = |id: RuleId| id != allow && covers(id);
        let (with, without) = (Scope { layer, live: &covers }, Scope { layer, live: &others });
        for (need, address) in needs {
            let set = if *need == Need::Literal { named.literal.0.set(place) } else { layer.allow.set(place) };
            let space = study.space(Kind::Hosts);
            let mut best = Best::new(space.clone());
            by_name(&mut best, &localhost, &[set], vec![with.not_denied(Some(place))], budget)?;
            if best.found.is_none() {
                continue;
            }
            consider(&mut alive, best.found, *address, *service)?;
            let mut best = Best::new(space);
            let mut look = |refusal, budget: &mut Budget| {
                by_name(&mut best, &localhost, &[set], vec![with.not_denied(Some(place)), refusal], budget)
            };
            if *need == Need::Literal {
                let names = Names { scope: without, literal: &named.literal };
                look(names.not_literally_allowed(), budget)?;
            }
            look(without.not_allowed(), budget)?;
            for deny in &layer.opens[place] {
                if covers(layer.denies[*deny]) {
                    look(without.not_opened(*deny), budget)?;
                }
            }
            consider(&mut needed, best.found, *address, *service)?;
        }
        if needed.is_some() {
            break;
        }
    }
    let everywhere =
        cells.clone().all(|(_, needs)| needs.is_empty() || needs.iter().any(|(need, _)| *need == Need::Name));
    if needed.is_none() && alive.is_some() && !everywhere {
        // Where every public address is denied, what a literal name adds to others is not looked into.
        return Err(Exhausted);
    }
    Ok(match (needed, alive) {
        (Some((_, access)), _) => Worth::Needed(access),
        (None, Some((_, access))) => Worth::Redundant(access),
        (None, None) => Worth::Dead,
    })
}

/// A name that an allow and a deny both match, at a port and protocol of both, and that nothing opens.
pub(super) fn name_overlap<'p>(
    study: &Study<'p>,
    layer: &Layer<'p>,
    (allow, a): (usize, &PeerSet),
    (deny, d): (usize, &PeerSet),
    budget: &mut Budget,
) -> Result<Option<Access>, Exhausted> {
    let localhost = Compiled::hosts(&LOCALHOST);
    for (service, covering) in services(&[a, d]) {
        if covering.len() < 2 {
            continue;
        }
        let live = |id: RuleId| peers(study.policy, id).is_some_and(|set| set.covers(service.protocol, service.port));
        let scope = Scope { layer, live: &live };
        let mut best = Best::new(study.space(Kind::Hosts));
        by_name(
            &mut best,
            &localhost,
            &[layer.allow.set(allow), layer.deny.set(deny)],
            vec![scope.not_opened(deny)],
            budget,
        )?;
        let mut found = None;
        consider(&mut found, best.found, NOMINAL, service)?;
        if let Some((_, access)) = found {
            return Ok(Some(access));
        }
    }
    Ok(None)
}

/// An allow that a deny takes addresses of, and one that nothing opens.
pub(super) fn address_overlap(
    study: &Study<'_>,
    deny: RuleId,
    among: impl Fn(RuleId) -> bool,
) -> Option<(RuleId, Access)> {
    let policy = study.policy;
    let verb = policy.rule(deny).verb;
    let addresses = study.addresses(verb);
    let of = |id: RuleId| addresses.rules.iter().find(|(own, _)| *own == id).map(|(_, set)| set);
    let (own, set) = (peers(policy, deny)?, of(deny)?);
    let openers: Vec<&AddressSet> =
        addresses.openers.get(&deny).into_iter().flatten().filter_map(|opener| of(*opener)).collect();
    for (allow, theirs) in &addresses.rules {
        if policy.rule(*allow).effect != Effect::Allow || !among(*allow) {
            continue;
        }
        let both = openers.iter().fold(set.intersection(theirs), |both, opener| both.difference(opener));
        let common = services(&[own, peers(policy, *allow)?]).into_iter().find(|(_, covering)| covering.len() == 2);
        if let (Some(address), Some((service, _))) = (both.shortest(), common) {
            return Some((*allow, connection(verb, None, address, service)));
        }
    }
    None
}
