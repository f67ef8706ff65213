//! Syntax trees and the files they use → [`Policy`]: names, lists, includes, `on` blocks and `except` are gone; what
//! depends on a machine stays a variable.
//!
//! Reads the used files through [`Files`] and nothing else.

use crate::diagnostic::Diagnostic;
use crate::ir::Policy;
use crate::source::{SourceId, Sources};
use crate::vocabulary::System;
use std::collections::BTreeMap;
use std::io;

/// Where used files come from.
pub trait Files {
    /// The text of the file at `path` and what must be known of it.
    ///
    /// # Errors
    /// Whatever reading it failed with.
    fn read(&self, path: &str) -> io::Result<Text>;
}

/// A file's text.
#[derive(Debug, Clone)]
pub struct Text {
    pub text: String,
    /// Someone other than its owner and root may change it.
    pub writable_by_others: bool,
}

/// What a policy is resolved for.
#[derive(Debug, Clone)]
pub struct Options {
    pub system: System,
    /// `--define NAME=VALUE`
    pub defines: BTreeMap<String, String>,
}

/// Resolves the union of the given files. A policy comes back whenever its meaning is known in spite of the
/// diagnostics; it must not be used if one of them is an error.
pub fn resolve(
    given: &[SourceId],
    sources: &mut Sources,
    files: &dyn Files,
    options: &Options,
) -> (Option<Policy>, Vec<Diagnostic>) {
    let _ = (given, sources, files, options);
    todo!()
}
