//! Linux: [`BoundPolicy`](crate::ir::BoundPolicy) → [`Plan`], carried out by `exec::linux` itself or, as arguments, by
//! bubblewrap.

mod emit;
mod lower;
mod plan;
pub mod seccomp;

pub use emit::{Unsupported, arguments};
pub use lower::{Lowered, Needs, lower};
pub use plan::{Landlock, Limits, Mount, Network, Plan, Root};
