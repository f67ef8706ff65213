//! A program that holds a command to a policy of its own, by the library alone: `embed COMMAND ARGUMENT…`.
//!
//! It parses the policy, checks it, asks what it decides, lowers it, and runs the command; its exit status is the command's,
//! 125 where nothing was run. It reads no policy files: where a program has some, `Files` is how the library asks for them.

// An example is read from top to bottom; what fails here ends the program with a sentence.
#![allow(clippy::disallowed_methods)]

use sandbox_runtime::backend::Enforced;
use sandbox_runtime::backend::bubblewrap::{Needs, Network};
use sandbox_runtime::bind::bind;
use sandbox_runtime::check::{Given, check};
use sandbox_runtime::compile::{artefact, enforced, environment};
use sandbox_runtime::diagnostic::{Diagnostic, Level, Style, any_error, render};
use sandbox_runtime::event::{Collector, RuleText};
use sandbox_runtime::exec::{self, Launch};
use sandbox_runtime::host::real::{Machine, place};
use sandbox_runtime::ir::{Access, Rule, decide};
use sandbox_runtime::proxy::Rules;
use sandbox_runtime::resolve::{Files, Options, Text, resolve};
use sandbox_runtime::source::Sources;
use sandbox_runtime::syntax;
use sandbox_runtime::vocabulary::System;
use std::collections::BTreeMap;
use std::error::Error;
use std::ffi::OsString;
use std::io;
use std::process::ExitCode;
use std::sync::Arc;

/// What our commands may do; `$service` has its value when one is run.
const POLICY: &str = "\
srt 1
use std/system
use std/shell-config
default read deny
allow read $WORKSPACE
allow write $WORKSPACE/out
allow connect $service
";

/// There are no files: `use std/…` needs none.
struct NoFiles;

impl Files for NoFiles {
    fn read(&self, _: &str) -> io::Result<Text> {
        Err(io::ErrorKind::NotFound.into())
    }
}

fn main() -> ExitCode {
    let command: Vec<OsString> = std::env::args_os().skip(1).collect();
    match embed(command) {
        Ok(status) => ExitCode::from(status),
        Err(error) => {
            eprintln!("embed: {error}");
            ExitCode::from(125)
        }
    }
}

fn embed(command: Vec<OsString>) -> Result<u8, Box<dyn Error>> {
    // Parse. A tree comes back whatever is wrong with the text, and so does all that is.
    let mut sources = Sources::default();
    let source = sources.add("built in", POLICY);
    let (tree, said) = syntax::parse(&sources, source);
    refuse(&said, &sources)?;
    println!("parsed: {} statements", tree.statements.len());

    // Check: what `srt check` says, of every system, on a machine that is assumed.
    let defines: BTreeMap<String, String> = [("service".to_owned(), "api.example.com".to_owned())].into();
    let options = Options { system: here(), defines: defines.clone() };
    let given = Given { name: "built in".to_owned(), text: POLICY.to_owned() };
    let checked = check(&[given], &NoFiles, &options, None);
    refuse(&checked.diagnostics, &checked.sources)?;
    println!("checked: {} findings", checked.diagnostics.len());

    // Resolve and bind: what it means here. The workspace is the current directory.
    let (policy, said) = resolve(&[source], &mut sources, &NoFiles, &options);
    refuse(&said, &sources)?;
    let machine = Machine::look(None, defines)?;
    let (policy, said) = bind(policy.ok_or("no policy")?, &machine);
    refuse(&said, &sources)?;
    let policy = policy.ok_or("no policy")?;

    // Decide: the one meaning, which everything that enforces it is tested against.
    let directory = std::env::current_dir()?;
    for name in ["out/notes", "settings"] {
        let path = place(&directory.join(name)).ok_or("a directory that no policy can name")?;
        let verdict = decide(&policy, &Access::Write(path));
        let rule = verdict.decisive.first().map(|id| policy.rule(*id).words(&sources));
        let answer = if verdict.allowed { "allowed" } else { "denied" };
        println!("write {name}: {answer} by `{}`", rule.unwrap_or_else(|| "the default".to_owned()));
    }

    // Lower, for the system that this is. What comes is what will be done; a gap that makes it looser than the policy is an error.
    // The profile for macOS comes of the policy for that system, on any.
    let made = enforced(&policy, &sources, &Needs { user: exec::caller(), ..Needs::default() })?;
    refuse(&made.diagnostics, &sources)?;
    let plan = made.enforced.ok_or("no plan")?;
    match &plan {
        Enforced::Bubblewrap(plan) => println!("lowered: {} mounts for Linux", plan.mounts.len()),
        Enforced::Seatbelt(profile) => println!("lowered: {} bytes for macOS", profile.text.len()),
        Enforced::Wfp(texts) => println!("lowered: {} bytes for Windows", texts.filters.len()),
    }
    let options = Options { system: System::Macos, ..options };
    let (macos, _) = resolve(&[source], &mut sources, &NoFiles, &options);
    let built = artefact::seatbelt(&macos.ok_or("no policy")?, &sources, &[artefact::Emit::Sbpl])?;
    println!("lowered: {} file for macOS", built.artefacts.len());

    // Run. No thread may exist yet: the sandbox's processes are forked from this one.
    let events = Arc::new(Collector::default());
    let mut launch = Launch::new(command, environment(&policy, std::env::vars_os()), directory, events.clone());
    launch.set = policy.set.keys().map(Into::into).collect();
    let proxied = match &plan {
        Enforced::Bubblewrap(plan) => matches!(plan.network, Network::Proxy(_)),
        Enforced::Seatbelt(profile) => profile.proxy,
        Enforced::Wfp(texts) => texts.proxy.is_some(),
    };
    if proxied {
        // The proxy decides by the policy too, and names its rules in what it answers and reports.
        let texts = move |rule: &Rule| {
            let place = sources.location(rule.span);
            RuleText { file: place.name, line: place.line, text: rule.words(&sources) }
        };
        launch.rules = Some(Arc::new(Rules { policy, texts: Box::new(texts) }));
    }
    let exit = exec::run(&plan, launch)?;
    if let Some(refused) = events.summary() {
        eprintln!("{refused}");
    }
    Ok(exit.status())
}

/// The system that this runs on.
fn here() -> System {
    match std::env::consts::OS {
        "macos" => System::Macos,
        "windows" => System::Windows,
        _ => System::Linux,
    }
}

/// Prints findings; an error among them ends it.
fn refuse(said: &[Diagnostic], sources: &Sources) -> Result<(), Box<dyn Error>> {
    for finding in said.iter().filter(|finding| finding.level > Level::Note) {
        eprint!("{}", render(finding, sources, Style { colour: false, width: 100 }));
    }
    if any_error(said) { Err("the policy cannot be used".into()) } else { Ok(()) }
}
