//! Patterns as dense automata of another hand (`regex-automata`), and a walk over several of them at once.
//!
//! A path, a host name or a variable is a text of units: `/` and a segment each, host labels from the right. A first unit
//! that is a variable of unknown place is [`ORIGIN`] and its letter. The meaning of a pattern is written down here once more,
//! as a regular expression; nothing of `sets` decides what it matches.

use super::Wrong;
use regex_automata::dfa::{Automaton, StartKind, dense};
use regex_automata::util::syntax;
use regex_automata::{Anchored, Input, MatchKind};
use sandbox_runtime::sets::glob::{Glob, Piece};
use sandbox_runtime::sets::{host, name, path};
use sandbox_runtime::vocabulary::Reach;
use std::cell::RefCell;
use std::collections::{HashMap, HashSet};
use std::fmt::Write as _;
use std::rc::Rc;

pub const ORIGIN: u8 = 1;

/// What any character of a file name is here: those that patterns of these tests name, and more than enough of others, so
/// that for whatever a name may hold there is one here that no pattern can tell from it.
const FILE: &str = r"[\x20-\x2e\x30-\x7e\u{80}-\u{7ff}]";
const LABEL: &str = "[a-z0-9_-]";
const NAME: &str = r"[\x20-\x3c\x3e-\x7e]";

/// Bytes of one automaton; more is too much for a test.
const SIZE: usize = 4 << 20;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    Paths,
    Hosts,
    Names,
}

impl Kind {
    fn char(self) -> &'static str {
        match self {
            Kind::Paths => FILE,
            Kind::Hosts => LABEL,
            Kind::Names => NAME,
        }
    }

    /// All there are, where some variables have a place.
    pub fn universe(self, variables: &[char]) -> String {
        match self {
            Kind::Paths => {
                let other = r"[\x20-\x2d\x30-\x7e\u{80}-\u{7ff}]";
                let segment = format!(r"(?:{other}{FILE}*|\.{other}{FILE}*|\.\.{FILE}+)");
                let origin = match variables {
                    [] => String::new(),
                    some => format!(r"(?:\x01[{}])?", some.iter().collect::<String>()),
                };
                format!("{origin}(?:/{segment})*")
            }
            Kind::Hosts => "(?:/[a-z0-9_](?:[a-z0-9_-]*[a-z0-9_])?)+".to_owned(),
            Kind::Names => format!("/{NAME}+"),
        }
    }

    /// Any one unit.
    fn unit(self) -> String {
        format!(r"(?:\x01[A-Z]|/{}+)", self.char())
    }
}

fn text(bytes: &[u8], regex: &mut String) {
    for char in std::str::from_utf8(bytes).unwrap().chars() {
        write!(regex, r"\x{{{:x}}}", u32::from(char)).unwrap();
    }
}

fn glob(glob: &Glob, kind: Kind, wrong: Option<Wrong>, regex: &mut String) {
    for piece in &*glob.0 {
        match piece {
            Piece::Text(bytes) => text(bytes, regex),
            Piece::AnyRun if wrong == Some(Wrong::StarCrossesSlash) => write!(regex, "(?:{}|/)*", kind.char()).unwrap(),
            Piece::AnyRun => write!(regex, "{}*", kind.char()).unwrap(),
            Piece::AnyChar => regex.push_str(kind.char()),
            Piece::Class { negated, ranges } => {
                let not = if *negated { "^" } else { "" };
                let ranges = ranges.iter().fold(String::new(), |mut all, (low, high)| {
                    write!(all, r"\x{{{:x}}}-\x{{{:x}}}", u32::from(*low), u32::from(*high)).unwrap();
                    all
                });
                write!(regex, "[{}&&[{not}{ranges}]]", kind.char()).unwrap();
            }
        }
    }
}

