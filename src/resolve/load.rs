//! The files of a policy: those given, and what they use, each once.
//!
//! A path is folded as text (`a/../b` is `b`), so that which file is read does not depend on links on the way.

use super::codes::{INCLUDE, WRITABLE_INCLUDE};
use super::ready::{self, Ready};
use super::{Files, KEEP_OTHERS_OUT, Options, std};
use crate::diagnostic::{Diagnostic, Fix, nearest};
use crate::ir::Origin;
use crate::source::{SourceId, Sources, Span};
use crate::syntax::{self, ast};
use crate::vocabulary::System;
use ::std::cell::RefCell;
use ::std::collections::BTreeMap;
use ::std::io;
use ::std::rc::Rc;

/// How deep files may use files.
const DEPTH: usize = 16;

/// One file of the policy.
pub(super) struct Loaded {
    pub source: SourceId,
    pub origin: Origin,
    pub content: Content,
}

/// What is known of a file.
pub(super) enum Content {
    Tree(Rc<Parsed>),
    /// It is an embedded module, and was resolved ahead.
    Ready(Box<Ready>),
}

/// A text that was parsed: its tree, and what was said about it.
pub(super) type Parsed = (ast::File, Vec<Diagnostic>);

/// The texts that were parsed: what is resolved for several systems is read once.
#[derive(Default)]
pub(super) struct Trees(RefCell<BTreeMap<SourceId, Rc<Parsed>>>);

impl Trees {
    fn of(&self, sources: &Sources, source: SourceId) -> Rc<Parsed> {
        self.0.borrow_mut().entry(source).or_insert_with(|| Rc::new(syntax::parse(sources, source))).clone()
    }
}

/// Where embedded modules come from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Modules {
    /// The table, where it has them.
    Ready,
    #[cfg_attr(not(test), allow(dead_code))]
    Texts,
}

/// All files, the given ones first, and what was said about them.
pub(super) struct Loader<'a> {
    pub sources: &'a mut Sources,
    files: &'a dyn Files,
    options: &'a Options,
    modules: Modules,
    trees: &'a Trees,
    pub loaded: Vec<Loaded>,
    /// By folded path or `std/NAME`.
    seen: BTreeMap<String, usize>,
    /// The files that use the one being read, outermost first.
    chain: Vec<String>,
    pub diagnostics: Vec<Diagnostic>,
    /// The files that were read, by path.
    pub read: Vec<String>,
}

enum Used {
    Std(String),
    Path(String),
}

impl<'a> Loader<'a> {
    pub fn new(
        sources: &'a mut Sources,
        files: &'a dyn Files,
        options: &'a Options,
        modules: Modules,
        trees: &'a Trees,
    ) -> Self {
        let (loaded, seen, chain, diagnostics) = (Vec::new(), BTreeMap::new(), Vec::new(), Vec::new());
        Self { sources, files, options, modules, trees, loaded, seen, chain, diagnostics, read: Vec::new() }
    }

    /// Reads what the given files use, and so on.
    pub fn load(&mut self, given: &[SourceId]) {
        // All given files first: one that another given file uses is still a given one.
        for source in given {
            let key = fold(self.sources.get(*source).name());
            if !self.seen.contains_key(&key) {
                self.add(key, *source, Origin::Given);
            }
        }
        for at in 0..self.loaded.len() {
            let key = fold(self.sources.get(self.loaded[at].source).name());
            self.follow(at, key);
        }
    }

    /// Reads a table that `lines(…)` names.
    pub fn table(&mut self, path: &ast::Spanned<String>, from: SourceId) -> Option<(String, String)> {
        let full = beside(self.sources.get(from).name(), &path.value);
        self.read(&full, path.span).map(|text| (full, text))
    }

    fn add(&mut self, key: String, source: SourceId, origin: Origin) -> usize {
        let parsed = self.trees.of(self.sources, source);
        self.diagnostics.extend(parsed.1.iter().cloned());
        self.push(key, source, origin, Content::Tree(parsed))
    }

