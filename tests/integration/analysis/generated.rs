//! Questions about generated policies against a brute force over a finite universe. Whatever is found must be decided so by
//! `decide`; whatever the universe holds must be found, and nothing longer than it.

use crate::semantics::brute::{Bits, DEPTH, Mistake, Rule, Verb, What, World};
use crate::semantics::cases::{self, Case, Draft, Kind};
use crate::semantics::runner;
use crate::semantics::whole::Rules;
use proptest::prelude::*;
use proptest::test_runner::{TestCaseError, TestError};
use sandbox_runtime::analysis::{self, Answer, Budget};
use sandbox_runtime::ir::{Access, Policy, Subject, decide};
use sandbox_runtime::sets::path::PathSet;
use sandbox_runtime::vocabulary;
use std::cell::RefCell;

/// As many as `make test` runs; `make test-long` says how many it wants.
pub fn count() -> u32 {
    std::env::var("ANALYSIS_CASES").ok().and_then(|count| count.parse().ok()).unwrap_or(10_000)
}

/// Rules that two policies share in part, and which of them each has.
pub fn pairs() -> impl Strategy<Value = (Draft, Vec<u8>)> {
    (cases::drafts(), prop::collection::vec(0..5_u8, 8))
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Question {
    Permitted,
    Denied,
    Widened,
}

/// What a question came to: whether there was something to find.
#[derive(Debug, Clone, Copy)]
pub struct Reached {
    kind: Kind,
    question: Question,
    found: bool,
}

/// The questions that one pair of policies is asked, and how they came out.
pub fn compare(world: &World, right: &World, draft: &Draft, whose: &[u8]) -> Result<Vec<Reached>, String> {
    let case = draft.build(right);
    let mut reached = Vec::new();
    let within = case.rules.last().map(|rule| rule.what.clone());
    let (mut old, new) = (case.part(whose, 0), case.part(whose, 1));
    // Now and then the defaults differ as well.
    old.open_read ^= whose[7] == 0;
    old.open_env ^= whose[7] == 0;
    let (old_policy, new_policy) = (old.policy(right), new.policy(right));
    if [&old_policy, &new_policy].into_iter().any(out_of_sight) {
        return Ok(Vec::new());
    }
    let verb = case.kind.verb();
    let [was, is] = [&old, &new].map(|case| Permitted::new(world, case, verb.0));
    let alone = whole(world, is.clone(), verb.0, &[&new.rules], within.as_ref());
    let [before, after] = [was, is].map(|permitted| whole(world, permitted, verb.0, &[&old.rules, &new.rules], None));
    let text = || format!("old\n{}new\n{}within {within:?}\n", old.describe(right), new.describe(right));
    if let Some(within) = &within {
        let subject = cases::subject(right, within);
        for (question, permits) in [(Question::Permitted, true), (Question::Denied, false)] {
            let budget = &mut Budget::new(10_000_000);
            let answer = if permits {
                analysis::permitted(&new_policy, verb.1, &subject, budget)
            } else {
                analysis::denied(&new_policy, verb.1, &subject, budget)
            };
            let sound = |access: &Access| decide(&new_policy, access).allowed == permits && is_in(access, &subject);
            let expected = alone.within(world, permits);
            judge(question, &answer, expected, sound).map_err(|wrong| format!("{}{wrong}", text()))?;
            reached.push(Reached { kind: case.kind, question, found: matches!(answer, Answer::Some(_)) });
        }
    }
    let answer = analysis::difference(&old_policy, &new_policy, verb.1, &mut Budget::new(10_000_000));
    let decided = |policy: &Policy, access: &Access| decide(policy, access).allowed;
    let sound = |access: &Access| decided(&new_policy, access) && !decided(&old_policy, access);
    let expected = if world.mistake == Some(Mistake::OldAndNewAreSwapped) {
        before.less(&after, world)
    } else {
        after.less(&before, world)
    };
    judge(Question::Widened, &answer, expected, sound).map_err(|wrong| format!("{}{wrong}", text()))?;
    reached.push(Reached { kind: case.kind, question: Question::Widened, found: matches!(answer, Answer::Some(_)) });
    Ok(reached)
}

/// Whether an allow and a denial of paths differ in such alone as are deeper than the universe: there they look inside each
/// other, and which is more specific is told wrong.
fn out_of_sight(policy: &Policy) -> bool {
    let sets = |allows: bool| {
        policy.rules.iter().filter(move |rule| (rule.effect == vocabulary::Effect::Allow) == allows).filter_map(
            |rule| {
                if let Subject::Paths(set) = &rule.subject { Some((rule.verb, set)) } else { None }
            },
        )
    };
    let deep = |a: &PathSet, b: &PathSet| a.is_subset(b).is_err_and(|path| size(&Access::Read(path)) > DEPTH);
    sets(true)
        .any(|(verb, allow)| sets(false).any(|(other, deny)| verb == other && (deep(allow, deny) || deep(deny, allow))))
}

/// Whether an answer agrees with the least size of those in the universe.
fn judge(
    question: Question,
    answer: &Answer<Access>,
    expected: Option<usize>,
    sound: impl Fn(&Access) -> bool,
) -> Result<(), String> {
    match (answer, expected) {
        (Answer::Unknown, _) => Err(format!("{question:?}: not known")),
        (Answer::None, None) => Ok(()),
        (Answer::None, Some(size)) => Err(format!("{question:?}: nothing found, and there is one of {size}")),
        (Answer::Some(access), _) if !sound(access) => Err(format!("{question:?}: {access:?} is none")),
        (Answer::Some(access), Some(least)) if size(access) > least => {
            Err(format!("{question:?}: {access:?} is longer than {least}"))
        }
        // Longer than the universe is deep.
        (Answer::Some(access), None) if size(access) > 3 => Ok(()),
        (Answer::Some(access), None) => Err(format!("{question:?}: {access:?} is not in the universe")),
        (Answer::Some(access), Some(least)) if size(access) < least && size(access) <= 3 => {
            Err(format!("{question:?}: {access:?} is shorter than {least}"))
        }
        (Answer::Some(_), Some(_)) => Ok(()),
    }
}

/// Segments, or labels; one for what has none.
pub fn size(access: &Access) -> usize {
    match access {
        Access::Read(path) | Access::Write(path) | Access::Exec(path) | Access::Socket(path) => {
            path.segments.len() + usize::from(path.start != sandbox_runtime::sets::path::Start::Root)
        }
        Access::Connect { name: Some(name), .. } => name.labels().count(),
        _ => 1,
    }
}

pub fn is_in(access: &Access, subject: &Subject) -> bool {
    match (access, subject) {
        (Access::Read(path) | Access::Write(path) | Access::Exec(path), Subject::Paths(set)) => set.contains(path),
        (Access::Env(name), Subject::Names(set)) => set.contains(name),
        (Access::Connect { name: Some(name), port, protocol, .. }, Subject::Peers(set)) => {
            set.contains_name(name, *protocol, *port)
        }
        (Access::Connect { name: None, address, port, protocol }, Subject::Peers(set)) => {
            set.contains_address(*address, *protocol, *port)
        }
        _ => false,
    }
}

/// What one policy permits of the universe, and which part of that is asked about.
enum Whole {
    /// Paths or variables: those permitted, those there are, those asked about, and the size of each.
    Objects {
        permitted: Bits,
        visible: Bits,
        within: Bits,
        sizes: Vec<usize>,
    },
    Connections {
        all: Vec<crate::semantics::whole::Connections>,
        within: Option<What>,
    },
}

/// What one policy permits of the universe.
#[derive(Clone)]
enum Permitted {
    Objects(Bits),
    Connections(Vec<crate::semantics::whole::Connections>),
}

impl Permitted {
    fn new(world: &World, case: &Case, verb: Verb) -> Self {
        let policy = Rules { rules: &case.rules, open_read: case.open_read, open_env: case.open_env };
        match verb {
            Verb::Connect => Permitted::Connections(world.permitted_connections(policy)),
            Verb::Env => Permitted::Objects(world.permitted_names(policy)),
            _ => Permitted::Objects(world.permitted_paths(policy, verb)),
        }
    }
}

/// The paths there are: those of a variable where some set starts at one.
pub fn visible<'w>(world: &World, mut whats: impl Iterator<Item = &'w What>) -> Bits {
    let mut visible = Bits::all(world.paths.len());
    let names_variable = |what: &What| match what {
        What::Paths { include, exclude } => include.iter().chain(exclude).any(|one| world.patterns[*one].variable),
        _ => false,
    };
    if !whats.any(names_variable) {
        visible.keep(world.paths.iter().position(|path| path.variable).unwrap());
    }
    visible
}

