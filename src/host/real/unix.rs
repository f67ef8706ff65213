//! Linux and macOS: paths are bytes from `/`, base directories are XDG's, and who may write a file is in its mode.

mod names;

use super::LookError;
use crate::ir::{MountFact, Node, NodeKind};
use crate::sets::path::AbsPath;
#[cfg(target_os = "linux")]
use std::ffi::OsStr;
use std::ffi::OsString;
use std::fs::{self, Metadata};
use std::io;
use std::net::IpAddr;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::os::unix::fs::{FileTypeExt, MetadataExt};
use std::path::{Path, PathBuf};

/// The variable that says where the home directory is.
pub const HOME: &str = "HOME";
/// Base directories (XDG base directory specification): the variable, and the default below the home directory. On macOS as
/// well, since that is where the programs look that policies are about.
pub const CONFIG: (&str, &str) = ("XDG_CONFIG_HOME", ".config");
pub const CACHE: (&str, &str) = ("XDG_CACHE_HOME", ".cache");
pub const DATA: (&str, &str) = ("XDG_DATA_HOME", ".local/share");

/// Settings of git for the whole machine.
// Elsewhere there is no one place, hence the option.
#[allow(clippy::unnecessary_wraps)]
pub fn git_settings() -> Option<PathBuf> {
    Some(PathBuf::from("/etc/gitconfig"))
}

/// The system's directory for temporary files, links followed.
pub fn temporary() -> PathBuf {
    if cfg!(target_os = "linux") {
        return PathBuf::from("/tmp");
    }
    let place = std::env::temp_dir();
    place.canonicalize().unwrap_or(place)
}

pub fn runtime() -> Option<PathBuf> {
    own_uid().map(|uid| PathBuf::from(format!("/run/user/{uid}"))).filter(|path| path.is_dir())
}

pub fn native(path: &AbsPath) -> io::Result<PathBuf> {
    let bytes = path.as_bytes().ok_or(io::ErrorKind::InvalidInput)?;
    Ok(OsString::from_vec(bytes).into())
}

/// Where the system's owner has settings for all.
pub fn owners_settings() -> PathBuf {
    PathBuf::from("/etc/srt")
}

pub fn spelled(path: &Path) -> String {
    path.display().to_string()
}

pub fn place(path: &Path) -> Option<AbsPath> {
    AbsPath::parse(path.as_os_str().as_bytes()).ok()
}

/// As a policy spells it.
pub fn value(path: PathBuf) -> Option<String> {
    path.into_os_string().into_string().ok()
}

pub fn name(name: OsString) -> Vec<u8> {
    name.into_vec()
}

/// What a link says.
pub fn target(path: PathBuf) -> Vec<u8> {
    path.into_os_string().into_vec()
}

#[allow(clippy::disallowed_methods)]
pub fn node(path: &Path) -> io::Result<Node> {
    Ok(node_of(&fs::symlink_metadata(path)?))
}

#[allow(clippy::disallowed_methods)]
pub fn is_executable(path: &Path) -> bool {
    fs::metadata(path).is_ok_and(|found| found.mode() & 0o111 != 0)
}

#[allow(clippy::disallowed_methods)]
pub fn names_of_file(path: &Path) -> u64 {
    fs::symlink_metadata(path).ok().filter(Metadata::is_file).map_or(1, |metadata| metadata.nlink())
}

pub fn names(mounts: &[MountFact], path: &AbsPath, most: usize) -> Option<Vec<Vec<u8>>> {
    let shown = mounts.iter().rev().find(|mount| path.is_inside(&mount.at))?;
    names::all(&native(path).ok()?, &shown.kind, most)
}

