//! One walk for all patterns: what each matches of what exists now.
//!
//! Only where it matters: a pattern that denies writing is looked for below what may be written, one that denies reading
//! below what may be read. Links are not followed; file systems that are made up, or far away, are not entered unless a
//! rule names a place in them.

use super::codes::{UNANCHORED_GLOB, UNLISTED_DIRECTORY};
use super::link::Links;
use super::private::Private;
use crate::diagnostic::{Diagnostic, Level};
use crate::host::Host;
use crate::ir::{Policy, Rule, RuleId, Subject, is_far};
use crate::sets::path::{self, AbsPath, FileName, Matcher, Pattern, State};
use crate::vocabulary::{Effect, Reach, Verb};
use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::rc::Rc;

/// So many names are looked at in one walk, and no more: past them the start would take seconds.
const NAMES: usize = 4_000_000;

/// File systems that the kernel makes up (proc(5), sysfs(5), …).
pub(super) const MADE_UP: &[&str] = &[
    "autofs",
    "binfmt_misc",
    "bpf",
    "cgroup",
    "cgroup2",
    "configfs",
    "debugfs",
    "devpts",
    "devtmpfs",
    "efivarfs",
    "fusectl",
    "hugetlbfs",
    "mqueue",
    "nsfs",
    "proc",
    "pstore",
    "rpc_pipefs",
    "securityfs",
    "selinuxfs",
    "sysfs",
    "tracefs",
];

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
    // What can match nowhere that matters is not looked for at all.
    let mut globs = globs(policy);
    // By glob: its prefix and where it is looked for. Most come in long rows that begin alike, and share these.
    let mut starts: Vec<Rc<Start>> = Vec::with_capacity(globs.len());
    let mut last: Option<(Class, Rc<Start>)> = None;
    globs.retain(|glob| {
        let class = glob.class();
        let known = last.take().filter(|(before, start)| {
            *before == class && class != Class::Except && glob.pattern.is_prefixed_by(&start.prefix)
        });
        let (_, start) = last.insert(known.unwrap_or_else(|| {
            let prefix = glob.pattern.literal_prefix();
            let places = regions.starts(glob, &prefix);
            (class, Rc::new(Start { prefix, places }))
        }));
        if !start.places.is_empty() {
            starts.push(Rc::clone(start));
        }
        !start.places.is_empty()
    });
    let mut walker = Walker {
        host,
        classes: Class::ALL.iter().map(|class| Followed::new(*class, &globs)).collect(),
        globs: &globs,
        own: |place: &AbsPath| links.is_own(place) || private.hides(place),
        closed: closed_mounts(policy, host),
        starts: BTreeMap::new(),
        visited: BTreeSet::new(),
        found: BTreeSet::new(),
        unlisted: Vec::new(),
        left: limit,
    };
    for (number, start) in starts.iter().enumerate() {
        // Nothing between prefix and place that could be matched, and the class has come in there already.
        let known = |before: &Rc<Start>| Rc::ptr_eq(before, start) && start.places == [start.prefix.clone()];
        if !start.prefix.segments.is_empty() && number.checked_sub(1).is_some_and(|before| known(&starts[before])) {
            continue;
        }
        for place in &start.places {
            if place.segments.is_empty() {
                diagnostics.push(unanchored(&globs[number]));
            }
            walker.start(number, &start.prefix, place);
        }
    }
    if let Err(TooMany(number)) = walker.run() {
        let message = format!("more than {limit} names would have to be looked at to hold the patterns of this policy");
        let mut diagnostic = Diagnostic::new(&UNANCHORED_GLOB, message).label(globs[number].rule.span, "one of them");
        diagnostic.level = Level::Error;
        diagnostics.push(diagnostic.help("anchor the patterns, as in `$WORKSPACE/**/.env`"));
    }
    if let Some((first, count)) =
        walker.unlisted.first().map(|(place, number)| ((place, *number), walker.unlisted.len()))
    {
        let others = if count > 1 { format!(" and {} more", count - 1) } else { String::new() };
        let message = format!("`{}`{others} could not be listed, and patterns don't hold for what is below", first.0);
        let span = globs[first.1].rule.span;
        let diagnostic = Diagnostic::new(&UNLISTED_DIRECTORY, message).label(span, "looked for there");
        diagnostics.push(diagnostic.help("make it readable for you, or deny it as a whole"));
    }
    let expansions = walker.found.into_iter().map(|(number, place)| (globs[number].id, place));
    let expansions: BTreeSet<_> = expansions.collect();
    Found { expansions: expansions.into_iter().collect() }
}

/// Where a pattern is looked for.
struct Start {
    /// Of the pattern.
    prefix: AbsPath,
    /// At or below it.
    places: Vec<AbsPath>,
}

