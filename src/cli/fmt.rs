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
    match files::replace(path, formatted.as_bytes()) {
        Ok(()) => 0,
        Err(error) => {
            output::complain(format_args!("cannot write `{}`: {error}", path.display()));
            status::USAGE
        }
    }
}

fn print(bytes: &[u8]) {
    // A closed pipe is how readers say that they have enough.
    let _ = std::io::stdout().write_all(bytes);
}
