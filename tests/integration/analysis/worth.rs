//! What each allow of a generated policy is worth, against a brute force over a finite universe: an allow that decides
//! something there is not dead, one that is missed there is not redundant, and whatever is shown is decided so by `decide`.

use super::generated::{count, is_in, size, visible};
use crate::semantics::brute::{Bits, Effect, Verb, What, World};
use crate::semantics::cases::{self, Case};
use crate::semantics::runner;
use crate::semantics::whole::Rules;
use proptest::test_runner::{TestCaseError, TestError};
use sandbox_runtime::analysis::{Answer, Budget, Study, Worth};
use sandbox_runtime::ir::{Access, RuleId, decide};
use std::cell::RefCell;

/// What the universe says of an allow.
#[derive(Debug, Clone, Copy)]
struct Expected {
    /// Something in its set is permitted.
    alive: bool,
    /// Something is no longer permitted without it.
    needed: bool,
}

/// What an allow came to: how many of each.
#[derive(Debug, Default)]
struct Reached {
    dead: usize,
    redundant: usize,
    needed: usize,
    unknown: usize,
}

fn is_empty(bits: &Bits) -> bool {
    bits.members().next().is_none()
}

fn expected(world: &World, case: &Case, without: &Case, index: usize) -> Expected {
    fn rules(case: &Case) -> Rules<'_> {
        Rules { rules: &case.rules, open_read: case.open_read, open_env: case.open_env }
    }
    let rule = &case.rules[index];
    let members = world.members_of(&rule.what);
    match &rule.what {
        What::Paths { .. } => {
            let visible = visible(world, case.rules.iter().map(|rule| &rule.what));
            let permitted = |case, verb| world.permitted_paths(rules(case), verb).and(&visible);
            let verbs = if rule.verb == Verb::Read { &[Verb::Read, Verb::Write, Verb::Exec][..] } else { &[rule.verb] };
            let missed = |verb: &Verb| !is_empty(&permitted(case, *verb).less(&permitted(without, *verb)));
            Expected { alive: !is_empty(&permitted(case, rule.verb).and(&members)), needed: verbs.iter().any(missed) }
        }
        What::Names { .. } => {
            let (permitted, left) = (world.permitted_names(rules(case)), world.permitted_names(rules(without)));
            Expected { alive: !is_empty(&permitted.clone().and(&members)), needed: !is_empty(&permitted.less(&left)) }
        }
        What::Hosts { .. } | What::Addresses { .. } => {
            let by_name = matches!(rule.what, What::Hosts { .. });
            let (permitted, left) =
                (world.permitted_connections(rules(case)), world.permitted_connections(rules(without)));
            let covered = permitted.iter().filter(|cell| world.covers(&rule.what, cell.port, cell.udp));
            let alive = covered.map(|cell| {
                let named = cell.named.iter().any(|named| !is_empty(&named.clone().and(&members)));
                if by_name { named } else { !is_empty(&cell.bare.clone().and(&members)) }
            });
            let missed = permitted.iter().zip(&left).map(|(cell, left)| {
                let mut named = cell.named.iter().zip(&left.named);
                !is_empty(&cell.bare.clone().less(&left.bare))
                    || named.any(|(named, left)| !is_empty(&named.clone().less(left)))
            });
            Expected { alive: alive.into_iter().any(|alive| alive), needed: missed.into_iter().any(|missed| missed) }
        }
    }
}

fn compare(world: &World, case: &Case, reached: &mut Reached) -> Result<(), String> {
    let policy = case.policy(world);
    let study = Study::new(&policy);
    let allows = case.rules.iter().enumerate().filter(|(_, rule)| rule.effect == Effect::Allow);
    for (index, id) in allows.map(|(index, _)| (index, RuleId(u32::try_from(index).unwrap()))) {
        let mut without = case.clone();
        without.rules.remove(index);
        let expected = expected(world, case, &without, index);
        let without = without.policy(world);
        let allowed = |access: &Access| decide(&policy, access).allowed;
        // Longer than the universe is deep.
        let beyond = |access: &Access| size(access) > 3;
        let found = study.worth(id, &mut Budget::new(10_000_000));
        let right = match &found {
            // What a literal name adds where every public address is denied is not looked into.
            Answer::Unknown => {
                reached.unknown += 1;
                case.rules
                    .iter()
                    .any(|rule| matches!(rule.what, What::Addresses { .. }) && rule.effect != Effect::Allow)
            }
            Answer::None => false,
            Answer::Some(Worth::Dead) => {
                reached.dead += 1;
                !expected.alive && !expected.needed
            }
            Answer::Some(Worth::Redundant(access)) => {
                reached.redundant += 1;
                let sound = allowed(access) && is_in(access, &policy.rule(id).subject);
                sound && !expected.needed && (expected.alive || beyond(access))
            }
            Answer::Some(Worth::Needed(access)) => {
                reached.needed += 1;
                allowed(access) && !decide(&without, access).allowed && (expected.needed || beyond(access))
            }
        };
        if !right {
            return Err(format!("{}rule {index}: {found:?}, and {expected:?}", case.describe(world)));
        }
    }
    Ok(())
}

#[test]
fn what_an_allow_is_worth_agrees_with_the_brute_force() {
    let world = World::new(None);
    let reached = RefCell::new(Reached::default());
    let outcome = runner(count() / 10, 20_000).run(&cases::drafts(), |draft| {
        compare(&world, &draft.build(&world), &mut reached.borrow_mut()).map_err(TestCaseError::fail)
    });
    match outcome {
        Ok(()) => {}
        Err(TestError::Fail(reason, _)) => panic!("{reason}"),
        Err(TestError::Abort(reason)) => panic!("{reason}"),
    }
    let Reached { dead, redundant, needed, unknown } = reached.into_inner();
    println!("{dead} dead, {redundant} redundant, {needed} needed, {unknown} not known");
    let all = dead + redundant + needed + unknown;
    assert!(all > 500 && [dead, redundant, needed].iter().all(|some| some * 20 >= all) && unknown * 20 <= all);
}
