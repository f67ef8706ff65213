//! Where policy texts come from: the machine's files, or standard input.

use sandbox_runtime::host::real::{LARGEST, read_policy};
use sandbox_runtime::resolve::{Files, Text};
use std::io::{self, Read};
use std::path::Path;

/// The machine's files.
pub struct Disk;

impl Files for Disk {
    fn read(&self, path: &str) -> io::Result<Text> {
        let found = read_policy(path)?;
        Ok(Text { text: found.text, writable_by_others: found.writable_by_others })
    }
}

/// Reads one file, or standard input for `-`.
pub fn read(path: &Path) -> io::Result<Text> {
    if path == Path::new("-") {
        let mut text = String::new();
        io::stdin().lock().take(LARGEST).read_to_string(&mut text)?;
        return Ok(Text { text, writable_by_others: false });
    }
    let path = path.to_str().ok_or_else(|| io::Error::new(io::ErrorKind::InvalidInput, "its name is not UTF-8"))?;
    Disk.read(path)
}

/// Whether there is anything by that name. A link that leads nowhere is a file that cannot be read: it is not as if there were
/// none.
pub fn is_there(path: &Path) -> std::io::Result<bool> {
    match std::fs::symlink_metadata(path) {
        Ok(_) => Ok(true),
        Err(error) if matches!(error.kind(), std::io::ErrorKind::NotFound | std::io::ErrorKind::NotADirectory) => {
            Ok(false)
        }
        Err(error) => Err(error),
    }
}
