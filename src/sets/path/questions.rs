//! What two sets of paths are to each other, decided exactly. Pairs of literal paths, which most pairs are, are told by
//! their prefixes; the rest is searched.

use super::{AbsPath, PathSet, Pattern, Segment, Start};
use crate::sets::glob::Piece;
use crate::sets::mistake::{Mistake, made};
use crate::sets::words::{self, Origin, Shape, Token, Unit, letters::Alphabet};
use crate::vocabulary::Reach;

impl Pattern {
    fn origin(&self) -> Option<Origin<'_>> {
        match &self.start {
            Start::Root => None,
            Start::Variable(name) => Some(Origin::Variable(name)),
            Start::Drive(drive) => Some(Origin::Drive(*drive)),
        }
    }

    fn shape(&self) -> Shape<'_> {
        let mut shape = Vec::with_capacity(self.segments.len() + 3);
        shape.extend(self.origin().map(Token::Origin));
        shape.extend(self.segments.iter().map(|segment| match segment {
            Segment::AnyDepth => Token::Many,
            Segment::Literal(literal) => Token::Literal(literal),
            Segment::Glob(glob) => Token::Glob(glob),
        }));
        match self.reach {
            Reach::Tree => shape.push(Token::Many),
            Reach::Exact => {}
            Reach::Below => shape.extend([Token::One, Token::Many]),
        }
        shape
    }

    /// Whether everything this matches is matched by `other`, where their literal segments alone can tell.
    fn plainly_inside(&self, other: &Self) -> Option<bool> {
        if self.reach == Reach::Tree && other.reach != Reach::Exact && self.is_literal() {
            // `other` holds whatever lies below what it holds.
            return Some(other.contains_plain(self));
        }
        if self.reach == Reach::Exact && self.is_literal() {
            return Some(other.contains_plain(self));
        }
        if other.reach != Reach::Tree || !other.is_literal() {
            return None;
        }
        if other.start == Start::Root && other.segments.is_empty() {
            return Some(true);
        }
        let mut differs = self.start != other.start;
        for (index, literal) in other.segments.iter().enumerate() {
            match self.segments.get(index) {
                _ if differs => break,
                Some(Segment::Glob(_)) => return None,
                Some(own) => differs = own != literal,
                None => differs = true,
            }
        }
        // Ends above, or reaches another place: any path it matches is a witness.
        if differs { self.plainly_matches().then_some(false) } else { Some(true) }
    }

    /// Whether it is plain that some path is matched.
    fn plainly_matches(&self) -> bool {
        self.segments.iter().all(|segment| match segment {
            Segment::AnyDepth | Segment::Literal(_) => true,
            Segment::Glob(glob) => {
                let wide = |piece: &Piece| matches!(piece, Piece::AnyRun | Piece::AnyChar);
                glob.0.iter().any(wide) && glob.0.iter().all(|piece| wide(piece) || matches!(piece, Piece::Text(_)))
            }
        })
    }

    fn contains_plain(&self, literal: &Self) -> bool {
        self.contains(&literal.literal_prefix())
    }
}

pub(in crate::sets) fn path(units: Vec<Unit<'_>>) -> AbsPath {
    let mut path = AbsPath::root();
    for unit in units {
        match unit {
            Unit::Origin(Origin::Variable(name)) => path.start = Start::Variable(name.into()),
            Unit::Origin(Origin::Drive(drive)) => path.start = Start::Drive(drive),
            Unit::Segment(segment) => path.segments.push(segment.into()),
        }
    }
    path
}

pub(in crate::sets) fn units(path: &AbsPath) -> Vec<Unit<'_>> {
    let origin = match &path.start {
        Start::Root => None,
        Start::Variable(name) => Some(Origin::Variable(name)),
        Start::Drive(drive) => Some(Origin::Drive(*drive)),
    };
    let segments = path.segments.iter().map(|segment| Unit::Segment(segment.to_vec()));
    origin.map(Unit::Origin).into_iter().chain(segments).collect()
}

