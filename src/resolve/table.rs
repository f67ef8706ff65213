//! `lines("FILE")`: a table beside the policy, one plain entry a line, one kind a file. However long, it is one set.

use super::codes::{DUPLICATE_ENTRY, LIST_FILE};
use super::item::Item;
use super::literal;
use super::load::Loader;
use crate::diagnostic::{Diagnostic, Label};
use crate::ir::List;
use crate::sets::host::Repeated;
use crate::sets::{host, path};
use crate::source::{SourceId, Span};
use crate::syntax::ast;
use std::collections::HashMap;
use std::collections::hash_map::{Entry, RandomState};
use std::hash::BuildHasher;
use std::net::IpAddr;
use std::sync::{Arc, LazyLock, Mutex, PoisonError, Weak};

/// After so many lines that are wrong the rest is not looked at.
const FAULTS: usize = 20;

/// Reads the tables of one compilation.
pub(super) struct Tables<'l, 'w> {
    pub loader: &'l mut Loader<'w>,
}

#[derive(Default)]
struct Entries {
    paths: Vec<path::Pattern>,
    /// The line of each of them.
    lines: Vec<u32>,
    hosts: host::Builder,
    addresses: Vec<(IpAddr, u8)>,
    /// The line of each path and address.
    seen: HashMap<Plain, u32>,
    repeated: Option<Repeated>,
}

#[derive(PartialEq, Eq, Hash)]
enum Plain {
    Path(path::Pattern),
    Address(IpAddr, u8),
}

impl Tables<'_, '_> {
    /// The table a `let` names; what is wrong with the file or a line of it is said.
    pub fn read(&mut self, file: &ast::Spanned<String>, diagnostics: &mut Vec<Diagnostic>) -> Option<Item> {
        let found = self.loader.table(file, file.span.source);
        diagnostics.append(&mut self.loader.diagnostics);
        let (name, text) = found?;
        if let Some(known) = Known::of(&name, &text) {
            self.say_repeated(file, (&name, &text), known.repeated(), diagnostics);
            return Some(Item::Hosts(known));
        }
        let mut source = None;
        let mut entries = Entries::default();
        let mut faults = 0;
        let mut start = 0;
        for (line, number) in text.split('\n').zip(1..) {
            let at = start;
            start += line.len() + 1;
            let entry = line.trim();
            if entry.is_empty() || entry.starts_with('#') {
                continue;
            }
            if let Err(why) = entries.add(entry, number) {
                faults += 1;
                if faults > FAULTS {
                    break;
                }
                // A list in which nothing is wrong is never shown, and may be long.
                let source = *source.get_or_insert_with(|| self.loader.sources.add(name.clone(), text.as_str()));
                let at = at + (line.len() - line.trim_start().len());
                let span = Span::new(source, at..at + entry.len());
                let diagnostic = Diagnostic::new(&LIST_FILE, format!("`{entry}` {why}"));
                let diagnostic = diagnostic.label(span, "this line").label(file.span, "the table is named here");
                diagnostics.push(diagnostic.help("write one literal path, host, `*.` host or address a line"));
            }
        }
        if faults > 0 {
            return None;
        }
        self.say_repeated(file, (&name, &text), entries.repeated, diagnostics);
        match entries {
            Entries { paths, lines, .. } if !paths.is_empty() => {
                Some(Item::Paths(paths, Arc::new(List { file: name.into(), lines })))
            }
            Entries { hosts, .. } if !hosts.is_empty() => {
                let known = Known::key(&name, &text);
                drop(text);
                let table = Arc::new(hosts.finish(name.into()));
                // Lists may be long: the text is not kept for what is seldom said.
                if let Some(repeated) = table.repeated()
                    && let Some((name, text)) = self.loader.table(file, file.span.source)
                {
                    self.say_repeated(file, (&name, &text), Some(repeated), diagnostics);
                }
                Known::keep(known, &table);
                Some(Item::Hosts(table))
            }
            Entries { addresses, .. } if !addresses.is_empty() => Some(Item::Addresses(addresses)),
            Entries { .. } => {
                let diagnostic = Diagnostic::new(&LIST_FILE, format!("`{name}` holds no entry"));
                let diagnostic = diagnostic.label(file.span, "named here");
                diagnostics.push(diagnostic.help("write one literal path, host, `*.` host or address a line"));
                None
            }
        }
    }
}

impl Tables<'_, '_> {
    /// Says that lines of a list say the same.
    fn say_repeated(
        &mut self,
        file: &ast::Spanned<String>,
        (name, text): (&str, &str),
        repeated: Option<Repeated>,
        diagnostics: &mut Vec<Diagnostic>,
    ) {
        let Some(Repeated { line, earlier, more }) = repeated else { return };
        let source = self.loader.sources.add(name, text);
        let more = match more {
            0 => String::new(),
            1 => ", and so for 1 more line".to_owned(),
            more => format!(", and so for {more} more lines"),
        };
        let message = format!("line {line} of `{name}` says what line {earlier} does{more}");
        let mut diagnostic = Diagnostic::new(&DUPLICATE_ENTRY, message);
        for (number, words) in [(line, "adds nothing"), (earlier, "said here already")] {
            diagnostic.labels.extend(span_of(source, text, number).map(|span| Label { span, text: words.to_owned() }));
        }
        diagnostics.push(diagnostic.label(file.span, "the table is named here").help("take one of the two out"));
    }
}

