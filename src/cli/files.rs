//! Reading policy files from disk.

use sandbox_runtime::resolve::{Files, Text};
use std::fs::File;
use std::io::{self, Read};
use std::path::Path;

/// A policy is text that people read; more than this is a mistake or an attack.
const LARGEST: u64 = 64 << 20;

/// The machine's files.
pub struct Disk;

impl Files for Disk {
    fn read(&self, path: &str) -> io::Result<Text> {
        read(Path::new(path))
    }
}

/// Reads one file, or standard input for `-`.
pub fn read(path: &Path) -> io::Result<Text> {
    if path == Path::new("-") {
        let mut text = String::new();
        io::stdin().lock().take(LARGEST).read_to_string(&mut text)?;
        return Ok(Text { text, writable_by_others: false });
    }
    // Looked at through the descriptor, so that what is judged is what is read.
    let file = File::open(path)?;
    let metadata = file.metadata()?;
    if metadata.is_dir() {
        return Err(io::Error::new(io::ErrorKind::IsADirectory, "is a directory"));
    }
    if metadata.len() > LARGEST {
        return Err(io::Error::new(io::ErrorKind::FileTooLarge, "is larger than 64 MiB"));
    }
    let mut text = String::new();
    file.take(LARGEST).read_to_string(&mut text).map_err(|error| {
        if error.kind() == io::ErrorKind::InvalidData {
            io::Error::new(io::ErrorKind::InvalidData, "is not UTF-8")
        } else {
            error
        }
    })?;
    Ok(Text { text, writable_by_others: writable_by_others(&metadata) })
}

#[cfg(unix)]
fn writable_by_others(metadata: &std::fs::Metadata) -> bool {
    use std::os::unix::fs::MetadataExt;
    metadata.is_file() && metadata.mode() & 0o002 != 0
}

#[cfg(not(unix))]
fn writable_by_others(_: &std::fs::Metadata) -> bool {
    false
}
