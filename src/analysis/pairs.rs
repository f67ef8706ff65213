//! How an allow and a deny lie to each other: which opens which, which are the same set, which merely overlap.

use super::layer::{Layer, Scope};
use super::{Answer, Study, objects, peers};
use crate::ir::{Access, Policy, RuleId, Subject, more_specific};
use crate::sets::many::{self, Budget, Exhausted};
use crate::sets::peer::Endpoint;
use crate::vocabulary::Effect;

/// Whether every member of one rule's set is in another's: of one verb, addresses with all their forms.
fn is_inside(policy: &Policy, a: RuleId, b: RuleId) -> bool {
    match (&policy.rule(a).subject, &policy.rule(b).subject) {
        (Subject::Paths(a), Subject::Paths(b)) => a.is_inside(b),
        (Subject::Names(a), Subject::Names(b)) => a.is_subset(b).is_ok(),
        (Subject::Peers(a), Subject::Peers(b)) => a.carried().is_subset(&b.carried()).is_ok(),
        _ => false,
    }
}

impl Study<'_> {
    fn is_of_addresses(&self, rule: RuleId) -> bool {
        matches!(&self.policy.rule(rule).subject, Subject::Peers(set) if matches!(set.endpoint, Endpoint::Addresses(_)))
    }

    fn denies(layer: &Layer<'_>, places: impl IntoIterator<Item = usize>) -> Vec<RuleId> {
        places.into_iter().map(|deny| layer.denies[deny]).collect()
    }

    /// The denies that an allow is more specific than.
    pub fn opened_by(&self, allow: RuleId) -> Vec<RuleId> {
        let verb = self.policy.rule(allow).verb;
        if self.is_of_addresses(allow) {
            return self.addresses(verb).opened_by(allow);
        }
        let layer = self.layer(verb);
        let opened = layer.place_of(allow).map(|place| layer.opens[place].clone()).unwrap_or_default();
        Self::denies(layer, opened)
    }

    /// The denies and forbids of the same set as an allow.
    pub fn same_as(&self, allow: RuleId) -> Vec<RuleId> {
        let verb = self.policy.rule(allow).verb;
        let candidates: Vec<RuleId> = if self.is_of_addresses(allow) {
            let denies = self.policy.rules_of(verb).filter(|(_, rule)| rule.effect != Effect::Allow);
            denies.map(|(id, _)| id).filter(|deny| self.is_of_addresses(*deny)).collect()
        } else {
            let layer = self.layer(verb);
            let Some(place) = layer.place_of(allow) else { return Vec::new() };
            // Whatever is the same set holds any member of this one.
            let space = self.space(super::layer::kind(verb));
            let member = many::shortest(&space, &[layer.allow.set(place)], &[], None, &mut Budget::unlimited());
            let Ok(Some(member)) = member else { return Vec::new() };
            let opened = &layer.opens[place];
            let holding = layer.deny.containing(&member).into_iter().filter(|deny| !opened.contains(deny));
            Self::denies(layer, holding)
        };
        let same = |deny: &RuleId| is_inside(self.policy, allow, *deny) && is_inside(self.policy, *deny, allow);
        candidates.into_iter().filter(same).collect()
    }

    /// An allow of `among` that a deny takes a part of, where neither is inside the other, and a shortest access that is
    /// denied for it.
    pub fn overlap(
        &self,
        deny: RuleId,
        among: impl Fn(RuleId) -> bool,
        budget: &mut Budget,
    ) -> Answer<(RuleId, Access)> {
        Answer::of(self.find_overlap(deny, among, budget))
    }

    fn find_overlap(
        &self,
        deny: RuleId,
        among: impl Fn(RuleId) -> bool,
        budget: &mut Budget,
    ) -> Result<Option<(RuleId, Access)>, Exhausted> {
        let verb = self.policy.rule(deny).verb;
        let apart = |allow: RuleId| {
            !more_specific(self.policy, allow, deny)
                && !is_inside(self.policy, deny, allow)
                && !is_inside(self.policy, allow, deny)
        };
        if self.is_of_addresses(deny) {
            let found = peers::address_overlap(self, deny, |allow| among(allow) && apart(allow));
            return Ok(found);
        }
        let layer = self.layer(verb);
        let Some(place) = layer.denies[..layer.own].binary_search(&deny).ok() else { return Ok(None) };
        for met in layer.allow.find_meeting(layer.deny.set(place)) {
            budget.spend(1)?;
            let allow = layer.allows[met];
            if !among(allow) || layer.opens[met].binary_search(&place).is_ok() {
                continue;
            }
            let live = |_: RuleId| true;
            let scope = Scope { layer, live: &live };
            let found = match (&self.policy.rule(allow).subject, &self.policy.rule(deny).subject) {
                (Subject::Peers(a), Subject::Peers(d)) => {
                    peers::name_overlap(self, layer, (met, a), (place, d), budget)?
                }
                _ => objects::overlap(self, verb, scope, met, place, budget)?,
            };
            if let Some(access) = found
                && apart(allow)
            {
                return Ok(Some((allow, access)));
            }
        }
        Ok(None)
    }
}
