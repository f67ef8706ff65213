//! The filtering proxy: HTTP/1.1 in absolute form and CONNECT, decided by `ir::decide`, dialled at the address that was
//! decided.
//!
//! Knows rules and events alone; whatever comes in is hostile.

use crate::event::{RuleText, Sink};
use crate::ir::{BoundPolicy, RuleId};
use std::sync::Arc;

/// What the proxy decides by, and how it names a rule to people.
pub struct Rules {
    pub policy: BoundPolicy,
    /// File, line and text of each rule, by [`RuleId`].
    pub texts: Box<dyn Fn(RuleId) -> RuleText + Send + Sync>,
}

/// Serves connections from `listener` until the future is dropped; drops its connections with it.
///
/// # Errors
/// Only when accepting fails for good.
pub async fn serve(listener: tokio::net::TcpListener, rules: Arc<Rules>, events: Arc<dyn Sink>) -> std::io::Result<()> {
    let _ = (listener, rules, events);
    todo!()
}
