//! Host names and sets of them. Labels are compared in A-label form, lower case, the final dot dropped: one
//! canonicaliser, [`Name::parse`], for rules and requests.

mod canonical;

use super::glob::Glob;
use super::words::{self, Origin, Shape, Token, Unit, letters::Alphabet};
pub use canonical::{NameError, readable};
use std::fmt;

/// A canonical host name (RFC 1034 lengths, RFC 5891 A-labels, letters, digits, `-` and `_` only); never an address.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Name(String);

/// One host pattern.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, serde::Serialize, serde::Deserialize)]
pub enum Pattern {
    /// `*`: every name.
    Any,
    Labels {
        /// Every name below, at any depth, not the apex.
        below: bool,
        labels: Vec<Label>,
    },
    /// A variable that is not bound: apart from every literal name and every other variable, inside `*`.
    Variable(String),
}

#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, serde::Serialize, serde::Deserialize)]
pub enum Label {
    Literal(String),
    /// Over the characters of one label.
    Glob(Glob),
}

/// The union of `include` less the union of `exclude`.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Default, serde::Serialize, serde::Deserialize)]
pub struct HostSet {
    pub include: Vec<Pattern>,
    pub exclude: Vec<Pattern>,
}

/// One member of a set: a witness.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Host {
    Name(Name),
    /// Whatever name an unbound variable stands for.
    Variable(String),
}

impl Name {
    /// Brings a host name into canonical form.
    ///
    /// # Errors
    /// When it is not a host name: another character, a label that is empty or too long, or an address in any spelling.
    pub fn parse(text: &str) -> Result<Self, NameError> {
        canonical::name(text).map(Self)
    }

    /// The canonical text.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// The labels, the leftmost first.
    pub fn labels(&self) -> impl DoubleEndedIterator<Item = &str> {
        self.0.split('.')
    }

    /// Whether the name is `localhost` or below it: always this host's loopback (RFC 6761 section 6.3).
    pub fn is_localhost(&self) -> bool {
        self.labels().next_back() == Some("localhost")
    }
}

impl fmt::Display for Name {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl fmt::Display for Host {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Host::Name(name) => write!(f, "{name}"),
            Host::Variable(name) => write!(f, "${name}"),
        }
    }
}

impl Pattern {
    /// Reads `example.com`, `*.example.com`, `api-*.example.com` or `*`.
    ///
    /// # Errors
    /// As [`Name::parse`], and where a `*` stands that may not.
    pub fn parse(text: &str) -> Result<Self, NameError> {
        canonical::pattern(text)
    }

    /// The pattern of one name.
    pub fn literal(name: &Name) -> Self {
        let labels = name.labels().map(|label| Label::Literal(label.to_owned())).collect();
        Pattern::Labels { below: false, labels }
    }

    /// Whether it names one host, without a `*`.
    pub fn is_literal(&self) -> bool {
        match self {
            Pattern::Any => false,
            Pattern::Variable(_) => true,
            Pattern::Labels { below, labels } => {
                !below && labels.iter().all(|label| matches!(label, Label::Literal(_)))
            }
        }
    }

    /// Whether the pattern matches a name.
    pub fn contains(&self, name: &Name) -> bool {
        let Pattern::Labels { below, labels } = self else { return *self == Pattern::Any };
        let mut given = name.labels().rev();
        for label in labels.iter().rev() {
            let taken = given.next().is_some_and(|own| match label {
                Label::Literal(literal) => literal == own,
                Label::Glob(glob) => glob.matches(own.as_bytes()),
            });
            if !taken {
                return false;
            }
        }
        given.next().is_some() == *below
    }

    /// Labels from the right, as the tree of names grows.
    pub(super) fn shape(&self) -> Shape<'_> {
        match self {
            Pattern::Any => vec![Token::One, Token::Many],
            Pattern::Variable(name) => vec![Token::Origin(Origin::Variable(name))],
            Pattern::Labels { below, labels } => {
                let mut shape: Shape<'_> = labels
                    .iter()
                    .rev()
                    .map(|label| match label {
                        Label::Literal(literal) => Token::Literal(literal.as_bytes()),
                        Label::Glob(glob) => Token::Glob(glob),
                    })
                    .collect();
                if *below {
                    shape.extend([Token::One, Token::Many]);
                }
                shape
            }
        }
    }
}

