//! A machine described in a string, for tests and the book: one node, mount, variable or address a line.
//!
//! ```text
//! d /home/u              a directory (those on the way to a node are there as well)
//! f /home/u/.ssh/id      a file
//! h /srv/id -> /home/u/.ssh/id   another name of a file
//! g /home/u/hooks        the directory that git's core.hooksPath names
//! l /tmp/x -> /etc       a link
//! x /root                a directory that may not be entered
//! s /run/x.sock          a socket; p a fifo, c a device
//! m ext4 8:1 / /home ro  a mount: kind, device, root, place, and `ro` or nothing
//! v HOME=/home/u         a variable
//! a 10.0.0.5             an address of the machine
//! # a comment
//! ```

use super::Host;
use crate::ir::{MountFact, Node, NodeKind};
use crate::sets::path::AbsPath;
use std::collections::BTreeMap;
use std::io;
use std::net::IpAddr;

/// The described machine.
#[derive(Debug, Clone, Default)]
pub struct Listing {
    nodes: BTreeMap<AbsPath, (NodeKind, Vec<u8>)>,
    mounts: Vec<MountFact>,
    variables: BTreeMap<String, String>,
    addresses: Vec<IpAddr>,
    /// Directories that may not be listed, nor what is below them looked at.
    closed: Vec<AbsPath>,
    /// Other names of files.
    names: BTreeMap<AbsPath, AbsPath>,
    hooks: Option<AbsPath>,
}

/// A line that says nothing.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("line {line} of the listing is not understood: `{text}`")]
pub struct ListingError {
    pub line: usize,
    pub text: String,
}

impl Listing {
    /// Reads a description.
    ///
    /// # Errors
    /// The first line that says nothing.
    pub fn parse(text: &str) -> Result<Self, ListingError> {
        let mut listing = Listing::default();
        listing.nodes.insert(AbsPath::root(), (NodeKind::Directory, Vec::new()));
        for (at, line) in text.lines().enumerate() {
            let line = line.trim();
            if !line.is_empty() && !line.starts_with('#') {
                listing.line(line).ok_or_else(|| ListingError { line: at + 1, text: line.to_owned() })?;
            }
        }
        Ok(listing)
    }

    fn line(&mut self, line: &str) -> Option<()> {
        let (word, rest) = line.split_once(' ')?;
        let rest = rest.trim();
        let kind = match word {
            "d" => NodeKind::Directory,
            "f" => NodeKind::File,
            "s" => NodeKind::Socket,
            "p" => NodeKind::Fifo,
            "c" => NodeKind::Device,
            "l" => {
                let (at, to) = rest.split_once(" -> ")?;
                return self.add(at, NodeKind::Link, to.as_bytes());
            }
            "h" => {
                let (at, to) = rest.split_once(" -> ")?;
                self.names.insert(AbsPath::parse(at).ok()?, AbsPath::parse(to).ok()?);
                return self.add(at, NodeKind::File, b"");
            }
            "g" => {
                self.hooks = Some(AbsPath::parse(rest).ok()?);
                NodeKind::Directory
            }
            // A directory that our user may not enter.
            "x" => {
                self.closed.push(AbsPath::parse(rest).ok()?);
                NodeKind::Directory
            }
            "v" => {
                let (name, value) = rest.split_once('=')?;
                self.variables.insert(name.to_owned(), value.to_owned());
                return Some(());
            }
            "a" => {
                self.addresses.push(rest.parse().ok()?);
                return Some(());
            }
            "m" => return self.mount(rest),
            _ => return None,
        };
        self.add(rest, kind, b"")
    }

