//! Questions about many sets of one kind at once: a shortest member of some that is in none of others.
//!
//! Whether a set refuses a member is for whoever asks, see [`Refusal`]. Questions about two sets are their own, and always
//! decided; these have a budget.

pub use super::budget::{Budget, Exhausted};

use super::host::{Absent, Host, HostSet};
use super::mistake::{Mistake, made};
use super::name::NameSet;
use super::path::{AbsPath, PathSet, Start};
use super::words::letters::Alphabet;
use super::words::question::{self, Exception, Forest};
use super::words::trie::Trie;
use super::words::{Origin, Shape, Token, Unit, plainly_apart};
use super::{host, name, path};

/// What the members of sets are.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    Paths,
    Hosts,
    Names,
}

/// What members there may be.
#[derive(Debug, Clone)]
pub struct Space<'a> {
    pub kind: Kind,
    /// The variables that have a place, or a name, whether or not a set of the question starts at one.
    pub variables: Vec<&'a str>,
    /// Of hosts, those that are no members.
    pub absent: Vec<&'a Absent>,
}

impl Space<'_> {
    /// With the variables of another one.
    #[must_use]
    pub fn and(mut self, other: Self) -> Self {
        self.variables.extend(other.variables);
        self.absent.extend(other.absent);
        self
    }
}

/// A member of a set of whichever kind.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Member {
    Path(AbsPath),
    Host(Host),
    Name(String),
}

/// One set, as the search takes it.
#[derive(Debug, Clone)]
pub struct Compiled<'a> {
    include: Vec<Shape<'a>>,
    exclude: Vec<Shape<'a>>,
}

/// Sets of one kind, as one tree; each is named by its place in the order.
#[derive(Debug, Clone)]
pub struct Index<'a> {
    sets: Vec<Compiled<'a>>,
    trie: Trie<'a>,
}

/// Sets whose members are no answer.
pub enum Refusal<'q, 'a> {
    /// Those of an index that a function has an answer for, less the sets of another index that it names.
    Of { index: &'q Index<'a>, lifting: &'q Index<'a>, lifted_by: LiftedBy<'q> },
    /// A few, all of them.
    All(Vec<&'q Compiled<'a>>),
}

/// The sets that lift the refusal of a set; `None` when it refuses nothing.
pub type LiftedBy<'q> = Box<dyn Fn(usize) -> Option<Vec<usize>> + 'q>;

impl Kind {
    fn alphabet(self) -> Alphabet {
        match self {
            Kind::Paths => Alphabet::File,
            Kind::Hosts => Alphabet::Label,
            Kind::Names => Alphabet::Name,
        }
    }

    fn member(self, word: Vec<Unit<'_>>) -> Member {
        match self {
            Kind::Paths => Member::Path(path::from_units(word)),
            Kind::Hosts => Member::Host(host::from_units(word)),
            Kind::Names => Member::Name(name::from_units(word)),
        }
    }
}

impl Member {
    /// How much there is of it to read: segments or labels (a variable or a drive is one), then bytes.
    pub fn size(&self) -> (usize, usize) {
        match self {
            Member::Path(path) => {
                let start = usize::from(path.start != Start::Root);
                (path.segments.len() + start, path.segments.iter().map(|segment| segment.len()).sum())
            }
            Member::Host(Host::Name(name)) => (name.labels().count(), name.as_str().len()),
            Member::Host(Host::Variable(name)) => (1, name.len()),
            Member::Name(name) => (1, name.len()),
        }
    }

    fn units(&self) -> Vec<Unit<'_>> {
        match self {
            Member::Path(path) => path::units(path),
            Member::Host(host) => host::units(host),
            Member::Name(name) => vec![Unit::Segment(name.clone().into_bytes())],
        }
    }
}

impl<'a> Compiled<'a> {
    pub fn paths(set: &'a PathSet) -> Self {
        Self { include: path::shapes(&set.include), exclude: path::shapes(&set.exclude) }
    }

    pub fn hosts(set: &'a HostSet) -> Self {
        Self { include: host::shapes(&set.include), exclude: host::shapes(&set.exclude) }
    }

