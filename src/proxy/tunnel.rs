//! Bytes both ways, once a connection is nobody's HTTP any more: after CONNECT, SOCKS and 101, and where a connection was
//! captured.
//!
//! A side that ends its half ends the same half of the other side, and the other direction goes on. Where a name was
//! allowed, what the client says is held until its first bytes are told apart: TLS may ask for no other, and HTTP/1 is
//! given back, to be decided request by request. What the server says is never held.

use super::limits::Limits;
use super::opening::{self, Opening};
use super::side::Side;
use crate::sets::host::Name;
use hyper::body::Bytes;
use hyper::upgrade::{OnUpgrade, Upgraded};
use hyper_util::rt::TokioIo;
use std::future::Future;
use std::io;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::sync::Semaphore;
use tokio::time::{Instant, sleep, timeout};

/// The connection under an upgrade, without hyper.
pub async fn client(upgrade: OnUpgrade) -> io::Result<Side> {
    let (side, read) = take::<Side>(upgrade).await?;
    let early = if side.early.is_empty() { read } else { [read, side.early].concat().into() };
    Ok(Side { stream: side.stream, early })
}

/// The same of a connection that this proxy made.
pub async fn upstream(upgrade: OnUpgrade) -> io::Result<Side> {
    let (stream, early) = take::<TcpStream>(upgrade).await?;
    Ok(Side { stream, early })
}

/// The connection, and what was read from it beyond the head.
async fn take<T: AsyncRead + AsyncWrite + Unpin + Send + 'static>(upgrade: OnUpgrade) -> io::Result<(T, Bytes)> {
    let upgraded: Upgraded = upgrade.await.map_err(io::Error::other)?;
    let parts = upgraded
        .downcast::<TokioIo<T>>()
        .map_err(|_| io::Error::other("an upgraded connection is not the one that was served"))?;
    Ok((parts.io.into_inner(), parts.read_buf))
}

/// Relays until both sides have ended, one fails, nothing has moved for too long, or `revoked` ends, which cuts both off.
pub async fn relay<R>(
    mut client: Side,
    mut upstream: Side,
    limits: &Limits,
    passed: &Passed,
    revoked: impl Future<Output = R>,
) -> Ending<R> {
    let moved = Moved::new();
    let revoked = {
        let (from_client, to_client) = client.stream.split();
        let (from_upstream, to_upstream) = upstream.stream.split();
        let both = async {
            tokio::try_join!(
                copy(client.early, from_client, to_upstream, &moved, limits.tunnel_buffer, &passed.sent),
                copy(upstream.early, from_upstream, to_client, &moved, limits.tunnel_buffer, &passed.received),
            )
        };
        tokio::select! {
            _ = both => None,
            () = moved.nothing(limits) => None,
            revoked = revoked => Some(revoked),
        }
    };
    let Some(revoked) = revoked else { return Ending::Over };
    cut_off([&client.stream, &upstream.stream]);
    Ending::Revoked(revoked)
}

/// An end in good order would look like an answer.
fn cut_off(streams: [&TcpStream; 2]) {
    for stream in streams {
        let _ = stream.set_zero_linger();
    }
}

/// Bytes from the client and to it.
#[derive(Default)]
pub struct Passed {
    pub sent: AtomicU64,
    pub received: AtomicU64,
}

/// How a relay ended.
pub enum Ending<R> {
    /// Both sides have ended, one failed, or nothing moved for too long.
    Over,
    /// It may not go on.
    Revoked(R),
    /// The client speaks HTTP/1, and the server has said nothing yet. Where the first bytes were looked at, as is the next.
    Http(Side, TcpStream),
    /// The client's TLS is not for the name; why.
    Mismatch(Mismatch),
}

/// Why a ClientHello was not passed on.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Mismatch {
    /// It asks for this server.
    Server(String),
    /// No server may take it.
    Broken(&'static str),
}

/// As [`relay`], to a server that is `name`.
pub async fn relay_to<R>(
    name: &Name,
    mut client: Side,
    mut upstream: Side,
    limits: &Limits,
    passed: &Passed,
    revoked: impl Future<Output = R>,
) -> Ending<R> {
    enum Stop<R> {
        Over,
        Revoked(R),
        Http(Bytes),
        Mismatch(Mismatch),
    }
    let moved = Moved::new();
    let spoke = AtomicBool::new(!upstream.early.is_empty());
    let stop = {
        let (mut from_client, to_client) = client.stream.split();
        let (from_upstream, to_upstream) = upstream.stream.split();
        let early = std::mem::take(&mut client.early);
        let up = async {
            let (bytes, opening) = first(early, &mut from_client, &moved, limits).await.map_err(|_| Stop::Over)?;
            match opening {
                Opening::Tls(Some(server)) if Name::parse(&server).as_ref() != Ok(name) => {
                    return Err(Stop::Mismatch(Mismatch::Server(server)));
                }
                Opening::Broken(why) => return Err(Stop::Mismatch(Mismatch::Broken(why))),
                // Whatever has spoken before it was asked is no server of HTTP.
                Opening::Http if !spoke.load(Ordering::Relaxed) => return Err(Stop::Http(bytes)),
                _ => {}
            }
            copy(bytes, from_client, to_upstream, &moved, limits.tunnel_buffer, &passed.sent)
                .await
                .map_err(|_| Stop::Over)
        };
        let down = async {
            let from_upstream = Noticing { stream: from_upstream, spoke: &spoke };
            let early = std::mem::take(&mut upstream.early);
            copy(early, from_upstream, to_client, &moved, limits.tunnel_buffer, &passed.received)
                .await
                .map_err(|_| Stop::Over)
        };
        tokio::select! {
            ended = async { tokio::try_join!(up, down) } => ended.err().unwrap_or(Stop::Over),
            () = moved.nothing(limits) => Stop::Over,
            revoked = revoked => Stop::Revoked(revoked),
        }
    };
    match stop {
        Stop::Over => Ending::Over,
        Stop::Revoked(revoked) => {
            cut_off([&client.stream, &upstream.stream]);
            Ending::Revoked(revoked)
        }
        Stop::Http(early) => Ending::Http(Side { stream: client.stream, early }, upstream.stream),
        Stop::Mismatch(mismatch) => {
            cut_off([&client.stream, &upstream.stream]);
            Ending::Mismatch(mismatch)
        }
    }
}

