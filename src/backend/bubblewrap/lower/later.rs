//! Names that do not exist yet: what a rule says of them, and what the mounts will do.
//!
//! Mounts hold what exists at the start. For each rule with a glob, or a target that is missing, a few paths that it
//! would match are made up, the shortest first, and judged: where the mounts permit more, or less, than the policy, the
//! first of them is the witness of a gap. Where none of them tells what the command could make, all are asked about.

mod asked;
mod said;

use super::Needs;
use super::codes;
use super::cover::Cover;
use super::instances::instances;
use super::judge::{Judge, State};
use super::mounts::Layout;
use super::tree::Tree;
use crate::backend::bubblewrap::plan::{DEVICES, Mount, PROC_HIDDEN};
use crate::backend::bubblewrap::seccomp::Watch;
use crate::diagnostic::Diagnostic;
use crate::ir::{Origin, Policy, Rule, RuleId, Subject};
use crate::sets::path::{AbsPath, PathSet, Pattern, Start};
use crate::vocabulary::{Effect, Reach, Verb};
use asked::{Asked, Speaks};

/// Whether calls that change files have to be made in the command's place.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Performed {
    Nothing,
    /// For rules alone of which a comment accepts that mounts hold them for what is there.
    Accepted,
    Needed,
}

/// The gaps; and what has to be performed, so that there are no more of them.
pub(super) fn gaps(tree: &Tree, layout: &Layout, judge: &Judge<'_>, needs: &Needs) -> (Vec<Diagnostic>, Performed) {
    let errors_alone = needs.errors_alone;
    let performs = needs.performs != Watch::Nothing && !needs.nest;
    let strict = performs && needs.performs == Watch::Opens;
    let performed = if layout.opened || strict { Performed::Needed } else { Performed::Nothing };
    let mut findings = Findings { policy: judge.policy, needs, performed, gaps: Vec::new(), outside: Vec::new() };
    let writable = writable_roots(tree, layout);
    // For errors, too: what is opened in one and cannot be read there is one.
    let closed = closed_tops(tree, layout);
    let search = Search { tree, layout, judge, writable, errors_alone, closed };
    let mut asked = Asked::default();
    for (rule, id) in judge.policy.rules.iter().zip((0..).map(RuleId)) {
        let Subject::Paths(set) = &rule.subject else { continue };
        if !rule.verb.is_about_files() {
            continue;
        }
        let (takes_away, opens) = both_ways(rule, set);
        let mut speaks = Speaks { rule, id, is_accepted: findings.is_accepted(rule), is_told: false, is_open: false };
        if !findings.are_unwanted(rule) {
            // What a rule denies it denies under the other names that the mounts give it.
            let elsewhere = judge.policy.facts.elsewhere_of(id).flat_map(|set| &set.include);
            let own = |pattern: &&Pattern| rule.effect != Effect::Allow || !search.is_shown_anew(pattern);
            let takes_away: Vec<_> = takes_away.iter().chain(elsewhere).filter(own).collect();
            let found = takes_away.iter().filter_map(|pattern| search.looser(rule.verb, pattern));
            let below = opens.iter().filter_map(|pattern| search.looser_below(rule.verb, pattern));
            let found = found.chain(below).reduce(worse);
            speaks.is_told = matches!(found, Some(Looser::Inside(_)));
            speaks.is_open = !speaks.is_told && search.may_make(&takes_away, opens);
            if let Some(found) = found {
                findings.tell(rule, found);
            }
        }
        asked.rules.push(speaks);
        if let Some(witness) = takes_away.iter().find_map(|pattern| search.shown(pattern)) {
            findings.gaps.push(said::shown(rule, &witness));
        }
        if rule.effect == Effect::Allow
            && rule.origin != Origin::Std
            && let Some(witness) = set.include.iter().find_map(|pattern| search.not_there(rule.verb, pattern))
        {
            findings.gaps.push(said::not_there(rule, &witness));
        }
        // Whatever is wanted: to judge these paths finds what may be written and not be read, which is an error.
        if rule.origin != Origin::Std
            && let Some(witness) = opens.iter().find_map(|pattern| search.stricter(rule.verb, pattern))
        {
            findings.gaps.push(said::not_granted(rule, &witness));
        }
    }
    for verb in [Verb::Read, Verb::Write, Verb::Exec] {
        asked.ask(verb, tree, layout, judge, &mut findings);
    }
    let Findings { mut gaps, mut outside, performed, .. } = findings;
    if strict {
        outside.retain(|(rule, _)| rule.verb != Verb::Read);
    }
    gaps.extend(said::from_outside(judge.policy, &outside));
    (gaps, performed)
}