    fn push(&mut self, key: String, source: SourceId, origin: Origin, content: Content) -> usize {
        self.loaded.push(Loaded { source, origin, content });
        self.seen.insert(key, self.loaded.len() - 1);
        self.loaded.len() - 1
    }

    fn follow(&mut self, at: usize, key: String) {
        self.chain.push(key);
        let mut uses = Vec::new();
        match &self.loaded[at].content {
            Content::Tree(parsed) => collect(&parsed.0.statements, self.options, &mut uses),
            Content::Ready(ready) => {
                // The table was made by following each of them: none leads astray, so the place does not matter.
                let place = Span::new(self.loaded[at].source, 0..0);
                uses.extend(ready.uses.iter().map(|name| (Used::Std(name.clone()), place)));
            }
        }
        for (used, span) in uses {
            self.open(used, self.loaded[at].source, span);
        }
        self.chain.pop();
    }

    fn open(&mut self, used: Used, from: SourceId, span: Span) {
        let key = match &used {
            Used::Std(name) => format!("std/{name}"),
            Used::Path(path) => beside(self.sources.get(from).name(), path),
        };
        if let Some(first) = self.chain.iter().position(|file| *file == key) {
            let ring: Vec<_> = self.chain[first..].iter().chain([&key]).map(|file| format!("`{file}`")).collect();
            let message = format!("this file uses itself: {}", ring.join(" uses "));
            let help = "take this `use` out, or move what both need into a third file";
            self.diagnostics.push(Diagnostic::new(&INCLUDE, message).label(span, "comes back to it here").help(help));
            return;
        }
        if self.seen.contains_key(&key) {
            return;
        }
        if self.chain.len() > DEPTH {
            let message = format!("files use each other more than {DEPTH} deep");
            let help = "use the file from nearer to the top";
            self.diagnostics.push(Diagnostic::new(&INCLUDE, message).label(span, "not read").help(help));
            return;
        }
        let at = match used {
            Used::Std(name) => {
                let Some(text) = std::text(&name) else { return self.unknown_module(&name, span) };
                let known = self.sources.known(&key, text);
                let source = known.unwrap_or_else(|| self.sources.add_embedded(key.clone(), text));
                let wanted = self.modules == Modules::Ready && self.options.system == System::Linux;
                match wanted.then(|| ready::of(&name)).flatten() {
                    Some(ready) => self.push(key.clone(), source, Origin::Std, Content::Ready(Box::new(ready))),
                    None => self.add(key.clone(), source, Origin::Std),
                }
            }
            Used::Path(_) => {
                let Some(text) = self.read(&key, span) else { return };
                let known = self.sources.known(&key, &text);
                let source = known.unwrap_or_else(|| self.sources.add(key.clone(), text));
                self.add(key.clone(), source, Origin::Used)
            }
        };
        self.follow(at, key);
    }

    fn unknown_module(&mut self, name: &str, span: Span) {
        let known: Vec<_> = std::MODULES.iter().map(|(module, _)| *module).collect();
        let near = nearest(name, known.iter().copied());
        let fix = near.map(|near| Fix::Replace { span, was: name.to_owned(), by: near.to_owned() });
        let help = match near {
            Some(near) => format!("use `std/{near}`"),
            None => format!("use one of {}", known.iter().map(|n| format!("`std/{n}`")).collect::<Vec<_>>().join(", ")),
        };
        let message = format!("there is no module `std/{name}`");
        self.diagnostics.push(Diagnostic::new(&INCLUDE, message).label(span, "not known").help(help).fix(fix));
    }

