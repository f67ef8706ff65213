//! `srt check`: everything that can be said about policy files without running anything.

use super::arguments::{Check, CheckFormat};
use super::nominal::Nominal;
use super::{flags, load, output, status};
use sandbox_runtime::backend::bubblewrap::{NOT_GRANTED, Needs};
use sandbox_runtime::bind::observe;
use sandbox_runtime::compile::{compile, elsewhere, placements};
use sandbox_runtime::diagnostic::{Diagnostic, Level, any_error};
use sandbox_runtime::ir::Policy;
use sandbox_runtime::lint::UNDECIDED;
use sandbox_runtime::report::{Checked, github, junit, sarif};
use sandbox_runtime::source::{SourceId, Sources, Span};
use sandbox_runtime::vocabulary::System;
use std::path::{Path, PathBuf};

pub fn check(check: &Check) -> u8 {
    if let Err(message) = check.levels.validate() {
        output::complain(message);
        return status::USAGE;
    }
    let root = match std::env::current_dir() {
        Ok(root) => root.display().to_string(),
        Err(error) => {
            output::complain(format_args!("cannot tell where this is: {error}"));
            return status::USAGE;
        }
    };
    let mut outcome = Outcome::Fine;
    let mut all = Vec::new();
    let mut counts = [0_usize; 3];
    for path in &check.files {
        let looked = Looked {
            host: check.host,
            within: &check.within,
            workspace: check.workspace.as_deref(),
            defines: &check.defines,
        };
        let said = said(&looked, &|sources| load::add(path, sources)).map(|(diagnostics, sources)| {
            let mut diagnostics = check.levels.apply(diagnostics);
            if check.files.len() > 1 {
                // A definition given for several files need not be used by each.
                diagnostics.retain(|said| !said.labels.is_empty());
            }
            (diagnostics, sources)
        });
        let said = said.map_err(|message| output::without_numbers(&message));
        match &said {
            Ok((diagnostics, sources)) => {
                for diagnostic in diagnostics {
                    counts[diagnostic.level as usize] += 1;
                }
                outcome = outcome.max(Outcome::of(diagnostics));
                if check.format == CheckFormat::Human {
                    output::print_diagnostics(diagnostics, sources, Level::Note);
                }
            }
            Err(message) => {
                output::complain(message);
                outcome = Outcome::Unread;
            }
        }
        all.push(Checked { file: path.display().to_string(), said });
    }
    let read = all.iter().filter(|file| file.said.is_ok()).count();
    match check.format {
        CheckFormat::Json => output::print_json(&json(&all)),
        CheckFormat::Sarif => output::print(&format!("{:#}\n", sarif(&all, &root))),
        CheckFormat::Junit => output::print(&junit::junit(&all, &root)),
        CheckFormat::Github => output::print(&github(&all, &root)),
        CheckFormat::Human if read == 0 => {}
        CheckFormat::Human => summarise(read, counts),
    }
    outcome.status()
}

fn json(all: &[Checked]) -> serde_json::Value {
    let read = all.iter().filter_map(|file| Some((&file.file, file.said.as_ref().ok()?)));
    read.map(|(file, (said, sources))| serde_json::json!({ "file": file, "diagnostics": output::json(said, sources) }))
        .collect()
}

/// How a check ended; what comes later weighs more.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Outcome {
    Fine,
    /// Of errors, only proofs that were given up.
    Undecided,
    Findings,
    Unread,
}

impl Outcome {
    fn of(diagnostics: &[Diagnostic]) -> Self {
        let mut errors = diagnostics.iter().filter(|said| said.level == Level::Error).peekable();
        if errors.peek().is_none() {
            Outcome::Fine
        } else if errors.all(|said| said.code == &UNDECIDED) {
            Outcome::Undecided
        } else {
            Outcome::Findings
        }
    }

    fn status(self) -> u8 {
        match self {
            Outcome::Fine => 0,
            Outcome::Undecided => status::UNDECIDED,
            Outcome::Findings => status::FINDINGS,
            Outcome::Unread => status::USAGE,
        }
    }
}

