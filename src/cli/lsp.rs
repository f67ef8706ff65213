//! `srt lsp`: the language server, on standard input and output.

use super::arguments::Lsp;
use super::{files, load};
use sandbox_runtime::host::real::Machine;
use sandbox_runtime::host::{Host, near};
use sandbox_runtime::ir::NodeKind;
use sandbox_runtime::lsp::{Entry, Patient, Surroundings, serve};
use sandbox_runtime::resolve::{Files, Options, Text};
use sandbox_runtime::sets::path::AbsPath;
use std::collections::BTreeMap;
use std::io;

pub fn lsp(lsp: &Lsp) -> u8 {
    let options = Options { system: load::this_system(), defines: lsp.defines.iter().cloned().collect() };
    let here = Here { machine: Machine::look(None, BTreeMap::new()).ok() };
    sandbox_runtime::exec::keep_memory();
    let orderly = serve(&mut io::stdin().lock(), Box::new(io::stdout()), &Patient::new(here), &options);
    u8::from(!orderly)
}

/// This machine, as an editor's user sees it.
struct Here {
    /// As it was when the server was started; nothing is listed where it could not be looked at.
    machine: Option<Machine>,
}

impl Files for Here {
    fn read(&self, path: &str) -> io::Result<Text> {
        files::Disk.read(path)
    }
}

impl Surroundings for Here {
    fn entries(&self, directory: &str) -> Option<Vec<Entry>> {
        let found = self.machine.as_ref().and_then(|machine| listed(machine, directory));
        Some(found.unwrap_or_default())
    }

    fn home(&self) -> Option<String> {
        self.machine.as_ref().and_then(|machine| machine.variable("HOME")).filter(|home| AbsPath::parse(home).is_ok())
    }
}

/// What lies in a directory of this machine; of others nothing is asked.
fn listed(machine: &Machine, directory: &str) -> Option<Vec<Entry>> {
    let directory = near(machine, &AbsPath::parse(directory).ok()?)?;
    let entry = |(name, is_directory): (Vec<u8>, bool)| {
        // Links are followed: what one leads to is what it is completed as.
        let leads = || near(machine, &directory.join(&name)).and_then(|place| machine.node(&place).ok()?);
        let is_directory = is_directory || leads().is_some_and(|node| node.kind == NodeKind::Directory);
        Some(Entry { name: String::from_utf8(name).ok()?, is_directory })
    };
    Some(machine.list(&directory).ok()?.into_iter().filter_map(entry).collect())
}
