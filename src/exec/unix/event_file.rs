//! The file that events are written to: named by the user, but in a place where a command may have put something else.
//!
//! Nothing here waits, whatever is there: a FIFO that nobody reads is an error, a full pipe takes no more for now.

use nix::errno::Errno;
use nix::fcntl::{OFlag, open};
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use nix::sys::stat::{Mode, SFlag, fstat};
use std::io::{self, Write};
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

/// A writer that answers [`io::ErrorKind::WouldBlock`] instead of waiting.
#[derive(Debug)]
pub struct EventFile(OwnedFd);

/// What a pipe that is ready at all takes without waiting (`PIPE_BUF`, pipe(7)).
const AT_ONCE: usize = 4096;

impl EventFile {
    /// Opens a file, made or emptied first; or a descriptor of ours by its name (`/dev/stderr`, `/dev/fd/3`), which is not
    /// opened anew, since its offset is shared with others.
    ///
    /// # Errors
    /// Whatever open(2) fails with, and in words of ours: a link (a command may have left it there, to lead a later run
    /// elsewhere), a FIFO that nobody reads, what is neither a file nor a pipe.
    pub fn open(path: &Path) -> io::Result<EventFile> {
        if let Some(number) = descriptor(path) {
            return Ok(EventFile(super::inherited::borrow(number)?.try_clone_to_owned()?));
        }
        // Not emptied by opening: only once it is known to be a file.
        let flags = OFlag::O_WRONLY | OFlag::O_CREAT | OFlag::O_NONBLOCK | OFlag::O_NOFOLLOW;
        let flags = flags | OFlag::O_NOCTTY | OFlag::O_CLOEXEC;
        let file = open(path, flags, Mode::from_bits_truncate(0o666)).map_err(|errno| match errno {
            Errno::ELOOP => io::Error::new(io::ErrorKind::InvalidInput, "it is a link; name the file itself"),
            Errno::ENXIO => io::Error::new(io::ErrorKind::BrokenPipe, "nobody reads it"),
            errno => errno.into(),
        })?;
        match SFlag::from_bits_truncate(fstat(&file)?.st_mode & SFlag::S_IFMT.bits()) {
            SFlag::S_IFREG => nix::unistd::ftruncate(&file, 0)?,
            SFlag::S_IFIFO | SFlag::S_IFCHR => (),
            _ => return Err(io::Error::new(io::ErrorKind::InvalidInput, "it is neither a file nor a pipe")),
        }
        Ok(EventFile(file))
    }
}

/// The number of a descriptor of this process, if the path names one.
fn descriptor(path: &Path) -> Option<i32> {
    let path = path.as_os_str().as_bytes();
    match path {
        b"/dev/stdin" => Some(0),
        b"/dev/stdout" => Some(1),
        b"/dev/stderr" => Some(2),
        _ => {
            let number = path.strip_prefix(b"/dev/fd/").or_else(|| path.strip_prefix(b"/proc/self/fd/"))?;
            std::str::from_utf8(number).ok()?.parse().ok().filter(|number| *number >= 0)
        }
    }
}

impl Write for EventFile {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        // A descriptor that was given to us may be somebody else's too, so that it is not ours to make non-blocking.
        let mut ready = [PollFd::new(self.0.as_fd(), PollFlags::POLLOUT)];
        if poll(&mut ready, PollTimeout::ZERO)? == 0 {
            return Err(io::ErrorKind::WouldBlock.into());
        }
        let bytes = bytes.get(..AT_ONCE).unwrap_or(bytes);
        Ok(nix::unistd::write(&self.0, bytes)?)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn a_file_is_emptied_and_nothing_else_is_followed() {
        let scratch = tempfile::tempdir().unwrap();
        let (file, link, fifo) =
            (scratch.path().join("file"), scratch.path().join("link"), scratch.path().join("fifo"));
        std::fs::write(&file, "old").unwrap();
        std::os::unix::fs::symlink("file", &link).unwrap();
        assert_eq!(EventFile::open(&link).unwrap_err().kind(), io::ErrorKind::InvalidInput);
        assert_eq!(std::fs::read_to_string(&file).unwrap(), "old");
        EventFile::open(&file).unwrap().write_all(b"new").unwrap();
        assert_eq!(std::fs::read_to_string(&file).unwrap(), "new");
        nix::unistd::mkfifo(&fifo, Mode::S_IRWXU).unwrap();
        assert_eq!(EventFile::open(&fifo).unwrap_err().kind(), io::ErrorKind::BrokenPipe);
        EventFile::open(Path::new("/dev/null")).unwrap().write_all(b"x").unwrap();
        assert!(EventFile::open(scratch.path()).is_err());
    }

    #[test]
    fn a_full_pipe_is_not_waited_for() {
        let scratch = tempfile::tempdir().unwrap();
        let fifo = scratch.path().join("fifo");
        nix::unistd::mkfifo(&fifo, Mode::S_IRWXU).unwrap();
        let _reader = std::fs::OpenOptions::new().read(true).write(true).open(&fifo).unwrap();
        let mut pipe = EventFile::open(&fifo).unwrap();
        let mut taken = 0;
        let error = loop {
            match pipe.write(&[b'x'; 1000]) {
                Ok(count) => taken += count,
                Err(error) => break error,
            }
        };
        assert_eq!(error.kind(), io::ErrorKind::WouldBlock);
        assert!(taken > 4096, "{taken}");
    }

    #[test]
    fn descriptors_by_name() {
        assert_eq!(descriptor(Path::new("/dev/stderr")), Some(2));
        assert_eq!(descriptor(Path::new("/dev/fd/63")), Some(63));
        assert_eq!(descriptor(Path::new("/proc/self/fd/7")), Some(7));
        for path in ["/dev/fd/", "/dev/fd/x", "/dev/fd/-1", "/dev/null", "stderr"] {
            assert_eq!(descriptor(Path::new(path)), None, "{path}");
        }
    }
}