/// Whether someone other than us and root may change a file, or put another in its place. Its path has no links.
#[allow(clippy::disallowed_methods)]
pub fn writable_by_others(file: &Path) -> io::Result<bool> {
    let me = own_uid().unwrap_or(u32::MAX);
    let mut others = false;
    for (depth, place) in file.ancestors().enumerate() {
        let metadata = fs::symlink_metadata(place)?;
        let (mode, owner, group) = (metadata.mode(), metadata.uid(), metadata.gid());
        // In a directory with the sticky bit nobody else can replace what is ours (inode(7)).
        let sticky = depth > 0 && mode & 0o1000 != 0;
        // A group with the number of its owner is that user's own (useradd(8), USERGROUPS_ENAB).
        let by_group = mode & 0o020 != 0 && group != owner && group != 0;
        let by_all = mode & 0o002 != 0;
        // Root in a container reads files of whoever checked them out; naming one is trusting its owner.
        let owned = owner == me || owner == 0 || me == 0;
        others |= !owned || (!sticky && (by_group || by_all));
    }
    Ok(others)
}

fn node_of(metadata: &Metadata) -> Node {
    let kind = metadata.file_type();
    let kind = if kind.is_file() {
        NodeKind::File
    } else if kind.is_dir() {
        NodeKind::Directory
    } else if kind.is_symlink() {
        NodeKind::Link
    } else if kind.is_socket() {
        NodeKind::Socket
    } else if kind.is_fifo() {
        NodeKind::Fifo
    } else {
        NodeKind::Device
    };
    Node { kind, device: metadata.dev(), inode: metadata.ino() }
}

/// No place has two names by mounts, as far as anybody knows.
#[cfg(not(target_os = "linux"))]
// Elsewhere there are errors.
#[allow(clippy::unnecessary_wraps)]
pub fn mounts() -> Result<Vec<MountFact>, LookError> {
    Ok(Vec::new())
}

#[cfg(target_os = "linux")]
#[allow(clippy::disallowed_methods)]
pub fn mounts() -> Result<Vec<MountFact>, LookError> {
    use std::io::Read as _;
    let path = "/proc/self/mountinfo";
    // Its size is said to be 0: with room for it all, it is read at once.
    let mut table = Vec::with_capacity(32 << 10);
    let read = fs::File::open(path).and_then(|mut file| file.read_to_end(&mut table));
    read.map_err(|source| LookError::Mounts { path, source })?;
    Ok(crate::host::mountinfo::parse(&table))
}

/// The machine's own addresses.
#[cfg(target_os = "linux")]
pub fn addresses() -> Vec<IpAddr> {
    crate::host::address::parse(&text("/proc/net/fib_trie"), &text("/proc/net/if_inet6"))
}

/// The machine's own addresses.
#[cfg(not(target_os = "linux"))]
pub fn addresses() -> Vec<IpAddr> {
    let interfaces = nix::ifaddrs::getifaddrs().into_iter().flatten();
    let address = |address: nix::sys::socket::SockaddrStorage| {
        let four = address.as_sockaddr_in().map(|four| IpAddr::V4(four.ip()));
        four.or_else(|| address.as_sockaddr_in6().map(|six| IpAddr::V6(six.ip())))
    };
    let mut addresses: Vec<IpAddr> = interfaces.filter_map(|one| address(one.address?)).collect();
    addresses.sort_unstable();
    addresses.dedup();
    addresses
}

/// A table of the kernel's that may be missing (no IPv6, no procfs): then it says nothing.
#[allow(clippy::disallowed_methods)]
#[cfg(target_os = "linux")]
fn text(path: &str) -> String {
    fs::read_to_string(path).unwrap_or_default()
}

/// Our user: the owner of our own entry in procfs.
#[cfg(target_os = "linux")]
#[allow(clippy::disallowed_methods)]
fn own_uid() -> Option<u32> {
    fs::metadata("/proc/self").ok().map(|metadata| metadata.uid())
}

/// Our user.
#[cfg(not(target_os = "linux"))]
#[allow(clippy::unnecessary_wraps)]
fn own_uid() -> Option<u32> {
    Some(nix::unistd::getuid().as_raw())
}

/// The home directory that the system's directory of users gives our user.
#[cfg(not(target_os = "linux"))]
pub fn home_of_user() -> Option<PathBuf> {
    let user = nix::unistd::User::from_uid(nix::unistd::getuid()).ok()??;
    Some(user.dir).filter(|home| !home.as_os_str().is_empty())
}

