//! The machine we run on: its environment, mount table and addresses as they were when it was first looked at, its files
//! as they are when asked.

use super::{Host, address, git, mountinfo, names};
use crate::ir::{MountFact, Node, NodeKind};
use crate::sets::path::AbsPath;
use std::collections::BTreeMap;
use std::ffi::{OsStr, OsString};
use std::fs::{self, Metadata};
use std::io::{self, Read};
use std::net::IpAddr;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::os::unix::fs::{FileTypeExt, MetadataExt};
use std::path::{Path, PathBuf};
use std::sync::OnceLock;

/// The real machine.
#[derive(Debug, Clone)]
pub struct Machine {
    environment: BTreeMap<OsString, OsString>,
    home: Option<PathBuf>,
    workspace: PathBuf,
    common_directory: Option<PathBuf>,
    runtime: Option<PathBuf>,
    defines: BTreeMap<String, String>,
    mounts: Vec<MountFact>,
    addresses: OnceLock<Vec<IpAddr>>,
}

/// Why the machine could not be looked at.
#[derive(Debug, thiserror::Error)]
pub enum LookError {
    #[error("the workspace `{path}` can't be entered")]
    Workspace { path: String, source: io::Error },
    #[error("the directory this was started in can't be named")]
    Current { source: io::Error },
    #[error("the mount table can't be read from `{path}`")]
    Mounts { path: &'static str, source: io::Error },
}

/// A policy's text and what must be known of its file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PolicyText {
    pub text: String,
    /// Someone other than us and root may change it, or put another file in its place.
    pub writable_by_others: bool,
}

#[allow(clippy::disallowed_methods)]
impl Machine {
    /// Looks at the machine: `workspace` is the one given, or the directory we were started in.
    ///
    /// # Errors
    /// See [`LookError`].
    pub fn look(workspace: Option<&Path>, defines: BTreeMap<String, String>) -> Result<Self, LookError> {
        let workspace = match workspace {
            Some(path) => fs::canonicalize(path)
                .map_err(|source| LookError::Workspace { path: path.display().to_string(), source })?,
            None => std::env::current_dir().map_err(|source| LookError::Current { source })?,
        };
        let environment: BTreeMap<_, _> = std::env::vars_os().collect();
        let mounts = mounts()?;
        let home = environment.get(OsStr::new("HOME")).filter(|home| !home.is_empty()).map(PathBuf::from);
        let home = home.or_else(home_of_user);
        let common_directory = git::common_directory(&workspace);
        let runtime = own_uid().map(|uid| PathBuf::from(format!("/run/user/{uid}"))).filter(|path| path.is_dir());
        Ok(Self {
            environment,
            home,
            workspace,
            common_directory,
            runtime,
            defines,
            mounts,
            addresses: OnceLock::new(),
        })
    }

    /// The directory that the policy calls `$WORKSPACE`.
    pub fn workspace(&self) -> &Path {
        &self.workspace
    }

    /// An XDG base directory: the variable where it holds an absolute path (the specification has others ignored), else
    /// its default below the home directory.
    fn base(&self, variable: &str, default: &str) -> Option<PathBuf> {
        self.absolute(variable).or_else(|| self.home.as_ref().map(|home| home.join(default)))
    }

    fn absolute(&self, variable: &str) -> Option<PathBuf> {
        self.environment.get(OsStr::new(variable)).map(PathBuf::from).filter(|path| path.is_absolute())
    }
}

#[allow(clippy::disallowed_methods)]
impl Host for Machine {
    fn variable(&self, name: &str) -> Option<String> {
        let path = match name {
            "HOME" => self.home.clone(),
            "WORKSPACE" => Some(self.workspace.clone()),
            // What the run is given under this name is its own; see `bind`.
            "TMP" => Some(PathBuf::from("/tmp")),
            "GIT_COMMON_DIR" => self.common_directory.clone(),
            "CONFIG" => self.base("XDG_CONFIG_HOME", ".config"),
            "CACHE" => self.base("XDG_CACHE_HOME", ".cache"),
            "DATA" => self.base("XDG_DATA_HOME", ".local/share"),
            "RUNTIME" => self.absolute("XDG_RUNTIME_DIR").or_else(|| self.runtime.clone()),
            _ => match name.strip_prefix("env.") {
                Some(name) => {
                    self.environment.get(OsStr::new(name)).filter(|value| !value.is_empty()).map(PathBuf::from)
                }
                None => return self.defines.get(name).cloned(),
            },
        };
        path.and_then(|path| path.into_os_string().into_string().ok())
    }

    fn node(&self, path: &AbsPath) -> io::Result<Option<Node>> {
        match fs::symlink_metadata(native(path)?) {
            Ok(metadata) => Ok(Some(node(&metadata))),
            Err(error) if absent(&error) => Ok(None),
            Err(error) => Err(error),
        }
    }

    fn read_link(&self, path: &AbsPath) -> io::Result<Vec<u8>> {
        Ok(fs::read_link(native(path)?)?.into_os_string().into_vec())
    }

