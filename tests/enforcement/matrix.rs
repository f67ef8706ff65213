//! Generated policies × the operations of the language chapter's table, in the real sandbox, compared with what `decide`
//! says.
//!
//! Each policy is made by a seed, which a failure names: `SRT_MATRIX_SEED=N SRT_MATRIX_CASES=1` tries it alone.

mod bound;
mod chance;
mod tree;
mod weak;

use crate::sandbox::{scratch, users};
use crate::support;
use bound::{Bound, bound};
use chance::Chance;
use nix::errno::Errno;
use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::fs;
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::Path;
use std::process::{Command, Stdio};
use tree::{Attempt, KINDS, Kind};

const PROBE: &str = include_str!("matrix/probe.py");

/// So many policies are tried, as each user, with each engine.
const CASES: u64 = 30;

/// So often at least each operation has to be permitted, and refused, by these, as each user.
const LEAST: usize = 8;

/// How an attempt ended beside what was said of it, and how often.
#[derive(Default)]
struct Tally {
    foreseen: Foreseen,
    counts: BTreeMap<(&'static str, &'static str), usize>,
    faults: Vec<String>,
    cases: usize,
    discarded: usize,
}

/// What was told of changes before the kernel decided, beside what it decided.
#[derive(Default)]
struct Foreseen {
    refused: usize,
    /// Refused, and nothing was told.
    missed: usize,
    done: usize,
    /// Done, and told as expected to be refused.
    wrong: usize,
}

/// The least share of refusals that is foreseen, and of what is done that is not feared, in percent.
const RIGHT: usize = 95;

impl Foreseen {
    fn compare(&mut self, base: &Path, attempts: &[Attempt], output: &support::Output) {
        let results: Vec<i32> = serde_json::from_str(&output.stdout).unwrap_or_default();
        let events = fs::read_to_string(base.with_extension("events")).unwrap();
        let events = events.lines().map(|line| serde_json::from_str::<serde_json::Value>(line).unwrap());
        let is_write = |event: &serde_json::Value| event["operation"] == "write";
        let feared: std::collections::BTreeSet<String> =
            events.filter(is_write).map(|event| event["path"].as_str().unwrap().to_owned()).collect();
        let is_feared = |path: &str| feared.contains(base.join(path).to_str().unwrap());
        let through_a_link = |path: &str| path == "w/l" || path.starts_with("w/b/l");
        for ((what, path, other), result) in attempts.iter().zip(&results) {
            let opens = ["read", "list", "exec", "map"].contains(what);
            if opens || through_a_link(path) || through_a_link(other) {
                continue;
            }
            match Errno::from_raw(*result) {
                Errno::EACCES | Errno::EPERM | Errno::EROFS => {
                    self.refused += 1;
                    self.missed += usize::from(!is_feared(path) && !is_feared(other));
                }
                _ if *result == 0 => {
                    self.done += 1;
                    self.wrong += usize::from(is_feared(path));
                }
                _ => {}
            }
        }
    }
}

fn number(name: &str, default: u64) -> u64 {
    std::env::var(name).map_or(default, |value| value.parse().unwrap())
}

/// The attempts and what the policy says, for a seed; the tree is built.
fn case(seed: u64, base: &Path, user: Option<u32>, performs: bool) -> Option<(Bound, Vec<Attempt>)> {
    let mut chance = Chance::new(seed);
    tree::build(base, user);
    let attributes = takes_attributes(base);
    let lines = chance::policy(&mut chance, base.to_str().unwrap());
    let bound = bound(lines, base, &bound::user(user, performs))?;
    Some((bound, tree::attempts(&mut chance, attributes)))
}

fn takes_attributes(base: &Path) -> bool {
    let name = std::ffi::CString::new(base.join("w/f").to_str().unwrap()).unwrap();
    let set = Command::new("python3")
        .args(["-c", "import os, sys; os.setxattr(sys.argv[1], b'user.t', b'x')", name.to_str().unwrap()])
        .stderr(Stdio::null())
        .status();
    set.is_ok_and(|status| status.success())
}

fn probe(base: &Path, attempts: &[Attempt]) -> [String; 7] {
    let attempts = serde_json::to_string(attempts).unwrap();
    assert!(attempts.len() < 128 << 10, "more than an argument may hold");
    let base = base.to_str().unwrap().to_owned();
    ["/usr/bin/python3".into(), "-I".into(), "-S".into(), "-c".into(), PROBE.into(), base, attempts]
}

/// Runs the probe under `srt`.
fn sandboxed(engine: &str, base: &Path, bound: &Bound, attempts: &[Attempt], user: Option<u32>) -> support::Output {
    let policy = base.with_extension("policy");
    fs::write(&policy, &bound.text).unwrap();
    fs::set_permissions(&policy, fs::Permissions::from_mode(0o644)).unwrap();
    let mut command = match user {
        None => Command::new(support::srt()),
        Some(id) => {
            let mut command = Command::new("setpriv");
            command.args([format!("--reuid={id}"), format!("--regid={id}"), "--clear-groups".into()]);
            command.arg(support::srt());
            command
        }
    };
    command.args(["run", "--engine", engine, "--policy"]).arg(policy).arg("--workspace").arg(base.join("w"));
    command.arg("--events").arg(base.with_extension("events"));
    command.arg("--").args(probe(base, attempts)).current_dir("/").stdin(Stdio::null());
    support::output(&mut command)
}

