//! `srt import`: another tool's file as a policy to start from.

use super::arguments::{Import, Kind};
use super::{check, files, output, settings, status};
use sandbox_runtime::check::Given;
use sandbox_runtime::compat::{Places, Translation, claude, codex, settings as theirs};
use sandbox_runtime::diagnostic::{Diagnostic, Level};
use sandbox_runtime::lint::UNUSED_SUPPRESSION;
use sandbox_runtime::source::Sources;
use sandbox_runtime::syntax;
use std::path::Path;

pub fn import(import: &Import) -> u8 {
    let shown = import.file.display().to_string();
    let text = match files::read(&import.file) {
        Ok(text) => text.text,
        Err(error) => {
            output::complain(format_args!("cannot read `{shown}`: {error}"));
            return status::USAGE;
        }
    };
    let translation = translate(import.from.unwrap_or_else(|| kind(&import.file, &text)), &text);
    for said in translation.wrong() {
        output::complain(settings::sentence(&shown, said));
    }
    let name = import.file.file_name().map_or(shown, |name| name.display().to_string());
    match laid_out(&translation.policy(&name)) {
        Ok(text) => output::print(&text),
        Err(status) => return status,
    }
    if translation.wrong().next().is_none() { 0 } else { status::FINDINGS }
}

/// Which tool's file it is, by its name and what it holds.
fn kind(path: &Path, text: &str) -> Kind {
    if path.extension().is_some_and(|ending| ending == "toml") {
        Kind::Codex
    } else if claude::is_one(text) {
        Kind::ClaudeCode
    } else {
        Kind::SrtSettings
    }
}

fn translate(kind: Kind, text: &str) -> Translation {
    match kind {
        Kind::SrtSettings => theirs::translate(text, Places::default(), None),
        Kind::ClaudeCode => claude::translate(text),
        Kind::Codex => codex::translate(text),
    }
}

/// The text in the one layout, without the comments that would accept nothing.
fn laid_out(text: &str) -> Result<String, u8> {
    let text = formatted(text)?;
    let given = Given { name: NAME.to_owned(), text: text.clone() };
    let said = check::said(&check::Looked::default(), vec![given]);
    let Ok((said, sources)) = said else { return Ok(text) };
    let unused = said.iter().filter(|said| said.code == &UNUSED_SUPPRESSION).filter_map(Diagnostic::span);
    let unused: Vec<_> = unused.map(|span| sources.location(span)).filter(|at| at.name == NAME).collect();
    let kept = text.lines().zip(1..).filter(|(_, number)| !unused.iter().any(|at| at.line == *number));
    formatted(&kept.flat_map(|(line, _)| [line, "\n"]).collect::<String>())
}

const NAME: &str = "the policy";

fn formatted(text: &str) -> Result<String, u8> {
    let mut sources = Sources::default();
    let source = sources.add(NAME, text);
    syntax::format(&sources, source).map_err(|diagnostics| {
        output::print_diagnostics(&diagnostics, &sources, Level::Note);
        status::FINDINGS
    })
}
