//! The reference meaning of a policy ("Meaning" in the book's language chapter).

use super::special::{self, Class};
use super::{Access, Policy, Rule, RuleId, Subject};
use crate::sets::address::{AddressSet, canonical};
use crate::sets::host::Name;
use crate::sets::path::AbsPath;
use crate::sets::peer::{Endpoint, PeerSet, Protocol};
use crate::vocabulary::{Effect, Verb};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// What is decided about one access, and why.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Verdict {
    pub allowed: bool,
    pub why: Why,
    /// The rules that made it: the deciding one first. Where an `allow` opens a `deny`, the allow, and then what it opens.
    pub decisive: Vec<RuleId>,
    /// Every rule that matches, the decisive ones included.
    pub matching: Vec<RuleId>,
}

/// Which step of the meaning decided.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Why {
    /// A `forbid` matches.
    Forbidden,
    /// A `deny` matches that no more specific `allow` opens.
    Denied,
    /// An `allow` matches, and every `deny` that matches is opened by a more specific `allow`.
    Allowed,
    /// No rule matches. For `exec` the rules that decide reading, if any, are the decisive ones.
    Default,
    /// A write or exec of a path whose read a rule denies.
    ReadDenied,
    /// The name is allowed, but its address is special or private and no rule allows that.
    Special,
}

/// Decides one access. Each question of which rule is more specific is worked out anew; for many accesses of one
/// policy there is [`Decider`](super::Decider).
pub fn decide(policy: &Policy, access: &Access) -> Verdict {
    Meaning { policy, inside: |a, d| more_specific(policy, a, d) }.decide(access)
}

/// Whether rule `a` is more specific than rule `d`: of one verb, and its set strictly inside the other's.
pub fn more_specific(policy: &Policy, a: RuleId, d: RuleId) -> bool {
    let (a, d) = (policy.rule(a), policy.rule(d));
    a.verb == d.verb && a.subject.is_strictly_inside(&d.subject, a.verb)
}

impl Subject {
    /// Strict inclusion as the verb takes it: connections with all forms of an address.
    pub fn is_strictly_inside(&self, other: &Subject, verb: Verb) -> bool {
        match (self, other) {
            (Subject::Paths(own), Subject::Paths(whole)) => own.is_strictly_inside(whole),
            (Subject::Names(own), Subject::Names(whole)) => own.is_strictly_inside(whole),
            (Subject::Peers(own), Subject::Peers(whole)) if verb == Verb::Listen => {
                listening(own).is_strictly_inside(&listening(whole))
            }
            (Subject::Peers(own), Subject::Peers(whole)) => own.is_strictly_inside(whole),
            _ => false,
        }
    }
}

impl Policy {
    /// The rule behind an id of this policy.
    pub fn rule(&self, id: RuleId) -> &Rule {
        &self.rules[id.0 as usize]
    }

    /// The rules of a verb, in their order.
    pub fn rules_of(&self, verb: Verb) -> impl Iterator<Item = (RuleId, &Rule)> {
        (0..).map(RuleId).zip(&self.rules).filter(move |(_, rule)| rule.verb == verb)
    }
}

/// What `listen` means by a set: the unspecified address is each address of its family.
fn listening(set: &PeerSet) -> PeerSet {
    let Endpoint::Addresses(addresses) = &set.endpoint else { return set.clone() };
    let mut addresses = addresses.clone();
    for unspecified in [IpAddr::V4(Ipv4Addr::UNSPECIFIED), IpAddr::V6(Ipv6Addr::UNSPECIFIED)] {
        if addresses.contains(unspecified) {
            addresses = addresses.union(&AddressSet::family(unspecified));
        }
    }
    PeerSet { endpoint: Endpoint::Addresses(addresses), ..set.clone() }
}

/// The steps of the meaning, over any way of knowing which rules match and which of two is more specific.
pub(super) struct Meaning<'p, F: Fn(RuleId, RuleId) -> bool> {
    pub policy: &'p Policy,
    /// Whether the first, an `allow`, is more specific than the second, a `deny`.
    pub inside: F,
}

/// A verdict of the rules, or none: the default of the verb is for whoever asked.
enum Step {
    Decided(Verdict),
    Nothing,
}

