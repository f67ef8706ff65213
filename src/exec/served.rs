//! The proxy on a thread of its own, for systems on which it is reached over the machine's loopback: macOS and Windows.
//!
//! Decides nothing: the system lets the command reach this one port, and the proxy has the rules.

use super::Error;
use crate::event::Sink;
use crate::proxy::upstream::Upstream;
use crate::proxy::{self, InForce, Rules};
use std::io;
use std::net::{Ipv4Addr, SocketAddr, TcpListener};
use std::ops::RangeInclusive;
use std::sync::Arc;
use std::thread;
use tokio::sync::oneshot;

/// What is asked for beside the rules.
pub struct Wanted {
    pub rules: Arc<Rules>,
    pub upstream: Option<Upstream>,
    pub events: Arc<dyn Sink>,
    /// Replaces the rules in force, on a thread of its own.
    pub live: Option<Box<dyn FnOnce(Arc<InForce>) + Send>>,
    /// How many descriptors this process may have.
    pub descriptors: u64,
}

/// A proxy that serves until this is dropped.
#[derive(Debug)]
pub struct Served {
    at: SocketAddr,
    // Dropped with it, which ends the proxy.
    _stop: oneshot::Sender<()>,
}

impl Served {
    /// Starts one at the first of these ports of 127.0.0.1 that is free. `failed` is told what it ends by, if it does not go on.
    ///
    /// # Errors
    /// Where no port is free, or it cannot be started.
    pub fn start(
        ports: RangeInclusive<u16>,
        wanted: Wanted,
        failed: impl FnOnce(io::Error) + Send + 'static,
    ) -> Result<Self, Error> {
        let setup = |source| Error::Setup { act: "start the proxy".into(), source };
        let listener = listen(ports)?;
        let at = listener.local_addr().map_err(setup)?;
        let (stop, stopped) = oneshot::channel();
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().map_err(setup)?;
        let listener = {
            let _entered = runtime.enter();
            tokio::net::TcpListener::from_std(listener).map_err(setup)?
        };
        let in_force = Arc::new(InForce::new(wanted.rules));
        if let Some(live) = wanted.live {
            let in_force = Arc::clone(&in_force);
            thread::Builder::new().spawn(move || live(in_force)).map_err(setup)?;
        }
        let means = proxy::Means::usual(wanted.descriptors, wanted.upstream);
        let serve = move || {
            let ended = runtime.block_on(async {
                tokio::select! {
                    ended = proxy::serve(listener, in_force, wanted.events, means) => ended.err(),
                    _ = stopped => None,
                }
            });
            if let Some(error) = ended {
                failed(error);
            }
        };
        thread::Builder::new().spawn(serve).map_err(setup)?;
        Ok(Self { at, _stop: stop })
    }

    /// Where it listens.
    pub fn at(&self) -> SocketAddr {
        self.at
    }
}

fn listen(ports: RangeInclusive<u16>) -> Result<TcpListener, Error> {
    let mut failure = io::Error::from(io::ErrorKind::AddrInUse);
    for port in ports.clone() {
        match TcpListener::bind((Ipv4Addr::LOCALHOST, port)).and_then(|listener| {
            listener.set_nonblocking(true)?;
            Ok(listener)
        }) {
            Ok(listener) => return Ok(listener),
            Err(error) => failure = error,
        }
    }
    let act = match (ports.start(), ports.end()) {
        (0, 0) => "listen for the proxy".to_owned(),
        (first, last) => format!("listen for the proxy at a port of 127.0.0.1 from {first} to {last}"),
    };
    Err(Error::Setup { act, source: failure })
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    #[test]
    fn a_port_of_the_range_that_is_taken_is_left_alone() {
        let taken = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
        let port = taken.local_addr().unwrap().port();
        let Err(Error::Setup { act, .. }) = listen(port..=port) else { panic!("the port is taken") };
        assert_eq!(act, format!("listen for the proxy at a port of 127.0.0.1 from {port} to {port}"));
        if let Some(next) = port.checked_add(40) {
            let found = listen(port..=next).unwrap().local_addr().unwrap().port();
            assert!(found > port && found <= next, "{found}");
        }
    }
}
