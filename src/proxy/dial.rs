//! From an authority to a connection: resolve once, decide every address, dial only what passed.
//!
//! Nothing is looked up twice: the addresses that were decided are the ones that are dialled, so a name that answers
//! differently the second time changes nothing. Where another proxy stands in between, it is told what was decided: an
//! address, if it takes one.

use super::Proxy;
use super::authority::{Authority, Host, LOOPBACK};
use super::limits::Limits;
use super::refusal::Failure;
use super::upstream::{self, Server};
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

/// A connection, and what was decided about it.
#[derive(Debug)]
pub(super) struct Dialled {
    pub stream: TcpStream,
    pub route: Route,
}

/// What was asked for and how it is reached.
#[derive(Debug, Clone)]
pub(super) struct Route {
    pub authority: Authority,
    /// The address that was decided and dialled; `None` where another proxy finds it.
    pub address: Option<IpAddr>,
    /// Those that this machine found then, by all of which it was decided.
    pub seen: Vec<IpAddr>,
    /// That other proxy.
    pub through: Option<String>,
}

/// Decides about `authority` and connects to it.
///
/// # Errors
/// The refusal, or why what was allowed could not be reached.
pub(super) async fn connect(proxy: &Proxy, authority: &Authority) -> Result<Dialled, Failure> {
    connect_at(proxy, authority, &[]).await
}

/// The same where the addresses of the name are known already, if there are any.
pub(super) async fn connect_at(proxy: &Proxy, authority: &Authority, known: &[IpAddr]) -> Result<Dialled, Failure> {
    let server = proxy.upstream.as_ref().and_then(|upstream| upstream.for_tunnel(authority));
    let Some(server) = server else {
        let passed = decided(proxy, authority, known).await?;
        let stream = in_time(proxy, dial(&passed, authority.port, &proxy.limits)).await?;
        let address = stream.peer_addr().ok().map(|peer| peer.ip().to_canonical());
        return Ok(Dialled {
            stream,
            route: Route { authority: authority.clone(), address, seen: Vec::new(), through: None },
        });
    };
    // What it is asked for: the name where it is told names, else one address after the other.
    let mut asked = vec![(authority.clone(), None)];
    let mut found = Vec::new();
    if by_name(server, authority) {
        found = seen(proxy, authority, known).await?;
    } else {
        let addresses = decided(proxy, authority, known).await?.into_iter();
        let at = |address| (Authority { host: Host::Address(address), port: authority.port }, Some(address));
        asked = addresses.map(at).collect();
    }
    let opening = async {
        let mut last = io::Error::from(io::ErrorKind::NotFound);
        for (asked, address) in asked {
            let mut stream = to_server(proxy, server).await?;
            match upstream::open(&mut stream, server, &asked).await {
                Ok(()) => return Ok((stream, address)),
                Err(declined) => last = io::Error::other(format!("{server}: {declined}")),
            }
        }
        Err(last)
    };
    let (stream, address) = in_time(proxy, opening).await?;
    let route = Route { authority: authority.clone(), address, seen: found, through: Some(server.to_string()) };
    Ok(Dialled { stream, route })
}

/// Decides about a request in plain HTTP, and connects to whoever takes it: the other proxy that is for such, or the host.
///
/// # Errors
/// As [`connect`].
pub(super) async fn connect_for_request<'p>(
    proxy: &'p Proxy,
    authority: &Authority,
) -> Result<(Dialled, Option<&'p Server>), Failure> {
    let server = proxy.upstream.as_ref().and_then(|upstream| upstream.for_request(authority));
    let Some(server) = server else { return connect(proxy, authority).await.map(|dialled| (dialled, None)) };
    let found = decide_for_request(proxy, server, authority, &[]).await?;
    let stream = in_time(proxy, to_server(proxy, server)).await?;
    let address = match authority.host {
        Host::Address(address) => Some(address),
        Host::Name(_) | Host::Localhost(_) => None,
    };
    let route = Route { authority: authority.clone(), address, seen: found, through: Some(server.to_string()) };
    Ok((Dialled { stream, route }, Some(server)))
}

