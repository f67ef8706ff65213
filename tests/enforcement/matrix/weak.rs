//! That the matrix can fail: plans from which one kind of defence was taken are found out.

use super::tree::Attempt;
use super::{Tally, case, probe};
use crate::sandbox::{Run, scratch};
use crate::support;
use sandbox_runtime::backend::bubblewrap::{Mount, Plan};
use std::path::Path;

/// Runs the probe under a plan.
fn under(plan: &Plan, base: &Path, attempts: &[Attempt]) -> support::Output {
    let mut run = Run::shell("");
    run.plan = plan.clone();
    run.command = probe(base, attempts).to_vec();
    let (mut process, _plan) = run.process();
    support::output(&mut process)
}

/// Fails unless one of a few cases shows that the plan does not hold what the policy says.
fn found_out(weaken: impl Fn(&mut Plan), by: &[&str]) {
    let scratch = scratch(None);
    let base = scratch.path().join("tree");
    let mut tried = 0;
    for seed in 1..200 {
        let Some((bound, attempts)) = case(seed, &base, None, false) else { continue };
        let mut plan = bound.plan.clone();
        weaken(&mut plan);
        if plan == bound.plan {
            continue;
        }
        tried += 1;
        let faults = |plan: &Plan| {
            let mut tally = Tally::default();
            let output = under(plan, &base, &attempts);
            tally.compare("a weakened plan", &base, &bound, &attempts, &output);
            tally.faults
        };
        let found = faults(&plan);
        let shows = |fault: &String| by.iter().any(|what| fault.contains(&format!("DENIED, AND SUCCEEDED: {what} ")));
        if found.iter().any(shows) {
            // And it is the weakness that was found, nothing else.
            super::tree::build(&base, None);
            assert_eq!(rebound(seed, &base), [""; 0]);
            return;
        }
        assert!(tried < 30, "nothing was found in {tried} weakened plans: {found:?}");
    }
    panic!("no plan has what was taken");
}

/// The faults of the whole plan of a seed.
fn rebound(seed: u64, base: &Path) -> Vec<String> {
    let (bound, attempts) = case(seed, base, None, false).unwrap();
    let mut tally = Tally::default();
    let output = under(&bound.plan, base, &attempts);
    tally.compare("the whole plan", base, &bound, &attempts, &output);
    tally.faults
}

#[test]
fn missing_masks_are_found_out() {
    let is_mask = |mount: &Mount| matches!(mount, Mount::MaskFile { .. } | Mount::EmptyDirectory { .. });
    found_out(|plan| plan.mounts.retain(|mount| !is_mask(mount)), &["read", "list"]);
}

#[test]
fn missing_pins_are_found_out() {
    found_out(unpin, &["rename", "exchange"]);
}

/// Takes the mounts away that change nothing but that a directory cannot be moved.
fn unpin(plan: &mut Plan) {
    let flags = |mount: &Mount| match mount {
        Mount::Bind { path, write, exec, .. } => Some((path.clone(), *write, *exec)),
        _ => None,
    };
    let binds: Vec<_> = plan.mounts.iter().filter_map(flags).collect();
    let around = |path: &[u8]| {
        let holds = |other: &[u8]| path.strip_prefix(other).is_some_and(|rest| rest.starts_with(b"/"));
        let nearest = binds.iter().filter(|(other, ..)| holds(other)).max_by_key(|(other, ..)| other.len());
        nearest.map(|(_, write, exec)| (*write, *exec))
    };
    plan.mounts
        .retain(|mount| flags(mount).is_none_or(|(path, write, exec)| !write || around(&path) != Some((write, exec))));
}

#[test]
fn writable_places_that_should_not_be_are_found_out() {
    let weaken = |plan: &mut Plan| {
        for mount in &mut plan.mounts {
            if let Mount::Bind { write, path, .. } = mount
                && path.starts_with(b"/var/tmp/")
            {
                *write = true;
            }
        }
    };
    found_out(weaken, &["create", "modify", "chmod"]);
}

#[test]
fn missing_noexec_is_found_out() {
    let weaken = |plan: &mut Plan| {
        for mount in &mut plan.mounts {
            if let Mount::Bind { exec, .. } = mount {
                *exec = true;
            }
        }
        if let Some(landlock) = &mut plan.landlock {
            landlock.exec = vec![b"/".to_vec()];
        }
    };
    found_out(weaken, &["exec", "map"]);
}
