//! The values of the variables: which ones a policy uses, whether each is what it may be, and what becomes of rules whose
//! variable has none.

use super::codes::{DROPPED_RULE, UNSET_VARIABLE, VARIABLE_VALUE};
use super::link::Links;
use crate::diagnostic::Diagnostic;
use crate::host::Host;
use crate::ir::{Policy, Subject, Unset};
use crate::sets::host;
use crate::sets::path::{AbsPath, Pattern, Start};
use crate::sets::peer::{Endpoint, PeerSet};
use crate::source::Span;
use crate::vocabulary::System;
use std::collections::BTreeMap;

/// The values that were found good, as they are written.
pub(super) type Values = BTreeMap<String, String>;

/// The values that are paths, as paths.
pub(super) type Places = BTreeMap<String, AbsPath>;

/// Those of the values that are absolute, normalised paths.
pub(super) fn places(values: &Values) -> Places {
    values.iter().filter_map(|(name, value)| Some((name.clone(), AbsPath::parse(value).ok()?))).collect()
}

/// The directories of `PATH`, as far as they are absolute.
pub(super) fn search_path(system: System, host: &dyn Host) -> Vec<AbsPath> {
    let path = host.variable("env.PATH").unwrap_or_default();
    let places: Vec<String> = match system {
        System::Windows => path.split(';').map(|place| place.replace('\\', "/")).collect(),
        System::Linux | System::Macos => path.split(':').map(str::to_owned).collect(),
    };
    places.iter().filter_map(|place| AbsPath::parse(place.trim_end_matches('/')).ok()).collect()
}

/// The names of a subject's variables.
pub(super) fn names(subject: &Subject) -> impl Iterator<Item = &str> {
    fn path(pattern: &Pattern) -> Option<&str> {
        if let Start::Variable(name) = &pattern.start { Some(name) } else { None }
    }
    fn host(pattern: &host::Pattern) -> Option<&str> {
        if let host::Pattern::Variable(name) = pattern { Some(name) } else { None }
    }
    let (paths, hosts) = match subject {
        Subject::Paths(set) => (Some(set), None),
        Subject::Peers(PeerSet { endpoint: Endpoint::Hosts(set), .. }) => (None, Some(set)),
        Subject::Peers(_) | Subject::Names(_) => (None, None),
    };
    let paths = paths.into_iter().flat_map(|set| set.include.iter().chain(&set.exclude)).filter_map(path);
    let hosts = hosts.into_iter().flat_map(|set| set.include.iter().chain(&set.exclude)).filter_map(host);
    paths.chain(hosts)
}

/// Asks for the value of every variable in use, and leaves no rule or expectation whose variable has none: it is
/// dropped, replaced, or an error, as its `?` or `or` says.
pub(super) fn settle(policy: &mut Policy, host: &dyn Host, diagnostics: &mut Vec<Diagnostic>) -> Values {
    let mut settler = Settler { host, values: BTreeMap::new(), diagnostics };
    if policy.system == System::Linux {
        // Made for the run; `private` says where.
        settler.values.insert("TMP".to_owned(), "/tmp".to_owned());
    }
    // Always of use to whoever runs the policy, whether it names them or not.
    for name in ["HOME", "WORKSPACE"] {
        settler.value(name);
    }
    let mut dropped = Vec::new();
    policy.rules.retain_mut(|rule| {
        let kept = settler.keep(&mut rule.subject, &rule.unset, rule.span, "rule");
        dropped.extend((!kept).then_some(rule.span));
        kept
    });
    // What is said of a rule that is left out is left out with it.
    let rules = &policy.rules;
    policy.suppressions.retain(|suppression| {
        !dropped.iter().any(|span| suppression.covers(*span)) || rules.iter().any(|rule| suppression.covers(rule.span))
    });
    policy.expects.retain_mut(|expect| settler.keep(&mut expect.subject, &expect.unset, expect.span, "expectation"));
    policy.ignores.retain_mut(|ignore| settler.keep(&mut ignore.subject, &ignore.unset, ignore.span, "statement"));
    policy.assumes.retain(|assume| {
        // An assumption about a variable that nothing uses says nothing; one in terms of an unset one can't hold.
        settler.values.contains_key(&assume.variable) && {
            let subject = Subject::Paths(assume.paths.clone());
            let unset = names(&subject).find(|name| settler.value(name).is_none()).map(str::to_owned);
            unset.inspect(|name| settler.refuse(name, assume.span)).is_none()
        }
    });
    settler.values
}

