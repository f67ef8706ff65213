//! The real sandbox does what the plan says: each test runs a command under a plan, on this kernel.
//!
//! `run` forks before any thread exists, so every run is a process of its own: this program again, see `sandbox`; or the
//! binary itself, see `support`.
#![cfg(target_os = "linux")]
#![allow(clippy::unwrap_used, clippy::disallowed_methods)]

mod attacks;
mod beside;
mod choice;
mod doctor;
mod documented;
mod far;
mod faults;
mod files;
mod first;
mod flags;
mod groups;
mod hosts;
mod later;
mod limits;
mod matrix;
mod mcp;
mod nest;
mod network;
mod places;
mod prepared;
mod processes;
mod programs;
mod sandbox;
mod shipped;
mod sockets;
mod strict_reads;
#[path = "../support.rs"]
mod support;
mod table;
mod terminal;
mod violations;