/// The patterns of a rule by which it takes away, and those by which it opens: what an `except` says is the reverse.
fn both_ways<'r>(rule: &Rule, set: &'r PathSet) -> (&'r [Pattern], &'r [Pattern]) {
    if rule.effect == Effect::Allow { (&set.exclude, &set.include) } else { (&set.include, &set.exclude) }
}

/// What was found, and what it asks for.
struct Findings<'a> {
    policy: &'a Policy,
    needs: &'a Needs,
    performed: Performed,
    gaps: Vec<Diagnostic>,
    outside: Vec<(&'a Rule, AbsPath)>,
}

impl<'a> Findings<'a> {
    fn is_accepted(&self, rule: &Rule) -> bool {
        let mut comments = self.policy.suppressions.iter();
        comments.any(|comment| comment.code == codes::LATER_NAMES.name && comment.covers(rule.span))
    }

    /// Running is not asked for when something is made.
    fn is_held(&self, rule: &Rule) -> bool {
        self.needs.performs != Watch::Nothing && !self.needs.nest && rule.verb != Verb::Exec
    }

    /// Whether nothing that could be found of a rule is of use.
    fn are_unwanted(&self, rule: &Rule) -> bool {
        let is_accepted = || self.is_accepted(rule);
        // With `--nest`, what a comment accepts is refused all the same.
        self.needs.errors_alone
            && if self.is_held(rule) {
                let most = self.performed == Performed::Needed;
                most || (self.performed == Performed::Accepted && is_accepted())
            } else {
                !self.needs.nest && is_accepted()
            }
    }

    /// The same, or what the command could make of it would add nothing to what is performed.
    fn are_settled(&self, rule: &Rule) -> bool {
        let is_silent = rule.verb == Verb::Write && self.performed == Performed::Needed && self.is_held(rule);
        (is_silent && !self.is_accepted(rule)) || self.are_unwanted(rule)
    }

    fn tell(&mut self, rule: &'a Rule, found: Looser) {
        match found {
            // What a rule denies to read it denies to make.
            Looser::Inside(witness) if self.is_held(rule) => {
                let is_accepted = self.is_accepted(rule);
                self.performed = self.performed.max(if is_accepted { Performed::Accepted } else { Performed::Needed });
                if is_accepted {
                    // For what mounts alone hold, which is where nobody performs.
                    self.gaps.extend((!self.needs.errors_alone).then(|| said::later_names(rule, &witness)));
                } else if rule.verb == Verb::Read && !self.needs.errors_alone {
                    self.outside.push((rule, witness));
                }
            }
            Looser::Inside(witness) => self.gaps.push(said::later_names(rule, &witness)),
            Looser::Outside(witness) => self.outside.push((rule, witness)),
        }
    }
}

enum Looser {
    /// The command itself can make the name.
    Inside(AbsPath),
    /// Only something outside can.
    Outside(AbsPath),
}

/// What the command can make itself comes before what it can't, and else what was found first.
fn worse(one: Looser, other: Looser) -> Looser {
    match (&one, &other) {
        (Looser::Outside(_), Looser::Inside(_)) => other,
        _ => one,
    }
}

struct Search<'a> {
    tree: &'a Tree,
    layout: &'a Layout,
    judge: &'a Judge<'a>,
    writable: Vec<AbsPath>,
    /// What only something outside can make is not looked for.
    errors_alone: bool,
    closed: Vec<AbsPath>,
}

/// So many closed places are looked into for names that a pattern opens in them.
const MOST_CLOSED: usize = 64;

/// The tops of the closed places inside writable ones.
fn closed_tops(tree: &Tree, layout: &Layout) -> Vec<AbsPath> {
    let is_top = |at: &usize| {
        let closed = matches!(layout.covers[*at], Cover::Host { write: false, .. } | Cover::Empty);
        closed && layout.covers[tree.points[*at].parent].is_writable()
    };
    (1..tree.points.len()).filter(is_top).take(MOST_CLOSED).map(|at| tree.points[at].path.clone()).collect()
}

/// The tops of the places in which the command can make names.
fn writable_roots(tree: &Tree, layout: &Layout) -> Vec<AbsPath> {
    let is_root = |at: &usize| {
        let parent = tree.points[*at].parent;
        layout.covers[*at].is_writable() && (*at == 0 || !layout.covers[parent].is_writable())
    };
    (0..tree.points.len()).filter(is_root).map(|at| tree.points[at].path.clone()).collect()
}

