//! Windows: [`Policy`](crate::ir::Policy) → [`Plan`], filters of the Windows Filtering Platform for connections and access
//! control entries for files, both for the account that the command runs as.
//!
//! Lowered and emitted on every system. Nothing here talks to Windows: `exec::windows` carries the texts out.

mod codes;
mod emit;
mod lower;
mod plan;

pub use codes::{CODES, GAPS, KEPT_PORTS, PROXY_PORTS as PROXY_REACHED};
pub use emit::{ACCOUNT, access_lists, filters};
pub use lower::{Lowered, Needs, PROXY_PORTS, lower};
pub use plan::{Ace, Action, Entry, Family, Filter, Layer, Plan, Reason, Scope, TCP, Texts, Trustee, UDP, rights};