    fn mount(&mut self, rest: &str) -> Option<()> {
        let fields: Vec<_> = rest.split_whitespace().collect();
        let (kind, device, root, at, read_only) = match fields.as_slice() {
            [kind, device, root, at] => (kind, device, root, at, false),
            [kind, device, root, at, "ro"] => (kind, device, root, at, true),
            _ => return None,
        };
        let (major, minor) = device.split_once(':')?;
        let at = AbsPath::parse(at).ok()?;
        self.mounts.push(MountFact {
            device: (major.parse().ok()?, minor.parse().ok()?),
            root: AbsPath::parse(root).ok()?,
            at: at.clone(),
            kind: (*kind).to_owned(),
            read_only,
        });
        self.way(&at);
        Some(())
    }

    fn add(&mut self, at: &str, kind: NodeKind, to: &[u8]) -> Option<()> {
        let at = AbsPath::parse(at).ok()?;
        self.way(&at.parent()?);
        self.nodes.insert(at, (kind, to.to_vec()));
        Some(())
    }

    fn way(&mut self, to: &AbsPath) {
        for place in to.ancestors() {
            self.nodes.entry(place).or_insert((NodeKind::Directory, Vec::new()));
        }
    }

    /// The device a place is on, and its path in that file system: one node has one of these under all its names.
    fn identity(&self, path: &AbsPath) -> (u64, u64) {
        let path = self.names.get(path).unwrap_or(path);
        let mount = self.mounts.iter().rev().filter(|mount| path.is_inside(&mount.at));
        let mount = mount.max_by_key(|mount| mount.at.segments.len());
        let (device, inner) = match mount {
            Some(mount) => {
                let below = path.below(&mount.at).unwrap_or_default();
                let device = u64::from(mount.device.0) << 8 | u64::from(mount.device.1);
                (device, mount.root.join_all(below))
            }
            None => (1, path.clone()),
        };
        // FNV-1a over the inner path: equal for equal paths, which is all that is asked.
        let hash = inner
            .to_string()
            .bytes()
            .fold(0xcbf2_9ce4_8422_2325_u64, |hash, byte| (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3));
        (device, hash)
    }

    fn entered(&self, path: &AbsPath) -> io::Result<()> {
        let closed = self.closed.iter().any(|closed| path != closed && path.is_inside(closed));
        if closed { Err(io::ErrorKind::PermissionDenied.into()) } else { Ok(()) }
    }
}

impl Host for Listing {
    fn variable(&self, name: &str) -> Option<String> {
        self.variables.get(name).cloned()
    }

    fn node(&self, path: &AbsPath) -> io::Result<Option<Node>> {
        self.entered(path)?;
        Ok(self.nodes.get(path).map(|(kind, _)| {
            let (device, inode) = self.identity(path);
            Node { kind: *kind, device, inode }
        }))
    }

    fn read_link(&self, path: &AbsPath) -> io::Result<Vec<u8>> {
        self.entered(path)?;
        match self.nodes.get(path) {
            Some((NodeKind::Link, to)) => Ok(to.clone()),
            Some(_) => Err(io::ErrorKind::InvalidInput.into()),
            None => Err(io::ErrorKind::NotFound.into()),
        }
    }

    fn list(&self, path: &AbsPath) -> io::Result<Vec<(Vec<u8>, bool)>> {
        self.entered(path)?;
        if self.closed.contains(path) {
            return Err(io::ErrorKind::PermissionDenied.into());
        }
        let below = self.nodes.range(path.clone()..).skip(1).take_while(|(at, _)| at.is_inside(path));
        let here = below.filter(|(at, _)| at.segments.len() == path.segments.len() + 1);
        Ok(here.filter_map(|(at, (kind, _))| Some((at.name()?.to_vec(), *kind == NodeKind::Directory))).collect())
    }

    fn names(&self, path: &AbsPath, most: usize) -> Option<Vec<Vec<u8>>> {
        let names = self.list(path).ok().filter(|names| names.len() <= most)?;
        Some(names.into_iter().map(|(name, _)| name).collect())
    }

    fn file(&self, name: &str) -> Vec<AbsPath> {
        AbsPath::parse(name).into_iter().collect()
    }

    fn names_of_file(&self, path: &AbsPath) -> u64 {
        let file = self.names.get(path).unwrap_or(path);
        1 + self.names.values().filter(|other| *other == file).count() as u64
    }

