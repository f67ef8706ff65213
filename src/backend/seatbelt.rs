//! macOS: [`Policy`](crate::ir::Policy) → [`Plan`] → a profile for `sandbox-exec`, which is a program in a dialect of Scheme
//! that its own copy of TinyScheme runs.
//!
//! The profile has no rule whose place among the others matters. Everything is denied first, and each operation has one rule
//! that allows it where a formula of the policy's sets holds. So the two ways in which people have described the system's
//! precedence (the last rule that matches; the most specific operation, and a rule without filter as its default) agree on it.

mod codes;
mod emit;
mod links;
mod lower;
mod moves;
mod plan;
mod spelling;

pub use codes::{CODES, GAPS};
pub use emit::emit;
pub use lower::{Lowered, lower, stopping};
pub use plan::{Clauses, Granted, Parameter, Plan, Profile, Withheld};
