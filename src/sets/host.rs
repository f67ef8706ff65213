//! Host names and sets of them. Labels are compared in A-label form, lower case, the final dot dropped: one
//! canonicaliser, [`Name::parse`], for rules and requests.

mod absent;
mod canonical;
mod questions;
mod table;

use super::glob::Glob;
use super::words::{Origin, Shape, Token, Unit};
pub use absent::Absent;
pub use canonical::{NameError, readable};
use std::fmt;
use std::sync::Arc;
pub use table::{Builder, Repeated, Table};

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
    /// A list in a file.
    Table(Arc<Table>),
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
            Pattern::Any | Pattern::Table(_) => false,
            Pattern::Variable(_) => true,
            Pattern::Labels { below, labels } => {
                !below && labels.iter().all(|label| matches!(label, Label::Literal(_)))
            }
        }
    }

    /// Whether the pattern matches a name.
    pub fn contains(&self, name: &Name) -> bool {
        let (below, labels) = match self {
            Pattern::Labels { below, labels } => (below, labels),
            Pattern::Table(table) => return table.contains(name),
            Pattern::Any => return true,
            Pattern::Variable(_) => return false,
        };
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

    /// Labels from the right, as the tree of names grows; none where it is a list.
    fn shape(&self) -> Option<Shape<'_>> {
        Some(match self {
            Pattern::Table(_) => return None,
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
        })
    }

    /// The shape, or those of all entries of a list.
    fn shapes(&self) -> Vec<Shape<'_>> {
        match self {
            Pattern::Table(table) => (0..table.len()).map(|index| entry_shape(table.key(index))).collect(),
            _ => self.shape().into_iter().collect(),
        }
    }
}

/// An entry of a list as the search takes it.
fn entry_shape(key: &[u8]) -> Shape<'_> {
    let mut shape: Shape<'_> = table::shape(key).map(Token::Literal).collect();
    if table::is_below(key) {
        shape.extend([Token::One, Token::Many]);
    }
    shape
}

impl fmt::Display for Pattern {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Pattern::Any => f.write_str("*"),
            Pattern::Variable(name) => write!(f, "${name}"),
            Pattern::Table(table) => write!(f, "lines({:?})", table.file()),
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
    patterns.iter().flat_map(Pattern::shapes).collect()
}

/// Of some patterns what is named without a `*`.
pub(super) fn literal_shapes(patterns: &[Pattern]) -> Vec<Shape<'_>> {
    let literal = |pattern: &&Pattern| matches!(pattern, Pattern::Table(_)) || pattern.is_literal();
    let shapes = patterns.iter().filter(literal).flat_map(Pattern::shapes);
    shapes.filter(|shape| !shape.contains(&Token::Many)).collect()
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

#[cfg(test)]
mod tests;
