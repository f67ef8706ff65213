//! Questions about generated policies against automata of another hand: a walk over the product of all patterns of two
//! policies, with the meaning as a formula over which of them accept. Nothing is cut off at a depth, as a finite universe is.
//!
//! Addresses are not asked about: the brute force in `generated` has all of them that networks tell apart.

mod automata;
mod drafts;
mod meaning;

use super::generated::{self, Question};
use crate::semantics::brute::{What, World};
use crate::semantics::cases;
use crate::semantics::runner;
use automata::Automata;
use meaning::Oracle;
use proptest::prelude::*;
use proptest::test_runner::{TestCaseError, TestError};
use sandbox_runtime::analysis::{self, Answer, Budget};
use sandbox_runtime::ir::{Access, Policy, Subject, decide};
use sandbox_runtime::vocabulary::Verb;
use std::cell::RefCell;

/// What may be wrong with the oracle, so that it is seen that it can tell.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Wrong {
    DeepIsNotEmpty,
    StarCrossesSlash,
    EqualIsMoreSpecific,
    OpenersAreForgotten,
    ReadDenialIsForgotten,
}

/// As many as `make test` runs, where these take longer than the brute force; `make test-long` says how many it wants.
fn count() -> u32 {
    std::env::var("ANALYSIS_CASES").ok().and_then(|count| count.parse().ok()).unwrap_or(1500)
}

#[derive(Debug, Clone)]
enum Draft {
    Shared((cases::Draft, Vec<u8>)),
    Own(drafts::Draft),
}

/// Those of the other generated tests, and more intricate ones.
fn drafts() -> impl Strategy<Value = Draft> {
    prop_oneof![generated::pairs().prop_map(Draft::Shared), drafts::drafts().prop_map(Draft::Own)]
}

#[derive(Debug, Clone, Copy)]
enum Reached {
    Asked { verb: Verb, question: Question, found: bool, opened: bool },
    TooLarge,
}

struct Pair {
    verb: Verb,
    policies: [Policy; 2],
    within: Subject,
}

/// Two policies and a set, without what is about addresses; nothing where only that is there.
fn build(world: &World, draft: &Draft) -> Option<Pair> {
    let (draft, whose) = match draft {
        Draft::Own(draft) => {
            let (policies, within) = (draft.build(), draft.within());
            return Some(Pair { verb: draft.verb, policies, within });
        }
        Draft::Shared(shared) => shared,
    };
    let mut case = draft.build(world);
    case.rules.retain(|rule| !matches!(rule.what, What::Addresses { .. }));
    let within = cases::subject(world, &case.rules.last()?.what);
    let policies = [0, 1].map(|skip| case.part(whose, skip).policy(world));
    Some(Pair { verb: case.kind.verb().1, policies, within })
}

fn compare(automata: &Automata, wrong: Option<Wrong>, pair: &Pair) -> Result<Vec<Reached>, String> {
    let Pair { verb, policies: [old, new], within } = pair;
    let Ok(oracle) = Oracle::new(automata, wrong, *verb, [old, new], within) else {
        return Ok(vec![Reached::TooLarge]);
    };
    let mut reached = Vec::new();
    for question in [Question::Permitted, Question::Denied, Question::Widened] {
        let budget = &mut Budget::new(10_000_000);
        let answer = match question {
            Question::Permitted => analysis::permitted(new, *verb, within, budget),
            Question::Denied => analysis::denied(new, *verb, within, budget),
            Question::Widened => analysis::difference(old, new, *verb, budget),
        };
        let Ok(expected) = oracle.ask(question) else {
            reached.push(Reached::TooLarge);
            continue;
        };
        let decided = |access: &Access| {
            let now = decide(new, access).allowed;
            match question {
                Question::Permitted => now && generated::is_in(access, within),
                Question::Denied => !now && generated::is_in(access, within),
                Question::Widened => now && !decide(old, access).allowed,
            }
        };
        let differ = match (&answer, &expected) {
            (Answer::Unknown, _) => Some("not known".to_owned()),
            (Answer::None, None) => None,
            (Answer::None, Some(there)) => Some(format!("nothing found, and there is {:?}", there.access)),
            (Answer::Some(access), None) => Some(format!("{access:?}, and there is none")),
            (Answer::Some(access), Some(there)) if generated::size(access) != there.units => {
                Some(format!("{access:?}, and the least is {:?}", there.access))
            }
            (Answer::Some(access), _) if !decided(access) => Some(format!("{access:?} is not decided so")),
            (Answer::Some(access), _) if !oracle.confirms(question, access) => Some(format!("{access:?} is none")),
            (_, Some(there)) if !decided(&there.access) => {
                Some(format!("the oracle's {:?} is not decided so", there.access))
            }
            _ => None,
        };
        if let Some(differ) = differ {
            return Err(format!("{question:?} {verb}: {differ}\n{}", describe(pair)));
        }
        reached.push(Reached::Asked { verb: *verb, question, found: expected.is_some(), opened: oracle.opened });
    }
    Ok(reached)
}

