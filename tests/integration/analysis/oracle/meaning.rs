//! The meaning of a policy as a formula over which patterns accept a text, and the questions that are asked of it.

use super::Wrong;
use super::automata::{self, Automata, Found, Kind, ORIGIN, Table, TooLarge};
use crate::analysis::generated::Question;
use sandbox_runtime::ir::{Access, Policy, Subject, special};
use sandbox_runtime::sets::host::{self, Name};
use sandbox_runtime::sets::path::{AbsPath, Pattern, Start};
use sandbox_runtime::sets::peer::{Endpoint, PeerSet, Protocol};
use sandbox_runtime::vocabulary::{Effect, Verb};
use std::cell::{Cell, RefCell};
use std::collections::HashMap;
use std::net::IpAddr;
use std::rc::Rc;

/// Which texts, and through which ports and protocols.
#[derive(Clone, PartialEq, Eq, Hash)]
struct Set {
    include: Vec<usize>,
    exclude: Vec<usize>,
    /// Those of `include` that name one host.
    literal: Vec<usize>,
    /// One for each port that rules tell apart, by TCP and by UDP; always one where there are none.
    cells: Vec<bool>,
    variables: Vec<char>,
}

impl Set {
    fn has(&self, accepted: &[bool]) -> bool {
        self.include.iter().any(|one| accepted[*one]) && !self.exclude.iter().any(|one| accepted[*one])
    }

    fn names(&self, accepted: &[bool]) -> bool {
        self.has(accepted) && self.literal.iter().any(|one| accepted[*one])
    }
}

struct Rule {
    effect: Effect,
    verb: Verb,
    set: Set,
}

/// One policy.
struct Side {
    rules: Vec<Rule>,
    /// Which allow is more specific than which deny.
    opens: HashMap<(usize, usize), bool>,
    open: bool,
    wrong: Option<Wrong>,
}

/// Two policies and a set, ready to be asked.
pub struct Oracle {
    kind: Kind,
    verb: Verb,
    tables: Vec<Rc<Table>>,
    ports: Vec<u16>,
    old: Side,
    new: Side,
    within: Set,
    universe: [Rc<Table>; 2],
    pub opened: bool,
}

/// What was found, and in which cell and at which address it is so.
pub struct Answer {
    pub units: usize,
    pub access: Access,
}

/// The automata of some policies as they are met.
struct Maker<'m> {
    automata: &'m Automata,
    wrong: Option<Wrong>,
    tables: RefCell<Vec<Rc<Table>>>,
    known: RefCell<HashMap<String, usize>>,
    ports: Vec<u16>,
}