    pub fn read(&mut self, path: &str, span: Span) -> Option<String> {
        match self.files.read(path) {
            Ok(text) => {
                self.read.push(path.to_owned());
                if text.writable_by_others {
                    let message = format!("others may change `{path}`, and with it this policy");
                    let help = format!("{KEEP_OTHERS_OUT} `{path}`, and keep it in a directory that is yours alone");
                    let diagnostic = Diagnostic::new(&WRITABLE_INCLUDE, message).label(span, "used here").help(help);
                    self.diagnostics.push(diagnostic);
                }
                Some(text.text)
            }
            Err(error) => {
                let message = match error.kind() {
                    io::ErrorKind::NotFound => format!("there is no file `{path}`"),
                    io::ErrorKind::PermissionDenied => format!("`{path}` may not be read"),
                    io::ErrorKind::InvalidData => format!("`{path}` is not UTF-8 text"),
                    _ => format!("`{path}` can't be read: {error}"),
                };
                let help = "give the path relative to the file that names it, or in full";
                self.diagnostics.push(Diagnostic::new(&INCLUDE, message).label(span, "named here").help(help));
                None
            }
        }
    }
}

/// The `use` statements that count on the system, in order.
fn collect(statements: &[ast::Statement], options: &Options, uses: &mut Vec<(Used, Span)>) {
    for statement in statements {
        match &statement.kind {
            ast::StatementKind::UseStd(name) => uses.push((Used::Std(name.value.clone()), name.span)),
            ast::StatementKind::UsePath(path) => uses.push((Used::Path(path.value.clone()), path.span)),
            ast::StatementKind::On { systems, body } if systems.iter().any(|s| s.value == options.system) => {
                collect(body, options, uses);
            }
            _ => {}
        }
    }
}

/// The modules that a file uses.
#[cfg(test)]
pub(super) fn modules(tree: &ast::File, options: &Options) -> Vec<String> {
    let mut uses = Vec::new();
    collect(&tree.statements, options, &mut uses);
    let module = |(used, _)| match used {
        Used::Std(name) => name,
        Used::Path(path) => panic!("a module uses the file `{path}`"),
    };
    uses.into_iter().map(module).collect()
}

/// A path named in `file`, made relative to where that file is.
pub fn beside(file: &str, path: &str) -> String {
    match file.rsplit_once('/') {
        _ if is_absolute(path) => fold(path),
        Some((directory, _)) => fold(&format!("{directory}/{path}")),
        None => fold(path),
    }
}

/// From the root, or from a drive.
pub fn is_absolute(path: &str) -> bool {
    matches!(path.as_bytes(), [b'/', ..] | [b'A'..=b'Z' | b'a'..=b'z', b':', b'/', ..])
}

/// `.`, `..` and `//` folded as text; `..` that leads above the start of a relative path stays.
fn fold(path: &str) -> String {
    let mut out: Vec<&str> = Vec::new();
    for part in path.split('/') {
        match part {
            "" | "." => {}
            // Nothing is above the root, or that of a drive.
            ".." if is_absolute(path) && out.len() == usize::from(!path.starts_with('/')) => {}
            ".." if out.last().is_some_and(|last| *last != "..") => {
                out.pop();
            }
            part => out.push(part),
        }
    }
    let root = if path.starts_with('/') { "/" } else { "" };
    format!("{root}{}", out.join("/"))
}

#[cfg(test)]
mod tests {
    use super::{beside, fold};

    #[test]
    fn paths_are_folded_as_text() {
        for (path, folded) in [
            ("a/./b", "a/b"),
            ("a//b", "a/b"),
            ("a/../b", "b"),
            ("/../b", "/b"),
            ("C:/a/../../b", "C:/b"),
            ("../a", "../a"),
            ("../../a", "../../a"),
            ("/../a", "/a"),
            ("/a/b/../c", "/a/c"),
        ] {
            assert_eq!(fold(path), folded);
        }
    }

    #[test]
    fn used_paths_are_relative_to_the_file_that_names_them() {
        assert_eq!(beside("policies/agent.policy", "../team/base.policy"), "team/base.policy");
        assert_eq!(beside("agent.policy", "base.policy"), "base.policy");
        assert_eq!(beside("/etc/srt/a.policy", "b.policy"), "/etc/srt/b.policy");
        assert_eq!(beside("a/b.policy", "/etc/c.policy"), "/etc/c.policy");
        assert_eq!(beside("C:/w/a.policy", "../b.policy"), "C:/b.policy");
        assert_eq!(beside("C:/w/a.policy", "D:/c.policy"), "D:/c.policy");
    }
}
