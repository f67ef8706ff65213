//! Random machines × random policies: what the mounts show of each existing node is what `decide` says of it.

use super::simulate::{Listing, Seen, Simulation};
use super::{bind, policy, rules};
use crate::backend::bubblewrap::{Lowered, Needs, lower};
use crate::diagnostic::{Diagnostic, Level};
use crate::ir::{Access, BoundPolicy, NodeKind, decide};
use crate::sets::path::AbsPath;
use crate::verify;
use crate::vocabulary::Effect;
use proptest::prelude::*;
use proptest::test_runner::{Config, TestRunner};
use std::cell::Cell;

fn names(depth: std::ops::RangeInclusive<usize>) -> impl Strategy<Value = String> {
    prop::collection::vec(prop::sample::select(vec!["a", "b", "c"]), depth)
        .prop_map(|names| format!("/{}", names.join("/")))
}

fn listing() -> impl Strategy<Value = Vec<String>> {
    let line = (names(1..=4), prop::bool::ANY).prop_map(|(path, dir)| if dir { path + "/" } else { path });
    prop::collection::vec(line, 1..14)
}

fn target() -> impl Strategy<Value = String> {
    let segment = prop::sample::select(vec!["a", "b", "c", "a", "b", "c", "*", "**", "[ab]*", "?", "a*"]);
    let path = prop::collection::vec(segment, 1..=4).prop_filter_map("too deep", |segments| {
        // As the grammar has it: `**` is followed by something, and not by itself.
        let depth = |at: usize| segments[at] == "**";
        let bad = (1..segments.len()).any(|at| depth(at) && depth(at - 1)) || depth(segments.len() - 1);
        (!bad).then(|| format!("/{}", segments.join("/")))
    });
    (prop::sample::select(vec!["", "", "", "", "exact ", "below "]), path)
        .prop_map(|(reach, path)| reach.to_owned() + &path)
}

fn rule() -> impl Strategy<Value = String> {
    let effect = prop::sample::select(vec!["allow", "allow", "allow", "deny", "deny", "forbid"]);
    let verbs = prop::sample::select(vec!["read", "write", "exec", "read, write", "read, write"]);
    (effect, verbs, target(), prop::option::weighted(0.15, target())).prop_map(|(effect, verbs, target, except)| {
        let except = except.map(|except| format!(" except {except}")).unwrap_or_default();
        format!("{effect} {verbs} {target}{except}")
    })
}

/// Files listed under a file are dropped: the last kind of a path wins, and a file has nothing below it.
fn machine(lines: &[String], alias: bool) -> Listing {
    let dirs: Vec<&String> = lines.iter().collect();
    let is_dir = |path: &str| dirs.iter().any(|line| line.starts_with(&format!("{path}/")));
    let mut lines: Vec<String> = lines
        .iter()
        .map(|line| if !line.ends_with('/') && is_dir(line) { format!("{line}/") } else { line.clone() })
        .collect();
    if alias {
        // `/m` shows what `/a` does.
        let twins: Vec<String> =
            lines.iter().filter(|line| line.starts_with("/a/")).map(|line| format!("/m{}", &line[2..])).collect();
        lines.extend(twins);
    }
    let lines: Vec<&str> = lines.iter().map(String::as_str).collect();
    let mut listing = Listing::new(&lines);
    if alias {
        listing.alias("/a", "/m");
    }
    listing
}

fn says(bound: &BoundPolicy, access: &Access) -> bool {
    decide(bound, access).allowed
}

/// What a batch of machines came to.
#[derive(Debug, Clone, Copy, Default)]
struct Reached {
    /// Accesses that were decided and looked at.
    verdicts: usize,
    allowed: usize,
    /// Those that a gap explains.
    by_gap: usize,
}

impl Reached {
    fn count(&mut self, shown: bool, may: bool) {
        self.verdicts += 1;
        self.allowed += usize::from(may);
        self.by_gap += usize::from(shown != may);
    }
}

