//! Symbolic links: where a path leads, what it is called on the way, and which links were met.
//!
//! A path that does not exist leads to what its deepest existing ancestor leads to, and the rest as it stands.

use crate::host::Host;
use crate::ir::{LinkFact, Node, NodeKind};
use crate::sets::path::{AbsPath, FileName, Pattern, Start};
use rustc_hash::FxHashMap;
use std::collections::BTreeMap;
use std::io;

/// As many links as the kernel follows (path_resolution(7)).
const LINKS: usize = 40;

/// The name under which a drive is kept.
fn drive(start: &Start) -> Option<Vec<u8>> {
    if let Start::Drive(letter) = start { Some(format!("{letter}:/").into_bytes()) } else { None }
}

/// Follows links, and remembers what it saw.
pub(super) struct Links<'h> {
    host: &'h dyn Host,
    /// What was looked at, as a tree: the first is the root.
    seen: Vec<Seen>,
    /// Each link met, and where it leads in the end.
    met: BTreeMap<AbsPath, AbsPath>,
    /// Places that are the sandbox's own: what the host has there is not looked at.
    own: Vec<AbsPath>,
    last: Way,
}

/// The literal names of the last pattern that was asked about, as far as they are there and no links: most patterns come in
/// long rows that begin alike.
#[derive(Default)]
struct Way {
    /// The node that it begins at.
    from: usize,
    names: Vec<u8>,
    /// By name: where it ends in those, and its node.
    nodes: Vec<(usize, usize)>,
}

impl Way {
    /// The node of the name at this depth, if all before it are the same.
    fn node(&self, depth: usize, name: &[u8]) -> Option<usize> {
        let (end, node) = self.nodes.get(depth)?;
        (self.names[self.end(depth)..*end] == *name).then_some(*node)
    }

    /// Where the names before this depth end.
    fn end(&self, depth: usize) -> usize {
        depth.checked_sub(1).map_or(0, |before| self.nodes[before].0)
    }

    fn truncate(&mut self, depth: usize) {
        self.names.truncate(self.end(depth));
        self.nodes.truncate(depth);
    }

    fn push(&mut self, name: &[u8], node: usize) {
        self.names.extend_from_slice(name);
        self.nodes.push((self.names.len(), node));
    }
}

/// A name that was looked at, or leads to one that was. The names are the policy's, and those of the few links on their way:
/// the hash of the table need not withstand chosen ones.
#[derive(Default)]
struct Seen {
    /// Set once it was looked at: whether anything is there is the inner one.
    #[allow(clippy::option_option)]
    node: Option<Option<Node>>,
    below: FxHashMap<FileName, usize>,
    /// Whether what is below was listed.
    listing: Listing,
}

/// What was done to know all that is in a directory.
#[derive(Clone, Copy, PartialEq, Eq, Default)]
enum Listing {
    #[default]
    NotTried,
    /// Each name has to be looked at.
    Unknown,
    /// Nothing is there but the names below.
    Whole,
}

/// The number of whatever is not there, in a directory that was listed.
const MISSING: usize = 1;

/// From so many names in one directory on, it is listed.
const LISTED_FROM: usize = 8;

/// A directory with more names than this is not listed: to look at those that the policy names costs less.
const LISTED_MOST: usize = 400;

/// A place with no link on the way to it: the number of its node, or of the first on the way that is not there.
pub(super) struct Place {
    node: usize,
    path: AbsPath,
}

impl Place {
    pub fn root() -> Self {
        Self { node: 0, path: AbsPath::root() }
    }
}

/// Where a path leads.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Followed {
    pub place: AbsPath,
    /// What else the path is called: the link itself with what follows it, for each link on the way. Empty when no link
    /// was met.
    pub names: Vec<AbsPath>,
    /// The links met, each by the real place it is at.
    pub links: Vec<AbsPath>,
    pub fault: Option<Fault>,
}

/// Why a path leads nowhere.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Fault {
    Loop,
    Unreadable(String),
}

impl<'h> Links<'h> {
    pub fn new(host: &'h dyn Host, own: Vec<AbsPath>) -> Self {
        let missing = Seen { node: Some(None), ..Seen::default() };
        Self { host, seen: vec![Seen::default(), missing], met: BTreeMap::new(), own, last: Way::default() }
    }

    /// The node at a path, the last segment not followed; `None` where there is none or we may not look.
    ///
    /// # Errors
    /// Whatever looking fails with otherwise.
    pub fn node(&mut self, path: &AbsPath) -> io::Result<Option<Node>> {
        let mut at = self.start(&path.start);
        for segment in &path.segments {
            if let Some(None) = self.seen[at].node {
                return Ok(None);
            }
            at = self.below(at, segment);
        }
        self.look(at, || path.clone())
    }

