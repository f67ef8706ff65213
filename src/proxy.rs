//! The filtering proxy: HTTP/1.1 in absolute form and CONNECT, decided by `ir::decide`, dialled at the address that was
//! decided.
//!
//! Knows rules and events alone; whatever comes in is hostile. What is said inside a tunnel is not looked at: a name
//! that was allowed is trusted with whatever it is told.

mod admission;
mod authority;
mod dial;
mod forward;
mod gate;
mod limits;
mod refusal;
mod remedy;
mod tunnel;

pub use authority::{Authority, Host, Malformed};
pub use dial::{Lookup, Resolve, System};
pub use limits::Limits;

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
}

/// Serves connections from `listener` until the future is dropped; drops its connections with it. `descriptors` is how many
/// the process may have.
///
/// Needs a tokio runtime with time and I/O, of either flavour. Names are resolved on threads of their own, four at once,
/// which hold up neither the future's end nor the runtime's.
///
/// # Errors
/// Only when accepting fails for good.
pub async fn serve(
    listener: tokio::net::TcpListener,
    rules: Arc<Rules>,
    events: Arc<dyn Sink>,
    descriptors: u64,
) -> std::io::Result<()> {
    let limits = Limits::STANDARD.within(descriptors);
    serve_with(listener, rules, events, Arc::new(System::new(limits.lookups)), limits).await
}

/// [`serve`] with another resolver and other bounds.
///
/// # Errors
/// As [`serve`].
pub async fn serve_with(
    listener: tokio::net::TcpListener,
    rules: Arc<Rules>,
    events: Arc<dyn Sink>,
    resolver: Arc<dyn Resolve>,
    limits: Limits,
) -> std::io::Result<()> {
    let proxy = Proxy { gate: Gate::new(rules), events, resolver, limits };
    admission::accept(listener, Arc::new(proxy)).await
}

#[cfg(test)]
mod tests;
