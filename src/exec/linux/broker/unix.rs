//! `connect` on unix sockets: allowed to whoever listens inside; to a socket of the host where a rule says so, over a relay; to
//! nobody else.
//!
//! A node belongs to one socket for good: `bind` always makes a new one. So a node is the sandbox's own if a socket that was made
//! in its network namespace is bound to it, and that is seen when the socket listens. Which descriptor or path leads
//! to it does not matter, and what is connected to is what was looked at: the node is held, and named by its descriptor.

use super::notification::{Answer, Call};
use super::place::{Way, own_name};
use super::relay::Side;
use super::task::{CAPABILITIES, Task};
use super::{Broker, int, socket};
use crate::event::lock;
use crate::exec::linux::kernel::with_capabilities;
use crate::exec::linux::mounts;
use nix::errno::Errno;
use nix::fcntl::{FcntlArg, OFlag, fcntl, openat, readlinkat};
use nix::sys::resource::{Resource, getrlimit};
use nix::sys::socket::{AddressFamily, SockFlag, SockType, socket};
use nix::sys::stat::{FileStat, Mode, SFlag, fstat};
use std::collections::HashMap;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::ffi::OsStringExt;
use std::sync::{Arc, Mutex, OnceLock};

/// So many of its own sockets are known, and no more than a quarter of the descriptors that this process may have: what
/// listens beyond them cannot be connected to.
const MOST: u64 = 4096;

/// The length of `struct sockaddr_un`, and where its path begins.
const ADDRESS: usize = 110;
const PATH: usize = 2;

/// The sandbox's own.
#[derive(Default)]
pub struct Own {
    /// The network namespace, `None` where it cannot be told.
    namespace: OnceLock<Option<u64>>,
    /// Nodes, by device and inode; held, so that neither is another's meanwhile.
    nodes: Mutex<HashMap<(u64, u64), Arc<OwnedFd>>>,
}

impl Own {
    /// Whether a socket was made in this process's network namespace: not handed down from outside.
    fn made(&self, socket: BorrowedFd<'_>) -> bool {
        let own = self.namespace.get_or_init(|| {
            let one = socket_of(SockType::Stream, SockFlag::empty()).ok()?;
            socket::namespace(one.as_fd()).ok()
        });
        own.is_some() && socket::namespace(socket).ok() == *own
    }

    fn insert(&self, node: OwnedFd) -> Result<(), Errno> {
        let seen = fstat(&node)?;
        let (descriptors, _) = getrlimit(Resource::RLIMIT_NOFILE)?;
        let most = usize::try_from(MOST.min(descriptors / 4)).unwrap_or_default();
        let mut nodes = lock(&self.nodes);
        if nodes.len() >= most {
            nodes.retain(|_, node| fstat(&**node).is_ok_and(|seen| seen.st_nlink > 0));
        }
        if nodes.len() < most {
            nodes.insert((seen.st_dev, seen.st_ino), Arc::new(node));
        }
        Ok(())
    }

    fn get(&self, seen: &FileStat) -> Option<Arc<OwnedFd>> {
        lock(&self.nodes).get(&(seen.st_dev, seen.st_ino)).cloned()
    }
}

impl Broker {
    /// `listen`: the kernel does it, so that whoever connects is told who listens. Should the descriptor be another socket by
    /// then, that one is not known, and cannot be connected to.
    pub(super) fn hear(&self, call: &Call) {
        let known = || {
            let socket = Task::new(call.thread, self.proc.as_fd()).descriptor(int(call.arguments[0]))?;
            // What was accepted has the name of whoever accepted it, and cannot listen.
            let is_free = socket::is_unconnected(socket.as_fd());
            if is_free && socket::domain(socket.as_fd())? == libc::AF_UNIX && self.own.made(socket.as_fd()) {
                self.own.insert(with_capabilities(CAPABILITIES, || socket::bound_node(socket.as_fd()))?)?;
            }
            Ok::<_, Errno>(())
        };
        // What cannot be looked at, or has no node, is no node of ours.
        let _ = known();
    }