impl Tally {
    /// Compares what was tried with what the policy says.
    fn compare(&mut self, who: &str, base: &Path, bound: &Bound, attempts: &[Attempt], output: &support::Output) {
        let results: Vec<i32> = serde_json::from_str(&output.stdout).unwrap_or_default();
        if results.len() != attempts.len() {
            let (done, all) = (results.len(), attempts.len());
            self.fault(who, bound, &format!("{done} of {all} attempts were made: {} {}", output.code, output.stderr));
        }
        let decider = bound.decider();
        for (attempt, result) in attempts.iter().zip(&results) {
            let reasons = bound.reasons(&decider, attempt);
            let errno = Errno::from_raw(*result);
            let class = match (reasons.is_empty(), *result) {
                (true, 0) => Ok("permitted"),
                (true, -1) => Err("ended otherwise than it should"),
                (true, _) => bound.stricter(&decider, attempt, errno).ok_or("permitted, and failed"),
                (false, 0) => {
                    let gaps: Option<Vec<_>> =
                        reasons.iter().map(|reason| bound.looser(&decider, attempt, reason)).collect();
                    gaps.map(|gaps| gaps[0]).ok_or("DENIED, AND SUCCEEDED")
                }
                (false, -1) => Err("denied, and half done"),
                (false, _) if is_refusal(errno) => Ok("refused"),
                // Bubblewrap's mask of a file is a device.
                (false, _) if attempt.0 == "truncate" && errno == Errno::EINVAL => Ok("refused"),
                (false, _) => Err("denied, and failed for another reason"),
            };
            match class {
                Ok(class) => *self.counts.entry((attempt.0, class)).or_default() += 1,
                Err(class) => {
                    let (what, path, other) = attempt;
                    let message = format!("{class}: {what} {path} {other}: {errno:?}; {reasons:?}");
                    self.fault(who, bound, &message);
                }
            }
        }
        self.look(who, base, bound, attempts, &results);
    }

    /// What the probe says it did to the times of files is what happened on the host, no more and no less.
    fn look(&mut self, who: &str, base: &Path, bound: &Bound, attempts: &[Attempt], results: &[i32]) {
        for ((what, path, _), result) in attempts.iter().zip(results) {
            if *what == "utimes" && matches!(tree::kind(path), Some(Kind::File | Kind::Program)) {
                let changed = fs::metadata(base.join(path)).is_ok_and(|seen| seen.mtime() == 1_000_000_000);
                if changed != (*result == 0) {
                    self.fault(who, bound, &format!("the times of {path} were set: {changed}, said: {result}"));
                }
            }
        }
    }

    fn fault(&mut self, who: &str, bound: &Bound, message: &str) {
        let same = self.faults.iter().filter(|fault| fault.starts_with(who)).count();
        if same < 3 {
            let gaps: Vec<_> = bound.gaps.iter().map(|gap| format!("{} {:?}", gap.code.name, gap.witness)).collect();
            self.faults.push(format!("{who}: {message}\n{}gaps: {gaps:?}", bound.text));
        }
    }

    fn of(&self, what: &str, class: &str) -> usize {
        self.counts.iter().filter(|((w, c), _)| *w == what && *c == class).map(|(_, count)| count).sum()
    }

    fn table(&self) -> String {
        let mut text = format!("{} cases, {} that cannot be enforced\n", self.cases, self.discarded);
        let Foreseen { refused, missed, done, wrong } = self.foreseen;
        writeln!(text, "of {refused} changes that were refused, {missed} were not foreseen").unwrap();
        writeln!(text, "of {done} changes that were made, {wrong} were expected to be refused").unwrap();
        for ((what, class), count) in &self.counts {
            writeln!(text, "{what:10} {class:22} {count}").unwrap();
        }
        text
    }
}

/// What the kernel says of something that is denied, or not there to be had.
fn is_refusal(errno: Errno) -> bool {
    matches!(errno, Errno::EACCES | Errno::EPERM | Errno::EROFS | Errno::ENOENT | Errno::EXDEV | Errno::EBUSY)
}

fn matrix(engine: &str) {
    let (first, cases) = (number("SRT_MATRIX_SEED", 1), number("SRT_MATRIX_CASES", CASES));
    let mut tally = Tally::default();
    for user in users() {
        let scratch = scratch(user);
        let base = scratch.path().join("tree");
        for seed in first..first + cases {
            let Some((bound, attempts)) = case(seed, &base, user, true) else {
                tally.discarded += 1;
                continue;
            };
            tally.cases += 1;
            let output = sandboxed(engine, &base, &bound, &attempts, user);
            tally.compare(&format!("seed {seed}, {engine}, {user:?}"), &base, &bound, &attempts, &output);
            tally.foreseen.compare(&base, &attempts, &output);
        }
    }
    println!("{}", tally.table());
    let faults = tally.faults.len();
    assert!(faults == 0, "{}{faults} faults, among them:\n{}", tally.table(), tally.faults[..faults.min(9)].join("\n"));
    if cases < CASES {
        return;
    }
    let Foreseen { refused, missed, done, wrong } = tally.foreseen;
    assert!(refused >= 100 && done >= 100, "{}", tally.table());
    assert!(missed * 100 <= refused * (100 - RIGHT), "{}", tally.table());
    assert!(wrong * 100 <= done * (100 - RIGHT), "{}", tally.table());
    // A comparison that nothing reached holds nothing.
    assert!(tally.cases >= 2 * tally.discarded, "{}", tally.table());
    for what in KINDS {
        for class in ["permitted", "refused"] {
            assert!(
                tally.of(what, class) >= LEAST * users().len(),
                "{what} was {class} too seldom:\n{}",
                tally.table()
            );
        }
    }
}

#[test]
fn every_operation_is_decided_as_the_policy_says() {
    matrix("native");
}

#[test]
fn every_operation_is_decided_as_the_policy_says_under_bubblewrap() {
    matrix("bwrap");
}
