//! The points: every existing path at which a decision may change, as a tree with the directories on the way.

use super::judge::Judge;
use crate::ir::{Facts, Node, NodeKind, Policy, Subject};
use crate::sets::path::{AbsPath, FileName, Pattern, Start};
use crate::vocabulary::{Effect, Verb};
use std::collections::BTreeMap;

/// A place that is the sandbox's own, whatever is there on the host.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Place {
    /// `/dev`
    Devices,
    /// `/dev/shm`
    SharedMemory,
    /// `/proc`
    Proc,
    /// `$TMP`
    Temporary,
    /// `/etc/passwd`, `/etc/group`
    Account,
}

#[derive(Debug)]
pub(super) struct Point {
    pub path: AbsPath,
    /// Itself for the root.
    pub parent: usize,
    /// What is there on the host; `None` for a place of our own, or a directory that nobody looked at.
    pub node: Option<Node>,
    /// A rule's set may begin or end here; else it is only on the way, and decided as what is around it.
    pub decides: bool,
    /// Where the link here leads.
    pub link: Option<AbsPath>,
    pub place: Option<Place>,
}

#[derive(Debug)]
pub(super) struct Tree {
    /// Parents before children; the root first.
    pub points: Vec<Point>,
    /// By point: the points one segment below.
    children: Vec<BTreeMap<FileName, usize>>,
}

impl Tree {
    /// `opened`: places that decide, whoever names them.
    pub fn new(judge: &Judge<'_>, opened: &[AbsPath]) -> Self {
        let policy = judge.policy;
        let facts = &policy.facts;
        let root = Point {
            path: AbsPath::root(),
            parent: 0,
            node: facts.nodes.get(&AbsPath::root()).copied(),
            decides: true,
            link: None,
            place: None,
        };
        let mut tree = Self { points: vec![root], children: vec![BTreeMap::new()] };
        for (path, place) in [
            (segments(&["dev"]), Place::Devices),
            (segments(&["dev", "shm"]), Place::SharedMemory),
            (segments(&["proc"]), Place::Proc),
            (temporary(policy), Place::Temporary),
            (segments(&["etc", "passwd"]), Place::Account),
            (segments(&["etc", "group"]), Place::Account),
        ] {
            let at = tree.insert(facts, &path);
            tree.points[at].place.get_or_insert(place);
            tree.points[at].decides = true;
        }
        for link in &facts.links {
            let at = tree.insert(facts, &link.at);
            tree.points[at].link = Some(link.to.clone());
            tree.points[at].decides = true;
        }
        // What is there is far less than what rules name.
        for path in facts.nodes.keys().filter(|path| judge.may_be_named(path)) {
            tree.decide_at(facts, path);
        }
        for path in facts.expansions.iter().map(|(_, path)| path).chain(opened) {
            tree.decide_at(facts, path);
        }
        tree
    }

    /// Makes an existing path a point, with the other names of its node.
    fn decide_at(&mut self, facts: &Facts, path: &AbsPath) {
        let Some(node) = facts.nodes.get(path) else { return };
        if path.start != Start::Root {
            return;
        }
        let at = self.insert(facts, path);
        if self.points[at].decides && self.points[at].place.is_none() {
            return;
        }
        self.points[at].decides = true;
        for other in facts.aliases(path) {
            let at = self.insert(facts, &other);
            self.points[at].decides = true;
            self.points[at].node.get_or_insert(*node);
        }
    }

    fn insert(&mut self, facts: &Facts, path: &AbsPath) -> usize {
        let (mut at, known) = self.descend(path);
        for length in known + 1..=path.segments.len() {
            let here = AbsPath { start: Start::Root, segments: path.segments[..length].to_vec() };
            let next = self.points.len();
            self.children[at].insert(path.segments[length - 1].clone(), next);
            self.children.push(BTreeMap::new());
            let node = facts.nodes.get(&here).copied();
            self.points.push(Point { path: here, parent: at, node, decides: false, link: None, place: None });
            at = next;
        }
        at
    }

    /// The deepest point at or above a path, and its depth.
    fn descend(&self, path: &AbsPath) -> (usize, usize) {
        let mut at = 0;
        for (depth, segment) in path.segments.iter().enumerate() {
            match self.children[at].get(segment) {
                Some(next) => at = *next,
                None => return (at, depth),
            }
        }
        (at, path.segments.len())
    }

    /// The deepest point at or above a path.
    pub fn deepest(&self, path: &AbsPath) -> usize {
        self.descend(path).0
    }

    /// The same for the segments of a path from the root.
    pub fn deepest_of<'s>(&self, segments: impl Iterator<Item = &'s [u8]>) -> usize {
        let mut at = 0;
        for segment in segments {
            match self.children[at].get(segment) {
                Some(next) => at = *next,
                None => break,
            }
        }
        at
    }

    /// Indices in the order in which mounts are made: by path, a directory before what is in it.
    pub fn in_order(&self) -> Vec<usize> {
        let mut order: Vec<usize> = (0..self.points.len()).collect();
        order.sort_by(|a, b| self.points[*a].path.segments.cmp(&self.points[*b].path.segments));
        order
    }
}

impl Point {
    pub fn is_directory(&self) -> bool {
        self.node.is_none_or(|node| node.kind == NodeKind::Directory)
    }
}

pub(super) fn segments(names: &[&str]) -> AbsPath {
    AbsPath { start: Start::Root, segments: names.iter().map(|name| FileName::from(*name)).collect() }
}

/// The value of `$TMP`; where the policy does not use it, what it would be: `/tmp`, unless a rule means the host's.
fn temporary(policy: &Policy) -> AbsPath {
    let shared = segments(&["tmp"]);
    if let Some(value) = policy.facts.variables.get("TMP") {
        let names: Vec<&str> = value.split('/').filter(|name| !name.is_empty()).collect();
        return segments(&names);
    }
    let means_the_hosts = policy.rules.iter().any(|rule| {
        let Subject::Paths(set) = &rule.subject else { return false };
        rule.effect == Effect::Allow
            && rule.verb == Verb::Write
            && set.include.iter().filter_map(Pattern::as_literal).any(|path| shared.is_inside(&path))
    });
    if means_the_hosts { segments(&["dev", "shm"]) } else { shared }
}
