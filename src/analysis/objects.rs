//! Accesses to paths and names: what the meaning says of them, as conjunctions that can be searched.
//!
//! Permission is a union over the allows (or the default) that may be the reason for it, denial one over the denies that
//! may be; each part asks for members of some sets that others do not refuse. Where two policies are compared, only what
//! one of them has alone can make a difference.

use super::layer::{Changed, Scope, compiled, kind, variables};
use super::{Study, View};
use crate::ir::{Access, Policy, RuleId, Subject};
use crate::sets::host::Host;
use crate::sets::many::{self, Budget, Compiled, Exhausted, Member, Refusal, Space};
use crate::vocabulary::{Effect, Verb};

/// Members of all of some sets that nothing refuses.
pub(super) struct Part<'q, 'p> {
    pub required: Vec<&'q Compiled<'p>>,
    pub refusals: Vec<Refusal<'q, 'p>>,
}

/// The shortest member so far.
pub(super) struct Best<'p> {
    space: Space<'p>,
    /// Only shorter ones are of interest.
    pub shorter_than: Option<usize>,
    pub found: Option<Member>,
}

impl<'p> Best<'p> {
    pub fn new(space: Space<'p>) -> Self {
        Self { space, shorter_than: None, found: None }
    }

    /// Looks for a shorter one.
    pub fn look(
        &mut self,
        required: &[&Compiled<'p>],
        refusals: &[Refusal<'_, 'p>],
        budget: &mut Budget,
    ) -> Result<(), Exhausted> {
        let shorter_than = self.found.as_ref().map(|found| found.size().0).or(self.shorter_than);
        // Nothing is shorter than the shortest there is.
        if let Some(found) = many::shortest(&self.space, required, refusals, shorter_than, budget)? {
            self.found = Some(found);
        }
        Ok(())
    }
}

/// An access of a verb over paths or names; none about a host that only has the name of a variable.
fn access(verb: Verb, member: Member) -> Option<Access> {
    Some(match (member, verb) {
        (Member::Path(path), Verb::Read) => Access::Read(path),
        (Member::Path(path), Verb::Write) => Access::Write(path),
        (Member::Path(path), Verb::Exec) => Access::Exec(path),
        (Member::Path(path), Verb::Socket) => Access::Socket(path),
        (Member::Name(name), Verb::Env) => Access::Env(name),
        (Member::Name(name), Verb::Mach) => Access::Mach(name),
        (Member::Host(Host::Name(_) | Host::Variable(_)) | Member::Path(_) | Member::Name(_), _) => return None,
    })
}

/// What an access is that no rule of its verb matches; of `exec` it is what reading is.
fn default(policy: &Policy, verb: Verb) -> bool {
    match verb {
        Verb::Read | Verb::Exec => policy.default_read.value == Effect::Allow,
        Verb::Env => policy.default_env.as_ref().is_none_or(|setting| setting.value == Effect::Allow),
        _ => false,
    }
}

/// The rules that a verb over paths or names is decided by.
struct Rules<'s, 'p> {
    verb: Verb,
    default: bool,
    own: Scope<'s, 'p>,
    /// Those of `read`, for a verb that also needs that no rule denies reading.
    read: Option<Scope<'s, 'p>>,
}

/// Why an access is permitted: by which allow of the verb, and for an `exec` that no rule of its own matches by which of
/// `read`; by the default where there is none.
#[derive(Clone, Copy)]
struct Reason {
    own: Option<usize>,
    read: Option<usize>,
}

impl<'s, 'p> Rules<'s, 'p> {
    fn new<'long: 'p>(view: &View<'s, 'long>, verb: Verb, live: &'s dyn Fn(RuleId) -> bool) -> Self {
        let own = Scope { layer: view.study.layer(verb), live };
        let reads = matches!(verb, Verb::Write | Verb::Exec);
        let read = reads.then(|| Scope { layer: view.study.layer(Verb::Read), live });
        Self { verb, default: default(view.study.policy, verb), own, read }
    }

