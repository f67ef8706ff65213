//! Variables put in and links followed, in every set of the policy.
//!
//! A deny or forbid governs a link and what it leads to, an allow only the latter; what an `except` takes is taken the
//! other way round. The other names of a denied place become a rule of their own beside the first, so that which rule is
//! more specific than which does not depend on links.

use super::codes::{LINK_IN_WRITABLE, LINK_LOOP, VARIABLE_VALUE};
use super::link::{Fault, Links, Place};
use super::private::{Private, Shared};
use super::variable::{Places, Values};
use crate::diagnostic::Diagnostic;
use crate::ir::{Access, Policy, Rule, Subject, decide};
use crate::sets::address::AddressSet;
use crate::sets::host::{self, Name};
use crate::sets::path::{AbsPath, PathSet, Pattern, Segment, Start};
use crate::sets::peer::{Endpoint, PeerSet};
use crate::source::Span;
use crate::vocabulary::{Effect, Reach, Verb};
use std::collections::{BTreeMap, BTreeSet};
use std::net::IpAddr;

pub(super) struct Placer<'a, 'h> {
    pub values: &'a Values,
    pub places: &'a Places,
    pub links: &'a mut Links<'h>,
    pub diagnostics: &'a mut Vec<Diagnostic>,
    pub shared: Shared,
    /// The links that targets lead through, each with the first target that does.
    pub through: BTreeMap<AbsPath, Span>,
    /// The same with each target.
    pub led: Vec<(AbsPath, Span)>,
    /// Targets that lead nowhere have been said once each.
    pub faulty: BTreeSet<(AbsPath, Span)>,
}

impl Placer<'_, '_> {
    /// Binds all sets of a policy.
    pub fn policy(&mut self, policy: &mut Policy) {
        let rules = std::mem::take(&mut policy.rules);
        // Few have other names.
        policy.rules.reserve(rules.len() + rules.len() / 16);
        for mut rule in rules {
            let permits = rule.effect == Effect::Allow;
            let grants = permits && rule.verb == Verb::Write;
            let names = self.subject(&mut rule.subject, permits, grants, rule.span);
            let other = names.map(|names| Rule { subject: Subject::Paths(names), ..rule.clone() });
            policy.rules.push(rule);
            policy.rules.extend(other);
        }
        for expect in &mut policy.expects {
            let names = self.subject(&mut expect.subject, expect.allow, false, expect.span);
            if let (Subject::Paths(set), Some(names)) = (&mut expect.subject, names) {
                set.include.extend(names.include);
            }
        }
        for ignore in &mut policy.ignores {
            let names = self.subject(&mut ignore.subject, false, false, ignore.span);
            if let (Subject::Paths(set), Some(names)) = (&mut ignore.subject, names) {
                set.include.extend(names.include);
            }
        }
        for assume in &mut policy.assumes {
            for pattern in &mut assume.paths.include {
                self.pattern(pattern, assume.span);
            }
        }
    }

    /// Says which links lie where the policy lets the command replace them. The policy is bound.
    pub fn judge_links(&mut self, policy: &Policy) {
        let grants: Vec<_> = policy
            .rules
            .iter()
            .filter(|rule| rule.effect == Effect::Allow && rule.verb == Verb::Write)
            .filter_map(|rule| if let Subject::Paths(set) = &rule.subject { Some(set) } else { None })
            .collect();
        // Nearly all lie where nothing grants it, and need not be decided among all rules.
        let is_writable = |path: &AbsPath| {
            grants.iter().any(|set| set.contains(path)) && decide(policy, &Access::Write(path.clone())).allowed
        };
        for (link, span) in &self.through {
            let here = is_writable(link);
            let around = link.parent().filter(is_writable);
            if here || around.is_some() {
                let place = around.as_ref().unwrap_or(link);
                let message =
                    format!("this target leads through the link `{link}`, and the policy makes `{place}` writable");
                let diagnostic = Diagnostic::new(&LINK_IN_WRITABLE, message).label(*span, "through a link");
                let leads = self.links.follow(link).place;
                self.diagnostics.push(diagnostic.help(format!("name `{leads}` itself, where the link leads now")));
            }
        }
    }

    /// Binds one set; what comes back are the other names of what it denies.
    fn subject(&mut self, subject: &mut Subject, permits: bool, grants: bool, span: Span) -> Option<PathSet> {
        match subject {
            Subject::Paths(set) => self.paths(set, permits, grants, span),
            Subject::Peers(peers) => {
                self.peers(peers, span);
                None
            }
            Subject::Names(_) => None,
        }
    }

    fn paths(&mut self, set: &mut PathSet, permits: bool, grants: bool, span: Span) -> Option<PathSet> {
        let mut names = Vec::new();
        for pattern in &mut set.include {
            names.extend(self.pattern(pattern, span));
            self.shared.note(pattern, grants);
        }
        let mut others = Vec::new();
        for pattern in &mut set.exclude {
            others.extend(self.pattern(pattern, span));
            self.shared.note(pattern, false);
        }
        if permits {
            set.exclude.extend(others);
        }
        (!permits && !names.is_empty()).then(|| PathSet { include: names, exclude: set.exclude.clone() })
    }

