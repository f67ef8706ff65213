//! Checking beside the conversation: threads that look at the newest text of whatever changed, and say what they found. One
//! looks at everything; the other at names and syntax alone, which is quick, of what the first has no time for yet. Where it has,
//! it says as soon what is wrong with them, and is not held up.
//!
//! What changes while it is looked at is looked at again, and of all the texts in between none: edits never pile up.

use super::diagnostics;
use super::document::{Document, Found, OpenFirst};
use super::{Outgoing, Surroundings};
use crate::check::{Checked, Given, check};
use crate::diagnostic::any_error;
use crate::resolve::{Options, resolve};
use crate::source::Sources;
use lsp_types::{Diagnostic, DiagnosticSeverity, PublishDiagnosticsParams, notification};
use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};

/// How much is looked at.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Depth {
    /// Syntax and names, for one system.
    Names,
    /// Everything that `srt check` says.
    Whole,
}

/// The open texts, and which of them wait to be looked at.
#[derive(Default)]
pub(super) struct Open {
    /// By address.
    pub documents: BTreeMap<String, Document>,
    /// Of each depth.
    waiting: [BTreeSet<String>; 2],
    /// Whether everything is being looked at of one.
    busy: bool,
    ended: bool,
}

impl Open {
    /// The next text to be looked at, if it is time for one.
    fn next(&mut self, depth: Depth) -> Option<String> {
        match depth {
            Depth::Names => self.busy.then(|| self.waiting[Depth::Names as usize].pop_first()).flatten(),
            Depth::Whole => {
                let next = self.waiting[Depth::Whole as usize].pop_first();
                self.busy = next.is_some();
                if let Some(uri) = &next {
                    self.waiting[Depth::Names as usize].remove(uri);
                }
                next
            }
        }
    }

    /// A text, opened, changed or closed, is to be looked at, and so is what uses it.
    fn changed(&mut self, uri: &str, name: &str) {
        let uses = |document: &Document| document.found.as_ref().is_some_and(|found| found.read.contains(name));
        let users = self.documents.iter().filter(|(other, document)| *other == uri || uses(document));
        let users: Vec<String> = users.map(|(uri, _)| uri.clone()).collect();
        for waiting in &mut self.waiting {
            waiting.extend(users.iter().cloned());
        }
    }
}

/// What the conversation and the checking share.
#[derive(Default)]
pub(super) struct Shared {
    open: Mutex<Open>,
    wake: Condvar,
}

impl Shared {
    pub fn open(&self) -> MutexGuard<'_, Open> {
        // A thread that panicked left texts that are whole: each change is one assignment.
        self.open.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Changes what is open, and has it looked at.
    pub fn change(&self, uri: &str, name: &str, change: impl FnOnce(&mut BTreeMap<String, Document>)) {
        let mut open = self.open();
        change(&mut open.documents);
        open.changed(uri, name);
        self.wake.notify_all();
    }

    /// Looks at everything again: a file may have changed that no editor has open.
    pub fn again(&self) {
        let mut open = self.open();
        open.waiting[Depth::Whole as usize] = open.documents.keys().cloned().collect();
        self.wake.notify_all();
    }

    /// Nothing more is wanted.
    pub fn end(&self) {
        self.open().ended = true;
        self.wake.notify_all();
    }

    /// Looks at whatever waits, until the end.
    pub fn work(&self, depth: Depth, around: &dyn Surroundings, options: &Options, output: &Outgoing) {
        loop {
            let mut open = self.open();
            let uri = loop {
                if open.ended {
                    return;
                }
                match open.next(depth) {
                    Some(uri) => break uri,
                    None => open = self.wake.wait(open).unwrap_or_else(PoisonError::into_inner),
                }
            };
            if depth == Depth::Whole && !open.waiting[Depth::Names as usize].is_empty() {
                self.wake.notify_all();
            }
            let Some(document) = open.documents.get(&uri).cloned() else { continue };
            let texts = open.documents.values().map(|other| (other.name.clone(), other.text.clone()));
            let files = OpenFirst { open: texts.collect(), around, read: RefCell::default() };
            drop(open);
            let given = Given { name: document.name.clone(), text: document.text.to_string() };
            let checked = match depth {
                Depth::Names => names(given, &files, options),
                Depth::Whole => check(&[given], &files, options, None),
            };
            let found = Found { text: document.text.clone(), checked, read: files.read.into_inner() };
            self.say(depth, &uri, &document, found, output);
        }
    }

    /// Keeps what was found and says it, where it is still so.
    fn say(&self, depth: Depth, uri: &str, document: &Document, found: Found, output: &Outgoing) {
        let mut open = self.open();
        let used = open.documents.values().any(|other| {
            other.name != document.name && other.found.as_ref().is_some_and(|found| found.read.contains(&document.name))
        });
        let Some(now) = open.documents.get_mut(uri) else { return };
        if now.version != document.version || now.text != document.text {
            // It waits already.
            return;
        }
        let diagnostics = diagnostics::shown(&found, document, used);
        match depth {
            Depth::Names => {
                // What only the whole check says stays until it is done, as long as there was no error, nor is one.
                let was_wrong = now.said.as_ref().is_some_and(|(_, said)| said.iter().any(is_error));
                if now.current().is_none() && (was_wrong || any_error(&found.checked.diagnostics)) {
                    publish(now, diagnostics, output);
                    now.early = Some(Arc::new(found));
                }
            }
            Depth::Whole => {
                publish(now, diagnostics, output);
                now.early = None;
                let before = now.found.take();
                let is_new = |name: &&String| before.as_ref().is_none_or(|found| !found.read.contains(*name));
                let newly: BTreeSet<String> = found.read.iter().filter(is_new).cloned().collect();
                now.found = Some(Arc::new(found));
                // What it uses need not say by itself what only a whole policy says.
                let used = open.documents.iter().filter(|(other, one)| *other != uri && newly.contains(&one.name));
                let used: Vec<String> = used.map(|(uri, _)| uri.clone()).collect();
                open.waiting[Depth::Whole as usize].extend(used);
            }
        }
    }
}

/// Said while nothing can be closed: what is said last is what holds.
fn publish(document: &mut Document, diagnostics: Vec<Diagnostic>, output: &Outgoing) {
    let said = Some((document.version, diagnostics));
    if document.said == said {
        return;
    }
    document.said.clone_from(&said);
    output.notify::<notification::PublishDiagnostics>(PublishDiagnosticsParams {
        uri: document.uri.clone(),
        diagnostics: said.map(|(_, diagnostics)| diagnostics).unwrap_or_default(),
        version: Some(document.version),
    });
}

fn is_error(said: &Diagnostic) -> bool {
    said.severity == Some(DiagnosticSeverity::ERROR)
}

/// Syntax and names, for one system.
fn names(given: Given, files: &OpenFirst<'_>, options: &Options) -> Checked {
    let mut sources = Sources::default();
    let source = sources.add(given.name, given.text);
    let (_, diagnostics) = resolve(&[source], &mut sources, files, options);
    Checked { diagnostics, sources, policy: None }
}
