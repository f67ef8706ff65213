//! What is said of a rule over names that are not there, in words.

use crate::backend::bubblewrap::lower::codes;
use crate::diagnostic::Diagnostic;
use crate::ir::{Policy, Rule};
use crate::sets::path::AbsPath;
use crate::vocabulary::Verb;
use std::collections::BTreeMap;

/// One finding for all rules but those that a comment speaks of, and one for those of each comment: what is accepted of one
/// rule is not of the others.
pub(super) fn from_outside(policy: &Policy, outside: &[(&Rule, AbsPath)]) -> Vec<Diagnostic> {
    let comments = || policy.suppressions.iter().enumerate();
    let accepting = |rule: &Rule| {
        let own = |comment: &crate::ir::Suppression| {
            comment.code == codes::LATER_FROM_OUTSIDE.name && comment.covers(rule.span)
        };
        comments().find(|(_, comment)| own(comment)).map(|(index, _)| index)
    };
    let mut groups: BTreeMap<Option<usize>, Vec<&(&Rule, AbsPath)>> = BTreeMap::new();
    for one in outside {
        groups.entry(accepting(one.0)).or_default().push(one);
    }
    let mut gaps = Vec::new();
    for group in groups.values() {
        let (rule, witness) = group[0];
        let others = match group.len() - 1 {
            0 => String::new(),
            1 => ", and so for 1 more rule".to_owned(),
            more => format!(", and so for {more} more rules"),
        };
        let message =
            format!("`{witness}` does not exist; if something outside makes it during the run it can be read{others}");
        gaps.push(
            Diagnostic::new(&codes::LATER_FROM_OUTSIDE, message)
                .label(rule.span, "denied where it exists at the start")
                .help("`srt run --strict-reads` denies it when it appears")
                .witness(format!("read {witness}")),
        );
    }
    gaps
}

pub(super) fn later_names(rule: &Rule, witness: &AbsPath) -> Diagnostic {
    Diagnostic::new(
        &codes::LATER_NAMES,
        format!("a file made later can have a name that this rule denies, such as `{witness}`"),
    )
    .label(rule.span, "held for what exists at the start")
    .help(if rule.verb == Verb::Exec {
        "accept it with `# lint: allow(later-names) REASON` above the statement, or deny running what is in the directory"
    } else {
        "run it by `srt run`, which holds it; or accept it with `# lint: allow(later-names) REASON` above the statement"
    })
    .witness(format!("{} {witness}", rule.verb))
}

pub(super) fn not_granted(rule: &Rule, witness: &AbsPath) -> Diagnostic {
    Diagnostic::new(&codes::NOT_GRANTED, format!("`{witness}` does not exist, so that nothing is granted there"))
        .label(rule.span, "granted for what exists at the start")
        .help("make it before the command is started")
        .witness(format!("{} {witness}", rule.verb))
}

pub(super) fn shown(rule: &Rule, witness: &AbsPath) -> Diagnostic {
    let message = format!("`{witness}` is shown all the same: the sandbox has a `/dev` and a `/proc` of its own");
    Diagnostic::new(&codes::SHOWN_AS_A_WHOLE, message)
        .label(rule.span, "names a part of one")
        .help("deny `/dev` or `/proc` as a whole, or leave the rule out")
        .witness(format!("{} {witness}", rule.verb))
}

pub(super) fn not_there(rule: &Rule, witness: &AbsPath) -> Diagnostic {
    let message = if witness.is_inside(&AbsPath::root().join("dev")) {
        format!("`{witness}` is not there: `/dev` is the sandbox's own")
    } else {
        format!("`{witness}` is covered: nothing of the host is reached through the sandbox's own `/proc`")
    };
    Diagnostic::new(&codes::PRIVATE_PLACE, message).label(rule.span, "this rule")
}
