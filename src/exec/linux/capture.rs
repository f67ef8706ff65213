//! Where connections of the command end up: addresses and a route to everywhere that lead to ourselves, the sockets that
//! are passed out, and the redirection to them.
//!
//! Where the kernel has no nftables, there are listeners on the ports that the policy names instead; where these are too
//! many, the proxy that variables name is all there is. Which it is, is found by doing it, and told.

use super::control::{Failure, Missing};
use super::network::{self, PROXY, REQUEST_ACK, attribute, message};
use super::nftables::{self, Redirection};
use crate::backend::bubblewrap::Ports;
use nix::errno::Errno;
use nix::sys::socket::SockProtocol;
use nix::sys::socket::{getsockopt, sockopt};
use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, SocketAddrV6, TcpListener, UdpSocket};
use std::os::fd::{AsFd, OwnedFd};

/// The proxy's other address, of a network that nobody else has (RFC 4193).
const PROXY6: SocketAddrV6 = SocketAddrV6::new(Ipv6Addr::new(0xfd00, 0x5b, 0, 0, 0, 0, 0, 1), PROXY.port(), 0, 0);

/// Where names are asked for, which is redirected.
const DNS: u16 = 53;

/// How many ports get a listener of their own where nothing can be redirected.
const MOST: usize = 64;

/// The sockets of one sandbox.
pub struct Doors {
    pub sockets: Vec<OwnedFd>,
    /// What is left where nothing is redirected.
    pub missing: Option<Missing>,
}

// linux/rtnetlink.h, linux/if_addr.h
const NEW_ADDRESS: u16 = 20;
const NEW_ROUTE: u16 = 24;
const CREATE_EXCLUSIVE: u16 = 0x400 | 0x200;
const AF_INET: u8 = 2;
const AF_INET6: u8 = 10;
const LOOPBACK: u32 = 1;
const IFA_ADDRESS: u16 = 1;
const IFA_LOCAL: u16 = 2;
const NO_DUPLICATE_DETECTION: u8 = 2;
const RTA_OIF: u16 = 4;
const RTA_PREFSRC: u16 = 7;
const TABLE_LOCAL: u8 = 255;
const PROTOCOL_STATIC: u8 = 4;
const SCOPE_HOST: u8 = 254;
const TYPE_LOCAL: u8 = 2;

impl Doors {
    /// Whether nothing but variables leads to the proxy.
    pub fn alone(&self) -> bool {
        self.missing.as_ref().is_some_and(|missing| missing.alone)
    }
}

/// Makes them; `redirect` is false for a test that wants none of that. Loopback is up.
pub fn open(ports: &Ports, redirect: bool) -> Result<Doors, Failure> {
    let mut proxies = vec![SocketAddr::from(PROXY)];
    place(PROXY.ip().to_owned().into()).map_err(|errno| Failure::setup("give loopback the proxy's address", errno))?;
    // Where there is no IPv6, the command has none either.
    if place(PROXY6.ip().to_owned().into()).is_ok() {
        proxies.push(PROXY6.into());
    }
    let mut sockets = Vec::new();
    for proxy in &proxies {
        sockets.push(listen(*proxy).map_err(failed("listen for the proxy"))?);
        // Not port 53, for which bubblewrap leaves no capability: questions are redirected too.
        sockets.push(ask(*proxy).map_err(failed("listen for questions"))?);
    }
    let redirection = Redirection { proxies, v4: ports.loopback4.clone(), v6: ports.loopback6.clone() };
    let missing = if redirect {
        network::exchange(SockProtocol::NetlinkNetFilter, &[nftables::batch(&redirection)]).err()
    } else {
        Some(Errno::EOPNOTSUPP)
    };
    let missing = missing.map(|errno| {
        let (listeners, unheard, alone) = one_by_one(ports);
        sockets.extend(listeners);
        Missing { errno, unheard, alone }
    });
    Ok(Doors { sockets, missing })
}