/// A line of a text, counted from one, without the blanks around it.
fn span_of(source: SourceId, text: &str, number: u32) -> Option<Span> {
    let line = text.split('\n').nth(number as usize - 1)?;
    let start = line.as_ptr() as usize - text.as_ptr() as usize + (line.len() - line.trim_start().len());
    Some(Span::new(source, start..start + line.trim().len()))
}

impl Entries {
    fn add(&mut self, entry: &str, line: u32) -> Result<(), String> {
        if entry.starts_with(['/', '~', '$']) {
            self.only(self.hosts.is_empty() && self.addresses.is_empty(), "a path")?;
            let path = if let Some(below) = entry.strip_prefix("$WORKSPACE/") {
                let mut pattern = literal::path(&format!("/{below}"))?;
                pattern.start = path::Start::Variable("WORKSPACE".into());
                pattern
            } else {
                literal::path(entry)?
            };
            self.note(Plain::Path(path.clone()), line);
            self.paths.push(path);
            self.lines.push(line);
        } else if let Some((address, prefix)) = address(entry)? {
            self.only(self.hosts.is_empty() && self.paths.is_empty(), "an address")?;
            self.note(Plain::Address(address, prefix), line);
            self.addresses.push((address, prefix));
        } else {
            self.only(self.paths.is_empty() && self.addresses.is_empty(), "a host name")?;
            let (below, name) = host(entry)?;
            self.hosts.push(below, &name, line)?;
        }
        Ok(())
    }

    fn note(&mut self, entry: Plain, line: u32) {
        match self.seen.entry(entry) {
            Entry::Occupied(earlier) => Repeated::add(&mut self.repeated, line, *earlier.get()),
            Entry::Vacant(fresh) => {
                fresh.insert(line);
            }
        }
    }

    fn only(&self, fits: bool, noun: &str) -> Result<(), String> {
        let before = match self {
            Entries { paths, .. } if !paths.is_empty() => "a path",
            Entries { hosts, .. } if !hosts.is_empty() => "a host name",
            Entries { .. } => "an address",
        };
        if fits { Ok(()) } else { Err(format!("is {noun}, and the line before it is {before}")) }
    }
}

/// An address or a CIDR without host bits.
fn address(entry: &str) -> Result<Option<(IpAddr, u8)>, String> {
    let (text, prefix) = match entry.split_once('/') {
        Some((text, prefix)) => (text, Some(prefix)),
        None => (entry, None),
    };
    let text = text.strip_prefix('[').and_then(|text| text.strip_suffix(']')).unwrap_or(text);
    let Ok(address) = text.parse::<IpAddr>() else { return Ok(None) };
    let width = literal::width(address);
    let Some(prefix) = prefix else { return Ok(Some((address, width))) };
    let prefix = prefix.parse::<u8>().ok().filter(|prefix| *prefix <= width);
    let prefix = prefix.ok_or_else(|| format!("has a length that is not 0 to {width}"))?;
    let host_bits = match address {
        IpAddr::V4(v4) => u64::from(v4.to_bits().checked_shl(u32::from(prefix)).unwrap_or(0)) != 0,
        IpAddr::V6(v6) => v6.to_bits().checked_shl(u32::from(prefix)).unwrap_or(0) != 0,
    };
    if host_bits { Err("has bits set after its length".to_owned()) } else { Ok(Some((address, prefix))) }
}

fn host(entry: &str) -> Result<(bool, host::Name), String> {
    let (below, rest) = entry.strip_prefix("*.").map_or((false, entry), |rest| (true, rest));
    let name = host::Name::parse(rest).map_err(|why| format!("is not a host name: {why}"))?;
    if name.is_localhost() {
        return Err("is this machine itself: name it in the policy".to_owned());
    }
    Ok((below, name))
}

/// The long lists that are in use: a policy is resolved for each system, and each would read and sort them anew.
struct Known;

/// A list by a keyed hash of its name and text.
type Kept = (u64, Weak<host::Table>);

static KNOWN: LazyLock<Mutex<Vec<Kept>>> = LazyLock::new(Mutex::default);
static KEYS: LazyLock<RandomState> = LazyLock::new(RandomState::new);

impl Known {
    fn key(name: &str, text: &str) -> u64 {
        KEYS.hash_one((name, text))
    }

    fn of(name: &str, text: &str) -> Option<Arc<host::Table>> {
        let key = Self::key(name, text);
        let known = KNOWN.lock().unwrap_or_else(PoisonError::into_inner);
        known.iter().find(|(own, _)| *own == key)?.1.upgrade()
    }

    fn keep(key: u64, table: &Arc<host::Table>) {
        let mut known = KNOWN.lock().unwrap_or_else(PoisonError::into_inner);
        known.retain(|(_, table)| table.strong_count() > 0);
        known.push((key, Arc::downgrade(table)));
    }
}
