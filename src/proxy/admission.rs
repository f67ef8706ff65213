//! Who gets in: accepting, and the bound on connections at once.

use super::Proxy;
use super::connection::serve;
use super::doors::Doors;
use std::collections::VecDeque;
use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;
use tokio::task::{AbortHandle, JoinSet};
use tokio::time::sleep;

/// How long to leave the listener alone when descriptors or memory have run out.
const SHORTAGE: Duration = Duration::from_millis(50);

/// Serves until the future is dropped; see [`super::serve`].
pub(super) async fn accept(doors: &Doors, proxy: Arc<Proxy>) -> io::Result<()> {
    let mut connections = JoinSet::new();
    // Those that have not been let in anywhere yet, the oldest first.
    let mut silent: VecDeque<(AbortHandle, Arc<AtomicBool>)> = VecDeque::new();
    loop {
        let accepted = tokio::select! {
            accepted = doors.accept() => accepted,
            Some(_) = connections.join_next() => continue,
        };
        let stream = match accepted {
            Ok(stream) => stream,
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
        // Who cannot be told from whom is not served.
        let Ok(target) = (doors.target)(&stream) else { continue };
        let connection = connections.spawn(serve(stream, target, Arc::clone(&proxy), Arc::clone(&served)));
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