    /// The number of what paths start at. A drive is below the root by a name that no file has.
    fn start(&mut self, start: &Start) -> usize {
        match drive(start) {
            Some(name) => self.below(0, &name),
            None => 0,
        }
    }

    fn below(&mut self, at: usize, segment: &[u8]) -> usize {
        if let Some(known) = self.seen[at].below.get(segment) {
            return *known;
        }
        if at == MISSING || self.seen[at].listing == Listing::Whole {
            return MISSING;
        }
        self.add(at, segment)
    }

    fn add(&mut self, at: usize, segment: &[u8]) -> usize {
        let fresh = self.seen.len();
        self.seen.push(Seen::default());
        self.seen[at].below.insert(segment.into(), fresh);
        fresh
    }

    /// Lists a directory in which many names were asked for.
    fn list(&mut self, at: usize, path: impl FnOnce() -> AbsPath) {
        let here = &self.seen[at];
        let is_directory = here.node.flatten().is_some_and(|node| node.kind == NodeKind::Directory);
        if here.listing != Listing::NotTried || here.below.len() < LISTED_FROM || !is_directory {
            return;
        }
        let Some(names) = self.host.names(&path(), LISTED_MOST) else {
            self.seen[at].listing = Listing::Unknown;
            return;
        };
        for name in names {
            if !self.seen[at].below.contains_key(&*name) {
                self.add(at, &name);
            }
        }
        self.seen[at].listing = Listing::Whole;
    }

    fn look(&mut self, at: usize, path: impl FnOnce() -> AbsPath) -> io::Result<Option<Node>> {
        if let Some(known) = self.seen[at].node {
            return Ok(known);
        }
        let node = match self.host.node(&path()) {
            // Where we may not enter, the command, which has our rights at the most, may not either.
            Err(error) if error.kind() == io::ErrorKind::PermissionDenied => None,
            other => other?,
        };
        self.seen[at].node = Some(node);
        Ok(node)
    }

    /// A place from the root; `None` where a link is on the way to it, or that can't be seen.
    pub fn straight(&mut self, place: &[FileName]) -> Option<Place> {
        let path = |depth: usize| AbsPath { start: Start::Root, segments: place[..depth].to_vec() };
        let mut node = 0;
        for (depth, name) in place.iter().enumerate() {
            node = self.below(node, name);
            match self.look(node, || path(depth + 1)) {
                Ok(Some(found)) if found.kind != NodeKind::Link => {}
                Ok(None) => break,
                _ => return None,
            }
        }
        Some(Place { node, path: path(place.len()) })
    }

    /// Whether the literal prefix of a pattern that starts at a place is its own place: no link is on the way, as far as it
    /// exists. So it is with nearly all, and nothing has to be taken apart for them. What the pattern itself says of its
    /// start is not looked at.
    pub fn is_straight(&mut self, place: &Place, pattern: &Pattern) -> bool {
        self.is_there(place, pattern).is_some()
    }

    /// The same, and that nothing is there.
    pub fn is_missing(&mut self, place: &Place, pattern: &Pattern) -> bool {
        self.is_there(place, pattern) == Some(false)
    }

    /// Whether anything is at the literal prefix; `None` where a link is on the way to it, or that can't be seen. What is the
    /// sandbox's own is there.
    fn is_there(&mut self, place: &Place, pattern: &Pattern) -> Option<bool> {
        let literal = || (0..).map_while(|depth| pattern.literal_at(depth));
        let names = || place.path.segments.iter().map(|name| &**name).chain(literal());
        let is_inside = |own: &AbsPath| {
            let mut names = names();
            own.segments.iter().all(|name| names.next() == Some(name))
        };
        if self.own.iter().any(is_inside) {
            return Some(true);
        }
        if self.seen[place.node].node == Some(None) {
            return Some(false);
        }
        if self.last.from != place.node {
            self.last = Way { from: place.node, ..Way::default() };
        }
        let mut at = place.node;
        let mut alike = true;
        for (depth, name) in literal().enumerate() {
            if alike && let Some(node) = self.last.node(depth, name) {
                at = node;
                continue;
            }
            if std::mem::take(&mut alike) {
                self.last.truncate(depth);
            }
            if matches!(name, b"" | b"." | b"..") {
                return None;
            }
            let above = place.path.segments.len() + depth;
            let path =
                |depth| AbsPath { start: Start::Root, segments: names().take(depth).map(FileName::from).collect() };
            self.list(at, || path(above));
            at = self.below(at, name);
            match self.look(at, || path(above + 1)) {
                Ok(Some(node)) if node.kind != NodeKind::Link => self.last.push(name, at),
                Ok(None) => return Some(false),
                _ => return None,
            }
        }
        Some(true)
    }

