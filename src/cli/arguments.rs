//! The command line's definition, from which help and completions are made.

// Help texts have brackets that are no links.
#![allow(rustdoc::broken_intra_doc_links)]

mod beside;
mod seen;

pub use beside::{Export, Import, Init, Kind, Lsp, Man, Mcp, McpVerb, Test, TestFormat};
pub use seen::{Draft, Ended, Log};

use clap::builder::{PossibleValue, PossibleValuesParser, TypedValueParser};
use clap::{Args, Parser, Subcommand, ValueEnum};
use sandbox_runtime::compile::artefact::Emit;
use std::ffi::OsString;
use std::path::PathBuf;

/// The version, with the commit where the build was told it: `make install` does.
pub const VERSION: &str = match option_env!("SRT_VERSION") {
    Some(version) => version,
    None => env!("CARGO_PKG_VERSION"),
};

/// Runs a command in a sandbox that one policy file describes, and proves things about such files.
#[derive(Debug, Parser)]
#[command(
    name = "srt",
    version = VERSION,
    args_conflicts_with_subcommands = true,
    subcommand_negates_reqs = true,
    arg_required_else_help = true,
    override_usage = "srt [OPTIONS] COMMAND [ARG]...\n       srt VERB ...",
    subcommand_help_heading = "Verbs",
    max_term_width = 100,
    after_help = "\
Examples:
  Run under your default policy (write here and in $TMP, read no secrets,
  reach no network):
    srt npm test
  Run under a policy file:
    srt run --policy agent.policy -- my-agent
  Run under flags alone: read one directory, write another, reach one host
    srt --allow-read . --allow-write out --network-allowlist api.example.com job
  What is wrong with a policy, and what is decided by which of its lines:
    srt check agent.policy
    srt explain --policy agent.policy read ~/.ssh

`srt COMMAND ARG…` is short for `srt run -- COMMAND ARG…`. A command that is
called like a verb needs the long form.

Exit status of a run: the command's own; 128+n if signal n ended it; 124 if its
time was up, 137 if it passed another limit; 125 if the sandbox could not be set
up (nothing was run); 126 or 127 if the command could not be started.
Exit status of the other verbs: 0; 1 for findings of level error; 2 for a
mistake on the command line, or a file that cannot be read."
)]
pub struct Arguments {
    #[command(subcommand)]
    pub verb: Option<Verb>,
    #[command(flatten)]
    pub run: Run,
}

/// `srt run` alone, without the definitions of all other verbs, which take longer to make than a line to read. What is wrong
/// with a line, or asked for by it, is for [`Arguments`] to say.
#[derive(Debug, Parser)]
#[command(name = "srt")]
pub struct RunAlone {
    #[command(subcommand)]
    pub verb: RunVerb,
}

#[derive(Debug, Subcommand)]
pub enum RunVerb {
    Run(Run),
}

#[derive(Debug, Subcommand)]
pub enum Verb {
    /// Run a command under a policy
    Run(Run),
    /// Say what is wrong with policy files
    Check(Check),
    /// Write down what enforces a policy on each system, proved to be the policy
    Compile(Compile),
    /// Say what decides one access and why, what a line is for, or what a finding means
    Explain(Explain),
    /// Say what one policy permits that another does not
    Diff(Diff),
    /// Put policy files into their one layout
    Fmt(Fmt),
    /// Read back what runs have told: what was refused, by which rule, how often
    Log(Log),
    /// Draft rules for what runs were refused, as a patch of the policy
    Draft(Draft),
    /// Try what policies decide, access by access, as suites say that they should
    Test(Test),
    /// Write a policy to start from, by what lies here
    Init(Init),
    /// Make a policy of another tool's settings
    Import(Import),
    /// Write a policy as another tool's settings
    Export(Export),
    /// Let the servers of an MCP client start under srt
    Mcp(Mcp),
    /// Answer an editor: findings as you type, hover, completion, and more
    Lsp(Lsp),
    /// Write manual pages
    #[command(hide = true)]
    Man(Man),
    /// Try what this machine offers for sandboxing, and say how to mend what is missing
    Doctor(Doctor),
    /// On Windows: make, remove or show the account that commands run as
    Windows(Windows),
    /// Inside a sandbox: join standard input and output to a connection, for ssh
    Connect(Connect),
    /// Print a completion script for a shell
    Completions(Completions),
}

