//! Policies → what a system enforces. Pure: lowering reads no file, and every target is lowered on every system.

pub mod bubblewrap;

pub use bubblewrap::CODES;
