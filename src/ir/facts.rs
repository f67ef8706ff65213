//! What `bind` saw on the machine, as plain data beside the rules.

use super::rule::{Rule, RuleId, Subject};
use crate::sets::path::{AbsPath, FileName, PathSet, Pattern};
use crate::source::Span;
use crate::vocabulary::{Effect, Reach};
use std::collections::BTreeMap;
use std::net::IpAddr;

/// Everything known of the machine that the policy is bound to.
#[derive(Debug, Clone, Default)]
pub struct Facts {
    /// The values of the variables the policy uses: `HOME`, `WORKSPACE`, `TMP`, `env.X`, …
    pub variables: BTreeMap<String, String>,
    /// Each link met on a literal prefix of a rule.
    pub links: Vec<LinkFact>,
    /// Each link that a target leads through, and where the target is in the text.
    pub through: Vec<(AbsPath, Span)>,
    /// The mount table, for aliases: the same node under another name.
    pub mounts: Vec<MountFact>,
    /// For what denies: the paths that are other names, by the mount table, of what its set holds.
    pub elsewhere: Vec<(RuleId, PathSet)>,
    /// The nodes that rules name: literal targets, links resolved, and what globs expanded to. A path that rules name
    /// and that is not here does not exist.
    pub nodes: BTreeMap<AbsPath, Node>,
    /// What each rule's globs (its `except` included) expanded to: the nodes that a pattern's segments match, not what its
    /// reach adds; inside a whole tree that a pattern has taken it is not looked for again.
    pub expansions: Vec<(RuleId, AbsPath)>,
    /// This machine's own addresses: special to a connection.
    pub own_addresses: Vec<IpAddr>,
    /// The files that the policy was read from, each under every name by which it was reached.
    pub policies: Vec<AbsPath>,
    /// The directories in which the caller's shell looks for programs (`PATH`), links followed.
    pub search_path: Vec<AbsPath>,
    /// The directory of git hooks that `core.hooksPath` names for the workspace, links followed.
    pub hooks: Option<AbsPath>,
    /// Files that are denied and have other names; looked for only where findings are wanted.
    pub hard_links: Vec<HardLink>,
    /// File systems that are mounted inside trees that are allowed; the same.
    pub mounted: Vec<MountFact>,
    /// Rules that were left out because they decide nothing here but which rule it is that denies. Their variables are not
    /// bound, and no link is on their way.
    pub idle: Vec<Rule>,
}

/// A file with several names.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HardLink {
    /// The name under which it is denied.
    pub at: AbsPath,
    pub names: u64,
    /// Those of its other names that are known.
    pub others: Vec<AbsPath>,
}

/// A symbolic link and the place it leads to in the end.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LinkFact {
    pub at: AbsPath,
    /// Absolute and resolved as far as it exists.
    pub to: AbsPath,
}

/// A line of the mount table.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub struct MountFact {
    /// Major and minor number of the file system.
    pub device: (u32, u32),
    /// Which directory of the file system is mounted.
    pub root: AbsPath,
    pub at: AbsPath,
    /// `ext4`, `proc`, …
    pub kind: String,
    pub read_only: bool,
}

/// File systems of other machines, or of programs; a look into an `autofs` mounts one.
const FAR: &[&str] = &["9p", "afs", "autofs", "ceph", "cifs", "fuse", "ncpfs", "nfs", "nfs4", "smb3", "smbfs"];

/// Whether the files of such a file system may be elsewhere: mount(8)'s type, as the mount table has it.
pub fn is_far(kind: &str) -> bool {
    FAR.contains(&kind) || kind.starts_with("fuse.")
}

/// One node of the file system.
#[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub struct Node {
    pub kind: NodeKind,
    pub device: u64,
    pub inode: u64,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub enum NodeKind {
    File,
    Directory,
    Link,
    Socket,
    Fifo,
    /// A character or block device.
    Device,
}

impl Facts {
    /// What a rule denies at the other places of what it denies.
    pub fn elsewhere_of(&self, rule: RuleId) -> impl Iterator<Item = &PathSet> {
        self.elsewhere.iter().filter(move |(denied, _)| *denied == rule).map(|(_, set)| set)
    }

    /// Fills [`elsewhere`](Self::elsewhere) in for some rules: for each of two places at which one directory is mounted, what
    /// is denied at the one is denied at the other, where each is visible.
    pub fn fill_elsewhere(&mut self, rules: &[Rule]) {
        let mut elsewhere = Vec::new();
        for (here, there, hidden) in self.twins() {
            for (rule, id) in rules.iter().zip((0..).map(RuleId)).filter(|(rule, _)| rule.effect != Effect::Allow) {
                let Subject::Paths(set) = &rule.subject else { continue };
                let mut moved = set.moved(&there, &here);
                if !moved.include.is_empty() {
                    moved.exclude.extend(hidden.iter().map(|tree| Pattern::literal(tree, Reach::Tree)));
                    elsewhere.push((id, moved));
                }
            }
        }
        self.elsewhere = elsewhere;
    }