    /// The number of the deepest node on the literal prefix of a pattern from the root that was looked at and is there;
    /// `None` where not all of it was looked at.
    pub fn deepest(&self, pattern: &Pattern) -> Option<usize> {
        let mut at = match drive(&pattern.start) {
            Some(name) => *self.seen[0].below.get(&*name)?,
            None => 0,
        };
        for depth in 0.. {
            let Some(segment) = pattern.literal_at(depth) else { break };
            let next = match self.seen[at].below.get(segment) {
                Some(next) => *next,
                None if self.seen[at].listing == Listing::Whole => break,
                None => return None,
            };
            match self.seen[next].node? {
                Some(_) => at = next,
                None => break,
            }
        }
        Some(at)
    }

    /// The nodes on the way to a path from the root down, as far as they exist, each with a number of its own and the length
    /// of its path.
    pub fn way(&mut self, path: &AbsPath) -> Vec<(usize, usize, Node)> {
        let mut way = Vec::with_capacity(path.segments.len() + 1);
        let mut at = self.start(&path.start);
        for depth in 0..=path.segments.len() {
            if depth > 0 {
                at = self.below(at, &path.segments[depth - 1]);
            }
            let here = || AbsPath { start: path.start.clone(), segments: path.segments[..depth].to_vec() };
            match self.look(at, here) {
                Ok(Some(node)) => way.push((at, depth, node)),
                Ok(None) => break,
                Err(_) => {}
            }
        }
        way
    }

    /// Every link that was met so far.
    pub fn facts(&self) -> Vec<LinkFact> {
        self.met.iter().map(|(at, to)| LinkFact { at: at.clone(), to: to.clone() }).collect()
    }

    /// Whether a path is in one of the sandbox's own places.
    pub fn is_own(&self, path: &AbsPath) -> bool {
        self.own.iter().any(|own| path.is_inside(own))
    }

    /// Where a path leads.
    pub fn follow(&mut self, path: &AbsPath) -> Followed {
        let mut followed = Followed { place: path.clone(), names: Vec::new(), links: Vec::new(), fault: None };
        if matches!(path.start, Start::Variable(_)) || self.is_own(path) {
            return followed;
        }
        // What is still to be walked, the next segment last.
        let mut rest: Vec<FileName> = path.segments.iter().rev().cloned().collect();
        // Links whose target is being walked, each with the length that `rest` has once it is.
        let mut open: Vec<(AbsPath, usize)> = Vec::new();
        let mut here = AbsPath { start: path.start.clone(), segments: Vec::new() };
        // Once a segment is missing, nothing below it exists.
        let mut exists = true;
        loop {
            while open.last().is_some_and(|(_, length)| *length == rest.len()) {
                if let Some((at, _)) = open.pop() {
                    self.met.insert(at, here.clone());
                }
            }
            let Some(segment) = rest.pop() else { break };
            match &*segment {
                b"" | b"." => continue,
                b".." => {
                    here.segments.pop();
                    continue;
                }
                _ => {}
            }
            here.segments.push(segment);
            if !exists || self.is_own(&here) {
                continue;
            }
            let node = match self.node(&here) {
                Ok(node) => node,
                Err(error) => {
                    followed.fault = Some(Fault::Unreadable(error.to_string()));
                    exists = false;
                    continue;
                }
            };
            exists = node.is_some();
            if node.is_none_or(|node| node.kind != NodeKind::Link) {
                continue;
            }
            let target = self.host.read_link(&here);
            let Some(target) = target.ok().filter(|_| followed.links.len() < LINKS) else {
                followed.fault = Some(Fault::Loop);
                return followed;
            };
            let after: Vec<_> =
                rest.iter().rev().filter(|segment| !matches!(&***segment, b"" | b"." | b"..")).cloned().collect();
            if after.len() == rest.len() {
                followed.names.push(here.join_all(&after));
            }
            followed.links.push(here.clone());
            open.push((here.clone(), rest.len()));
            here.segments.pop();
            let mut target = &target[..];
            if let ([letter, b':', b'/', below @ ..], Start::Drive(_)) = (target, &here.start) {
                here = AbsPath { start: Start::Drive(char::from(letter.to_ascii_uppercase())), segments: Vec::new() };
                target = below;
            } else if target.starts_with(b"/") {
                // From the root; on Windows, from that of the drive.
                here.segments.clear();
            }
            rest.extend(target.split(|byte| *byte == b'/').rev().map(FileName::from));
        }
        // The path as it was written is a name of the place too, unless it is the place.
        if !followed.links.is_empty() && *path != followed.place && !followed.names.contains(path) {
            followed.names.insert(0, path.clone());
        }
        followed.place = here;
        followed.names.retain(|name| *name != followed.place);
        followed
    }
}
