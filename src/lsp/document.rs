//! The texts that an editor has open and what was found of them, the names they have as files, and those files before the ones on disk.

use super::Surroundings;
use super::position::Lines;
use crate::check::Checked;
use crate::resolve::{Files, Text};
use lsp_types::{Diagnostic, TextDocumentContentChangeEvent, Uri};
use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;
use std::io;
use std::sync::Arc;

/// What was found of one text.
pub(super) struct Found {
    pub text: Arc<str>,
    pub checked: Checked,
    /// The files it asked for, whether there were any or not.
    pub read: BTreeSet<String>,
}

/// One open text as it is now.
#[derive(Clone)]
pub(super) struct Document {
    pub uri: Uri,
    /// The path, for a file; else the address itself.
    pub name: String,
    pub version: i32,
    pub text: Arc<str>,
    /// What was last found, of this text or of an older one.
    pub found: Option<Arc<Found>>,
    /// What was found of syntax and names alone, and said before the whole was looked at.
    pub early: Option<Arc<Found>>,
    /// What was last said, and of which version.
    pub said: Option<(i32, Vec<Diagnostic>)>,
}

impl Document {
    pub fn new(uri: Uri, version: i32, text: &str) -> Self {
        let name = path_of(uri.as_str());
        Self { uri, name, version, text: text.into(), found: None, early: None, said: None }
    }

    /// Makes the changes, each on what the one before left.
    pub fn change(&mut self, version: i32, changes: Vec<TextDocumentContentChangeEvent>) {
        self.version = version;
        for change in changes {
            self.text = match change.range {
                None => change.text.into(),
                Some(range) => {
                    let bytes = Lines::of(&self.text).bytes(range);
                    let (before, after) = (&self.text[..bytes.start], &self.text[bytes.end..]);
                    [before, &change.text, after].concat().into()
                }
            };
        }
    }

    /// What was found, where it was found of this very text.
    pub fn current(&self) -> Option<&Found> {
        self.found.as_deref().filter(|found| found.text == self.text)
    }

    /// What the editor shows of this very text.
    pub fn shown(&self) -> Option<&Found> {
        self.current().or_else(|| self.early.as_deref().filter(|found| found.text == self.text))
    }
}

/// The path of a `file:` address, percent signs decoded, a drive without the slash before it; any other address as it is.
pub(super) fn path_of(uri: &str) -> String {
    let Some(rest) = uri.strip_prefix("file://") else { return uri.to_owned() };
    // A host before the path: `localhost`, or nothing.
    let path = rest.find('/').map_or(rest, |at| &rest[at..]);
    let mut bytes = Vec::with_capacity(path.len());
    let mut left = path.as_bytes();
    while let [first, rest @ ..] = left {
        let digit = |byte: &u8| char::from(*byte).to_digit(16).and_then(|digit| u8::try_from(digit).ok());
        match (first, rest) {
            (b'%', [high, low, rest @ ..]) if digit(high).is_some() && digit(low).is_some() => {
                bytes.extend(digit(high).zip(digit(low)).map(|(high, low)| high * 16 + low));
                left = rest;
            }
            _ => {
                bytes.push(*first);
                left = rest;
            }
        }
    }
    if has_drive(bytes.get(1..).unwrap_or_default()) {
        bytes.remove(0);
    }
    String::from_utf8(bytes).unwrap_or_else(|_| uri.to_owned())
}

/// Whether a path starts at a drive: in an address a slash stands before it (RFC 8089, appendix E.2).
fn has_drive(path: &[u8]) -> bool {
    matches!(path, [letter, b':', b'/', ..] if letter.is_ascii_alphabetic())
}

/// The `file:` address of an absolute path.
pub(super) fn uri_of(path: &str) -> Option<Uri> {
    let (mut uri, rest) = match path.get(..2).filter(|_| has_drive(path.as_bytes())) {
        Some(drive) => (format!("file:///{drive}"), &path[2..]),
        None if path.starts_with('/') => ("file://".to_owned(), path),
        None => return None,
    };
    for byte in rest.bytes() {
        // RFC 3986 §2.3 and the slash between segments: all else is encoded.
        if byte.is_ascii_alphanumeric() || matches!(byte, b'/' | b'-' | b'.' | b'_' | b'~') {
            uri.push(char::from(byte));
        } else {
            // Writing into a string does not fail.
            let _ = write!(uri, "%{byte:02X}");
        }
    }
    uri.parse().ok()
}

/// The open texts, then the surroundings' files; remembers what was asked for.
pub(super) struct OpenFirst<'a> {
    pub open: BTreeMap<String, Arc<str>>,
    pub around: &'a dyn Surroundings,
    pub read: RefCell<BTreeSet<String>>,
}

impl Files for OpenFirst<'_> {
    fn read(&self, path: &str) -> io::Result<Text> {
        self.read.borrow_mut().insert(path.to_owned());
        match self.open.get(path) {
            Some(text) => Ok(Text { text: text.to_string(), writable_by_others: false }),
            None => self.around.read(path),
        }
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn addresses_are_paths_and_back() {
        assert_eq!(path_of("file:///a%20b/%C3%A9.policy"), "/a b/\u{e9}.policy");
        assert_eq!(path_of("file://localhost/a%2"), "/a%2");
        assert_eq!(path_of("untitled:Untitled-1"), "untitled:Untitled-1");
        // Not UTF-8: no path of ours.
        assert_eq!(path_of("file:///%FF"), "file:///%FF");
        let uri = uri_of("/a b/\u{e9}#?.policy").unwrap();
        assert_eq!(uri.as_str(), "file:///a%20b/%C3%A9%23%3F.policy");
        assert_eq!(path_of(uri.as_str()), "/a b/\u{e9}#?.policy");
        assert!(uri_of("a.policy").is_none());
        for uri in ["file:///c:/a%20b.policy", "file:///c%3A/a%20b.policy", "file://localhost/c:/a%20b.policy"] {
            assert_eq!(path_of(uri), "c:/a b.policy");
        }
        assert_eq!(uri_of("c:/a b.policy").unwrap().as_str(), "file:///c:/a%20b.policy");
    }
}
