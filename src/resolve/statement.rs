//! The statements of one file, added to the policy.

use super::Options;
use super::codes::INVALID_VARIABLE;
use super::item::{Item, Resolved, Unset};
use super::load::beside;
use super::merge;
use super::scope::{Meaning, Scope};
use super::subject::{Except, Purpose, subjects};
use super::table::Tables;
use super::target::Reader;
use crate::diagnostic::Diagnostic;
use crate::ir::{self, Origin, Policy, Setting, Subject};
use crate::source::Span;
use crate::syntax::ast::{self, StatementKind};
use crate::syntax::codes::MISMATCH;
use crate::vocabulary::{Effect, Kind, Verb};
use std::sync::Arc;

/// What is added to while files are read.
pub(super) struct Adder<'a, 's, 'l, 'w> {
    pub policy: &'s mut Policy,
    pub options: &'a Options,
    pub origin: Origin,
    pub scope: Scope<'a>,
    pub tables: &'s mut Tables<'l, 'w>,
    pub diagnostics: &'s mut Vec<Diagnostic>,
    /// The `default read` and `default env` statements of given files.
    pub reads: &'s mut Vec<Setting<Effect>>,
}

impl<'a> Adder<'a, '_, '_, '_> {
    /// Adds all of a file.
    pub fn file(&mut self, tree: &'a ast::File, name: &str) {
        self.statements(&tree.statements, name);
        self.scope.unused(self.diagnostics);
    }

    fn statements(&mut self, statements: &'a [ast::Statement], file: &str) {
        for statement in statements {
            for suppression in &statement.suppressions {
                self.policy.suppressions.push(ir::Suppression {
                    code: suppression.code.value.clone(),
                    reason: suppression.reason.clone(),
                    span: suppression.span,
                    statement: statement.span,
                });
            }
            self.statement(statement, file);
        }
    }

    fn statement(&mut self, statement: &'a ast::Statement, file: &str) {
        match &statement.kind {
            // `load` has followed the uses, `Scope` the lets, the grammar the version.
            StatementKind::Version(_)
            | StatementKind::UseStd(_)
            | StatementKind::UsePath(_)
            | StatementKind::Let { .. } => {}
            StatementKind::Default { subject, allow } => self.default(subject, *allow),
            StatementKind::Rule(rule) => self.rule(rule),
            StatementKind::Set { name, value } => {
                let setting = Setting { value: value.value.clone(), span: name.span.to(value.span) };
                merge::set(self.policy, name.value.clone(), setting, self.diagnostics);
            }
            StatementKind::Limit(limits) => {
                for ast::Limit { kind, value } in limits {
                    merge::limit(
                        self.policy,
                        kind.value,
                        Setting { value: value.value, span: kind.span.to(value.span) },
                    );
                }
            }
            StatementKind::On { systems, body } => {
                if systems.iter().any(|system| system.value == self.options.system) {
                    self.statements(body, file);
                } else {
                    self.scope.mention(body);
                }
            }
            StatementKind::Within(path) => {
                let within = ir::Within { path: beside(file, &path.value), span: path.span, ceiling: None };
                self.policy.withins.push(within);
            }
            StatementKind::Expect(expect) => self.expect(expect, statement.span),
            StatementKind::Ignore(ignore) => self.ignore(ignore),
            StatementKind::Assume { variable, inside, targets } => {
                self.assume(variable, *inside, targets, statement.span);
            }
        }
    }

    fn default(&mut self, subject: &ast::Spanned<ast::DefaultSubject>, allow: bool) {
        // Only the files that were given say what the defaults are.
        if self.origin != Origin::Given {
            return;
        }
        let value = if allow { Effect::Allow } else { Effect::Deny };
        let setting = Setting { value, span: subject.span };
        match subject.value {
            ast::DefaultSubject::Read => self.reads.push(setting),
            ast::DefaultSubject::Env => match &self.policy.default_env {
                Some(before) if before.value == Effect::Deny || allow => {}
                _ => self.policy.default_env = Some(setting),
            },
        }
    }

    fn items(&mut self, targets: &[ast::Target], kind: Kind) -> Vec<Resolved> {
        let mut reader =
            Reader { scope: &mut self.scope, tables: self.tables, diagnostics: self.diagnostics, opening: Vec::new() };
        reader.targets(targets, kind)
    }

    fn except(&mut self, targets: &[ast::Target], kind: Kind) -> Except {
        let items = self.items(targets, kind);
        for item in &items {
            if !matches!(item.unset, Unset::Refuse) {
                let message = "an `except` takes no `?` and no `or`";
                let diagnostic = Diagnostic::new(&INVALID_VARIABLE, message).label(item.span, "may be without a value");
                let help = "write two rules, or name the variable alone";
                self.diagnostics.push(diagnostic.help(help));
            }
        }
        let except = Except::new(items, self.diagnostics);
        if let (Some(first), Some(last)) = (targets.first(), targets.last()) {
            except.limit(first.span.to(last.span), self.diagnostics);
        }
        except
    }

    /// The kind that all verbs of a statement take.
    fn kind(&mut self, verbs: &[ast::Spanned<Verb>]) -> Option<Kind> {
        let first = verbs.first()?;
        let kind = first.value.kind();
        if let Some(other) = verbs.iter().find(|verb| verb.value.kind() != kind) {
            let message = format!(
                "`{}` takes {}, `{}` {}",
                first.value,
                kind.expected(),
                other.value,
                other.value.kind().expected()
            );
            let diagnostic = Diagnostic::new(&MISMATCH, message).label(other.span, "of another kind");
            self.diagnostics.push(diagnostic.help("write a rule for each"));
            return None;
        }
        Some(kind)
    }

    fn rule(&mut self, rule: &ast::Rule) {
        let Some(kind) = self.kind(&rule.verbs) else { return };
        let items = self.items(&rule.targets, kind);
        let except = self.except(&rule.except, kind);
        let effect = rule.effect.value;
        let because = rule.because.as_ref().map(|because| Arc::from(because.value.as_str()));
        for verb in &rule.verbs {
            let permits = effect == Effect::Allow;
            let purpose = Purpose { verb: verb.value, permits, carries: !permits };
            for resolved in &items {
                if !permits && matches!(resolved.unset, Unset::Drop) {
                    let message = format!("a `{effect}` that is dropped where its variable is unset would permit more");
                    let diagnostic = Diagnostic::new(&INVALID_VARIABLE, message).label(resolved.span, "`?` here");
                    self.diagnostics.push(diagnostic.help("take the `?` out, or give another target after `or`"));
                    continue;
                }
                let span = resolved.span;
                if let Item::Paths(_, list) = &resolved.item {
                    self.policy.lists.insert(span, Arc::clone(list));
                }
                for (subject, unset) in self.subjects(resolved, &except, purpose) {
                    let because = because.clone();
                    let origin = self.origin;
                    let verb = verb.value;
                    self.policy.rules.push(ir::Rule { effect, verb, subject, because, unset, span, origin });
                }
            }
        }
    }

    /// The sets of one item and what they become where its variable is unset.
    fn subjects(&mut self, resolved: &Resolved, except: &Except, purpose: Purpose) -> Vec<(Subject, ir::Unset)> {
        let span = resolved.span;
        let mut of = |item: &Item| subjects(item.clone(), except, purpose, span, self.diagnostics);
        let sets = of(&resolved.item);
        let unset = match &resolved.unset {
            Unset::Refuse => ir::Unset::Refuse,
            Unset::Drop => ir::Unset::Drop,
            Unset::Instead(item) => match of(item).pop() {
                Some(subject) => ir::Unset::Instead(subject),
                None => return Vec::new(),
            },
        };
        sets.into_iter().map(|subject| (subject, unset.clone())).collect()
    }

    fn expect(&mut self, expect: &ast::Expect, span: Span) {
        let Some(kind) = self.kind(&expect.verbs) else { return };
        let items = self.items(&expect.targets, kind);
        let except = self.except(&expect.except, kind);
        for verb in &expect.verbs {
            let purpose = Purpose { verb: verb.value, permits: expect.allow, carries: false };
            for resolved in &items {
                for (subject, unset) in self.subjects(resolved, &except, purpose) {
                    let (allow, verb) = (expect.allow, verb.value);
                    self.policy.expects.push(ir::Expect { allow, verb, subject, unset, span });
                }
            }
        }
    }

    fn ignore(&mut self, ignore: &ast::Ignore) {
        let Some(kind) = self.kind(&ignore.verbs) else { return };
        let items = self.items(&ignore.targets, kind);
        let except = self.except(&ignore.except, kind);
        let because: Option<Arc<str>> = ignore.because.as_ref().map(|because| Arc::from(because.value.as_str()));
        for verb in &ignore.verbs {
            let purpose = Purpose { verb: verb.value, permits: false, carries: false };
            for resolved in &items {
                for (subject, unset) in self.subjects(resolved, &except, purpose) {
                    let (verb, because, span) = (verb.value, because.clone(), resolved.span);
                    self.policy.ignores.push(ir::Ignore { verb, subject, because, unset, span });
                }
            }
        }
    }

    fn assume(&mut self, variable: &ast::Spanned<String>, inside: bool, targets: &[ast::Target], span: Span) {
        let meaning = self.scope.meaning(&variable.value, variable.span, self.diagnostics);
        if matches!(meaning, Some(Meaning::Let(..))) {
            let message = format!("`${}` is defined here, and needs no assumption", variable.value);
            let diagnostic = Diagnostic::new(&INVALID_VARIABLE, message).label(variable.span, "a `let`");
            self.diagnostics.push(diagnostic.help("take the `assume` out"));
            return;
        }
        let items = self.items(targets, Kind::Path);
        let purpose = Purpose { verb: Verb::Read, permits: false, carries: false };
        let mut include = Vec::new();
        for resolved in &items {
            for (subject, _) in self.subjects(resolved, &Except::default(), purpose) {
                if let Subject::Paths(paths) = subject {
                    include.extend(paths.include);
                }
            }
        }
        let paths = crate::sets::path::PathSet { include, exclude: Vec::new() };
        self.policy.assumes.push(ir::Assume { variable: variable.value.clone(), inside, paths, span });
    }
}
