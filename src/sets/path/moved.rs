//! Sets of paths as they are in another place: what lies below one directory, below another one.

use super::{AbsPath, PathSet, Pattern, Segment, Start};
use crate::vocabulary::Reach;

impl PathSet {
    /// The paths at and below `to` whose like at and below `from` are in the set. Both start at `/`.
    #[must_use]
    pub fn moved(&self, from: &AbsPath, to: &AbsPath) -> Self {
        let all = |patterns: &[Pattern]| patterns.iter().flat_map(|pattern| pattern.moved(from, to)).collect();
        Self { include: all(&self.include), exclude: all(&self.exclude) }
    }
}

impl Pattern {
    fn moved(&self, from: &AbsPath, to: &AbsPath) -> Vec<Pattern> {
        if self.start != Start::Root || from.start != Start::Root {
            return Vec::new();
        }
        // How many segments of the pattern are done; past the last one, everything is matched.
        let (end, all) = (self.segments.len(), self.segments.len() + 1);
        let close = |mut places: Vec<usize>| {
            let mut index = 0;
            while let Some(&at) = places.get(index) {
                places.extend((self.segments.get(at) == Some(&Segment::AnyDepth)).then_some(at + 1));
                index += 1;
            }
            places.sort_unstable();
            places.dedup();
            places
        };
        let mut places = close(vec![0]);
        for segment in &from.segments {
            let next = places.iter().filter_map(|&at| match self.segments.get(at) {
                Some(Segment::AnyDepth) => Some(at),
                Some(Segment::Literal(literal)) => (**literal == **segment).then_some(at + 1),
                Some(Segment::Glob(glob)) => glob.matches(segment).then_some(at + 1),
                None if at == end && self.reach == Reach::Exact => None,
                None => Some(all),
            });
            places = close(next.collect());
        }
        let pattern = |&at: &usize| {
            let reach = if at == all { Reach::Tree } else { self.reach };
            let mut moved = Pattern::literal(to, reach);
            moved.segments.extend(self.segments[at.min(end)..].iter().cloned());
            moved
        };
        places.iter().map(pattern).collect()
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::*;
    use crate::sets::glob::Glob;

    fn path(text: &str) -> AbsPath {
        AbsPath::parse(text).unwrap()
    }

    fn pattern(text: &str, reach: Reach) -> Pattern {
        let segment = |text: &str| match text {
            "**" => Segment::AnyDepth,
            "*" => Segment::Glob(Glob::any()),
            text => Segment::Literal(text.into()),
        };
        let segments = text.split('/').filter(|text| !text.is_empty()).map(segment).collect();
        Pattern { start: Start::Root, segments, reach }
    }

    #[test]
    fn a_path_is_moved_as_its_like_is_in_the_set() {
        let patterns = ["/", "/a", "/a/b", "/a/b/c", "/a/*/c", "/**/c", "/a/**/b", "/**/a/**/c", "/x"];
        let paths =
            ["/a", "/a/b", "/a/b/c", "/a/b/b", "/a/b/c/d", "/a/b/b/c", "/a/b/a", "/a/b/a/x/c", "/a/c", "/x", "/"];
        let (from, to) = (path("/a/b"), path("/m"));
        for text in patterns {
            for reach in [Reach::Tree, Reach::Exact, Reach::Below] {
                let set = PathSet::from(pattern(text, reach));
                let moved = set.moved(&from, &to);
                for like in paths.iter().map(|text| path(text)) {
                    let Some(below) = like.below(&from) else { continue };
                    assert_eq!(moved.contains(&to.join_all(below)), set.contains(&like), "{text} {reach:?} {like}");
                }
                assert!(!moved.contains(&path("/a")) && !moved.contains(&path("/")), "{text}");
            }
        }
    }
}
