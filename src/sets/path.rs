//! Sets of paths: unions of patterns less unions of patterns.
//!
//! Paths are bytes and end at no machine: `std::path` is not used, so that a policy for any system is read on any.

mod file_name;
mod fold;
mod matcher;
mod moved;
mod questions;
mod written;

pub use file_name::FileName;
pub use fold::fold;
pub use matcher::{Matcher, State};
pub(in crate::sets) use questions::{path as from_units, shapes, units};
pub use written::target;

use super::glob::Glob;
use crate::vocabulary::Reach;
use std::fmt;
use std::sync::Arc;

/// A concrete, absolute, normalised path: `/`, or `/` and segments without `.`, `..`, empty ones, or a trailing slash.
/// One that starts at a variable whose place is not known is that variable and the segments below it.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, serde::Serialize, serde::Deserialize)]
pub struct AbsPath {
    pub start: Start,
    pub segments: Vec<FileName>,
}

/// What a path or a pattern starts at.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, serde::Serialize, serde::Deserialize)]
pub enum Start {
    Root,
    /// A variable that is not bound: apart from every literal path and every other variable, inside every `**`.
    Variable(Arc<str>),
    /// A Windows drive, upper case.
    Drive(char),
}

#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, serde::Serialize, serde::Deserialize)]
pub enum Segment {
    /// `**`: any number of segments, none included.
    AnyDepth,
    Literal(FileName),
    Glob(Glob),
}

/// One path pattern.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, serde::Serialize, serde::Deserialize)]
pub struct Pattern {
    pub start: Start,
    pub segments: Vec<Segment>,
    pub reach: Reach,
}

/// The union of `include` less the union of `exclude`.
///
/// Where two sets are compared, the places of variables exist that one of them names: sets that name none are compared
/// as they are on every machine.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Default, serde::Serialize, serde::Deserialize)]
pub struct PathSet {
    pub include: Vec<Pattern>,
    pub exclude: Vec<Pattern>,
}

/// Why a text is no path.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum PathError {
    #[error("a path must be absolute")]
    Relative,
    #[error("a path has no empty segment (`//`)")]
    EmptySegment,
    #[error("a path does not end in `/`")]
    TrailingSlash,
    #[error("a path has no `.` or `..` segment")]
    Dots,
    #[error("a path has no NUL character")]
    Nul,
}

impl AbsPath {
    /// `/`.
    pub fn root() -> Self {
        Self { start: Start::Root, segments: Vec::new() }
    }

    /// The place of a variable.
    pub fn variable(name: impl Into<Arc<str>>) -> Self {
        Self { start: Start::Variable(name.into()), segments: Vec::new() }
    }

    /// Reads `/a/b`, or `X:/a/b`. The bytes are taken as they stand: nothing is unescaped or expanded.
    ///
    /// # Errors
    /// When the path is relative or not normalised.
    pub fn parse(text: impl AsRef<[u8]>) -> Result<Self, PathError> {
        let text = text.as_ref();
        let (start, rest) = match text {
            [b'/', rest @ ..] => (Start::Root, rest),
            [drive, b':', b'/', rest @ ..] if drive.is_ascii_alphabetic() => {
                (Start::Drive(char::from(drive.to_ascii_uppercase())), rest)
            }
            _ => return Err(PathError::Relative),
        };
        if text.contains(&0) {
            return Err(PathError::Nul);
        }
        let mut segments = Vec::new();
        if !rest.is_empty() {
            let count = rest.split(|byte| *byte == b'/').count();
            for (index, segment) in rest.split(|byte| *byte == b'/').enumerate() {
                match segment {
                    b"" if index + 1 == count && index > 0 => return Err(PathError::TrailingSlash),
                    b"" => return Err(PathError::EmptySegment),
                    b"." | b".." => return Err(PathError::Dots),
                    _ => segments.push(FileName::from(segment)),
                }
            }
        }
        Ok(Self { start, segments })
    }

    /// The path of a segment below this one. The segment is a plain name: not empty, without `/`, no `.` or `..`.
    #[must_use]
    pub fn join(&self, segment: impl AsRef<[u8]>) -> Self {
        let segment = segment.as_ref();
        debug_assert!(!segment.is_empty() && !segment.contains(&b'/') && segment != b"." && segment != b"..");
        let mut segments = Vec::with_capacity(self.segments.len() + 1);
        segments.extend_from_slice(&self.segments);
        segments.push(FileName::from(segment));
        Self { start: self.start.clone(), segments }
    }

