//! Patterns over the characters of one path segment, host label or name.

/// A part of a [`Glob`].
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Piece {
    /// These bytes; never empty, never two in a row.
    Text(Vec<u8>),
    /// `*`: any run, the empty one included.
    AnyRun,
    /// `?`: one Unicode scalar, or one byte that is not part of UTF-8.
    AnyChar,
    /// One scalar in (or, negated, outside) the ranges; a byte that is not UTF-8 is outside all of them.
    Class { negated: bool, ranges: Vec<(char, char)> },
}

/// A pattern with at least one piece that is not text.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Glob(pub Vec<Piece>);