/// Which policy is meant, and on which values.
#[derive(Debug, Args, Clone, Default)]
pub struct PolicyChoice {
    /// A policy file, or a compiled one (.srtc); several are a union, so each one can only permit more (their denies hold for all)
    #[arg(long = "policy", short = 'p', value_name = "FILE")]
    pub policies: Vec<PathBuf>,
    /// A settings file of the npm package @anthropic-ai/sandbox-runtime, instead of a policy
    #[arg(long, short, value_name = "FILE", conflicts_with = "policies")]
    pub settings: Option<PathBuf>,
    /// Give a variable of the policy its value
    #[arg(long = "define", value_name = "NAME=VALUE", value_parser = define)]
    pub defines: Vec<(String, String)>,
    /// The directory that `$WORKSPACE` names [default: where you are]
    #[arg(long, value_name = "DIR")]
    pub workspace: Option<PathBuf>,
    /// Also permit reading PATH; without --policy nothing else can be read but what programs need to start
    #[arg(long, value_name = "PATH")]
    pub allow_read: Vec<PathBuf>,
    /// Also permit reading and writing PATH
    #[arg(long, value_name = "PATH")]
    pub allow_write: Vec<PathBuf>,
    /// Also permit connecting to HOST[:PORT]; without a port 80 and 443
    #[arg(long, value_name = "HOST", value_delimiter = ',')]
    pub network_allowlist: Vec<String>,
}

// Each is a switch of its own on the command line.
#[allow(clippy::struct_excessive_bools)]
#[derive(Debug, Args)]
#[command(override_usage = "srt run [OPTIONS] -- COMMAND [ARG]...")]
#[command(after_help = "\
Without --policy: $XDG_CONFIG_HOME/srt/default.policy, else the settings in
~/.srt-settings.json, else the built-in std/default (write the workspace and
$TMP, read no secrets, reach no network).
Nothing in the workspace is ever loaded as a policy by itself.

With --allow-read and no --policy, reading is closed but for the PATHs and what
programs need to start, and $WORKSPACE is the first PATH. Credentials in them
(.env, ~/.ssh) stay closed: to open one, name it.

Examples:
  srt run --policy agent.policy -- my-agent
  srt run --policy ci.policy --define registry=registry.example.com -- npm ci
  srt run --allow-read . --allow-write out -- make report
  srt run --print-policy

