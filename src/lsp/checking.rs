//! Checking beside the conversation: one thread that looks at the newest text of whatever changed, and says what it found.
//!
//! What changes while it is looked at is looked at again, and of all the texts in between none: edits never pile up.

use super::diagnostics;
use super::document::{Document, OpenFirst};
use super::{Outgoing, Surroundings};
use crate::check::{Checked, Given, check};
use crate::resolve::Options;
use lsp_types::{PublishDiagnosticsParams, notification};
use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};

/// What was found of one text.
pub(super) struct Found {
    pub text: Arc<str>,
    pub checked: Checked,
    /// The files it asked for, whether there were any or not.
    pub read: BTreeSet<String>,
}

/// The open texts, and which of them wait to be looked at.
#[derive(Default)]
pub(super) struct Open {
    /// By address.
    pub documents: BTreeMap<String, Document>,
    waiting: BTreeSet<String>,
    ended: bool,
}

impl Open {
    /// A text, opened, changed or closed, is to be looked at, and so is what uses it.
    fn changed(&mut self, uri: &str, name: &str) {
        let uses = |document: &Document| document.found.as_ref().is_some_and(|found| found.read.contains(name));
        let users = self.documents.iter().filter(|(_, document)| uses(document)).map(|(uri, _)| uri.clone());
        self.waiting.extend(users);
        if self.documents.contains_key(uri) {
            self.waiting.insert(uri.to_owned());
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
        self.wake.notify_one();
    }

    /// Looks at everything again: a file may have changed that no editor has open.
    pub fn again(&self) {
        let mut open = self.open();
        open.waiting = open.documents.keys().cloned().collect();
        self.wake.notify_one();
    }

    /// Nothing more is wanted.
    pub fn end(&self) {
        self.open().ended = true;
        self.wake.notify_one();
    }

    /// Looks at whatever waits, until the end.
    pub fn work(&self, around: &dyn Surroundings, options: &Options, output: &Outgoing) {
        loop {
            let mut open = self.open();
            let uri = loop {
                if open.ended {
                    return;
                }
                match open.waiting.pop_first() {
                    Some(uri) => break uri,
                    None => open = self.wake.wait(open).unwrap_or_else(PoisonError::into_inner),
                }
            };
            let Some(document) = open.documents.get(&uri).cloned() else { continue };
            let texts = open.documents.values().map(|other| (other.name.clone(), other.text.clone()));
            let files = OpenFirst { open: texts.collect(), around, read: RefCell::default() };
            drop(open);
            let given = Given { name: document.name.clone(), text: document.text.to_string() };
            let checked = check(&[given], &files, options, None);
            let found = Found { text: document.text.clone(), checked, read: files.read.into_inner() };
            let mut open = self.open();
            let name = document.name.clone();
            let used = open.documents.values().any(|other| {
                other.name != name && other.found.as_ref().is_some_and(|found| found.read.contains(&name))
            });
            let Some(now) = open.documents.get_mut(&uri) else { continue };
            if now.version != document.version || now.text != document.text {
                // It waits already.
                continue;
            }
            let diagnostics = diagnostics::shown(&found, &document, used);
            let news: Vec<String> = found.read.iter().cloned().collect();
            let before = now.found.replace(Arc::new(found));
            // What it uses need not say by itself what only a whole policy says.
            let newly = news.into_iter().filter(|name| before.as_ref().is_none_or(|found| !found.read.contains(name)));
            let newly: BTreeSet<String> = newly.collect();
            let used =
                open.documents.iter().filter(|(other, document)| **other != uri && newly.contains(&document.name));
            let used: Vec<String> = used.map(|(uri, _)| uri.clone()).collect();
            open.waiting.extend(used);
            // Said while nothing can be closed: what is said last is what holds.
            output.notify::<notification::PublishDiagnostics>(PublishDiagnosticsParams {
                uri: document.uri,
                diagnostics,
                version: Some(document.version),
            });
        }
    }
}
