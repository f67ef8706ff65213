//! The group of one run: made, entered by the command's process before that runs anything, and given its limits.
//!
//! The limits come last, since a group has no files for them until its parent has no process of its own.

use super::caretaker::{Caretaker, Charge};
use super::place::{How, Place, processes};
use super::watch::Files;
use super::{Lack, controllers, put};
use crate::backend::limits::Limits;
use nix::unistd::{Pid, getpid};
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

/// So many runs of the same number, in other process namespaces, may have theirs in one place.
const NAMES: u32 = 64;

/// Whoever is moved out of a group may make another process meanwhile.
const ROUNDS: u32 = 16;

/// Dropped, it is gone.
pub struct Leaf {
    pub path: PathBuf,
    pub files: Files,
    _caretaker: Caretaker,
}

impl Leaf {
    /// In a place that was chosen, for a process that is in `from`, and is there again where this fails. Of what the place holds these
    /// limits are watched.
    pub fn make(place: Place, how: How, from: &Path, process: Pid, limits: &Limits) -> Result<Leaf, Lack> {
        let Place { group: parent, limits: held } = place;
        let path = new_group(&parent, "")?;
        let aside = (how == How::StepAside).then(|| new_group(&parent, "-self")).transpose();
        let remove = |groups: &[&PathBuf]| groups.iter().for_each(|group| drop(fs::remove_dir(group)));
        let aside = aside.inspect_err(|_| remove(&[&path]))?;
        let (leaf, group) = (path.clone(), aside.clone());
        let charge = Charge { leaf, parent: parent.clone(), aside: group, controllers: controllers(&held) };
        // From now on it is gone with this process, however that ends.
        let caretaker = Caretaker::start(&charge).map_err(|errno| {
            remove(&[&path]);
            remove(&aside.iter().collect::<Vec<_>>());
            Lack::new(format!("cannot watch over {}: {}", path.display(), errno.desc()))
        })?;
        let filled = fill(&path, &parent, aside.as_deref(), process, &held).and_then(|()| {
            Files::open(&path, limits).map_err(|error| Lack::new(format!("cannot read in {}: {error}", path.display())))
        });
        if filled.is_err() {
            // What is still in it when it is removed is ended.
            let _ = enter(from, process.as_raw());
        }
        Ok(Leaf { files: filled?, path, _caretaker: caretaker })
    }
}

fn fill(leaf: &Path, parent: &Path, aside: Option<&Path>, process: Pid, limits: &Limits) -> Result<(), Lack> {
    enter(leaf, process.as_raw())?;
    if let Some(aside) = aside {
        empty(parent, aside)?;
    }
    for controller in controllers(limits) {
        write(&parent.join("cgroup.subtree_control"), &format!("+{controller}"))?;
    }
    if let Some(memory) = limits.memory {
        // What does not fit is not put on the host's disk, which would be slow for all, and more than the policy says.
        write_if_there(&leaf.join("memory.swap.max"), "0")?;
        // One process less of a tree is no tree that anybody asked for.
        write_if_there(&leaf.join("memory.oom.group"), "1")?;
        write(&leaf.join("memory.max"), &memory.to_string())?;
    }
    if let Some(processes) = limits.processes {
        write(&leaf.join("pids.max"), &processes.to_string())?;
    }
    Ok(())
}

/// Moves whoever is in a group to another one.
fn empty(group: &Path, to: &Path) -> Result<(), Lack> {
    for _ in 0..ROUNDS {
        let left = processes(group).unwrap_or_default();
        if left.is_empty() {
            return Ok(());
        }
        for process in left {
            // It may be gone by now.
            match write(&to.join("cgroup.procs"), &process.to_string()) {
                Err(lack) if fs::exists(format!("/proc/{process}")).unwrap_or(true) => return Err(lack),
                _ => (),
            }
        }
    }
    Err(Lack::new(format!("{} does not get empty", group.display())))
}

fn new_group(parent: &Path, kind: &str) -> Result<PathBuf, Lack> {
    let own = getpid();
    let mut names = (0..NAMES).map(|number| match number {
        0 => format!("srt-{own}{kind}"),
        _ => format!("srt-{own}.{number}{kind}"),
    });
    loop {
        let Some(name) = names.next() else {
            return Err(Lack::new(format!("no name is left in {}", parent.display())));
        };
        let group = parent.join(name);
        match fs::create_dir(&group) {
            Ok(()) => return Ok(group),
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => (),
            Err(error) => return Err(Lack::new(format!("cannot make {}: {error}", group.display()))),
        }
    }
}

fn enter(group: &Path, process: i32) -> Result<(), Lack> {
    write(&group.join("cgroup.procs"), &process.to_string())
}

fn write(path: &Path, text: &str) -> Result<(), Lack> {
    put(path, text).map_err(|error| Lack::new(format!("cannot write `{text}` to {}: {error}", path.display())))
}

/// For what a kernel may have been built without.
fn write_if_there(path: &Path, text: &str) -> Result<(), Lack> {
    match put(path, text) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
        _ => write(path, text),
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn a_name_that_is_taken_is_not_used() {
        let folder = tempfile::tempdir().unwrap();
        let own = getpid();
        let name = |group: PathBuf| group.file_name().unwrap().to_str().unwrap().to_owned();
        assert_eq!(name(new_group(folder.path(), "").unwrap()), format!("srt-{own}"));
        assert_eq!(name(new_group(folder.path(), "").unwrap()), format!("srt-{own}.1"));
        assert_eq!(name(new_group(folder.path(), "-self").unwrap()), format!("srt-{own}-self"));
        let lack = new_group(&folder.path().join("absent"), "").unwrap_err().to_string();
        assert!(lack.contains("cannot make") && lack.contains("absent"), "{lack}");
    }

    #[test]
    fn what_cannot_be_written_is_named() {
        let folder = tempfile::tempdir().unwrap();
        let limits = Limits { memory: Some(1 << 20), ..Limits::default() };
        let parent = folder.path();
        // No file system of control groups: a directory in it has no files.
        let fill = || fill(&new_group(parent, "").unwrap(), parent, None, getpid(), &limits).unwrap_err().to_string();
        let lack = fill();
        assert!(lack.contains("cgroup.procs"), "{lack}");
    }
}