    /// The reasons that something in a set may be permitted for.
    fn reasons(&self, within: &Compiled<'p>) -> Vec<Reason> {
        let allow = |a| Reason { own: Some(a), read: None };
        let mut reasons = Vec::new();
        if self.default {
            // By default everything is permitted that an allow would permit.
            return vec![Reason { own: None, read: None }];
        }
        reasons.extend(self.own.allows_meeting(within).into_iter().map(allow));
        if let (Verb::Exec, Some(read)) = (self.verb, &self.read) {
            reasons.extend(read.allows_meeting(within).into_iter().map(|a| Reason { own: None, read: Some(a) }));
        }
        reasons
    }

    /// What is permitted for a reason.
    fn permitted(&self, reason: Reason) -> Part<'s, 'p> {
        let mut required = Vec::new();
        required.extend(reason.own.map(|a| self.own.layer.allow.set(a)));
        let mut refusals = vec![self.own.not_denied(reason.own)];
        if let Some(read) = &self.read {
            required.extend(reason.read.map(|a| read.layer.allow.set(a)));
            refusals.push(read.not_denied(reason.read));
        }
        Part { required, refusals }
    }

    /// What no rule permits and the default does not.
    fn left_to_default(&self) -> Option<Part<'s, 'p>> {
        if self.default {
            return None;
        }
        let mut refusals = vec![self.own.not_allowed()];
        if let (Verb::Exec, Some(read)) = (self.verb, &self.read) {
            refusals.push(read.not_allowed());
        }
        Some(Part { required: Vec::new(), refusals })
    }

    fn scopes(&self) -> impl Iterator<Item = Scope<'s, 'p>> + use<'s, 'p> {
        std::iter::once(self.own).chain(self.read)
    }
}

/// What a deny denies: its members that no allow opens.
fn denied<'s, 'p>(scope: Scope<'s, 'p>, deny: usize) -> Part<'s, 'p> {
    Part { required: vec![scope.layer.deny.set(deny)], refusals: vec![scope.not_opened(deny)] }
}

/// A shortest access in a set that is permitted, or denied.
pub(super) fn decided<'p, 'long: 'p>(
    view: View<'_, 'long>,
    verb: Verb,
    within: &'p Subject,
    permits: bool,
    budget: &mut Budget,
) -> Result<Option<Access>, Exhausted> {
    let live = |rule| view.live(rule);
    let rules = Rules::new(&view, verb, &live);
    let named = within;
    let Some((kind, within)) = compiled(named) else { return Ok(None) };
    let asked = Space { kind, variables: variables(named, kind), absent: Vec::new() };
    let mut best = Best::new(view.study.space(kind).and(asked));
    let look = |part: Part<'_, 'p>, best: &mut Best<'p>, budget: &mut Budget| {
        let mut required = vec![&within];
        required.extend(part.required);
        best.look(&required, &part.refusals, budget)
    };
    if permits {
        for reason in rules.reasons(&within) {
            look(rules.permitted(reason), &mut best, budget)?;
        }
    } else {
        if let Some(part) = rules.left_to_default() {
            look(part, &mut best, budget)?;
        }
        for scope in rules.scopes() {
            for deny in scope.denies_meeting(&within) {
                look(denied(scope, deny), &mut best, budget)?;
            }
        }
    }
    Ok(best.found.and_then(|member| access(verb, member)))
}

/// A shortest access that a rule over paths or names is about, whatever becomes of it.
pub(super) fn member(study: &Study<'_>, rule: RuleId) -> Option<Access> {
    let rule = study.policy.rule(rule);
    let (kind, set) = compiled(&rule.subject)?;
    let member = many::shortest(&study.space(kind), &[&set], &[], None, &mut Budget::unlimited());
    access(rule.verb, member.ok()??)
}

