//! Policies with patterns that no small universe tells apart: runs within names, classes, characters of two bytes, several
//! `**`, two variables. All patterns of a case come from one stem, so that they meet and nest.

use crate::semantics::brute::PORTS;
use proptest::prelude::*;
use sandbox_runtime::ir::{Origin, Policy, Rule, Setting, Subject, Unset};
use sandbox_runtime::sets::glob::{Glob, Piece};
use sandbox_runtime::sets::host::{self, HostSet};
use sandbox_runtime::sets::name::{self, NameSet};
use sandbox_runtime::sets::path::{PathSet, Pattern, Segment, Start};
use sandbox_runtime::sets::peer::{Endpoint, PeerSet};
use sandbox_runtime::sets::port::PortSet;
use sandbox_runtime::source::{Sources, Span};
use sandbox_runtime::vocabulary::{Effect, Reach, System, Verb};

const FILES: [&str; 7] = ["a", "ab", "aba", "é", "aé", ".a", "a.b"];
const LABELS: [&str; 5] = ["a", "ab", "aba", "a-b", "b"];

/// How a segment of the stem stands in a pattern.
#[derive(Debug, Clone, Copy)]
enum Step {
    Same,
    Star,
    Head,
    Tail,
    Ends,
    Inside,
    Question,
    Class { negated: bool },
    Deep,
    Other(u8),
}

#[derive(Debug, Clone)]
struct Shape {
    variable: Option<bool>,
    /// How much of the stem.
    length: usize,
    steps: Vec<Step>,
    /// A `**` before this segment.
    deep: Option<usize>,
    reach: Reach,
}

#[derive(Debug, Clone)]
struct Line {
    effect: Effect,
    other_verb: bool,
    shape: Shape,
    second: Option<Shape>,
    except: Option<Shape>,
    ports: usize,
    protocols: (bool, bool),
}

#[derive(Debug, Clone)]
pub struct Draft {
    pub verb: Verb,
    stem: Vec<u8>,
    lines: Vec<Line>,
    within: Line,
    /// Which policy has which line: 0 only the new one, 1 only the old one, else both.
    whose: Vec<u8>,
    open: (bool, bool),
}

fn shape() -> impl Strategy<Value = Shape> {
    let step = prop_oneof![
        8 => Just(Step::Same),
        2 => Just(Step::Star),
        2 => Just(Step::Head),
        2 => Just(Step::Tail),
        2 => Just(Step::Ends),
        1 => Just(Step::Inside),
        1 => Just(Step::Question),
        1 => any::<bool>().prop_map(|negated| Step::Class { negated }),
        2 => Just(Step::Deep),
        1 => any::<u8>().prop_map(Step::Other),
    ];
    let reach = prop_oneof![4 => Just(Reach::Tree), 1 => Just(Reach::Exact), 1 => Just(Reach::Below)];
    let variable = prop::option::weighted(0.15, any::<bool>());
    let deep = prop::option::weighted(0.2, 0..3_usize);
    let shape = (variable, 0..5_usize, prop::collection::vec(step, 4), deep, reach);
    shape.prop_map(|(variable, length, steps, deep, reach)| Shape { variable, length, steps, deep, reach })
}

fn line() -> impl Strategy<Value = Line> {
    let effect = prop_oneof![10 => Just(Effect::Allow), 7 => Just(Effect::Deny), 1 => Just(Effect::Forbid)];
    let protocols = prop_oneof![4 => Just((true, false)), 2 => Just((true, true)), 1 => Just((false, true))];
    let more = (prop::option::weighted(0.1, shape()), prop::option::weighted(0.25, shape()));
    let line = (effect, prop::bool::weighted(0.25), shape(), more, 0..PORTS.len(), protocols);
    line.prop_map(|(effect, other_verb, shape, (second, except), ports, protocols)| Line {
        effect,
        other_verb,
        shape,
        second,
        except,
        ports,
        protocols,
    })
}

pub fn drafts() -> impl Strategy<Value = Draft> {
    let verb = prop_oneof![
        4 => Just(Verb::Read),
        2 => Just(Verb::Write),
        2 => Just(Verb::Exec),
        3 => Just(Verb::Connect),
        1 => Just(Verb::Env),
    ];
    let lines = prop::collection::vec(line(), 1..6);
    let stem = prop::collection::vec(any::<u8>(), 4);
    let whose = prop::collection::vec(0..5_u8, 6);
    (verb, stem, lines, line(), whose, (any::<bool>(), any::<bool>()))
        .prop_map(|(verb, stem, lines, within, whose, open)| Draft { verb, stem, lines, within, whose, open })
}

/// What stands for a name of the stem.
enum Written {
    Deep,
    Literal(String),
    Glob(Glob),
}

fn written(step: Step, stem: u8, names: &[&str]) -> Written {
    let name = names[usize::from(stem) % names.len()];
    let chars: Vec<char> = name.chars().collect();
    let text = |chars: &[char]| Piece::Text(chars.iter().collect::<String>().into_bytes());
    let (first, last) = (&chars[..1], &chars[chars.len() - 1..]);
    Written::Glob(Glob::from(match step {
        Step::Deep => return Written::Deep,
        Step::Same => return Written::Literal(name.to_owned()),
        Step::Other(other) => return Written::Literal(names[usize::from(other) % names.len()].to_owned()),
        Step::Star => vec![Piece::AnyRun],
        Step::Head => vec![text(first), Piece::AnyRun],
        Step::Tail => vec![Piece::AnyRun, text(last)],
        Step::Ends => vec![text(first), Piece::AnyRun, text(last)],
        Step::Inside => vec![Piece::AnyRun, text(last), Piece::AnyRun, text(first), Piece::AnyRun],
        Step::Question => chars.iter().map(|_| Piece::AnyChar).collect(),
        Step::Class { negated } => vec![Piece::Class { negated, ranges: vec![('a', 'b'), ('é', 'é')] }, Piece::AnyRun],
    }))
}

