//! Paths that a pattern matches, made up where there are none: what a rule says of names is tried by a few of them.
//!
//! A sample: that none of them differs proves nothing.

use crate::sets::glob::{Glob, Piece};
use crate::sets::path::{AbsPath, FileName, Pattern, Segment, Start};
use crate::vocabulary::Reach;

/// So many are made for a pattern in a place.
const MOST: usize = 24;

/// Paths at or below `root` that the pattern matches: shortest first, then with unnamed directories in place of `**`.
pub(super) fn instances(pattern: &Pattern, root: &AbsPath, fresh: &[u8]) -> Vec<AbsPath> {
    let mut found = Vec::new();
    if pattern.start == Start::Root {
        let mut path = root.clone();
        walk(&pattern.segments, &root.segments, pattern.reach, fresh, &mut path, &mut found);
    }
    found.sort_by_key(|path| path.segments.len());
    found.dedup();
    found
}

/// `above` is what is left of the root to be matched; `path` what was made so far.
fn walk(
    mut pattern: &[Segment],
    mut above: &[FileName],
    reach: Reach,
    fresh: &[u8],
    path: &mut AbsPath,
    found: &mut Vec<AbsPath>,
) {
    if found.len() >= MOST {
        return;
    }
    let length = path.segments.len();
    loop {
        match (pattern.split_first(), above.split_first()) {
            (Some((Segment::Literal(name), rest)), Some((first, left))) if name == first => {
                (pattern, above) = (rest, left);
            }
            (Some((Segment::Glob(glob), rest)), Some((first, left))) if glob.matches(first) => {
                (pattern, above) = (rest, left);
            }
            (Some((Segment::Literal(_) | Segment::Glob(_), _)), Some(_)) => break,
            (Some((Segment::Literal(name), rest)), None) => {
                path.segments.push(name.clone());
                pattern = rest;
            }
            (Some((Segment::Glob(glob), rest)), None) => {
                for name in names(glob, fresh) {
                    path.segments.push(name);
                    walk(rest, &[], reach, fresh, path, found);
                    path.segments.pop();
                }
                break;
            }
            (Some((Segment::AnyDepth, rest)), None) => {
                walk(rest, &[], reach, fresh, path, found);
                path.segments.push(FileName::from(fresh));
                pattern = rest;
            }
            (Some((Segment::AnyDepth, rest)), Some((_, left))) => {
                walk(rest, above, reach, fresh, path, found);
                above = left;
            }
            (None, above) => {
                // Where the root lies within the pattern's tree, so does everything in it.
                if reach != Reach::Below && above.is_none() {
                    found.push(path.clone());
                }
                if reach != Reach::Exact {
                    found.push(path.join(fresh));
                }
                break;
            }
        }
    }
    path.segments.truncate(length);
}

/// Names that a glob matches: its shortest, and one that hardly another rule will name.
fn names(glob: &Glob, fresh: &[u8]) -> Vec<FileName> {
    let made = [&b""[..], fresh].map(|run| {
        let mut name = Vec::new();
        for piece in &*glob.0 {
            match piece {
                Piece::Text(text) => name.extend_from_slice(text),
                Piece::AnyRun => name.extend_from_slice(run),
                Piece::AnyChar => name.push(b'x'),
                Piece::Class { negated, ranges } => name.extend(in_class(*negated, ranges).to_string().into_bytes()),
            }
        }
        name
    });
    let is_name = |name: &&Vec<u8>| !matches!(name[..], [] | [b'.'] | [b'.', b'.']) && !name.contains(&b'/');
    made.iter().filter(is_name).map(FileName::from).collect()
}

fn in_class(negated: bool, ranges: &[(char, char)]) -> char {
    let inside = |char: char| ranges.iter().any(|(low, high)| (*low..=*high).contains(&char));
    if !negated {
        return ranges.first().map_or('x', |range| range.0);
    }
    ('a'..='z').chain('\u{4e00}'..'\u{9fff}').find(|char| !inside(*char)).unwrap_or('x')
}