Exit status: the command's own; 128+n if signal n ended it; 124 if its time was
up, 137 if it passed another limit; 125 if the sandbox could not be set up
(nothing was run); 126 or 127 if the command could not be started; 2 for a
mistake on the command line.")]
pub struct Run {
    #[command(flatten)]
    pub choice: PolicyChoice,
    /// Refuse to run if the policy permits anything that the policy in FILE does not
    #[arg(long, value_name = "FILE")]
    pub within: Vec<PathBuf>,
    /// Who sets the sandbox up: `native` needs nothing installed, `bwrap` is bubblewrap
    #[arg(long, value_enum, default_value_t = EngineName::Native)]
    pub engine: EngineName,
    /// Let the command make namespaces and mounts of its own (Chromium, Podman, Nix, Bazel); gives up Landlock
    #[arg(long)]
    pub nest: bool,
    /// Deny reading by the name a file is opened by, so that rules hold for files that appear later; each open takes longer
    #[arg(long)]
    pub strict_reads: bool,
    /// Leave this descriptor open to the command, beside 0, 1 and 2
    #[arg(long = "keep-fd", value_name = "N", value_parser = clap::value_parser!(i32).range(3..))]
    pub keep_fd: Vec<i32>,
    /// Take changes of the network rules, as JSON lines, from this descriptor, which is open in both directions
    #[arg(long, value_name = "FD", value_parser = clap::value_parser!(i32).range(3..))]
    pub control: Option<i32>,
    /// Print what would be in force, with where each rule came from, and run nothing
    #[arg(long)]
    pub print_policy: bool,
    /// Say nothing at the end about what was refused
    #[arg(long, short)]
    pub quiet: bool,
    /// Write every refusal to FILE as JSON lines
    #[arg(long, value_name = "FILE")]
    pub events: Option<PathBuf>,
    /// Say what is refused of opening files for reading too, which takes time for each; else it is of writing alone
    #[arg(long, value_enum, value_name = "WHAT")]
    pub monitor: Option<Monitor>,
    /// Say what is found about the policy, down to the notes, before the command is started
    #[arg(long, short)]
    pub debug: bool,
    /// Run this line by a shell, as `sh -c` does
    #[arg(short = 'c', value_name = "STRING", allow_hyphen_values = true, conflicts_with = "command")]
    pub line: Option<OsString>,
    /// The command and its arguments
    #[arg(trailing_var_arg = true, allow_hyphen_values = true, value_name = "COMMAND")]
    pub command: Vec<OsString>,
}

