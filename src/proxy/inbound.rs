//! Connections from outside to servers of the command's: what comes in at an address of the host's is joined to the same port
//! of the command's loopback.
//!
//! Where the host is reachable was decided before: whoever made the listeners asked the policy. Only who is not allowed to
//! wait is bounded here.

use super::limits::Limits;
use super::report::milliseconds;
use super::side::Side;
use super::tunnel::{self, Passed};
use crate::event::{Connection, Event, RuleText, Sink};
use std::future::{Future, pending};
use std::io;
use std::net::{Ipv4Addr, Ipv6Addr, SocketAddr};
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::Semaphore;
use tokio::task::JoinSet;
use tokio::time::{sleep, timeout};

/// Connects to an address as the command would.
pub type Dial = Arc<dyn Fn(SocketAddr) -> Pin<Box<dyn Future<Output = io::Result<TcpStream>> + Send>> + Send + Sync>;

/// Where the command may be reached from outside.
pub struct Inbound {
    /// With the rule that allows each.
    pub listeners: Vec<(TcpListener, RuleText)>,
    pub dial: Dial,
}

/// How long to leave a listener alone that cannot accept.
const SHORTAGE: Duration = Duration::from_millis(50);

impl Inbound {
    /// Serves until the future is dropped, and drops its connections with it.
    pub async fn serve(self, events: Arc<dyn Sink>, limits: Limits) {
        // The command's own connections outwards come first.
        let room = Arc::new(Semaphore::new((limits.connections / 2).max(1)));
        let mut listening = JoinSet::new();
        for (listener, rule) in self.listeners {
            let (room, dial, events) = (Arc::clone(&room), Arc::clone(&self.dial), Arc::clone(&events));
            let rule = Arc::new(rule);
            listening.spawn(async move {
                let mut connections = JoinSet::new();
                loop {
                    let Ok((stream, peer)) = listener.accept().await else {
                        sleep(SHORTAGE).await;
                        continue;
                    };
                    // Those after the one for which there is no room wait in the listener's queue.
                    let Ok(place) = Arc::clone(&room).acquire_owned().await else { return };
                    let (dial, events, rule) = (Arc::clone(&dial), Arc::clone(&events), Arc::clone(&rule));
                    while connections.try_join_next().is_some() {}
                    connections.spawn(async move {
                        join(stream, peer, &dial, &*events, &rule, &limits).await;
                        drop(place);
                    });
                }
            });
        }
        while listening.join_next().await.is_some() {}
        pending::<()>().await;
    }
}

async fn join(client: TcpStream, peer: SocketAddr, dial: &Dial, events: &dyn Sink, rule: &RuleText, limits: &Limits) {
    let Ok(at) = client.local_addr() else { return };
    let Some(server) = reach(dial, at, limits).await else {
        // Nobody is there: cut off, which is as near to a refusal as there is once the host has accepted.
        let _ = client.set_zero_linger();
        return;
    };
    for stream in [&client, &server] {
        // Not every system can; the connection is as good without it.
        let _ = stream.set_nodelay(true);
    }
    let (begin, passed) = (Instant::now(), Passed::default());
    tunnel::relay(Side::new(server), Side::new(client), limits, &passed, pending::<()>()).await;
    if events.wants_connections() {
        events.report(Event::Connection(Connection {
            host: Some(at.ip().to_canonical().to_string()),
            port: Some(at.port()),
            address: Some(peer.ip().to_canonical().to_string()),
            rule: Some(rule.clone()),
            // The server is the command.
            sent: Some(passed.sent.load(Ordering::Relaxed)),
            received: Some(passed.received.load(Ordering::Relaxed)),
            milliseconds: Some(milliseconds(begin.elapsed())),
            ..Connection::allowed("listen")
        }));
    }
}

/// The command's server of that port: at the loopback of the same family, else at the other one, as `localhost` is either.
async fn reach(dial: &Dial, at: SocketAddr, limits: &Limits) -> Option<TcpStream> {
    let mut places = [(Ipv4Addr::LOCALHOST, at.port()).into(), (Ipv6Addr::LOCALHOST, at.port()).into()];
    if at.is_ipv6() {
        places.reverse();
    }
    for place in places {
        if let Ok(Ok(stream)) = timeout(limits.dial_one, dial(place)).await {
            return Some(stream);
        }
    }
    None
}
