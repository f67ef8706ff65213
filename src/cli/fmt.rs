//! `srt fmt`: the one layout of policy files.

use super::arguments::Fmt;
use super::{files, output, status};
use sandbox_runtime::diagnostic::Level;
use sandbox_runtime::source::Sources;
use sandbox_runtime::syntax;
use similar::TextDiff;
use std::io::Write;
use std::path::Path;

pub fn fmt(fmt: &Fmt) -> u8 {
    // The worst of all files: a file that cannot be read outweighs one that would change.
    fmt.files.iter().map(|path| one(path, fmt.check)).max().unwrap_or_default()
}

fn one(path: &Path, check: bool) -> u8 {
    let text = match files::read(path) {
        Ok(text) => text.text,
        Err(error) => {
            output::complain(format_args!("cannot read `{}`: {error}", path.display()));
            return status::USAGE;
        }
    };
    let stdin = path == Path::new("-");
    let name = if stdin { "standard input".to_owned() } else { path.display().to_string() };
    let mut sources = Sources::default();
    let source = sources.add(&name, text);
    let formatted = match syntax::format(&sources, source) {
        Ok(formatted) => formatted,
        Err(diagnostics) => {
            output::print_diagnostics(&diagnostics, &sources, Level::Note);
            return status::FINDINGS;
        }
    };
    let text = sources.get(source).text();
    if check {
        if text == formatted {
            return 0;
        }
        let diff = TextDiff::from_lines(text, &formatted);
        print(diff.unified_diff().header(&name, &format!("{name} (formatted)")).to_string().as_bytes());
        return status::FINDINGS;
    }
    if stdin {
        print(formatted.as_bytes());
        return 0;
    }
    if text == formatted {
        return 0;
    }
    match replace(path, &formatted) {
        Ok(()) => 0,
        Err(error) => {
            output::complain(format_args!("cannot write `{}`: {error}", path.display()));
            status::USAGE
        }
    }
}

/// Writes beside the file and renames, so that a crash leaves the old or the new text and nothing between.
fn replace(path: &Path, text: &str) -> std::io::Result<()> {
    let path = std::fs::canonicalize(path)?;
    let permissions = std::fs::metadata(&path)?.permissions();
    let mut name = path.file_name().unwrap_or_default().to_owned();
    name.push(format!(".{}.tmp", std::process::id()));
    let beside = path.with_file_name(name);
    let written = std::fs::File::create_new(&beside).and_then(|mut file| {
        file.write_all(text.as_bytes())?;
        file.set_permissions(permissions)?;
        file.sync_all()?;
        std::fs::rename(&beside, &path)
    });
    if written.is_err() {
        // Best effort: the error that matters is the first one.
        let _ = std::fs::remove_file(&beside);
    }
    written
}

fn print(bytes: &[u8]) {
    // A closed pipe is how readers say that they have enough.
    let _ = std::io::stdout().write_all(bytes);
}
