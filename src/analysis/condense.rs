//! Long lists of hosts, before a policy is studied: of entries that no rule, expectation or other list tells apart, one
//! stands for all.
//!
//! Exact, and not a sample: two entries that the same patterns hold whole, and that all others are apart from, are decided
//! alike whatever the question is. The names of those that are left out are no answers: the search passes them over.

use crate::ir::{Policy, Subject};
use crate::sets::host::{Absent, HostSet, Pattern, Table};
use crate::sets::peer::Endpoint;
use rustc_hash::FxHashMap;
use std::borrow::Cow;
use std::sync::Arc;

/// So many entries are looked at as they are.
const FEW: usize = 64;

/// One policy with short lists; itself where they are short already.
pub fn short(policy: &Policy) -> Cow<'_, Policy> {
    condensed(&[policy]).and_then(|mut short| short.pop()).map_or(Cow::Borrowed(policy), Cow::Owned)
}

/// The policies with short lists, all studied together; `None` where theirs are short already.
pub fn condensed(policies: &[&Policy]) -> Option<Vec<Policy>> {
    condensed_from(FEW, policies)
}

fn condensed_from(few: usize, policies: &[&Policy]) -> Option<Vec<Policy>> {
    let long = |set: &HostSet| {
        set.include
            .iter()
            .chain(&set.exclude)
            .any(|pattern| matches!(pattern, Pattern::Table(table) if table.len() > few))
    };
    let mut sets: Vec<&HostSet> = Vec::new();
    for policy in policies {
        each(policy, &mut |set| sets.push(set));
    }
    if !sets.iter().any(|set| long(set)) {
        return None;
    }
    let mut tables: Vec<Arc<Table>> = Vec::new();
    let mut plain: Vec<&Pattern> = Vec::new();
    for pattern in sets.iter().flat_map(|set| set.include.iter().chain(&set.exclude)) {
        match pattern {
            Pattern::Table(table) if tables.iter().any(|known| Arc::ptr_eq(known, table)) => {}
            Pattern::Table(table) => tables.push(Arc::clone(table)),
            Pattern::Any => {}
            _ => plain.push(pattern),
        }
    }
    plain.sort_unstable();
    plain.dedup();
    let absent = Arc::new(Absent::new(tables, &plain));
    let mut short = FxHashMap::default();
    let condensed = policies.iter().map(|policy| {
        let mut policy = (*policy).clone();
        for rule in &policy.rules {
            let tables = hosts(&rule.subject).into_iter().flat_map(|set| &set.include);
            let tables =
                tables.filter_map(|pattern| if let Pattern::Table(table) = pattern { Some(table) } else { None });
            let tables: Vec<_> = tables.cloned().collect();
            if !tables.is_empty() {
                policy.shortened.insert(rule.span, tables);
            }
        }
        each_mut(&mut policy, &mut |set| {
            for patterns in [&mut set.include, &mut set.exclude] {
                *patterns = std::mem::take(patterns)
                    .into_iter()
                    .flat_map(|pattern| match pattern {
                        Pattern::Table(table) => {
                            short.entry(Arc::as_ptr(&table)).or_insert_with(|| absent.kept_of(&table)).clone()
                        }
                        other => vec![other],
                    })
                    .collect();
            }
        });
        policy.absent = Some(Arc::clone(&absent));
        policy
    });
    Some(condensed.collect())
}

fn hosts(subject: &Subject) -> Option<&HostSet> {
    match subject {
        Subject::Peers(peers) => match &peers.endpoint {
            Endpoint::Hosts(hosts) => Some(hosts),
            Endpoint::Addresses(_) => None,
        },
        _ => None,
    }
}

/// Each set of hosts of a policy, and of those that it is to be within.
fn each<'p>(policy: &'p Policy, found: &mut dyn FnMut(&'p HostSet)) {
    let subjects = policy.rules.iter().map(|rule| &rule.subject);
    let subjects = subjects.chain(policy.expects.iter().map(|expect| &expect.subject));
    subjects.filter_map(hosts).for_each(&mut *found);
    for ceiling in policy.withins.iter().filter_map(|within| within.ceiling.as_deref()) {
        each(ceiling, found);
    }
}

