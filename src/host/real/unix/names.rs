//! All names in a directory, where a name that is not among them is surely not there: hundreds of names that a policy
//! denies in a home are then told to be missing by one look.

use std::ffi::OsString;
use std::fs;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::os::unix::fs::MetadataExt;
use std::path::Path;

/// File systems of which a listing says all that a look-up finds, but for directories that fold case (see [`folds`]). On
/// others (FUSE, 9p, NFS, autofs) a look-up may find, or make, what no listing shows.
const LISTED: &[&str] = &["ext2", "ext3", "ext4", "xfs", "btrfs", "tmpfs", "overlay", "f2fs"];

/// The names in a directory on a file system of this kind; `None` where there are more than `most`, where a name that is
/// not listed may still be there, and where it cannot be listed.
#[allow(clippy::disallowed_methods)]
pub(super) fn all(directory: &Path, file_system: &str, most: usize) -> Option<Vec<Vec<u8>>> {
    if !LISTED.contains(&file_system) {
        return None;
    }
    let mut names = Vec::new();
    for entry in fs::read_dir(directory).ok()? {
        if names.len() == most {
            return None;
        }
        names.push(entry.ok()?.file_name().into_vec());
    }
    (!folds(directory, &names)).then_some(names)
}

/// Whether a directory may find a name in another case (ext4 and f2fs fold where `chattr +F` says so): it is tried with a
/// name that is there.
#[allow(clippy::disallowed_methods)]
fn folds(directory: &Path, names: &[Vec<u8>]) -> bool {
    let Some(name) = names.iter().find(|name| name.iter().any(u8::is_ascii_alphabetic)) else {
        // Nothing to try with: letters outside ASCII may fold into it.
        return names.iter().any(|name| !name.is_ascii());
    };
    let swap =
        |byte: &u8| if byte.is_ascii_lowercase() { byte.to_ascii_uppercase() } else { byte.to_ascii_lowercase() };
    let swapped = OsString::from_vec(name.iter().map(swap).collect());
    let node = |name: &std::ffi::OsStr| fs::symlink_metadata(directory.join(name)).map(|data| (data.dev(), data.ino()));
    match node(&swapped) {
        Err(error) => error.kind() != std::io::ErrorKind::NotFound,
        // Both may be there, each by itself.
        Ok(other) => node(std::ffi::OsStr::from_bytes(name)).map_or(true, |own| own == other),
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used, clippy::disallowed_methods)]
mod tests {
    use super::*;

    #[test]
    fn a_listing_is_whole_or_not_used() {
        let scratch = tempfile::tempdir().unwrap();
        for name in ["a", "B", ".c"] {
            fs::write(scratch.path().join(name), "").unwrap();
        }
        let sorted = |most| {
            all(scratch.path(), "ext4", most).map(|mut names| {
                names.sort();
                names
            })
        };
        assert_eq!(sorted(3), Some(vec![b".c".to_vec(), b"B".to_vec(), b"a".to_vec()]));
        assert_eq!(sorted(2), None);
        assert_eq!(all(scratch.path(), "fuse.sshfs", 3), None);
        assert_eq!(all(&scratch.path().join("missing"), "ext4", 3), None);
    }

    #[test]
    fn a_directory_that_folds_case_is_not_believed() {
        let scratch = tempfile::tempdir().unwrap();
        fs::write(scratch.path().join("name"), "").unwrap();
        assert!(!folds(scratch.path(), &[b"name".to_vec()]));
        // What a folding directory does: the other case finds the same node.
        fs::hard_link(scratch.path().join("name"), scratch.path().join("NAME")).unwrap();
        assert!(folds(scratch.path(), &[b"name".to_vec()]));
        assert!(folds(scratch.path(), &["é".into()]));
        assert!(!folds(scratch.path(), &[]));
    }
}
