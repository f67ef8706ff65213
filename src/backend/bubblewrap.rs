//! Linux: [`BoundPolicy`](crate::ir::BoundPolicy) → [`Plan`], carried out by `exec::linux` itself or, as arguments, by
//! bubblewrap.

mod emit;
mod lower;
mod plan;
pub mod seccomp;

pub use emit::{Argument, Arguments, MOST_ARGUMENTS, Unsupported, arguments};
pub use lower::{
    CODES, DIRECTORY_ALONE, DIRECTORY_ATTRIBUTES, DIRECTORY_LISTING, EXEC_BY_CONTENT, GAPS, LATER_NAMES, Lowered,
    NOT_GRANTED, Needs, REPLACEABLE_LINK, User, lower,
};
pub use plan::{DEVICES, Landlock, Mount, Network, PROC_HIDDEN, Plan, Ports, Root};
pub use seccomp::Watch;
