//! What a single allow is worth to its policy: nothing, nothing that other rules do not give, or some access.

use super::{Answer, Study, objects, peers};
use crate::ir::{Access, RuleId, Subject};
use crate::sets::many::{Budget, Exhausted};
use crate::sets::peer::Endpoint;
use crate::vocabulary::Verb;

/// What becomes of a policy without one of its allows.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Worth {
    /// Nothing in the set of the allow is permitted.
    Dead,
    /// Something in it is, and without the allow it would be as well; the shortest.
    Redundant(Access),
    /// This would no longer be permitted.
    Needed(Access),
}

impl Study<'_> {
    /// What an allow is worth; `Answer::None` is never the answer.
    pub fn worth(&self, allow: RuleId, budget: &mut Budget) -> Answer<Worth> {
        let found = match &self.policy.rule(allow).subject {
            Subject::Peers(set) => match &set.endpoint {
                Endpoint::Addresses(_) => Ok(peers::address_worth(self, allow)),
                Endpoint::Hosts(_) => peers::name_worth(self, allow, budget),
            },
            _ => self.object_worth(allow, budget),
        };
        match found {
            Ok(worth) => Answer::Some(worth),
            Err(Exhausted) => Answer::Unknown,
        }
    }

    /// A shortest access in the set of an allow that is dead; none where that set is empty.
    pub fn denied_of_dead(&self, allow: RuleId, budget: &mut Budget) -> Option<Access> {
        let rule = self.policy.rule(allow);
        if let Subject::Peers(_) = &rule.subject {
            let denied = self.whole().denied(rule.verb, &rule.subject, budget);
            return if let Answer::Some(access) = denied { Some(access) } else { None };
        }
        // Every one is denied.
        objects::member(self, allow)
    }

    /// A shortest access of some places that an allow over paths permits by itself: were it the only allow of its verb, it
    /// would be permitted as well. Where each of `also`, verbs over paths, is to be permitted too, one of a few shortest.
    pub fn permitted_alone(
        &self,
        allow: RuleId,
        places: &Subject,
        also: &[Verb],
        budget: &mut Budget,
    ) -> Answer<Access> {
        Answer::of(objects::permitted_alone(self, allow, places, also, budget))
    }

    fn object_worth(&self, allow: RuleId, budget: &mut Budget) -> Result<Worth, Exhausted> {
        let Some(access) = objects::permitted_by(self, allow, budget)? else { return Ok(Worth::Dead) };
        // What may be read decides about writing and running as well.
        let verbs: &[Verb] = match self.policy.rule(allow).verb {
            Verb::Read => &[Verb::Read, Verb::Write, Verb::Exec],
            Verb::Write => &[Verb::Write],
            Verb::Exec => &[Verb::Exec],
            Verb::Socket => &[Verb::Socket],
            Verb::Env => &[Verb::Env],
            _ => &[Verb::Mach],
        };
        for verb in verbs {
            if let Some(access) = objects::widened(self.without(allow), self.whole(), *verb, budget)? {
                return Ok(Worth::Needed(access));
            }
        }
        Ok(Worth::Redundant(access))
    }
}
