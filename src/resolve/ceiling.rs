//! The files that `within` names: policies of their own, which permit whatever the one that names them may.
//!
//! Of what is said about them only errors are passed on: their notes are for whoever checks them. Their own `within` and
//! `expect` statements are not this policy's obligations.

use super::load::{Loader, Modules, Trees};
use super::{Files, Options, resolve_one};
use crate::diagnostic::{Diagnostic, Level};
use crate::ir::Policy;
use crate::source::Sources;

/// The text of a ceiling, and the path it was named by.
pub(super) struct Ceiling {
    path: String,
    text: Option<String>,
}

/// Reads them all. What keeps one from being read is said.
pub(super) fn read(policy: &Policy, loader: &mut Loader<'_>) -> Vec<Ceiling> {
    let one = |within: &crate::ir::Within| Ceiling {
        path: within.path.clone(),
        text: loader.read(&within.path, within.span),
    };
    policy.withins.iter().map(one).collect()
}

/// Resolves them for the same system and the same definitions.
pub(super) fn resolve(
    policy: &mut Policy,
    ceilings: Vec<Ceiling>,
    sources: &mut Sources,
    files: &dyn Files,
    options: &Options,
    modules: Modules,
    trees: &Trees,
) -> Vec<Diagnostic> {
    let mut diagnostics = Vec::new();
    for (within, Ceiling { path, text }) in policy.withins.iter_mut().zip(ceilings) {
        let Some(text) = text else { continue };
        let source = sources.add(path, text);
        let (ceiling, _, said) = resolve_one(&[source], sources, files, options, modules, trees, false);
        let errors: Vec<_> = said.into_iter().filter(|said| said.level == Level::Error).collect();
        within.ceiling = ceiling.filter(|_| errors.is_empty()).map(|mut ceiling| {
            ceiling.withins.clear();
            ceiling.expects.clear();
            ceiling.ignores.clear();
            ceiling.suppressions.clear();
            Box::new(ceiling)
        });
        diagnostics.extend(errors);
    }
    diagnostics
}
