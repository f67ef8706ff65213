//! What single allows of connections and listening are worth.

use super::super::layer::Scope;
use super::super::objects::Best;
use super::super::spread::stretches;
use super::super::{Study, Worth};
use super::{LOCALHOST, Literal, Names, Need, Service, Side, by_name, connection, consider, peers, seen, services};
use crate::ir::special::NOMINAL;
use crate::ir::{Access, RuleId};
use crate::sets::address::AddressSet;
use crate::sets::many::{Budget, Compiled, Exhausted, Kind};
use crate::sets::peer::PeerSet;
use crate::vocabulary::{Effect, Verb};
use std::collections::{BTreeMap, BTreeSet};
use std::net::IpAddr;

/// What single allows of addresses are worth, worked out for all of them at once.
#[derive(Default)]
pub(in crate::analysis) struct AddressWorth {
    alive: BTreeMap<RuleId, Access>,
    needed: BTreeMap<RuleId, Access>,
}

/// What an allow of addresses is worth.
pub(in crate::analysis) fn address_worth(study: &Study<'_>, allow: RuleId) -> Worth {
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
pub(in crate::analysis) struct Named<'p> {
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
pub(in crate::analysis) fn name_worth(
    study: &Study<'_>,
    allow: RuleId,
    budget: &mut Budget,
) -> Result<Worth, Exhausted> {
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
