//! The resolver that the command asks: it answers the names that a rule may allow with addresses of its own, by which the
//! proxy knows the name again when a connection comes to one.
//!
//! A name is looked up outside before it is answered, so that one that does not exist does not exist inside either; a name
//! that no rule allows is told to nobody, and does not exist. Addresses (A) alone are answered: other records would carry
//! data to and fro.

mod message;
mod names;

pub(super) use names::Names;

use super::Proxy;
use super::dial;
use super::refusal::Failure;
use crate::sets::host::Name;
use message::{Answer, Kind, Query, Status};
use names::Flood;
use std::future::poll_fn;
use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::Poll;
use tokio::io::{AsyncReadExt, AsyncWriteExt, ReadBuf};
use tokio::net::{TcpStream, UdpSocket};
use tokio::task::JoinSet;
use tokio::time::timeout;

/// Whatever is sent there comes here.
pub const PORT: u16 = 53;

/// The longest question over UDP that is read; more than any name needs, with EDNS.
const LONGEST: usize = 1232;

/// Answers questions from these sockets until the future is dropped.
pub(super) async fn over_datagrams(sockets: &[UdpSocket], proxy: &Arc<Proxy>) -> io::Result<()> {
    let sockets: Vec<&UdpSocket> = sockets.iter().collect();
    let mut answers: JoinSet<(usize, SocketAddr, Option<Vec<u8>>)> = JoinSet::new();
    let mut buffer = vec![0; LONGEST];
    loop {
        tokio::select! {
            received = receive(&sockets, &mut buffer) => {
                // What one of them fails with is of one datagram (a client that is gone).
                let Ok((at, peer, length)) = received else { continue };
                let bytes = buffer.get(..length).unwrap_or_default().to_vec();
                let proxy = Arc::clone(proxy);
                if answers.len() < proxy.limits.questions {
                    answers.spawn(async move { (at, peer, answer(&proxy, &bytes).await) });
                } else if let Ok(query) = Query::read(&bytes) {
                    send(&sockets, at, peer, &query.answer(Answer::Nothing(Status::Failure)));
                }
            }
            Some(done) = answers.join_next() => {
                if let Ok((at, peer, Some(answer))) = done {
                    send(&sockets, at, peer, &answer);
                }
            }
        }
    }
}

/// The next datagram, its socket and its sender.
async fn receive(sockets: &[&UdpSocket], buffer: &mut [u8]) -> io::Result<(usize, SocketAddr, usize)> {
    poll_fn(|context| {
        for (at, socket) in sockets.iter().enumerate() {
            let mut buffer = ReadBuf::new(buffer);
            if let Poll::Ready(received) = socket.poll_recv_from(context, &mut buffer) {
                return Poll::Ready(received.map(|peer| (at, peer, buffer.filled().len())));
            }
        }
        Poll::Pending
    })
    .await
}

/// A client that does not take its answer asks again.
fn send(sockets: &[&UdpSocket], at: usize, peer: SocketAddr, answer: &[u8]) {
    let _ = sockets.get(at).map(|socket| socket.try_send_to(answer, peer));
}

/// Questions over TCP (RFC 7766): one after the other, each with its length before it.
pub(super) async fn over_stream(proxy: &Proxy, mut stream: TcpStream, served: &AtomicBool) {
    let limits = &proxy.limits;
    loop {
        let question = async {
            let length = stream.read_u16().await?;
            let mut bytes = vec![0; usize::from(length)];
            stream.read_exact(&mut bytes).await?;
            Ok::<_, io::Error>(bytes)
        };
        let Ok(Ok(bytes)) = timeout(limits.first_byte, question).await else { return };
        served.store(true, Ordering::Relaxed);
        let Some(answer) = answer(proxy, &bytes).await else { return };
        let length = u16::try_from(answer.len()).unwrap_or(0).to_be_bytes();
        let sent = async { stream.write_all(&[&length, &answer[..]].concat()).await };
        if !matches!(timeout(limits.first_byte, sent).await, Ok(Ok(()))) {
            return;
        }
    }
}

/// The answer to one message where no name is known.
#[cfg(fuzzing)]
pub fn fuzzed(bytes: &[u8]) -> Option<Vec<u8>> {
    match Query::read(bytes) {
        Ok(query) => {
            assert!(query.name.len() < 256 && query.name.is_ascii());
            // What is read is written again, whatever the answer.
            query.answer(Answer::Name(query.name.clone()));
            Some(query.answer(Answer::Nothing(Status::NoSuchName)))
        }
        Err(refusal) => refusal,
    }
}

/// The answer to one message; `None` for what is no question.
async fn answer(proxy: &Proxy, bytes: &[u8]) -> Option<Vec<u8>> {
    match Query::read(bytes) {
        Ok(query) => Some(query.answer(decide(proxy, &query).await)),
        Err(refusal) => refusal,
    }
}

async fn decide(proxy: &Proxy, query: &Query<'_>) -> Answer {
    if query.kind == Kind::Pointer {
        return pointer(proxy, &query.name);
    }
    // What is no host name is no name of the policy's.
    let Ok(name) = Name::parse(&query.name) else { return Answer::Nothing(Status::NoSuchName) };
    if name.is_localhost() {
        return match query.kind {
            Kind::Address => Answer::Address(Ipv4Addr::LOCALHOST),
            Kind::Address6 => Answer::Address6(Ipv6Addr::LOCALHOST),
            _ => Answer::Nothing(Status::Good),
        };
    }
    if let Err(refused) = proxy.gate().could_resolve(&name) {
        // Programs ask for both kinds of addresses at once, and browsers for more: that is one refusal.
        if !matches!(query.kind, Kind::Address6 | Kind::Service) {
            proxy.report_name(&refused);
        }
        return Answer::Nothing(Status::NoSuchName);
    }
    match query.kind {
        Kind::Address => address(proxy, &name).await,
        _ => Answer::Nothing(Status::Good),
    }
}

async fn address(proxy: &Proxy, name: &Name) -> Answer {
    if let Some(address) = proxy.names.fresh(name) {
        return Answer::Address(address);
    }
    if let Err(flood) = proxy.names.admit(name) {
        if let Flood::First(what) = flood {
            proxy.report_flood(what);
        }
        return Answer::Nothing(Status::Failure);
    }
    let given = |addresses| proxy.names.give(name, addresses).map_or(Answer::Nothing(Status::Failure), Answer::Address);
    if proxy.upstream.as_ref().is_some_and(|upstream| upstream.may_know(name)) {
        // Whether there is such a name, the other proxy knows.
        return given(dial::resolve_beside(proxy, name).await);
    }
    match dial::resolve(proxy, name).await {
        Ok(addresses) => given(addresses),
        Err(Failure::Resolve(error)) if error.kind() == io::ErrorKind::NotFound => Answer::Nothing(Status::NoSuchName),
        Err(_) => Answer::Nothing(Status::Failure),
    }
}

/// The name of an address of ours.
fn pointer(proxy: &Proxy, name: &str) -> Answer {
    let address = name.strip_suffix(".in-addr.arpa").and_then(|reversed| {
        let parts: Vec<&str> = reversed.rsplit('.').collect();
        parts.join(".").parse::<Ipv4Addr>().ok()
    });
    match address {
        Some(Ipv4Addr::LOCALHOST) => Answer::Name("localhost".into()),
        Some(address) => match proxy.names.at(IpAddr::V4(address)) {
            Some((name, _)) => Answer::Name(name.to_string()),
            None => Answer::Nothing(Status::NoSuchName),
        },
        None => Answer::Nothing(Status::NoSuchName),
    }
}