fn compare(
    bound: &BoundPolicy,
    listing: &Listing,
    lowered: &Lowered,
    reached: &mut Reached,
) -> Result<(), TestCaseError> {
    let simulation = Simulation::new(&lowered.plan);
    let landlock = lowered.plan.landlock.as_ref().unwrap();
    let within =
        |list: &[Vec<u8>], path: &AbsPath| list.iter().any(|place| path.is_inside(&AbsPath::parse(place).unwrap()));
    let has = |code: &str| lowered.gaps.iter().any(|gap| gap.code.name == code);
    for path in listing.paths() {
        let node = listing.node(path).unwrap();
        let (read, write, exec) = match simulation.at(path) {
            Seen::Host { write, exec } => (true, write, exec),
            Seen::Ours { listable } => (listable, false, false),
            Seen::Masked => (false, false, false),
            Seen::Private => continue,
        };
        let wants = [Access::Read(path.clone()), Access::Write(path.clone()), Access::Exec(path.clone())];
        let [may_read, may_write, may_exec] = wants.map(|access| says(bound, &access));
        let shown = super::show(&lowered.plan.mounts);
        if node.kind == NodeKind::Directory {
            let listing = (read, may_read);
            prop_assert!(
                read == may_read || (listing == (true, false) && has("directory-listing")),
                "list {path}: {listing:?} {shown:#?}"
            );
            prop_assert!(
                write == may_write || (write && has("directory-attributes")) || (!write && has("directory-alone")),
                "change {path}: {write} {may_write} {shown:#?}"
            );
            reached.count(read, may_read);
            reached.count(write, may_write);
            continue;
        }
        prop_assert!(!write || within(&landlock.write, path), "landlock forbids writing {path}: {landlock:?}");
        prop_assert!(!exec || within(&landlock.exec, path), "landlock forbids running {path}: {landlock:?}");
        prop_assert_eq!((read, write, exec), (may_read, may_write, may_exec), "{} {:#?}", path, shown);
        for (shown, may) in [(read, may_read), (write, may_write), (exec, may_exec)] {
            reached.count(shown, may);
        }
    }
    Ok(())
}

/// No name of a node that is denied can be freed by renaming a directory above it.
fn pinned(listing: &Listing, lowered: &Lowered) -> Result<(), TestCaseError> {
    let simulation = Simulation::new(&lowered.plan);
    let writable = |path: &AbsPath| matches!(simulation.at(path), Seen::Host { write: true, .. });
    for path in listing.paths() {
        if writable(path) {
            continue;
        }
        for above in path.ancestors() {
            let Some(parent) = above.parent() else { continue };
            if writable(&parent) {
                prop_assert!(simulation.is_mount_point(&above), "{above} can be renamed, and {path} is in it");
            }
        }
    }
    Ok(())
}

/// How many machines are tried, and how many verdicts these must come to: `make test-long` sets PROPTEST_CASES to far more than
/// the usual 256.
#[allow(clippy::disallowed_methods)]
fn wanted() -> (u32, usize) {
    match std::env::var("PROPTEST_CASES").ok().and_then(|cases| cases.parse().ok()) {
        Some(cases) if cases >= 20_000 => (cases, 100_000),
        _ => (1500, 5_000),
    }
}

#[test]
fn mounts_show_what_decide_says() {
    let (cases, verdicts) = wanted();
    let config = Config { cases, failure_persistence: None, ..Config::default() };
    let statements = prop::collection::vec(rule(), 1..7);
    let drafts = (listing(), statements, prop::bool::ANY, prop::bool::weighted(0.3));
    let all = Cell::new(Reached::default());
    let outcome = TestRunner::new(config).run(&drafts, |(lines, statements, open, alias)| {
        let listing = machine(&lines, alias);
        let statements: Vec<&str> = statements.iter().map(String::as_str).collect();
        let default = if open { Effect::Allow } else { Effect::Deny };
        let bound = bind(policy(default, rules(&statements)), &listing);
        let errors = lower(&bound, &Needs { errors_alone: true, ..Needs::default() });
        match lower(&bound, &Needs::default()) {
            Ok(lowered) => {
                let mut reached = all.get();
                compare(&bound, &listing, &lowered, &mut reached)?;
                all.set(reached);
                pinned(&listing, &lowered)?;
                let proved = verify::bubblewrap::policy::prove(&bound, &lowered.plan, &lowered.gaps);
                let gaps: Vec<_> = lowered.gaps.iter().map(|gap| (gap.code.name, &gap.witness)).collect();
                prop_assert_eq!(proved, Ok(()), "{:#?} {:?}", super::show(&lowered.plan.mounts), gaps);
                let errors = errors.unwrap();
                let same = |gaps: &[Diagnostic]| -> Vec<Diagnostic> {
                    gaps.iter().filter(|gap| gap.level == Level::Error).cloned().collect()
                };
                prop_assert_eq!(same(&lowered.gaps), same(&errors.gaps));
                prop_assert_eq!(lowered.plan, errors.plan);
            }
            Err(said) => prop_assert_eq!(Err(said), errors.map(|_| ())),
        }
        Ok(())
    });
    outcome.unwrap_or_else(|found| panic!("{found}"));
    let reached = all.get();
    eprintln!("{reached:?}");
    assert!(reached.verdicts >= verdicts, "{reached:?}");
    assert!(reached.allowed * 5 >= reached.verdicts, "{reached:?}");
    assert!((reached.verdicts - reached.allowed) * 5 >= reached.verdicts, "{reached:?}");
    assert!(reached.by_gap * 300 >= reached.verdicts, "{reached:?}");
}
