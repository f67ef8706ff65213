//! A whole policy, once names, lists, includes and `on` blocks are gone: its rules, defaults and obligations.

use super::access::Access;
use super::facts::{Facts, MountFact};
use super::rule::{Rule, RuleId, Subject, Unset};
use crate::sets::host::{Absent, Table};
use crate::sets::path::{AbsPath, PathSet, Start};
use crate::source::Span;
use crate::vocabulary::{Effect, LimitKind, System, Verb};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

/// A whole policy for one system: the union of all files given and used.
#[derive(Debug, Clone, serde::Serialize, serde::Deserialize)]
pub struct Policy {
    pub system: System,
    pub rules: Vec<Rule>,
    /// What a read is that no rule matches, and who said so.
    pub default_read: Setting<Effect>,
    /// Whether the caller's environment passes in where no rule matches; `None` is open.
    pub default_env: Option<Setting<Effect>>,
    /// `set NAME=VALUE`
    pub set: BTreeMap<String, Setting<String>>,
    /// The smallest of each kind.
    pub limits: BTreeMap<LimitKind, LimitValue>,
    pub expects: Vec<Expect>,
    /// What need not be told of, though it is refused.
    #[serde(default)]
    pub ignores: Vec<Ignore>,
    pub withins: Vec<Within>,
    pub assumes: Vec<Assume>,
    pub suppressions: Vec<Suppression>,
    /// The files it was read from, by the names under which they were opened: policies and lists, no embedded module.
    pub files: Vec<String>,
    /// Of each rule whose set is a list of paths in a file, by its span, where the entries stand.
    #[serde(with = "pairs")]
    pub lists: BTreeMap<Span, Arc<List>>,
    /// The machine; empty until bound.
    #[serde(skip)]
    pub facts: Facts,
    /// Of long lists what is left out where the policy is studied; nothing in a policy that is decided by.
    #[serde(skip)]
    pub absent: Option<Arc<Absent>>,
    /// The same lists, whole, by the rules that they stand in: where an entry stands is looked up there.
    #[serde(skip)]
    pub shortened: BTreeMap<Span, Vec<Arc<Table>>>,
}

impl Policy {
    /// A policy without rules.
    pub fn new(system: System, default_read: Setting<Effect>) -> Self {
        Self {
            system,
            rules: Vec::new(),
            default_read,
            default_env: None,
            set: BTreeMap::new(),
            limits: BTreeMap::new(),
            expects: Vec::new(),
            ignores: Vec::new(),
            withins: Vec::new(),
            assumes: Vec::new(),
            suppressions: Vec::new(),
            files: Vec::new(),
            lists: BTreeMap::new(),
            facts: Facts::default(),
            absent: None,
            shortened: BTreeMap::new(),
        }
    }

    /// The file and the line of the entry by which a rule holds an access, where its set is a list in a file.
    pub fn listed<'p>(&'p self, rule: &'p Rule, access: &Access) -> Option<(&'p str, u32)> {
        match (access, &rule.subject) {
            (Access::Connect { name: Some(name), .. }, subject) => subject.listed(name).or_else(|| {
                let mut whole = self.shortened.get(&rule.span).into_iter().flatten();
                whole.find_map(|table| Some((table.file(), table.line(name)?)))
            }),
            (
                Access::Read(path) | Access::Write(path) | Access::Exec(path) | Access::Socket(path),
                Subject::Paths(set),
            ) => {
                // A rule of other names that the places have is none of the list.
                let list = self.lists.get(&rule.span).filter(|list| list.lines.len() == set.include.len())?;
                let at = set.include.iter().position(|pattern| pattern.contains(path))?;
                Some((&*list.file, list.lines[at]))
            }
            _ => None,
        }
    }

    /// Where it is said what an access of a verb is that no rule matches; none where the language says it.
    pub fn default_of(&self, verb: Verb) -> Option<Span> {
        match verb {
            Verb::Read | Verb::Exec => Some(self.default_read.span),
            Verb::Env => self.default_env.as_ref().map(|default| default.span),
            _ => None,
        }
    }

    /// The same policy in which some rules are about nothing, and so decide nothing. They keep their places: every id means
    /// what it meant.
    #[must_use]
    pub fn without(&self, rules: &BTreeSet<RuleId>) -> Self {
        let mut policy = self.clone();
        let mut spans = BTreeSet::new();
        for (rule, _) in policy.rules.iter_mut().zip((0..).map(RuleId)).filter(|(_, id)| rules.contains(id)) {
            rule.subject = rule.subject.emptied();
            spans.insert(rule.span);
        }
        let facts = &mut policy.facts;
        facts.elsewhere.retain(|(rule, _)| !rules.contains(rule));
        facts.expansions.retain(|(rule, _)| !rules.contains(rule));
        facts.through.retain(|(_, span)| !spans.contains(span));
        policy
    }
}