impl Search<'_> {
    fn looser(&self, verb: Verb, pattern: &Pattern) -> Option<Looser> {
        if pattern.reach == Reach::Below
            && let Some(path) = pattern.as_literal().filter(|path| self.is_replaceable(path))
        {
            let below = path.join(self.judge.fresh());
            return (!self.judge.verdict(verb, &below).allowed).then_some(Looser::Inside(below));
        }
        if self.errors_alone && pattern.is_literal() && self.cannot_make(pattern) {
            return None;
        }
        if let Some(path) = pattern.as_literal() {
            return self
                .is_missing(&path)
                .then(|| self.first_looser(verb, instances(pattern, &path, self.judge.fresh())))?;
        }
        let inside = self.writable.iter().find_map(|root| {
            let found = self.first_looser(verb, instances(pattern, root, self.judge.fresh()));
            found.filter(|found| matches!(found, Looser::Inside(_)))
        });
        inside.or_else(|| self.first_looser(verb, instances(pattern, &pattern.literal_prefix(), self.judge.fresh())))
    }

    /// Whether the command may make something that one of these patterns matches, or something below it: what the tries say
    /// nothing of is asked for.
    fn may_make(&self, takes_away: &[&Pattern], opens: &[Pattern]) -> bool {
        let alone = opens.iter().filter(|pattern| pattern.reach == Reach::Exact);
        takes_away
            .iter()
            .copied()
            .chain(alone)
            .filter(|pattern| self.judge.policy.facts.is_absent(pattern))
            .any(|pattern| self.writable.iter().any(|root| !instances(pattern, root, self.judge.fresh()).is_empty()))
    }

    /// What is opened for itself alone may be made as a directory, and something in it.
    fn looser_below(&self, verb: Verb, pattern: &Pattern) -> Option<Looser> {
        if pattern.reach != Reach::Exact || pattern.is_literal() {
            return None;
        }
        let made = self.writable.iter().flat_map(|root| instances(pattern, root, self.judge.fresh()));
        let below =
            made.filter(|path| self.given(path).is_some_and(|(given, is_writable)| is_writable && given.permits(verb)));
        let mut below = below.map(|path| self.judge.unnamed_child(&path));
        below.find(|path| !self.judge.verdict(verb, path).allowed).map(Looser::Inside)
    }

    /// Whether the command can make nothing at or below a literal target.
    fn cannot_make(&self, pattern: &Pattern) -> bool {
        self.deepest_of(pattern).is_some_and(|at| !self.layout.covers[at].is_writable())
    }

    /// The deepest point at or above the literal prefix of a pattern.
    fn deepest_of(&self, pattern: &Pattern) -> Option<usize> {
        let names = (0..).map_while(|depth| pattern.literal_at(depth));
        (pattern.start == Start::Root).then(|| self.tree.deepest_of(names))
    }

    fn first_looser(&self, verb: Verb, paths: Vec<AbsPath>) -> Option<Looser> {
        let mut outside = None;
        for path in paths {
            let Some((given, is_writable)) = self.given(&path) else { continue };
            if (self.errors_alone && !is_writable) || !given.permits(verb) || self.judge.verdict(verb, &path).allowed {
                continue;
            }
            if is_writable {
                return Some(Looser::Inside(path));
            }
            if outside.is_none() {
                outside = Some(Looser::Outside(path));
            }
        }
        outside
    }

    fn stricter(&self, verb: Verb, pattern: &Pattern) -> Option<AbsPath> {
        let from = pattern.literal_prefix();
        if pattern.is_literal() && !self.is_missing(&from) {
            return None;
        }
        let inside = self.closed.iter().filter(|top| !pattern.is_literal() && top.is_inside(&from));
        std::iter::once(&from).chain(inside).find_map(|root| {
            instances(pattern, root, self.judge.fresh()).into_iter().find(|path| {
                self.given(path).is_some_and(|(given, _)| {
                    !given.permits(verb)
                        && self.judge.verdict(verb, path).allowed
                        && self.judge.state(path).permits(verb)
                })
            })
        })
    }

    /// Whether a place of the host that `$TMP` is less by is not the host's in the sandbox: nothing lets it be read, and what
    /// stands there is a directory of the run's own.
    fn is_shown_anew(&self, pattern: &Pattern) -> bool {
        let is_own = |path: &AbsPath| matches!(self.layout.covers[self.tree.deepest(path)], Cover::Private { .. });
        pattern.as_literal().is_some_and(|path| self.judge.policy.facts.nodes.contains_key(&path) && is_own(&path))
    }

    /// Whether the command can put a directory in place of what is there now: no directory, and not mounted.
    fn is_replaceable(&self, path: &AbsPath) -> bool {
        let at = self.tree.deepest(path);
        let point = &self.tree.points[at];
        point.path == *path
            && !point.is_directory()
            && self.layout.covers[point.parent].is_writable()
            && !self.layout.mounts.iter().any(|mount| match mount {
                Mount::Bind { path: there, .. } | Mount::MaskFile { path: there, .. } => {
                    path.as_bytes().is_some_and(|path| path == *there)
                }
                _ => false,
            })
    }

    /// A part of our `/dev` or `/proc` that the pattern names and the policy denies, though it is there.
    fn shown(&self, pattern: &Pattern) -> Option<AbsPath> {
        let cover = self.layout.covers[self.deepest_of(pattern)?];
        if !matches!(cover, Cover::Proc { .. } | Cover::Devices) {
            return None;
        }
        let from = pattern.literal_prefix();
        let given = |path: &AbsPath| match cover {
            Cover::Proc { write } => Some(in_proc(path, write)),
            Cover::Devices if OWN_DEVICES.iter().any(|name| from.is_inside(&device(name))) => {
                Some(State { read: true, write: true, exec: false })
            }
            _ => None,
        };
        instances(pattern, &from, self.judge.fresh()).into_iter().find(|path| {
            let Some(given) = given(path) else { return false };
            let said = self.judge.state(path);
            (given.read && !said.read) || (given.write && !said.write)
        })
    }

    /// A device that the pattern names and our `/dev` does not have, or a part of our `/proc` that is covered.
    fn not_there(&self, verb: Verb, pattern: &Pattern) -> Option<AbsPath> {
        let path = pattern.as_literal()?;
        if let Cover::Proc { write } = self.layout.covers[self.tree.deepest(&path)] {
            let covered = verb != Verb::Exec && !in_proc(&path, write).permits(verb);
            return (covered && self.judge.verdict(verb, &path).allowed).then_some(path);
        }
        let is_ours = || DEVICES.iter().chain(&OWN_DEVICES).any(|name| path.is_inside(&device(name)));
        let deepest = self.tree.deepest(&path);
        (self.layout.covers[deepest] == Cover::Devices && path != device("") && !is_ours()).then_some(path)
    }

    fn is_missing(&self, path: &AbsPath) -> bool {
        !self.judge.policy.facts.nodes.contains_key(path)
            || matches!(self.layout.covers[self.tree.deepest(path)], Cover::Private { .. })
    }

    /// What the mounts permit for a name that is not there now, and whether the command can make it. `None` where
    /// there can be no such name, or it is there.
    fn given(&self, path: &AbsPath) -> Option<(State, bool)> {
        let deepest = self.tree.deepest(path);
        let is_point = self.tree.points[deepest].path == *path;
        match self.layout.covers[deepest] {
            Cover::Private { write, exec } => Some((State { read: true, write, exec }, write)),
            _ if is_point => None,
            Cover::Host { write, exec } => Some((State { read: true, write, exec }, write)),
            Cover::Empty => Some((State { read: false, write: false, exec: false }, false)),
            Cover::Devices | Cover::Proc { .. } | Cover::Closed => None,
        }
    }
}

/// What can be done at a path in our `/proc`, where `write` says whether processes may change what is their own.
fn in_proc(path: &AbsPath, write: bool) -> State {
    // `net` and `mounts` are links to a process's own.
    let of_process = |name: &[u8]| {
        name.iter().all(u8::is_ascii_digit) || [&b"self"[..], b"thread-self", b"net", b"mounts"].contains(&name)
    };
    match path.segments.get(1) {
        Some(name) if !of_process(name) => {
            let hidden = PROC_HIDDEN.iter().any(|hidden| hidden.as_bytes() == &name[..]);
            State { read: !hidden, write: false, exec: false }
        }
        _ => State { read: true, write, exec: false },
    }
}

/// What our `/dev` always has.
const OWN_DEVICES: [&str; 7] = ["pts", "ptmx", "shm", "fd", "stdin", "stdout", "stderr"];

/// A path in `/dev`, or `/dev` itself for no name.
fn device(name: &str) -> AbsPath {
    let place = AbsPath::root().join("dev");
    if name.is_empty() { place } else { place.join(name) }
}
