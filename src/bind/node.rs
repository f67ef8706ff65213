//! The nodes that rules name, and the mounts by which one node has several names.

use super::link::Links;
use super::private::Private;
use crate::host::Host;
use crate::ir::{Facts, MountFact, Node, Policy, RuleId, Subject};
use crate::sets::path::{AbsPath, Start};
use std::collections::{BTreeMap, HashSet};

/// The nodes at each literal target, at each literal prefix of a pattern, at what globs expanded to, and at every
/// directory on the way to one of these, as far as they exist; and the same for the other names of each by `mounts`.
pub(super) fn named(
    policy: &Policy,
    expansions: &[(RuleId, AbsPath)],
    mounts: &[MountFact],
    private: &Private,
    links: &mut Links<'_>,
) -> BTreeMap<AbsPath, Node> {
    let mut named = Named { private, links, nodes: BTreeMap::new(), known: HashSet::new() };
    let rules = policy.rules.iter().map(|rule| &rule.subject);
    for subject in rules.chain(policy.expects.iter().map(|expect| &expect.subject)) {
        if let Subject::Paths(set) = subject {
            for pattern in set.patterns() {
                // Most lead to a directory that is known by then, and to nothing in it.
                let deepest = named.links.deepest(pattern);
                if deepest.is_none_or(|number| !named.known.contains(&number)) {
                    named.add(&pattern.literal_prefix());
                }
            }
        }
    }
    for (_, place) in expansions {
        named.add(place);
    }
    if !mounts.is_empty() {
        let nodes = std::mem::take(&mut named.nodes);
        let facts = Facts { nodes, mounts: mounts.to_vec(), ..Facts::default() };
        let others: Vec<AbsPath> = facts.nodes.keys().flat_map(|path| facts.aliases(path)).collect();
        named.nodes = facts.nodes;
        for other in &others {
            named.add(other);
        }
    }
    named.nodes
}

struct Named<'a, 'h> {
    private: &'a Private,
    links: &'a mut Links<'h>,
    nodes: BTreeMap<AbsPath, Node>,
    /// The numbers of the nodes, by which they are found faster than by their paths.
    known: HashSet<usize>,
}

impl Named<'_, '_> {
    /// Adds the node at a place and the directories on the way to it, as far as they exist and are not the sandbox's own.
    fn add(&mut self, place: &AbsPath) {
        if matches!(place.start, Start::Variable(_)) || self.links.is_own(place) || self.private.hides(place) {
            return;
        }
        // From below: once a directory is known, so is the way to it.
        for (number, length, node) in self.links.way(place).into_iter().rev() {
            let path = AbsPath { start: place.start.clone(), segments: place.segments[..length].to_vec() };
            if self.known.contains(&number) || self.private.hides(&path) {
                break;
            }
            self.known.insert(number);
            self.nodes.insert(path, node);
        }
    }
}

/// The mount table, where some mount of it shows a node which another one shows as well. The whole of it then: which of
/// two names a node really has depends on every mount that may stand before it.
pub(super) fn aliases(host: &dyn Host) -> Vec<MountFact> {
    let mounts = host.mounts();
    let mut by_device: BTreeMap<(u32, u32), Vec<usize>> = BTreeMap::new();
    for (index, mount) in mounts.iter().enumerate() {
        by_device.entry(mount.device).or_default().push(index);
    }
    let shared = |index: usize| {
        let mount = &mounts[index];
        let same = by_device.get(&mount.device).into_iter().flatten().filter(|other| **other != index);
        same.map(|other| &mounts[*other])
            .any(|other| mount.root.is_inside(&other.root) || other.root.is_inside(&mount.root))
    };
    if (0..mounts.len()).any(shared) { mounts.to_vec() } else { Vec::new() }
}
