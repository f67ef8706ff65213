//! The directory for temporary files that a run has of its own, where no namespace gives it one: made for it, and gone with it.

use std::collections::hash_map::RandomState;
use std::fs;
use std::hash::{BuildHasher, Hasher};
use std::io;
use std::path::{Path, PathBuf};

/// So many names are tried; one is enough unless somebody guesses them.
const ATTEMPTS: usize = 16;

/// A directory that is removed, with all that is in it, when this is dropped.
#[derive(Debug)]
pub struct Temporary(PathBuf);

impl Temporary {
    /// Makes one among the caller's own; `None` on Linux, where `/tmp` is the sandbox's own already.
    ///
    /// # Errors
    /// Whatever making it fails with.
    pub fn make() -> io::Result<Option<Self>> {
        if cfg!(target_os = "linux") {
            return Ok(None);
        }
        // The system's own form, without links.
        #[allow(clippy::disallowed_methods)]
        let among = fs::canonicalize(std::env::temp_dir())?;
        Self::make_in(&among).map(Some)
    }

    /// The same in another directory.
    fn make_in(among: &Path) -> io::Result<Self> {
        let mut taken = io::ErrorKind::AlreadyExists.into();
        for _ in 0..ATTEMPTS {
            // Seeded by the system.
            let name = RandomState::new().build_hasher().finish();
            let place = among.join(format!("srt-{name:016x}"));
            match make(&place) {
                Ok(()) => return Ok(Self(place)),
                Err(error) if error.kind() == io::ErrorKind::AlreadyExists => taken = error,
                Err(error) => return Err(error),
            }
        }
        Err(taken)
    }

    pub fn path(&self) -> &Path {
        &self.0
    }
}

impl Drop for Temporary {
    fn drop(&mut self) {
        // What cannot be removed (a file that is still open, on Windows) is left among the caller's temporary files. Links in it
        // are not followed.
        let _ = fs::remove_dir_all(&self.0);
    }
}

#[cfg(unix)]
fn make(place: &Path) -> io::Result<()> {
    use std::os::unix::fs::DirBuilderExt;
    fs::DirBuilder::new().mode(0o700).create(place)
}

/// What it inherits is the caller's alone.
#[cfg(windows)]
fn make(place: &Path) -> io::Result<()> {
    fs::DirBuilder::new().create(place)
}

#[cfg(test)]
#[allow(clippy::unwrap_used, clippy::disallowed_methods)]
mod tests {
    use super::*;

    #[test]
    fn it_is_gone_with_all_that_is_in_it() {
        let scratch = tempfile::tempdir().unwrap();
        let (one, other) = (Temporary::make_in(scratch.path()).unwrap(), Temporary::make_in(scratch.path()).unwrap());
        assert_ne!(one.path(), other.path());
        fs::create_dir(one.path().join("d")).unwrap();
        fs::write(one.path().join("d/f"), "x").unwrap();
        drop((one, other));
        assert_eq!(fs::read_dir(scratch.path()).unwrap().count(), 0);
    }

    #[cfg(unix)]
    #[test]
    fn it_is_its_owners_alone_and_links_are_left_alone() {
        use std::os::unix::fs::{MetadataExt, symlink};
        let scratch = tempfile::tempdir().unwrap();
        fs::write(scratch.path().join("kept"), "x").unwrap();
        let one = Temporary::make_in(scratch.path()).unwrap();
        assert_eq!(fs::metadata(one.path()).unwrap().mode() & 0o777, 0o700);
        symlink(scratch.path(), one.path().join("l")).unwrap();
        drop(one);
        assert_eq!(fs::read_to_string(scratch.path().join("kept")).unwrap(), "x");
    }
}
