//! The lists of `std/shell-config`, read for the policy at hand: what runs outside the sandbox without being asked for.
//!
//! There is no second copy of them: what the module denies is what may not be writable. They are read once a lint needs
//! them.

use super::granted::{self, Granted};
use super::place;
use crate::ir::{Policy, Rule, RuleId, Subject, more_specific};
use crate::sets::path::{AbsPath, PathSet, Pattern, Segment, Start};
use crate::vocabulary::{Effect, System, Verb};
use rustc_hash::FxHashMap;
use std::cell::OnceCell;
use std::sync::Arc;

/// Why the module lists directories in which a shell looks for programs.
const ON_PATH: &str = "a program on PATH runs outside the sandbox";

/// What the names at the top of a home begin with, or are, below which something is listed.
const TOPS_OF_HOME: &[&str] = &["bin", "go", "perl5", "Library", "Applications", "Documents", "AppData"];
/// The names at the top of the disk below which something is listed.
const TOPS: &[&str] = &["etc", "var", "private", "Library", "opt"];

/// One line of the lists.
pub(super) struct Listed {
    pub set: PathSet,
    /// The module's own reason.
    pub why: Arc<str>,
    /// It is in the workspace, or in the repository that the workspace is of.
    pub in_workspace: bool,
    /// It is a directory of programs.
    pub on_path: bool,
}

pub(super) struct Lists<'a, 'p> {
    policy: &'p Policy,
    rules: fn(System) -> Vec<Rule>,
    listed: OnceCell<Vec<Listed>>,
    /// By the lines, the rule of the policy that says the same.
    denied: OnceCell<Vec<Option<RuleId>>>,
    granted: &'a Granted<'a, 'p>,
}

impl<'a, 'p> Lists<'a, 'p> {
    /// `rules` are those of the module.
    pub fn new(granted: &'a Granted<'a, 'p>, rules: fn(System) -> Vec<Rule>) -> Self {
        let policy = granted.policy();
        Self { policy, rules, listed: OnceCell::new(), denied: OnceCell::new(), granted }
    }

    pub fn all(&self) -> &[Listed] {
        self.listed.get_or_init(|| {
            let policy = self.policy;
            let denies = (self.rules)(policy.system).into_iter().filter(|rule| {
                rule.verb == Verb::Write && rule.effect == Effect::Deny
            });
            let listed = denies.filter_map(|rule| {
                let Subject::Paths(set) = rule.subject else { return None };
                let local = |pattern: &Pattern| {
                    matches!(&pattern.start, Start::Variable(name) if matches!(&**name, "WORKSPACE" | "GIT_COMMON_DIR"))
                };
                let in_workspace = set.include.iter().all(local);
                let why = rule.because.unwrap_or_else(|| "".into());
                let on_path = *why == *ON_PATH;
                let bound = |patterns: Vec<Pattern>| patterns.into_iter().map(|one| place::bound(one, policy)).collect();
                let set = PathSet { include: bound(set.include), exclude: bound(set.exclude) };
                Some(Listed { set, why, in_workspace, on_path })
            });
            listed.collect()
        })
    }

    /// A path of a line that `wanted` takes, which this rule lets be written.
    pub fn written(&self, id: RuleId, wanted: impl Fn(&Listed) -> bool) -> Option<(&Listed, AbsPath)> {
        let listed = self.all().iter().zip(self.denied()).filter(|(listed, _)| wanted(listed));
        let Subject::Paths(own) = &self.policy.rule(id).subject else { return None };
        let near = listed.filter(|(listed, _)| granted::near(own, &listed.set).next().is_some());
        // As the module says it: most are closed so.
        let open = near.filter(|(_, deny)| deny.is_none_or(|deny| more_specific(self.policy, id, deny)));
        let mut listed: Vec<&Listed> = open.map(|(listed, _)| listed).collect();
        // What the rule names comes before what might be made below it.
        let named = |listed: &Listed| own.include.iter().any(|own| listed.set.contains(&own.literal_prefix()));
        listed.sort_by_key(|listed| !named(listed));
        listed.into_iter().find_map(|listed| Some((listed, self.granted.path(id, &listed.set, &[])?)))
    }

    /// Whether the policy has a line of the lists, which must be one of these.
    pub fn uses(&self, listed: &Listed) -> bool {
        self.all().iter().zip(self.denied()).any(|(one, deny)| std::ptr::eq(one, listed) && deny.is_some())
    }

    /// Looked up once a line, and not once a rule and line.
    fn denied(&self) -> &[Option<RuleId>] {
        self.denied.get_or_init(|| {
            let rules = self.policy.rules_of(Verb::Write).filter(|(_, rule)| rule.effect == Effect::Deny);
            let sets = rules.filter_map(|(id, rule)| match &rule.subject {
                Subject::Paths(set) => Some((set, id)),
                _ => None,
            });
            let sets: FxHashMap<&PathSet, RuleId> = sets.collect();
            self.all().iter().map(|listed| sets.get(&listed.set).copied()).collect()
        })
    }
}

/// Whether a pattern may reach something listed outside the workspace; `false` where what it begins with tells that it does
/// not, so that the lists need not be read.
pub(super) fn is_near(policy: &Policy, pattern: &Pattern) -> bool {
    let inside = |name: &str| pattern.begins_inside(&place::variable(name, policy));
    let home = place::variable("HOME", policy);
    let top = |pattern: &Pattern, depth: usize, tops: &[&str]| match pattern.segments.get(depth) {
        Some(Segment::Literal(name)) => name.starts_with(b".") || tops.iter().any(|top| top.as_bytes() == &**name),
        _ => true,
    };
    if pattern.begins_inside(&home) {
        return top(pattern, home.segments.len(), TOPS_OF_HOME);
    }
    if inside("WORKSPACE") || inside("TMP") {
        return false;
    }
    match &pattern.start {
        Start::Root => home.is_inside(&pattern.literal_prefix()) || top(pattern, 0, TOPS),
        Start::Variable(_) | Start::Drive(_) => true,
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::*;
    use crate::lint::tests::{asked, bound, module, symbolic_on};

    #[test]
    fn what_is_listed_is_near() {
        for system in System::ALL {
            let policy = symbolic_on(*system, "srt 1\ndefault read deny\n");
            asked(&policy, |granted| {
                let lists = Lists::new(granted, module);
                assert!(lists.all().len() > 300, "{}", lists.all().len());
                let outside = lists.all().iter().filter(|listed| !listed.in_workspace);
                for pattern in outside.flat_map(|listed| &listed.set.include) {
                    assert!(is_near(&policy, pattern), "{pattern}");
                }
                assert!(lists.all().iter().filter(|listed| listed.on_path).count() > 20);
                assert!(lists.all().iter().all(|listed| !listed.why.is_empty()));
            });
        }
    }

    #[test]
    fn most_of_what_is_written_is_not_near() {
        let policy = bound("srt 1\ndefault read deny\n");
        for (place, near) in [
            ("$WORKSPACE/x", false),
            ("$TMP", false),
            ("~/src", false),
            ("/srv/data", false),
            ("/tmp/x", false),
            ("~", true),
            ("/", true),
            ("/home", true),
            ("~/*", true),
            ("~/.cache", true),
            ("**/x", true),
            ("/etc", true),
        ] {
            assert_eq!(is_near(&policy, &place::tree(place, &policy)), near, "{place}");
        }
    }
}
