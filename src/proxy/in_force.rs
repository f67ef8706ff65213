//! The rules that hold now. They may be others a moment later: each connection and each request is decided by those of its
//! moment, and one that is under way and would no longer be allowed is cut off.

use super::Rules;
use super::gate::Gate;
use std::sync::Arc;
use tokio::sync::watch;

/// Rules that can be replaced while a proxy decides by them.
pub struct InForce(watch::Sender<Arc<Gate>>);

impl InForce {
    pub fn new(rules: Arc<Rules>) -> Self {
        Self(watch::Sender::new(Arc::new(Gate::new(rules))))
    }

    /// From now on, these.
    pub fn replace(&self, rules: Arc<Rules>) {
        self.0.send_replace(Arc::new(Gate::new(rules)));
    }

    pub(super) fn gate(&self) -> Arc<Gate> {
        Arc::clone(&self.0.borrow())
    }

    /// Tells of each replacement from now on.
    pub(super) fn changes(&self) -> watch::Receiver<Arc<Gate>> {
        self.0.subscribe()
    }
}
