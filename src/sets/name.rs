//! Sets of plain names: environment variables and mach services.

use super::glob::{Glob, Piece};
use super::words::{self, Shape, Token, Unit, letters::Alphabet};
use std::fmt;

/// One pattern over a whole name.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, serde::Serialize, serde::Deserialize)]
pub enum Pattern {
    Literal(String),
    Glob(Glob),
}

/// The union of `include` less the union of `exclude`.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Default, serde::Serialize, serde::Deserialize)]
pub struct NameSet {
    pub include: Vec<Pattern>,
    pub exclude: Vec<Pattern>,
}

impl Pattern {
    /// Whether the pattern matches a whole name.
    pub fn contains(&self, name: &str) -> bool {
        match self {
            Pattern::Literal(literal) => literal == name,
            Pattern::Glob(glob) => glob.matches(name.as_bytes()),
        }
    }

    /// The pattern for names in upper case, of a system that compares them without case: it matches the upper case of each name that
    /// this one matches in some case.
    fn in_upper_case(&self) -> Self {
        let upper = |text: &[u8]| match std::str::from_utf8(text) {
            Ok(text) => text.to_uppercase().into_bytes(),
            Err(_) => text.to_ascii_uppercase(),
        };
        match self {
            Pattern::Literal(literal) => Pattern::Literal(literal.to_uppercase()),
            Pattern::Glob(glob) => Pattern::Glob(Glob(
                glob.0
                    .iter()
                    .map(|piece| match piece {
                        Piece::Text(text) => Piece::Text(upper(text)),
                        Piece::Class { negated, ranges } => {
                            // Of `a` to `z` what is among the ranges, as capitals.
                            let small = |(low, high): &(char, char)| ((*low).max('a'), (*high).min('z'));
                            let more = ranges.iter().map(small).filter(|(low, high)| low <= high);
                            let more = more.map(|(low, high)| (low.to_ascii_uppercase(), high.to_ascii_uppercase()));
                            Piece::Class { negated: *negated, ranges: ranges.iter().copied().chain(more).collect() }
                        }
                        Piece::AnyRun | Piece::AnyChar => piece.clone(),
                    })
                    .collect(),
            )),
        }
    }

    fn shape(&self) -> Shape<'_> {
        match self {
            Pattern::Literal(literal) => vec![Token::Literal(literal.as_bytes())],
            Pattern::Glob(glob) => vec![Token::Glob(glob)],
        }
    }
}

impl fmt::Display for Pattern {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Pattern::Literal(literal) => f.write_str(literal),
            Pattern::Glob(glob) => write!(f, "{glob}"),
        }
    }
}

impl From<Pattern> for NameSet {
    fn from(pattern: Pattern) -> Self {
        Self { include: vec![pattern], exclude: Vec::new() }
    }
}

pub(super) fn shapes(patterns: &[Pattern]) -> Vec<Shape<'_>> {
    patterns.iter().map(Pattern::shape).collect()
}

pub(super) fn from_units(units: Vec<Unit<'_>>) -> String {
    let mut name = Vec::new();
    for unit in units {
        if let Unit::Segment(segment) = unit {
            name.extend(segment);
        }
    }
    String::from_utf8_lossy(&name).into_owned()
}

fn shorter(best: Option<String>, next: Option<String>) -> Option<String> {
    match (best, next) {
        (Some(best), Some(next)) => Some(if next.len() < best.len() { next } else { best }),
        (best, next) => best.or(next),
    }
}

impl NameSet {
    /// Whether a name is in the set.
    pub fn contains(&self, name: &str) -> bool {
        self.include.iter().any(|pattern| pattern.contains(name))
            && !self.exclude.iter().any(|pattern| pattern.contains(name))
    }

    /// The set for names in upper case, of a system that compares them without case.
    #[must_use]
    pub fn in_upper_case(&self) -> Self {
        let all = |patterns: &[Pattern]| patterns.iter().map(Pattern::in_upper_case).collect();
        Self { include: all(&self.include), exclude: all(&self.exclude) }
    }