pub fn of_path(pattern: &path::Pattern, wrong: Option<Wrong>) -> String {
    let (mut regex, unit) = (String::new(), Kind::Paths.unit());
    match &pattern.start {
        path::Start::Root => {}
        path::Start::Variable(name) => write!(regex, r"\x01{name}").unwrap(),
        path::Start::Drive(_) => unreachable!("these policies are for Linux"),
    }
    for segment in &pattern.segments {
        match segment {
            path::Segment::AnyDepth if wrong == Some(Wrong::DeepIsNotEmpty) => write!(regex, "{unit}+").unwrap(),
            path::Segment::AnyDepth => write!(regex, "{unit}*").unwrap(),
            path::Segment::Literal(literal) => {
                regex.push('/');
                text(literal, &mut regex);
            }
            path::Segment::Glob(one) => {
                regex.push('/');
                glob(one, Kind::Paths, wrong, &mut regex);
            }
        }
    }
    match pattern.reach {
        Reach::Tree => write!(regex, "{unit}*").unwrap(),
        Reach::Exact => {}
        Reach::Below => write!(regex, "{unit}+").unwrap(),
    }
    regex
}

pub fn of_host(pattern: &host::Pattern) -> String {
    let unit = Kind::Hosts.unit();
    let host::Pattern::Labels { below, labels } = pattern else {
        assert_eq!(*pattern, host::Pattern::Any, "hosts have no variables here");
        return format!("{unit}+");
    };
    let mut regex = String::new();
    for label in labels.iter().rev() {
        regex.push('/');
        match label {
            host::Label::Literal(literal) => text(literal.as_bytes(), &mut regex),
            host::Label::Glob(one) => glob(one, Kind::Hosts, None, &mut regex),
        }
    }
    if *below {
        write!(regex, "{unit}+").unwrap();
    }
    regex
}

pub fn of_name(pattern: &name::Pattern) -> String {
    let mut regex = "/".to_owned();
    match pattern {
        name::Pattern::Literal(literal) => text(literal.as_bytes(), &mut regex),
        name::Pattern::Glob(one) => glob(one, Kind::Names, None, &mut regex),
    }
    regex
}

/// A complete, minimal automaton; it starts in state 0.
pub struct Table {
    class: [u8; 256],
    classes: usize,
    next: Vec<u32>,
    accepts: Vec<bool>,
    /// From which states nothing is accepted any more.
    hopeless: Vec<bool>,
}

impl Table {
    fn new(regex: &str) -> Self {
        let config = dense::Config::new()
            .start_kind(StartKind::Anchored)
            .match_kind(MatchKind::All)
            .minimize(true)
            .dfa_size_limit(Some(SIZE))
            .determinize_size_limit(Some(SIZE));
        let dfa = dense::Builder::new()
            .configure(config)
            .syntax(syntax::Config::new().unicode(true).utf8(false))
            .build(&format!(r"\A(?:{regex})\z"))
            .unwrap_or_else(|error| panic!("{regex}: {error}"));
        let bytes: Vec<u8> = dfa
            .byte_classes()
            .representatives(..=255)
            .filter_map(regex_automata::util::alphabet::Unit::as_u8)
            .collect();
        let class = std::array::from_fn(|byte| dfa.byte_classes().get(u8::try_from(byte).unwrap()));
        let start = dfa.start_state_forward(&Input::new("").anchored(Anchored::Yes)).unwrap();
        let (mut states, mut known) = (vec![start], HashMap::from([(start, 0_u32)]));
        let (mut next, mut accepts) = (Vec::new(), Vec::new());
        let mut at = 0;
        while let Some(state) = states.get(at).copied() {
            accepts.push(dfa.is_match_state(dfa.next_eoi_state(state)));
            for byte in &bytes {
                let to = dfa.next_state(state, *byte);
                let fresh = u32::try_from(states.len()).unwrap();
                next.push(*known.entry(to).or_insert_with(|| {
                    states.push(to);
                    fresh
                }));
            }
            at += 1;
        }
        let classes = bytes.len();
        let mut hopeless: Vec<bool> = accepts.iter().map(|accepts| !accepts).collect();
        loop {
            let saved: Vec<usize> = (0..states.len())
                .filter(|state| hopeless[*state])
                .filter(|state| next[state * classes..][..classes].iter().any(|to| !hopeless[*to as usize]))
                .collect();
            if saved.is_empty() {
                break;
            }
            for state in saved {
                hopeless[state] = false;
            }
        }
        Self { class, classes, next, accepts, hopeless }
    }

