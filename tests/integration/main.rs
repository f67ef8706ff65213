//! One test program for what is neither a unit nor the real sandbox: meaning, structure, documents, the command line.

#![allow(clippy::unwrap_used, clippy::disallowed_methods, clippy::format_push_string)]

mod adopt;
mod analysis;
mod architecture;
mod book;
mod cli;
mod commands;
mod compat;
mod compile;
mod console;
mod diff;
mod documents;
mod draft;
mod editors;
mod faults_table;
mod log;
mod lsp;
mod mutants;
mod seatbelt;
mod semantics;
mod suites;
#[path = "../support.rs"]
mod support;
mod wfp;