/// A shortest access that an allow over paths or names permits.
pub(super) fn permitted_by(study: &Study<'_>, allow: RuleId, budget: &mut Budget) -> Result<Option<Access>, Exhausted> {
    let (verb, view) = (study.policy.rule(allow).verb, study.whole());
    let rules = Rules::new(&view, verb, &|_| true);
    let mut best = Best::new(study.space(kind(verb)));
    if let Some(own) = rules.own.layer.place_of(allow) {
        let part = rules.permitted(Reason { own: Some(own), read: None });
        best.look(&part.required, &part.refusals, budget)?;
    }
    Ok(best.found.and_then(|member| access(verb, member)))
}

/// A shortest access of some places that an allow over paths permits, and would permit were it the only allow of its verb.
/// Where each of some more verbs is to be permitted too, a shortest one for the first reasons for which all are.
pub(super) fn permitted_alone<'p, 'long: 'p>(
    study: &Study<'long>,
    allow: RuleId,
    places: &'p Subject,
    also: &[Verb],
    budget: &mut Budget,
) -> Result<Option<Access>, Exhausted> {
    let (policy, verb, view) = (study.policy, study.policy.rule(allow).verb, study.whole());
    let Some((kind, within)) = compiled(places) else { return Ok(None) };
    let alone = |id: RuleId| id == allow || policy.rule(id).effect != Effect::Allow;
    let all = |_: RuleId| true;
    let own = Rules::new(&view, verb, &all);
    let own = Rules { own: Scope { layer: own.own.layer, live: &alone }, ..own };
    let Some(place) = own.own.layer.place_of(allow) else { return Ok(None) };
    let set = own.own.layer.allow.set(place);
    let others: Vec<Rules<'_, 'p>> = also.iter().map(|verb| Rules::new(&view, *verb, &all)).collect();
    // One reason for each of the other verbs, in every combination.
    let mut choices: Vec<Vec<Reason>> = vec![Vec::new()];
    for rules in &others {
        let reasons = rules.reasons(set);
        let with = |choice: &Vec<Reason>| {
            let choice = choice.clone();
            reasons.iter().map(move |reason| [&choice[..], &[*reason]].concat()).collect::<Vec<_>>()
        };
        choices = choices.iter().flat_map(with).collect();
    }
    let asked = Space { kind, variables: variables(places, kind), absent: Vec::new() };
    let mut best = Best::new(study.space(kind).and(asked));
    for choice in choices {
        let Part { mut required, mut refusals } = own.permitted(Reason { own: Some(place), read: None });
        required.push(&within);
        for (rules, reason) in others.iter().zip(choice) {
            let part = rules.permitted(reason);
            required.extend(part.required);
            refusals.extend(part.refusals);
        }
        best.look(&required, &refusals, budget)?;
        if best.found.is_some() {
            break;
        }
    }
    Ok(best.found.and_then(|member| access(verb, member)))
}

/// A shortest access that an allow and a deny both match, and that nothing opens.
pub(super) fn overlap<'p>(
    study: &Study<'p>,
    verb: Verb,
    scope: Scope<'_, 'p>,
    allow: usize,
    deny: usize,
    budget: &mut Budget,
) -> Result<Option<Access>, Exhausted> {
    let mut best = Best::new(study.space(kind(verb)));
    let Scope { layer, .. } = scope;
    best.look(&[layer.allow.set(allow), layer.deny.set(deny)], &[scope.not_opened(deny)], budget)?;
    Ok(best.found.and_then(|member| access(verb, member)))
}

/// What two policies do not have in common, of which something is permitted by one and not by the other.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Cause {
    /// What an access is that no rule matches.
    Default,
    /// An allow of the new policy.
    Added(RuleId),
    /// A deny or forbid of the old policy.
    Removed(RuleId),
    /// Rules about addresses, at which names can be reached.
    Reach,
}

/// A shortest access that the new view permits and the old one does not.
pub(super) fn widened(
    old: View<'_, '_>,
    new: View<'_, '_>,
    verb: Verb,
    budget: &mut Budget,
) -> Result<Option<Access>, Exhausted> {
    // Each is shorter than those before it.
    Ok(changes(old, new, verb, true, budget)?.pop().map(|(_, access)| access))
}

