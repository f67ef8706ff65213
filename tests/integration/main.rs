//! One test program for what is neither a unit nor the real sandbox: meaning, structure, documents, the command line.

#![allow(clippy::unwrap_used, clippy::disallowed_methods, clippy::format_push_string)]

mod analysis;
mod architecture;
mod book;
mod bwrap;
mod compat;
mod compile;
mod diff;
mod documents;
mod faults_table;
mod lsp;
mod mutants;
mod seatbelt;
mod semantics;
#[path = "../support.rs"]
mod support;
mod wfp;
#[cfg(windows)]
mod windows;

// These compare what `srt` says on Linux, or run programs of its: shells, Node.js, servers for agents. What of it is the same on
// Windows, `windows` tries.
#[cfg(unix)]
mod adopt;
#[cfg(unix)]
mod cli;
#[cfg(unix)]
mod commands;
#[cfg(unix)]
mod console;
#[cfg(unix)]
mod draft;
#[cfg(unix)]
mod editors;
#[cfg(unix)]
mod log;
#[cfg(unix)]
mod suites;
