//! What one policy permits of connections and listening and another does not.

use super::super::View;
use super::super::layer::{Changed, Scope};
use super::super::objects::{Best, Cause};
use super::{LOCALHOST, Literal, Names, Need, Side, by_name, connection, consider, peers, seen, services};
use crate::ir::special::NOMINAL;
use crate::ir::{Access, Policy, RuleId, decide};
use crate::sets::many::{Budget, Compiled, Exhausted, Kind, Member};
use crate::sets::peer::{PeerSet, Protocol};
use crate::vocabulary::{Effect, Verb};
use std::collections::BTreeMap;
use std::net::IpAddr;

/// A shortest access that the new view permits and the old one does not.
pub(in crate::analysis) fn widened(
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
pub(in crate::analysis) fn changes<'p, 'old: 'p, 'new: 'p>(
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
