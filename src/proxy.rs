//! The filtering proxy: HTTP/1.1 in absolute form and CONNECT, SOCKS5 and SOCKS4a on one port, told apart by the first byte;
//! connections that were meant for somebody else and ended up here; and the resolver that gives names addresses by which
//! these are known again. All is decided by `ir::decide`, and dialled at the address that was decided.
//!
//! Knows rules and events alone; whatever comes in is hostile. TLS is not opened: its first message may ask for no other
//! name than was allowed, and what is said after that, a name that was allowed is trusted with.

mod admission;
mod authority;
mod connection;
mod dial;
mod doors;
mod forward;
mod gate;
mod hello;
mod limits;
mod opening;
mod refusal;
mod remedy;
mod report;
mod resolver;
mod side;
mod socks;
mod system;
mod tunnel;
pub mod upstream;

pub use authority::{Authority, Host, Malformed};
pub use dial::{Lookup, Resolve};
pub use doors::{Doors, Target};
pub use limits::Limits;
pub use system::System;

use crate::event::{RuleText, Sink};
use crate::ir::{BoundPolicy, RuleId};
use gate::Gate;
use std::sync::Arc;

/// What the proxy decides by, and how it names a rule to people.
pub struct Rules {
    pub policy: BoundPolicy,
    /// File, line and text of each rule, by [`RuleId`].
    pub texts: Box<dyn Fn(RuleId) -> RuleText + Send + Sync>,
}

/// All that one proxy's connections share.
struct Proxy {
    gate: Gate,
    events: Arc<dyn Sink>,
    resolver: Arc<dyn Resolve>,
    limits: Limits,
    /// Which name the command was given which address for.
    names: resolver::Names,
}

/// Serves connections and questions from `doors` until the future is dropped; drops its connections with it. `descriptors` is how many
/// the process may have.
///
/// Needs a tokio runtime with time and I/O, of either flavour.
///
/// # Errors
/// Only when accepting fails for good.
pub async fn serve(
    doors: impl Into<Doors>,
    rules: Arc<Rules>,
    events: Arc<dyn Sink>,
    descriptors: u64,
) -> std::io::Result<()> {
    let limits = Limits::STANDARD.within(descriptors);
    serve_with(doors, rules, events, Arc::new(System::new(limits.lookups)), limits).await
}

/// [`serve`] with another resolver and other bounds.
///
/// # Errors
/// As [`serve`].
pub async fn serve_with(
    doors: impl Into<Doors>,
    rules: Arc<Rules>,
    events: Arc<dyn Sink>,
    resolver: Arc<dyn Resolve>,
    limits: Limits,
) -> std::io::Result<()> {
    let doors = doors.into();
    let names = resolver::Names::default();
    let proxy = Arc::new(Proxy { gate: Gate::new(rules), events, resolver, limits, names });
    tokio::select! {
        ended = admission::accept(&doors, Arc::clone(&proxy)) => ended,
        ended = resolver::over_datagrams(&doors.datagrams, &proxy), if !doors.datagrams.is_empty() => ended,
    }
}

#[cfg(test)]
mod tests;