    /// Puts a pattern at its place; what comes back is what else that place is called.
    fn pattern(&mut self, pattern: &mut Pattern, span: Span) -> Vec<Pattern> {
        if let Start::Variable(name) = &pattern.start {
            // Where the run's own is, is known when all others are at their places. The rest was said by whoever judged
            // the values.
            let Some(place) = self.places.get(&**name).filter(|_| **name != *TMP) else { return Vec::new() };
            pattern.put_at(place);
        }
        let straight = match &pattern.start {
            Start::Root => self.links.is_straight(&Place::root(), pattern),
            Start::Drive(_) => false,
            Start::Variable(_) => true,
        };
        if straight {
            return Vec::new();
        }
        let prefix = pattern.literal_prefix();
        let followed = self.links.follow(&prefix);
        if let Some(fault) = &followed.fault
            && self.faulty.insert((prefix.clone(), span))
        {
            let message = match fault {
                Fault::Loop => format!("`{prefix}` leads through links that never end"),
                Fault::Unreadable(why) => format!("where `{prefix}` leads can't be seen: {why}"),
            };
            let diagnostic = Diagnostic::new(&LINK_LOOP, message).label(span, "leads nowhere");
            self.diagnostics.push(diagnostic.help("name the place that was meant, or mend what is on the way"));
        }
        for link in followed.links {
            if !self.led.contains(&(link.clone(), span)) {
                self.led.push((link.clone(), span));
            }
            self.through.entry(link).or_insert(span);
        }
        let rest = pattern.segments.split_off(prefix.segments.len());
        let at = |place: &AbsPath| Pattern {
            start: place.start.clone(),
            segments: place.segments.iter().cloned().map(Segment::Literal).chain(rest.iter().cloned()).collect(),
            reach: pattern.reach,
        };
        let names = followed.names.iter().map(at).collect();
        *pattern = at(&followed.place);
        names
    }

    /// A host that is a variable becomes the name, or the address, that is its value.
    fn peers(&mut self, peers: &mut PeerSet, span: Span) {
        let Endpoint::Hosts(set) = &mut peers.endpoint else { return };
        let alone = set.include.len() == 1 && set.exclude.is_empty();
        let mut address = None;
        for pattern in set.include.iter_mut().chain(&mut set.exclude) {
            let host::Pattern::Variable(name) = &*pattern else { continue };
            let Some(value) = self.values.get(name) else { continue };
            match (Name::parse(value), value.parse::<IpAddr>()) {
                (Ok(host), _) if !host.is_localhost() => *pattern = host::Pattern::literal(&host),
                (_, Ok(value)) if alone => address = Some(value),
                _ => {
                    let message = format!("`${name}` is `{}`, which is not one host name", value.escape_default());
                    let diagnostic = Diagnostic::new(&VARIABLE_VALUE, message).label(span, "used here");
                    self.diagnostics.push(diagnostic.help("give it one host name, without a scheme or a port"));
                }
            }
        }
        if let Some(address) = address {
            peers.endpoint = Endpoint::Addresses(AddressSet::from(address));
        }
    }
}

/// The variable whose place is the run's own: what the host has there is another place.
const TMP: &str = "TMP";

/// Puts `$TMP` in, once it is known where that is: of the places of the host that show through it none belongs to it.
pub(super) fn temporary(policy: &mut Policy, private: &Private, diagnostics: &mut Vec<Diagnostic>) {
    let is_tmp = |pattern: &Pattern| matches!(&pattern.start, Start::Variable(name) if **name == *TMP);
    let rules = policy.rules.iter_mut().map(|rule| (&mut rule.subject, rule.effect == Effect::Allow, rule.span));
    let expects = policy.expects.iter_mut().map(|expect| (&mut expect.subject, expect.allow, expect.span));
    let ignores = policy.ignores.iter_mut().map(|ignore| (&mut ignore.subject, false, ignore.span));
    for (subject, permits, span) in rules.chain(expects).chain(ignores) {
        let Subject::Paths(set) = subject else { continue };
        let (own, taken) = (set.include.iter().any(is_tmp), set.exclude.iter().any(is_tmp));
        if !own && !taken {
            continue;
        }
        if !permits && taken && !private.within.is_empty() {
            let message = format!("`$TMP` is taken from what is denied, and `{}` lies inside it", private.within[0]);
            let diagnostic = Diagnostic::new(&VARIABLE_VALUE, message).label(span, "its `except` names `$TMP`");
            let help = format!("start outside `{}`, or name what is denied without `$TMP`", private.place);
            diagnostics.push(diagnostic.help(help));
        }
        for pattern in set.include.iter_mut().chain(&mut set.exclude) {
            pattern.bind(TMP, &private.place);
        }
        if own {
            set.exclude.extend(private.within.iter().map(|place| Pattern::literal(place, Reach::Tree)));
        }
    }
    for pattern in policy.assumes.iter_mut().flat_map(|assume| &mut assume.paths.include) {
        pattern.bind(TMP, &private.place);
    }
}