pub(in crate::sets) fn shapes(patterns: &[Pattern]) -> Vec<Shape<'_>> {
    patterns.iter().map(Pattern::shape).collect()
}

/// The shorter of two witnesses: fewer segments, then fewer bytes.
fn shorter(best: Option<AbsPath>, next: Option<AbsPath>) -> Option<AbsPath> {
    let size = |path: &AbsPath| (path.segments.len(), path.segments.iter().map(|name| name.len()).sum::<usize>());
    match (best, next) {
        (Some(best), Some(next)) => Some(if size(&next) < size(&best) { next } else { best }),
        (best, next) => best.or(next),
    }
}

impl PathSet {
    /// The places that a comparison with another set is about: each pattern is looked at by itself, but places exist that any
    /// pattern of either set names.
    fn origins<'a>(&'a self, other: &'a Self) -> Vec<Origin<'a>> {
        let all = [&self.include, &self.exclude, &other.include, &other.exclude];
        let mut origins: Vec<_> = all.into_iter().flatten().filter_map(Pattern::origin).collect();
        origins.sort_unstable();
        origins.dedup();
        origins
    }

    /// A shortest path in this set that is not in `other`.
    fn outside(&self, other: &Self) -> Option<AbsPath> {
        let origins = self.origins(other);
        let (own_less, more, less) = (shapes(&self.exclude), shapes(&other.include), shapes(&other.exclude));
        let mut best = None;
        for pattern in &self.include {
            let inside = |whole: &Pattern| pattern.plainly_inside(whole);
            if less.is_empty() && other.include.iter().any(|whole| inside(whole) == Some(true)) {
                continue;
            }
            let shape = pattern.shape();
            let refused: Vec<_> = own_less.iter().chain(&more).collect();
            best = shorter(best, words::find_with(&origins, &[&shape], &refused, Alphabet::File).map(path));
            let refused: Vec<_> = own_less.iter().collect();
            for gone in &less {
                best = shorter(best, words::find_with(&origins, &[&shape, gone], &refused, Alphabet::File).map(path));
            }
        }
        best
    }

    /// Whether every path in this set is in `other`.
    ///
    /// # Errors
    /// A path with the fewest segments that is not.
    pub fn is_subset(&self, other: &Self) -> Result<(), AbsPath> {
        self.outside(other).map_or(Ok(()), Err)
    }

    /// Whether every path in this set is in `other`, without a witness: cheaper where literal prefixes can tell.
    pub fn is_inside(&self, other: &Self) -> bool {
        if let ([own], [whole]) = (&self.include[..], &other.include[..])
            && self.exclude.is_empty()
        {
            match own.plainly_inside(whole) {
                Some(true) if other.exclude.is_empty() => return true,
                Some(false) => return false,
                _ => {}
            }
        }
        self.outside(other).is_none()
    }

    /// Whether this set is inside `other` and not equal to it.
    pub fn is_strictly_inside(&self, other: &Self) -> bool {
        self.is_inside(other) && (made(Mistake::EqualIsInside) || !other.is_inside(self))
    }

    /// A shortest path in both sets.
    pub fn overlap(&self, other: &Self) -> Option<AbsPath> {
        let origins = self.origins(other);
        let less = [shapes(&self.exclude), shapes(&other.exclude)].concat();
        let refused: Vec<_> = less.iter().collect();
        let mut best = None;
        for own in &shapes(&self.include) {
            for theirs in &shapes(&other.include) {
                best = shorter(best, words::find_with(&origins, &[own, theirs], &refused, Alphabet::File).map(path));
            }
        }
        best
    }

    /// A shortest path in the set; `None` when there is none.
    pub fn shortest(&self) -> Option<AbsPath> {
        self.outside(&Self::default())
    }

    /// Whether no path is in the set.
    pub fn is_empty(&self) -> bool {
        self.shortest().is_none()
    }
}