/// An address on loopback, from which everything is reached, and everything leads there.
fn place(address: IpAddr) -> Result<(), Errno> {
    let (family, bytes) = match address {
        IpAddr::V4(address) => (AF_INET, address.octets().to_vec()),
        IpAddr::V6(address) => (AF_INET6, address.octets().to_vec()),
    };
    let length = u8::try_from(8 * bytes.len()).unwrap_or(u8::MAX);
    // struct ifaddrmsg: family, length of the prefix, flags, scope, index.
    let mut new = vec![family, length, NO_DUPLICATE_DETECTION, 0];
    new.extend(LOOPBACK.to_ne_bytes());
    for kind in [IFA_LOCAL, IFA_ADDRESS] {
        new.extend(attribute(kind, &bytes));
    }
    // struct rtmsg: family, lengths of the prefixes, type of service, table, protocol, scope, type, flags.
    let mut route = vec![family, 0, 0, 0, TABLE_LOCAL, PROTOCOL_STATIC, SCOPE_HOST, TYPE_LOCAL, 0, 0, 0, 0];
    route.extend(attribute(RTA_OIF, &LOOPBACK.to_ne_bytes()));
    route.extend(attribute(RTA_PREFSRC, &bytes));
    let requests = [
        message(NEW_ADDRESS, REQUEST_ACK | CREATE_EXCLUSIVE, &new),
        message(NEW_ROUTE, REQUEST_ACK | CREATE_EXCLUSIVE, &route),
    ];
    network::exchange(SockProtocol::NetlinkRoute, &requests)
}

fn listen(at: SocketAddr) -> io::Result<OwnedFd> {
    let listener = TcpListener::bind(at)?;
    listener.set_nonblocking(true)?;
    Ok(listener.into())
}

fn ask(at: SocketAddr) -> io::Result<OwnedFd> {
    let socket = UdpSocket::bind(at)?;
    socket.set_nonblocking(true)?;
    Ok(socket.into())
}

/// Every address is ours: a listener on all of them is one for each that the command connects to. With them, the ports that
/// cannot be listened on, and whether there are too many.
fn one_by_one(ports: &Ports) -> (Vec<OwnedFd>, Vec<u16>, bool) {
    let count = |ranges: &[(u16, u16)]| ranges.iter().map(|(low, high)| usize::from(high - low) + 1).sum::<usize>();
    // Where they are too many, those of the command's loopback at least: NO_PROXY counts on them.
    let loopback = [&ports.loopback4[..], &ports.loopback6].concat();
    let ranges = [ports.all.clone(), loopback].into_iter().find(|ranges| (1..MOST).contains(&count(ranges)));
    let alone = ranges.is_none();
    let ranges = ranges.unwrap_or_default();
    let mut numbers: Vec<u16> = ranges.into_iter().flat_map(|(low, high)| low..=high).chain([DNS]).collect();
    numbers.sort_unstable();
    numbers.dedup();
    let (mut sockets, mut unheard) = (Vec::new(), Vec::new());
    for number in numbers {
        // That of IPv6 takes both families, where there is one.
        let both = listen(SocketAddr::new(Ipv6Addr::UNSPECIFIED.into(), number));
        match both.or_else(|_| listen(SocketAddr::new(Ipv4Addr::UNSPECIFIED.into(), number))) {
            Ok(listener) => sockets.push(listener),
            Err(_) => unheard.push(number),
        }
    }
    match ask(SocketAddr::new(Ipv4Addr::UNSPECIFIED.into(), DNS)) {
        Ok(socket) => sockets.push(socket),
        Err(_) if unheard.contains(&DNS) => {}
        Err(_) => unheard.push(DNS),
    }
    (sockets, unheard, alone)
}

fn failed(act: &'static str) -> impl Fn(io::Error) -> Failure {
    move |error| Failure::setup(act, Errno::from_raw(error.raw_os_error().unwrap_or(libc::EIO)))
}

/// Whom an accepted connection was opened to; `None` where that is the proxy.
pub fn target(stream: &tokio::net::TcpStream) -> io::Result<Option<SocketAddr>> {
    let local = stream.local_addr()?;
    let original = if local.is_ipv4() {
        getsockopt(&stream.as_fd(), sockopt::OriginalDst).map(|at| {
            let address = Ipv4Addr::from(u32::from_be(at.sin_addr.s_addr));
            SocketAddr::new(address.into(), u16::from_be(at.sin_port))
        })
    } else {
        getsockopt(&stream.as_fd(), sockopt::Ip6tOriginalDst).map(|at| {
            let address = Ipv6Addr::from(at.sin6_addr.s6_addr);
            SocketAddr::new(address.into(), u16::from_be(at.sin6_port))
        })
    };
    // What was redirected nowhere was opened to where it is.
    let target = original.unwrap_or(local);
    Ok((target != SocketAddr::from(PROXY) && target != SocketAddr::from(PROXY6)).then_some(target))
}