/// The home directory that `/etc/passwd` (passwd(5)) gives our user.
#[cfg(target_os = "linux")]
#[allow(clippy::disallowed_methods)]
pub fn home_of_user() -> Option<PathBuf> {
    let uid = own_uid()?.to_string();
    let table = fs::read("/etc/passwd").ok()?;
    table.split(|byte| *byte == b'\n').find_map(|line| {
        let fields: Vec<_> = line.split(|byte| *byte == b':').collect();
        let home = *fields.get(5).filter(|_| fields.get(2) == Some(&uid.as_bytes()))?;
        (!home.is_empty()).then(|| PathBuf::from(OsStr::from_bytes(home)))
    })
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::disallowed_methods)]
    use super::NodeKind;
    use crate::host::Host;
    use crate::host::real::{Machine, read_policy};
    use crate::sets::path::AbsPath;
    use std::collections::BTreeMap;
    use std::fs::{self, Permissions};
    use std::os::unix::fs::{PermissionsExt, symlink};
    use std::path::Path;

    fn path(path: &Path) -> AbsPath {
        AbsPath::parse(path.as_os_str().as_encoded_bytes()).unwrap()
    }

    #[test]
    fn shows_what_is_there() {
        let directory = tempfile::tempdir().unwrap();
        let root = fs::canonicalize(directory.path()).unwrap();
        fs::create_dir(root.join("d")).unwrap();
        fs::write(root.join("d/f"), "x").unwrap();
        symlink("d/../d", root.join("l")).unwrap();
        let machine = Machine::look(Some(&root.join("l")), BTreeMap::from([("x".to_owned(), "y".to_owned())])).unwrap();
        assert_eq!(machine.variable("WORKSPACE").as_deref(), root.join("d").to_str(), "by its real name");
        assert_eq!(machine.variable("x").as_deref(), Some("y"));
        assert_eq!(machine.variable("nothing"), None);
        assert_eq!(machine.variable("env.SRT_TEST_THAT_NOBODY_SETS"), None);
        let root = path(&root);
        let kind = |name: &str| machine.node(&root.join(name)).unwrap().map(|node| node.kind);
        assert_eq!((kind("d"), kind("l"), kind("n")), (Some(NodeKind::Directory), Some(NodeKind::Link), None));
        assert_eq!(machine.node(&root.join("d").join("f").join("below a file")).unwrap(), None);
        assert_eq!(machine.read_link(&root.join("l")).unwrap(), b"d/../d");
        let mut names = machine.list(&root).unwrap();
        names.sort();
        assert_eq!(names, [(b"d".to_vec(), true), (b"l".to_vec(), false)], "a link to a directory is none");
        if cfg!(target_os = "linux") {
            assert!(machine.mounts().iter().any(|mount| mount.at == AbsPath::root()), "{:?}", machine.mounts());
        }
        assert!(Machine::look(Some(Path::new("/nowhere/at/all")), BTreeMap::new()).is_err());
    }

    #[test]
    fn a_policy_that_others_may_change_is_told_apart() {
        let directory = tempfile::tempdir().unwrap();
        let root = directory.path();
        let file = root.join("a.policy");
        fs::write(&file, "srt 1\n").unwrap();
        let others = |file: u32, directory: u32| {
            fs::set_permissions(root.join("a.policy"), Permissions::from_mode(file)).unwrap();
            fs::set_permissions(root, Permissions::from_mode(directory)).unwrap();
            read_policy(file_name(root).as_str()).unwrap().writable_by_others
        };
        fn file_name(root: &Path) -> String {
            root.join("a.policy").to_str().unwrap().to_owned()
        }
        assert!(!others(0o644, 0o755));
        assert!(others(0o646, 0o755));
        assert!(others(0o644, 0o777), "they can put another file there");
        assert!(!others(0o644, 0o1777), "the sticky bit keeps them from it");
        assert!(read_policy("/nowhere/a.policy").is_err());
        fs::write(&file, [0xff, 0xfe]).unwrap();
        assert_eq!(read_policy(file.to_str().unwrap()).unwrap_err().kind(), std::io::ErrorKind::InvalidData);
    }
}
