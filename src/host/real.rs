//! The machine we run on: its environment, mount table and addresses as they were when it was first looked at, its files
//! as they are when asked.
//!
//! What differs from system to system is in `unix` and `windows`, under the same names.

#[cfg(unix)]
mod unix;
#[cfg(windows)]
mod windows;

#[cfg(unix)]
use unix as system;
#[cfg(windows)]
use windows as system;

#[cfg(target_os = "linux")]
pub use system::mounts;

use super::{Host, git};
use crate::ir::{MountFact, Node};
use crate::sets::path::AbsPath;
use std::collections::BTreeMap;
use std::ffi::{OsStr, OsString};
use std::fs;
use std::io::{self, Read};
use std::net::IpAddr;
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
    temporary: PathBuf,
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
        let mounts = system::mounts()?;
        let home = environment.get(OsStr::new(system::HOME)).filter(|home| !home.is_empty()).map(PathBuf::from);
        let home = home.or_else(system::home_of_user);
        let common_directory = git::common_directory(&workspace);
        let runtime = system::runtime();
        Ok(Self {
            temporary: system::temporary(),
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

    /// The same machine, where `$TMP` is a directory that was made for one run.
    #[must_use]
    pub fn with_temporary(mut self, place: &Path) -> Self {
        self.temporary = fs::canonicalize(place).unwrap_or_else(|_| place.to_owned());
        self
    }

    /// A base directory: the variable where it holds an absolute path (the XDG specification has others ignored), else its
    /// default below the home directory.
    fn base(&self, (variable, default): (&str, &str)) -> Option<PathBuf> {
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
            // What a run on Linux is given under this name is its own; see `bind`.
            "TMP" => Some(self.temporary.clone()),
            "GIT_COMMON_DIR" => self.common_directory.clone(),
            "CONFIG" => self.base(system::CONFIG),
            "CACHE" => self.base(system::CACHE),
            "DATA" => self.base(system::DATA),
            "RUNTIME" => self.absolute("XDG_RUNTIME_DIR").or_else(|| self.runtime.clone()),
            _ => match name.strip_prefix("env.") {
                Some(name) => {
                    self.environment.get(OsStr::new(name)).filter(|value| !value.is_empty()).map(PathBuf::from)
                }
                None => return self.defines.get(name).cloned(),
            },
        };
        path.and_then(system::value)
    }

    fn node(&self, path: &AbsPath) -> io::Result<Option<Node>> {
        match system::native(path).and_then(|path| system::node(&path)) {
            Ok(node) => Ok(Some(node)),
            Err(error) if absent(&error) => Ok(None),
            Err(error) => Err(error),
        }
    }

    fn read_link(&self, path: &AbsPath) -> io::Result<Vec<u8>> {
        Ok(system::target(fs::read_link(system::native(path)?)?))
    }

    fn list(&self, path: &AbsPath) -> io::Result<Vec<(Vec<u8>, bool)>> {
        let mut names = Vec::new();
        for entry in fs::read_dir(system::native(path)?)? {
            let entry = entry?;
            // From the directory itself where the file system says it there: no look at each node.
            let directory = entry.file_type().is_ok_and(|kind| kind.is_dir());
            names.push((system::name(entry.file_name()), directory));
        }
        Ok(names)
    }

    fn names(&self, path: &AbsPath, most: usize) -> Option<Vec<Vec<u8>>> {
        system::names(&self.mounts, path, most)
    }

    fn file(&self, name: &str) -> Vec<AbsPath> {
        // What is no file (a flag, an embedded module) has no place, and nothing is known of it.
        let (Ok(named), Ok(real)) = (std::path::absolute(name), fs::canonicalize(name)) else { return Vec::new() };
        let mut places: Vec<AbsPath> = [named, real].iter().filter_map(|path| system::place(path)).collect();
        places.dedup();
        places
    }

    fn names_of_file(&self, path: &AbsPath) -> u64 {
        system::native(path).map_or(1, |path| system::names_of_file(&path))
    }

    fn hooks(&self) -> Option<AbsPath> {
        // git's own place for it, whatever the system's is.
        let global = self.base(("XDG_CONFIG_HOME", ".config")).map(|config| config.join("git/config"));
        let own = self.home.as_ref().map(|home| home.join(".gitconfig"));
        let local = self.common_directory.as_ref().map(|common| common.join("config"));
        let settings = [system::git_settings(), global, own, local];
        let hooks = git::hooks(settings.into_iter().flatten(), self.home.as_deref(), &self.workspace)?;
        system::place(&hooks)
    }

    fn mounts(&self) -> &[MountFact] {
        &self.mounts
    }

    fn addresses(&self) -> &[IpAddr] {
        // Most policies have no use for them.
        self.addresses.get_or_init(system::addresses)
    }
}

/// The caller's home directory, as the environment has it.
pub fn home() -> Option<PathBuf> {
    absolute_variable(system::HOME)
}

/// Where the system's owner puts what nobody's policy may exceed.
pub fn machine_ceiling() -> PathBuf {
    system::owners_settings().join("ceiling.policy")
}

/// A native path as people are shown it, and as policies name files: with `/` between names on every system.
pub fn spelled(path: &Path) -> String {
    system::spelled(path)
}

/// A native path as policies spell it; `None` where none can.
pub fn place(path: &Path) -> Option<AbsPath> {
    system::place(path)
}

/// Whether a file may be run at all, for want of a policy.
pub fn is_executable(path: &Path) -> bool {
    system::is_executable(path)
}

/// Where the caller's programs keep their settings: on Linux and macOS `$XDG_CONFIG_HOME` (XDG base directory specification: unset,
/// empty or relative means `~/.config`), on Windows `%APPDATA%`.
pub fn configuration() -> Option<PathBuf> {
    let (variable, default) = system::CONFIG;
    absolute_variable(variable).or_else(|| Some(home()?.join(default)))
}

#[allow(clippy::disallowed_methods)]
fn absolute_variable(name: &str) -> Option<PathBuf> {
    std::env::var_os(name).map(PathBuf::from).filter(|path| path.is_absolute())
}

/// Reads a policy, or a table beside one, with what must be known of its file.
///
/// # Errors
/// Whatever reading it fails with; a text that is not UTF-8 is `InvalidData`.
#[allow(clippy::disallowed_methods)]
pub fn read_policy(path: &str) -> io::Result<PolicyText> {
    let text = bounded_text(path)?;
    Ok(PolicyText { text, writable_by_others: system::writable_by_others(&fs::canonicalize(path)?)? })
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

fn absent(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::NotADirectory)
}
