//! Sockets as their descriptors tell of them, and the calls on them that nix does not wrap. Decides nothing.

use crate::exec::linux::kernel::{checked, descriptor};
use nix::errno::Errno;
use nix::sys::signal::{SigSet, Signal};
use std::os::fd::{AsRawFd, BorrowedFd, OwnedFd};

/// What ends a wait of ours in a call that is made for a thread that is gone.
pub const INTERRUPT: Signal = Signal::SIGUSR2;

/// `AF_UNIX`, as an address begins.
pub const UNIX: [u8; 2] = 1_u16.to_ne_bytes();

/// The family, `AF_…`. `ENOTSOCK`: it is none.
pub fn domain(socket: BorrowedFd<'_>) -> Result<i32, Errno> {
    number(socket, libc::SO_DOMAIN)
}

/// `SOCK_STREAM`, …
pub fn kind(socket: BorrowedFd<'_>) -> Result<i32, Errno> {
    number(socket, libc::SO_TYPE)
}

fn number(socket: BorrowedFd<'_>, option: i32) -> Result<i32, Errno> {
    let mut value = [0; 4];
    get(socket, option, &mut value)?;
    Ok(i32::from_ne_bytes(value))
}

/// Which network namespace it was made in (Linux 5.14).
pub fn namespace(socket: BorrowedFd<'_>) -> Result<u64, Errno> {
    const SO_NETNS_COOKIE: i32 = 71;
    let mut value = [0; 8];
    get(socket, SO_NETNS_COOKIE, &mut value)?;
    Ok(u64::from_ne_bytes(value))
}

/// How long connecting may take, as the kernel has it: a `struct timeval`.
pub fn copy_patience(from: BorrowedFd<'_>, to: BorrowedFd<'_>) -> Result<(), Errno> {
    let mut value = [0; size_of::<libc::timeval>()];
    get(from, libc::SO_SNDTIMEO, &mut value)?;
    set(to, libc::SO_SNDTIMEO, &value)
}

#[allow(unsafe_code)]
fn get(socket: BorrowedFd<'_>, option: i32, value: &mut [u8]) -> Result<(), Errno> {
    let mut length = libc::socklen_t::try_from(value.len()).map_err(|_| Errno::EINVAL)?;
    // SAFETY: value and length are valid for the call, which writes no more than the length says.
    checked(unsafe {
        libc::getsockopt(socket.as_raw_fd(), libc::SOL_SOCKET, option, value.as_mut_ptr().cast(), &raw mut length)
    })
    .map(drop)
}

#[allow(unsafe_code)]
fn set(socket: BorrowedFd<'_>, option: i32, value: &[u8]) -> Result<(), Errno> {
    let length = libc::socklen_t::try_from(value.len()).map_err(|_| Errno::EINVAL)?;
    // SAFETY: value and length are valid for the call.
    checked(unsafe { libc::setsockopt(socket.as_raw_fd(), libc::SOL_SOCKET, option, value.as_ptr().cast(), length) })
        .map(drop)
}

/// `connect(2)` with the bytes of an address.
#[allow(unsafe_code)]
pub fn connect(socket: BorrowedFd<'_>, address: &[u8]) -> Result<(), Errno> {
    let length = libc::socklen_t::try_from(address.len()).map_err(|_| Errno::EINVAL)?;
    // SAFETY: the address is valid for its length.
    checked(unsafe { libc::connect(socket.as_raw_fd(), address.as_ptr().cast(), length) }).map(drop)
}

/// Makes a call that [`INTERRUPT`] ends.
pub fn interruptible<T>(act: impl FnOnce() -> Result<T, Errno>) -> Result<T, Errno> {
    let interrupt = SigSet::from(INTERRUPT);
    interrupt.thread_unblock()?;
    let done = act();
    interrupt.thread_block()?;
    done
}

/// Whether it has no peer.
pub fn is_unconnected(socket: BorrowedFd<'_>) -> bool {
    nix::sys::socket::getpeername::<nix::sys::socket::SockaddrStorage>(socket.as_raw_fd()) == Err(Errno::ENOTCONN)
}

/// The node that a unix socket is bound to, as a place (SIOCUNIXFILE, Linux 4.12). `ENOENT`: it is bound to none.
#[allow(unsafe_code)]
pub fn bound_node(socket: BorrowedFd<'_>) -> Result<OwnedFd, Errno> {
    const SIOCUNIXFILE: libc::c_ulong = 0x89e0;
    // SAFETY: the request takes nothing.
    descriptor(unsafe { libc::ioctl(socket.as_raw_fd(), SIOCUNIXFILE, 0) })
}

/// How many bytes wait in it, in all its packets (unix(7), SIOCINQ).
#[allow(unsafe_code)]
pub fn unread(socket: BorrowedFd<'_>) -> Result<usize, Errno> {
    let mut count: libc::c_int = 0;
    // SAFETY: the request writes one integer.
    checked(unsafe { libc::ioctl(socket.as_raw_fd(), libc::FIONREAD, &raw mut count) })?;
    usize::try_from(count).map_err(|_| Errno::EINVAL)
}

/// Makes [`INTERRUPT`] do nothing but end a wait.
#[allow(unsafe_code)]
pub fn take_interrupts() -> Result<(), Errno> {
    use nix::sys::signal::{SaFlags, SigAction, SigHandler, sigaction};
    extern "C" fn nothing(_: libc::c_int) {}
    let action = SigAction::new(SigHandler::Handler(nothing), SaFlags::empty(), SigSet::empty());
    // SAFETY: the handler does nothing.
    unsafe { sigaction(INTERRUPT, &action) }.map(drop)
}

/// This thread's number, and how to interrupt a thread of this process by it.
#[allow(unsafe_code)]
pub fn interrupt(thread: nix::unistd::Pid) {
    // SAFETY: takes integers only; a number that is no thread of this process any more is refused.
    unsafe {
        libc::syscall(libc::SYS_tgkill, nix::unistd::getpid().as_raw(), thread.as_raw(), INTERRUPT as libc::c_int)
    };
}

/// A listener that does not wait, under a name that the kernel has chosen in this network namespace, and its address.
#[allow(unsafe_code)]
pub fn listener(kind: libc::c_int) -> Result<(OwnedFd, Vec<u8>), Errno> {
    const BACKLOG: libc::c_int = 128;
    let kind = kind | libc::SOCK_CLOEXEC | libc::SOCK_NONBLOCK;
    // SAFETY: takes integers only.
    let socket = descriptor(unsafe { libc::socket(libc::AF_UNIX, kind, 0) })?;
    let fd = socket.as_raw_fd();
    // An address that is a family alone asks for a name (unix(7), autobind).
    let mut name = [0_u8; 128];
    let mut length = 128;
    // SAFETY: the addresses are valid for their lengths, of which the last is written.
    unsafe {
        checked(libc::bind(fd, UNIX.as_ptr().cast(), 2))?;
        checked(libc::listen(fd, BACKLOG))?;
        checked(libc::getsockname(fd, name.as_mut_ptr().cast(), &raw mut length))?;
    }
    let length = usize::try_from(length).unwrap_or_default();
    Ok((socket, name.get(..length).unwrap_or_default().to_vec()))
}
