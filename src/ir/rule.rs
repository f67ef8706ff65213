//! One rule: an effect, a verb, and the set that it is about.
//!
//! What it decides beside others is [`decide`](super::decide())'s; where its set comes from is `resolve`'s.

use crate::sets::{
    address::AddressSet,
    host::{HostSet, Name},
    name::NameSet,
    path::{PathSet, Pattern},
    peer::{Endpoint, PeerSet},
};
use crate::source::{Sources, Span};
use crate::vocabulary::{Effect, Verb};
use std::sync::Arc;

/// The index of a rule in [`Policy::rules`](super::Policy::rules).
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct RuleId(pub u32);

/// One effect, one verb, one set.
#[derive(Debug, Clone, serde::Serialize, serde::Deserialize)]
pub struct Rule {
    pub effect: Effect,
    pub verb: Verb,
    pub subject: Subject,
    /// Shared by the rules of a statement.
    pub because: Option<Arc<str>>,
    /// What becomes of the rule where a variable of its targets has no value.
    pub unset: Unset,
    /// The target that this rule came from, in the text; the statement around it for an expanded list.
    pub span: Span,
    pub origin: Origin,
}

impl Rule {
    /// The paths that a rule about files names, those of its `except` included; none for other rules.
    pub fn file_patterns(&self) -> impl Iterator<Item = &Pattern> {
        let set = match &self.subject {
            Subject::Paths(set) if self.verb.is_about_files() => Some(set),
            _ => None,
        };
        set.into_iter().flat_map(PathSet::patterns)
    }

    /// `deny read ~/.ssh`: the one effect, verb and target of the rule, out of a statement that may list many.
    pub fn words(&self, sources: &Sources) -> String {
        let target = sources.slice(self.span).split_whitespace().collect::<Vec<_>>().join(" ");
        let except = if self.subject.has_exceptions() { " except …" } else { "" };
        format!("{} {} {target}{except}", self.effect, self.verb)
    }
}

/// What a variable without a value means to the target that uses it.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub enum Unset {
    /// Nothing was said: an error.
    Refuse,
    /// `$env.X?`: the allow, or the expectation, is dropped, with a note.
    Drop,
    /// `$env.X or TARGET`: the set is this one instead.
    Instead(Subject),
}

/// What a rule is about; the variant follows from its verb.
#[derive(Debug, Clone, PartialEq, Eq, Hash, serde::Serialize, serde::Deserialize)]
pub enum Subject {
    /// `read`, `write`, `exec`, `socket`
    Paths(PathSet),
    /// `connect`, `listen`
    Peers(PeerSet),
    /// `env`, `mach`
    Names(NameSet),
}

impl Subject {
    /// The set of the same kind with nothing in it.
    pub(super) fn emptied(&self) -> Self {
        match self {
            Subject::Paths(_) => Subject::Paths(PathSet::default()),
            Subject::Names(_) => Subject::Names(NameSet::default()),
            Subject::Peers(set) => {
                let endpoint = match set.endpoint {
                    Endpoint::Hosts(_) => Endpoint::Hosts(HostSet::default()),
                    Endpoint::Addresses(_) => Endpoint::Addresses(AddressSet::default()),
                };
                Subject::Peers(PeerSet { endpoint, ..set.clone() })
            }
        }
    }

    /// The file and the line of the entry by which a list in a file makes it hold a connection.
    pub fn listed(&self, name: &Name) -> Option<(&str, u32)> {
        match self {
            Subject::Peers(PeerSet { endpoint: Endpoint::Hosts(hosts), .. }) => hosts.listed(name),
            _ => None,
        }
    }

    /// Whether an `except` takes something out of it.
    pub fn has_exceptions(&self) -> bool {
        match self {
            Subject::Paths(set) => !set.exclude.is_empty(),
            Subject::Peers(set) => matches!(&set.endpoint, Endpoint::Hosts(hosts) if !hosts.exclude.is_empty()),
            Subject::Names(set) => !set.exclude.is_empty(),
        }
    }
}

/// Who gave a rule.
#[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub enum Origin {
    /// A file named to a verb, or a flag.
    Given,
    /// A file another one uses.
    Used,
    /// An embedded module.
    Std,
}
