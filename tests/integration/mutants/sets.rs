//! Seeded mistakes of the sets themselves. What proves an artefact before it is written asks them, and so does what lowers, so that
//! neither has to notice: each must be caught by a comparison with the brute force, which has matchers and lists of its own.
//!
//! Here the library is what is wrong, while a test runs.

use crate::analysis::generated;
use crate::seatbelt;
use crate::semantics::brute::World;
use crate::semantics::{cases, compare, inclusion, runner};
use proptest::test_runner::TestCaseError;
use sandbox_runtime::sets::mistake::{Mistake, while_made};
use sandbox_runtime::verify;
use std::panic::catch_unwind;

/// Most are found in the first hundreds.
const CASES: u32 = 10_000;

/// Globs, classes, exceptions, and rules that open what others deny.
const POLICY: &str = "srt 1
default read deny
allow read, write $WORKSPACE
deny read $WORKSPACE/**/.env except $WORKSPACE/**/.env.example
deny write $WORKSPACE/**/[!a-m]*.lock
deny write $WORKSPACE/secrets
allow write $WORKSPACE/secrets/public
";

/// Whether what is emitted under a mistake is proved under it as if nothing were wrong.
fn is_proved(mistake: Mistake) -> bool {
    let proved = || {
        let compiled = seatbelt::compile("mistake", POLICY)?;
        verify::seatbelt::prove(&compiled.lowered.policy, &compiled.lowered.gaps, &compiled.profile)
            .map_err(|fault| fault.to_string())
    };
    catch_unwind(|| while_made(mistake, proved)).is_ok_and(|proof| proof.is_ok())
}

/// Whether a comparison finds it: of inclusion, of questions about whole policies, of verdicts.
fn is_caught(mistake: Mistake) -> bool {
    let sets = || catch_unwind(|| inclusion(&World::new(None))).is_err();
    let questions = || {
        let world = World::new(None);
        let compared = |(draft, whose): (cases::Draft, Vec<u8>)| {
            generated::compare(&world, &world, &draft, &whose).map(drop).map_err(TestCaseError::fail)
        };
        runner(CASES, 0).run(&generated::pairs(), compared).is_err()
    };
    let verdicts = || {
        let world = World::new(None);
        let compared =
            |draft: cases::Draft| compare(&world, &draft.build(&world)).map(drop).map_err(TestCaseError::fail);
        runner(CASES, 0).run(&cases::drafts(), compared).is_err()
    };
    while_made(mistake, || sets() || questions() || verdicts())
}

macro_rules! mistakes {
    ($($name:ident: $mistake:ident),+ $(,)?) => {
        $(#[test]
        fn $name() {
            assert!(is_caught(Mistake::$mistake));
        })+

        const ALL: &[Mistake] = &[$(Mistake::$mistake),+];
    };
}

mistakes! {
    a_deep_star_that_is_never_empty: ManyIsNotEmpty,
    a_deep_star_that_is_one_segment: ManyIsOneUnit,
    a_step_by_a_glob_that_is_lost: GlobIsLost,
    globs_taken_for_alike: GlobsAreAlike,
    a_refusal_that_is_lifted_anyhow: LiftedAnyhow,
    a_refusal_that_is_never_lifted: NeverLifted,
    an_intersection_that_is_empty: IntersectionIsEmpty,
    an_except_that_takes_nothing_away: ExceptIsKept,
    the_worse_of_two_states_kept: WorseIsKept,
    a_class_that_ends_early: ClassEndsEarly,
    a_negated_class_that_is_plain: ClassIsNotNegated,
    a_complement_that_begins_late: ComplementBeginsLate,
    intervals_with_a_gap_that_are_one: GapIsClosed,
    equal_sets_taken_for_strictly_inside: EqualIsInside,
}

/// The oracles are what these need: a table that the proof sees through would say nothing of them.
#[test]
fn most_are_not_seen_by_the_proof() {
    let unseen: Vec<_> = ALL.iter().filter(|mistake| is_proved(**mistake)).collect();
    assert!(ALL.len() >= 14 && unseen.len() >= 8, "{unseen:?}");
}
