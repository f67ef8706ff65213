//! A descriptor by which whoever started a run speaks to it: one that was open before, in both directions.

use nix::errno::Errno;
use nix::fcntl::{FcntlArg, OFlag, fcntl};
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use std::io::{self, Read, Write};
use std::os::fd::{AsFd, OwnedFd};

/// It waits for its other end, whether the descriptor was made so or not.
#[derive(Debug)]
pub struct Channel(OwnedFd);

impl Channel {
    /// Takes the descriptor of this number, such as one end of a socket pair. Nobody that is started later has it.
    ///
    /// # Errors
    /// Where it is not open, or not for reading and writing.
    pub fn open(number: i32) -> io::Result<Channel> {
        let descriptor = super::inherited::borrow(number)?;
        let flags = OFlag::from_bits_retain(fcntl(descriptor, FcntlArg::F_GETFL)?);
        if flags & OFlag::O_ACCMODE != OFlag::O_RDWR {
            let why = "it is not open for reading and writing, as one end of a socket pair is";
            return Err(io::Error::new(io::ErrorKind::InvalidInput, why));
        }
        Ok(Channel(super::inherited::take(number)?))
    }

    fn again<T>(&self, ready: PollFlags, mut act: impl FnMut() -> Result<T, Errno>) -> io::Result<T> {
        loop {
            match act() {
                Err(Errno::EAGAIN) => {
                    poll(&mut [PollFd::new(self.0.as_fd(), ready)], PollTimeout::NONE)?;
                }
                Err(Errno::EINTR) => {}
                done => return Ok(done?),
            }
        }
    }
}

impl Read for &Channel {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        self.again(PollFlags::POLLIN, || nix::unistd::read(&self.0, buffer))
    }
}

impl Write for &Channel {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.again(PollFlags::POLLOUT, || nix::unistd::write(&self.0, bytes))
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}