struct Settler<'a> {
    host: &'a dyn Host,
    values: Values,

    diagnostics: &'a mut Vec<Diagnostic>,
}

impl Settler<'_> {
    /// Whether a variable has a value.
    fn has(&mut self, name: &str) -> bool {
        self.values.contains_key(name) || self.value(name).is_some()
    }

    fn value(&mut self, name: &str) -> Option<&str> {
        if !self.values.contains_key(name) {
            let mut value = self.host.variable(name)?;
            // The one liberty that is taken with a value: environment variables often end in a slash.
            while value.len() > 1 && value.ends_with('/') {
                value.pop();
            }
            self.values.insert(name.to_owned(), value);
        }
        self.values.get(name).map(String::as_str)
    }

    fn unset(&mut self, subject: &Subject) -> Option<String> {
        names(subject).find(|name| !self.has(name)).map(str::to_owned)
    }

    fn keep(&mut self, subject: &mut Subject, unset: &Unset, span: Span, noun: &str) -> bool {
        let Some(name) = self.unset(subject) else { return true };
        match unset {
            Unset::Refuse => self.refuse(&name, span),
            Unset::Drop => {
                let message = format!("`${name}` has no value here, and this {noun} is left out");
                let diagnostic = Diagnostic::new(&DROPPED_RULE, message).label(span, "left out");
                self.diagnostics.push(diagnostic.help("set the variable if the command needs this"));
                return false;
            }
            Unset::Instead(other) => match self.unset(other) {
                Some(name) => self.refuse(&name, span),
                None => *subject = other.clone(),
            },
        }
        true
    }

    fn refuse(&mut self, name: &str, span: Span) {
        let diagnostic = Diagnostic::new(&UNSET_VARIABLE, format!("`${name}` has no value here"));
        let help = match name {
            "GIT_COMMON_DIR" => {
                "the workspace's `.git` file leads to no repository that knows this workspace: mend it with `git worktree repair`"
                    .to_owned()
            }
            "HOME" | "RUNTIME" => format!("set the environment variable `{}`", if name == "HOME" { name } else { "XDG_RUNTIME_DIR" }),
            _ => match name.strip_prefix("env.") {
                Some(variable) => format!("set `{variable}`, or write `${name}?` in an `allow`, or `${name} or TARGET`"),
                None => format!("give `--define {name}=VALUE`"),
            },
        };
        self.diagnostics.push(diagnostic.label(span, "used here").help(help));
    }
}

/// Whether each value is what the policy may assume of it.
pub(super) fn judge(policy: &Policy, values: &Values, links: &mut Links<'_>, diagnostics: &mut Vec<Diagnostic>) {
    let mut used: BTreeMap<&str, Span> = BTreeMap::new();
    let subjects = policy.rules.iter().map(|rule| (&rule.subject, rule.span));
    let subjects = subjects.chain(policy.expects.iter().map(|expect| (&expect.subject, expect.span)));
    let subjects = subjects.chain(policy.ignores.iter().map(|ignore| (&ignore.subject, ignore.span)));
    // What a host's value is, is judged where it is put in.
    for (subject, span) in subjects.filter(|(subject, _)| matches!(subject, Subject::Paths(_))) {
        for name in names(subject) {
            used.entry(name).or_insert(span);
        }
    }
    let mut judge = Judge { values, links, diagnostics };
    for (name, span) in &used {
        judge.built_in(name, *span);
    }
    for assume in &policy.assumes {
        let Some(place) = judge.place(&assume.variable) else { continue };
        let patterns: Vec<_> = assume.paths.include.iter().filter_map(|pattern| judge.substituted(pattern)).collect();
        let held = if assume.inside {
            patterns.iter().any(|pattern| pattern.contains(&place))
        } else {
            !patterns.iter().any(|pattern| meets(pattern, &place))
        };
        if !held {
            let message = format!("`${}` is `{place}`, which the policy assumes it is not", assume.variable);
            let diagnostic = Diagnostic::new(&VARIABLE_VALUE, message).label(assume.span, "assumed here");
            judge.diagnostics.push(diagnostic.help("give another value, or change the assumption"));
        }
    }
}

