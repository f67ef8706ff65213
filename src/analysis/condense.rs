//! Long lists of hosts, before a policy is studied: of entries that no rule, expectation or other list tells apart, one
//! stands for all.
//!
//! Exact, and not a sample: two entries that the same patterns hold whole, and that all others are apart from, are decided
//! alike whatever the question is. The names of those that are left out are no answers: the search passes them over.

use crate::ir::{Policy, Subject};
use crate::sets::host::{Absent, HostSet, Pattern, Table};
use crate::sets::peer::Endpoint;
use std::collections::HashMap;
use std::sync::Arc;

/// So many entries are looked at as they are.
const FEW: usize = 64;

/// The policies with short lists, all studied together; `None` where theirs are short already.
pub fn condensed(policies: &[&Policy]) -> Option<Vec<Policy>> {
    let long = |set: &HostSet| {
        set.include.iter().chain(&set.exclude).any(|pattern| matches!(pattern, Pattern::Table(table) if table.len() > FEW))
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
    let mut short = HashMap::new();
    let condensed = policies.iter().map(|policy| {
        let mut policy = (*policy).clone();
        each_mut(&mut policy, &mut |set| {
            for patterns in [&mut set.include, &mut set.exclude] {
                *patterns = std::mem::take(patterns)
                    .into_iter()
                    .flat_map(|pattern| match pattern {
                        Pattern::Table(table) => short
                            .entry(Arc::as_ptr(&table))
                            .or_insert_with(|| absent.kept_of(&table))
                            .clone(),
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