#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  srt check policies/*.policy
  srt check --host agent.policy                  with this machine's files
  srt check --within team.policy agent.policy    that it permits no more
  srt check --deny warnings --format json agent.policy
  srt check --format sarif policies/*.policy > srt.sarif

Without --host a policy is checked on an example machine, so that the answer is
the same everywhere. `srt explain CODE` says more about a finding.

Exit status: 0; 1 for findings of level error; 3 if the only ones are proofs
that were given up (`undecided`); 2 for a mistake on the command line, or a file
that cannot be read.")]
pub struct Check {
    /// Policy files, each checked by itself
    #[arg(required = true, value_name = "FILE")]
    pub files: Vec<PathBuf>,
    /// For people, on standard error; the same as sentences, a line for each finding, as screen readers read them; or for
    /// programs, on standard output: SARIF, GitHub's annotations, JUnit, our own JSON
    #[arg(long, value_enum, default_value_t = CheckFormat::Human)]
    pub format: CheckFormat,
    /// Check against this machine: its variables, links and files
    #[arg(long)]
    pub host: bool,
    /// Prove that the policy permits nothing that the policy in FILE does not
    #[arg(long, value_name = "FILE")]
    pub within: Vec<PathBuf>,
    /// The directory that `$WORKSPACE` names, with --host [default: where you are]
    #[arg(long, value_name = "DIR", requires = "host")]
    pub workspace: Option<PathBuf>,
    /// Give a variable of the policy its value
    #[arg(long = "define", value_name = "NAME=VALUE", value_parser = define)]
    pub defines: Vec<(String, String)>,
    #[command(flatten)]
    pub levels: Levels,
}

#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  srt compile --target macos agent.policy             the profile, printed
  srt compile agent.policy -o compiled/               everything, for every system
  srt compile --check agent.policy -o compiled/       in a pipeline
  srt compile --host --emit bwrap-shell agent.policy  for this machine
  srt compile agent.policy -o agent.srtc              then: srt run --policy agent.srtc

Any system's texts are written on any system. Each macOS profile is read back
and proved equal to the policy, but for the gaps that are printed, before it is
written.

Exit status: 0; 1 for findings of level error, or with --check if a file is not
what the policy compiles to; 2 for a mistake on the command line, or a file that
cannot be read or written.")]
pub struct Compile {
    /// Policy files, each compiled by itself
    #[arg(required = true, value_name = "FILE")]
    pub files: Vec<PathBuf>,
    /// The system to compile for [default: all]
    #[arg(long, value_enum)]
    pub target: Option<TargetName>,
    /// What to write [default: what is usual for the target]
    #[arg(long, value_parser = emit(), value_delimiter = ',')]
    pub emit: Vec<Emit>,
    /// Where to: a file, a directory, `-` for standard output, or a name that ends in .srtc for a compiled policy
    #[arg(long, short, value_name = "PATH")]
    pub output: Option<PathBuf>,
    /// Write nothing; show how the files differ from what the policy compiles to
    #[arg(long)]
    pub check: bool,
    /// Compile for this machine: its variables, links and files
    #[arg(long)]
    pub host: bool,
    /// The directory that `$WORKSPACE` names, with --host [default: where you are]
    #[arg(long, value_name = "DIR", requires = "host")]
    pub workspace: Option<PathBuf>,
    /// Give a variable of the policy its value
    #[arg(long = "define", value_name = "NAME=VALUE", value_parser = define)]
    pub defines: Vec<(String, String)>,
}

/// What is watched beside writing.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Monitor {
    Reads,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum TargetName {
    Linux,
    Macos,
    Windows,
    All,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum CheckFormat {
    Human,
    Plain,
    Json,
    Sarif,
    Github,
    Junit,
}

/// A word for [`Emit`]; the library has them all.
fn emit() -> impl TypedValueParser<Value = Emit> {
    let words = Emit::ALL.map(|emit| PossibleValue::new(emit.word()).help(emit.what()));
    PossibleValuesParser::new(words)
        .try_map(|word| Emit::ALL.into_iter().find(|emit| emit.word() == word).ok_or("no such text"))
}

/// What level a code has.
#[derive(Debug, Args, Clone, Default)]
pub struct Levels {
    /// Say nothing of CODE
    #[arg(long = "allow", short = 'A', value_name = "CODE")]
    pub allow: Vec<String>,
    /// Make CODE a warning
    #[arg(long = "warn", short = 'W', value_name = "CODE")]
    pub warn: Vec<String>,
    /// Make CODE an error; `warnings` makes every warning one
    #[arg(long = "deny", short = 'D', value_name = "CODE")]
    pub deny: Vec<String>,
}

#[derive(Debug, Args)]
#[command(override_usage = "\
srt explain [OPTIONS] VERB TARGET
       srt explain [OPTIONS] --rule LINE
       srt explain CODE|MODULE")]
#[command(after_help = "\
Examples:
  srt explain --policy agent.policy read ~/.ssh/id_ed25519
  srt explain --policy agent.policy connect api.github.com:443
  srt explain --policy agent.policy --rule 12    what line 12 is good for
  srt explain later-names                        the page of a finding
  srt explain std/secrets                        the text of a built-in module

Exit status: 0, whatever the verdict; 1 if the policy has errors; 2 for a
mistake on the command line.")]
pub struct Explain {
    #[command(flatten)]
    pub choice: PolicyChoice,
    /// For people or for programs
    #[arg(long, value_enum, default_value_t = Format::Human)]
    pub format: Format,
    /// What the rules of a line decide alone, and what would change without them; for a line of another file FILE:LINE
    #[arg(long, value_name = "LINE", conflicts_with = "subject")]
    pub rule: Option<String>,
    /// read, write, exec, connect, listen, socket or env; or the code of a finding, or a module
    #[arg(value_name = "VERB|CODE|MODULE", required_unless_present = "rule")]
    pub subject: Option<String>,
    /// A path, HOST[:PORT], ADDRESS[:PORT] or a variable's name
    pub target: Option<String>,
}

#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  srt diff old.policy new.policy
  srt diff HEAD~1:agent.policy agent.policy      what a commit changed
  srt diff --fail-on widen --format markdown main:agent.policy agent.policy

Policies are compared by what they mean, on every system, away from any machine.
A policy of a git revision uses the files of that revision.

Exit status: 0; 1 with --fail-on if there is such a difference, or if a policy
has errors; 3 with --fail-on if that is not known; 2 for a mistake on the
command line, or a file that cannot be read.")]
pub struct Diff {
    /// The policy as it was: a file, or REVISION:PATH
    pub old: String,
    /// The policy as it is
    pub new: String,
    /// Exit 1 if the new policy permits more (`widen`), or if there is any difference (`any`)
    #[arg(long, value_enum, value_name = "WHAT")]
    pub fail_on: Option<FailOn>,
    /// For people; the same as sentences, a line for each difference, as screen readers read them; for programs; or for a pull
    /// request
    #[arg(long, value_enum, default_value_t = DiffFormat::Human)]
    pub format: DiffFormat,
    /// Give a variable of the policies its value
    #[arg(long = "define", value_name = "NAME=VALUE", value_parser = define)]
    pub defines: Vec<(String, String)>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum FailOn {
    Widen,
    Any,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum DiffFormat {
    Human,
    Plain,
    Json,
    Markdown,
}

#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  srt fmt policies/*.policy
  srt fmt --check agent.policy                   in a pipeline
  srt fmt - < agent.policy                       in an editor

Exit status: 0; 1 if a file has errors, or with --check would change; 2 for a
file that cannot be read or written.")]
pub struct Fmt {
    /// Policy files to rewrite in place; `-` reads standard input and writes standard output
    #[arg(required = true, value_name = "FILE")]
    pub files: Vec<PathBuf>,
    /// Change nothing; show what would change and exit 1 if anything would
    #[arg(long)]
    pub check: bool,
}

#[derive(Debug, Args)]
#[command(after_help = "\
Exit status: 0 if commands can be run in a sandbox here, else 1.")]
pub struct Doctor {
    /// For people or for programs
    #[arg(long, value_enum, default_value_t = Format::Human)]
    pub format: Format,
}

#[derive(Debug, Args)]
#[command(after_help = "\
The connection goes through the proxy of the sandbox that this runs in, which the
proxy variables name, and the policy decides about it. Where connections are
redirected, which `srt doctor` says, ssh needs none of this.

Examples:
  ssh -o ProxyCommand='srt connect %h %p' git@git.example.com
  GIT_SSH_COMMAND=\"ssh -o ProxyCommand='srt connect %h %p'\" git fetch

Exit status: 0 once both sides have ended; 1 if the connection was refused, or
could not be made; 2 for a mistake on the command line, or if no variable names
a proxy.")]
pub struct Connect {
    /// A name or an address
    pub host: String,
    #[arg(value_parser = clap::value_parser!(u16).range(1..))]
    pub port: u16,
}

#[derive(Debug, Args)]
#[command(after_help = "\
Commands run as an account of their own, `srt-sandbox`, that filters and access
lists are about. Nobody knows its password, which is one of the system's secrets.
To make it, and to run commands, takes an elevated prompt.

Exit status: 0; 1 if it could not be done, as on other systems; 2 for a mistake
on the command line.")]
pub struct Windows {
    #[command(subcommand)]
    pub verb: WindowsVerb,
}

#[derive(Debug, Subcommand)]
pub enum WindowsVerb {
    /// Make the account, or give it a new password
    Install,
    /// Put back what an interrupted run left, and remove the account
    Uninstall,
    /// Say what is there
    Status,
}

#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  srt completions bash > ~/.local/share/bash-completion/completions/srt
  srt completions zsh > ~/.zfunc/_srt
  srt completions fish > ~/.config/fish/completions/srt.fish")]
pub struct Completions {
    #[arg(value_enum)]
    pub shell: clap_complete::Shell,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Format {
    Human,
    Json,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum EngineName {
    Native,
    Bwrap,
}

fn define(text: &str) -> Result<(String, String), String> {
    let (name, value) = text.split_once('=').ok_or("write it as NAME=VALUE")?;
    if !sandbox_runtime::vocabulary::is_variable(name) {
        return Err(format!("`{name}` is not a name: letters, digits and `_`, no digit first"));
    }
    Ok((name.to_owned(), value.to_owned()))
}
