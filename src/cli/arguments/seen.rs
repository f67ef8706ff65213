//! The arguments of verbs that look at what runs have told.

// Help texts have brackets that are no links.
#![allow(rustdoc::broken_intra_doc_links)]

use super::{Format, define};
use clap::{Args, ValueEnum};
use std::path::PathBuf;

#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  srt run --policy agent.policy --events events.jsonl -- my-agent
  srt log events.jsonl                           each kind once, with how often
  srt log events.jsonl write '$WORKSPACE/**/.git'
  srt log --since 10m --each events.jsonl connect '*.example.com'
  srt log -f events.jsonl                        while a command runs
  srt log --html report.html events.jsonl        for a browser

A TARGET is written as in a policy. What is no event, or no whole one, is counted
and passed over: a command can write anything into a file that it may write.

Exit status: 0; 2 for a mistake on the command line, or a file that cannot be
read or written.")]
pub struct Log {
    /// What `srt run --events FILE` wrote; `-` for standard input
    pub file: PathBuf,
    /// Only this: read, write, exec, connect, listen, socket or resolve
    #[arg(value_name = "OPERATION")]
    pub operation: Option<String>,
    /// Only what is in this: a path, a host or an address, as a rule has it
    #[arg(requires = "operation")]
    pub target: Option<String>,
    /// Only what ended like this
    #[arg(long, value_enum)]
    pub outcome: Option<Ended>,
    /// Only what the rule in this line decided; of another file FILE:LINE
    #[arg(long, value_name = "LINE")]
    pub rule: Option<String>,
    /// Only what this process tried, as it is numbered inside
    #[arg(long)]
    pub pid: Option<i32>,
    /// Only what was since then: as long ago as `30s`, `10m`, `2h` or `1d`, or a time (UTC) such as 2026-01-31T08:00
    #[arg(long, value_name = "TIME", value_parser = super::super::log::since)]
    pub since: Option<String>,
    /// Each event by itself
    #[arg(long)]
    pub each: bool,
    /// Go on as events are written, each by itself
    #[arg(long, short, conflicts_with = "html")]
    pub follow: bool,
    /// For people or for programs
    #[arg(long, value_enum, default_value_t = Format::Human)]
    pub format: Format,
    /// Write a page to FILE that shows where it was, in a browser; `-` for standard output
    #[arg(long, value_name = "FILE", conflicts_with_all = ["each", "format"])]
    pub html: Option<PathBuf>,
    /// The directory that `$WORKSPACE` names [default: where you are]
    #[arg(long, value_name = "DIR")]
    pub workspace: Option<PathBuf>,
    /// Give a variable of the target its value
    #[arg(long = "define", value_name = "NAME=VALUE", value_parser = define)]
    pub defines: Vec<(String, String)>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Ended {
    Refused,
    Predicted,
    Allowed,
}

#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  srt draft events.jsonl --policy agent.policy > more.patch
  srt draft events.jsonl --policy agent.policy | patch -p0

The patch goes to standard output, each rule with what it was drafted for; what
it would newly permit, and what is not drafted and why, to standard error. Read
it: what was asked for need not be what should be allowed.

Nothing is drafted for what a `forbid` denies, inside what std/secrets names,
for metadata services, beyond what the policy must be within (--within, or
/etc/srt/ceiling.policy), or where `srt check` would newly find an error or a
warning. Nothing is run.

Exit status: 0; 1 if the policy has errors; 2 for a mistake on the command line,
or a file that cannot be read.")]
pub struct Draft {
    /// What `srt run --events FILE` wrote; `-` for standard input
    pub file: PathBuf,
    /// The policy that the rules are for, a text
    #[arg(long, short, value_name = "FILE")]
    pub policy: PathBuf,
    /// Draft nothing that the policy in FILE does not permit
    #[arg(long, value_name = "FILE")]
    pub within: Vec<PathBuf>,
    /// The directory that `$WORKSPACE` names [default: where you are]
    #[arg(long, value_name = "DIR")]
    pub workspace: Option<PathBuf>,
    /// Give a variable of the policy its value
    #[arg(long = "define", value_name = "NAME=VALUE", value_parser = define)]
    pub defines: Vec<(String, String)>,
}