    /// Of a set of hosts what is named without a `*`.
    pub fn literal_hosts(set: &'a HostSet) -> Self {
        Self { include: host::literal_shapes(&set.include), exclude: host::shapes(&set.exclude) }
    }

    pub fn names(set: &'a NameSet) -> Self {
        Self { include: name::shapes(&set.include), exclude: name::shapes(&set.exclude) }
    }

    /// Every path, host or name.
    pub fn all(kind: Kind) -> Self {
        let all = match kind {
            Kind::Paths => vec![Token::Many],
            Kind::Hosts => vec![Token::One, Token::Many],
            Kind::Names => vec![Token::One],
        };
        Self { include: vec![all], exclude: Vec::new() }
    }

    /// Whether it is plain that no pattern is in it at all.
    pub fn is_void(&self) -> bool {
        self.include.is_empty()
    }

    fn contains(&self, word: &[Unit<'_>]) -> bool {
        let matches = |shape: &Shape<'_>| super::words::matches(shape, word);
        self.include.iter().any(matches) && !self.exclude.iter().any(matches)
    }

    /// What it excludes, as the way out of being refused by it.
    fn escape(&self) -> Vec<Exception<'_, 'a>> {
        if self.exclude.is_empty() {
            return Vec::new();
        }
        vec![Exception { any: self.exclude.iter().map(|shape| &shape[..]).collect(), but: Vec::new() }]
    }

    fn exception<'q>(&'q self) -> Exception<'q, 'a> {
        let slices = |shapes: &'q [Shape<'a>]| shapes.iter().map(|shape| &shape[..]).collect();
        Exception { any: slices(&self.include), but: slices(&self.exclude) }
    }
}

impl<'a> Index<'a> {
    pub fn new(sets: impl IntoIterator<Item = Compiled<'a>>) -> Self {
        let sets: Vec<_> = sets.into_iter().collect();
        let mut trie = Trie::new();
        for (set, number) in sets.iter().zip(0..) {
            for shape in &set.include {
                trie.insert(shape, number);
            }
        }
        Self { sets, trie }
    }

    /// How many sets there are.
    pub fn len(&self) -> usize {
        self.sets.len()
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.sets.is_empty()
    }

    /// The set of a number.
    pub fn set(&self, number: usize) -> &Compiled<'a> {
        &self.sets[number]
    }

    /// The sets that may have a member in common with another one: all that do, and some that begin alike and do not; in
    /// order, each once.
    pub fn meeting(&self, set: &Compiled<'a>) -> Vec<usize> {
        let mut meeting: Vec<_> = self.find_meeting(set).collect();
        meeting.sort_unstable();
        meeting.dedup();
        meeting
    }

    /// The same as they are found, for whoever may have enough with the first: in no order, some more than once.
    pub fn find_meeting<'q>(&'q self, set: &'q Compiled<'a>) -> impl Iterator<Item = usize> + use<'q, 'a> {
        set.include.iter().flat_map(move |shape| {
            let near =
                move |number: &usize| self.sets[*number].include.iter().any(|pattern| !plainly_apart(pattern, shape));
            self.trie.meeting(shape).map(|number| number as usize).filter(near)
        })
    }

    /// The sets that a member is in.
    pub fn containing(&self, member: &Member) -> Vec<usize> {
        let word = member.units();
        let mut places = self.trie.start();
        for unit in &word {
            places = self.trie.step(&places, unit);
        }
        let mut sets: Vec<_> = self.trie.ends(&places).map(|(set, _)| set as usize).collect();
        sets.sort_unstable();
        sets.dedup();
        sets.retain(|set| self.sets[*set].exclude.is_empty() || self.sets[*set].contains(&word));
        sets
    }
}