impl Maker<'_> {
    fn table(&self, regex: String) -> usize {
        let mut tables = self.tables.borrow_mut();
        *self.known.borrow_mut().entry(regex).or_insert_with_key(|regex| {
            tables.push(self.automata.of(regex));
            tables.len() - 1
        })
    }

    fn set(&self, subject: &Subject) -> Set {
        let paths =
            |all: &[Pattern]| all.iter().map(|one| self.table(automata::of_path(one, self.wrong))).collect::<Vec<_>>();
        let hosts =
            |all: &[host::Pattern]| all.iter().map(|one| self.table(automata::of_host(one))).collect::<Vec<_>>();
        let mut set = Set {
            include: Vec::new(),
            exclude: Vec::new(),
            literal: Vec::new(),
            cells: vec![true],
            variables: Vec::new(),
        };
        match subject {
            Subject::Paths(own) => {
                (set.include, set.exclude) = (paths(&own.include), paths(&own.exclude));
                let starts = own.include.iter().chain(&own.exclude).filter_map(|pattern| match &pattern.start {
                    Start::Variable(name) => name.chars().next(),
                    _ => None,
                });
                set.variables = starts.collect();
            }
            Subject::Peers(PeerSet { endpoint: Endpoint::Hosts(own), tcp, udp, ports }) => {
                (set.include, set.exclude) = (hosts(&own.include), hosts(&own.exclude));
                let literal: Vec<_> = own.include.iter().filter(|one| one.is_literal()).cloned().collect();
                set.literal = hosts(&literal);
                set.cells =
                    self.ports.iter().flat_map(|port| [*tcp, *udp].map(|on| on && ports.contains(*port))).collect();
            }
            Subject::Names(own) => {
                let all = |all: &[sandbox_runtime::sets::name::Pattern]| {
                    all.iter().map(|one| self.table(automata::of_name(one))).collect::<Vec<_>>()
                };
                (set.include, set.exclude) = (all(&own.include), all(&own.exclude));
            }
            Subject::Peers(_) => unreachable!("addresses are not the oracle's"),
        }
        set
    }

    /// Whether every member of one set is in another.
    fn inside(&self, kind: Kind, a: &Set, d: &Set) -> Result<bool, TooLarge> {
        let mut used: Vec<usize> =
            [&a.include, &a.exclude, &d.include, &d.exclude].into_iter().flatten().copied().collect();
        used.sort_unstable();
        used.dedup();
        let mut variables = [&a.variables[..], &d.variables].concat();
        variables.sort_unstable();
        variables.dedup();
        let all = self.tables.borrow();
        let tables: Vec<&Table> = used.iter().map(|one| &*all[*one]).collect();
        let mut accepted = vec![false; all.len()];
        let cells_inside = a.cells.iter().zip(&d.cells).all(|(a, d)| !a || *d);
        let nothing = !a.cells.contains(&true);
        let universe = self.automata.of(&kind.universe(&variables));
        let outside = automata::shortest(&universe, &tables, |word| {
            for (at, accepts) in used.iter().zip(word) {
                accepted[*at] = *accepts;
            }
            a.has(&accepted) && !(cells_inside && d.has(&accepted))
        })?;
        Ok(nothing || outside.is_none())
    }
}

impl Oracle {
    pub fn new(
        automata: &Automata,
        wrong: Option<Wrong>,
        verb: Verb,
        policies: [&Policy; 2],
        within: &Subject,
    ) -> Result<Self, TooLarge> {
        let kind = match verb {
            Verb::Connect => Kind::Hosts,
            Verb::Env => Kind::Names,
            _ => Kind::Paths,
        };
        let subjects = || policies.iter().flat_map(|policy| &policy.rules).map(|rule| &rule.subject).chain([within]);
        let mut ports = vec![1];
        for subject in subjects() {
            if let Subject::Peers(set) = subject {
                ports.extend(
                    set.ports.ranges().flat_map(|range| [Some(*range.start()), range.end().checked_add(1)]).flatten(),
                );
            }
        }
        ports.sort_unstable();
        ports.dedup();
        let (tables, known) = (RefCell::default(), RefCell::default());
        let maker = Maker { automata, wrong, tables, known, ports };
        let relevant = |own: Verb| own == verb || own == Verb::Read && matches!(verb, Verb::Write | Verb::Exec);
        let opened = Cell::new(false);
        let side = |policy: &Policy| {
            let rules = policy.rules.iter().filter(|rule| relevant(rule.verb));
            let rules: Vec<_> = rules
                .map(|rule| Rule { effect: rule.effect, verb: rule.verb, set: maker.set(&rule.subject) })
                .collect();
            let mut opens = HashMap::new();
            for (a, allow) in rules.iter().enumerate().filter(|(_, rule)| rule.effect == Effect::Allow) {
                let denies = rules.iter().enumerate().filter(|(_, rule)| rule.effect == Effect::Deny);
                for (d, deny) in denies.filter(|(_, deny)| deny.verb == allow.verb) {
                    let inside = maker.inside(kind, &allow.set, &deny.set)?;
                    let equal = inside
                        && wrong != Some(Wrong::EqualIsMoreSpecific)
                        && maker.inside(kind, &deny.set, &allow.set)?;
                    opens.insert((a, d), inside && !equal);
                    opened.set(opened.get() || inside && !equal);
                }
            }
            let open = match verb {
                Verb::Env => policy.default_env.as_ref().is_none_or(|setting| setting.value == Effect::Allow),
                _ => policy.default_read.value == Effect::Allow,
            };
            Ok(Side { rules, opens, open, wrong })
        };
        let (old, new) = (side(policies[0])?, side(policies[1])?);
        let within = maker.set(within);
        // A variable has a place where anything of the question names it: rules of other verbs too.
        let named = |policies: &[&Policy]| {
            let rules = policies.iter().flat_map(|policy| &policy.rules);
            let mut variables: Vec<char> = rules
                .filter(|rule| kind == Kind::Paths && matches!(rule.subject, Subject::Paths(_)))
                .flat_map(|rule| maker.set(&rule.subject).variables)
                .collect();
            variables.sort_unstable();
            variables.dedup();
            variables
        };
        let mut asked = [named(&policies[1..]), within.variables.clone()].concat();
        asked.sort_unstable();
        asked.dedup();
        let universe = [asked, named(&policies)].map(|variables| automata.of(&kind.universe(&variables)));
        let Maker { tables, ports, .. } = maker;
        let tables = tables.into_inner();
        Ok(Self { kind, verb, tables, ports, old, new, within, universe, opened: opened.get() })
    }

