//! The proxy as a whole: real sockets on the loopback, a resolver that answers what the test says, policies by hand.

#![allow(clippy::unwrap_used)]

mod captured;
mod curl;
mod deciding;
mod forwarding;
pub(super) mod harness;
mod hostile;
mod live;
mod names;
mod openings;
mod socks;
mod tunnels;
mod upstream;