impl<F: Fn(RuleId, RuleId) -> bool> Meaning<'_, F> {
    pub fn decide(&self, access: &Access) -> Verdict {
        match access {
            Access::Read(path) => self.read(self.matching_paths(Verb::Read, path)),
            Access::Write(path) => {
                self.write(self.matching_paths(Verb::Write, path), || self.matching_paths(Verb::Read, path))
            }
            Access::Exec(path) => {
                self.exec(self.matching_paths(Verb::Exec, path), || self.matching_paths(Verb::Read, path))
            }
            Access::Socket(path) => self.or(self.matching_paths(Verb::Socket, path), false),
            Access::Connect { name, address, port, protocol } => {
                self.connect(name.as_ref().filter(|name| !name.is_localhost()), *address, *port, *protocol)
            }
            Access::Listen { address, port } => self.listen(*address, *port),
            Access::Env(name) => {
                let open = self.policy.default_env.as_ref().is_none_or(|setting| setting.value == Effect::Allow);
                self.or(self.matching_names(Verb::Env, name), open)
            }
            Access::Mach(name) => self.or(self.matching_names(Verb::Mach, name), false),
        }
    }

    pub fn read(&self, matching: Vec<RuleId>) -> Verdict {
        self.or(matching, self.policy.default_read.value == Effect::Allow)
    }

    pub fn write(&self, matching: Vec<RuleId>, reads: impl FnOnce() -> Vec<RuleId>) -> Verdict {
        let own = self.or(matching, false);
        if own.allowed { Self::unless_read_denied(own, &self.read(reads())) } else { own }
    }

    /// By default what may be read may be run.
    pub fn exec(&self, matching: Vec<RuleId>, reads: impl FnOnce() -> Vec<RuleId>) -> Verdict {
        match self.rules(matching) {
            Step::Decided(own) if !own.allowed => own,
            Step::Decided(own) => Self::unless_read_denied(own, &self.read(reads())),
            Step::Nothing => {
                let read = self.read(reads());
                let own = Verdict {
                    allowed: read.allowed,
                    why: Why::Default,
                    decisive: read.decisive.clone(),
                    matching: read.matching.clone(),
                };
                Self::unless_read_denied(own, &read)
            }
        }
    }

    fn unless_read_denied(own: Verdict, read: &Verdict) -> Verdict {
        if !matches!(read.why, Why::Forbidden | Why::Denied) {
            return own;
        }
        let mut matching = [own.matching, read.matching.clone()].concat();
        matching.sort_unstable();
        matching.dedup();
        Verdict { allowed: false, why: Why::ReadDenied, decisive: read.decisive.clone(), matching }
    }

    fn or(&self, matching: Vec<RuleId>, default: bool) -> Verdict {
        match self.rules(matching) {
            Step::Decided(verdict) => verdict,
            Step::Nothing => {
                Verdict { allowed: default, why: Why::Default, decisive: Vec::new(), matching: Vec::new() }
            }
        }
    }

    /// Steps 1 to 3, over the rules that match.
    fn rules(&self, matching: Vec<RuleId>) -> Step {
        let of = |effect| matching.iter().copied().filter(move |id| self.policy.rule(*id).effect == effect);
        if let Some(forbid) = of(Effect::Forbid).next() {
            return Step::Decided(Verdict { allowed: false, why: Why::Forbidden, decisive: vec![forbid], matching });
        }
        let mut opened = Vec::new();
        for deny in of(Effect::Deny) {
            let Some(allow) = of(Effect::Allow).find(|allow| (self.inside)(*allow, deny)) else {
                return Step::Decided(Verdict { allowed: false, why: Why::Denied, decisive: vec![deny], matching });
            };
            for id in [allow, deny] {
                if !opened.contains(&id) {
                    opened.push(id);
                }
            }
        }
        let Some(allow) = of(Effect::Allow).next() else { return Step::Nothing };
        let decisive = if opened.is_empty() { vec![allow] } else { opened };
        Step::Decided(Verdict { allowed: true, why: Why::Allowed, decisive, matching })
    }

    /// The rules that match a path; what denies matches by any name of the node.
    fn matching_paths(&self, verb: Verb, path: &AbsPath) -> Vec<RuleId> {
        let mut aliases: Option<Vec<AbsPath>> = None;
        let mut matching = Vec::new();
        for (id, rule) in self.policy.rules_of(verb) {
            let Subject::Paths(set) = &rule.subject else { continue };
            let matches = set.contains(path)
                || rule.effect != Effect::Allow
                    && aliases
                        .get_or_insert_with(|| self.policy.facts.aliases(path))
                        .iter()
                        .any(|alias| set.contains(alias));
            if matches {
                matching.push(id);
            }
        }
        matching
    }

    fn matching_names(&self, verb: Verb, name: &str) -> Vec<RuleId> {
        self.matching(verb, |rule| matches!(&rule.subject, Subject::Names(set) if set.contains(name)))
    }

    fn matching(&self, verb: Verb, matches: impl Fn(&Rule) -> bool) -> Vec<RuleId> {
        self.policy.rules_of(verb).filter(|(_, rule)| matches(rule)).map(|(id, _)| id).collect()
    }

    fn matching_peers(&self, verb: Verb, matches: impl Fn(&PeerSet, Effect) -> bool) -> Vec<RuleId> {
        self.matching(verb, |rule| matches!(&rule.subject, Subject::Peers(set) if matches(set, rule.effect)))
    }

    fn connect(&self, name: Option<&Name>, address: IpAddr, port: u16, protocol: Protocol) -> Verdict {
        let address = canonical(address);
        let by_address = self.or(
            self.matching_peers(Verb::Connect, |set, effect| match effect {
                Effect::Allow => set.contains_address(address, protocol, port),
                Effect::Deny | Effect::Forbid => set.contains_carried(address, protocol, port),
            }),
            false,
        );
        let Some(name) = name else { return by_address };
        let mut by_name =
            self.or(self.matching_peers(Verb::Connect, |set, _| set.contains_name(name, protocol, port)), false);
        let named = by_name.matching.clone();
        let merge = |mut verdict: Verdict| {
            verdict.matching = [&named[..], &by_address.matching].concat();
            verdict.matching.sort_unstable();
            verdict.matching.dedup();
            verdict
        };
        if matches!(by_address.why, Why::Forbidden | Why::Denied) {
            return merge(by_address.clone());
        }
        if !by_name.allowed {
            return merge(by_name);
        }
        if by_address.allowed {
            by_name.decisive.extend(&by_address.decisive);
            return merge(by_name);
        }
        let reachable = match special::class(address, &self.policy.facts.own_addresses) {
            Class::Public => true,
            Class::Special => false,
            // Who writes an intranet name means it.
            Class::Private => {
                let naming = named.iter().copied().find(|id| self.allows_by_name(*id, name));
                match (naming, &by_name.decisive[..]) {
                    // It decides by itself, and a wider one would not.
                    (Some(naming), [_]) => by_name.decisive = vec![naming],
                    (Some(naming), decisive) if !decisive.contains(&naming) => by_name.decisive.push(naming),
                    _ => {}
                }
                naming.is_some()
            }
        };
        if !reachable {
            by_name.allowed = false;
            by_name.why = Why::Special;
        }
        merge(by_name)
    }

    /// Whether a rule allows a host by its very name, with no `*`.
    fn allows_by_name(&self, id: RuleId, name: &Name) -> bool {
        let rule = self.policy.rule(id);
        rule.effect == Effect::Allow
            && matches!(&rule.subject,
                Subject::Peers(PeerSet { endpoint: Endpoint::Hosts(hosts), .. }) if hosts.names(name))
    }

    /// Listening on the unspecified address is listening on each address of the host.
    fn listen(&self, address: IpAddr, port: u16) -> Verdict {
        let address = canonical(address);
        let one = |address: IpAddr| {
            self.or(
                self.matching_peers(Verb::Listen, |set, effect| {
                    let set = listening(set);
                    match effect {
                        Effect::Allow => set.contains_address(address, Protocol::Tcp, port),
                        Effect::Deny | Effect::Forbid => set.contains_carried(address, Protocol::Tcp, port),
                    }
                }),
                false,
            )
        };
        let whole = one(address);
        if !whole.allowed || !address.is_unspecified() {
            return whole;
        }
        let own = self.policy.facts.own_addresses.iter().map(|own| canonical(*own));
        own.filter(|own| own.is_ipv4() == address.is_ipv4()).map(one).find(|verdict| !verdict.allowed).unwrap_or(whole)
    }
}

#[cfg(test)]
mod tests;