/// A pattern that has to be looked for.
struct Glob<'a> {
    id: RuleId,
    rule: &'a Rule,
    pattern: &'a Pattern,
    /// Else one of the rule's `except`.
    included: bool,
}

/// Patterns that are looked for in the same places, and so followed together.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Class {
    /// What an allow grants.
    Grant,
    /// What an allow's `except` takes out of it.
    Except,
    Read,
    Write,
    Exec,
    Socket,
}

impl Class {
    const ALL: [Class; 6] = [Class::Grant, Class::Except, Class::Read, Class::Write, Class::Exec, Class::Socket];
}

impl Glob<'_> {
    fn class(&self) -> Class {
        match (self.rule.effect, self.included, self.rule.verb) {
            (Effect::Allow, true, _) => Class::Grant,
            (Effect::Allow, false, _) => Class::Except,
            (_, _, Verb::Write) => Class::Write,
            (_, _, Verb::Exec) => Class::Exec,
            (_, _, Verb::Socket) => Class::Socket,
            // A read that is denied denies writing and running as well, which are within what may be read.
            _ => Class::Read,
        }
    }
}

fn globs(policy: &Policy) -> Vec<Glob<'_>> {
    let mut globs = Vec::new();
    for (number, rule) in (0..).zip(&policy.rules) {
        let Subject::Paths(set) = &rule.subject else { continue };
        let all = set.include.iter().map(|pattern| (pattern, true)).chain(set.exclude.iter().map(|p| (p, false)));
        let open = all.filter(|(pattern, _)| !pattern.is_literal() && pattern.start == path::Start::Root);
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
        let regions = match glob.class() {
            // Looked for wherever it says.
            Class::Grant => return vec![prefix.clone()],
            Class::Except => {
                own = outermost(prefixes(glob.rule));
                &own
            }
            Class::Write => &self.write,
            Class::Exec => &self.exec,
            Class::Socket => &self.socket,
            Class::Read => &self.read,
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
    let kind = |kind: &str| MADE_UP.contains(&kind) || is_far(kind);
    let closed = host.mounts().iter().filter(|mount| kind(&mount.kind));
    let mut closed: Vec<&AbsPath> = closed.map(|mount| &mount.at).collect();
    // Few rules name anything near one.
    let tops: Vec<Option<&[u8]>> = closed.iter().map(|at| at.segments.first().map(|name| &**name)).collect();
    for rule in &policy.rules {
        let Subject::Paths(set) = &rule.subject else { continue };
        for pattern in set.include.iter().filter(|pattern| tops.contains(&pattern.literal_at(0))) {
            closed.retain(|at| !pattern.begins_inside(at));
        }
    }
    closed.into_iter().cloned().collect()
}

fn unanchored(glob: &Glob<'_>) -> Diagnostic {
    let tail = glob.pattern.to_string();
    let tail = tail.trim_start_matches("exact ").trim_start_matches("below ").trim_start_matches('/').to_owned();
    let message = format!("every name on the disk is looked at to hold `{}`", glob.pattern);
    let diagnostic = Diagnostic::new(&UNANCHORED_GLOB, message).label(glob.rule.span, "matches anywhere");
    diagnostic.help(format!("say where it is, as in `$WORKSPACE/{tail}`"))
}

/// The patterns of one class, by number, and the matcher that follows their segments; what the reach of a pattern adds to
/// what its segments match is not looked for.
struct Followed {
    class: Class,
    numbers: Vec<usize>,
    matcher: Matcher,
}

impl Followed {
    fn new(class: Class, globs: &[Glob<'_>]) -> Self {
        let numbers: Vec<usize> = (0..globs.len()).filter(|number| globs[*number].class() == class).collect();
        let matcher = Matcher::of_nodes(numbers.iter().map(|number| globs[*number].pattern));
        Followed { class, numbers, matcher }
    }
}

/// How far each class has got at a place; those that can match nothing from here on are left out.
type States = Vec<(usize, State)>;

struct Walker<'a, F> {
    host: &'a dyn Host,
    classes: Vec<Followed>,
    globs: &'a [Glob<'a>],
    own: F,
    closed: BTreeSet<AbsPath>,
    /// Where classes come in.
    starts: BTreeMap<AbsPath, BTreeSet<usize>>,
    visited: BTreeSet<AbsPath>,
    found: BTreeSet<(usize, AbsPath)>,
    unlisted: Vec<(AbsPath, usize)>,
    left: usize,
}

/// A directory to be listed.
struct Open {
    /// How long the path of the one that holds it is.
    depth: usize,
    name: Option<FileName>,
    states: States,
    /// The patterns that have taken the whole tree it lies in.
    taken: Vec<usize>,
}

