//! Between the command and a service of the host: bytes, or packets, as they are, and no descriptor or credential with them.
//!
//! The command's socket is connected to one of ours, which has a name of its own in the sandbox's network namespace: nobody
//! else is let to that name. Each relay is a thread that ends with its connection.

use super::socket;
use crate::event::lock;
use nix::errno::Errno;
use nix::fcntl::{FcntlArg, OFlag, fcntl};
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use nix::sys::socket::{MsgFlags, Shutdown, SockFlag, accept4, recv, send, shutdown};
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::time::{Duration, Instant};

/// So many connections to services of the host at once; one more is told to try again.
const MOST: usize = 512;

const STACK: usize = 128 * 1024;
const BUFFER: usize = 64 * 1024;

/// More than any packet that the kernel passes by default (`net.core.wmem_max`).
const LONGEST_PACKET: usize = 16 * 1024 * 1024;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Side {
    Stream,
    Packets,
}

/// Where the command's sockets are connected to.
struct Door {
    side: Side,
    listener: OwnedFd,
    address: Vec<u8>,
}

#[derive(Default)]
pub struct Relays {
    doors: Mutex<Vec<Door>>,
    open: Mutex<usize>,
    closed: Condvar,
}

impl Relays {
    /// Whether an address is that of a door.
    pub fn is_door(&self, address: &[u8]) -> bool {
        lock(&self.doors).iter().any(|door| door.address == address)
    }

    pub fn are_open(&self) -> bool {
        *lock(&self.open) > 0
    }

    /// Waits until every relay has ended.
    pub fn finish(&self, patience: Duration) {
        let end = Instant::now() + patience;
        let mut open = lock(&self.open);
        while *open > 0 {
            let left = end.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return;
            }
            open = self.closed.wait_timeout(open, left).unwrap_or_else(PoisonError::into_inner).0;
        }
    }

    /// Connects the command's socket to the service that `host` is connected to.
    pub fn join(self: &Arc<Self>, command: BorrowedFd<'_>, side: Side, host: OwnedFd) -> Result<(), Errno> {
        {
            let mut open = lock(&self.open);
            if *open >= MOST {
                return Err(Errno::EAGAIN);
            }
            *open += 1;
        }
        let counted = Counted(Arc::clone(self));
        fcntl(&host, FcntlArg::F_SETFL(OFlag::O_NONBLOCK))?;
        let ours = self.open_door(command, side)?;
        let relay = move || {
            let _counted = counted;
            let _ = relay(&ours, &host, side);
        };
        let started = std::thread::Builder::new().stack_size(STACK).spawn(relay);
        started.map(drop).map_err(|_| Errno::EAGAIN)
    }

    /// Our end of a connection that the command's socket is given.
    fn open_door(&self, command: BorrowedFd<'_>, side: Side) -> Result<OwnedFd, Errno> {
        let mut doors = lock(&self.doors);
        if !doors.iter().any(|door| door.side == side) {
            let kind = if side == Side::Stream { libc::SOCK_STREAM } else { libc::SOCK_SEQPACKET };
            let (listener, address) = socket::listener(kind)?;
            doors.push(Door { side, listener, address });
        }
        let door = doors.iter().find(|door| door.side == side).ok_or(Errno::EIO)?;
        // Nobody else comes to this door, and this one only while it is locked: whoever stands before it, is it.
        socket::connect(command, &door.address)?;
        accept4(&door.listener, SockFlag::SOCK_CLOEXEC | SockFlag::SOCK_NONBLOCK)
    }
}

/// One of the relays that are open.
struct Counted(Arc<Relays>);

impl Drop for Counted {
    fn drop(&mut self) {
        *lock(&self.0.open) -= 1;
        self.0.closed.notify_all();
    }
}

/// One direction.
struct Way<'s> {
    from: &'s OwnedFd,
    to: &'s OwnedFd,
    side: Side,
    buffer: Vec<u8>,
    /// What of it is on its way.
    left: Option<(usize, usize)>,
    /// Nothing more comes.
    ended: bool,
    /// The other end has been told so.
    closed: bool,
}