/// The buffer of a direction in which much moves, and how many of those there may be at once: 8 MiB in all.
const LARGE: usize = 256 << 10;
/// It is given up after so many reads in a row that the usual one would have held.
const LITTLE: u32 = 16;
static MUCH: Semaphore = Semaphore::const_new(32);

/// How much of a beginning is read at once.
const CHUNK: usize = 4096;

/// Reads until the bytes are told apart, or there are no more. Only a beginning has a time to be finished in: a client may
/// wait as long as it likes for the server to speak.
async fn first(
    early: Bytes,
    from: &mut (impl AsyncRead + Unpin),
    moved: &Moved,
    limits: &Limits,
) -> io::Result<(Bytes, Opening)> {
    let mut bytes = Vec::from(early);
    if bytes.is_empty() {
        bytes.reserve(CHUNK);
        from.read_buf(&mut bytes).await?;
        moved.now();
    }
    let told = async {
        loop {
            let opening = opening::tell(&bytes);
            if opening != Opening::Undecided {
                return Ok::<_, io::Error>(opening);
            }
            bytes.reserve(CHUNK);
            if from.read_buf(&mut bytes).await? == 0 {
                return Ok(Opening::Other);
            }
            moved.now();
        }
    };
    let opening = timeout(limits.head, told).await.unwrap_or_else(|_| Err(io::ErrorKind::TimedOut.into()))?;
    Ok((bytes.into(), opening))
}

/// Tells whether anything was read.
struct Noticing<'s, R> {
    stream: R,
    spoke: &'s AtomicBool,
}

impl<R: AsyncRead + Unpin> AsyncRead for Noticing<'_, R> {
    fn poll_read(
        mut self: std::pin::Pin<&mut Self>,
        cx: &mut std::task::Context<'_>,
        buffer: &mut tokio::io::ReadBuf<'_>,
    ) -> std::task::Poll<io::Result<()>> {
        let before = buffer.filled().len();
        let ready = std::pin::Pin::new(&mut self.stream).poll_read(cx, buffer);
        if buffer.filled().len() > before {
            self.spoke.store(true, Ordering::Relaxed);
        }
        ready
    }
}

/// One direction, to its end.
async fn copy(
    early: Bytes,
    mut from: impl AsyncRead + Unpin,
    mut to: impl AsyncWrite + Unpin,
    moved: &Moved,
    size: usize,
    count: &AtomicU64,
) -> io::Result<()> {
    let counted = |bytes: usize| count.fetch_add(u64::try_from(bytes).unwrap_or(u64::MAX), Ordering::Relaxed);
    if !early.is_empty() {
        to.write_all(&early).await?;
        counted(early.len());
        moved.now();
    }
    drop(early);
    let mut buffer = vec![0; size];
    let (mut much, mut little) = (None, 0);
    loop {
        let count = from.read(&mut buffer).await?;
        if count == 0 {
            break;
        }
        if count == buffer.len() && much.is_none() {
            // There is more than fits: a larger buffer for the next, while there are some to be had.
            much = MUCH.try_acquire().ok();
            if much.is_some() {
                let rest = std::mem::replace(&mut buffer, vec![0; LARGE]);
                write_all(&mut to, &rest, moved, &counted).await?;
                continue;
            }
        }
        moved.now();
        write_all(&mut to, &buffer[..count], moved, &counted).await?;
        little = if count <= size { little + 1 } else { 0 };
        if much.is_some() && little >= LITTLE {
            (much, buffer) = (None, vec![0; size]);
        }
    }
    moved.half_ended();
    to.shutdown().await
}

async fn write_all(
    to: &mut (impl AsyncWrite + Unpin),
    mut rest: &[u8],
    moved: &Moved,
    counted: impl Fn(usize) -> u64,
) -> io::Result<()> {
    while !rest.is_empty() {
        let written = to.write(rest).await?;
        if written == 0 {
            return Err(io::ErrorKind::WriteZero.into());
        }
        moved.now();
        counted(written);
        rest = &rest[written..];
    }
    Ok(())
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
