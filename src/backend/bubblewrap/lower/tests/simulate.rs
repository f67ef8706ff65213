//! A machine as a list of paths, and what a plan's mounts make of it: the kernel's part, written without a look at how
//! the plan was made.

use super::{node, path};
use crate::backend::bubblewrap::{Mount, Plan, Root};
use crate::ir::{MountFact, Node, NodeKind};
use crate::sets::path::AbsPath;
use std::collections::BTreeMap;

/// The nodes of a machine.
#[derive(Debug, Clone)]
pub struct Listing {
    nodes: BTreeMap<AbsPath, Node>,
    pub mounts: Vec<MountFact>,
}

impl Listing {
    /// One path each, directories on the way implied: `/a/` a directory, `/a@` a link, `/a=` a socket, else a file.
    pub fn new(lines: &[&str]) -> Self {
        let mut nodes = BTreeMap::from([(AbsPath::root(), node(NodeKind::Directory, 1))]);
        for line in lines {
            let kinds = [('/', NodeKind::Directory), ('@', NodeKind::Link), ('=', NodeKind::Socket)];
            let marked = kinds.into_iter().find_map(|(mark, kind)| Some((line.strip_suffix(mark)?, kind)));
            let (text, kind) = marked.unwrap_or((line, NodeKind::File));
            let path = path(text);
            let mut inode = nodes.len() as u64 + 1;
            for above in path.parent().unwrap().ancestors() {
                nodes.entry(above).or_insert_with(|| node(NodeKind::Directory, inode));
                inode += 1;
            }
            nodes.insert(path, node(kind, inode));
        }
        Self { nodes, mounts: Vec::new() }
    }

    /// Says that `at` shows the same tree as `of`. The nodes of both must be listed.
    pub fn alias(&mut self, of: &str, at: &str) {
        let mount = |root: &str, at: &str| MountFact {
            device: (8, 1),
            root: path(root),
            at: path(at),
            kind: "ext4".into(),
            read_only: false,
        };
        self.mounts = vec![mount("/", "/"), mount(of, at)];
    }

    pub fn node(&self, path: &AbsPath) -> Option<Node> {
        self.nodes.get(path).copied()
    }

    pub fn paths(&self) -> impl Iterator<Item = &AbsPath> {
        self.nodes.keys()
    }
}

/// What stands at a path.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Seen {
    /// Nothing, or a directory on the way, which can be listed or not.
    Ours { listable: bool },
    /// The host's node.
    Host { write: bool, exec: bool },
    /// Something of the run's own.
    Private,
    /// A mask.
    Masked,
}

pub struct Simulation<'a> {
    plan: &'a Plan,
}

impl<'a> Simulation<'a> {
    pub fn new(plan: &'a Plan) -> Self {
        Self { plan }
    }

    /// Carries the operations out in their order: what is mounted later stands before what was mounted earlier, at its
    /// own path and below it.
    pub fn at(&self, wanted: &AbsPath) -> Seen {
        let mut seen = match self.plan.root {
            Root::Host { exec } => Seen::Host { write: false, exec },
            Root::Empty { listable } => Seen::Ours { listable: listable && wanted.segments.is_empty() },
        };
        for mount in &self.plan.mounts {
            let at = place(mount);
            let is_here = *wanted == at;
            // The executor makes the directories on the way to a mount point in a tmpfs of ours.
            if let Seen::Ours { .. } = seen
                && at.is_inside(wanted)
                && !is_here
                && !wanted.segments.is_empty()
                && !self.says_directory(wanted)
            {
                seen = Seen::Ours { listable: true };
            }
            if !wanted.is_inside(&at) {
                continue;
            }
            seen = match mount {
                Mount::Bind { write, exec, .. } => Seen::Host { write: *write, exec: *exec },
                Mount::EmptyDirectory { listable, .. } => Seen::Ours { listable: *listable && is_here },
                Mount::Directory { listable, .. } => {
                    assert!(matches!(seen, Seen::Ours { .. } | Seen::Private), "a directory made in the host at {at}");
                    if is_here { Seen::Ours { listable: *listable } } else { seen }
                }
                Mount::MaskFile { .. } => Seen::Masked,
                Mount::Private { .. } | Mount::Devices { .. } | Mount::Proc => Seen::Private,
                Mount::File { .. } | Mount::Symlink { .. } => {
                    assert!(matches!(seen, Seen::Ours { .. }), "made in the host at {at}");
                    Seen::Private
                }
            };
        }
        seen
    }

    fn says_directory(&self, wanted: &AbsPath) -> bool {
        self.plan.mounts.iter().any(|mount| match mount {
            Mount::Directory { .. } | Mount::EmptyDirectory { .. } => place(mount) == *wanted,
            _ => false,
        })
    }

    /// Whether something is mounted on the node itself, so that it cannot be renamed.
    pub fn is_mount_point(&self, wanted: &AbsPath) -> bool {
        let is_mounted = |mount: &&Mount| {
            !matches!(mount, Mount::Directory { .. } | Mount::File { .. } | Mount::Symlink { .. })
                && place(mount) == *wanted
        };
        self.plan.mounts.iter().find(is_mounted).is_some()
    }
}

fn place(mount: &Mount) -> AbsPath {
    let bytes = match mount {
        Mount::Bind { path, .. }
        | Mount::EmptyDirectory { path, .. }
        | Mount::Directory { path, .. }
        | Mount::MaskFile { path, .. }
        | Mount::Private { path, .. }
        | Mount::File { path, .. }
        | Mount::Symlink { path, .. } => &path[..],
        Mount::Devices { .. } => b"/dev",
        Mount::Proc => b"/proc",
    };
    AbsPath::parse(bytes).unwrap()
}
