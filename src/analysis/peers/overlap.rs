//! Connections and listening that an allow and a deny have in common.

use super::super::Study;
use super::super::layer::{Layer, Scope};
use super::super::objects::Best;
use super::{LOCALHOST, by_name, connection, consider, peers, services};
use crate::ir::special::NOMINAL;
use crate::ir::{Access, RuleId};
use crate::sets::address::AddressSet;
use crate::sets::many::{Budget, Compiled, Exhausted, Kind};
use crate::sets::peer::PeerSet;
use crate::vocabulary::Effect;

/// A name that an allow and a deny both match, at a port and protocol of both, and that nothing opens.
pub(in crate::analysis) fn name_overlap<'p>(
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
pub(in crate::analysis) fn address_overlap(
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