fn summarise(files: usize, [notes, warnings, errors]: [usize; 3]) {
    let found: Vec<_> = [(errors, "error"), (warnings, "warning"), (notes, "note")]
        .into_iter()
        .filter(|(number, _)| *number > 0)
        .map(|(number, noun)| output::count(number, noun))
        .collect();
    let files = output::count(files, "file");
    if found.is_empty() {
        eprintln!("{files} checked: nothing to say");
    } else {
        eprintln!("{files} checked: {}; `srt explain CODE` says more about a finding", found.join(", "));
    }
}

/// What a text is looked at with.
#[derive(Debug, Clone, Copy, Default)]
pub struct Looked<'a> {
    /// Against this machine.
    pub host: bool,
    pub within: &'a [PathBuf],
    pub workspace: Option<&'a Path>,
    pub defines: &'a [(String, String)],
}

/// Adds the text that is looked at.
pub type Add<'a> = &'a dyn Fn(&mut Sources) -> Result<SourceId, String>;

/// Everything said about one text: about its names for each system, about its meaning for this one.
///
/// # Errors
/// A sentence for the command line.
pub fn said(looked: &Looked<'_>, add: Add<'_>) -> Result<(Vec<Diagnostic>, Sources), String> {
    let here = load::this_system();
    let mut others = Vec::new();
    for system in System::ALL.iter().filter(|system| **system != here) {
        let loaded = resolved(looked, add, *system)?;
        // Said once: what is wrong everywhere comes with the same words for each system.
        if any_error(&loaded.diagnostics) {
            return Ok((loaded.diagnostics, loaded.sources));
        }
        // Its lists are the same for each system, and are read once as long as one is there.
        others.extend(loaded.policy.map(|policy| (*system, elsewhere(&policy), loaded.sources, policy)));
    }
    let loaded = resolved(looked, add, here)?;
    let mut accepted = Vec::new();
    let mut placed = Vec::new();
    let bound = if looked.host {
        let directory = std::env::current_dir().map_err(|error| format!("cannot tell where this is: {error}"))?;
        let machine = load::machine(looked.workspace, looked.defines, &directory)?;
        let mut bound = load::bind_to(loaded, &machine);
        if let Some(policy) = &mut bound.policy {
            observe(policy, &machine);
        }
        bound
    } else {
        let Some(policy) = &loaded.policy else { return Ok((loaded.diagnostics, loaded.sources)) };
        (placed, accepted) = placements(policy);
        let machine = Nominal::of(policy);
        load::bind_to(loaded, &machine)
    };
    let mut said = bound.diagnostics;
    let mut sources = bound.sources;
    if let Some(policy) = bound.policy.filter(|_| !any_error(&said)) {
        let compiled = compile(&policy, &Needs::default());
        said.extend(compiled.diagnostics);
        said.extend(placed);
        for (system, (more, used), from, _) in others {
            accepted.extend(used.into_iter().map(|span| moved(span, &from, &mut sources)));
            for mut one in more {
                for label in &mut one.labels {
                    label.span = moved(label.span, &from, &mut sources);
                }
                // What is so everywhere has been said.
                if !said.iter().any(|known| known.code == one.code && known.span() == one.span()) {
                    one.message = format!("on {system}: {}", one.message);
                    said.push(one);
                }
            }
        }
        if !looked.host {
            said.extend(
                compiled.unused.into_iter().filter(|unused| unused.span().is_none_or(|at| !accepted.contains(&at))),
            );
            // What is there and what is not is known on a machine alone.
            said.retain(|said| said.code != &NOT_GRANTED);
        }
    }
    Ok((said, sources))
}

/// The same place among other texts.
fn moved(span: Span, from: &Sources, to: &mut Sources) -> Span {
    let source = from.get(span.source);
    let known = to.named(source.name());
    Span { source: known.unwrap_or_else(|| to.adopt(source)), ..span }
}

fn resolved(looked: &Looked<'_>, add: Add<'_>, system: System) -> Result<load::Loaded<Policy>, String> {
    let mut sources = Sources::default();
    let mut given = vec![add(&mut sources)?];
    let ceilings = flags::ceilings(looked.within, looked.host)?;
    given.extend(ceilings.into_iter().map(|ceiling| sources.add(ceiling.name, ceiling.text)));
    Ok(load::resolved(&given, sources, looked.defines, system))
}