    /// An access with the fewest segments or labels that is an answer.
    pub fn ask(&self, question: Question) -> Result<Option<Answer>, TooLarge> {
        let used = self.used(question);
        let tables: Vec<&Table> = used.iter().map(|one| &*self.tables[*one]).collect();
        let mut accepted = vec![false; self.tables.len()];
        let mut place = None;
        let found = automata::shortest(self.universe(question), &tables, |word| {
            for (at, accepts) in used.iter().zip(word) {
                accepted[*at] = *accepts;
            }
            place = self.places().find(|place| self.is_answer(question, &accepted, *place));
            place.is_some()
        })?;
        Ok(found.zip(place).map(|(Found { text, units }, place)| Answer { units, access: self.access(&text, place) }))
    }

    /// Whether an access is an answer.
    pub fn confirms(&self, question: Question, access: &Access) -> bool {
        let Some((text, place)) = self.text(access) else { return false };
        let accepted: Vec<bool> = self.tables.iter().map(|table| table.accepts(&text)).collect();
        self.universe(question).accepts(&text) && self.is_answer(question, &accepted, place)
    }

    fn universe(&self, question: Question) -> &Table {
        &self.universe[usize::from(question == Question::Widened)]
    }

    /// The automata that bear on a question.
    fn used(&self, question: Question) -> Vec<usize> {
        let sides: &[&Side] = if question == Question::Widened { &[&self.old, &self.new] } else { &[&self.new] };
        let sets = sides.iter().flat_map(|side| side.rules.iter().map(|rule| &rule.set));
        let sets = sets.chain((question != Question::Widened).then_some(&self.within));
        let mut used: Vec<usize> = sets.flat_map(|set| [&set.include, &set.exclude]).flatten().copied().collect();
        used.sort_unstable();
        used.dedup();
        used
    }

    /// Each cell, at a public and at a private address; of anything but connections there is one.
    fn places(&self) -> impl Iterator<Item = Place> + use<> {
        let cells = if self.kind == Kind::Hosts { self.ports.len() * 2 } else { 1 };
        let hosts = self.kind == Kind::Hosts;
        (0..cells).flat_map(move |cell| {
            [false, true]
                .into_iter()
                .filter(move |private| hosts || !private)
                .map(move |private| Place { cell, private })
        })
    }

    fn is_answer(&self, question: Question, accepted: &[bool], place: Place) -> bool {
        let asked = || !place.private && self.within.cells[place.cell] && self.within.has(accepted);
        let permits = |side: &Side| side.permits(self.verb, accepted, place);
        match question {
            // A proof about a name speaks of public addresses.
            Question::Permitted => asked() && permits(&self.new),
            Question::Denied => asked() && !permits(&self.new),
            Question::Widened => permits(&self.new) && !permits(&self.old),
        }
    }

