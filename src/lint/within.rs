//! `within`: this policy permits nothing that another one does not.

use super::listed;
use super::undecided::undecided;
use crate::analysis::{self, Answer, Budget, Study};
use crate::diagnostic::Diagnostic;
use crate::diagnostic::codes;
use crate::ir::{Access, Policy, Within, decide, special};
use crate::vocabulary::{LimitKind, Verb};

codes! {
    /// # `within`
    ///
    /// ## What it says
    /// The policy claims to permit nothing that another file does not, and it permits something: an access, a variable that
    /// it sets, or more of what a limit bounds. The shortest such access is shown.
    ///
    /// ## Why
    /// The other file is a ceiling: whoever wrote it relies on it, and whoever reviews this policy need not look further.
    /// The claim may stand in the policy, or be made by `--within FILE`, or by the system's owner in
    /// `/etc/srt/ceiling.policy`, on Windows `%ProgramData%\srt\ceiling.policy`.
    ///
    /// ## Example
    /// ```policy,file-ceiling.policy
    /// srt 1
    /// default read deny
    /// allow read, write $WORKSPACE
    /// ```
    /// ```policy
    /// srt 1
    /// default read deny
    /// within "ceiling.policy"
    /// allow read ~/.ssh
    /// ```
    ///
    /// ## Use instead
    /// ```policy,file-ceiling.policy
    /// srt 1
    /// default read deny
    /// allow read, write $WORKSPACE
    /// ```
    /// ```policy
    /// srt 1
    /// default read deny
    /// within "ceiling.policy"
    /// allow read $WORKSPACE
    /// ```
    pub WITHIN = "within", Error;
}

/// Steps for one verb.
const STEPS: u64 = 10_000_000;

/// What keeps each obligation from being met: one finding a verb, and one a variable and limit.
pub fn check(study: &Study<'_>) -> Vec<Diagnostic> {
    study.policy().withins.iter().flat_map(|within| one(study, within)).collect()
}

fn one(study: &Study<'_>, within: &Within) -> Vec<Diagnostic> {
    let (policy, path) = (study.policy(), &within.path);
    let Some(ceiling) = &within.ceiling else {
        // What keeps it from being read has been said; that is no reason to believe that it permits all.
        let message = format!("that the policy is within `{path}` is not known: it cannot be read");
        let help = "mend that file, or take the line out";
        return vec![Diagnostic::new(&WITHIN, message).label(within.span, "not proved").help(help)];
    };
    let above = Study::new(ceiling);
    let mut found = Vec::new();
    for verb in Verb::ALL {
        match analysis::widened(above.whole(), study.whole(), *verb, &mut Budget::new(STEPS)) {
            Answer::None => {}
            Answer::Some(access) => found.push(more(policy, ceiling, within, &access)),
            Answer::Unknown => {
                found.push(undecided(&format!("whether `{verb}` is within `{path}`"), within.span));
            }
        }
    }
    found.extend(set(policy, ceiling, within));
    found.extend(limits(policy, ceiling, within));
    found
}

fn more(policy: &Policy, ceiling: &Policy, within: &Within, access: &Access) -> Diagnostic {
    let message = format!("this permits what `{}` does not", within.path);
    let (verb, object) = access.words();
    let mut diagnostic = Diagnostic::new(&WITHIN, message);
    match (decide(policy, access).decisive.first(), policy.default_of(verb)) {
        (Some(id), _) => {
            let rule = policy.rule(*id);
            diagnostic = diagnostic.label(rule.span, format!("permitted by this{}", listed(policy, rule, access)));
        }
        (None, Some(default)) => diagnostic = diagnostic.label(default, "permitted by this default"),
        (None, None) => {}
    }
    diagnostic = match (decide(ceiling, access).decisive.first(), ceiling.default_of(verb)) {
        (Some(id), _) => {
            let rule = ceiling.rule(*id);
            diagnostic.label(rule.span, format!("and denied by this{}", listed(ceiling, rule, access)))
        }
        (None, Some(default)) => diagnostic.label(default, "and denied by this default"),
        (None, None) => {
            diagnostic.label(ceiling.default_read.span, format!("and no `allow {verb}` of this file permits it"))
        }
    };
    let diagnostic = diagnostic.label(within.span, "this claims that it does not");
    let witness = match access {
        // A name may be allowed in both, and reach more in one.
        Access::Connect { name: Some(_), address, .. } if *address != special::NOMINAL => {
            format!("{access} at {address}")
        }
        _ => access.to_string(),
    };
    diagnostic.help(format!("add a `deny {verb} {object}`, or make the rule narrower")).witness(witness)
}

/// A value that this gives a variable which may not even pass in from the caller.
fn set<'a>(policy: &'a Policy, ceiling: &'a Policy, within: &'a Within) -> impl Iterator<Item = Diagnostic> + 'a {
    let same = |name: &String, value: &String| ceiling.set.get(name).is_some_and(|other| other.value == *value);
    let beyond = policy.set.iter().filter(move |(name, setting)| {
        !same(name, &setting.value) && !decide(ceiling, &Access::Env((*name).clone())).allowed
    });
    beyond.map(|(name, setting)| {
        let message = format!("this sets `{name}`, which `{}` neither sets so nor lets in", within.path);
        Diagnostic::new(&WITHIN, message)
            .label(setting.span, "set here")
            .label(within.span, "this claims that it is not")
            .help(format!("take the `set {name}` out"))
    })
}

/// A limit that is wider here, or missing.
fn limits<'a>(policy: &'a Policy, ceiling: &'a Policy, within: &'a Within) -> impl Iterator<Item = Diagnostic> + 'a {
    let wider =
        ceiling.limits.iter().filter(|(kind, most)| policy.limits.get(kind).is_none_or(|own| own.value > most.value));
    wider.map(|(kind, most): (&LimitKind, _)| {
        let message = match policy.limits.get(kind) {
            Some(_) => format!("`limit {kind}` is wider than that of `{}`", within.path),
            None => format!("`limit {kind}` is missing, and `{}` has one", within.path),
        };
        let mut diagnostic = Diagnostic::new(&WITHIN, message);
        if let Some(own) = policy.limits.get(kind) {
            diagnostic = diagnostic.label(own.span, "this much here");
        }
        let diagnostic = diagnostic.label(most.span, "this much there");
        diagnostic
            .label(within.span, "this claims that there is no more")
            .help(format!("write the `limit {kind}` of that file here"))
    })
}
