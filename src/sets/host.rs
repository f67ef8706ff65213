//! Host names and sets of them. Labels are compared in A-label form, lower case, the final dot dropped: one
//! canonicaliser, [`Name::parse`], for rules and requests.

use super::glob::Glob;

/// A canonical host name (RFC 1034 lengths, RFC 5891 A-labels, letters, digits, `-` and `_` only); never an address.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Name(String);

/// One host pattern.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
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

#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Label {
    Literal(String),
    /// Over the characters of one label.
    Glob(Glob),
}

/// The union of `include` less the union of `exclude`.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Default)]
pub struct HostSet {
    pub include: Vec<Pattern>,
    pub exclude: Vec<Pattern>,
}
