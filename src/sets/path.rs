//! Sets of paths: unions of patterns less unions of patterns.
//!
//! Paths are bytes and end at no machine: `std::path` is not used, so that a policy for any system is read on any.

use super::glob::Glob;
use crate::vocabulary::Reach;

/// A concrete, absolute, normalised path: `/`, or `/` and segments without `.`, `..`, empty ones, or a trailing slash.
/// One that starts at a variable whose place is not known is that variable and the segments below it.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct AbsPath {
    pub start: Start,
    pub segments: Vec<Vec<u8>>,
}

/// What a path or a pattern starts at.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Start {
    Root,
    /// A variable that is not bound: apart from every literal path and every other variable, inside every `**`.
    Variable(String),
    /// A Windows drive, upper case.
    Drive(char),
}

#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Segment {
    /// `**`: any number of segments, none included.
    AnyDepth,
    Literal(Vec<u8>),
    Glob(Glob),
}

/// One path pattern.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Pattern {
    pub start: Start,
    pub segments: Vec<Segment>,
    pub reach: Reach,
}

/// The union of `include` less the union of `exclude`.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Default)]
pub struct PathSet {
    pub include: Vec<Pattern>,
    pub exclude: Vec<Pattern>,
}
