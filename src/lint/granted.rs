//! What one `allow` permits by itself: paths that are allowed because of it, in spite of every rule that denies.
//!
//! A path that some other rule opens is that rule's. `analysis` answers; what it can't tell within its budget is kept to be
//! said, and is not taken for no.

use super::undecided::undecided;
use crate::analysis::{Answer, Budget, Study};
use crate::diagnostic::{Diagnostic, Level};
use crate::ir::{Access, Policy, Rule, RuleId, Subject, Verdict};
use crate::sets::path::{AbsPath, PathSet, Pattern, Segment, Start};
use crate::vocabulary::{Effect, Verb};
use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;

/// Steps for one question.
const STEPS: u64 = 2_000_000;

/// The rules that lints look at: each `allow` that no embedded module brings. What a module allows is said of the module.
pub(super) fn allows(policy: &Policy, verb: Verb) -> impl Iterator<Item = (RuleId, &Rule)> {
    policy.rules_of(verb).filter(|(_, rule)| rule.effect == Effect::Allow && super::is_given(rule))
}

/// What is permitted, for those who ask about many rules.
pub(super) struct Granted<'s, 'p> {
    study: &'s Study<'p>,
    /// By rule, whether an error depends on it.
    unknown: RefCell<BTreeMap<RuleId, bool>>,
    grave: Cell<bool>,
}

impl<'s, 'p> Granted<'s, 'p> {
    pub fn new(study: &'s Study<'p>) -> Self {
        Self { study, unknown: RefCell::default(), grave: Cell::new(true) }
    }

    pub fn policy(&self) -> &'p Policy {
        self.study.policy()
    }

    /// A shortest path of `places` that a rule, an `allow` of paths, permits, and on which each of `verbs` is permitted
    /// too.
    pub fn path(&self, id: RuleId, places: &PathSet, verbs: &[Verb]) -> Option<AbsPath> {
        let Subject::Paths(set) = &self.policy().rule(id).subject else { return None };
        // Nearly all that is asked about lies elsewhere.
        let include: Vec<Pattern> = near(set, places).cloned().collect();
        if include.is_empty() {
            return None;
        }
        let places = Subject::Paths(PathSet { include, exclude: places.exclude.clone() });
        // Nearly always what the rule permits is permitted to the other verbs too, or it permits nothing.
        let found = self.ask(id, &places, &[])?;
        let permitted = |verb: &Verb| access(*verb, found.clone()).is_some_and(|access| self.decide(&access).allowed);
        if verbs.iter().all(permitted) { Some(found) } else { self.ask(id, &places, verbs) }
    }

    fn ask(&self, id: RuleId, places: &Subject, verbs: &[Verb]) -> Option<AbsPath> {
        match self.study.permitted_alone(id, places, verbs, &mut Budget::new(STEPS)) {
            Answer::Some(Access::Read(path) | Access::Write(path) | Access::Exec(path) | Access::Socket(path)) => {
                Some(path)
            }
            Answer::Some(_) | Answer::None => None,
            Answer::Unknown => {
                *self.unknown.borrow_mut().entry(id).or_default() |= self.grave.get();
                None
            }
        }
    }

    /// As [`decide`](crate::ir::decide()), for many accesses.
    pub fn decide(&self, access: &Access) -> Verdict {
        self.study.decide(access)
    }

    /// Asks what is no error whatever comes out.
    pub fn lightly<R>(&self, ask: impl FnOnce() -> R) -> R {
        let before = self.grave.replace(false);
        let answer = ask();
        self.grave.set(before);
        answer
    }

    /// One finding for each rule of which it is not known what it permits: an error where what it could permit is one.
    pub fn unknown(&self) -> Vec<Diagnostic> {
        let one = |(id, grave): (&RuleId, &bool)| {
            let mut diagnostic = undecided("what this hands over", self.policy().rule(*id).span);
            if !grave {
                diagnostic.level = Level::Warning;
            }
            diagnostic
        };
        self.unknown.borrow().iter().map(one).collect()
    }
}

