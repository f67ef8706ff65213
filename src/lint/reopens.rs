//! An `allow` that opens a `deny`.

use super::listed;
use crate::analysis::{Study, Worth};
use crate::diagnostic::codes;
use crate::diagnostic::{Diagnostic, Level};
use crate::ir::RuleId;

codes! {
    /// # `reopens`
    ///
    /// ## What it says
    /// An `allow` is more specific than a `deny`, and opens that part of it. It is a note where both stand in one file, and
    /// a warning where the `deny` is another file's.
    ///
    /// ## Why
    /// That is what makes exceptions possible, and how a narrower rule can permit more than a wider one. Whoever wrote the
    /// other file should know of it; who wants no exception writes `forbid`. Where it is meant, say so:
    /// `# lint: allow(reopens) why` above the `allow`.
    ///
    /// ## Example
    /// ```policy
    /// srt 1
    /// default read deny
    /// deny read ~/.config
    /// allow read ~/.config/git
    /// ```
    ///
    /// ## Use instead
    /// ```policy
    /// srt 1
    /// default read deny
    /// deny read ~/.config
    /// # lint: allow(reopens) the settings of git hold no secret
    /// allow read ~/.config/git
    /// ```
    pub REOPENS = "reopens", Note;
}

/// One finding for each `allow` that permits something in spite of a `deny`.
pub(super) fn check(study: &Study<'_>, worths: &[(RuleId, Worth)]) -> Vec<Diagnostic> {
    let policy = study.policy();
    let one = |(id, worth): &(RuleId, Worth)| {
        let (Worth::Redundant(access) | Worth::Needed(access)) = worth else { return None };
        let opened = study.opened_by(*id);
        let rule = policy.rule(*id);
        // The one that is another file's matters most.
        let foreign = opened.iter().find(|deny| policy.rule(**deny).span.source != rule.span.source);
        let deny = policy.rule(*foreign.or(opened.first())?);
        let more = opened.len() - 1;
        let more = if more == 0 { String::new() } else { format!(" and {more} more") };
        let message = format!("this `allow {}` opens a `deny`{more}, since it is more specific", rule.verb);
        let mut diagnostic = Diagnostic::new(&REOPENS, message)
            .label(rule.span, format!("opens a part{}", listed(policy, rule, access)))
            .label(deny.span, format!("of this{}", listed(policy, deny, access)))
            .help("write `forbid` where no exception is meant, or say above the `allow` why it is one")
            .witness(access.to_string());
        if foreign.is_some() {
            diagnostic.level = Level::Warning;
        }
        Some(diagnostic)
    };
    worths.iter().filter_map(one).collect()
}
