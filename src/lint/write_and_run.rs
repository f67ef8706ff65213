//! Places that the command may both write and run: what it brings along, or fetches, it can start.
//!
//! In the workspace that is the point of most runs, and `$TMP` is gone afterwards: neither is looked at.

use super::granted::{Granted, allows};
use super::place;
use crate::diagnostic::codes;
use crate::diagnostic::{Diagnostic, Label};
use crate::ir::{Access, Rule};
use crate::sets::path::{AbsPath, PathSet};
use crate::source::Span;
use crate::vocabulary::{Effect, Verb};

codes! {
    /// # `write-and-run`
    ///
    /// ## What it says
    /// The command may write files in a place and run them there, and the place is neither `$WORKSPACE` nor `$TMP`.
    ///
    /// ## Why
    /// What may be read may be run unless a rule says otherwise, so data that is fetched into such a place is a program when the
    /// command wants it to be; and it is still there when somebody else runs it.
    ///
    /// ## Example
    /// ```policy
    /// srt 1
    /// use std/system
    /// default read deny
    /// allow read, write /srv/data
    /// ```
    ///
    /// ## Use instead
    /// ```policy
    /// srt 1
    /// use std/system
    /// default read deny
    /// allow read, write /srv/data
    /// # lint: allow(exec-by-content) what is fetched here is data
    /// deny  exec        /srv/data
    /// ```
    pub WRITE_AND_RUN = "write-and-run", Warning;
}

/// One finding for each rule that makes such a place writable.
pub(super) fn check(granted: &Granted<'_, '_>) -> Vec<Diagnostic> {
    let policy = granted.policy();
    let everywhere = place::tree("/", policy);
    // Nodes in `/dev` and `/proc` are the kernel's: what is written there is not kept.
    let own = ["$WORKSPACE", "$TMP", "$GIT_COMMON_DIR", "/dev", "/proc"].map(|name| place::tree(name, policy));
    let outside = PathSet { include: vec![everywhere], exclude: own.to_vec() };
    let rules = allows(policy, Verb::Write);
    rules
        .filter_map(|(id, rule)| {
            let path = granted.lightly(|| granted.path(id, &outside, &[Verb::Exec]))?;
            let message = "what the command writes here it may run, and so may whoever finds it afterwards";
            let (run, text) = run_by(granted, &path);
            let own = if run == rule.span { "written and run by this" } else { "written by this" };
            let mut diagnostic = Diagnostic::new(&WRITE_AND_RUN, message).label(rule.span, own);
            diagnostic.labels.extend((run != rule.span).then(|| Label { span: run, text: text.to_owned() }));
            let help = "add `deny exec` for the place, or write to `$TMP`";
            Some(diagnostic.witness(format!("{} {path}", Verb::Write)).help(help))
        })
        .collect()
}

/// What permits that a path is run: a rule about running, or what lets it be read.
fn run_by(granted: &Granted<'_, '_>, path: &AbsPath) -> (Span, &'static str) {
    let policy = granted.policy();
    let decisive = granted.decide(&Access::Exec(path.clone())).decisive;
    let allow = |rule: &&Rule| rule.effect == Effect::Allow;
    match decisive.iter().map(|id| policy.rule(*id)).find(allow) {
        Some(rule) if rule.verb == Verb::Exec => (rule.span, "and run by this"),
        Some(rule) => (rule.span, "and run by this, since what may be read may be run"),
        None => (policy.default_read.span, "and run by this, since what may be read may be run"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::lint::tests::{asked, bound, lines, symbolic};

    #[test]
    fn what_is_written_is_not_run() {
        for (rules, expected) in [
            ("allow read, write /srv/data", true),
            ("allow read, write [$WORKSPACE, $TMP, $TMP/x, $WORKSPACE/build, $GIT_COMMON_DIR, /dev/null]", false),
            ("allow read, write /srv/data\ndeny exec /srv/data", false),
            ("allow read, write /srv/data\nforbid exec /", false),
            ("allow read, write /srv/data\ndeny exec /srv/data\nallow exec /srv/data/bin", true),
            ("allow read, write /srv/data\ndeny exec /srv/data/*", true),
            ("allow write /srv/data", false),
            ("allow read /srv/data", false),
            ("allow read, write ~", true),
        ] {
            let text = format!("srt 1\ndefault read deny\n{rules}\n");
            for policy in [symbolic(&text), bound(&text)] {
                let said = lines(&policy, &text, &asked(&policy, check));
                assert_eq!(!said.is_empty(), expected, "{rules}: {said}");
            }
        }
    }
}
