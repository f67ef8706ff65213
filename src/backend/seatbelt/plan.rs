//! The macOS plan: a formula of sets for each group of operations.

use crate::backend::limits::Limits;
use crate::ir::Subject;
use crate::sets::path::Pattern;
use crate::source::Span;
use std::sync::Arc;

/// A profile for one machine, as it is run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Profile {
    /// The text for `sandbox-exec -p`: its parameters that are not given a value yet are the proxy's port and the log's tag.
    pub text: String,
    /// Whether connections are made, all by the proxy.
    pub proxy: bool,
    pub limits: Limits,
}

/// What a profile says.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Plan {
    /// What the profile is told when it is loaded (`sandbox-exec -D NAME=VALUE`), by name.
    pub parameters: Vec<Parameter>,
    pub read: Clauses,
    /// Without what [`read`](Self::read) withholds, which may not be written either.
    pub write: Clauses,
    /// Without what [`read`](Self::read) grants and withholds, which holds for running too.
    pub exec: Clauses,
    pub socket: Clauses,
    pub mach: Clauses,
    /// Nodes above something denied, which are neither made nor taken away: else a rename would give what is denied another name,
    /// or what is not denied its name.
    pub pins: Vec<Withheld>,
    /// Above these something may be read: whatever lies on the way can be looked at, though not listed.
    pub ways: Vec<Pattern>,
    /// Whether connections are made, all by the proxy.
    pub proxy: bool,
}

/// What may be done: everything, or the union of what is granted; less what is withheld.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Clauses {
    pub everything: bool,
    pub granted: Vec<Granted>,
    pub withheld: Vec<Withheld>,
}

/// A set that a rule allows.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Granted {
    pub set: Subject,
    pub span: Span,
}

/// A set that is denied, but for what is in one of others.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Withheld {
    pub set: Subject,
    /// The allows that open the rule.
    pub lifted_by: Vec<Subject>,
    /// The rule's; none where it is the system's way that makes it needed.
    pub span: Option<Span>,
}

/// A value that the profile is given when it is loaded.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Parameter {
    /// `NAME`: where a variable of the policy lies: canonical, and as the file system spells it.
    Place(Arc<str>),
    /// `NAME.regex`: the same, as a regular expression that matches it alone.
    Regex(Arc<str>),
    /// `NAME.ancestors`: a regular expression that matches each directory above it, `/` included, and nothing else.
    Ancestors(Arc<str>),
    /// `log.tag`: what the system's log shows with each refusal.
    LogTag,
    /// `proxy.port`: where the proxy listens on 127.0.0.1.
    ProxyPort,
}

impl Parameter {
    /// The name by which the profile asks for it; no variable has a dot but in front, so that no two are the same.
    pub fn name(&self) -> String {
        match self {
            Self::Place(name) => name.to_string(),
            Self::Regex(name) => format!("{name}.regex"),
            Self::Ancestors(name) => format!("{name}.ancestors"),
            Self::LogTag => "log.tag".to_owned(),
            Self::ProxyPort => "proxy.port".to_owned(),
        }
    }
}

impl Clauses {
    /// The same, less one more set that nothing opens.
    pub fn withhold(&mut self, pattern: Pattern, span: Option<Span>) {
        self.withheld.push(Withheld { set: Subject::Paths(pattern.into()), lifted_by: Vec::new(), span });
    }
}
