//! The nodes that rules name, and the mounts by which one node has several names.

use super::link::Links;
use super::private::Private;
use crate::host::Host;
use crate::ir::{Facts, MountFact, Node, Policy, Subject};
use crate::sets::path::AbsPath;
use std::collections::BTreeMap;

/// The nodes at each literal target, at each literal prefix of a pattern, at what globs expanded to, and at every
/// directory on the way to one of these, as far as they exist; and the same for the other names of each by `mounts`.
pub(super) fn named(
    policy: &Policy,
    expansions: &[AbsPath],
    mounts: &[MountFact],
    private: &Private,
    links: &mut Links<'_>,
) -> BTreeMap<AbsPath, Node> {
    let mut nodes = BTreeMap::new();
    let mut add = |place: &AbsPath| {
        way_to(place, private, links, &mut nodes);
    };
    let rules = policy.rules.iter().map(|rule| &rule.subject);
    for subject in rules.chain(policy.expects.iter().map(|expect| &expect.subject)) {
        if let Subject::Paths(set) = subject {
            for pattern in set.include.iter().chain(&set.exclude) {
                add(&pattern.literal_prefix());
            }
        }
    }
    for place in expansions {
        add(place);
    }
    if !mounts.is_empty() {
        let facts = Facts { nodes, mounts: mounts.to_vec(), ..Facts::default() };
        let others: Vec<AbsPath> = facts.nodes.keys().flat_map(|path| facts.aliases(path)).collect();
        nodes = facts.nodes;
        for other in &others {
            way_to(other, private, links, &mut nodes);
        }
    }
    nodes
}

fn way_to(place: &AbsPath, private: &Private, links: &mut Links<'_>, nodes: &mut BTreeMap<AbsPath, Node>) {
    if links.is_own(place) || private.hides(place) {
        return;
    }
    // From below: once a directory is known, so is the way to it.
    let mut at = Some(place.clone());
    while let Some(path) = at.filter(|path| !nodes.contains_key(path) && !private.hides(path)) {
        if let Ok(Some(node)) = links.node(&path) {
            nodes.insert(path.clone(), node);
        }
        at = path.parent();
    }
}

/// The mounts that show a node which another mount shows as well.
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
    (0..mounts.len()).filter(|index| shared(*index)).map(|index| mounts[index].clone()).collect()
}
