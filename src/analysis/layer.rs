//! The rules of one verb as the search takes them: what allows, what denies, and which allow opens which deny.

use crate::ir::{Policy, RuleId, Subject, more_specific};
use crate::sets::host;
use crate::sets::many::{self, Budget, Compiled, Index, Kind, Refusal, Space};
use crate::sets::path::{Pattern, Start};
use crate::sets::peer::{Endpoint, PeerSet};
use crate::vocabulary::{Effect, Verb};
use rustc_hash::{FxHashMap, FxHashSet};

/// Rules are named by their places in `allows` and `denies`.
pub(super) struct Layer<'p> {
    pub allows: Vec<RuleId>,
    /// Each `deny` and `forbid`, and after them once more those that hold other names of their nodes by the mount table.
    pub denies: Vec<RuleId>,
    /// How many of them are there by their own sets.
    pub own: usize,
    pub allow: Index<'p>,
    pub deny: Index<'p>,
    /// The denies that each allow is more specific than, in order.
    pub opens: Vec<Vec<usize>>,
    /// The allows that are more specific than each deny.
    pub openers: Vec<Vec<usize>>,
}

pub(super) fn compiled(subject: &Subject) -> Option<(Kind, Compiled<'_>)> {
    Some(match subject {
        Subject::Paths(set) => (Kind::Paths, Compiled::paths(set)),
        Subject::Names(set) => (Kind::Names, Compiled::names(set)),
        Subject::Peers(set) => match &set.endpoint {
            Endpoint::Hosts(hosts) => (Kind::Hosts, Compiled::hosts(hosts)),
            Endpoint::Addresses(_) => return None,
        },
    })
}

/// The variables that a set of paths or hosts starts at.
pub(super) fn variables(subject: &Subject, kind: Kind) -> Vec<&str> {
    fn start(pattern: &Pattern) -> Option<&str> {
        if let Start::Variable(name) = &pattern.start { Some(name) } else { None }
    }
    fn name(pattern: &host::Pattern) -> Option<&str> {
        if let host::Pattern::Variable(name) = pattern { Some(name) } else { None }
    }
    match (subject, kind) {
        (Subject::Paths(set), Kind::Paths) => set.include.iter().chain(&set.exclude).filter_map(start).collect(),
        (Subject::Peers(PeerSet { endpoint: Endpoint::Hosts(set), .. }), Kind::Hosts) => {
            set.include.iter().chain(&set.exclude).filter_map(name).collect()
        }
        _ => Vec::new(),
    }
}

pub(super) fn kind(verb: Verb) -> Kind {
    match verb {
        Verb::Read | Verb::Write | Verb::Exec | Verb::Socket => Kind::Paths,
        Verb::Connect | Verb::Listen => Kind::Hosts,
        Verb::Env | Verb::Mach => Kind::Names,
    }
}

impl<'p> Layer<'p> {
    /// Of `connect`, the rules over names.
    pub fn new(policy: &'p Policy, verb: Verb) -> Self {
        let (mut allows, mut denies) = (Vec::new(), Vec::new());
        let (mut allow, mut deny) = (Vec::new(), Vec::new());
        for (id, rule) in policy.rules_of(verb) {
            let Some((_, set)) = compiled(&rule.subject) else { continue };
            if rule.effect == Effect::Allow {
                allows.push(id);
                allow.push(set);
            } else {
                denies.push(id);
                deny.push(set);
            }
        }
        let own = denies.len();
        for (id, set) in &policy.facts.elsewhere {
            if denies[..own].binary_search(id).is_ok() {
                denies.push(*id);
                deny.push(Compiled::paths(set));
            }
        }
        let (kind, allow, deny) = (kind(verb), Index::new(allow), Index::new(deny));
        let opened = |(a, id): (usize, &RuleId)| {
            let mut opened = opened(policy, kind, allow.set(a), *id, &deny, &denies[..own]);
            // Which is more specific, the rules' own sets say.
            let elsewhere = (own..denies.len()).filter(|d| opened.iter().any(|own| denies[*own] == denies[*d]));
            let elsewhere: Vec<_> = elsewhere.collect();
            opened.extend(elsewhere);
            opened
        };
        let opens: Vec<_> = allows.iter().enumerate().map(opened).collect();
        let mut openers = vec![Vec::new(); denies.len()];
        for (a, opened) in opens.iter().enumerate() {
            for d in opened {
                openers[*d].push(a);
            }
        }
        Self { allows, denies, own, allow, deny, opens, openers }
    }
}

/// Each `deny` and `forbid` of a verb, of connections those over names, with the allows that are more specific than it. By the
/// tree of all: of thousands of rules each is compared with few.
pub fn openers(policy: &Policy, verb: Verb) -> Vec<(RuleId, Vec<RuleId>)> {
    let layer = Layer::new(policy, verb);
    let of = |openers: &Vec<usize>| openers.iter().map(|a| layer.allows[*a]).collect();
    layer.denies[..layer.own].iter().copied().zip(layer.openers.iter().map(of)).collect()
}

impl Layer<'_> {
    /// Where an allow of the policy is among those of the layer.
    pub fn place_of(&self, allow: RuleId) -> Option<usize> {
        self.allows.binary_search(&allow).ok()
    }
}

/// The denies that an allow is strictly inside of: whichever they are, they hold any member that it has.
fn opened(
    policy: &Policy,
    kind: Kind,
    set: &Compiled<'_>,
    id: RuleId,
    deny: &Index<'_>,
    denies: &[RuleId],
) -> Vec<usize> {
    let space = Space { kind, variables: Vec::new(), absent: policy.absent.as_deref().into_iter().collect() };
    let member = many::shortest(&space, &[set], &[], None, &mut Budget::unlimited());
    let mut opened = match member {
        Ok(Some(member)) => deny.containing(&member),
        // Empty but for places of variables that it does not name: inside whatever is not.
        _ => (0..denies.len()).collect(),
    };
    opened.retain(|d| {
        denies.get(*d).is_some_and(|deny| policy.rule(*deny).effect == Effect::Deny && more_specific(policy, id, *deny))
    });
    opened
}

