//! The names one file knows: its `let`s, the built-in variables, what was defined on the command line, and what an
//! `assume` speaks of.

use super::Options;
use super::codes::{INVALID_VARIABLE, UNKNOWN_VARIABLE, UNUSED_VARIABLE};
use crate::diagnostic::{Diagnostic, Fix, nearest};
use crate::source::Span;
use crate::syntax::ast;
use crate::vocabulary::BUILT_IN;
use std::collections::{BTreeMap, BTreeSet};

/// What a name stands for.
pub(super) enum Meaning<'a> {
    Let(&'a ast::LetValue, Span),
    /// `--define`
    Defined(&'a str),
    BuiltIn,
    /// `env.NAME`
    Environment,
    /// Named by an `assume` and given no value.
    Assumed,
}

pub(super) struct Scope<'a> {
    options: &'a Options,
    lets: BTreeMap<&'a str, (&'a ast::LetValue, Span)>,
    assumed: BTreeSet<&'a str>,
    /// The lets and definitions that something used.
    used: BTreeSet<String>,
}

impl<'a> Scope<'a> {
    pub fn new(tree: &'a ast::File, options: &'a Options, diagnostics: &mut Vec<Diagnostic>) -> Self {
        let mut scope = Scope { options, lets: BTreeMap::new(), assumed: BTreeSet::new(), used: BTreeSet::new() };
        scope.collect(&tree.statements, diagnostics);
        scope
    }

    fn collect(&mut self, statements: &'a [ast::Statement], diagnostics: &mut Vec<Diagnostic>) {
        for statement in statements {
            match &statement.kind {
                ast::StatementKind::Let { name, value } => {
                    let word = name.value.as_str();
                    if BUILT_IN.contains(&word) || word == "env" || word.starts_with("env.") {
                        let message = format!("`{word}` is built in and can't be given another meaning");
                        let diagnostic = Diagnostic::new(&INVALID_VARIABLE, message);
                        diagnostics.push(diagnostic.label(name.span, "built in").help("choose another name"));
                    } else if let Some((_, first)) = self.lets.get(word) {
                        let message = format!("`{word}` is defined twice");
                        let diagnostic = Diagnostic::new(&INVALID_VARIABLE, message).label(name.span, "again here");
                        let help = "put all targets into one list, or choose another name";
                        diagnostics.push(diagnostic.label(*first, "first here").help(help));
                    } else {
                        self.lets.insert(word, (value, name.span));
                    }
                }
                ast::StatementKind::Assume { variable, .. } => {
                    self.assumed.insert(&variable.value);
                }
                ast::StatementKind::On { body, .. } => self.collect(body, diagnostics),
                _ => {}
            }
        }
    }

    /// What a name stands for; nothing is known of it when this says `None`, and that has been said.
    pub fn meaning(&mut self, name: &str, span: Span, diagnostics: &mut Vec<Diagnostic>) -> Option<Meaning<'a>> {
        self.used.insert(name.to_owned());
        if let Some((value, at)) = self.lets.get(name) {
            return Some(Meaning::Let(value, *at));
        }
        if let Some(value) = self.options.defines.get(name).filter(|_| !BUILT_IN.contains(&name)) {
            return Some(Meaning::Defined(value));
        }
        if BUILT_IN.contains(&name) {
            return Some(Meaning::BuiltIn);
        }
        if name.strip_prefix("env.").is_some_and(|rest| !rest.is_empty()) {
            return Some(Meaning::Environment);
        }
        if self.assumed.contains(name) {
            return Some(Meaning::Assumed);
        }
        let candidates = BUILT_IN.iter().copied().chain(self.lets.keys().copied());
        let candidates = candidates.chain(self.options.defines.keys().map(String::as_str));
        let near = nearest(name, candidates);
        let fix = near.map(|near| Fix::Replace { span, was: format!("${name}"), by: format!("${near}") });
        let help = match near {
            Some(near) => format!("use `${near}`"),
            None => format!("define it in this file by `let {name} = …`, or give `--define {name}=VALUE`"),
        };
        let message = format!("there is no variable `${name}`");
        diagnostics.push(Diagnostic::new(&UNKNOWN_VARIABLE, message).label(span, "not known here").help(help).fix(fix));
        None
    }

    /// Marks the names that statements of other systems use.
    pub fn mention(&mut self, statements: &[ast::Statement]) {
        for statement in statements {
            match &statement.kind {
                ast::StatementKind::Rule(rule) => self.mention_all(rule.targets.iter().chain(&rule.except)),
                ast::StatementKind::Expect(expect) => self.mention_all(expect.targets.iter().chain(&expect.except)),
                ast::StatementKind::Ignore(ignore) => self.mention_all(ignore.targets.iter().chain(&ignore.except)),
                ast::StatementKind::On { body, .. } => self.mention(body),
                _ => {}
            }
        }
    }

    fn mention_all<'b>(&mut self, targets: impl Iterator<Item = &'b ast::Target>) {
        for target in targets {
            // By the text: a name that is a part of a longer one keeps a let from being reported, which does no harm.
            let named = |name: &&str| target.text.contains(&format!("${name}"));
            for name in self.lets.keys().copied().filter(named).collect::<Vec<_>>() {
                if self.used.insert(name.to_owned())
                    && let Some((ast::LetValue::Targets(inner), _)) = self.lets.get(name)
                {
                    self.mention_all(inner.iter());
                }
            }
        }
    }

    /// Whether a `--define` was of use to this file.
    pub fn uses(&self, name: &str) -> bool {
        self.used.contains(name) && !self.lets.contains_key(name)
    }

    /// The lets that nothing used, a let that only unused ones use included.
    pub fn unused(&self, diagnostics: &mut Vec<Diagnostic>) {
        for (name, (_, span)) in &self.lets {
            if !self.used.contains(*name) {
                let diagnostic = Diagnostic::new(&UNUSED_VARIABLE, format!("nothing uses `${name}`"));
                let diagnostic = diagnostic.label(*span, "defined here");
                let diagnostic = diagnostic.help("use it in a rule of this file, or take it out");
                diagnostics.push(diagnostic.fix(Fix::Remove(*span)));
            }
        }
    }
}