/// The bound on names is reached, while looking for this pattern among others.
struct TooMany(usize);

impl<F: Fn(&AbsPath) -> bool> Walker<'_, F> {
    /// Lets a pattern come in at a place at or below its prefix.
    fn start(&mut self, number: usize, prefix: &AbsPath, place: &AbsPath) {
        // What lies between the two is not walked, but may be matched.
        let between = place.segments.len() - prefix.segments.len();
        if between > 0 {
            let exact = Pattern { reach: Reach::Exact, ..self.globs[number].pattern.clone() };
            for at in place.ancestors().skip(prefix.segments.len() + 1).take(between) {
                if exact.contains(&at) {
                    self.found.insert((number, at));
                }
            }
        }
        let class = self.globs[number].class();
        if let Some(class) = self.classes.iter().position(|followed| followed.class == class) {
            match self.starts.get_mut(place) {
                Some(classes) => {
                    classes.insert(class);
                }
                None => {
                    self.starts.insert(place.clone(), BTreeSet::from([class]));
                }
            }
        }
    }

    fn run(&mut self) -> Result<(), TooMany> {
        for place in self.starts.keys().cloned().collect::<Vec<_>>() {
            // Those inside an earlier one have been there, unless it was cut off on the way.
            if !self.visited.contains(&place) && !(self.own)(&place) {
                self.tree(place)?;
            }
        }
        Ok(())
    }

    /// Adds the classes that come in at a place.
    fn arrive(&mut self, place: &AbsPath, states: &mut States) {
        let Some(classes) = self.starts.get(place) else { return };
        self.visited.insert(place.clone());
        for class in classes {
            if !states.iter().any(|(known, _)| known == class) {
                let matcher = &mut self.classes[*class].matcher;
                let state = matcher.at(place);
                if !matcher.is_dead(state) {
                    states.push((*class, state));
                }
            }
        }
    }

    /// The states at a name below, and the patterns whose segments all are matched there.
    fn step(&mut self, states: &States, name: &[u8], taken: &[usize], matched: &mut Vec<usize>) -> States {
        let mut next = States::new();
        for &(class, state) in states {
            let Followed { numbers, matcher, .. } = &mut self.classes[class];
            let state = matcher.step(state, name);
            let fresh = |set: &u32| !taken.contains(&numbers[*set as usize]);
            matched.extend(matcher.accepting(state).iter().filter(|set| fresh(set)).map(|set| numbers[*set as usize]));
            if matcher.live(state).iter().any(fresh) {
                next.push((class, state));
            }
        }
        next
    }

    /// One of the patterns that are looked for.
    fn one_of(&self, states: &States) -> usize {
        let first = states.first().and_then(|(class, state)| {
            let followed = &self.classes[*class];
            followed.matcher.live(*state).first().map(|set| followed.numbers[*set as usize])
        });
        first.unwrap_or_default()
    }

    fn tree(&mut self, root: AbsPath) -> Result<(), TooMany> {
        let mut place = root;
        let depth = place.segments.len();
        let mut open = vec![Open { depth, name: None, states: States::new(), taken: Vec::new() }];
        let mut matched = Vec::new();
        while let Some(Open { depth, name, mut states, taken }) = open.pop() {
            place.segments.truncate(depth);
            place.segments.extend(name);
            self.arrive(&place, &mut states);
            if states.is_empty() {
                continue;
            }
            let entries = match self.host.list(&place) {
                Ok(entries) => entries,
                // Gone, or never a directory.
                Err(error) if matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::NotADirectory) => {
                    continue;
                }
                Err(_) => {
                    self.unlisted.push((place.clone(), self.one_of(&states)));
                    continue;
                }
            };
            let depth = place.segments.len();
            for (name, directory) in entries {
                self.left = self.left.checked_sub(1).ok_or_else(|| TooMany(self.one_of(&states)))?;
                matched.clear();
                let next = self.step(&states, &name, &taken, &mut matched);
                if matched.is_empty() && (!directory || next.is_empty()) {
                    continue;
                }
                place.segments.push(name.into());
                let own = (self.own)(&place);
                let mut taken = taken.clone();
                for number in matched.drain(..).filter(|_| !own) {
                    self.found.insert((number, place.clone()));
                    if self.globs[number].pattern.reach == Reach::Tree {
                        taken.push(number);
                    }
                }
                // A place where patterns come in is reached from above only if something is still looked for on the way;
                // else it is walked by itself.
                let enter = directory && !next.is_empty() && !own && !self.closed.contains(&place);
                let name = place.segments.pop();
                if enter {
                    open.push(Open { depth, name, states: next, taken });
                }
            }
        }
        Ok(())
    }
}
