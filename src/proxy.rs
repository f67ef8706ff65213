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
mod in_force;
mod inbound;
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
pub use in_force::InForce;
pub use inbound::{Dial, Inbound};
pub use limits::Limits;
pub use report::refusal_of_address;
pub use system::System;

use crate::event::{RuleText, Sink};
use crate::ir::{BoundPolicy, Rule, RuleId};
use gate::Gate;
use std::sync::Arc;
use upstream::Upstream;

/// What the proxy decides by, and how it names a rule to people.
pub struct Rules {
    pub policy: BoundPolicy,
    /// File, line and text of a rule.
    pub texts: Box<dyn Fn(&Rule) -> RuleText + Send + Sync>,
}

impl Rules {
    /// A rule as people find it, and its reason.
    pub fn told(&self, id: RuleId) -> (RuleText, Option<String>) {
        self.told_of(self.policy.rule(id))
    }

    /// The same for a rule that stands in a policy made of this one.
    pub fn told_of(&self, rule: &Rule) -> (RuleText, Option<String>) {
        ((self.texts)(rule), rule.because.as_deref().map(str::to_owned))
    }
}

/// All that one proxy's connections share.
struct Proxy {
    in_force: Arc<InForce>,
    events: Arc<dyn Sink>,
    resolver: Arc<dyn Resolve>,
    upstream: Option<Upstream>,
    limits: Limits,
    /// Which name the command was given which address for.
    names: resolver::Names,
}

impl Proxy {
    /// What decides at this moment.
    fn gate(&self) -> Arc<Gate> {
        self.in_force.gate()
    }
}

/// Whom a proxy asks, and how much it bears.
pub struct Means {
    pub resolver: Arc<dyn Resolve>,
    /// What connections go through, if it is another proxy.
    pub upstream: Option<Upstream>,
    pub limits: Limits,
}

impl Means {
    /// The machine's name servers, and the standard limits for a process that may have this many descriptors.
    pub fn usual(descriptors: u64, upstream: Option<Upstream>) -> Self {
        let limits = Limits::STANDARD.within(descriptors);
        Self { resolver: Arc::new(System::new(limits.lookups)), upstream, limits }
    }
}

/// Serves connections and questions from `doors` until the future is dropped; drops its connections with it.
///
/// Needs a tokio runtime with time and I/O, of either flavour.
///
/// # Errors
/// Only when accepting fails for good.
pub async fn serve(
    doors: impl Into<Doors>,
    in_force: Arc<InForce>,
    events: Arc<dyn Sink>,
    means: Means,
) -> std::io::Result<()> {
    let doors = doors.into();
    let names = resolver::Names::default();
    let Means { resolver, upstream, limits } = means;
    let proxy = Arc::new(Proxy { in_force, events, resolver, upstream, limits, names });
    tokio::select! {
        ended = admission::accept(&doors, Arc::clone(&proxy)) => ended,
        ended = resolver::over_datagrams(&doors.datagrams, &proxy), if !doors.datagrams.is_empty() => ended,
    }
}

/// The readers of bytes that may be anything, for the fuzz targets.
#[cfg(fuzzing)]
pub mod readers {
    pub mod hello {
        pub use crate::proxy::hello::{Hello, LONGEST, begins, read};
    }
    pub use super::opening::{Opening, tell};
    pub use super::resolver::fuzzed as answer_question;
    pub use super::socks::fuzzed as read_socks;
    pub use super::upstream::fuzzed as ask_proxy;
}

#[cfg(test)]
mod tests;
