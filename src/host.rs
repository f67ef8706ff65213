//! What the world looks like: the [`Host`] trait through which `bind` asks, the real machine behind it, and a listing
//! in a string for tests and the book.
//!
//! Only looks; nothing is changed here.

#[cfg(any(target_os = "linux", test))]
mod address;
mod git;
pub mod listing;
#[cfg(any(target_os = "linux", test))]
mod mountinfo;
mod near;
pub mod real;

pub use listing::{Listing, nominal};
pub use near::near;

use crate::ir::{MountFact, Node};
use crate::sets::path::AbsPath;
use std::io;
use std::net::IpAddr;

/// A machine, as far as binding a policy needs it.
pub trait Host {
    /// The value of a variable: `HOME`, `WORKSPACE`, `TMP`, `GIT_COMMON_DIR`, `CONFIG`, `CACHE`, `DATA`, `RUNTIME`, `env.NAME`, or a
    /// defined one.
    fn variable(&self, name: &str) -> Option<String>;

    /// The node at a path, its last segment not followed; `None` when there is none.
    ///
    /// # Errors
    /// Whatever `lstat` fails with, absence aside.
    fn node(&self, path: &AbsPath) -> io::Result<Option<Node>>;

    /// Where the link at a path points, as it stands there.
    ///
    /// # Errors
    /// Whatever `readlink` fails with.
    fn read_link(&self, path: &AbsPath) -> io::Result<Vec<u8>>;

    /// The names in a directory, in no order, and whether each is a directory (links are not).
    ///
    /// # Errors
    /// Whatever listing it fails with.
    fn list(&self, path: &AbsPath) -> io::Result<Vec<(Vec<u8>, bool)>>;

    /// The names in a directory, where one that is not among them is surely not there; `None` where that is not known, or
    /// there are more than `most`.
    fn names(&self, path: &AbsPath, most: usize) -> Option<Vec<Vec<u8>>>;

    /// The names, from the root, of a file that is named as on a command line: as it stands, and links followed. None where
    /// no such file is known.
    fn file(&self, name: &str) -> Vec<AbsPath>;

    /// How many names the file at a path has on its file system (hard links); one where that is not known.
    fn names_of_file(&self, _: &AbsPath) -> u64 {
        1
    }

    /// The directory of git hooks that `core.hooksPath` names for the workspace's repository; `None` where it names none.
    fn hooks(&self) -> Option<AbsPath> {
        None
    }

    /// The mount table: of the mounts at or above a path, the last one shows it.
    fn mounts(&self) -> &[MountFact];

    /// The machine's own addresses.
    fn addresses(&self) -> &[IpAddr];
}