    pub(super) fn connect_unix(
        &self,
        call: &Call,
        task: &Task<'_>,
        socket: BorrowedFd<'_>,
        address: &[u8],
    ) -> Result<Answer, Errno> {
        // As unix_validate_addr() of the kernel has it (net/unix/af_unix.c).
        let path = address.get(PATH..).filter(|path| !path.is_empty() && address.len() <= ADDRESS);
        let path = path.filter(|_| address[..PATH] == socket::UNIX).ok_or(Errno::EINVAL)?;
        if !self.own.made(socket) {
            let what = "connecting a unix socket that was made outside";
            let _ = self.control.report(&super::Report::Unseen(what.into()));
            return Err(Errno::EACCES);
        }
        if path[0] == 0 {
            // An abstract name is one of the network namespace that the socket was made in, which is the sandbox's.
            if self.relays.is_door(address) {
                return Err(Errno::ECONNREFUSED);
            }
            return Ok(self.perform(call, socket, address));
        }
        let path = path.split(|byte| *byte == 0).next().unwrap_or_default();
        let node = Way::new(task, None, path)?.node()?;
        let seen = fstat(&node)?;
        if !self.listener.waits(call.id) {
            return Ok(Answer::Nobody);
        }
        if SFlag::from_bits_truncate(seen.st_mode & SFlag::S_IFMT.bits()) != SFlag::S_IFSOCK {
            return Err(Errno::ECONNREFUSED);
        }
        if let Some(own) = self.own.get(&seen) {
            return Ok(self.perform(call, socket, &address_of(&own)));
        }
        let name = self.name_of(&node, &seen)?;
        if !self.questions.ask(&self.control, (seen.st_dev, seen.st_ino), &name) {
            return Err(if self.is_about_to_listen(&name) { Errno::ECONNREFUSED } else { Errno::EACCES });
        }
        if !self.listener.waits(call.id) {
            return Ok(Answer::Nobody);
        }
        self.connect_outside(call, socket, &node)
    }

    /// Connects to a service of the host in the command's place, and the command to us.
    fn connect_outside(&self, call: &Call, socket: BorrowedFd<'_>, node: &OwnedFd) -> Result<Answer, Errno> {
        let (side, kind) = match socket::kind(socket)? {
            libc::SOCK_STREAM => (Side::Stream, SockType::Stream),
            libc::SOCK_SEQPACKET => (Side::Packets, SockType::SeqPacket),
            _ => return Err(Errno::EPROTONOSUPPORT),
        };
        let status = OFlag::from_bits_retain(fcntl(socket, FcntlArg::F_GETFL)?);
        let waits = if status.contains(OFlag::O_NONBLOCK) { SockFlag::SOCK_NONBLOCK } else { SockFlag::empty() };
        let host = socket_of(kind, waits)?;
        socket::copy_patience(socket, host.as_fd())?;
        match self.dial(call, host.as_fd(), &address_of(node)) {
            None => Ok(Answer::Nobody),
            Some(Err(errno)) => Err(errno),
            Some(Ok(())) => Ok(Answer::of(self.relays.join(socket, side, host))),
        }
    }

    /// Where the sandbox shows a node. `EACCES`: nowhere, or not any more.
    fn name_of(&self, node: &OwnedFd, seen: &FileStat) -> Result<Vec<u8>, Errno> {
        let name = readlinkat(&self.proc, own_name(node).as_str())?.into_vec();
        let root = mounts::open_root()?;
        // Not a name that only looks like one: of a node without any, the kernel makes one up.
        let there = mounts::open(root.as_fd(), &name).and_then(|there| fstat(&there)).map_err(|_| Errno::EACCES)?;
        let same = name.starts_with(b"/") && (there.st_dev, there.st_ino) == (seen.st_dev, seen.st_ino);
        if same { Ok(name) } else { Err(Errno::EACCES) }
    }

    /// Whether a socket of the sandbox's that does not listen yet is bound to a name like this one. Who waits for a server
    /// to come up shall be told what the kernel would tell. A guess by the last part of names, for the choice between two refusals.
    fn is_about_to_listen(&self, name: &[u8]) -> bool {
        let read = || {
            let flags = OFlag::O_RDONLY | OFlag::O_CLOEXEC;
            let file = openat(&self.proc, "self/net/unix", flags, Mode::empty()).ok()?;
            let mut text = Vec::new();
            std::io::Read::read_to_end(&mut std::fs::File::from(file), &mut text).ok()?;
            Some(text)
        };
        let last = |path: &[u8]| path.rsplit(|byte| *byte == b'/').next().map(<[u8]>::to_vec);
        read().unwrap_or_default().split(|byte| *byte == b'\n').skip(1).any(|line| {
            // Num RefCount Protocol Flags Type St Inode Path; unix(7) has the flag of who listens, __SO_ACCEPTCON.
            let mut fields = line.split(|byte| *byte == b' ').filter(|field| !field.is_empty());
            let (flags, state, path) = (fields.nth(3), fields.nth(1), fields.nth(1));
            let is_deaf = flags == Some(b"00000000") && state == Some(b"01");
            is_deaf && path.is_some_and(|path| path[0] != b'@' && last(path) == last(name))
        })
    }
}

fn address_of(node: &OwnedFd) -> Vec<u8> {
    [&socket::UNIX, own_name(node).as_bytes(), b"\0"].concat()
}

fn socket_of(kind: SockType, flags: SockFlag) -> Result<OwnedFd, Errno> {
    socket(AddressFamily::Unix, kind, flags | SockFlag::SOCK_CLOEXEC, None)
}