impl Policy {
    /// The same with the rules behind the others that were left out since they decide nothing here: what is denied, is denied by
    /// the rule that says so.
    #[must_use]
    pub fn with_idle(&self) -> Self {
        let mut policy = self.clone();
        let place = |name: &str| AbsPath::parse(self.facts.variables.get(name)?).ok();
        for mut rule in std::mem::take(&mut policy.facts.idle) {
            let Subject::Paths(set) = &mut rule.subject else { continue };
            for pattern in set.include.iter_mut().chain(&mut set.exclude) {
                if let Start::Variable(name) = &pattern.start
                    && let Some(place) = place(name)
                {
                    pattern.put_at(&place);
                }
            }
            policy.rules.push(rule);
        }
        policy
    }
}

/// What it takes to decide about files, for another process: the rules about reading, writing and running, which keep none of
/// their places.
#[derive(Debug, serde::Serialize, serde::Deserialize)]
pub struct FileRules {
    policy: Policy,
    mounts: Vec<MountFact>,
}

impl From<&Policy> for FileRules {
    fn from(whole: &Policy) -> Self {
        let mut policy = Policy::new(whole.system, whole.default_read.clone());
        policy.rules = whole.rules.iter().filter(|rule| rule.verb.is_about_files()).cloned().collect();
        Self { policy, mounts: whole.facts.mounts.clone() }
    }
}

impl From<FileRules> for Policy {
    fn from(rules: FileRules) -> Self {
        let mut policy = rules.policy;
        policy.facts.mounts = rules.mounts;
        policy
    }
}

/// Where the entries of a list of paths stand: the file, and a line for each, in the order of the rule's set.
#[derive(Debug, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub struct List {
    pub file: Arc<str>,
    pub lines: Vec<u32>,
}

/// Lists by their spans, as a sequence of pairs: a key of JSON is a text.
mod pairs {
    use super::{List, Span};
    use serde::{Deserialize, Deserializer, Serializer};
    use std::collections::BTreeMap;
    use std::sync::Arc;

    pub fn serialize<S: Serializer>(lists: &BTreeMap<Span, Arc<List>>, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_seq(lists)
    }

    pub fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<BTreeMap<Span, Arc<List>>, D::Error> {
        Ok(Vec::deserialize(deserializer)?.into_iter().collect())
    }
}

/// A policy without variables, and the facts of the machine it is bound to. Only `bind` makes one.
#[derive(Debug, Clone)]
pub struct BoundPolicy(pub(crate) Policy);

impl BoundPolicy {
    /// As [`Policy::without`].
    #[must_use]
    pub fn without(&self, rules: &BTreeSet<RuleId>) -> Self {
        Self(self.0.without(rules))
    }
}

impl std::ops::Deref for BoundPolicy {
    type Target = Policy;

    fn deref(&self) -> &Policy {
        &self.0
    }
}

/// A value and the place that set it.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub struct Setting<T> {
    pub value: T,
    pub span: Span,
}

/// In the unit of its kind, see [`LimitKind`].
pub type LimitValue = Setting<u64>;

/// `expect`: every access in the set is decided so.
#[derive(Debug, Clone, serde::Serialize, serde::Deserialize)]
pub struct Expect {
    pub allow: bool,
    pub verb: Verb,
    pub subject: Subject,
    pub unset: Unset,
    pub span: Span,
}

/// `ignore`: refusals of accesses in the set are not told. No decision depends on it.
#[derive(Debug, Clone, serde::Serialize, serde::Deserialize)]
pub struct Ignore {
    pub verb: Verb,
    pub subject: Subject,
    pub because: Option<Arc<str>>,
    pub unset: Unset,
    /// The target that it came from.
    pub span: Span,
}

/// `assume $X inside|outside TARGETS`: what may be counted on where the value of `$X` is not known.
#[derive(Debug, Clone, serde::Serialize, serde::Deserialize)]
pub struct Assume {
    /// Without `$`.
    pub variable: String,
    /// Inside the set; else the whole tree at the value is apart from it.
    pub inside: bool,
    pub paths: PathSet,
    pub span: Span,
}

/// `within "PATH"`: an obligation to permit nothing that another policy does not.
#[derive(Debug, Clone, serde::Serialize, serde::Deserialize)]
pub struct Within {
    pub path: String,
    pub span: Span,
    /// The other policy, for the same system, bound where this one is; `None` where its file could not be used, which has
    /// been said.
    pub ceiling: Option<Box<Policy>>,
}

/// `# lint: allow(CODE) REASON`, and the statement it stands above.
#[derive(Debug, Clone, serde::Serialize, serde::Deserialize)]
pub struct Suppression {
    pub code: String,
    pub reason: String,
    pub span: Span,
    pub statement: Span,
}

impl Suppression {
    /// Whether a place in a text lies in the statement it stands above.
    pub fn covers(&self, span: Span) -> bool {
        let statement = self.statement;
        span.source == statement.source && span.start >= statement.start && span.end <= statement.end
    }
}