    /// The path of several segments below this one.
    #[must_use]
    pub fn join_all(&self, segments: &[FileName]) -> Self {
        Self { start: self.start.clone(), segments: [&self.segments[..], segments].concat() }
    }

    /// The path that holds this one; `None` at the start.
    pub fn parent(&self) -> Option<Self> {
        let (_, above) = self.segments.split_last()?;
        Some(Self { start: self.start.clone(), segments: above.to_vec() })
    }

    /// The last segment; `None` at the start.
    pub fn name(&self) -> Option<&[u8]> {
        self.segments.last().map(|name| &**name)
    }

    /// Whether this is `tree` or lies below it.
    pub fn is_inside(&self, tree: &Self) -> bool {
        self.start == tree.start && self.segments.starts_with(&tree.segments)
    }

    /// The segments from `tree` down to here; `None` when this does not lie in it.
    pub fn below(&self, tree: &Self) -> Option<&[FileName]> {
        self.is_inside(tree).then(|| &self.segments[tree.segments.len()..])
    }

    /// Each path from the start down to this one, both included.
    pub fn ancestors(&self) -> impl Iterator<Item = Self> + '_ {
        (0..=self.segments.len())
            .map(|length| Self { start: self.start.clone(), segments: self.segments[..length].to_vec() })
    }

    /// The bytes that name the path to a kernel; `None` when it starts at a variable or a drive.
    pub fn as_bytes(&self) -> Option<Vec<u8>> {
        (self.start == Start::Root).then(|| self.bytes())
    }

    fn bytes(&self) -> Vec<u8> {
        let mut bytes = match &self.start {
            Start::Root => Vec::with_capacity(self.segments.iter().map(|name| name.len() + 1).sum::<usize>().max(1)),
            Start::Variable(name) => format!("${name}").into_bytes(),
            Start::Drive(drive) => format!("{drive}:").into_bytes(),
        };
        for segment in &self.segments {
            bytes.push(b'/');
            bytes.extend_from_slice(segment);
        }
        if self.segments.is_empty() && !matches!(self.start, Start::Variable(_)) {
            bytes.push(b'/');
        }
        bytes
    }
}

/// For people: bytes that are not UTF-8 and control characters are written `\x..`.
impl fmt::Display for AbsPath {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write_bytes(f, &self.bytes())
    }
}

fn write_bytes(f: &mut fmt::Formatter<'_>, bytes: &[u8]) -> fmt::Result {
    for chunk in bytes.utf8_chunks() {
        for char in chunk.valid().chars() {
            if char.is_control() { write!(f, "{}", char.escape_default())? } else { write!(f, "{char}")? }
        }
        for byte in chunk.invalid() {
            write!(f, "\\x{byte:02x}")?;
        }
    }
    Ok(())
}

impl Pattern {
    /// The pattern of one path and what lies at or below it.
    pub fn literal(path: &AbsPath, reach: Reach) -> Self {
        let segments = path.segments.iter().cloned().map(Segment::Literal).collect();
        Self { start: path.start.clone(), segments, reach }
    }

    /// The path this is, when no part of it is a glob or `**`.
    pub fn as_literal(&self) -> Option<AbsPath> {
        self.is_literal().then(|| self.literal_prefix())
    }

    /// Whether no part of it is a glob or `**`.
    pub fn is_literal(&self) -> bool {
        self.segments.iter().all(|segment| matches!(segment, Segment::Literal(_)))
    }

    /// The path up to the first glob or `**`: everything the pattern matches lies in its tree.
    pub fn literal_prefix(&self) -> AbsPath {
        let literal = |segment: &Segment| match segment {
            Segment::Literal(literal) => Some(literal.clone()),
            _ => None,
        };
        AbsPath { start: self.start.clone(), segments: self.segments.iter().map_while(literal).collect() }
    }

    /// The literal segment at a place in the pattern.
    pub fn literal_at(&self, index: usize) -> Option<&[u8]> {
        match self.segments.get(index) {
            Some(Segment::Literal(literal)) => Some(literal),
            _ => None,
        }
    }

    /// Whether the literal prefixes of two patterns already keep them apart. `false` says nothing.
    pub fn begins_apart(&self, other: &Self) -> bool {
        let names = |depth| Some((self.literal_at(depth)?, other.literal_at(depth)?));
        self.start == other.start && (0..).map_while(names).any(|(own, other)| own != other)
    }

    /// Whether this is the literal prefix.
    pub fn is_prefixed_by(&self, path: &AbsPath) -> bool {
        self.begins_inside(path) && self.literal_at(path.segments.len()).is_none()
    }

