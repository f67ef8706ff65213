//! `ir::decide` against a brute force that has matchers of its own and finds out what is more specific by trying every
//! member of a finite universe.

pub mod brute;
pub mod cases;
mod laws;
pub mod whole;

use brute::World;
use cases::{Case, Reached};
use proptest::test_runner::{Config, RngAlgorithm, TestCaseError, TestError, TestRng, TestRunner};
use sandbox_runtime::ir::{Decider, Kept, decide};
use sandbox_runtime::sets::path::{AbsPath, Start};
use std::cell::RefCell;

const CASES: u32 = 10_000;

pub fn runner(cases: u32, max_shrink_iters: u32) -> TestRunner {
    let config = Config { cases, failure_persistence: None, max_shrink_iters, ..Config::default() };
    TestRunner::new_with_rng(config, TestRng::deterministic_rng(RngAlgorithm::ChaCha))
}

/// Whether one case comes out the same, and what it reached.
pub fn compare(world: &World, case: &Case) -> Result<Reached, String> {
    let policy = case.policy(world);
    let access = case.ir_access(world);
    let found = decide(&policy, &access);
    let expected = case.brute(world);
    if (found.allowed, format!("{:?}", found.why)) != (expected.allowed, format!("{:?}", expected.why)) {
        return Err(format!("{access:?}\n{}found {found:?}\nexpected {expected:?}", case.describe(world)));
    }
    let quick = Decider::new(&policy).decide(&access);
    if quick != found {
        return Err(format!("{access:?}\n{}found {found:?}\nquickly {quick:?}", case.describe(world)));
    }
    let kept = Kept::new(policy);
    for time in ["first", "second"] {
        let again = kept.decide(&access);
        if again != found {
            return Err(format!("{access:?}\n{}found {found:?}\nfor the {time} time {again:?}", case.describe(world)));
        }
    }
    Ok(Reached { verdict: expected, except: case.has_except(), kind: case.kind })
}

#[test]
fn decide_agrees_with_the_brute_force() {
    let world = World::new(None);
    let reached = RefCell::new(Vec::new());
    let outcome = runner(CASES, 20_000).run(&cases::drafts(), |case| {
        reached.borrow_mut().push(compare(&world, &case.build(&world)).map_err(TestCaseError::fail)?);
        Ok(())
    });
    match outcome {
        Ok(()) => cases::assert_coverage(&reached.into_inner()),
        Err(TestError::Fail(reason, _)) => panic!("{reason}"),
        Err(TestError::Abort(reason)) => panic!("{reason}"),
    }
}

/// Inclusion alone, over every pair of a pool: where only rules that meet are compared, most pairs never are.
#[test]
fn inclusion_agrees_with_enumeration() {
    inclusion(&World::new(None));
}

/// Fails where a pair comes out differently.
pub fn inclusion(world: &World) {
    for (a, b) in world.path_pairs() {
        let (own, whole) = (cases::path_set(world, &[a], &[]), cases::path_set(world, &[b], &[]));
        let pair = format!("{} and {}", world.path_text(a), world.path_text(b));
        let matches = |pattern, witness: &AbsPath| {
            let segments: Vec<_> =
                witness.segments.iter().map(|segment| std::str::from_utf8(segment).unwrap()).collect();
            world.matches(pattern, witness.start != Start::Root, &segments)
        };
        // A witness that is longer than the universe is deep is looked at by itself.
        match own.is_subset(&whole) {
            Ok(()) => assert!(world.paths_inside(a, b), "{pair}"),
            Err(witness) => {
                assert!(!world.paths_inside(a, b) || witness.segments.len() > brute::DEPTH - 1, "{pair}: {witness}");
                assert!(matches(a, &witness) && !matches(b, &witness), "{pair}: {witness}");
            }
        }
        assert_eq!(own.is_inside(&whole), own.is_subset(&whole).is_ok(), "{pair}");
        match own.overlap(&whole) {
            None => assert!(!world.paths_meet(a, b), "{pair}"),
            Some(witness) => {
                assert!(world.paths_meet(a, b) || witness.segments.len() > brute::DEPTH - 1, "{pair}: {witness}");
                assert!(matches(a, &witness) && matches(b, &witness), "{pair}: {witness}");
            }
        }
    }
    for a in 0..world.hosts.len() {
        for b in 0..world.hosts.len() {
            let (own, whole) = (cases::host_set(world, &[a], &[]), cases::host_set(world, &[b], &[]));
            assert_eq!(
                own.is_subset(&whole).is_ok(),
                world.hosts_inside(a, b),
                "{:?} {:?}",
                world.hosts[a],
                world.hosts[b]
            );
        }
    }
}
