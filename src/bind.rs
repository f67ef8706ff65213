//! [`Policy`] + [`Host`] → [`BoundPolicy`]: variables within their assumptions, link chains, mount aliases, and one walk
//! for all globs.
//!
//! What a rule's set *is* changes in two ways only: variables become their values, and link aliases are added.
//! Expansions of globs are facts beside the rules.

mod codes;
mod idle;
mod link;
mod node;
mod observe;
mod place;
mod private;
#[cfg(test)]
mod tests;
mod variable;
mod walk;

pub use codes::CODES;
pub use observe::observe;

use crate::diagnostic::{Diagnostic, any_error};
use crate::host::Host;
use crate::ir::{BoundPolicy, Facts, Policy};
use crate::sets::path::AbsPath;
use crate::vocabulary::{System, Verb};
use std::collections::{BTreeMap, BTreeSet};

/// Binds a policy to a machine. A bound policy must not be used if one of the diagnostics is an error.
pub fn bind(policy: Policy, host: &dyn Host) -> (Option<BoundPolicy>, Vec<Diagnostic>) {
    bind_some(policy, host, false)
}

/// As [`bind()`], for those who carry a policy out and need not say which rule denies what: rules may be missing that deny
/// writing where nothing grants it, or reading what is not there, cannot be made there, and is accepted if it appears from
/// outside. Permits the same of all else, and says the same errors. What is missing is among the facts, and
/// [`Policy::with_idle`] is the whole.
pub fn bind_grants(policy: Policy, host: &dyn Host) -> (Option<BoundPolicy>, Vec<Diagnostic>) {
    bind_some(policy, host, true)
}

fn bind_some(policy: Policy, host: &dyn Host, grants: bool) -> (Option<BoundPolicy>, Vec<Diagnostic>) {
    let mut policy = policy;
    let mut diagnostics = Vec::new();
    let mut values = variable::settle(&mut policy, host, &mut diagnostics);
    let own = match policy.system {
        System::Linux => vec![AbsPath::root().join("proc"), AbsPath::root().join("dev")],
        System::Macos | System::Windows => Vec::new(),
    };
    let mut links = link::Links::new(host, own);
    variable::judge(&policy, &values, &mut links, &mut diagnostics);
    if any_error(&diagnostics) {
        return (None, diagnostics);
    }
    let places = variable::places(&values);
    let mounts = node::aliases(host);
    let idle = if grants && policy.system == System::Linux && mounts.is_empty() {
        idle::leave_out(&mut policy, &places, &mut links)
    } else {
        Vec::new()
    };
    let mut placer = place::Placer {
        values: &values,
        places: &places,
        links: &mut links,
        diagnostics: &mut diagnostics,
        shared: private::Shared::default(),
        through: BTreeMap::new(),
        led: Vec::new(),
        faulty: BTreeSet::new(),
    };
    placer.policy(&mut policy);
    let private = private::place(policy.system, std::mem::take(&mut placer.shared), &places, placer.links);
    place::temporary(&mut policy, &private, placer.diagnostics);
    placer.judge_links(&policy);
    let through = std::mem::take(&mut placer.led);
    for ceiling in policy.withins.iter_mut().filter_map(|within| within.ceiling.as_deref_mut()) {
        bind_ceiling(ceiling, host, &private, &mut links, &mut diagnostics);
    }
    let expansions = walk::walk(&policy, host, &links, &private, &mut diagnostics).expansions;
    values.insert("TMP".to_owned(), private.place.to_string());
    let search_path =
        variable::search_path(policy.system, host).into_iter().map(|place| links.follow(&place).place).collect();
    // What nothing connects to or listens at is the machine's or not, to no effect.
    let connects = policy.rules.iter().any(|rule| matches!(rule.verb, Verb::Connect | Verb::Listen));
    policy.facts = Facts {
        variables: values,
        nodes: node::named(&policy, &expansions, &mounts, &private, &mut links),
        links: links.facts(),
        through,
        mounts,
        expansions,
        own_addresses: if connects || !grants { host.addresses().to_vec() } else { Vec::new() },
        policies: policy.files.iter().flat_map(|file| host.file(file)).collect(),
        search_path,
        hooks: host.hooks().map(|place| links.follow(&place).place),
        idle,
        ..Facts::default()
    };
    policy.facts.fill_elsewhere(&policy.rules);
    for ceiling in policy.withins.iter_mut().filter_map(|within| within.ceiling.as_deref_mut()) {
        ceiling.facts.own_addresses.clone_from(&policy.facts.own_addresses);
        ceiling.facts.mounts.clone_from(&policy.facts.mounts);
        ceiling.facts.fill_elsewhere(&ceiling.rules);
    }
    (Some(BoundPolicy(policy)), diagnostics)
}

/// Binds the policy that another one claims to be within, to the same places: what `$TMP` is, the policy that is run says.
fn bind_ceiling(
    ceiling: &mut Policy,
    host: &dyn Host,
    private: &private::Private,
    links: &mut link::Links<'_>,
    diagnostics: &mut Vec<Diagnostic>,
) {
    let values = variable::settle(ceiling, host, diagnostics);
    variable::judge(ceiling, &values, links, diagnostics);
    let places = variable::places(&values);
    let mut placer = place::Placer {
        values: &values,
        places: &places,
        links,
        diagnostics,
        shared: private::Shared::default(),
        through: BTreeMap::new(),
        led: Vec::new(),
        faulty: BTreeSet::new(),
    };
    placer.policy(ceiling);
    place::temporary(ceiling, private, placer.diagnostics);
}