    /// Whether every name in this set is in `other`.
    ///
    /// # Errors
    /// A shortest name that is not.
    pub fn is_subset(&self, other: &Self) -> Result<(), String> {
        let (own_less, more, less) = (shapes(&self.exclude), shapes(&other.include), shapes(&other.exclude));
        let mut best = None;
        for shape in &shapes(&self.include) {
            let refused: Vec<_> = own_less.iter().chain(&more).collect();
            best = shorter(best, words::find(&[shape], &refused, Alphabet::Name).map(from_units));
            let refused: Vec<_> = own_less.iter().collect();
            for gone in &less {
                best = shorter(best, words::find(&[shape, gone], &refused, Alphabet::Name).map(from_units));
            }
        }
        best.map_or(Ok(()), Err)
    }

    /// Whether this set is inside `other` and not equal to it.
    pub fn is_strictly_inside(&self, other: &Self) -> bool {
        self.is_subset(other).is_ok() && other.is_subset(self).is_err()
    }

    /// A shortest name in both sets.
    pub fn overlap(&self, other: &Self) -> Option<String> {
        let less = [shapes(&self.exclude), shapes(&other.exclude)].concat();
        let refused: Vec<_> = less.iter().collect();
        let mut best = None;
        for own in &shapes(&self.include) {
            for theirs in &shapes(&other.include) {
                best = shorter(best, words::find(&[own, theirs], &refused, Alphabet::Name).map(from_units));
            }
        }
        best
    }

    /// A shortest name in the set; `None` when there is none.
    pub fn shortest(&self) -> Option<String> {
        self.is_subset(&Self::default()).err()
    }

    /// Whether no name is in the set.
    pub fn is_empty(&self) -> bool {
        self.shortest().is_none()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pattern(text: &str) -> Pattern {
        let mut pieces = Vec::new();
        for (index, part) in text.split('*').enumerate() {
            if index > 0 {
                pieces.push(Piece::AnyRun);
            }
            if !part.is_empty() {
                pieces.push(Piece::Text(part.into()));
            }
        }
        if text.contains('*') { Pattern::Glob(Glob::from(pieces)) } else { Pattern::Literal(text.into()) }
    }

    #[test]
    fn more_specific_is_inclusion() {
        let set = |text| NameSet::from(pattern(text));
        assert!(set("AWS_REGION").is_strictly_inside(&set("AWS_*")));
        assert!(!set("AWS_*").is_strictly_inside(&set("AWS_*")));
        assert!(!set("*_TOKEN").is_strictly_inside(&set("AWS_*")));
        assert_eq!(set("*_TOKEN").overlap(&set("AWS_*")).as_deref(), Some("AWS_TOKEN"));
        let but = NameSet { include: vec![pattern("*")], exclude: vec![pattern("AWS_*")] };
        assert!(!but.contains("AWS_X") && but.contains("HOME"));
        assert!(but.is_strictly_inside(&set("*")));
        assert!(!set("AWS_X").is_strictly_inside(&but));
    }

    #[test]
    fn capitals_stand_for_both_cases() {
        let class = |negated| {
            let range = Piece::Class { negated, ranges: vec![('b', 'd'), ('0', '5')] };
            NameSet::from(Pattern::Glob(Glob::from(vec![Piece::Text(b"x_".to_vec()), range]))).in_upper_case()
        };
        for (name, inside) in [("X_B", true), ("X_D", true), ("X_E", false), ("X_3", true), ("X_9", false)] {
            assert_eq!((class(false).contains(name), class(true).contains(name)), (inside, !inside), "{name}");
        }
        let but = NameSet { include: vec![pattern("path*")], exclude: vec![pattern("PathExt")] }.in_upper_case();
        assert!(but.contains("PATH") && !but.contains("PATHEXT"));
    }
}
