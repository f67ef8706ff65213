//! `srt lsp`: the language server, on standard input and output.

use super::arguments::Lsp;
use super::{files, load};
use sandbox_runtime::lsp::{Entry, Surroundings, serve};
use sandbox_runtime::resolve::{Files, Options, Text};
use std::io;

pub fn lsp(lsp: &Lsp) -> u8 {
    let options = Options { system: load::this_system(), defines: lsp.defines.iter().cloned().collect() };
    let orderly = serve(&mut io::stdin().lock(), Box::new(io::stdout()), &Here, &options);
    u8::from(!orderly)
}

/// This machine, as an editor's user sees it.
struct Here;

impl Files for Here {
    fn read(&self, path: &str) -> io::Result<Text> {
        files::Disk.read(path)
    }
}

impl Surroundings for Here {
    fn entries(&self, directory: &str) -> Vec<Entry> {
        let Ok(found) = std::fs::read_dir(directory) else { return Vec::new() };
        let entry = |found: std::fs::DirEntry| {
            // Links are followed: what one leads to is what it is completed as.
            let is_directory = std::fs::metadata(found.path()).is_ok_and(|found| found.is_dir());
            Some(Entry { name: found.file_name().into_string().ok()?, is_directory })
        };
        found.flatten().filter_map(entry).collect()
    }

    fn home(&self) -> Option<String> {
        std::env::var("HOME").ok().filter(|home| home.starts_with('/'))
    }
}
