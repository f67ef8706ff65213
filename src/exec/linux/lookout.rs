//! Limits of the whole tree of processes, as pid 1 watches them: a few times a second it asks whether one was passed, and ends everything
//! then. It asks the group that holds them, or looks at the processes by itself; which of the two, the supervisor says before the command
//! runs.

use super::cgroup::{Files, Watch};
use super::control::Failure;
use super::tree::{Breach, Tree};
use crate::backend::limits::Limits;
use nix::errno::Errno;
use nix::poll::PollTimeout;
use std::os::fd::{OwnedFd, RawFd};

/// Milliseconds between two looks; near a limit it is the shorter one.
const PAUSE: u16 = 250;
const SHORT: u16 = 25;

/// What is watched.
pub enum Lookout {
    Group(Watch),
    Tree(Tree),
}

impl Lookout {
    /// By a group's files, else in a procfs.
    ///
    /// # Errors
    /// There is neither: the kernel's limits of each process by itself are less than the policy says.
    pub fn new(limits: &Limits, group: Option<Files>, proc: Option<&OwnedFd>) -> Result<Self, Failure> {
        if let Some(files) = group {
            return Ok(Self::Group(Watch { files, limits: limits.clone(), near: true }));
        }
        let tree = proc.and_then(|proc| Tree::new(limits, proc));
        tree.map(Self::Tree).ok_or_else(|| {
            let act = "hold limits of all processes together: there is neither a control group nor a procfs (see `srt doctor`)";
            Failure::setup(act, Errno::ENOTSUP)
        })
    }

    /// What must stay open.
    pub fn descriptors(&self) -> Vec<RawFd> {
        match self {
            Self::Group(watch) => watch.files.descriptors().collect(),
            Self::Tree(tree) => vec![tree.descriptor()],
        }
    }

    /// How long until the next look.
    pub fn pause(&self) -> PollTimeout {
        let near = match self {
            Self::Group(watch) => watch.near,
            Self::Tree(tree) => tree.near,
        };
        PollTimeout::from(if near { SHORT } else { PAUSE })
    }

    /// The first limit that is passed.
    ///
    /// # Errors
    /// Nobody knows any more.
    pub fn look(&mut self) -> Result<Option<Breach>, Errno> {
        match self {
            Self::Group(watch) => watch.look(),
            Self::Tree(tree) => Ok(tree.look()),
        }
    }
}