    fn list(&self, path: &AbsPath) -> io::Result<Vec<(Vec<u8>, bool)>> {
        let mut names = Vec::new();
        for entry in fs::read_dir(native(path)?)? {
            let entry = entry?;
            // From the directory itself where the file system says it there: no look at each node.
            let directory = entry.file_type().is_ok_and(|kind| kind.is_dir());
            names.push((entry.file_name().into_vec(), directory));
        }
        Ok(names)
    }

    fn names(&self, path: &AbsPath, most: usize) -> Option<Vec<Vec<u8>>> {
        let shown = self.mounts.iter().rev().find(|mount| path.is_inside(&mount.at))?;
        names::all(Path::new(&native(path).ok()?), &shown.kind, most)
    }

    fn file(&self, name: &str) -> Vec<AbsPath> {
        // What is no file (a flag, an embedded module) has no place, and nothing is known of it.
        let (Ok(named), Ok(real)) = (std::path::absolute(name), fs::canonicalize(name)) else { return Vec::new() };
        let mut places: Vec<AbsPath> =
            [named, real].iter().filter_map(|path| AbsPath::parse(path.as_os_str().as_bytes()).ok()).collect();
        places.dedup();
        places
    }

    fn names_of_file(&self, path: &AbsPath) -> u64 {
        let metadata = native(path).and_then(fs::symlink_metadata);
        metadata.ok().filter(Metadata::is_file).map_or(1, |metadata| metadata.nlink())
    }

    fn hooks(&self) -> Option<AbsPath> {
        let global = self.base("XDG_CONFIG_HOME", ".config").map(|config| config.join("git/config"));
        let own = self.home.as_ref().map(|home| home.join(".gitconfig"));
        let local = self.common_directory.as_ref().map(|common| common.join("config"));
        let settings = [Some(PathBuf::from("/etc/gitconfig")), global, own, local];
        let hooks = git::hooks(settings.into_iter().flatten(), self.home.as_deref(), &self.workspace)?;
        AbsPath::parse(hooks.as_os_str().as_bytes()).ok()
    }

    fn mounts(&self) -> &[MountFact] {
        &self.mounts
    }

    fn addresses(&self) -> &[IpAddr] {
        // Most policies have no use for them.
        self.addresses.get_or_init(|| address::parse(&text("/proc/net/fib_trie"), &text("/proc/net/if_inet6")))
    }
}

/// Reads a policy, or a table beside one, with what must be known of its file.
///
/// # Errors
/// Whatever reading it fails with; a text that is not UTF-8 is `InvalidData`.
#[allow(clippy::disallowed_methods)]
pub fn read_policy(path: &str) -> io::Result<PolicyText> {
    let text = bounded_text(path)?;
    let me = own_uid().unwrap_or(u32::MAX);
    let file = fs::canonicalize(path)?;
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
    Ok(PolicyText { text, writable_by_others: others })
}

/// A policy is text that people read; more than this is a mistake or an attack.
pub const LARGEST: u64 = 64 << 20;

#[allow(clippy::disallowed_methods)]
fn bounded_text(path: &str) -> io::Result<String> {
    let file = fs::File::open(path)?;
    // Looked at through the descriptor, so that what is judged is what is read.
    let metadata = file.metadata()?;
    if metadata.is_dir() {
        return Err(io::Error::new(io::ErrorKind::IsADirectory, "it is a directory"));
    }
    if metadata.len() > LARGEST {
        return Err(io::Error::new(io::ErrorKind::FileTooLarge, "it is larger than 64 MiB"));
    }
    let mut text = String::new();
    file.take(LARGEST).read_to_string(&mut text).map_err(|error| match error.kind() {
        io::ErrorKind::InvalidData => io::Error::new(io::ErrorKind::InvalidData, "it is not UTF-8"),
        _ => error,
    })?;
    Ok(text)
}

fn native(path: &AbsPath) -> io::Result<OsString> {
    path.as_bytes().map(OsString::from_vec).ok_or_else(|| io::Error::from(io::ErrorKind::InvalidInput))
}

fn absent(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::NotADirectory)
}

fn node(metadata: &Metadata) -> Node {
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

#[allow(clippy::disallowed_methods)]
fn mounts() -> Result<Vec<MountFact>, LookError> {
    if cfg!(not(target_os = "linux")) {
        return Ok(Vec::new());
    }
    let path = "/proc/self/mountinfo";
    // Its size is said to be 0: with room for it all, it is read at once.
    let mut table = Vec::with_capacity(32 << 10);
    let read = fs::File::open(path).and_then(|mut file| file.read_to_end(&mut table));
    read.map_err(|source| LookError::Mounts { path, source })?;
    Ok(mountinfo::parse(&table))
}

/// A table of the kernel's that may be missing (no IPv6, no procfs): then it says nothing.
#[allow(clippy::disallowed_methods)]
fn text(path: &str) -> String {
    fs::read_to_string(path).unwrap_or_default()
}

/// Our user: the owner of our own entry in procfs.
#[allow(clippy::disallowed_methods)]
fn own_uid() -> Option<u32> {
    fs::metadata("/proc/self").ok().map(|metadata| metadata.uid())
}

/// The home directory that `/etc/passwd` (passwd(5)) gives our user.
#[allow(clippy::disallowed_methods)]
fn home_of_user() -> Option<PathBuf> {
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
    use super::{Host, Machine, NodeKind, read_policy};
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
