//! Which sockets of the host the sandbox shows, and which it does not although a rule allows connecting to them.
//!
//! Whether a connection is made is asked when the command wants it, with the path that the sandbox shows: so it is enough
//! that a socket is there.

use super::codes;
use super::cover::Cover;
use super::instances::instances;
use super::judge::Judge;
use super::tree::{Point, Tree};
use crate::diagnostic::Diagnostic;
use crate::ir::{NodeKind, Origin, Subject};
use crate::sets::path::{AbsPath, Pattern};
use crate::vocabulary::{Effect, Verb};

/// Whether what is there is a socket that the command may connect to.
pub(super) fn connects(judge: &Judge<'_>, point: &Point) -> bool {
    point.node.is_some_and(|node| node.kind == NodeKind::Socket) && judge.verdict(Verb::Socket, &point.path).allowed
}

/// One for each rule that allows connecting where nothing is shown.
pub(super) fn gaps(tree: &Tree, covers: &[Cover], judge: &Judge<'_>) -> Vec<Diagnostic> {
    let rules = judge.policy.rules_of(Verb::Socket).map(|(_, rule)| rule);
    let given = rules.filter(|rule| rule.effect == Effect::Allow && rule.origin != Origin::Std);
    given
        .filter_map(|rule| {
            let Subject::Paths(set) = &rule.subject else { return None };
            let hidden = |pattern| hidden(tree, covers, judge, pattern);
            let (path, exists) = set.include.iter().find_map(hidden)?;
            let (message, help) = if exists {
                let message = format!("`{path}` is not shown to the command, so that no socket in it is reached");
                (message, "name the sockets, or allow reading the directory")
            } else {
                let message = format!("`{path}` does not exist, so that nothing is granted there");
                (message, "start the service before the command, or allow reading the directory it is in")
            };
            let gap = Diagnostic::new(&codes::NOT_GRANTED, message)
                .label(rule.span, "granted for what exists at the start")
                .help(help);
            Some(gap.witness(format!("{} {path}", rule.verb)))
        })
        .collect()
}

/// A path that the pattern matches and the sandbox does not show, and whether something is there.
fn hidden(tree: &Tree, covers: &[Cover], judge: &Judge<'_>, pattern: &Pattern) -> Option<(AbsPath, bool)> {
    let prefix = pattern.literal_prefix();
    let at = tree.deepest(&prefix);
    let point = &tree.points[at];
    let is_there = point.path == prefix && (point.node.is_some() || point.link.is_some());
    if is_there && pattern.is_literal() && connects(judge, point) {
        // It is mounted by itself, but where there is no place for it.
        let nowhere = matches!(covers[point.parent], Cover::Devices | Cover::Proc { .. });
        return nowhere.then_some((prefix, false));
    }
    let shows = match covers[at] {
        Cover::Host { .. } => true,
        // Another kind of file, or a link, whose own place is looked at under its own name.
        Cover::Closed => is_there,
        Cover::Empty | Cover::Private { .. } | Cover::Devices | Cover::Proc { .. } => false,
    };
    if shows {
        return None;
    }
    // Those that were found at the start are mounted one by one.
    let path = instances(pattern, &prefix, judge.fresh()).into_iter().next().unwrap_or_else(|| prefix.clone());
    let path = if pattern.is_literal() { prefix } else { path };
    judge.verdict(Verb::Socket, &path).allowed.then_some((path, is_there && pattern.is_literal()))
}
