//! Where policy texts come from, the machine's files or standard input; and how a file is written without losing the old one.

use sandbox_runtime::exec::others_may_change;
use sandbox_runtime::host::real::{LARGEST, read_policy};
use sandbox_runtime::resolve::{Files, Text};
use std::io::{self, Read, Write};
use std::path::Path;

/// The machine's files.
pub struct Disk;

impl Files for Disk {
    fn read(&self, path: &str) -> io::Result<Text> {
        let found = read_policy(path)?;
        let writable_by_others = found.writable_by_others || others_may_change(Path::new(path))?;
        Ok(Text { text: found.text, writable_by_others })
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

/// Writes beside the file and renames, so that a crash leaves the old or the new text and nothing between. What the file was
/// allowed to whom it stays; a link is followed.
///
/// # Errors
/// Whatever writing fails with; the old text is there then.
pub fn replace(path: &Path, bytes: &[u8]) -> std::io::Result<()> {
    let there = std::fs::canonicalize(path).ok();
    let permissions =
        there.as_ref().map(|path| std::fs::metadata(path).map(|found| found.permissions())).transpose()?;
    let path = there.as_deref().unwrap_or(path);
    let mut name = path.file_name().unwrap_or_default().to_owned();
    name.push(format!(".{}.tmp", std::process::id()));
    let beside = path.with_file_name(name);
    let written = std::fs::File::create_new(&beside).and_then(|mut file| {
        file.write_all(bytes)?;
        if let Some(permissions) = permissions {
            file.set_permissions(permissions)?;
        }
        file.sync_all()?;
        std::fs::rename(&beside, path)
    });
    if written.is_err() {
        // Best effort: the error that matters is the first one.
        let _ = std::fs::remove_file(&beside);
    }
    written
}
