//! One walk for all patterns: what each matches of what exists now.
//!
//! Only where it matters: a pattern that denies writing is looked for below what may be written, one that denies reading
//! below what may be read. Links are not followed; file systems that are made up, or far away, are not entered unless a
//! rule names a place in them.

use super::codes::{UNANCHORED_GLOB, UNLISTED_DIRECTORY};
use super::link::Links;
use super::private::Private;
use super::track::{Patterns, State};
use crate::diagnostic::{Diagnostic, Level};
use crate::host::Host;
use crate::ir::{Policy, Rule, RuleId, Subject};
use crate::sets::path::{AbsPath, Pattern, Start};
use crate::vocabulary::{Effect, Verb};
use std::collections::{BTreeMap, BTreeSet};
use std::io;

/// So many names are looked at in one walk, and no more: past them the start would take seconds.
const NAMES: usize = 4_000_000;

/// What a walk found.
pub(super) struct Found {
    pub expansions: Vec<(RuleId, AbsPath)>,
}

/// Walks for all patterns of a bound policy.
pub(super) fn walk(
    policy: &Policy,
    host: &dyn Host,
    links: &Links<'_>,
    private: &Private,
    diagnostics: &mut Vec<Diagnostic>,
) -> Found {
    walk_at_most(NAMES, policy, host, links, private, diagnostics)
}

/// As [`walk`], with another bound on the names that are looked at.
pub(super) fn walk_at_most(
    limit: usize,
    policy: &Policy,
    host: &dyn Host,
    links: &Links<'_>,
    private: &Private,
    diagnostics: &mut Vec<Diagnostic>,
) -> Found {
    let regions = Regions::new(policy);
    let globs = globs(policy);
    let patterns = Patterns(globs.iter().map(|glob| glob.pattern).collect());
    let mut walker = Walker {
        host,
        patterns,
        own: |place: &AbsPath| links.is_own(place) || private.hides(place),
        closed: closed_mounts(policy, host),
        starts: BTreeMap::new(),
        visited: BTreeSet::new(),
        found: BTreeSet::new(),
        unlisted: Vec::new(),
        left: limit,
    };
    for (number, glob) in (0..).zip(&globs) {
        let prefix = glob.pattern.literal_prefix();
        for region in regions.starts(glob, &prefix) {
            if region.segments.is_empty() {
                diagnostics.push(unanchored(glob));
            }
            walker.start(number, &prefix, region);
        }
    }
    if let Err(TooMany(number)) = walker.run() {
        let message = format!("more than {limit} names would have to be looked at to hold the patterns of this policy");
        let mut diagnostic =
            Diagnostic::new(&UNANCHORED_GLOB, message).label(globs[number as usize].rule.span, "one of them");
        diagnostic.level = Level::Error;
        diagnostics.push(diagnostic.help("anchor the patterns, as in `$WORKSPACE/**/.env`"));
    }
    if let Some((first, count)) =
        walker.unlisted.first().map(|(place, number)| ((place, *number), walker.unlisted.len()))
    {
        let others = if count > 1 { format!(" and {} more", count - 1) } else { String::new() };
        let message = format!("`{}`{others} could not be listed, and patterns don't hold for what is below", first.0);
        let span = globs[first.1 as usize].rule.span;
        let diagnostic = Diagnostic::new(&UNLISTED_DIRECTORY, message).label(span, "looked for there");
        diagnostics.push(diagnostic.help("make it readable for you, or deny it as a whole"));
    }
    let expansions = walker.found.into_iter().map(|(number, place)| (globs[number as usize].id, place));
    let expansions: BTreeSet<_> = expansions.collect();
    Found { expansions: expansions.into_iter().collect() }
}

/// A pattern that has to be looked for.
struct Glob<'a> {
    id: RuleId,
    rule: &'a Rule,
    pattern: &'a Pattern,
    /// Else one of the rule's `except`.
    included: bool,
}

