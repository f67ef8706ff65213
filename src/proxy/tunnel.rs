//! Bytes both ways, once a connection is nobody's HTTP any more: after CONNECT and after 101.
//!
//! A side that ends its half ends the same half of the other side, and the other direction goes on. What is inside is
//! not looked at here; a look at the first bytes would stand between the two sides being known and [`relay`].

use super::limits::Limits;
use hyper::body::Bytes;
use hyper::upgrade::{OnUpgrade, Upgraded};
use hyper_util::rt::TokioIo;
use std::io;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::time::{Instant, sleep};

/// Two sides that will be joined as soon as hyper lets go of them.
pub enum Tunnel {
    /// After CONNECT: the other side never was HTTP.
    Connect { client: OnUpgrade, upstream: TcpStream },
    /// After 101.
    Upgrade { client: OnUpgrade, upstream: OnUpgrade },
}

/// One side: the connection, and what was read from it beyond the head.
struct Side {
    stream: TcpStream,
    early: Bytes,
}

impl Tunnel {
    /// Relays until both sides have ended, one fails, or nothing has moved for too long.
    ///
    /// # Errors
    /// Whatever ended it early.
    pub async fn run(self, limits: &Limits) -> io::Result<()> {
        let (client, upstream) = match self {
            Tunnel::Connect { client, upstream } => {
                (take(client).await?, Side { stream: upstream, early: Bytes::new() })
            }
            Tunnel::Upgrade { client, upstream } => tokio::try_join!(take(client), take(upstream))?,
        };
        relay(client, upstream, limits).await
    }
}

/// The connection under an upgrade, without hyper.
async fn take(upgrade: OnUpgrade) -> io::Result<Side> {
    let upgraded: Upgraded = upgrade.await.map_err(io::Error::other)?;
    let parts = upgraded
        .downcast::<TokioIo<TcpStream>>()
        .map_err(|_| io::Error::other("an upgraded connection is not the one that was served"))?;
    Ok(Side { stream: parts.io.into_inner(), early: parts.read_buf })
}

async fn relay(mut client: Side, mut upstream: Side, limits: &Limits) -> io::Result<()> {
    let moved = Moved::new();
    let (from_client, to_client) = client.stream.split();
    let (from_upstream, to_upstream) = upstream.stream.split();
    let both = async {
        tokio::try_join!(
            copy(client.early, from_client, to_upstream, &moved, limits.tunnel_buffer),
            copy(upstream.early, from_upstream, to_client, &moved, limits.tunnel_buffer),
        )
    };
    tokio::select! {
        ended = both => ended.map(|_| ()),
        () = moved.nothing(limits) => Err(io::ErrorKind::TimedOut.into()),
    }
}

/// One direction, to its end.
async fn copy(
    early: Bytes,
    mut from: impl AsyncRead + Unpin,
    mut to: impl AsyncWrite + Unpin,
    moved: &Moved,
    size: usize,
) -> io::Result<()> {
    if !early.is_empty() {
        to.write_all(&early).await?;
        moved.now();
    }
    drop(early);
    let mut buffer = vec![0; size];
    loop {
        let count = from.read(&mut buffer).await?;
        if count == 0 {
            break;
        }
        moved.now();
        let mut rest = &buffer[..count];
        while !rest.is_empty() {
            let written = to.write(rest).await?;
            if written == 0 {
                return Err(io::ErrorKind::WriteZero.into());
            }
            moved.now();
            rest = &rest[written..];
        }
    }
    moved.half_ended();
    to.shutdown().await
}

/// When something last moved in either direction.
struct Moved {
    start: Instant,
    /// Milliseconds after `start`.
    last: AtomicU64,
    half: AtomicBool,
}

impl Moved {
    fn new() -> Self {
        Self { start: Instant::now(), last: AtomicU64::new(0), half: AtomicBool::new(false) }
    }

    fn now(&self) {
        self.last.store(self.elapsed(), Ordering::Relaxed);
    }

    fn half_ended(&self) {
        self.half.store(true, Ordering::Relaxed);
        self.now();
    }

    fn elapsed(&self) -> u64 {
        u64::try_from(self.start.elapsed().as_millis()).unwrap_or(u64::MAX)
    }

    /// Ends when nothing has moved for as long as the limits say.
    async fn nothing(&self, limits: &Limits) {
        loop {
            let patience = if self.half.load(Ordering::Relaxed) { limits.half_closed_idle } else { limits.tunnel_idle };
            let patience = u64::try_from(patience.as_millis()).unwrap_or(u64::MAX);
            let idle = self.elapsed().saturating_sub(self.last.load(Ordering::Relaxed));
            if idle >= patience {
                return;
            }
            // The shorter patience may come into force meanwhile.
            let shortest = u64::try_from(limits.half_closed_idle.as_millis()).unwrap_or(u64::MAX);
            sleep(std::time::Duration::from_millis((patience - idle).min(shortest).max(1))).await;
        }
    }
}