    fn access(&self, text: &[u8], place: Place) -> Access {
        let text = std::str::from_utf8(text).unwrap();
        let units = || text.split('/').skip(1);
        let path = || {
            let start = match text.strip_prefix(char::from(ORIGIN)) {
                Some(rest) => AbsPath::variable(&rest[..1]),
                None => AbsPath::root(),
            };
            units().fold(start, |path, segment| path.join(segment))
        };
        match self.verb {
            Verb::Read => Access::Read(path()),
            Verb::Write => Access::Write(path()),
            Verb::Exec => Access::Exec(path()),
            Verb::Env => Access::Env(text[1..].to_owned()),
            _ => {
                let labels: Vec<&str> = units().collect();
                let name: Vec<&str> = labels.into_iter().rev().collect();
                Access::Connect {
                    name: Some(Name::parse(&name.join(".")).unwrap()),
                    address: if place.private { IpAddr::from([10, 0, 0, 1]) } else { special::NOMINAL },
                    port: self.ports[place.cell / 2],
                    protocol: if place.cell.is_multiple_of(2) { Protocol::Tcp } else { Protocol::Udp },
                }
            }
        }
    }

    fn text(&self, access: &Access) -> Option<(Vec<u8>, Place)> {
        let here = Place { cell: 0, private: false };
        Some(match access {
            Access::Read(path) | Access::Write(path) | Access::Exec(path) => {
                let mut text = match &path.start {
                    Start::Variable(name) => [&[ORIGIN], name.as_bytes()].concat(),
                    _ => Vec::new(),
                };
                for segment in &path.segments {
                    text.push(b'/');
                    text.extend_from_slice(segment);
                }
                (text, here)
            }
            Access::Env(name) => (format!("/{name}").into_bytes(), here),
            Access::Connect { name: Some(name), address, port, protocol } => {
                let text = name.labels().rev().fold(String::new(), |text, label| text + "/" + label);
                let cell = self.ports.partition_point(|least| least <= port) - 1;
                let private = match special::class(*address, &[]) {
                    special::Class::Public => false,
                    special::Class::Private => true,
                    special::Class::Special => return None,
                };
                (text.into_bytes(), Place { cell: cell * 2 + usize::from(*protocol == Protocol::Udp), private })
            }
            _ => return None,
        })
    }
}

/// Where an access is besides its text.
#[derive(Clone, Copy)]
struct Place {
    cell: usize,
    private: bool,
}

impl Side {
    fn permits(&self, verb: Verb, accepted: &[bool], place: Place) -> bool {
        let step = |verb| self.step(verb, accepted, place.cell);
        // A path whose read a rule denies is denied for write and exec too.
        let read_denied = || step(Verb::Read) == Some(false) && self.wrong != Some(Wrong::ReadDenialIsForgotten);
        match verb {
            Verb::Write => step(verb) == Some(true) && !read_denied(),
            Verb::Exec => {
                let read = step(Verb::Read);
                step(verb).unwrap_or(read.unwrap_or(self.open)) && !read_denied()
            }
            Verb::Connect => {
                let named = || {
                    let covering = self.rules.iter().filter(|rule| rule.set.cells[place.cell]);
                    covering.filter(|rule| rule.effect == Effect::Allow).any(|rule| rule.set.names(accepted))
                };
                step(verb) == Some(true) && (!place.private || named())
            }
            _ => step(verb).unwrap_or(self.open),
        }
    }

    /// What the rules of a verb say, where one matches.
    fn step(&self, verb: Verb, accepted: &[bool], cell: usize) -> Option<bool> {
        let matching = |effect| {
            let rules =
                self.rules.iter().enumerate().filter(move |(_, rule)| rule.verb == verb && rule.effect == effect);
            rules.filter(move |(_, rule)| rule.set.cells[cell] && rule.set.has(accepted)).map(|(at, _)| at)
        };
        if matching(Effect::Forbid).next().is_some() {
            return Some(false);
        }
        let opened = |d: usize| {
            self.wrong != Some(Wrong::OpenersAreForgotten) && matching(Effect::Allow).any(|a| self.opens[&(a, d)])
        };
        if !matching(Effect::Deny).all(opened) {
            return Some(false);
        }
        matching(Effect::Allow).next().map(|_| true)
    }
}