fn describe(pair: &Pair) -> String {
    let subject = |subject: &Subject| match subject {
        Subject::Paths(set) => {
            let all = |patterns: &[sandbox_runtime::sets::path::Pattern]| {
                patterns.iter().map(ToString::to_string).collect::<Vec<_>>().join(", ")
            };
            format!("{} except [{}]", all(&set.include), all(&set.exclude))
        }
        other => format!("{other:?}"),
    };
    let mut text = format!("within {}\n", subject(&pair.within));
    for (name, policy) in ["old", "new"].iter().zip(&pair.policies) {
        text += &format!("{name}: default read {}\n", policy.default_read.value);
        for rule in &policy.rules {
            text += &format!("  {} {} {}\n", rule.effect, rule.verb, subject(&rule.subject));
        }
    }
    text
}

#[test]
fn answers_agree_with_automata_of_another_hand() {
    let (world, automata) = (World::new(None), Automata::default());
    let reached = RefCell::new(Vec::new());
    let outcome = runner(count(), 5_000).run(&drafts(), |draft| {
        if let Some(pair) = build(&world, &draft) {
            reached.borrow_mut().extend(compare(&automata, None, &pair).map_err(TestCaseError::fail)?);
        }
        Ok(())
    });
    match outcome {
        Ok(()) => assert_coverage(&reached.into_inner()),
        Err(TestError::Fail(reason, _)) => panic!("{reason}"),
        Err(TestError::Abort(reason)) => panic!("{reason}"),
    }
}

/// Both answers of each question, of each verb, and rules that open others.
fn assert_coverage(batch: &[Reached]) {
    let mut all = Vec::new();
    for one in batch {
        if let Reached::Asked { verb, question, found, opened } = one {
            all.push((*verb, *question, *found, *opened));
        }
    }
    println!("{} asked, {} too large", all.len(), batch.len() - all.len());
    assert!((batch.len() - all.len()) * 100 <= batch.len(), "too many are too large");
    for question in [Question::Permitted, Question::Denied, Question::Widened] {
        for verb in [Verb::Read, Verb::Write, Verb::Exec, Verb::Connect, Verb::Env] {
            let those: Vec<_> = all.iter().filter(|one| (one.0, one.1) == (verb, question)).collect();
            let found = those.iter().filter(|one| one.2).count();
            println!("{question:?} {verb}: {found} of {}", those.len());
            assert!(found * 10 >= those.len() && found * 10 <= those.len() * 9 && found > 0, "{question:?} {verb}");
        }
    }
    let opened = all.iter().filter(|one| one.3).count();
    println!("something opened: {opened} of {}", all.len());
    assert!(opened * 10 >= all.len(), "{opened} of {}", all.len());
}

fn assert_caught(wrong: Wrong) {
    let (world, automata) = (World::new(None), Automata::default());
    let outcome = runner(1500, 0).run(&drafts(), |draft| {
        let outcome = build(&world, &draft).map(|pair| compare(&automata, Some(wrong), &pair));
        outcome.transpose().map(drop).map_err(TestCaseError::fail)
    });
    assert!(outcome.is_err(), "{wrong:?} is not caught");
}

#[test]
fn a_wrong_oracle_is_told() {
    for wrong in [
        Wrong::DeepIsNotEmpty,
        Wrong::StarCrossesSlash,
        Wrong::EqualIsMoreSpecific,
        Wrong::OpenersAreForgotten,
        Wrong::ReadDenialIsForgotten,
    ] {
        assert_caught(wrong);
    }
}