/// Whether a pattern matches something in the tree at a place.
fn meets(pattern: &Pattern, place: &AbsPath) -> bool {
    let tree = Pattern::literal(place, crate::vocabulary::Reach::Tree);
    crate::sets::path::PathSet::from(pattern.clone()).overlap(&tree.into()).is_some()
}

struct Judge<'a, 'h> {
    values: &'a Values,
    links: &'a mut Links<'h>,
    diagnostics: &'a mut Vec<Diagnostic>,
}

impl Judge<'_, '_> {
    /// Where a variable's value is, links followed.
    fn place(&mut self, name: &str) -> Option<AbsPath> {
        let path = AbsPath::parse(self.values.get(name)?).ok()?;
        Some(self.links.follow(&path).place)
    }

    fn substituted(&mut self, pattern: &Pattern) -> Option<Pattern> {
        let bound = match &pattern.start {
            Start::Variable(name) => pattern.bound(name, &self.place(name)?),
            _ => pattern.clone(),
        };
        Some(bound)
    }

    fn say(&mut self, span: Span, message: String, help: &str) {
        let diagnostic = Diagnostic::new(&VARIABLE_VALUE, message).label(span, "used here");
        self.diagnostics.push(diagnostic.help(help));
    }

    fn built_in(&mut self, name: &str, span: Span) {
        let Some(value) = self.values.get(name) else { return };
        let path = match AbsPath::parse(value) {
            Ok(path) if !value.chars().any(char::is_control) => path,
            _ => {
                let message =
                    format!("`${name}` is `{}`, which is not an absolute, normalised path", value.escape_default());
                return self.say(
                    span,
                    message,
                    "give it a path from `/`, without `.`, `..`, `//` and control characters",
                );
            }
        };
        let place = self.links.follow(&path).place;
        match name {
            "HOME" if place.segments.is_empty() => {
                let message =
                    "`$HOME` is `/`, and a rule for a home directory would be one for the whole disk".to_owned();
                self.say(span, message, "set `HOME` to a directory that is yours alone");
            }
            "WORKSPACE" => self.workspace(&place, span),
            _ => {}
        }
    }

    fn workspace(&mut self, place: &AbsPath, span: Span) {
        let help = "start in a project's directory, or give `--workspace DIRECTORY`";
        if place.segments.is_empty() {
            let message = "the workspace is `/`, and a rule for it would be one for the whole disk".to_owned();
            return self.say(span, message, help);
        }
        let Some(home) = self.place("HOME") else { return };
        if *place == home {
            let message =
                format!("the workspace is your home directory, `{home}`: a rule for it would hand over all you own");
            self.say(span, message, help);
        } else if home.is_inside(place) {
            let message = format!("the workspace `{place}` holds your home directory, `{home}`");
            self.say(span, message, help);
        } else if let Some([first, ..]) = place.below(&home)
            && first.starts_with(b".")
        {
            let dot = home.join(first);
            let message = format!("the workspace `{place}` lies in `{dot}`, where programs keep their settings");
            self.say(span, message, help);
        }
    }
}
