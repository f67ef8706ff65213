//! The file that events are written to, and the channel for changes of the rules, which Windows does not have.

use std::fs::{File, OpenOptions};
use std::io::{self, Read, Write};
use std::os::windows::fs::OpenOptionsExt;
use std::path::Path;

/// A writer of events. A file takes them at once.
#[derive(Debug)]
pub struct EventFile(File);

/// `FILE_FLAG_OPEN_REPARSE_POINT`: a link is opened itself.
const NOT_FOLLOWED: u32 = 0x0020_0000;

impl EventFile {
    /// Opens a file, made or emptied first.
    ///
    /// # Errors
    /// Whatever opening fails with; a link (a command may have left it there, to lead a later run elsewhere), and what is no file.
    pub fn open(path: &Path) -> io::Result<EventFile> {
        let mut options = OpenOptions::new();
        // Not emptied by opening: only once it is known to be a file.
        let file = options.write(true).create(true).truncate(false).custom_flags(NOT_FOLLOWED).open(path)?;
        let kind = file.metadata()?.file_type();
        if !kind.is_file() {
            return Err(io::Error::new(io::ErrorKind::InvalidInput, "it is no file; name the file itself"));
        }
        file.set_len(0)?;
        Ok(EventFile(file))
    }
}

impl Write for EventFile {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.0.flush()
    }
}

/// There is none: processes do not inherit descriptors by number.
#[derive(Debug)]
pub enum Channel {}

impl Channel {
    /// Never opens one.
    ///
    /// # Errors
    /// Always.
    pub fn open(_: i32) -> io::Result<Channel> {
        Err(io::Error::new(io::ErrorKind::Unsupported, "no descriptor is inherited by number on Windows"))
    }
}

impl Read for &Channel {
    fn read(&mut self, _: &mut [u8]) -> io::Result<usize> {
        match **self {}
    }
}

impl Write for &Channel {
    fn write(&mut self, _: &[u8]) -> io::Result<usize> {
        match **self {}
    }

    fn flush(&mut self) -> io::Result<()> {
        match **self {}
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn a_file_is_emptied_and_nothing_else_is_opened() {
        let scratch = tempfile::tempdir().unwrap();
        let file = scratch.path().join("file");
        std::fs::write(&file, "old").unwrap();
        EventFile::open(&file).unwrap().write_all(b"new").unwrap();
        assert_eq!(std::fs::read_to_string(&file).unwrap(), "new");
        assert!(EventFile::open(scratch.path()).is_err());
    }
}
