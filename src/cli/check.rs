//! `srt check`: everything that can be said about policy files without running anything.

use super::arguments::{Check, Format};
use super::nominal::Nominal;
use super::{load, output, status};
use sandbox_runtime::backend::bubblewrap::{NOT_GRANTED, Needs};
use sandbox_runtime::compile::compile;
use sandbox_runtime::diagnostic::{Diagnostic, Level, any_error};
use sandbox_runtime::ir::Policy;
use sandbox_runtime::source::Sources;
use sandbox_runtime::vocabulary::System;
use std::path::Path;

pub fn check(check: &Check) -> u8 {
    if let Err(message) = check.levels.validate() {
        output::complain(message);
        return status::USAGE;
    }
    let mut worst = 0;
    let mut all = Vec::new();
    let mut counts = [0_usize; 3];
    let mut read = 0;
    for path in &check.files {
        match file(check, path) {
            Ok((diagnostics, sources)) => {
                read += 1;
                let mut diagnostics = check.levels.apply(diagnostics);
                if check.files.len() > 1 {
                    // A definition given for several files need not be used by each.
                    diagnostics.retain(|said| !said.labels.is_empty());
                }
                for diagnostic in &diagnostics {
                    counts[diagnostic.level as usize] += 1;
                }
                if any_error(&diagnostics) {
                    worst = worst.max(status::FINDINGS);
                }
                match check.format {
                    Format::Human => output::print_diagnostics(&diagnostics, &sources, Level::Note),
                    Format::Json => all.push(serde_json::json!({
                        "file": path.display().to_string(),
                        "diagnostics": output::json(&diagnostics, &sources),
                    })),
                }
            }
            Err(message) => {
                output::complain(message);
                worst = status::USAGE;
            }
        }
    }
    match check.format {
        Format::Json => output::print_json(&serde_json::json!(all)),
        Format::Human if read == 0 => {}
        Format::Human => summarise(read, counts),
    }
    worst
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

/// Everything said about one file: about its names for each system, about its meaning for this one.
fn file(check: &Check, path: &Path) -> Result<(Vec<Diagnostic>, Sources), String> {
    let here = load::this_system();
    for system in System::ALL.iter().filter(|system| **system != here) {
        let loaded = resolved(check, path, *system)?;
        // Said once: what is wrong everywhere comes with the same words for each system.
        if any_error(&loaded.diagnostics) {
            return Ok((loaded.diagnostics, loaded.sources));
        }
    }
    let loaded = resolved(check, path, here)?;
    let bound = if check.host {
        let directory = std::env::current_dir().map_err(|error| format!("cannot tell where this is: {error}"))?;
        load::bind_to(loaded, &load::machine(check.workspace.as_deref(), &check.defines, &directory)?)
    } else {
        match loaded.policy.as_ref().map(Nominal::of) {
            Some(machine) => load::bind_to(loaded, &machine),
            None => return Ok((loaded.diagnostics, loaded.sources)),
        }
    };
    let mut said = bound.diagnostics;
    if let Some(policy) = bound.policy.filter(|_| !any_error(&said)) {
        let compiled = compile(&policy, &Needs::default());
        said.extend(compiled.diagnostics);
        if !check.host {
            said.extend(compiled.unused);
            // What is there and what is not is known on a machine alone.
            said.retain(|said| said.code != &NOT_GRANTED);
        }
    }
    Ok((said, bound.sources))
}

fn resolved(check: &Check, path: &Path, system: System) -> Result<load::Loaded<Policy>, String> {
    let mut sources = Sources::default();
    let given = load::add(path, &mut sources)?;
    Ok(load::resolved(&[given], sources, &check.defines, system))
}
