//! `srt check`: everything that can be said about policy files without running anything.

use super::arguments::{Check, CheckFormat};
use super::{files, flags, load, output, status};
use sandbox_runtime::check::Given;
use sandbox_runtime::diagnostic::{Diagnostic, Level, to_json};
use sandbox_runtime::fix::{Edit, Remedies, Remedy};
use sandbox_runtime::host::Host;
use sandbox_runtime::lint::UNDECIDED;
use sandbox_runtime::report::{Checked, github, junit, sarif};
use sandbox_runtime::resolve::Options;
use sandbox_runtime::source::Sources;
use serde_json::{Value, json};
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
        let said = load::text(path).and_then(|given| said(&looked, vec![given])).map(|(diagnostics, sources)| {
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
                match check.format {
                    CheckFormat::Human => output::print_diagnostics(diagnostics, sources, Level::Note),
                    CheckFormat::Plain => output::print_plain(diagnostics, sources, &path.display().to_string()),
                    _ => {}
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
        CheckFormat::Human | CheckFormat::Plain if read == 0 => {}
        CheckFormat::Human | CheckFormat::Plain => summarise(read, counts),
    }
    outcome.status()
}

fn json(all: &[Checked]) -> Value {
    let read = all.iter().filter_map(|file| Some((&file.file, file.said.as_ref().ok()?)));
    let finding = |said: &Diagnostic, sources: &Sources, remedies: &mut Remedies<'_>| {
        let mut finding = to_json(said, sources);
        finding["fix"] = remedies.of(said).map_or(Value::Null, |remedy| fix(&remedy, sources));
        finding
    };
    read.map(|(file, (said, sources))| {
        let mut remedies = Remedies::new(sources);
        let said: Vec<_> = said.iter().map(|said| finding(said, sources, &mut remedies)).collect();
        json!({ "file": file, "diagnostics": said })
    })
    .collect()
}

fn fix(remedy: &Remedy, sources: &Sources) -> Value {
    let edit = |edit: &Edit| {
        let file = sources.get(edit.span.source).name();
        json!({ "file": file, "start": edit.span.start, "end": edit.span.end, "text": edit.text })
    };
    json!({ "title": remedy.title, "edits": remedy.edits.iter().map(edit).collect::<Vec<_>>() })
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
        output::tell(&format!("{files} checked: nothing to say\n"));
    } else {
        let found = found.join(", ");
        output::tell(&format!("{files} checked: {found}; `srt explain CODE` says more about a finding\n"));
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

/// Everything said about the texts, and about those that the command line wants them to be within.
///
/// # Errors
/// A sentence for the command line.
pub fn said(looked: &Looked<'_>, mut given: Vec<Given>) -> Result<(Vec<Diagnostic>, Sources), String> {
    let ceilings = flags::ceilings(looked.within, looked.host)?;
    given.extend(ceilings.into_iter().map(|ceiling| Given { name: ceiling.name, text: ceiling.text }));
    let machine = if looked.host {
        let directory = std::env::current_dir().map_err(|error| format!("cannot tell where this is: {error}"))?;
        Some(load::machine(looked.workspace, looked.defines, &directory)?)
    } else {
        None
    };
    let options = Options { system: load::this_system(), defines: looked.defines.iter().cloned().collect() };
    let machine = machine.as_ref().map(|machine| machine as &dyn Host);
    let checked = sandbox_runtime::check::check(&given, &files::Disk, &options, machine);
    Ok((checked.diagnostics, checked.sources))
}
