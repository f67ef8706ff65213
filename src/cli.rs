//! The command line: one file a verb, and what they share.
//!
//! Sees only the library's public API. Exit codes are in [`status`].

// The command line reads files, the environment and where it stands: here that is the point.
#![allow(clippy::disallowed_methods)]

mod access;
mod arguments;
mod check;
mod compile;
mod completions;
mod connect;
mod diff;
mod doctor;
mod draft;
mod explain;
mod export;
mod files;
mod flags;
mod fmt;
mod import;
mod init;
mod levels;
mod live;
mod load;
mod log;
mod lsp;
mod man;
mod mcp;
mod output;
mod print_policy;
mod revision;
mod rule;
mod run;
mod settings;
mod test;
mod windows;

use arguments::{Arguments, RunAlone, RunVerb, Verb};
use clap::Parser;
use std::process::ExitCode;

/// The exit codes of `srt` itself; a command that was run gives its own.
pub mod status {
    /// Findings of level error.
    pub const FINDINGS: u8 = 1;
    /// A mistake on the command line, or a file that cannot be read.
    pub const USAGE: u8 = 2;
    /// The only findings of level error are proofs that were given up.
    pub const UNDECIDED: u8 = 3;
    /// The sandbox could not be set up; nothing was run.
    pub const SETUP: u8 = 125;
}

/// Parses the command line and does what it says.
pub fn main() -> ExitCode {
    if std::env::args_os().nth(1).is_some_and(|verb| verb == "run")
        && let Ok(RunAlone { verb: RunVerb::Run(run) }) = RunAlone::try_parse()
    {
        return ExitCode::from(run::run(run));
    }
    let arguments = Arguments::parse();
    let code = match arguments.verb {
        None => run::run(arguments.run),
        Some(Verb::Run(run)) => run::run(run),
        Some(Verb::Check(check)) => check::check(&check),
        Some(Verb::Compile(compile)) => compile::compile(&compile),
        Some(Verb::Explain(explain)) => explain::explain(&explain),
        Some(Verb::Diff(diff)) => diff::diff(&diff),
        Some(Verb::Fmt(fmt)) => fmt::fmt(&fmt),
        Some(Verb::Log(log)) => log::log(&log),
        Some(Verb::Draft(draft)) => draft::draft_verb(&draft),
        Some(Verb::Test(test)) => test::test(&test),
        Some(Verb::Init(init)) => init::init(&init),
        Some(Verb::Import(import)) => import::import(&import),
        Some(Verb::Export(export)) => export::export(&export),
        Some(Verb::Mcp(mcp)) => mcp::mcp(&mcp),
        Some(Verb::Lsp(lsp)) => lsp::lsp(&lsp),
        Some(Verb::Man(man)) => man::man(&man),
        Some(Verb::Doctor(doctor)) => doctor::doctor(&doctor),
        Some(Verb::Connect(connect)) => connect::connect(&connect),
        Some(Verb::Windows(windows)) => windows::windows(&windows),
        Some(Verb::Completions(completions)) => completions::completions(&completions),
    };
    ExitCode::from(code)
}
