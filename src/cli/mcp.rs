//! `srt mcp`: an MCP client's servers start under `srt`, or no longer.

use super::arguments::{Mcp, McpVerb};
use super::{files, output, settings, status};
use sandbox_runtime::compat::Said;
use sandbox_runtime::compat::mcp::{Edited, unwrap, wrap};
use similar::TextDiff;
use std::path::Path;

pub fn mcp(mcp: &Mcp) -> u8 {
    match &mcp.verb {
        McpVerb::Wrap { edit: choice, policy, settings } => {
            let mut before = vec!["run".to_owned()];
            for (flag, file) in [("--policy", policy), ("--settings", settings)] {
                let Some(file) = file else { continue };
                // A client starts its servers where it likes, so that a relative path would mean nothing.
                let real = std::fs::canonicalize(file);
                match real.map(|path| path.to_str().map(str::to_owned)) {
                    Ok(Some(path)) => before.extend([flag.to_owned(), path]),
                    Ok(None) => {
                        output::complain(format_args!("`{}` is not UTF-8", file.display()));
                        return status::USAGE;
                    }
                    Err(error) => {
                        output::complain(format_args!("cannot find `{}`: {error}", file.display()));
                        return status::USAGE;
                    }
                }
            }
            before.push("--".to_owned());
            edit(&choice.file, choice.dry_run, |text| wrap(text, choice.server.as_deref(), "srt", &before))
        }
        McpVerb::Unwrap { edit: choice } => {
            edit(&choice.file, choice.dry_run, |text| unwrap(text, choice.server.as_deref()))
        }
    }
}

/// Changes a file, and shows how.
fn edit(path: &Path, dry_run: bool, change: impl Fn(&str) -> Result<Edited, Said>) -> u8 {
    let shown = path.display().to_string();
    let text = match files::read(path) {
        Ok(text) => text.text,
        Err(error) => {
            output::complain(format_args!("cannot read `{shown}`: {error}"));
            return status::USAGE;
        }
    };
    let edited = match change(&text) {
        Ok(edited) => edited,
        Err(said) => {
            output::complain(settings::sentence(&shown, &said));
            return status::USAGE;
        }
    };
    for passed in &edited.passed {
        output::complain(format_args!("`{}` stays as it is: {}", passed.server, passed.why));
    }
    let done = if edited.passed.iter().any(|passed| passed.failed) { status::FINDINGS } else { 0 };
    if edited.text == text {
        return done;
    }
    let diff = TextDiff::from_lines(&text, &edited.text);
    output::print(&diff.unified_diff().header(&shown, &shown).to_string());
    if dry_run {
        return done;
    }
    match files::replace(path, edited.text.as_bytes()) {
        Ok(()) => done,
        Err(error) => {
            output::complain(format_args!("cannot write `{shown}`: {error}"));
            status::USAGE
        }
    }
}
