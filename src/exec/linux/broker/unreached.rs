//! Connections for which there is no way: what the policy lets nothing be connected to, the sandbox's network does not have. They
//! fail by themselves, and are told.
//!
//! Of looking up names only that is seen: a question, connected to the port of name servers, in a network that has none. Which name it
//! asks for is in what is sent then, at which nobody looks; nor at what is sent without connecting (musl asks so).

use super::task::Task;
use super::{Answer, Broker, socket};
use crate::exec::linux::control::{Report, Unreached};
use nix::errno::Errno;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::os::fd::BorrowedFd;

/// The port of name servers.
const NAMES: u16 = 53;

impl Broker {
    /// Tells of a connection that came to this, if it is one of these. Waits for nobody.
    pub(super) fn tell_unreached(&self, task: &Task<'_>, socket: BorrowedFd<'_>, address: &[u8], answer: Answer) {
        let Some(address) = internet(address) else { return };
        let to = match socket::kind(socket) {
            Ok(libc::SOCK_STREAM) if no_way(answer) && !address.ip().is_loopback() => Some(address),
            Ok(libc::SOCK_DGRAM) if self.is_apart && address.port() == NAMES => None,
            _ => return,
        };
        let report = Report::Unreached(Unreached { process: task.process(), name: task.name(), to });
        self.tell_at_once(&report);
    }
}

/// What the kernel says where no route leads to an address, or there is none to come from.
fn no_way(answer: Answer) -> bool {
    use Errno::{EADDRNOTAVAIL, EHOSTUNREACH, ENETDOWN, ENETUNREACH};
    matches!(answer, Answer::Failed(ENETUNREACH | EHOSTUNREACH | EADDRNOTAVAIL | ENETDOWN))
}

/// An address of IP, as `struct sockaddr_in` and `sockaddr_in6` have it (ip(7), ipv6(7)).
fn internet(address: &[u8]) -> Option<SocketAddr> {
    let (family, rest) = address.split_first_chunk::<2>()?;
    let (port, rest) = rest.split_first_chunk::<2>()?;
    let ip = match i32::from(u16::from_ne_bytes(*family)) {
        libc::AF_INET => IpAddr::V4(Ipv4Addr::from(*rest.first_chunk::<4>()?)),
        // Behind the flow.
        libc::AF_INET6 => IpAddr::V6(Ipv6Addr::from(*rest.get(4..)?.first_chunk::<16>()?)).to_canonical(),
        _ => return None,
    };
    Some(SocketAddr::new(ip, u16::from_be_bytes(*port)))
}

#[cfg(test)]
mod tests {
    use super::internet;

    #[test]
    fn addresses_are_read_as_the_kernel_reads_them() {
        let of = |family: u16, rest: &[u8]| internet(&[&family.to_ne_bytes(), rest].concat()).map(|it| it.to_string());
        assert_eq!(of(2, &[1, 187, 192, 0, 2, 7, 0, 0, 0, 0, 0, 0, 0, 0]), Some("192.0.2.7:443".into()));
        let six = |address: [u8; 16]| of(10, &[&[0, 80, 0, 0, 0, 0], &address[..], &[0; 4]].concat());
        assert_eq!(six([0x20, 1, 0xd, 0xb8, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1]), Some("[2001:db8::1]:80".into()));
        assert_eq!(six([0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff, 192, 0, 2, 7]), Some("192.0.2.7:80".into()));
        assert_eq!(of(2, &[1, 187, 192]), None);
        assert_eq!(of(1, b"/run/x\0"), None);
        assert_eq!(internet(&[]), None);
    }
}