/// Whether a request may go through that proxy; where that one finds the address, those that this machine found.
///
/// # Errors
/// The refusal, or that this machine needed to know an address and does not.
pub(super) async fn decide_for_request(
    proxy: &Proxy,
    server: &Server,
    authority: &Authority,
    known: &[IpAddr],
) -> Result<Vec<IpAddr>, Failure> {
    if by_name(server, authority) {
        return seen(proxy, authority, known).await;
    }
    decided(proxy, authority, known).await.map(|_| Vec::new())
}

fn by_name(server: &Server, authority: &Authority) -> bool {
    server.resolves() && matches!(authority.host, Host::Name(_))
}

/// The addresses that may be dialled.
async fn decided(proxy: &Proxy, authority: &Authority, known: &[IpAddr]) -> Result<Vec<IpAddr>, Failure> {
    let addresses = match &authority.host {
        Host::Address(address) => vec![*address],
        Host::Localhost(_) => LOOPBACK.to_vec(),
        Host::Name(name) => {
            // A name that no rule could allow is not told to any resolver.
            proxy.gate().could_pass(name, authority.port).map_err(Failure::Refused)?;
            if known.is_empty() { resolve(proxy, name).await? } else { known.to_vec() }
        }
    };
    proxy.gate().passed(authority, &addresses).map_err(Failure::Refused)
}

/// Decides about a name whose address another proxy finds; the addresses that this machine finds.
async fn seen(proxy: &Proxy, authority: &Authority, known: &[IpAddr]) -> Result<Vec<IpAddr>, Failure> {
    let Host::Name(name) = &authority.host else {
        return decided(proxy, authority, known).await.map(|_| Vec::new());
    };
    proxy.gate().could_pass(name, authority.port).map_err(Failure::Refused)?;
    let known = if known.is_empty() { resolve_beside(proxy, name).await } else { known.to_vec() };
    proxy.gate().passes_unseen(authority, name, &known)?;
    Ok(known)
}

/// The addresses of a name as far as this machine knows it, without much waiting.
pub(super) async fn resolve_beside(proxy: &Proxy, name: &Name) -> Vec<IpAddr> {
    let Some(upstream) = proxy.upstream.as_ref().filter(|upstream| upstream.may_ask()) else { return Vec::new() };
    let Ok(found) = timeout(proxy.limits.resolve_beside, resolve(proxy, name)).await else {
        upstream.leave_alone(proxy.limits.silence);
        return Vec::new();
    };
    found.unwrap_or_default()
}

/// A connection to the other proxy itself, which whoever started us has chosen: no rule is about it.
async fn to_server(proxy: &Proxy, server: &Server) -> io::Result<TcpStream> {
    let failed = |error: io::Error| io::Error::new(error.kind(), format!("the proxy {server}: {error}"));
    let at = server.at();
    let addresses = match &at.host {
        Host::Address(address) => vec![*address],
        Host::Localhost(_) => LOOPBACK.to_vec(),
        Host::Name(name) => proxy.resolver.resolve(name).await.map_err(failed)?,
    };
    dial(&addresses, at.port, &proxy.limits).await.map_err(failed)
}

async fn in_time<T>(proxy: &Proxy, dialling: impl Future<Output = io::Result<T>>) -> Result<T, Failure> {
    let done = timeout(proxy.limits.dial_all, dialling).await;
    done.unwrap_or_else(|_| Err(io::ErrorKind::TimedOut.into())).map_err(Failure::Dial)
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
                Some(Ok(Ok(stream))) => {
                    // Not every system can; the connection is as good without it.
                    let _ = stream.set_nodelay(true);
                    return Ok(stream);
                }
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
