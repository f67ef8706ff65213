//! What `bind` saw on the machine, as plain data beside the rules.

use super::policy::RuleId;
use crate::sets::path::AbsPath;
use std::collections::BTreeMap;
use std::net::IpAddr;

/// Everything known of the machine that the policy is bound to.
#[derive(Debug, Clone, Default)]
pub struct Facts {
    /// The values of the variables the policy uses: `HOME`, `WORKSPACE`, `TMP`, `env.X`, …
    pub variables: BTreeMap<String, String>,
    /// Each link met on a literal prefix of a rule.
    pub links: Vec<LinkFact>,
    /// The mount table, for aliases: the same node under another name.
    pub mounts: Vec<MountFact>,
    /// The nodes that rules name: literal targets, links resolved, and what globs expanded to. A path that rules name
    /// and that is not here does not exist.
    pub nodes: BTreeMap<AbsPath, Node>,
    /// What each rule's globs (its `except` included) expanded to.
    pub expansions: Vec<(RuleId, AbsPath)>,
    /// This machine's own addresses: special to a connection.
    pub own_addresses: Vec<IpAddr>,
}

/// A symbolic link and the place it leads to in the end.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LinkFact {
    pub at: AbsPath,
    /// Absolute and resolved as far as it exists.
    pub to: AbsPath,
}

/// A line of the mount table.
#[derive(Debug, Clone, PartialEq, Eq)]
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