/// For each cause a shortest access that the new view permits for it and the old one does not; with `shorter`, only such as
/// are shorter than all found before.
pub(super) fn changes<'p, 'old: 'p, 'new: 'p>(
    old: View<'_, 'old>,
    new: View<'_, 'new>,
    verb: Verb,
    shorter: bool,
    budget: &mut Budget,
) -> Result<Vec<(Cause, Access)>, Exhausted> {
    let (old_live, new_live) = (|rule| old.live(rule), |rule| new.live(rule));
    let (before, after) = (Rules::new(&old, verb, &old_live), Rules::new(&new, verb, &new_live));
    let kind = kind(verb);
    let all = Compiled::all(kind);
    let space = old.study.space(kind).and(new.study.space(kind));
    let mut changes: Vec<(Cause, Member)> = Vec::new();
    let fresh = |changes: &[(Cause, Member)]| {
        let mut best = Best::new(space.clone());
        best.shorter_than = changes.last().filter(|_| shorter).map(|(_, found)| found.size().0);
        best
    };
    let look =
        |best: &mut Best<'p>, reason: Reason, with: Option<&Compiled<'p>>, other: Part<'_, 'p>, budget: &mut Budget| {
            let Part { mut required, mut refusals } = after.permitted(reason);
            required.extend(with);
            required.extend(other.required);
            refusals.extend(other.refusals);
            if required.is_empty() {
                required.push(&all);
            }
            best.look(&required, &refusals, budget)
        };
    if after.default
        && !before.default
        && let Some(part) = before.left_to_default()
    {
        let mut best = fresh(&changes);
        look(&mut best, Reason { own: None, read: None }, None, part, budget)?;
        changes.extend(best.found.map(|found| (Cause::Default, found)));
    }
    let policies = (old.study.policy, new.study.policy);
    for (own, (old_scope, new_scope)) in before.scopes().zip(after.scopes()).enumerate() {
        let own = own == 0;
        let changed = match old.is_less(&new) {
            Some(rule) => Changed::without(rule, new_scope),
            None => Changed::of((policies.0, old_scope), (policies.1, new_scope)),
        };
        for added in changed.added.iter().copied() {
            let set = new_scope.layer.allow.set(added);
            let mut best = fresh(&changes);
            // What it allows that nothing did; of another verb's rules that is what may be run for being read.
            let reason = match (own, verb) {
                (true, _) => Some(Reason { own: Some(added), read: None }),
                (false, Verb::Exec) if after.default => Some(Reason { own: None, read: None }),
                (false, Verb::Exec) => Some(Reason { own: None, read: Some(added) }),
                (false, _) => None,
            };
            if let (Some(reason), Some(part)) = (reason, before.left_to_default()) {
                look(&mut best, reason, Some(set), part, budget)?;
            }
            // What it opens.
            let opened: Vec<usize> = new_scope.layer.opens[added].iter().filter_map(|d| changed.same(*d)).collect();
            let reasons = match reason {
                _ if opened.is_empty() => Vec::new(),
                Some(reason) if own => vec![reason],
                _ => {
                    let mut reasons = after.reasons(set);
                    reasons.retain(|reason| reason.own.is_some() || reason.read.is_none_or(|a| a == added));
                    reasons
                }
            };
            for reason in reasons {
                for deny in opened.iter().copied() {
                    // It is inside the denial, but for places that neither names and another rule does.
                    look(&mut best, reason, Some(set), denied(old_scope, deny), budget)?;
                }
            }
            changes.extend(best.found.map(|found| (Cause::Added(new_scope.layer.allows[added]), found)));
        }
        for removed in changed.removed.iter().copied() {
            let mut best = fresh(&changes);
            for reason in after.reasons(old_scope.layer.deny.set(removed)) {
                look(&mut best, reason, None, denied(old_scope, removed), budget)?;
            }
            changes.extend(best.found.map(|found| (Cause::Removed(old_scope.layer.denies[removed]), found)));
        }
    }
    Ok(changes.into_iter().filter_map(|(cause, member)| Some((cause, access(verb, member)?))).collect())
}