    /// Whether the literal prefix lies in a tree.
    pub fn begins_inside(&self, tree: &AbsPath) -> bool {
        self.start == tree.start
            && tree.segments.iter().zip(0..).all(|(segment, index)| self.literal_at(index) == Some(segment))
    }

    /// The pattern with a variable's place put in; itself when it does not start there.
    #[must_use]
    pub fn bound(&self, variable: &str, place: &AbsPath) -> Self {
        let mut bound = self.clone();
        bound.bind(variable, place);
        bound
    }

    /// Puts a variable's place in, if the pattern starts there.
    pub fn bind(&mut self, variable: &str, place: &AbsPath) {
        if matches!(&self.start, Start::Variable(name) if **name == *variable) {
            self.put_at(place);
        }
    }

    /// Puts a place in for the variable that the pattern starts at.
    pub fn put_at(&mut self, place: &AbsPath) {
        self.start = place.start.clone();
        let own = std::mem::take(&mut self.segments);
        let mut segments = Vec::with_capacity(place.segments.len() + own.len());
        segments.extend(place.segments.iter().cloned().map(Segment::Literal));
        segments.extend(own);
        self.segments = segments;
    }

    /// Whether the pattern matches a path.
    pub fn contains(&self, path: &AbsPath) -> bool {
        if self.start != path.start {
            // Only what starts at any depth reaches into places that are not known, see `Start`; they lie below the root.
            let deep = self.segments.iter().take_while(|segment| **segment == Segment::AnyDepth).count();
            return self.start == Start::Root
                && if deep == self.segments.len() {
                    deep > 0 || self.reach != Reach::Exact
                } else {
                    deep > 0 && self.descends(&self.segments, &path.segments)
                };
        }
        self.descends(&self.segments, &path.segments)
    }

    /// Going back to the last `**` alone is enough, as every other segment takes exactly one.
    fn descends(&self, pattern: &[Segment], path: &[FileName]) -> bool {
        let done = |rest: usize| match self.reach {
            Reach::Tree => true,
            Reach::Exact => rest == 0,
            Reach::Below => rest > 0,
        };
        let (mut step, mut at) = (0, 0);
        let mut retry: Option<(usize, usize)> = None;
        loop {
            let taken = match pattern.get(step) {
                None if done(path.len() - at) => return true,
                None => None,
                Some(Segment::AnyDepth) => {
                    retry = Some((step, at));
                    Some(0)
                }
                Some(Segment::Literal(literal)) => path.get(at).filter(|segment| *segment == literal).map(|_| 1),
                Some(Segment::Glob(glob)) => path.get(at).filter(|segment| glob.matches(segment)).map(|_| 1),
            };
            if let Some(taken) = taken {
                step += 1;
                at += taken;
                continue;
            }
            match retry {
                Some((depth, from)) if from < path.len() => {
                    retry = Some((depth, from + 1));
                    step = depth + 1;
                    at = from + 1;
                }
                _ => return false,
            }
        }
    }
}

/// As it would be written, quoting aside.
impl fmt::Display for Pattern {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.reach {
            Reach::Tree => {}
            Reach::Exact => f.write_str("exact ")?,
            Reach::Below => f.write_str("below ")?,
        }
        match &self.start {
            Start::Root if matches!(self.segments.first(), Some(Segment::AnyDepth)) => {}
            Start::Root => f.write_str("/")?,
            Start::Variable(name) => write!(f, "${name}{}", if self.segments.is_empty() { "" } else { "/" })?,
            Start::Drive(drive) => write!(f, "{drive}:/")?,
        }
        for (index, segment) in self.segments.iter().enumerate() {
            if index > 0 {
                f.write_str("/")?;
            }
            match segment {
                Segment::AnyDepth => f.write_str("**")?,
                Segment::Literal(literal) => write_bytes(f, literal)?,
                Segment::Glob(glob) => write!(f, "{glob}")?,
            }
        }
        Ok(())
    }
}

impl From<Pattern> for PathSet {
    fn from(pattern: Pattern) -> Self {
        Self { include: vec![pattern], exclude: Vec::new() }
    }
}

impl PathSet {
    /// Whether a path is in the set.
    pub fn contains(&self, path: &AbsPath) -> bool {
        self.include.iter().any(|pattern| pattern.contains(path))
            && !self.exclude.iter().any(|pattern| pattern.contains(path))
    }

    /// Everything it names, what is taken out of it included.
    pub fn patterns(&self) -> impl Iterator<Item = &Pattern> {
        self.include.iter().chain(&self.exclude)
    }
}

#[cfg(test)]
mod tests;