/// Doing what a verb of paths is about.
pub(super) fn access(verb: Verb, path: AbsPath) -> Option<Access> {
    Some(match verb {
        Verb::Read => Access::Read(path),
        Verb::Write => Access::Write(path),
        Verb::Exec => Access::Exec(path),
        Verb::Socket => Access::Socket(path),
        _ => return None,
    })
}

/// The patterns of some places that may share a path with a set.
pub(super) fn near<'a>(set: &'a PathSet, places: &'a PathSet) -> impl Iterator<Item = &'a Pattern> {
    places.include.iter().filter(|pattern| set.include.iter().any(|own| may_meet(own, pattern)))
}

/// Whether two patterns may share a path; `false` where what they begin with keeps them apart.
fn may_meet(one: &Pattern, other: &Pattern) -> bool {
    if one.start != other.start {
        let anywhere =
            |p: &Pattern| p.start == Start::Root && matches!(p.segments.first(), None | Some(Segment::AnyDepth));
        return anywhere(one) || anywhere(other);
    }
    for pair in one.segments.iter().zip(&other.segments) {
        match pair {
            (Segment::AnyDepth, _) | (_, Segment::AnyDepth) => return true,
            (Segment::Literal(one), Segment::Literal(other)) if one != other => return false,
            (Segment::Literal(name), Segment::Glob(glob)) | (Segment::Glob(glob), Segment::Literal(name))
                if !glob.matches(name) =>
            {
                return false;
            }
            _ => {}
        }
    }
    true
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::*;
    use crate::lint::place;
    use crate::lint::tests::{asked, symbolic};

    /// The path of a place that the first rule lets be written, if any.
    fn found(rules: &str, place: &str) -> Option<String> {
        let policy = symbolic(&format!("srt 1\ndefault read allow\n{rules}"));
        let (id, _) = allows(&policy, Verb::Write).next().unwrap();
        let places = place::tree(place, &policy).into();
        asked(&policy, |granted| granted.path(id, &places, &[])).map(|path| path.to_string())
    }

    #[test]
    fn a_rule_permits_what_nothing_denies() {
        for (rules, place, expected) in [
            ("allow write ~", "~/.bashrc", Some("$HOME/.bashrc")),
            ("allow write /", "~/.bashrc", Some("$HOME/.bashrc")),
            ("allow write ~/src", "~/.bashrc", None),
            ("allow write ~\ndeny write ~/.bashrc", "~/.bashrc", None),
            ("allow write ~\nforbid write **/.bashrc", "~/.bashrc", None),
            ("allow write ~\ndeny read ~/.bashrc", "~/.bashrc", None),
            // Opened by the rule itself, or by another one: then it is not this rule's.
            ("allow write ~/.bashrc\ndeny write ~", "~/.bashrc", Some("$HOME/.bashrc")),
            ("allow write ~\ndeny write ~/.bashrc\nallow write exact ~/.bashrc", "~/.bashrc", None),
            // Only part of the place is denied, or all but a part.
            ("allow write ~\ndeny write exact ~/.ssh", "~/.ssh", Some("$HOME/.ssh/a")),
            ("allow write ~\ndeny write ~/.ssh except ~/.ssh/known", "~/.ssh", Some("$HOME/.ssh/known")),
            ("allow write ~ except ~/.ssh", "~/.ssh", None),
            // What several exceptions leave.
            (
                "allow write ~\ndeny write ~/.ssh except [~/.ssh/a, ~/.ssh/b]\ndeny write ~/.ssh except [~/.ssh/b, ~/.ssh/c]",
                "~/.ssh",
                Some("$HOME/.ssh/b"),
            ),
        ] {
            let found = found(rules, place);
            let same = match (&found, expected) {
                (Some(found), Some(expected)) => found.starts_with(expected.trim_end_matches('a')),
                (found, expected) => found.is_none() && expected.is_none(),
            };
            assert!(same, "{rules}: {found:?}");
        }
    }
}