fn each_mut(policy: &mut Policy, change: &mut dyn FnMut(&mut HostSet)) {
    let subjects = policy.rules.iter_mut().map(|rule| &mut rule.subject);
    for subject in subjects.chain(policy.expects.iter_mut().map(|expect| &mut expect.subject)) {
        if let Subject::Peers(peers) = subject
            && let Endpoint::Hosts(hosts) = &mut peers.endpoint
        {
            change(hosts);
        }
    }
    for ceiling in policy.withins.iter_mut().filter_map(|within| within.ceiling.as_deref_mut()) {
        each_mut(ceiling, change);
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::*;
    use crate::analysis::{Answer, Budget, Study, Worth};
    use crate::ir::{Access, Expect, Origin, Rule, RuleId, Setting, Unset, decide};
    use crate::sets::host::{Builder, Name};
    use crate::sets::peer::PeerSet;
    use crate::sets::port::PortSet;
    use crate::source::{Sources, Span};
    use crate::vocabulary::{Effect, System, Verb};
    use proptest::prelude::*;

    fn entry() -> impl Strategy<Value = String> {
        let label = || prop::sample::select(vec!["a", "b", "c", "ab", "example", "ads"]);
        (any::<bool>(), prop::collection::vec(label(), 1..4))
            .prop_map(|(below, labels)| format!("{}{}", if below { "*." } else { "" }, labels.join(".")))
    }

    /// Some patterns, and the same with those that a list may hold in one.
    fn patterns() -> impl Strategy<Value = (Vec<Pattern>, Vec<Pattern>)> {
        let one = prop_oneof![3 => entry(), 1 => Just("*".to_owned()), 1 => Just("a*.b".to_owned())];
        let one = one.prop_map(|text| vec![Pattern::parse(&text).unwrap()]).prop_map(|one| (one.clone(), one));
        let list = prop::collection::vec(entry(), 1..10).prop_map(|entries| {
            let mut builder = Builder::default();
            for (entry, line) in entries.iter().zip(1..) {
                let name = Name::parse(entry.trim_start_matches("*.")).unwrap();
                builder.push(entry.starts_with('*'), &name, line).unwrap();
            }
            let table = Arc::new(builder.finish("l".into()));
            (table.all(), entries.iter().map(|entry| Pattern::parse(entry).unwrap()).collect())
        });
        prop_oneof![2 => one, 3 => list]
    }

    fn sets() -> impl Strategy<Value = (HostSet, HostSet)> {
        (patterns(), prop::option::weighted(0.3, patterns())).prop_map(|(include, exclude)| {
            let (short, long) = exclude.unwrap_or_default();
            (HostSet { include: include.0, exclude: short }, HostSet { include: include.1, exclude: long })
        })
    }

    fn subject(hosts: HostSet) -> Subject {
        let ports = PortSet::from_ranges([443..=443]);
        Subject::Peers(PeerSet { endpoint: Endpoint::Hosts(hosts), tcp: true, udp: false, ports })
    }

    fn policy(rules: Vec<(Effect, HostSet)>, asked: HostSet) -> Policy {
        let span = Span::new(Sources::default().add("t", ""), 0..0);
        let mut policy = Policy::new(System::Linux, Setting { value: Effect::Deny, span });
        policy.rules.extend(rules.into_iter().map(|(effect, hosts)| Rule {
            effect,
            verb: Verb::Connect,
            subject: subject(hosts),
            because: None,
            unset: Unset::Refuse,
            span,
            origin: Origin::Given,
        }));
        let subject = subject(asked);
        policy.expects.push(Expect { allow: true, verb: Verb::Connect, subject, unset: Unset::Refuse, span });
        policy
    }

    fn kind<T>(answer: &Answer<T>) -> &'static str {
        match answer {
            Answer::None => "none",
            Answer::Some(_) => "some",
            Answer::Unknown => "unknown",
        }
    }

    proptest! {
        /// What is said of a policy with lists is what is said of the same hosts written out, and its witnesses are decided so.
        #[test]
        fn short_lists_say_what_long_ones_do(
            rules in prop::collection::vec(
                (prop::sample::select(vec![Effect::Allow, Effect::Allow, Effect::Deny, Effect::Forbid]), sets()), 1..5
            ),
            (asked, asked_long) in sets(),
        ) {
            let (own, long): (Vec<_>, Vec<_>) =
                rules.into_iter().map(|(effect, (own, long))| ((effect, own), (effect, long))).unzip();
            let (listed, long) = (policy(own, asked), policy(long, asked_long));
            let Some(short) = condensed_from(0, &[&listed]).map(|mut short| short.remove(0)) else { return Ok(()) };
            let (study, whole) = (Study::new(&short), Study::new(&long));
            let (within, within_long) = (&short.expects[0].subject, &long.expects[0].subject);
            for permits in [true, false] {
                let ask = |study: &Study<'_>, within: &Subject| {
                    let budget = &mut Budget::new(10_000_000);
                    if permits {
                        study.whole().permitted(Verb::Connect, within, budget)
                    } else {
                        study.whole().denied(Verb::Connect, within, budget)
                    }
                };
                let (own, all) = (ask(&study, within), ask(&whole, within_long));
                prop_assert_eq!(kind(&own), kind(&all), "{:?} {:?} permits {}", own, all, permits);
                if let Answer::Some(access) = own {
                    prop_assert_eq!(decide(&listed, &access).allowed, permits);
                    prop_assert_eq!(decide(&long, &access).allowed, permits);
                    let Access::Connect { name: Some(name), .. } = &access else { panic!("{access}") };
                    let holds = matches!(&listed.expects[0].subject, Subject::Peers(PeerSet { endpoint: Endpoint::Hosts(set), .. }) if set.contains(name));
                    prop_assert!(holds, "{} is not asked about", access);
                }
            }
            for (rule, id) in listed.rules.iter().zip((0..).map(RuleId)) {
                if rule.effect == Effect::Allow {
                    let worth = |study: &Study<'_>| match study.worth(id, &mut Budget::new(10_000_000)) {
                        Answer::Some(Worth::Dead) => "dead",
                        Answer::Some(Worth::Redundant(_)) => "redundant",
                        Answer::Some(Worth::Needed(_)) => "needed",
                        _ => "unknown",
                    };
                    prop_assert_eq!(worth(&study), worth(&whole));
                }
            }
        }
    }
}