    fn hooks(&self) -> Option<AbsPath> {
        self.hooks.clone()
    }

    fn mounts(&self) -> &[MountFact] {
        &self.mounts
    }

    fn addresses(&self) -> &[IpAddr] {
        &self.addresses
    }
}

/// An example machine, for where no machine is looked at: the usual places, and a small project in the workspace.
const NOMINAL: &str = "
v HOME=/home/user
v WORKSPACE=/home/user/workspace
v TMP=/tmp
v GIT_COMMON_DIR=/home/user/workspace/.git
v CONFIG=/home/user/.config
v CACHE=/home/user/.cache
v DATA=/home/user/.local/share
v RUNTIME=/run/user/1000
d /home/user/.config
d /home/user/.cache
d /home/user/.local/share
d /home/user/workspace/.git
d /home/user/workspace/src
f /home/user/workspace/Cargo.lock
d /usr/bin
d /usr/lib
d /etc
d /tmp
";

/// The machine that policies are checked against where none is looked at.
pub fn nominal() -> Listing {
    // Its lines are ours, and a test reads them: what is not understood leaves an empty machine, on which less holds.
    Listing::parse(NOMINAL).unwrap_or_default()
}

impl Listing {
    /// The same machine with more lines.
    ///
    /// # Errors
    /// The first line that says nothing.
    pub fn with(mut self, text: &str) -> Result<Self, ListingError> {
        let more = Self::parse(text)?;
        self.nodes.extend(more.nodes);
        self.mounts.extend(more.mounts);
        self.variables.extend(more.variables);
        self.addresses.extend(more.addresses);
        self.closed.extend(more.closed);
        self.names.extend(more.names);
        self.hooks = more.hooks.or(self.hooks);
        Ok(self)
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::{Host, Listing, nominal};
    use crate::ir::NodeKind;
    use crate::sets::path::AbsPath;

    fn path(text: &str) -> AbsPath {
        AbsPath::parse(text).unwrap()
    }

    #[test]
    fn the_nominal_machine_is_understood() {
        assert!(nominal().node(&path("/home/user/workspace/src")).unwrap().is_some());
    }

    #[test]
    fn describes_nodes_mounts_and_variables() {
        let listing = Listing::parse(
            "d /home/u\nf /home/u/.ssh/id\nl /tmp/x -> ../etc\nm ext4 8:1 / /\nm ext4 8:1 /home /mnt ro\nf /mnt/u/.ssh/id\nv HOME=/home/u\na ::1\n",
        )
        .unwrap();
        assert_eq!(listing.node(&path("/home/u/.ssh")).unwrap().unwrap().kind, NodeKind::Directory);
        assert_eq!(listing.node(&path("/nowhere")).unwrap(), None);
        assert_eq!(listing.read_link(&path("/tmp/x")).unwrap(), b"../etc");
        assert_eq!(listing.list(&path("/home/u")).unwrap(), [(b".ssh".to_vec(), true)]);
        let (one, other) = (listing.node(&path("/home/u/.ssh/id")), listing.node(&path("/mnt/u/.ssh/id")));
        assert_eq!(one.unwrap(), other.unwrap(), "one node under two names");
        assert_eq!(listing.variable("HOME").as_deref(), Some("/home/u"));
        assert_eq!(listing.addresses().len(), 1);
    }

    #[test]
    fn a_line_that_says_nothing_is_refused() {
        assert_eq!(Listing::parse("d /a\nq /b").unwrap_err().line, 2);
        assert!(Listing::parse("l /a").is_err());
        assert!(Listing::parse("d relative").is_err());
    }

    #[test]
    fn the_nominal_machine_has_values_and_little_else() {
        let host = nominal();
        assert_eq!(host.variable("HOME").as_deref(), Some("/home/user"));
        assert_eq!(host.node(&path("/home/user/.ssh")).unwrap(), None);
    }
}