impl fmt::Display for Pattern {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Pattern::Any => f.write_str("*"),
            Pattern::Variable(name) => write!(f, "${name}"),
            Pattern::Labels { below, labels } => {
                f.write_str(if *below { "*." } else { "" })?;
                for (index, label) in labels.iter().enumerate() {
                    f.write_str(if index > 0 { "." } else { "" })?;
                    match label {
                        Label::Literal(literal) => f.write_str(literal)?,
                        Label::Glob(glob) => write!(f, "{glob}")?,
                    }
                }
                Ok(())
            }
        }
    }
}

impl From<Pattern> for HostSet {
    fn from(pattern: Pattern) -> Self {
        Self { include: vec![pattern], exclude: Vec::new() }
    }
}

pub(super) fn shapes(patterns: &[Pattern]) -> Vec<Shape<'_>> {
    patterns.iter().map(Pattern::shape).collect()
}

pub(super) fn units(host: &Host) -> Vec<Unit<'_>> {
    match host {
        Host::Name(name) => name.labels().rev().map(|label| Unit::Segment(label.as_bytes().to_vec())).collect(),
        Host::Variable(name) => vec![Unit::Origin(Origin::Variable(name))],
    }
}

pub(super) fn from_units(units: Vec<Unit<'_>>) -> Host {
    let mut labels = Vec::new();
    for unit in units.into_iter().rev() {
        match unit {
            Unit::Origin(Origin::Variable(name)) => return Host::Variable(name.to_owned()),
            Unit::Origin(Origin::Drive(_)) => {}
            Unit::Segment(label) => labels.push(String::from_utf8_lossy(&label).into_owned()),
        }
    }
    Host::Name(Name(labels.join(".")))
}

fn shorter(best: Option<Host>, next: Option<Host>) -> Option<Host> {
    let size = |host: &Host| match host {
        Host::Name(name) => (name.labels().count(), name.0.len()),
        Host::Variable(name) => (1, name.len()),
    };
    match (best, next) {
        (Some(best), Some(next)) => Some(if size(&next) < size(&best) { next } else { best }),
        (best, next) => best.or(next),
    }
}

impl HostSet {
    /// Whether a name is in the set.
    pub fn contains(&self, name: &Name) -> bool {
        self.include.iter().any(|pattern| pattern.contains(name))
            && !self.exclude.iter().any(|pattern| pattern.contains(name))
    }

    /// Whether a name is in the set by a pattern that has no `*`.
    pub fn names(&self, name: &Name) -> bool {
        self.contains(name) && self.include.iter().any(|pattern| pattern.is_literal() && pattern.contains(name))
    }

    /// Whether every name in this set is in `other`. Lengths of labels and names are not looked at.
    ///
    /// # Errors
    /// A name with the fewest labels that is not.
    pub fn is_subset(&self, other: &Self) -> Result<(), Host> {
        let (own_less, more, less) = (shapes(&self.exclude), shapes(&other.include), shapes(&other.exclude));
        let mut best = None;
        for shape in &shapes(&self.include) {
            let refused: Vec<_> = own_less.iter().chain(&more).collect();
            best = shorter(best, words::find(&[shape], &refused, Alphabet::Label).map(from_units));
            let refused: Vec<_> = own_less.iter().collect();
            for gone in &less {
                best = shorter(best, words::find(&[shape, gone], &refused, Alphabet::Label).map(from_units));
            }
        }
        best.map_or(Ok(()), Err)
    }

    /// Whether this set is inside `other` and not equal to it.
    pub fn is_strictly_inside(&self, other: &Self) -> bool {
        self.is_subset(other).is_ok() && other.is_subset(self).is_err()
    }

    /// A shortest name in both sets.
    pub fn overlap(&self, other: &Self) -> Option<Host> {
        let less = [shapes(&self.exclude), shapes(&other.exclude)].concat();
        let refused: Vec<_> = less.iter().collect();
        let mut best = None;
        for own in &shapes(&self.include) {
            for theirs in &shapes(&other.include) {
                best = shorter(best, words::find(&[own, theirs], &refused, Alphabet::Label).map(from_units));
            }
        }
        best
    }

    /// A shortest name in the set; `None` when there is none.
    pub fn shortest(&self) -> Option<Host> {
        self.is_subset(&Self::default()).err()
    }

    /// Whether no name is in the set.
    pub fn is_empty(&self) -> bool {
        self.shortest().is_none()
    }
}

#[cfg(test)]
mod tests;
