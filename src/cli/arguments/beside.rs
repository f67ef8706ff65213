//! The arguments of verbs that stand beside policies: suites, projects, other tools' files, manual pages.

// Help texts have brackets that are no links.
#![allow(rustdoc::broken_intra_doc_links)]

use super::define;
use clap::{Args, Subcommand, ValueEnum};
use std::path::PathBuf;

#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  srt test                                       every *.tests.yaml below here
  srt test --min-coverage 80 policies/agent.tests.yaml
  srt test --format junit > srt.xml

Exit status: 0; 1 if a case does not hold, or too few rules were tried; 2 for a
suite that cannot be read.")]
pub struct Test {
    /// Suites, or directories in which those are that are called NAME.tests.yaml [default: here]
    #[arg(value_name = "SUITE")]
    pub suites: Vec<PathBuf>,
    /// For people or for programs
    #[arg(long, value_enum, default_value_t = TestFormat::Human)]
    pub format: TestFormat,
    /// Exit 1 if fewer rules than this, in percent, decided something
    #[arg(long, value_name = "PERCENT", value_parser = clap::value_parser!(u8).range(0..=100))]
    pub min_coverage: Option<u8>,
    /// Try each case in the real sandbox too, on this machine, where that leaves nothing behind
    #[arg(long)]
    pub live: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum TestFormat {
    Human,
    Json,
    Junit,
}

#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  srt init                                       writes agent.policy
  srt init -o - | less

Looks at the names in this directory (git, Node.js, Python, Rust, Go) and at the
hosts that lock files name. Nothing that is there is written over.")]
pub struct Init {
    /// The file to write; `-` for standard output
    #[arg(long, short, value_name = "FILE", default_value = "agent.policy")]
    pub output: PathBuf,
}

#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  srt export --to srt-settings agent.policy > settings.json
  srt export --to srt-settings --strict agent.policy

What the settings cannot say is said on standard error, each line of the policy
with whether more is open without it (looser) or less (stricter).

Exit status: 0; 1 if the policy has errors, or with --strict if something is
looser; 2 for a file that cannot be read.")]
pub struct Export {
    /// A policy file
    pub file: PathBuf,
    /// Whose settings
    #[arg(long, value_enum)]
    pub to: ExportKind,
    /// Exit 1 if more is open under the settings than under the policy
    #[arg(long)]
    pub strict: bool,
    /// Give a variable of the policy its value
    #[arg(long = "define", value_name = "NAME=VALUE", value_parser = define)]
    pub defines: Vec<(String, String)>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum ExportKind {
    SrtSettings,
}

#[derive(Debug, Args)]
pub struct Man {
    /// The directory to write to
    pub directory: PathBuf,
}

#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  srt mcp wrap .mcp.json --policy ~/agent.policy
  srt mcp wrap .vscode/mcp.json --server files --dry-run
  srt mcp unwrap .mcp.json

Everything else in the file stays byte for byte. Without --policy a server runs
under your default policy.

Exit status: 0; 1 if a server that starts a program could not be changed; 2 for a
file that cannot be read, or in which a key stands twice.")]
pub struct Mcp {
    #[command(subcommand)]
    pub verb: McpVerb,
}

#[derive(Debug, Subcommand)]
pub enum McpVerb {
    /// Let servers start under srt
    Wrap {
        #[command(flatten)]
        edit: McpEdit,
        /// The policy that they run under
        #[arg(long, short, value_name = "FILE")]
        policy: Option<PathBuf>,
        /// The settings that they run under
        #[arg(long, short, value_name = "FILE", conflicts_with = "policy")]
        settings: Option<PathBuf>,
    },
    /// Take that away again
    Unwrap {
        #[command(flatten)]
        edit: McpEdit,
    },
}

#[derive(Debug, Args)]
pub struct McpEdit {
    /// The client's settings, of Claude Desktop, Claude Code, Cursor or VS Code
    pub file: PathBuf,
    /// Change this server alone
    #[arg(long, value_name = "NAME")]
    pub server: Option<String>,
    /// Show the change, and make none
    #[arg(long)]
    pub dry_run: bool,
}

#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  srt import ~/.srt-settings.json > agent.policy
  srt import .claude/settings.json
  srt import ~/.codex/config.toml

What has no counterpart stands at the end, as comments. A key that cannot be
used as it is is said on standard error too.

Exit status: 0; 1 if a key was refused, or if something is more open under the
policy; 2 for a file that cannot be read.")]
pub struct Import {
    /// Settings of @anthropic-ai/sandbox-runtime, of Claude Code, or Codex's config.toml; `-` for standard input
    pub file: PathBuf,
    /// Whose file it is [default: by its name and what it holds]
    #[arg(long, value_enum)]
    pub from: Option<Kind>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Kind {
    SrtSettings,
    ClaudeCode,
    Codex,
}

#[derive(Debug, Args)]
#[command(after_help = "\
Speaks the Language Server Protocol on standard input and output. An editor starts
it by itself: the book's chapter on editors has lines for Neovim and
Helix. It reads the policies that are open and the files that they use, runs
nothing, and never touches the network.

It offers findings as you type, hover, completion, going to definitions,
references, renaming, formatting, folding and semantic tokens.

Examples:
  srt lsp                                        what to write in an editor's settings
  srt lsp --define registry=registry.example.com

Exit status: 0 if the editor ended it as the protocol wants; else 1.")]
pub struct Lsp {
    /// Give a variable of the policies its value
    #[arg(long = "define", value_name = "NAME=VALUE", value_parser = super::define)]
    pub defines: Vec<(String, String)>,
    /// Accepted and without meaning: clients add it
    #[arg(long, hide = true)]
    pub stdio: bool,
}
