//! One connection, from its first byte to its end: whom it was opened to or, where that is the proxy, what it speaks.
//!
//! A captured connection is decided and dialled before its client has said anything, so that a server that speaks first is
//! heard at once. What is refused then is cut off: nobody would read an answer.

use super::Proxy;
use super::authority::{Authority, Host};
use super::dial::{self, Dialled, Route};
use super::forward::{Origin, Session};
use super::refusal::Failure;
use super::side::Side;
use super::tunnel::{self, Ending, Passed};
use super::{resolver, socks};
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::{TokioIo, TokioTimer};
use std::convert::Infallible;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Instant;
use tokio::net::TcpStream;
use tokio::time::timeout;

/// The port of HTTP without TLS (RFC 9110, section 4.2.1).
const HTTP: u16 = 80;

/// What a connection is at the moment.
enum Stage {
    /// HTTP, to a proxy or to one server.
    Http(Side, Option<Origin>),
    /// Bytes both ways, to a server that was allowed; and whether what was in it is decided already.
    Tunnel(Side, Side, Route, bool),
}

/// Serves a connection to its end. `served` is set once it is more than a client that has said nothing.
pub(super) async fn serve(stream: TcpStream, target: Option<SocketAddr>, proxy: Arc<Proxy>, served: Arc<AtomicBool>) {
    // Not every system can; the connection is as good without it.
    let _ = stream.set_nodelay(true);
    let mut stage = match target {
        Some(target) if target.port() == resolver::PORT => return resolver::over_stream(&proxy, stream, &served).await,
        Some(target) => {
            // It says by where it goes what it asks for.
            served.store(true, Ordering::Relaxed);
            captured(&proxy, stream, target).await
        }
        None => opened(&proxy, stream, &served).await,
    };
    while let Some(now) = stage {
        stage = match now {
            Stage::Http(client, origin) => http(&proxy, client, origin, &served).await,
            Stage::Tunnel(client, upstream, route, decided) => relay(&proxy, client, upstream, route, decided).await,
        };
    }
}

/// A connection to the proxy itself: what it speaks is told by its first byte.
async fn opened(proxy: &Proxy, mut stream: TcpStream, served: &AtomicBool) -> Option<Stage> {
    let mut first = [0];
    // Nothing is kept for a connection that says nothing.
    if !matches!(timeout(proxy.limits.first_byte, stream.peek(&mut first)).await, Ok(Ok(1))) {
        return None;
    }
    if first == [socks::FIVE] || first == [socks::FOUR] {
        let Dialled { stream: upstream, route } = socks::shake(proxy, &mut stream, served).await.ok()??;
        return Some(Stage::Tunnel(Side::new(stream), Side::new(upstream), route, false));
    }
    Some(Stage::Http(Side::new(stream), None))
}

/// A connection to somebody else, that ended up here.
async fn captured(proxy: &Proxy, stream: TcpStream, target: SocketAddr) -> Option<Stage> {
    let address = target.ip().to_canonical();
    let (host, addresses) = match proxy.names.at(address) {
        Some((name, addresses)) => (Host::Name(name), addresses),
        None => (Host::Address(address), Vec::new()),
    };
    let authority = Authority { host, port: target.port() };
    let server = proxy.upstream.as_ref().and_then(|upstream| upstream.for_request(&authority));
    let dialled = match server.filter(|_| authority.port == HTTP) {
        // Proxies take requests for this port that open no connection to it.
        Some(server) => dial::decide_for_request(proxy, server, &authority, &addresses).await.map(|_| None),
        None => dial::connect_at(proxy, &authority, &addresses).await.map(Some),
    };
    match dialled {
        Ok(Some(Dialled { stream: upstream, route })) => {
            Some(Stage::Tunnel(Side::new(stream), Side::new(upstream), route, false))
        }
        Ok(None) => Some(Stage::Http(Side::new(stream), Some(Origin { authority, dialled: None }))),
        Err(failure) => {
            proxy.report(&failure);
            let _ = stream.set_zero_linger();
            None
        }
    }
}

async fn http(proxy: &Arc<Proxy>, client: Side, origin: Option<Origin>, served: &Arc<AtomicBool>) -> Option<Stage> {
    let limits = &proxy.limits;
    let session = Arc::new(Session::new(Arc::clone(proxy), Arc::clone(served), origin));
    let service = {
        let session = Arc::clone(&session);
        service_fn(move |request| {
            let session = Arc::clone(&session);
            async move { Ok::<_, Infallible>(session.answer(request).await) }
        })
    };
    let connection = http1::Builder::new()
        .timer(TokioTimer::new())
        .header_read_timeout(limits.head)
        .max_header_size(limits.head_size)
        .max_buf_size(limits.head_size)
        .max_headers(limits.head_fields)
        .preserve_header_case(true)
        .auto_date_header(false)
        .serve_connection(TokioIo::new(client), service)
        .with_upgrades();
    tokio::select! {
        // How a connection of the command ended is the command's business.
        ended = connection => ended.ok()?,
        failure = session.revoked() => {
            proxy.report(&failure);
            return None;
        }
    }
    let (client, upstream, route, decided) = session.tunnel()?.sides().await.ok()?;
    Some(Stage::Tunnel(client, upstream, route, decided))
}

async fn relay(proxy: &Proxy, client: Side, upstream: Side, route: Route, decided: bool) -> Option<Stage> {
    let (begin, passed) = (Instant::now(), Passed::default());
    let revoked = revoked(proxy, &route);
    let ending = match &route.authority.host {
        Host::Name(name) if !decided => tunnel::relay_to(name, client, upstream, &proxy.limits, &passed, revoked).await,
        _ => tunnel::relay(client, upstream, &proxy.limits, &passed, revoked).await,
    };
    match ending {
        Ending::Over => {
            // A request that became a tunnel was told of already.
            if !decided {
                proxy.report_connection(&route, Some((&passed, begin.elapsed())));
            }
            None
        }
        Ending::Revoked(failure) => {
            proxy.report(&failure);
            None
        }
        Ending::Mismatch(mismatch) => {
            if let Host::Name(name) = &route.authority.host {
                proxy.report_mismatch(name, route.authority.port, &mismatch);
            }
            None
        }
        Ending::Http(client, stream) => {
            let authority = route.authority.clone();
            Some(Stage::Http(client, Some(Origin { authority, dialled: Some(Dialled { stream, route }) })))
        }
    }
}

/// Ends when the rules in force no longer allow a connection.
async fn revoked(proxy: &Proxy, route: &Route) -> Failure {
    let mut changes = proxy.in_force.changes();
    loop {
        // Once at the beginning: the rules may have changed while it was dialled.
        if let Err(failure) = proxy.gate().holds(route) {
            return failure;
        }
        if changes.changed().await.is_err() {
            std::future::pending::<()>().await;
        }
    }
}