fn globs(policy: &Policy) -> Vec<Glob<'_>> {
    let mut globs = Vec::new();
    for (number, rule) in (0..).zip(&policy.rules) {
        let Subject::Paths(set) = &rule.subject else { continue };
        let all = set.include.iter().map(|pattern| (pattern, true)).chain(set.exclude.iter().map(|p| (p, false)));
        let open = all.filter(|(pattern, _)| !pattern.is_literal() && pattern.start == Start::Root);
        globs.extend(open.map(|(pattern, included)| Glob { id: RuleId(number), rule, pattern, included }));
    }
    globs
}

/// Where something is permitted at all, by verb: the literal prefixes of what allows it.
struct Regions {
    read: Vec<AbsPath>,
    write: Vec<AbsPath>,
    exec: Vec<AbsPath>,
    socket: Vec<AbsPath>,
}

impl Regions {
    fn new(policy: &Policy) -> Self {
        let of = |verb| {
            let rules = policy.rules.iter().filter(move |rule| rule.effect == Effect::Allow && rule.verb == verb);
            outermost(rules.flat_map(prefixes).collect())
        };
        let everything = policy.default_read.value == Effect::Allow;
        let read = if everything { vec![AbsPath::root()] } else { of(Verb::Read) };
        let exec = outermost(of(Verb::Exec).into_iter().chain(read.iter().cloned()).collect());
        Self { read, write: of(Verb::Write), exec, socket: of(Verb::Socket) }
    }

    /// The places at or below a pattern's prefix from which it is looked for.
    fn starts(&self, glob: &Glob<'_>, prefix: &AbsPath) -> Vec<AbsPath> {
        let own;
        let regions = match (glob.rule.effect, glob.included, glob.rule.verb) {
            // What an allow grants is looked for wherever it says.
            (Effect::Allow, true, _) => return vec![prefix.clone()],
            (Effect::Allow, false, _) => {
                own = outermost(prefixes(glob.rule));
                &own
            }
            (_, _, Verb::Write) => &self.write,
            (_, _, Verb::Exec) => &self.exec,
            (_, _, Verb::Socket) => &self.socket,
            // A read that is denied denies writing and running as well, which are within what may be read.
            _ => &self.read,
        };
        if regions.iter().any(|region| prefix.is_inside(region)) {
            return vec![prefix.clone()];
        }
        regions.iter().filter(|region| region.is_inside(prefix)).cloned().collect()
    }
}

fn prefixes(rule: &Rule) -> Vec<AbsPath> {
    match &rule.subject {
        Subject::Paths(set) => set.include.iter().map(Pattern::literal_prefix).collect(),
        _ => Vec::new(),
    }
}

/// Those that lie in no other.
fn outermost(mut places: Vec<AbsPath>) -> Vec<AbsPath> {
    places.sort();
    let mut outer: Vec<AbsPath> = Vec::new();
    for place in places {
        if !outer.last().is_some_and(|last| place.is_inside(last)) {
            outer.push(place);
        }
    }
    outer
}

/// Mounts that are not entered: made up by the kernel, or far away, and no rule names a place in them.
fn closed_mounts(policy: &Policy, host: &dyn Host) -> BTreeSet<AbsPath> {
    const CLOSED: &[&str] = &[
        "9p",
        "afs",
        "autofs",
        "binfmt_misc",
        "bpf",
        "ceph",
        "cgroup",
        "cgroup2",
        "cifs",
        "configfs",
        "debugfs",
        "devpts",
        "devtmpfs",
        "efivarfs",
        "fuse",
        "fusectl",
        "hugetlbfs",
        "mqueue",
        "ncpfs",
        "nfs",
        "nfs4",
        "proc",
        "pstore",
        "rpc_pipefs",
        "securityfs",
        "selinuxfs",
        "smb3",
        "smbfs",
        "sysfs",
        "tracefs",
    ];
    let closed =
        host.mounts().iter().filter(|mount| CLOSED.contains(&mount.kind.as_str()) || mount.kind.starts_with("fuse."));
    let mut closed: BTreeSet<AbsPath> = closed.map(|mount| mount.at.clone()).collect();
    if !closed.is_empty() {
        let named: Vec<AbsPath> = policy.rules.iter().flat_map(prefixes).collect();
        closed.retain(|at| !named.iter().any(|place| place.is_inside(at)));
    }
    closed
}

