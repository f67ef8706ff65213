//! The laws of the meaning, on generated policies: adding an `allow` never denies more, adding a `deny` or `forbid` never
//! permits more, order never matters.

use super::brute::{Effect, World};
use super::{cases, runner};
use proptest::prelude::*;
use proptest::sample::Index;
use sandbox_runtime::ir::{Access, Policy, decide};
use sandbox_runtime::vocabulary;

/// Runs `law` on a policy whose last rule is held back, and the whole one.
fn law(cases: u32, last: &[Effect], law: impl Fn(bool, bool) -> bool) {
    let world = World::new(None);
    runner(cases, 20_000)
        .run(&(cases::drafts(), any::<Index>()), |(draft, place)| {
            let mut case = draft.build(&world);
            let Some(added) = case.rules.iter().position(|rule| last.contains(&rule.effect)) else { return Ok(()) };
            let access = case.ir_access(&world);
            let added = case.rules.remove(added);
            let before = decide(&case.policy(&world), &access).allowed;
            case.rules.insert(place.index(case.rules.len() + 1), added);
            let after = decide(&case.policy(&world), &access).allowed;
            prop_assert!(law(before, after), "{before} became {after}\n{}", case.describe(&world));
            Ok(())
        })
        .unwrap();
}

#[test]
fn adding_an_allow_never_denies_more() {
    law(3000, &[Effect::Allow], |before, after| after || !before);
}

#[test]
fn adding_a_deny_never_permits_more() {
    law(3000, &[Effect::Deny, Effect::Forbid], |before, after| before || !after);
}

#[test]
fn order_never_matters() {
    let world = World::new(None);
    let strategy = cases::drafts().prop_flat_map(|draft| (Just(draft), any::<u64>()));
    runner(3000, 20_000)
        .run(&strategy, |(draft, seed)| {
            let case = draft.build(&world);
            let (policy, access) = (case.policy(&world), case.ir_access(&world));
            let verdict = decide(&policy, &access);
            let mut mixed = policy.clone();
            shuffle(&mut mixed, seed);
            let other = decide(&mixed, &access);
            prop_assert_eq!((verdict.allowed, verdict.why), (other.allowed, other.why));
            prop_assert_eq!(verdict.matching.len(), other.matching.len());
            Ok(())
        })
        .unwrap();
}

fn shuffle(policy: &mut Policy, mut seed: u64) {
    for last in (1..policy.rules.len()).rev() {
        seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        let other = usize::try_from(seed >> 33).unwrap() % (last + 1);
        policy.rules.swap(last, other);
    }
}

/// Not laws, so the checks above can fail: taking the *first* matching rule as the decision breaks them.
#[test]
fn the_checks_can_fail() {
    let world = World::new(None);
    let first_wins = |policy: &Policy, access: &Access| {
        let matching = decide(policy, access).matching;
        matching.first().is_some_and(|id| policy.rule(*id).effect == vocabulary::Effect::Allow)
    };
    let found = runner(3000, 0).run(&cases::drafts(), |draft| {
        let case = draft.build(&world);
        let (policy, access) = (case.policy(&world), case.ir_access(&world));
        let mut mixed = policy.clone();
        mixed.rules.reverse();
        prop_assert_eq!(first_wins(&policy, &access), first_wins(&mixed, &access));
        Ok(())
    });
    assert!(found.is_err());
}