/// The rules of a layer that count: not one that is left out, and of connections only those that cover the port.
#[derive(Clone, Copy)]
pub(super) struct Scope<'s, 'p> {
    pub layer: &'s Layer<'p>,
    pub live: &'s dyn Fn(RuleId) -> bool,
}

impl<'s, 'p> Scope<'s, 'p> {
    pub fn allows(&self) -> impl Iterator<Item = usize> + use<'s, 'p> {
        let Scope { layer, live } = *self;
        (0..layer.allows.len()).filter(move |a| live(layer.allows[*a]))
    }

    pub fn denies(&self) -> impl Iterator<Item = usize> + use<'s, 'p> {
        let Scope { layer, live } = *self;
        (0..layer.denies.len()).filter(move |d| live(layer.denies[*d]))
    }

    /// The allows that may have a member in a set.
    pub fn allows_meeting(&self, set: &Compiled<'p>) -> Vec<usize> {
        let mut meeting = self.layer.allow.meeting(set);
        meeting.retain(|a| (self.live)(self.layer.allows[*a]));
        meeting
    }

    /// The denies that may have a member in a set.
    pub fn denies_meeting(&self, set: &Compiled<'p>) -> Vec<usize> {
        let mut meeting = self.layer.deny.meeting(set);
        meeting.retain(|d| (self.live)(self.layer.denies[*d]));
        meeting
    }

    /// What no rule denies, where an allow matches or none is known to.
    pub fn not_denied(&self, by: Option<usize>) -> Refusal<'s, 'p> {
        let Scope { layer, live } = *self;
        let lifted_by = move |d: usize| {
            if !live(layer.denies[d]) || by.is_some_and(|a| layer.opens[a].binary_search(&d).is_ok()) {
                return None;
            }
            Some(layer.openers[d].iter().copied().filter(|a| live(layer.allows[*a])).collect())
        };
        Refusal::Of { index: &layer.deny, lifting: &layer.allow, lifted_by: Box::new(lifted_by) }
    }

    /// What no allow matches.
    pub fn not_allowed(&self) -> Refusal<'s, 'p> {
        let Scope { layer, live } = *self;
        let lifted_by = move |a: usize| live(layer.allows[a]).then(Vec::new);
        Refusal::Of { index: &layer.allow, lifting: &layer.allow, lifted_by: Box::new(lifted_by) }
    }

    /// What no allow matches that opens a deny.
    pub fn not_opened(&self, deny: usize) -> Refusal<'s, 'p> {
        /// So many are gone through for each question; of more, the tree that there is finds those that matter.
        const FEW: usize = 256;
        let Scope { layer, live } = *self;
        if layer.openers[deny].len() > FEW {
            let opens = move |a: usize| live(layer.allows[a]) && layer.opens[a].binary_search(&deny).is_ok();
            let lifted_by = move |a: usize| opens(a).then(Vec::new);
            return Refusal::Of { index: &layer.allow, lifting: &layer.allow, lifted_by: Box::new(lifted_by) };
        }
        let openers = self.layer.openers[deny].iter().filter(|a| (self.live)(self.layer.allows[**a]));
        Refusal::All(openers.map(|a| self.layer.allow.set(*a)).collect())
    }
}

/// The rules of one layer that another policy's has not: by place.
pub(super) struct Changed {
    /// The allows that the new one has and the old one has not.
    pub added: Vec<usize>,
    /// The denies that the old one has and the new one has not.
    pub removed: Vec<usize>,
    /// For each deny of the new one, the same of the old one; `None` where both are one layer.
    same: Option<FxHashMap<usize, usize>>,
}

impl Changed {
    /// Where the old one is the new one without a rule that allows.
    pub fn without(rule: RuleId, new: Scope<'_, '_>) -> Self {
        Self { added: new.layer.place_of(rule).into_iter().collect(), removed: Vec::new(), same: None }
    }

    /// The deny of the old one that is the same as one of the new one.
    pub fn same(&self, deny: usize) -> Option<usize> {
        match &self.same {
            Some(same) => same.get(&deny).copied(),
            None => Some(deny),
        }
    }

    pub fn of<'x>(old: (&'x Policy, Scope<'_, '_>), new: (&'x Policy, Scope<'_, '_>)) -> Self {
        fn subject(policy: &Policy, id: RuleId) -> (Effect, &Subject) {
            (policy.rule(id).effect, &policy.rule(id).subject)
        }
        let ((old_policy, old), (new_policy, new)) = (old, new);
        let before: FxHashSet<_> = old.allows().map(|a| subject(old_policy, old.layer.allows[a])).collect();
        let added = new.allows().filter(|a| !before.contains(&subject(new_policy, new.layer.allows[*a]))).collect();
        let mut denies: FxHashMap<_, _> = FxHashMap::default();
        for d in old.denies() {
            denies.entry(subject(old_policy, old.layer.denies[d])).or_insert(d);
        }
        let mut same = FxHashMap::default();
        let mut kept = FxHashSet::default();
        for d in new.denies() {
            let subject = subject(new_policy, new.layer.denies[d]);
            if let Some(before) = denies.get(&subject) {
                same.insert(d, *before);
                kept.insert(subject);
            }
        }
        let removed = old.denies().filter(|d| !kept.contains(&subject(old_policy, old.layer.denies[*d]))).collect();
        Self { added, removed, same: Some(same) }
    }
}
