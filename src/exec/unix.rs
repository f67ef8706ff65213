//! What Linux and macOS have in common: descriptors by number, files and pipes that are not waited for.
//!
//! Starts nothing.

// The clippy bans on `std::fs` keep other rooms out; this is one that may.
#![allow(clippy::disallowed_methods)]

pub mod channel;
pub mod event_file;
pub mod inherited;
pub mod output;