fn whole(world: &World, permitted: Permitted, verb: Verb, rules: &[&Vec<Rule>], within: Option<&What>) -> Whole {
    let permitted = match permitted {
        Permitted::Connections(all) => return Whole::Connections { all, within: within.cloned() },
        Permitted::Objects(permitted) => permitted,
    };
    let length = if verb == Verb::Env { world.names.len() } else { world.paths.len() };
    let whats = rules.iter().flat_map(|rules| rules.iter().map(|rule| &rule.what)).chain(within);
    let visible = if verb == Verb::Env { Bits::all(length) } else { visible(world, whats) };
    let sizes = if verb == Verb::Env {
        vec![1; length]
    } else {
        world.paths.iter().map(|path| path.segments.len() + usize::from(path.variable)).collect()
    };
    let within = within.map_or_else(|| Bits::none(length), |what| world.members_of(what));
    Whole::Objects { permitted, visible, within, sizes }
}

/// The least of some sizes; with a mistake, the greatest.
fn least(world: &World, sizes: impl Iterator<Item = usize>) -> Option<usize> {
    if world.mistake == Some(Mistake::LongestForShortest) { sizes.max() } else { sizes.min() }
}

impl Whole {
    /// The size of a shortest access that is asked about and decided so.
    fn within(&self, world: &World, permits: bool) -> Option<usize> {
        match self {
            Whole::Objects { permitted, visible, within, sizes } => {
                let asked = visible.clone().and(within);
                let those = if permits { asked.and(permitted) } else { asked.less(permitted) };
                least(world, those.members().map(|one| sizes[one]))
            }
            Whole::Connections { all, within } => {
                let within = within.as_ref()?;
                let members = world.members_of(within);
                let public: Vec<_> = world.public().members().collect();
                let covered = all.iter().filter(|cell| world.covers(within, cell.port, cell.udp));
                let mut sizes = Vec::new();
                for cell in covered {
                    let of = |permitted: &Bits| {
                        if permits { members.clone().and(permitted) } else { members.clone().less(permitted) }
                    };
                    if let What::Addresses { .. } = within {
                        sizes.extend(of(&cell.bare).members().map(|_| 1));
                    } else {
                        let named = public.iter().flat_map(|at| of(&cell.named[*at]).members().collect::<Vec<_>>());
                        sizes.extend(named.map(|name| world.host_names[name].len()));
                    }
                }
                least(world, sizes.into_iter())
            }
        }
    }

