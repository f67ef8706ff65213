//! From an authority to a connection: resolve once, decide every address, dial only what passed.
//!
//! Nothing is looked up twice: the addresses that were decided are the ones that are dialled, so a name that answers
//! differently the second time changes nothing.

use super::Proxy;
use super::authority::{Authority, Host};
use super::gate::LOOPBACK;
use super::limits::Limits;
use super::refusal::Failure;
use crate::sets::host::Name;
use std::future::Future;
use std::io;
use std::net::{IpAddr, SocketAddr};
use std::pin::Pin;
use tokio::net::TcpStream;
use tokio::task::JoinSet;
use tokio::time::{sleep, timeout};

/// Finds the addresses of names.
pub trait Resolve: Send + Sync {
    /// All addresses of `name`, in the order they should be tried.
    fn resolve(&self, name: &Name) -> Lookup;
}

/// A look-up under way.
pub type Lookup = Pin<Box<dyn Future<Output = io::Result<Vec<IpAddr>>> + Send>>;

/// Decides about `authority` and connects to it.
///
/// # Errors
/// The refusal, or why what was allowed could not be reached.
pub(super) async fn connect(proxy: &Proxy, authority: &Authority) -> Result<TcpStream, Failure> {
    connect_at(proxy, authority, &[]).await
}

/// The same where the addresses of the name are known already, if there are any.
pub(super) async fn connect_at(proxy: &Proxy, authority: &Authority, known: &[IpAddr]) -> Result<TcpStream, Failure> {
    let addresses = match &authority.host {
        Host::Address(address) => vec![*address],
        Host::Localhost(_) => LOOPBACK.to_vec(),
        Host::Name(name) => {
            // A name that no rule could allow is not told to any resolver.
            proxy.gate.could_pass(name, authority.port).map_err(Failure::Refused)?;
            if known.is_empty() { resolve(proxy, name).await? } else { known.to_vec() }
        }
    };
    let passed = proxy.gate.passed(authority, &addresses).map_err(Failure::Refused)?;
    let stream = timeout(proxy.limits.dial_all, dial(&passed, authority.port, &proxy.limits));
    let stream = stream.await.unwrap_or_else(|_| Err(io::ErrorKind::TimedOut.into())).map_err(Failure::Dial)?;
    // Not every system can; the connection is as good without it.
    let _ = stream.set_nodelay(true);
    Ok(stream)
}

/// The addresses of a name, without saying whether any may be dialled.
///
/// # Errors
/// [`Failure::Resolve`] alone; of the kind `NotFound` where there is no such name.
pub(super) async fn resolve(proxy: &Proxy, name: &Name) -> Result<Vec<IpAddr>, Failure> {
    let answer = timeout(proxy.limits.resolve, proxy.resolver.resolve(name)).await;
    let answer = answer.unwrap_or_else(|_| Err(io::ErrorKind::TimedOut.into()));
    let mut addresses: Vec<IpAddr> = Vec::new();
    for address in answer.map_err(Failure::Resolve)?.iter().map(IpAddr::to_canonical) {
        if !addresses.contains(&address) && addresses.len() < proxy.limits.addresses {
            addresses.push(address);
        }
    }
    if addresses.is_empty() {
        return Err(Failure::Resolve(io::Error::new(io::ErrorKind::NotFound, "the name has no address")));
    }
    Ok(addresses)
}

/// The first connection to one of `addresses`, each tried a little after the one before (RFC 8305).
async fn dial(addresses: &[IpAddr], port: u16, limits: &Limits) -> io::Result<TcpStream> {
    let mut attempts = JoinSet::new();
    let mut waiting = interleave(addresses).into_iter();
    let mut last = io::Error::new(io::ErrorKind::NotFound, "there is no address to dial");
    loop {
        if let Some(address) = waiting.next() {
            let at = SocketAddr::new(address, port);
            let patience = limits.dial_one;
            attempts.spawn(async move {
                timeout(patience, TcpStream::connect(at)).await.unwrap_or_else(|_| Err(io::ErrorKind::TimedOut.into()))
            });
        }
        let more = waiting.len() > 0;
        tokio::select! {
            ended = attempts.join_next() => match ended {
                Some(Ok(Ok(stream))) => return Ok(stream),
                Some(Ok(Err(error))) => last = error,
                Some(Err(error)) => last = io::Error::other(error),
                None => return Err(last),
            },
            () = sleep(limits.dial_stagger), if more => {}
        }
    }
}

/// The same addresses, families by turns, that of the first one first (RFC 8305, section 4).
fn interleave(addresses: &[IpAddr]) -> Vec<IpAddr> {
    let first_is_v4 = addresses.first().is_some_and(IpAddr::is_ipv4);
    let (mut ours, mut theirs): (Vec<IpAddr>, Vec<IpAddr>) =
        addresses.iter().partition(|address| address.is_ipv4() == first_is_v4);
    let mut order = Vec::with_capacity(addresses.len());
    ours.reverse();
    theirs.reverse();
    while let Some(address) = ours.pop() {
        order.push(address);
        order.extend(theirs.pop());
    }
    theirs.reverse();
    order.extend(theirs);
    order
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use tokio::net::TcpListener;

    fn addresses(text: &str) -> Vec<IpAddr> {
        text.split_whitespace().map(|word| word.parse().unwrap()).collect()
    }

    #[test]
    fn families_take_turns() {
        assert_eq!(interleave(&addresses("::1 ::2 ::3 1.1.1.1")), addresses("::1 1.1.1.1 ::2 ::3"));
        assert_eq!(interleave(&addresses("1.1.1.1 ::1 ::2 ::3 1.1.1.2")), addresses("1.1.1.1 ::1 1.1.1.2 ::2 ::3"));
        assert!(interleave(&[]).is_empty());
    }

    #[tokio::test]
    async fn a_dead_address_does_not_hide_a_living_one() {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let port = listener.local_addr().unwrap().port();
        // Nothing listens at 127.0.0.2 on this port: refused at once.
        let stream = dial(&addresses("127.0.0.2 127.0.0.1"), port, &Limits::STANDARD).await.unwrap();
        assert_eq!(stream.peer_addr().unwrap().ip(), addresses("127.0.0.1")[0]);
    }

    #[tokio::test]
    async fn when_none_answers_the_last_reason_is_told() {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let port = listener.local_addr().unwrap().port();
        drop(listener);
        let error = dial(&addresses("127.0.0.2 127.0.0.1"), port, &Limits::STANDARD).await.unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::ConnectionRefused);
    }
}
