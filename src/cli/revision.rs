//! Policies as they were: `REVISION:PATH`, read from git.

use super::files;
use sandbox_runtime::resolve::{Files, Text};
use std::io;
use std::path::Path;
use std::process::{Command, Stdio};

/// Where a policy and what it uses are read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Place {
    Disk,
    /// The commit, or whatever else git takes for one.
    Revision(String),
}

/// The place and the path that an argument names: `REVISION:PATH` unless there is a file called so.
pub fn named(argument: &str) -> (Place, &str) {
    match argument.split_once(':') {
        Some((revision, path)) if !revision.is_empty() && !path.is_empty() && !Path::new(argument).exists() => {
            (Place::Revision(revision.to_owned()), path)
        }
        _ => (Place::Disk, argument),
    }
}

impl Files for Place {
    fn read(&self, path: &str) -> io::Result<Text> {
        match self {
            // What lies outside every repository is as it is now.
            Place::Revision(revision) if !path.starts_with('/') => {
                let text = show(revision, path)?;
                Ok(Text { text, writable_by_others: false })
            }
            _ => files::Disk.read(path),
        }
    }
}

/// A file of a commit; the path is from where this is run.
fn show(revision: &str, path: &str) -> io::Result<String> {
    // A revision is an argument of the user's own; one that looks like an option is none.
    if revision.starts_with('-') {
        return Err(io::Error::new(io::ErrorKind::InvalidInput, format!("`{revision}` is no revision")));
    }
    let output = Command::new("git")
        .args(["show", "--end-of-options", &format!("{revision}:./{path}")])
        .stdin(Stdio::null())
        .output()
        .map_err(|error| io::Error::new(error.kind(), format!("git cannot be run: {error}")))?;
    if !output.status.success() {
        let said = String::from_utf8_lossy(&output.stderr);
        return Err(io::Error::other(said.trim().trim_start_matches("fatal: ").to_owned()));
    }
    String::from_utf8(output.stdout).map_err(|_| io::Error::from(io::ErrorKind::InvalidData))
}
