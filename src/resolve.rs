//! Syntax trees and the files they use → [`Policy`]: names, lists, includes, `on` blocks and `except` are gone; what
//! depends on a machine stays a variable.
//!
//! Reads the used files through [`Files`] and nothing else.

mod ceiling;
mod codes;
mod item;
mod literal;
mod load;
mod loopback;
mod merge;
mod ready;
mod scope;
mod statement;
mod std;
mod subject;
mod table;
mod target;
#[cfg(test)]
pub(crate) mod tests;

pub use codes::CODES;
pub use load::{beside, is_absolute};

/// The embedded modules, by name: `(NAME, text)` of each `std/NAME`.
pub use std::{MODULES as STD, text as std_text};

use crate::diagnostic::Diagnostic;
use crate::ir::{Origin, Policy, Rule, Setting};
use crate::source::{SourceId, Sources, Span};
use crate::syntax::ast;
use crate::vocabulary::{BUILT_IN, Effect, System};
use ::std::collections::{BTreeMap, BTreeSet};
use ::std::{io, mem};
use load::{Content, Modules, Trees};

/// Where used files come from.
pub trait Files {
    /// The text of the file at `path` and what must be known of it.
    ///
    /// # Errors
    /// Whatever reading it failed with.
    fn read(&self, path: &str) -> io::Result<Text>;
}

/// The rules of `std/NAME` for one system, and of the modules that it uses; none where there is no such module.
pub fn std_rules(name: &str, system: System) -> Vec<Rule> {
    struct NoFiles;
    impl Files for NoFiles {
        fn read(&self, _: &str) -> io::Result<Text> {
            Err(io::ErrorKind::NotFound.into())
        }
    }
    let mut sources = Sources::default();
    let given = sources.add("", format!("srt 1\nuse std/{name}\ndefault read deny\n"));
    let options = Options { system, defines: BTreeMap::new() };
    resolve(&[given], &mut sources, &NoFiles, &options).0.map(|policy| policy.rules).unwrap_or_default()
}

/// A file's text.
#[derive(Debug, Clone)]
pub struct Text {
    pub text: String,
    /// Someone other than its owner and root may change it.
    pub writable_by_others: bool,
}

/// What to do about a text that others may write; what it is to be done to follows.
pub const KEEP_OTHERS_OUT: &str =
    if cfg!(windows) { "take the right to write from everybody else (`icacls`) on" } else { "run `chmod go-w` on" };

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
    resolve_with(given, sources, files, options, Modules::Ready, &Trees::default())
}

/// The same for each of several systems, in the order in which they are named. A text is parsed once for all of them.
pub fn resolve_each(
    given: &[SourceId],
    sources: &mut Sources,
    files: &dyn Files,
    options: &[Options],
) -> Vec<(Option<Policy>, Vec<Diagnostic>)> {
    let trees = Trees::default();
    let each = options.iter();
    each.map(|options| resolve_with(given, sources, files, options, Modules::Ready, &trees)).collect()
}

fn resolve_with(
    given: &[SourceId],
    sources: &mut Sources,
    files: &dyn Files,
    options: &Options,
    modules: Modules,
    trees: &Trees,
) -> (Option<Policy>, Vec<Diagnostic>) {
    let (mut policy, ceilings, mut diagnostics) = resolve_one(given, sources, files, options, modules, trees, true);
    if let Some(policy) = &mut policy {
        diagnostics.extend(ceiling::resolve(policy, ceilings, sources, files, options, modules, trees));
    }
    (policy, diagnostics)
}

/// The policy, and the texts of those that it claims to be within, where they are asked for.
fn resolve_one(
    given: &[SourceId],
    sources: &mut Sources,
    files: &dyn Files,
    options: &Options,
    modules: Modules,
    trees: &Trees,
    ceilings: bool,
) -> (Option<Policy>, Vec<ceiling::Ceiling>, Vec<Diagnostic>) {
    let mut diagnostics = Vec::new();
    for name in options.defines.keys() {
        if BUILT_IN.contains(&name.as_str()) || name == "env" || name.starts_with("env.") {
            let message = format!("`--define {name}` names a built-in variable");
            let diagnostic = Diagnostic::new(&codes::INVALID_VARIABLE, message);
            diagnostics.push(diagnostic.help("choose another name; the workspace is given by `--workspace`"));
        }
    }
    let mut loader = load::Loader::new(sources, files, options, modules, trees);
    loader.load(given);
    diagnostics.append(&mut loader.diagnostics);
    let mut loaded = mem::take(&mut loader.loaded);
    let mut tables = table::Tables { loader: &mut loader };
    // Every given text is loaded; without any there is nothing that could be resolved.
    let Some(first) = loaded.first() else { return (None, Vec::new(), diagnostics) };
    let mut policy = empty(options.system, first.source);
    let mut unused: BTreeSet<&str> = options.defines.keys().map(String::as_str).collect();
    let mut reads = Vec::new();
    for file in &mut loaded {
        let tree = match &mut file.content {
            Content::Tree(parsed) => &parsed.0,
            Content::Ready(ready) => {
                mem::take(&mut **ready).add(file.source, &mut policy, &mut diagnostics);
                continue;
            }
        };
        let name = tables.loader.sources.get(file.source).name().to_owned();
        let scope = scope::Scope::new(tree, options, &mut diagnostics);
        let before = reads.len();
        let mut adder = statement::Adder {
            policy: &mut policy,
            options,
            origin: file.origin,
            scope,
            tables: &mut tables,
            diagnostics: &mut diagnostics,
            reads: &mut reads,
        };
        adder.file(tree, &name);
        unused.retain(|name| !adder.scope.uses(name));
        if file.origin == Origin::Given && reads.len() == before {
            diagnostics.push(missing_default(tree, &name));
        }
    }
    for name in unused {
        let message = format!("nothing uses `--define {name}`");
        let diagnostic = Diagnostic::new(&codes::UNUSED_VARIABLE, message);
        diagnostics.push(diagnostic.help(format!("write `${name}` in a rule, or take it out")));
    }
    loopback::check(&policy, &mut diagnostics);
    let ceilings = if ceilings { ceiling::read(&policy, &mut loader) } else { Vec::new() };
    diagnostics.append(&mut loader.diagnostics);
    policy.files = mem::take(&mut loader.read);
    policy.files.extend(given.iter().map(|source| loader.sources.get(*source).name().to_owned()));
    // `deny` wins; without any, the policy is as closed as it can be and must not be used.
    let deny = reads.iter().position(|read| read.value != Effect::Allow);
    match reads.into_iter().nth(deny.unwrap_or(0)) {
        Some(read) => {
            policy.default_read = read;
            (Some(policy), ceilings, diagnostics)
        }
        None => (None, ceilings, diagnostics),
    }
}

fn empty(system: System, source: SourceId) -> Policy {
    Policy::new(system, Setting { value: Effect::Deny, span: Span::new(source, 0..0) })
}

fn missing_default(tree: &ast::File, name: &str) -> Diagnostic {
    let message = format!("`{name}` does not say what a read is that no rule matches");
    let diagnostic = Diagnostic::new(&codes::MISSING_DEFAULT, message);
    let diagnostic = match tree.statements.first() {
        Some(first) => diagnostic.label(first.span, "a policy that is given to a command"),
        None => diagnostic,
    };
    diagnostic.help(
        "add `default read deny` (or `allow`) after the `use` statements; a file that others use needs none: check one of those",
    )
}
