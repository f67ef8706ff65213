//! Sets of plain names: environment variables and mach services.

use super::glob::Glob;

/// One pattern over a whole name.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Pattern {
    Literal(String),
    Glob(Glob),
}

/// The union of `include` less the union of `exclude`.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Default)]
pub struct NameSet {
    pub include: Vec<Pattern>,
    pub exclude: Vec<Pattern>,
}
