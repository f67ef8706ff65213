//! Names that a pattern speaks of and that are not there, all of them: as sets.
//!
//! What is there is what `bind` saw. What rules say of such names, and whether anybody can make them, is for others.

use super::Facts;
use crate::sets::path::{AbsPath, PathSet, Pattern, Segment};
use crate::vocabulary::Reach;

impl Facts {
    /// Whether a pattern may match something that is not there.
    pub fn is_absent(&self, pattern: &Pattern) -> bool {
        !pattern.is_literal() || !self.nodes.contains_key(&pattern.literal_prefix())
    }

    /// What a pattern matches, less what is there.
    pub fn absent(&self, pattern: &Pattern) -> PathSet {
        let exclude = self.there(pattern).map(|path| Pattern::literal(path, pattern.reach)).collect();
        PathSet { include: vec![pattern.clone()], exclude }
    }

    /// Of a pattern that matches names alone: what would be below those that are not there. None of the others.
    pub fn below_absent(&self, pattern: &Pattern) -> Vec<PathSet> {
        if pattern.reach != Reach::Exact {
            return Vec::new();
        }
        let there: Vec<_> = self.there(pattern).collect();
        // In what is there such names begin anew.
        let anew = there.iter().map(|path| ((*path).clone(), rests(pattern, path)));
        let starts = std::iter::once((AbsPath::root(), vec![&pattern.segments[..]])).chain(anew);
        let sets = starts.filter(|(_, rests)| !rests.is_empty()).map(|(from, rests)| {
            let include = rests.into_iter().map(|rest| {
                let from = Pattern::literal(&from, Reach::Below);
                Pattern { segments: [&from.segments[..], rest].concat(), ..from }
            });
            let inside = there.iter().filter(|path| path.is_inside(&from) && ***path != from);
            PathSet {
                include: include.collect(),
                exclude: inside.map(|path| Pattern::literal(path, Reach::Tree)).collect(),
            }
        });
        sets.collect()
    }

    /// What is there of what a pattern's segments match.
    fn there(&self, pattern: &Pattern) -> impl Iterator<Item = &AbsPath> {
        let matched = Pattern { reach: Reach::Exact, ..pattern.clone() };
        let prefix = pattern.literal_prefix();
        // In this order all that is in a tree is together.
        let inside = self.nodes.range(prefix.clone()..).map(|(path, _)| path);
        inside.take_while(move |path| path.is_inside(&prefix)).filter(move |path| matched.contains(path))
    }
}

/// What of a pattern may follow a path.
fn rests<'p>(pattern: &'p Pattern, path: &AbsPath) -> Vec<&'p [Segment]> {
    let own = &pattern.segments;
    let taken = |length: &usize| Pattern { segments: own[..*length].to_vec(), ..pattern.clone() }.contains(path);
    let rest = |length: usize| &own[length - usize::from(own[length - 1] == Segment::AnyDepth)..];
    (1..=own.len()).filter(taken).map(rest).filter(|rest| !rest.is_empty()).collect()
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::*;
    use crate::ir::{Node, NodeKind};

    fn path(text: &str) -> AbsPath {
        AbsPath::parse(text).unwrap()
    }

    fn facts(there: &[&str]) -> Facts {
        let node = Node { kind: NodeKind::Directory, device: 1, inode: 1 };
        Facts { nodes: there.iter().map(|text| (path(text), node)).collect(), ..Facts::default() }
    }

    #[test]
    fn what_is_there_is_no_such_name() {
        let facts = facts(&["/", "/a", "/a/x1", "/a/x1/b", "/a-", "/b"]);
        let absent = facts.absent(&Pattern::written("/a/x*"));
        for (text, is) in [("/a/x", true), ("/a/x2/b", true), ("/a/x1", false), ("/a/x1/x2", false), ("/a", false)] {
            assert_eq!(absent.contains(&path(text)), is, "{text}");
        }
        assert!(facts.is_absent(&Pattern::written("/a/x2")) && !facts.is_absent(&Pattern::written("/a/x1")));
    }

    #[test]
    fn below_such_names_is_none_either() {
        let facts = facts(&["/", "/a", "/a/x1", "/a/x1/x2", "/x3"]);
        let holds = |pattern: &str, text: &str| {
            facts.below_absent(&Pattern::written(pattern)).iter().any(|set| set.contains(&path(text)))
        };
        for (text, is) in [("/a/x/b", true), ("/a/x1/b", false), ("/a/x", false), ("/a/x1/x2/b", false)] {
            assert_eq!(holds("exact /a/x*", text), is, "{text}");
        }
        for (text, is) in [
            ("/a/x1/x/b", true),
            ("/a/x1/q/x/b", true),
            ("/a/x1/x2/x/b", true),
            ("/q/x1/b", true),
            ("/a/x1/b", false),
            ("/a/x1/x2/b", false),
            ("/a/x1/x", false),
        ] {
            assert_eq!(holds("exact /**/x*", text), is, "{text}");
        }
        // The name of what is there may begin one.
        assert!(holds("exact /**/x*/*", "/a/x1/x2/b/c") && !holds("exact /**/x*/*", "/a/x1/x2/b"));
        assert!(!holds("/a/x*", "/a/x/b"));
    }
}
