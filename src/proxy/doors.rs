//! Where clients come in: the sockets that were made inside, and how to tell whom a connection was meant for.

use std::future::poll_fn;
use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::task::Poll;
use tokio::net::{TcpListener, TcpStream, UdpSocket};

/// Whom a connection was opened to, before it was redirected; `None` where that is the proxy itself.
///
/// # Errors
/// Where that can't be told: the connection is dropped.
pub type Target = Arc<dyn Fn(&TcpStream) -> io::Result<Option<SocketAddr>> + Send + Sync>;

/// The sockets of one proxy.
pub struct Doors {
    pub listeners: Vec<TcpListener>,
    /// Where names are asked for.
    pub datagrams: Vec<UdpSocket>,
    pub target: Target,
    /// At which listener to look first.
    turn: AtomicUsize,
}

impl Doors {
    pub fn new(listeners: Vec<TcpListener>, datagrams: Vec<UdpSocket>, target: Target) -> Self {
        Self { listeners, datagrams, target, turn: AtomicUsize::new(0) }
    }

    /// The next connection, whatever door it comes by.
    pub(super) async fn accept(&self) -> io::Result<TcpStream> {
        let count = self.listeners.len();
        let first = self.turn.fetch_add(1, Ordering::Relaxed);
        poll_fn(|context| {
            for at in 0..count {
                let Some(listener) = self.listeners.get(first.wrapping_add(at) % count) else { continue };
                if let Poll::Ready(accepted) = listener.poll_accept(context) {
                    return Poll::Ready(accepted.map(|(stream, _)| stream));
                }
            }
            Poll::Pending
        })
        .await
    }
}

/// A proxy that every client has been told of.
impl From<TcpListener> for Doors {
    fn from(listener: TcpListener) -> Self {
        Doors::new(vec![listener], Vec::new(), Arc::new(|_| Ok(None)))
    }
}