impl Draft {
    /// The old policy, the new one, and the set that is asked about.
    pub fn build(&self) -> [Policy; 2] {
        [0, 1].map(|skip| {
            let lines = self.lines.iter().zip(&self.whose).filter(|(_, who)| **who != skip);
            self.policy(lines.map(|(line, _)| line), if skip == 0 { self.open.0 } else { self.open.1 })
        })
    }

    pub fn within(&self) -> Subject {
        self.subject(&self.within)
    }

    fn policy<'l>(&self, lines: impl Iterator<Item = &'l Line>, open: bool) -> Policy {
        let span = Span::new(Sources::default().add("generated", ""), 0..0);
        let default = || Setting { value: if open { Effect::Allow } else { Effect::Deny }, span };
        let mut policy = Policy::new(System::Linux, default());
        policy.default_env = Some(default());
        let other = match self.verb {
            Verb::Read => Verb::Write,
            Verb::Connect | Verb::Env => self.verb,
            _ => Verb::Read,
        };
        policy.rules.extend(lines.map(|line| Rule {
            effect: line.effect,
            verb: if line.other_verb { other } else { self.verb },
            subject: self.subject(line),
            because: None,
            unset: Unset::Refuse,
            span,
            origin: Origin::Given,
        }));
        policy
    }

    fn subject(&self, line: &Line) -> Subject {
        let include = || std::iter::once(&line.shape).chain(&line.second);
        let exclude = || line.except.iter();
        match self.verb {
            Verb::Connect => {
                let hosts = HostSet {
                    include: include().map(|shape| self.host(shape)).collect(),
                    exclude: exclude().map(|shape| self.host(shape)).collect(),
                };
                let (tcp, udp) = line.protocols;
                let ports = PortSet::from_ranges(PORTS[line.ports].iter().map(|(low, high)| *low..=*high));
                Subject::Peers(PeerSet { endpoint: Endpoint::Hosts(hosts), tcp, udp, ports })
            }
            Verb::Env => Subject::Names(NameSet {
                include: include().map(|shape| self.name(shape)).collect(),
                exclude: exclude().map(|shape| self.name(shape)).collect(),
            }),
            _ => Subject::Paths(PathSet {
                include: include().map(|shape| self.path(shape)).collect(),
                exclude: exclude().map(|shape| self.path(shape)).collect(),
            }),
        }
    }

    fn path(&self, shape: &Shape) -> Pattern {
        let mut segments = Vec::new();
        for (index, (stem, step)) in self.stem.iter().zip(&shape.steps).take(shape.length).enumerate() {
            if shape.deep == Some(index) {
                segments.push(Segment::AnyDepth);
            }
            let deep = segments.iter().filter(|segment| **segment == Segment::AnyDepth).count();
            segments.push(match written(*step, *stem, &FILES) {
                Written::Deep if deep < 3 => Segment::AnyDepth,
                Written::Deep => Segment::Literal("a".into()),
                Written::Literal(literal) => Segment::Literal(literal.as_str().into()),
                Written::Glob(glob) => Segment::Glob(glob),
            });
        }
        let start = match shape.variable {
            Some(first) => Start::Variable(if first { "V" } else { "W" }.into()),
            None => Start::Root,
        };
        Pattern { start, segments, reach: shape.reach }
    }

    fn host(&self, shape: &Shape) -> host::Pattern {
        if shape.length == 0 {
            return host::Pattern::Any;
        }
        // Only within a label: a whole one is `*.`, which `below` says.
        let label = |(stem, step): (&u8, &Step)| match written(*step, *stem, &LABELS) {
            Written::Literal(literal) => host::Label::Literal(literal),
            Written::Glob(glob) if matches!(step, Step::Head | Step::Tail | Step::Ends | Step::Inside) => {
                host::Label::Glob(glob)
            }
            Written::Deep | Written::Glob(_) => host::Label::Literal("b".into()),
        };
        let labels = self.stem.iter().zip(&shape.steps).take(shape.length.min(3)).map(label);
        let mut labels: Vec<_> = labels.collect();
        labels.reverse();
        host::Pattern::Labels { below: shape.reach != Reach::Exact && shape.deep.is_some(), labels }
    }

    fn name(&self, shape: &Shape) -> name::Pattern {
        match written(shape.steps[0], self.stem[0], &["A", "AB", "ABA", "A_B"]) {
            Written::Literal(literal) => name::Pattern::Literal(literal),
            Written::Glob(Glob(pieces))
                if !pieces.iter().any(|piece| matches!(piece, Piece::Class { .. } | Piece::AnyChar)) =>
            {
                name::Pattern::Glob(Glob(pieces))
            }
            Written::Glob(_) | Written::Deep => name::Pattern::Glob(Glob::any()),
        }
    }
}