    fn step(&self, state: u32, byte: u8) -> u32 {
        self.next[state as usize * self.classes + usize::from(self.class[usize::from(byte)])]
    }

    pub fn accepts(&self, text: &[u8]) -> bool {
        self.accepts[text.iter().fold(0, |state, byte| self.step(state, *byte)) as usize]
    }
}

/// Every automaton made so far.
#[derive(Default)]
pub struct Automata {
    known: RefCell<HashMap<String, Rc<Table>>>,
}

impl Automata {
    pub fn of(&self, regex: &str) -> Rc<Table> {
        if let Some(known) = self.known.borrow().get(regex) {
            return known.clone();
        }
        let table = Rc::new(Table::new(regex));
        self.known.borrow_mut().insert(regex.to_owned(), table.clone());
        table
    }
}

/// A text, and of how many units it is.
#[derive(Debug, Clone)]
pub struct Found {
    pub text: Vec<u8>,
    pub units: usize,
}

/// More states of the product than a test walks.
#[derive(Debug)]
pub struct TooLarge;

const STATES: usize = 300_000;

/// A text of the universe with the fewest units that is wanted. `wanted` is given which of the automata accept it.
pub fn shortest(
    universe: &Table,
    tables: &[&Table],
    mut wanted: impl FnMut(&[bool]) -> bool,
) -> Result<Option<Found>, TooLarge> {
    let bytes = distinct(universe, tables);
    let start: Box<[u32]> = vec![0; tables.len() + 1].into();
    let mut seen: HashSet<Box<[u32]>> = HashSet::default();
    // Each state of the product, and how it was reached.
    let mut reached: Vec<(Box<[u32]>, usize, u8)> = vec![(start.clone(), 0, 0)];
    seen.insert(start);
    let (mut now, mut later, mut units) = (vec![0], Vec::new(), 0);
    let mut accepted = vec![false; tables.len()];
    let mut next = vec![0; tables.len() + 1].into_boxed_slice();
    loop {
        let Some(at) = now.pop() else {
            if later.is_empty() {
                return Ok(None);
            }
            std::mem::swap(&mut now, &mut later);
            units += 1;
            continue;
        };
        if universe.accepts[reached[at].0[0] as usize] {
            for (index, table) in tables.iter().enumerate() {
                accepted[index] = table.accepts[reached[at].0[index + 1] as usize];
            }
            if wanted(&accepted) {
                let (mut text, mut from) = (Vec::new(), at);
                while from != 0 {
                    text.push(reached[from].2);
                    from = reached[from].1;
                }
                text.reverse();
                return Ok(Some(Found { text, units }));
            }
        }
        for byte in &bytes {
            next[0] = universe.step(reached[at].0[0], *byte);
            if universe.hopeless[next[0] as usize] {
                continue;
            }
            for (index, table) in tables.iter().enumerate() {
                next[index + 1] = table.step(reached[at].0[index + 1], *byte);
            }
            if seen.contains(&next) {
                continue;
            }
            if reached.len() >= STATES {
                return Err(TooLarge);
            }
            seen.insert(next.clone());
            // A unit begins: no state is reached both so and within one, as the universe tells them apart.
            let queue = if matches!(*byte, b'/' | ORIGIN) { &mut later } else { &mut now };
            queue.push(reached.len());
            reached.push((next.clone(), at, *byte));
        }
    }
}

/// One byte of each kind that the automata tell apart, letters first.
fn distinct(universe: &Table, tables: &[&Table]) -> Vec<u8> {
    let mut seen: Vec<Vec<u8>> = Vec::new();
    let mut bytes = Vec::new();
    for byte in (b'a'..=b'z').chain(0..=255) {
        let class = |table: &Table| table.class[usize::from(byte)];
        let signature: Vec<u8> =
            std::iter::once(class(universe)).chain(tables.iter().map(|table| class(table))).collect();
        if !seen.contains(&signature) {
            seen.push(signature);
            bytes.push(byte);
        }
    }
    bytes
}