/// A shortest member of all of `required` that nothing refuses; with `shorter_than`, only one of fewer segments or labels.
///
/// # Errors
/// When the budget does not suffice to know.
pub fn shortest<'a>(
    space: &Space<'a>,
    required: &[&Compiled<'a>],
    refusals: &[Refusal<'_, 'a>],
    shorter_than: Option<usize>,
    budget: &mut Budget,
) -> Result<Option<Member>, Exhausted> {
    let mut best: Option<Member> = None;
    let mut choice = vec![0; required.len()];
    if required.iter().any(|set| set.include.is_empty()) {
        return Ok(None);
    }
    loop {
        let patterns: Vec<&[Token<'a>]> =
            required.iter().zip(&choice).map(|(set, index)| &set.include[*index][..]).collect();
        budget.spend(1)?;
        let limit = best.as_ref().map(|best| best.size().0).or(shorter_than);
        // No word of a pattern has fewer units than it has steps that take one.
        let least = patterns.iter().map(|shape| shape.iter().filter(|token| **token != Token::Many).count()).max();
        let hopeless = limit.zip(least).is_some_and(|(limit, least)| least >= limit);
        let mut absent: Vec<Shape<'a>> = Vec::new();
        while !hopeless && let Some(word) = one(space, &patterns, required, (refusals, &absent), limit, budget)? {
            let member = space.kind.member(word);
            let around = match &member {
                Member::Host(Host::Name(name)) => space.absent.iter().flat_map(|absent| absent.around(name)).collect(),
                _ => Vec::new(),
            };
            if around.is_empty() {
                best = Some(member);
                break;
            }
            budget.spend(around.len())?;
            absent.extend(around);
        }
        // The next choice of one pattern of each set.
        let Some(at) = (0..choice.len()).find(|at| choice[*at] + 1 < required[*at].include.len()) else { break };
        choice[at] += 1;
        choice[..at].fill(0);
    }
    Ok(best)
}

fn one<'a>(
    space: &Space<'a>,
    patterns: &[&[Token<'a>]],
    sets: &[&Compiled<'a>],
    (refusals, absent): (&[Refusal<'_, 'a>], &[Shape<'a>]),
    shorter_than: Option<usize>,
    budget: &mut Budget,
) -> Result<Option<Vec<Unit<'a>>>, Exhausted> {
    for (index, a) in patterns.iter().enumerate() {
        if patterns[index + 1..].iter().any(|b| plainly_apart(a, b)) {
            return Ok(None);
        }
    }
    let excepted = sets.iter().flat_map(|set| &set.exclude).filter(|_| !made(Mistake::ExceptIsKept));
    let refused = excepted.chain(absent).map(|shape| &shape[..]);
    let refused = refused.filter(|shape| !patterns.iter().any(|a| plainly_apart(a, shape))).collect();
    // What is apart from all that is required refuses nothing.
    let few = |refusal: &Refusal<'_, 'a>| match refusal {
        Refusal::Of { .. } => None,
        Refusal::All(sets) => {
            let mut trie = Trie::new();
            for (set, number) in sets.iter().zip(0..) {
                for shape in set.include.iter().filter(|shape| !patterns.iter().any(|a| plainly_apart(a, shape))) {
                    trie.insert(shape, number);
                }
            }
            Some(trie)
        }
    };
    let tries: Vec<_> = refusals.iter().map(few).collect();
    let forests = refusals.iter().zip(&tries).map(|(refusal, few)| match (refusal, few) {
        (Refusal::Of { index, lifting, lifted_by }, _) => Forest {
            trie: &index.trie,
            role: Box::new(|set| match lifted_by(set as usize) {
                None => question::Role::Ignored,
                Some(by) => {
                    let mut ways = index.sets[set as usize].escape();
                    ways.extend(by.into_iter().map(|set| lifting.sets[set].exception()));
                    question::Role::Refused(ways)
                }
            }),
        },
        (Refusal::All(sets), Some(trie)) => {
            Forest { trie, role: Box::new(|set| question::Role::Refused(sets[set as usize].escape())) }
        }
        (Refusal::All(_), None) => unreachable!("each list of sets has its trie"),
    });
    let forests = forests.collect();
    let origins = space.variables.iter().map(|name| Origin::Variable(name)).collect();
    let alphabet = space.kind.alphabet();
    question::Question { required: patterns.to_vec(), refused, forests, origins, alphabet, shorter_than }.find(budget)
}