/// Until both directions have ended.
fn relay(command: &OwnedFd, host: &OwnedFd, side: Side) -> Result<(), Errno> {
    let way = |from, to| Way { from, to, side, buffer: vec![0; BUFFER], left: None, ended: false, closed: false };
    let (mut out, mut back) = (way(command, host), way(host, command));
    loop {
        out.go()?;
        back.go()?;
        if out.closed && back.closed {
            return Ok(());
        }
        let wanted = |reads: &Way<'_>, writes: &Way<'_>| {
            let read = if reads.left.is_none() && !reads.ended { PollFlags::POLLIN } else { PollFlags::empty() };
            let write = if writes.left.is_some() { PollFlags::POLLOUT } else { PollFlags::empty() };
            read | write
        };
        // An end of which nothing is wanted would wake us for having hung up.
        let ends = [(command, wanted(&out, &back)), (host, wanted(&back, &out))];
        let mut ends: Vec<_> = ends
            .into_iter()
            .filter(|(_, wanted)| !wanted.is_empty())
            .map(|(end, wanted)| PollFd::new(end.as_fd(), wanted))
            .collect();
        match poll(&mut ends, PollTimeout::NONE) {
            Ok(_) | Err(Errno::EINTR) => (),
            Err(errno) => return Err(errno),
        }
    }
}

impl Way<'_> {
    /// As far as it goes without waiting.
    fn go(&mut self) -> Result<(), Errno> {
        while !self.closed {
            if let Some((start, end)) = self.left {
                let flags = MsgFlags::MSG_NOSIGNAL | MsgFlags::MSG_DONTWAIT;
                match send(self.to.as_raw_fd(), &self.buffer[start..end], flags) {
                    Ok(sent) if start + sent < end => self.left = Some((start + sent, end)),
                    Ok(_) => self.left = None,
                    Err(Errno::EINTR) => (),
                    Err(Errno::EAGAIN) => return Ok(()),
                    // Nobody reads there any more: who writes shall know.
                    Err(Errno::EPIPE | Errno::ECONNRESET) => {
                        let _ = shutdown(self.from.as_raw_fd(), Shutdown::Read);
                        (self.left, self.ended, self.closed) = (None, true, true);
                    }
                    Err(errno) => return Err(errno),
                }
            } else if self.ended {
                let _ = shutdown(self.to.as_raw_fd(), Shutdown::Write);
                self.closed = true;
            } else {
                match self.take() {
                    Ok(None) => self.ended = true,
                    Ok(Some(length)) => self.left = Some((0, length)),
                    Err(Errno::EINTR) => (),
                    Err(Errno::EAGAIN) => return Ok(()),
                    Err(Errno::ECONNRESET) => self.ended = true,
                    Err(errno) => return Err(errno),
                }
            }
        }
        Ok(())
    }

    /// What is there now; `None` at the end. Without room for them, descriptors that come along are closed by the kernel.
    fn take(&mut self) -> Result<Option<usize>, Errno> {
        let from = self.from.as_raw_fd();
        if self.side == Side::Packets {
            let look = MsgFlags::MSG_PEEK | MsgFlags::MSG_TRUNC | MsgFlags::MSG_DONTWAIT;
            let length = recv(from, &mut [], look)?;
            if length > LONGEST_PACKET {
                return Err(Errno::EMSGSIZE);
            }
            if length > self.buffer.len() {
                self.buffer.resize(length, 0);
            }
            if length == 0 {
                // The end, or an empty packet, after which others may wait though nobody sends any more.
                let mut end = [PollFd::new(self.from.as_fd(), PollFlags::from_bits_retain(libc::POLLRDHUP))];
                if poll(&mut end, PollTimeout::ZERO)? > 0 && socket::unread(self.from.as_fd())? == 0 {
                    return Ok(None);
                }
            }
            return recv(from, &mut self.buffer, MsgFlags::MSG_DONTWAIT).map(Some);
        }
        match recv(from, &mut self.buffer, MsgFlags::MSG_DONTWAIT)? {
            0 => Ok(None),
            length => Ok(Some(length)),
        }
    }
}