    /// The size of a shortest access that this permits and another does not.
    fn less(&self, other: &Whole, world: &World) -> Option<usize> {
        match (self, other) {
            (Whole::Objects { permitted, visible, sizes, .. }, Whole::Objects { permitted: before, .. }) => {
                let those = permitted.clone().and(visible).less(before);
                least(world, those.members().map(|one| sizes[one]))
            }
            (Whole::Connections { all, .. }, Whole::Connections { all: before, .. }) => {
                let mut sizes = Vec::new();
                for (cell, before) in all.iter().zip(before) {
                    sizes.extend(cell.bare.clone().less(&before.bare).members().map(|_| 1));
                    for (named, before) in cell.named.iter().zip(&before.named) {
                        sizes.extend(named.clone().less(before).members().map(|name| world.host_names[name].len()));
                    }
                }
                least(world, sizes.into_iter())
            }
            _ => None,
        }
    }
}

#[test]
fn answers_agree_with_the_brute_force() {
    let world = World::new(None);
    let reached = RefCell::new(Vec::new());
    let outcome = runner(count(), 20_000).run(&pairs(), |(draft, whose)| {
        reached.borrow_mut().extend(compare(&world, &world, &draft, &whose).map_err(TestCaseError::fail)?);
        Ok(())
    });
    match outcome {
        Ok(()) => {
            let reached = reached.into_inner();
            assert_coverage(&reached);
            // Few are out of sight: each pair that is in sight is asked for a difference.
            let asked = reached.iter().filter(|one| one.question == Question::Widened).count();
            assert!(asked * 20 > count() as usize * 19, "{asked} of {} pairs were compared", count());
        }
        Err(TestError::Fail(reason, _)) => panic!("{reason}"),
        Err(TestError::Abort(reason)) => panic!("{reason}"),
    }
}

/// A batch in which there is hardly ever something to find, or hardly ever nothing, proves little.
fn assert_coverage(batch: &[Reached]) {
    for question in [Question::Permitted, Question::Denied, Question::Widened] {
        for kind in [Kind::Read, Kind::Write, Kind::Exec, Kind::Name, Kind::Address, Kind::Env] {
            let those: Vec<_> = batch.iter().filter(|one| one.question == question && one.kind == kind).collect();
            let found = those.iter().filter(|one| one.found).count();
            println!("{question:?} {kind:?}: {found} of {}", those.len());
            assert!(found * 10 >= those.len() && found * 10 <= those.len() * 9, "{question:?} {kind:?}");
        }
    }
}
