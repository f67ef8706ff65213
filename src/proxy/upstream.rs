//! Other proxies, that connections go through: how they are named, and how they are asked.
//!
//! Whether a connection may be made at all is decided before, as if there were none.

mod server;
mod through;

pub use server::{BadServer, Server};
pub use through::Declined;
pub(super) use through::open;

use super::authority::{Authority, Host};
use std::io;
use std::net::{SocketAddr, TcpStream};
use std::time::Duration;
use tokio::time::timeout;

/// How long a proxy may take to answer.
const PATIENCE: Duration = Duration::from_secs(60);

/// A connection to `authority` through `server`, for a program that does nothing else meanwhile.
///
/// # Errors
/// Why there is none, in the proxy's words where it has any.
pub fn connect(server: &Server, authority: &Authority) -> Result<TcpStream, Declined> {
    let to_server = match &server.at.host {
        Host::Address(address) => TcpStream::connect(SocketAddr::new(*address, server.at.port)),
        Host::Name(name) | Host::Localhost(name) => TcpStream::connect((name.as_str(), server.at.port)),
    };
    let stream = to_server.map_err(Declined::Unreachable)?;
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let stream = runtime.block_on(async {
        stream.set_nonblocking(true)?;
        let mut stream = tokio::net::TcpStream::from_std(stream)?;
        // Not every system can; the connection is as good without it.
        let _ = stream.set_nodelay(true);
        timeout(PATIENCE, open(&mut stream, server, authority))
            .await
            .unwrap_or_else(|_| Err(Declined::Broken(io::ErrorKind::TimedOut.into())))?;
        Ok::<_, Declined>(stream.into_std()?)
    })?;
    stream.set_nonblocking(false)?;
    Ok(stream)
}
