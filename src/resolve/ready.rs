//! The embedded modules, resolved ahead for Linux: what reading their texts would add to a policy, from a table, since a
//! command's start is counted in milliseconds.
//!
//! `make generated` writes the table; a test compares it with the texts. It holds nothing that a text says differently
//! where it is used: a module names no `--define`, and its `default`s do not count.

use super::merge;
use crate::diagnostic::Diagnostic;
use crate::ir::{Assume, Expect, LimitValue, Origin, Policy, Rule, Setting, Subject, Suppression, Unset};
use crate::sets::path::{Pattern, Segment, Start};
use crate::source::{SourceId, Span};
use crate::vocabulary::{Effect, LimitKind, Reach, Verb};
use ::std::collections::BTreeMap;
use ::std::sync::Arc;
use serde::{Deserialize, Serialize};

/// Names and tables, in the order of the names.
static TABLE: &[u8] = include_bytes!("ready.bin");

/// What one module adds. The source of every span is a number that means nothing.
#[derive(Debug, Default, Serialize, Deserialize)]
pub(super) struct Ready {
    /// The modules that it uses.
    pub uses: Vec<String>,
    /// The variables that targets start at.
    starts: Vec<Arc<str>>,
    #[serde(borrow)]
    blocks: Vec<Block<'static>>,
    set: BTreeMap<String, Setting<String>>,
    limits: BTreeMap<LimitKind, LimitValue>,
    expects: Vec<Expect>,
    assumes: Vec<Assume>,
    suppressions: Vec<Suppression>,
}

/// Rules in a row that differ in their targets alone.
#[derive(Debug, Serialize, Deserialize)]
struct Block<'t> {
    effect: Effect,
    verb: Verb,
    because: Option<Arc<str>>,
    #[serde(borrow)]
    targets: Vec<Target<'t>>,
}

/// What one rule is about, and where in the text.
#[derive(Debug, Serialize, Deserialize)]
enum Target<'t> {
    /// One whole tree that needs its variable, by its segments with `/` between them, of which `**` is any number.
    Tree {
        /// In `starts`; `None` is the root.
        start: Option<u8>,
        #[serde(borrow)]
        path: &'t [u8],
        at: (u32, u32),
    },
    Other {
        subject: Subject,
        unset: Unset,
        at: (u32, u32),
    },
}

const ANY_DEPTH: &[u8] = b"**";

impl Target<'_> {
    fn rule(self, starts: &[Arc<str>], source: SourceId) -> (Subject, Unset, Span) {
        let (subject, unset, (start, end)) = match self {
            Target::Tree { start, path, at } => {
                let segment =
                    |name: &[u8]| if name == ANY_DEPTH { Segment::AnyDepth } else { Segment::Literal(name.into()) };
                let mut segments = Vec::with_capacity(path.split(|byte| *byte == b'/').count());
                segments.extend(path.split(|byte| *byte == b'/').filter(|name| !name.is_empty()).map(segment));
                // The table is this program's own.
                let start = start.map_or(Start::Root, |start| Start::Variable(Arc::clone(&starts[usize::from(start)])));
                (Subject::Paths(Pattern { start, segments, reach: Reach::Tree }.into()), Unset::Refuse, at)
            }
            Target::Other { subject, unset, at } => (subject, unset, at),
        };
        (subject, unset, Span { source, start, end })
    }
}

/// The table of `std/NAME`; `None` where it has to be read from its text.
pub(super) fn of(name: &str) -> Option<Ready> {
    let modules: Vec<(&str, &'static [u8])> = postcard::from_bytes(TABLE).ok()?;
    let (_, table) = modules.into_iter().find(|(module, _)| *module == name)?;
    postcard::from_bytes(table).ok()
}

impl Ready {
    /// Adds all of it to a policy; `source` is the module's text.
    pub fn add(self, source: SourceId, policy: &mut Policy, diagnostics: &mut Vec<Diagnostic>) {
        let here = |span: &mut Span| span.source = source;
        policy.rules.reserve(self.blocks.iter().map(|block| block.targets.len()).sum());
        for Block { effect, verb, because, targets } in self.blocks {
            policy.rules.extend(targets.into_iter().map(|target| {
                let (subject, unset, span) = target.rule(&self.starts, source);
                Rule { effect, verb, subject, because: because.clone(), unset, span, origin: Origin::Std }
            }));
        }
        for (name, mut setting) in self.set {
            here(&mut setting.span);
            merge::set(policy, name, setting, diagnostics);
        }
        for (kind, mut limit) in self.limits {
            here(&mut limit.span);
            merge::limit(policy, kind, limit);
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
    use crate::resolve::load::{Loader, Modules, Trees, modules};
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
        let trees = Trees::default();
        let mut loader = Loader::new(&mut sources, &Texts(&[]), &options, Modules::Texts, &trees);
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
        let Policy { rules, set, limits, expects, assumes, suppressions, withins, default_env, ignores, .. } = policy;
        let none = withins.is_empty() && default_env.is_none() && ignores.is_empty();
        assert!(none, "std/{name} says what the table has no room for");
        let (starts, blocks) = blocks(rules);
        Ready { uses: modules(&tree, &options), starts, blocks, set, limits, expects, assumes, suppressions }
    }

    fn blocks(rules: Vec<Rule>) -> (Vec<Arc<str>>, Vec<Block<'static>>) {
        let mut starts = Vec::new();
        let mut blocks: Vec<Block<'static>> = Vec::new();
        for Rule { effect, verb, subject, because, unset, span, .. } in rules {
            let at = (span.start, span.end);
            let target = match tree(&subject, &mut starts).filter(|_| unset == Unset::Refuse) {
                Some((start, path)) => Target::Tree { start, path: Vec::leak(path), at },
                None => Target::Other { subject, unset, at },
            };
            match blocks.last_mut() {
                Some(last) if (last.effect, last.verb, &last.because) == (effect, verb, &because) => {
                    last.targets.push(target);
                }
                _ => blocks.push(Block { effect, verb, because, targets: vec![target] }),
            }
        }
        (starts, blocks)
    }

    fn tree(subject: &Subject, starts: &mut Vec<Arc<str>>) -> Option<(Option<u8>, Vec<u8>)> {
        let Subject::Paths(set) = subject else { return None };
        let ([pattern], []) = (&set.include[..], &set.exclude[..]) else { return None };
        let names: Vec<&[u8]> = pattern
            .segments
            .iter()
            .map(|segment| match segment {
                Segment::AnyDepth => Some(ANY_DEPTH),
                Segment::Literal(name) => Some(&**name).filter(|name| *name != ANY_DEPTH),
                Segment::Glob(_) => None,
            })
            .collect::<Option<_>>()?;
        let start = match &pattern.start {
            Start::Root => None,
            Start::Variable(name) => Some(starts.iter().position(|known| known == name).unwrap_or_else(|| {
                starts.push(Arc::clone(name));
                starts.len() - 1
            })),
            Start::Drive(_) => return None,
        };
        let start = start.map(|start| u8::try_from(start).unwrap());
        (pattern.reach == Reach::Tree).then(|| (start, names.join(&b'/')))
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
                let (policy, said) =
                    resolve_with(&[given], &mut sources, &Texts(&[]), &linux(), modules, &Trees::default());
                format!("{policy:?} {said:?} {sources:?}")
            });
            assert!(table == texts, "std/{name}");
        }
    }
}
