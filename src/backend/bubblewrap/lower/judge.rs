//! The one place where lowering asks [`decide`](crate::ir::decide), and what it makes of the answers: states of nodes, and of what lies
//! below a directory without being named by any rule.

use super::codes;
use crate::diagnostic::Diagnostic;
use crate::ir::{Access, Decider, Policy, RuleId, Verdict, Why};
use crate::sets::glob::{Glob, Piece};
use crate::sets::path::{AbsPath, Segment};
use crate::vocabulary::Verb;
use std::cell::RefCell;
use std::collections::BTreeMap;

/// What may be done with a node.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct State {
    pub read: bool,
    pub write: bool,
    pub exec: bool,
}

impl State {
    pub fn permits(self, verb: Verb) -> bool {
        match verb {
            Verb::Write => self.write,
            Verb::Exec => self.exec,
            _ => self.read,
        }
    }
}

pub(super) struct Judge<'a> {
    pub policy: &'a Policy,
    /// What it takes to know what is allowed.
    grants: Decider<'a>,
    /// The same with every rule, where it is wanted which one denies.
    whole: Option<Decider<'a>>,
    fresh: Vec<u8>,
    /// Allows that no target can hold, by rule: what they permit though reading it is not.
    blind: RefCell<BTreeMap<RuleId, Diagnostic>>,
}

impl<'a> Judge<'a> {
    /// `errors_alone`: which rule denies what nothing allows is not wanted.
    ///
    /// # Errors
    /// When the policy's globs together match every name.
    pub fn new(policy: &'a Policy, errors_alone: bool) -> Result<Self, Box<Diagnostic>> {
        let fresh = fresh(policy)?;
        let whole = (!errors_alone).then(|| Decider::new(policy));
        Ok(Self { policy, grants: Decider::of_grants(policy), whole, fresh, blind: RefCell::default() })
    }

    /// What `decide` says.
    pub fn verdict(&self, verb: Verb, path: &AbsPath) -> Verdict {
        self.whole.as_ref().unwrap_or(&self.grants).decide(&access(verb, path.clone()))
    }

    pub fn state(&self, path: &AbsPath) -> State {
        let read = self.verdict(Verb::Read, path);
        if !read.allowed && read.why != Why::Default {
            return State { read: false, write: false, exec: false };
        }
        let [write, exec] = [Verb::Write, Verb::Exec].map(|verb| {
            let verdict = self.verdict(verb, path);
            if verdict.allowed && !read.allowed {
                self.report_blind(verb, path, &verdict);
            }
            verdict.allowed && read.allowed
        });
        State { read: read.allowed, write, exec }
    }

    /// Whether a path may be a literal target of a rule that decides something: never `false` for one.
    pub fn may_be_named(&self, path: &AbsPath) -> bool {
        self.grants.may_be_named(path)
    }

    /// Whether the node itself may be read.
    pub fn reads(&self, path: &AbsPath) -> bool {
        self.verdict(Verb::Read, path).allowed
    }

    /// A child of a directory that no rule names.
    pub fn unnamed_child(&self, path: &AbsPath) -> AbsPath {
        path.join(&self.fresh)
    }

    pub fn fresh(&self) -> &[u8] {
        &self.fresh
    }

    /// The state of everything below a directory that no rule names.
    pub fn below(&self, path: &AbsPath) -> State {
        self.state(&self.unnamed_child(path))
    }

    fn report_blind(&self, verb: Verb, path: &AbsPath, verdict: &Verdict) {
        let Some(rule) = verdict.decisive.first() else { return };
        self.blind.borrow_mut().entry(*rule).or_insert_with(|| {
            let shown = if path.name() == Some(&self.fresh) {
                format!("everything below `{}`", path.parent().unwrap_or_else(AbsPath::root))
            } else {
                format!("`{path}`")
            };
            Diagnostic::new(&codes::GRANT_WITHOUT_READ, format!("{verb} is allowed on {shown}, but reading it is not"))
                .label(self.policy.rules[rule.0 as usize].span, format!("allows {verb}"))
                .help(format!("write `allow read, {verb}`, or leave the rule out"))
                .witness(path.to_string())
        });
    }

    /// The allows that no target can hold, once every path was judged.
    pub fn errors(&self) -> Vec<Diagnostic> {
        self.blind.take().into_values().collect()
    }
}

fn access(verb: Verb, path: AbsPath) -> Access {
    match verb {
        Verb::Write => Access::Write(path),
        Verb::Exec => Access::Exec(path),
        Verb::Socket => Access::Socket(path),
        _ => Access::Read(path),
    }
}

/// A name that a glob of the policy matches only if it matches every name (`*`).
///
/// What lies below a directory is judged by a child of this name. It stands for every child that is not a point of its
/// own; a child which a narrower glob matches is one, since globs are expanded.
fn fresh(policy: &Policy) -> Result<Vec<u8>, Box<Diagnostic>> {
    let globs = narrow_globs(policy);
    let first = ["~", "Q", "0", ".", "_", "z", "\u{1f600}", "%"];
    let body = ["q\u{3a9}~", "", "--------------------------------------------~"];
    let last = ["", "~", "\u{3a9}", "7"];
    let mut candidates = Vec::new();
    for first in first {
        for body in body {
            for last in last {
                candidates.push([first, body, last].concat().into_bytes());
            }
        }
    }
    candidates.retain(|name| name != b".");
    let least = |name: &&Vec<u8>| globs.iter().find(|(glob, _)| glob.matches(name)).is_none();
    if let Some(name) = candidates.iter().find(least) {
        return Ok(name.clone());
    }
    let mut error = Diagnostic::new(
        &codes::UNENFORCEABLE,
        "the globs of this policy match every name between them, so that no directory can be decided as a whole",
    )
    .help("write `*` for every name");
    let name = &candidates[0];
    for (_, rule) in globs.iter().filter(|(glob, _)| glob.matches(name)).take(2) {
        error = error.label(policy.rules[*rule].span, "one of them");
    }
    Err(Box::new(error))
}

fn narrow_globs(policy: &Policy) -> Vec<(&Glob, usize)> {
    let mut globs = Vec::new();
    for (at, rule) in policy.rules.iter().enumerate() {
        for pattern in rule.file_patterns() {
            for segment in &pattern.segments {
                if let Segment::Glob(glob) = segment
                    && !matches!(glob.0[..], [Piece::AnyRun])
                {
                    globs.push((glob, at));
                }
            }
        }
    }
    globs
}
