//! The sandbox's own network: loopback up, an address for the proxy, and the listener that is passed out.

use super::control::Failure;
use nix::errno::Errno;
use nix::sys::socket::{
    AddressFamily, MsgFlags, NetlinkAddr, SockFlag, SockProtocol, SockType, bind, recv, send, socket,
};
use std::net::{Ipv4Addr, SocketAddrV4, TcpListener};
use std::os::fd::{AsRawFd, OwnedFd};

/// Where the proxy stands: in 198.18.0.0/15 (RFC 2544, for tests of networks), so never on the command's loopback.
pub const PROXY: SocketAddrV4 = SocketAddrV4::new(Ipv4Addr::new(198, 18, 0, 1), 3128);

// linux/netlink.h, linux/rtnetlink.h, linux/if_addr.h
const NEW_LINK: u16 = 16;
const NEW_ADDRESS: u16 = 20;
const REQUEST_ACK: u16 = 0x1 | 0x4;
const CREATE_EXCLUSIVE: u16 = 0x400 | 0x200;
const LOOPBACK: u32 = 1;
const ERROR: u16 = 2;
const IFF_UP: u32 = 1;
const AF_INET: u8 = 2;
const IFA_ADDRESS: u16 = 1;
const IFA_LOCAL: u16 = 2;

/// Brings loopback up.
pub fn set_up() -> Result<(), Failure> {
    let mut up = vec![0, 0, 0, 0];
    for word in [LOOPBACK, IFF_UP, IFF_UP] {
        up.extend(word.to_ne_bytes());
    }
    let request = message(NEW_LINK, REQUEST_ACK, &up);
    exchange(SockProtocol::NetlinkRoute, &[request]).map_err(|errno| Failure::setup("bring loopback up", errno))
}

/// Gives loopback the proxy's address, and listens there.
pub fn listen() -> Result<OwnedFd, Failure> {
    let address = PROXY.ip().octets();
    let mut new = vec![AF_INET, 32, 0, 0];
    new.extend(LOOPBACK.to_ne_bytes());
    for kind in [IFA_LOCAL, IFA_ADDRESS] {
        new.extend(8u16.to_ne_bytes());
        new.extend(kind.to_ne_bytes());
        new.extend(address);
    }
    let request = message(NEW_ADDRESS, REQUEST_ACK | CREATE_EXCLUSIVE, &new);
    exchange(SockProtocol::NetlinkRoute, &[request])
        .map_err(|errno| Failure::setup("give loopback the proxy's address", errno))?;
    let failed = |error: std::io::Error| {
        Failure::setup("listen for the proxy", Errno::from_raw(error.raw_os_error().unwrap_or(libc::EIO)))
    };
    let listener = TcpListener::bind(PROXY).map_err(failed)?;
    listener.set_nonblocking(true).map_err(failed)?;
    Ok(listener.into())
}

/// Whether an nftables table can be made in this network namespace, which is the caller's own.
pub fn try_nftables() -> Result<(), Errno> {
    const BATCH_BEGIN: u16 = 0x10;
    const BATCH_END: u16 = 0x11;
    const NEW_TABLE: u16 = 0x0a00;
    const CREATE: u16 = 0x400;
    const NFTABLES: u8 = 10;
    const INET: u8 = 1;
    // `struct nfgenmsg`, and for the table a NUL-terminated name as attribute 1.
    let begin = [0, 0, 0, NFTABLES];
    let mut table = vec![INET, 0, 0, 0];
    table.extend(8u16.to_ne_bytes());
    table.extend(1u16.to_ne_bytes());
    table.extend(b"srt\0");
    let batch = [
        message(BATCH_BEGIN, 1, &begin),
        message(NEW_TABLE, REQUEST_ACK | CREATE, &table),
        message(BATCH_END, 1, &begin),
    ];
    exchange(SockProtocol::NetlinkNetFilter, &[batch.concat()])
}

/// `struct nlmsghdr` and a body.
fn message(kind: u16, flags: u16, body: &[u8]) -> Vec<u8> {
    let length = u32::try_from(16 + body.len()).unwrap_or(u32::MAX);
    let mut bytes = length.to_ne_bytes().to_vec();
    bytes.extend(kind.to_ne_bytes());
    bytes.extend(flags.to_ne_bytes());
    bytes.extend([0; 8]);
    bytes.extend(body);
    bytes
}

/// Sends each request and waits for its acknowledgement.
fn exchange(protocol: SockProtocol, requests: &[Vec<u8>]) -> Result<(), Errno> {
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
