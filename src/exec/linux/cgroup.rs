//! Limits of the whole tree by control groups (cgroup v2; Documentation/admin-guide/cgroup-v2.rst of the kernel): memory and processes
//! are held by the kernel, and the processor's time is summed by it, that of ended processes included.
//!
//! ```text
//! where one may be made (`place`), or a scope of systemd's (`scope`)
//!  └ a group of the run's own (`leaf`)   the command's processes, and nothing of ours; gone with the run (`caretaker`)
//! ```
//!
//! No process is moved but the sandbox's own, and `srt` itself where it is alone in what was handed to it. Where none can be had, [`tree`]
//! looks at the processes instead. What is in the group is watched by pid 1 (`watch`).
//!
//! [`tree`]: super::tree

mod caretaker;
mod leaf;
mod place;
mod scope;
mod watch;

pub use watch::{Files, Watch};

use crate::backend::bubblewrap::Mount;
use crate::backend::limits::Limits;
use crate::ir::MountFact;
use leaf::Leaf;
use nix::unistd::Pid;
use place::{Hierarchy, How};
use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

/// A group with its limits in force. Dropped, it is removed, with whatever still runs in it.
pub struct Group {
    leaf: Leaf,
    how: &'static str,
}

/// Why there is none.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{found}")]
pub struct Lack {
    pub found: String,
    /// What a person can do about it.
    pub mend: &'static str,
}

const OF_DELEGATION: &str = "run srt in a systemd service or scope with `Delegate=yes`, or as a user whose systemd runs (`loginctl enable-linger`)";

impl Lack {
    pub fn new(found: impl Into<String>) -> Self {
        Self { found: found.into(), mend: OF_DELEGATION }
    }
}

/// The controllers that limits take. The processor's time is counted without one.
fn controllers(limits: &Limits) -> Vec<&'static str> {
    let wanted = [("memory", limits.memory.is_some()), ("pids", limits.processes.is_some())];
    wanted.into_iter().filter_map(|(name, wanted)| wanted.then_some(name)).collect()
}

/// Puts a process of ours, with one thread and no children, into a group that holds these limits of the whole tree: in what was handed
/// to us, else in a scope that systemd makes. `keeper` is another one of ours, which outlives it, and is held by nothing. Call it before
/// any thread exists. `inside` is what the command will see.
pub fn hold(process: Pid, keeper: Pid, limits: &Limits, mounts: &[MountFact], inside: &[Mount]) -> Result<Group, Lack> {
    let hierarchy = Hierarchy::find(mounts)?;
    if lets_write(inside, hierarchy.mount()) {
        let found = format!("a rule lets the command write in {}", hierarchy.mount().display());
        return Err(Lack { found, mend: "leave that rule out" });
    }
    hierarchy.offers(&controllers(limits))?;
    let own = hierarchy.choose(limits).and_then(|(place, how)| {
        let leaf = Leaf::make(place, how, &hierarchy.own(), process, limits)?;
        Ok(Group { leaf, how: "a control group" })
    });
    own.or_else(|own| {
        let leaf = scope::ask([process, keeper], limits, &hierarchy).and_then(|place| {
            let scope = place.group.clone();
            Leaf::make(place, How::StepAside, &scope, process, limits)
        });
        match leaf {
            Ok(leaf) => Ok(Group { leaf, how: "a scope of systemd's" }),
            Err(scope) => Err(Lack { found: format!("{own}; {scope}"), ..own }),
        }
    })
}

/// Whether something of a place is writable inside: then the command could change its limits, or go to another group.
fn lets_write(inside: &[Mount], place: &Path) -> bool {
    inside.iter().fold(false, |writable, mount| {
        let (path, write) = match mount {
            Mount::Bind { path, write, .. } => (path, *write),
            Mount::EmptyDirectory { path, .. } | Mount::Private { path, .. } => (path, false),
            _ => return writable,
        };
        let path = Path::new(OsStr::from_bytes(path));
        if place.starts_with(path) { write } else { writable || (write && path.starts_with(place)) }
    })
}

impl Group {
    /// What pid 1 watches, once.
    pub fn take_files(&mut self) -> Files {
        std::mem::take(&mut self.leaf.files)
    }

    /// Where it is, and by whose leave.
    pub fn says(&self) -> String {
        format!("{}, {}", self.how, self.leaf.path.display())
    }
}

/// A text of the kernel's, without the newline at its end.
fn read(path: PathBuf) -> std::io::Result<String> {
    std::fs::read_to_string(path).map(|text| text.trim_end().to_owned())
}

/// By one call, as the kernel wants it; nothing is made that is not there.
fn put(path: &Path, text: &str) -> std::io::Result<()> {
    use std::io::Write as _;
    std::fs::OpenOptions::new().write(true).open(path)?.write_all(text.as_bytes())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ir::{Node, NodeKind};

    #[test]
    fn what_covers_a_place_last_says_whether_it_is_writable() {
        let bind = |path: &str, write| {
            let node = Node { device: 1, inode: 1, kind: NodeKind::Directory };
            Mount::Bind { path: path.into(), node, write, exec: true }
        };
        let hidden = |path: &str| Mount::Private { path: path.into(), mode: 0o1777, exec: true };
        let writable = |inside: &[Mount]| lets_write(inside, Path::new("/sys/fs/cgroup"));
        assert!(!writable(&[bind("/work", true), bind("/sys", false), bind("/sys/fs/cgroup2", true)]));
        assert!(writable(&[bind("/", true), bind("/work", false)]));
        assert!(writable(&[bind("/sys/fs/cgroup", true)]));
        assert!(writable(&[bind("/sys", false), bind("/sys/fs/cgroup/user.slice", true)]));
        assert!(!writable(&[bind("/", true), bind("/sys", false)]));
        assert!(!writable(&[bind("/sys", true), hidden("/sys/fs/cgroup")]));
    }
}