fn unanchored(glob: &Glob<'_>) -> Diagnostic {
    let tail = glob.pattern.to_string();
    let tail = tail.trim_start_matches("exact ").trim_start_matches("below ").trim_start_matches('/').to_owned();
    let message = format!("every name on the disk is looked at to hold `{}`", glob.pattern);
    let diagnostic = Diagnostic::new(&UNANCHORED_GLOB, message).label(glob.rule.span, "matches anywhere");
    diagnostic.help(format!("say where it is, as in `$WORKSPACE/{tail}`"))
}

struct Walker<'a, F> {
    host: &'a dyn Host,
    patterns: Patterns<'a>,
    own: F,
    closed: BTreeSet<AbsPath>,
    /// Where patterns come in, with how far they have got there.
    starts: BTreeMap<AbsPath, State>,
    visited: BTreeSet<AbsPath>,
    found: BTreeSet<(u32, AbsPath)>,
    unlisted: Vec<(AbsPath, u32)>,
    left: usize,
}

/// The bound on names is reached, while looking for this pattern among others.
struct TooMany(u32);

impl<F: Fn(&AbsPath) -> bool> Walker<'_, F> {
    /// Lets a pattern come in at a place at or below its prefix.
    fn start(&mut self, number: u32, prefix: &AbsPath, place: AbsPath) {
        let mut state = self.patterns.start(number, prefix.segments.len());
        let mut here = prefix.clone();
        let mut matched = Vec::new();
        for segment in place.below(prefix).unwrap_or_default() {
            here = here.join(segment);
            state = self.patterns.step(&state, segment, &mut matched);
            if matched.pop().is_some() {
                self.found.insert((number, here.clone()));
            }
        }
        if !state.is_dead() {
            self.starts.entry(place).or_default().merge(&state);
        }
    }

    fn run(&mut self) -> Result<(), TooMany> {
        for (place, state) in self.starts.clone() {
            // Those inside an earlier one have been there, unless it was cut off on the way.
            if !self.visited.contains(&place) && !(self.own)(&place) {
                self.tree(place, state)?;
            }
        }
        Ok(())
    }

    fn tree(&mut self, root: AbsPath, state: State) -> Result<(), TooMany> {
        let mut place = root;
        let depth = place.segments.len();
        let mut open: Vec<(usize, Option<Vec<u8>>, State)> = vec![(depth, None, state)];
        let mut matched = Vec::new();
        while let Some((depth, name, mut state)) = open.pop() {
            place.segments.truncate(depth);
            place.segments.extend(name);
            if let Some(more) = self.starts.get(&place) {
                state.merge(more);
                self.visited.insert(place.clone());
            }
            let entries = match self.host.list(&place) {
                Ok(entries) => entries,
                // Gone, or never a directory.
                Err(error) if matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::NotADirectory) => {
                    continue;
                }
                Err(_) => {
                    self.unlisted.push((place.clone(), state.first()));
                    continue;
                }
            };
            let depth = place.segments.len();
            for (name, directory) in entries {
                self.left = self.left.checked_sub(1).ok_or_else(|| TooMany(state.first()))?;
                matched.clear();
                let next = self.patterns.step(&state, &name, &mut matched);
                if matched.is_empty() && (!directory || next.is_dead()) {
                    continue;
                }
                place.segments.push(name);
                let own = (self.own)(&place);
                for number in matched.drain(..) {
                    if !own {
                        self.found.insert((number, place.clone()));
                    }
                }
                // A place where patterns come in is reached from above only if something is still looked for on the way;
                // else it is walked by itself.
                let enter = directory && !next.is_dead() && !own && !self.closed.contains(&place);
                let name = place.segments.pop();
                if enter {
                    open.push((depth, name, next));
                }
            }
        }
        Ok(())
    }
}
