//! The sandbox's own network: loopback up, and how the kernel is told so (netlink(7)).

use super::control::Failure;
use nix::errno::Errno;
use nix::sys::socket::{
    AddressFamily, MsgFlags, NetlinkAddr, SockFlag, SockProtocol, SockType, bind, recv, send, socket,
};
use std::net::{Ipv4Addr, SocketAddrV4};
use std::os::fd::{AsRawFd, OwnedFd};

/// Where the proxy stands: in 198.18.0.0/15 (RFC 2544, for tests of networks), so never on the command's loopback.
pub const PROXY: SocketAddrV4 = SocketAddrV4::new(Ipv4Addr::new(198, 18, 0, 1), 3128);

// linux/netlink.h, linux/rtnetlink.h
const NEW_LINK: u16 = 16;
pub const REQUEST_ACK: u16 = 0x1 | 0x4;
const LOOPBACK: u32 = 1;
const ERROR: u16 = 2;
const IFF_UP: u32 = 1;

/// Brings loopback up.
pub fn set_up() -> Result<(), Failure> {
    let mut up = vec![0, 0, 0, 0];
    for word in [LOOPBACK, IFF_UP, IFF_UP] {
        up.extend(word.to_ne_bytes());
    }
    let request = message(NEW_LINK, REQUEST_ACK, &up);
    exchange(SockProtocol::NetlinkRoute, &[request]).map_err(|errno| Failure::setup("bring loopback up", errno))
}

/// A socket for a connection, which belongs to this network whoever uses it.
pub fn connection(v6: bool) -> Result<OwnedFd, Errno> {
    let family = if v6 { AddressFamily::Inet6 } else { AddressFamily::Inet };
    socket(family, SockType::Stream, SockFlag::SOCK_CLOEXEC | SockFlag::SOCK_NONBLOCK, None)
}

/// `struct nlmsghdr` and a body.
pub fn message(kind: u16, flags: u16, body: &[u8]) -> Vec<u8> {
    let length = u32::try_from(16 + body.len()).unwrap_or(u32::MAX);
    let mut bytes = length.to_ne_bytes().to_vec();
    bytes.extend(kind.to_ne_bytes());
    bytes.extend(flags.to_ne_bytes());
    bytes.extend([0; 8]);
    bytes.extend(body);
    bytes
}

/// `struct nlattr` or `struct rtattr`, and its content, padded.
pub fn attribute(kind: u16, content: &[u8]) -> Vec<u8> {
    let length = u16::try_from(4 + content.len()).unwrap_or(u16::MAX);
    let mut bytes = length.to_ne_bytes().to_vec();
    bytes.extend(kind.to_ne_bytes());
    bytes.extend(content);
    bytes.resize(bytes.len().next_multiple_of(4), 0);
    bytes
}

/// Sends each request and waits for its acknowledgement.
pub fn exchange(protocol: SockProtocol, requests: &[Vec<u8>]) -> Result<(), Errno> {
    let netlink = socket(AddressFamily::Netlink, SockType::Raw, SockFlag::SOCK_CLOEXEC, protocol)?;
    bind(netlink.as_raw_fd(), &NetlinkAddr::new(0, 0))?;
    let mut answer = [0; 4096];
    for request in requests {
        send(netlink.as_raw_fd(), request, MsgFlags::empty())?;
        let length = recv(netlink.as_raw_fd(), &mut answer, MsgFlags::empty())?;
        let answer = answer.get(..length).unwrap_or_default();
        let (Some(kind), Some(code)) = (answer.get(4..6), answer.get(16..20)) else { return Err(Errno::EBADMSG) };
        if kind != ERROR.to_ne_bytes() {
            return Err(Errno::EBADMSG);
        }
        let code = code.try_into().map_or(-libc::EBADMSG, i32::from_ne_bytes);
        if code != 0 {
            return Err(Errno::from_raw(-code));
        }
    }
    Ok(())
}
