//! Who gets in: accepting, the bound on connections at once, and the first byte.

use super::Proxy;
use super::forward::Session;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::{TokioIo, TokioTimer};
use std::collections::VecDeque;
use std::convert::Infallible;
use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;
use tokio::net::{TcpListener, TcpStream};
use tokio::task::{AbortHandle, JoinSet};
use tokio::time::{sleep, timeout};

/// How long to leave the listener alone when descriptors or memory have run out.
const SHORTAGE: Duration = Duration::from_millis(50);

/// Serves until the future is dropped; see [`super::serve`].
pub(super) async fn accept(listener: TcpListener, proxy: Arc<Proxy>) -> io::Result<()> {
    let mut connections = JoinSet::new();
    // Those that have not sent a whole head, the oldest first.
    let mut silent: VecDeque<(AbortHandle, Arc<AtomicBool>)> = VecDeque::new();
    loop {
        let accepted = tokio::select! {
            accepted = listener.accept() => accepted,
            Some(_) = connections.join_next() => continue,
        };
        let stream = match accepted {
            Ok((stream, _)) => stream,
            Err(error) if is_of_one_connection(&error) => continue,
            Err(error) if is_shortage(&error) => {
                sleep(SHORTAGE).await;
                continue;
            }
            Err(error) => return Err(error),
        };
        while connections.try_join_next().is_some() {}
        silent.retain(|(connection, served)| !connection.is_finished() && !served.load(Ordering::Relaxed));
        while connections.len() >= proxy.limits.connections {
            if let Some((oldest, _)) = silent.pop_front() {
                oldest.abort();
            }
            connections.join_next().await;
        }
        let served = Arc::new(AtomicBool::new(false));
        let connection = connections.spawn(serve(stream, Arc::clone(&proxy), Arc::clone(&served)));
        silent.push_back((connection, served));
    }
}

/// Whether the peer was gone before it was accepted (accept(2)).
fn is_of_one_connection(error: &io::Error) -> bool {
    use io::ErrorKind::{
        ConnectionAborted, ConnectionReset, HostUnreachable, Interrupted, NetworkDown, NetworkUnreachable,
    };
    matches!(
        error.kind(),
        ConnectionAborted | ConnectionReset | HostUnreachable | Interrupted | NetworkDown | NetworkUnreachable
    )
}

/// Whether there are too many descriptors or too little memory, which passes. std names the latter alone; on every unix
/// EMFILE is 24 and ENFILE is 23, and ENOBUFS reads as out of memory on some and as nothing on others.
fn is_shortage(error: &io::Error) -> bool {
    error.kind() == io::ErrorKind::OutOfMemory || matches!(error.raw_os_error(), Some(23 | 24 | 55 | 105))
}

async fn serve(stream: TcpStream, proxy: Arc<Proxy>, served: Arc<AtomicBool>) {
    let limits = proxy.limits;
    // Nothing is kept for a connection that says nothing.
    if !matches!(timeout(limits.first_byte, stream.peek(&mut [0])).await, Ok(Ok(1))) {
        return;
    }
    // Not every system can; the connection is as good without it.
    let _ = stream.set_nodelay(true);
    let session = Arc::new(Session::new(proxy, served));
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
        .serve_connection(TokioIo::new(stream), service)
        .with_upgrades();
    // How a connection of the command ended is the command's business.
    if connection.await.is_ok()
        && let Some(tunnel) = session.tunnel()
    {
        let _ = tunnel.run(&limits).await;
    }
}
