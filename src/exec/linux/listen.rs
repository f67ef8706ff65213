//! Where the command is reached from outside: listeners on the host, bound before anything runs, and sockets of the sandbox's
//! own network to join connections to, which pid 1 makes when asked.

use super::Error;
use nix::errno::Errno;
use std::fs;
use std::future::Future;
use std::io;
use std::net::{SocketAddr, TcpListener};
use std::os::fd::OwnedFd;
use std::pin::Pin;
use std::sync::Arc;
use tokio::net::{TcpSocket, TcpStream};
use tokio::sync::{mpsc, oneshot};

/// One wish for a socket: of which family, and where to send it.
pub type Wish = (bool, oneshot::Sender<io::Result<OwnedFd>>);

/// Listens at each place.
///
/// # Errors
/// At the first that cannot be had; where another process has it, with its name if it can be told.
pub fn bind(places: &[SocketAddr]) -> Result<Vec<TcpListener>, Error> {
    let one = |place: &SocketAddr| {
        let listener = TcpListener::bind(place).and_then(|listener| {
            listener.set_nonblocking(true)?;
            Ok(listener)
        });
        listener.map_err(|source| {
            let busy = source.raw_os_error() == Some(Errno::EADDRINUSE as i32);
            let whose = if busy { holder(*place).unwrap_or_default() } else { String::new() };
            Error::Setup { act: format!("listen at {place} for the command{whose}"), source }
        })
    };
    places.iter().map(one).collect()
}

/// Which process listens at a place, as far as this one may see: `, where NAME (process N) listens`.
fn holder(place: SocketAddr) -> Option<String> {
    let port = format!(":{:04X}", place.port());
    // proc(5), /proc/net/tcp: the second column is the local address and port, 0A listens, the tenth is the inode.
    let table = |path| fs::read_to_string(path).unwrap_or_default();
    let inodes = [table("/proc/net/tcp"), table("/proc/net/tcp6")].concat();
    let inode = |line: &str| {
        let words: Vec<&str> = line.split_whitespace().collect();
        let listens = words.get(1)?.ends_with(&port) && words.get(3) == Some(&"0A");
        listens.then(|| words.get(9).map(|inode| format!("socket:[{inode}]"))).flatten()
    };
    let inodes: Vec<String> = inodes.lines().filter_map(inode).collect();
    let process = fs::read_dir("/proc").ok()?.flatten().find(|process| {
        let Ok(files) = fs::read_dir(process.path().join("fd")) else { return false };
        files.flatten().any(|file| {
            fs::read_link(file.path()).is_ok_and(|file| inodes.iter().any(|inode| file.as_os_str() == inode.as_str()))
        })
    })?;
    let name = fs::read_to_string(process.path().join("comm")).ok()?;
    let name: String = name.trim_end().chars().filter(|c| !c.is_control()).collect();
    Some(format!(", where `{name}` (process {}) listens", process.file_name().display()))
}

/// Connects from within the sandbox's network, by sockets that are asked for there.
pub fn dial(wishes: mpsc::UnboundedSender<Wish>) -> crate::proxy::Dial {
    Arc::new(move |at: SocketAddr| {
        let wishes = wishes.clone();
        let connecting: Pin<Box<dyn Future<Output = io::Result<TcpStream>> + Send>> = Box::pin(async move {
            let (answer, answered) = oneshot::channel();
            let gone = || io::Error::from(io::ErrorKind::BrokenPipe);
            wishes.send((at.is_ipv6(), answer)).map_err(|_| gone())?;
            let socket = answered.await.map_err(|_| gone())??;
            TcpSocket::from_std_stream(socket.into()).connect(at).await
        });
        connecting
    })
}