    /// Pairs of directories that the mount table shows as the same, and the trees below the first in which it does not.
    fn twins(&self) -> Vec<(AbsPath, AbsPath, Vec<AbsPath>)> {
        let mut twins = Vec::new();
        for (at, mount) in self.mounts.iter().enumerate() {
            for (other_at, other) in self.mounts.iter().enumerate() {
                if at == other_at || mount.device != other.device {
                    continue;
                }
                let (here, there) = if let Some(below) = other.root.below(&mount.root) {
                    (mount.at.join_all(below), other.at.clone())
                } else if let Some(below) = mount.root.below(&other.root) {
                    (mount.at.clone(), other.at.join_all(below))
                } else {
                    continue;
                };
                // What was mounted later stands before it.
                let later = |at: usize| self.mounts[at + 1..].iter().map(|mount| &mount.at);
                if later(at).any(|tree| here.is_inside(tree)) || later(other_at).any(|tree| there.is_inside(tree)) {
                    continue;
                }
                let mut hidden: Vec<AbsPath> = later(at).filter(|tree| tree.is_inside(&here)).cloned().collect();
                let behind = later(other_at).filter_map(|tree| Some(here.join_all(tree.below(&there)?)));
                hidden.extend(behind);
                twins.push((here, there, hidden));
            }
        }
        twins
    }

    /// The other names of the node at a path, whether or not there is one: each visible place at which the mount table shows
    /// the same directory of the same file system. Hard links are not looked for, nor what lies behind a network.
    pub fn aliases(&self, path: &AbsPath) -> Vec<AbsPath> {
        let Some((mount, below)) = self.mount_of(path) else { return Vec::new() };
        let here = &self.mounts[mount];
        let node = here.root.join_all(below);
        let mut aliases = Vec::new();
        for (index, other) in self.mounts.iter().enumerate() {
            if index == mount || other.device != here.device {
                continue;
            }
            let Some(below) = node.below(&other.root) else { continue };
            let alias = other.at.join_all(below);
            // Another mount may stand before it.
            if alias != *path
                && !aliases.contains(&alias)
                && self.mount_of(&alias).is_some_and(|(visible, _)| visible == index)
            {
                aliases.push(alias);
            }
        }
        aliases
    }

    /// The mount that shows a path, and the segments below where it is mounted: of those above the path the last one made.
    fn mount_of<'a>(&self, path: &'a AbsPath) -> Option<(usize, &'a [FileName])> {
        self.mounts.iter().enumerate().rev().find_map(|(index, mount)| Some((index, path.below(&mount.at)?)))
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::*;

    fn facts(lines: &[(u32, &str, &str)]) -> Facts {
        let mount = |&(device, root, at): &(u32, &str, &str)| MountFact {
            device: (0, device),
            root: AbsPath::parse(root).unwrap(),
            at: AbsPath::parse(at).unwrap(),
            kind: "ext4".into(),
            read_only: false,
        };
        Facts { mounts: lines.iter().map(mount).collect(), ..Facts::default() }
    }

    fn aliases(facts: &Facts, path: &str) -> Vec<String> {
        facts.aliases(&AbsPath::parse(path).unwrap()).iter().map(ToString::to_string).collect()
    }

    #[test]
    fn a_bind_mount_is_an_alias_both_ways() {
        let facts = facts(&[(1, "/", "/"), (1, "/home/u/data", "/srv/data")]);
        assert_eq!(aliases(&facts, "/home/u/data/x"), ["/srv/data/x"]);
        assert_eq!(aliases(&facts, "/srv/data/x"), ["/home/u/data/x"]);
        assert_eq!(aliases(&facts, "/srv/data"), ["/home/u/data"]);
        assert_eq!(aliases(&facts, "/home/u/database"), [""; 0]);
        assert_eq!(aliases(&facts, "/home/u"), [""; 0]);
    }

    #[test]
    fn devices_are_apart() {
        let facts = facts(&[(1, "/", "/"), (2, "/", "/mnt")]);
        assert_eq!(aliases(&facts, "/mnt/x"), [""; 0]);
    }

    #[test]
    fn what_another_mount_hides_is_no_name() {
        // Something else is mounted over the place that was bound.
        let over = facts(&[(1, "/", "/"), (1, "/a", "/b"), (2, "/", "/b")]);
        assert_eq!(aliases(&over, "/a/x"), [""; 0]);
        // The origin lies below a later mount.
        let above = facts(&[(1, "/", "/"), (1, "/home/u/a", "/b"), (2, "/", "/home")]);
        assert_eq!(aliases(&above, "/b/x"), [""; 0]);
        // A deeper mount takes part of a bound tree away.
        let part = facts(&[(1, "/", "/"), (1, "/a", "/b"), (2, "/", "/a/sub")]);
        assert_eq!(aliases(&part, "/a/x"), ["/b/x"]);
        assert_eq!(aliases(&part, "/b/sub/x"), [""; 0]);
    }

    #[test]
    fn a_tree_bound_twice_has_three_names() {
        let facts = facts(&[(1, "/", "/"), (1, "/a", "/b"), (1, "/a/c", "/d")]);
        assert_eq!(aliases(&facts, "/d/x"), ["/a/c/x", "/b/c/x"]);
    }
}
