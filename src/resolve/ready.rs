//! The embedded modules, resolved ahead for Linux: what reading their texts would add to a policy, from a table, since a
//! command's start is counted in milliseconds.
//!
//! `make generated` writes the table; a test compares it with the texts. It holds nothing that a text says differently
//! where it is used: a module names no `--define`, and its `default`s do not count.

use super::statement;
use crate::diagnostic::Diagnostic;
use crate::ir::{Assume, Expect, LimitValue, Policy, Rule, Setting, Suppression};
use crate::source::{SourceId, Span};
use crate::vocabulary::LimitKind;
use ::std::collections::BTreeMap;
use serde::{Deserialize, Serialize};

/// Names and tables, in the order of the names.
static TABLE: &[u8] = include_bytes!("ready.bin");

/// What one module adds. The source of every span is a number that means nothing.
#[derive(Debug, Default, Serialize, Deserialize)]
pub(super) struct Ready {
    /// The modules that it uses.
    pub uses: Vec<String>,
    rules: Vec<Rule>,
    set: BTreeMap<String, Setting<String>>,
    limits: BTreeMap<LimitKind, LimitValue>,
    expects: Vec<Expect>,
    assumes: Vec<Assume>,
    suppressions: Vec<Suppression>,
}

/// The table of `std/NAME`; `None` where it has to be read from its text.
pub(super) fn of(name: &str) -> Option<Ready> {
    let modules: Vec<(&str, &[u8])> = postcard::from_bytes(TABLE).ok()?;
    let (_, table) = modules.into_iter().find(|(module, _)| *module == name)?;
    postcard::from_bytes(table).ok()
}

impl Ready {
    /// Adds all of it to a policy; `source` is the module's text.
    pub fn add(self, source: SourceId, policy: &mut Policy, diagnostics: &mut Vec<Diagnostic>) {
        let here = |span: &mut Span| span.source = source;
        policy.rules.reserve(self.rules.len());
        policy.rules.extend(self.rules.into_iter().map(|mut rule| {
            here(&mut rule.span);
            rule
        }));
        for (name, mut setting) in self.set {
            here(&mut setting.span);
            statement::set(policy, name, setting, diagnostics);
        }
        for (kind, mut limit) in self.limits {
            here(&mut limit.span);
            statement::limit(policy, kind, limit);
        }
        policy.expects.extend(self.expects.into_iter().map(|mut expect| {
            here(&mut expect.span);
            expect
        }));
        policy.assumes.extend(self.assumes.into_iter().map(|mut assume| {
            here(&mut assume.span);
            assume
        }));
        policy.suppressions.extend(self.suppressions.into_iter().map(|mut suppression| {
            here(&mut suppression.span);
            here(&mut suppression.statement);
            suppression
        }));
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::disallowed_methods, clippy::disallowed_types)]

    use super::*;
    use crate::ir::Origin;
    use crate::resolve::load::{Loader, Modules, modules};
    use crate::resolve::scope::Scope;
    use crate::resolve::statement::Adder;
    use crate::resolve::table::Tables;
    use crate::resolve::tests::Texts;
    use crate::resolve::{Options, STD, empty, resolve_with};
    use crate::source::Sources;
    use crate::syntax;
    use crate::vocabulary::System;

    fn linux() -> Options {
        Options { system: System::Linux, defines: BTreeMap::new() }
    }

    /// What the text of a module adds.
    fn read(name: &str, text: &str) -> Ready {
        let (options, mut sources, mut said) = (linux(), Sources::default(), Vec::new());
        let source = sources.add(format!("std/{name}"), text);
        let (tree, faults) = syntax::parse(&sources, source);
        assert!(faults.is_empty(), "{faults:?}");
        let mut policy = empty(System::Linux, source);
        let mut loader = Loader::new(&mut sources, &Texts(&[]), &options, Modules::Texts);
        let mut adder = Adder {
            policy: &mut policy,
            options: &options,
            origin: Origin::Std,
            scope: Scope::new(&tree, &options, &mut said),
            tables: &mut Tables { loader: &mut loader },
            diagnostics: &mut said,
            reads: &mut Vec::new(),
        };
        adder.file(&tree, name);
        assert!(said.is_empty(), "{said:?}");
        let Policy { rules, set, limits, expects, assumes, suppressions, withins, default_env, .. } = policy;
        assert!(withins.is_empty() && default_env.is_none(), "std/{name} says what the table has no room for");
        let uses = modules(&tree, &options);
        Ready { uses, rules, set, limits, expects, assumes, suppressions }
    }

    #[test]
    fn the_table_of_modules_is_what_their_texts_say() {
        let all: Vec<(&str, Vec<u8>)> =
            STD.iter().map(|(name, text)| (*name, postcard::to_allocvec(&read(name, text)).unwrap())).collect();
        let table = postcard::to_allocvec(&all).unwrap();
        if std::env::var_os("UPDATE_GENERATED").is_some() {
            std::fs::write(concat!(env!("CARGO_MANIFEST_DIR"), "/src/resolve/ready.bin"), &table).unwrap();
            return;
        }
        assert!(table == TABLE, "run `make generated`");
    }

    #[test]
    fn a_policy_is_the_same_from_the_table_and_from_the_texts() {
        for (name, _) in STD {
            let [table, texts] = [Modules::Ready, Modules::Texts].map(|modules| {
                let mut sources = Sources::default();
                let text = format!("srt 1\nuse std/{name}\ndefault read deny\nlimit time 1m\nset GIT_TEMPLATE_DIR=x\n");
                let given = sources.add("test.policy", text);
                let (policy, said) = resolve_with(&[given], &mut sources, &Texts(&[]), &linux(), modules);
                format!("{policy:?} {said:?} {sources:?}")
            });
            assert!(table == texts, "std/{name}");
        }
    }
}
