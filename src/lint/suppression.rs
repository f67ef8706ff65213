//! `# lint: allow(CODE) REASON`: takes findings of that code at that statement away.
//!
//! A suppression accepts a gap or silences a lint; it never makes a policy readable that is not, since text that does
//! not parse has no statement to stand above.

use crate::diagnostic::codes;
use crate::diagnostic::{Code, Diagnostic, Fix, Level};
use crate::ir::{Policy, Suppression};
use crate::source::Span;

codes! {
    /// # `unused-suppression`
    ///
    /// ## What it says
    /// A `# lint: allow(CODE)` comment silences nothing.
    ///
    /// ## Why
    /// It was written for a finding that is gone, or names the wrong code; a later finding of that code would be
    /// silenced without anyone having looked at it.
    ///
    /// ## Example
    /// ```policy
    /// srt 1
    /// default read deny
    /// # lint: allow(later-names) nothing here needs this
    /// allow read $WORKSPACE
    /// ```
    ///
    /// ## Use instead
    /// ```policy
    /// srt 1
    /// default read deny
    /// allow read $WORKSPACE
    /// ```
    pub UNUSED_SUPPRESSION = "unused-suppression", Warning;
}

/// The findings that no suppression takes away, and for each suppression whether it took one.
///
/// Warnings and notes can be silenced; of errors only those of the codes in `open`: gaps, where a policy is held but for what
/// the finding says, and escapes, which it opens in so many words. Any other error says that it is not held, and a comment
/// does not change that.
pub fn suppress(diagnostics: Vec<Diagnostic>, policy: &Policy, open: &[&Code]) -> (Vec<Diagnostic>, Vec<bool>) {
    let mut used = vec![false; policy.suppressions.len()];
    let kept = diagnostics
        .into_iter()
        .filter(|diagnostic| {
            let mut silenced = false;
            for (suppression, used) in policy.suppressions.iter().zip(&mut used) {
                if acceptable(diagnostic, open) && covers(suppression, diagnostic) {
                    *used = true;
                    silenced = true;
                }
            }
            !silenced
        })
        .collect();
    (kept, used)
}

/// A finding for each suppression that took none away; `used` is what [`suppress`] returned.
pub fn unused(policy: &Policy, used: &[bool], given: impl Fn(Span) -> bool) -> Vec<Diagnostic> {
    policy
        .suppressions
        .iter()
        .zip(used)
        .filter(|(suppression, used)| !**used && given(suppression.span))
        .map(|(suppression, _)| {
            Diagnostic::new(&UNUSED_SUPPRESSION, format!("`allow({})` silences nothing here", suppression.code))
                .label(suppression.span, "no such finding at the statement below")
                .help("take the comment away")
                .fix(Fix::Remove(suppression.span))
        })
        .collect()
}

fn acceptable(diagnostic: &Diagnostic, open: &[&Code]) -> bool {
    diagnostic.level < Level::Error || open.contains(&diagnostic.code)
}

fn covers(suppression: &Suppression, diagnostic: &Diagnostic) -> bool {
    suppression.code == diagnostic.code.name && diagnostic.span().is_some_and(|span| suppression.covers(span))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ir::Setting;
    use crate::lint::{expectation, within};
    use crate::source::Sources;
    use crate::vocabulary::{Effect, System};

    static LOOSE: Code = Code { name: "loose", level: Level::Error, page: "" };
    static WRONG: Code = Code { name: "wrong", level: Level::Error, page: "" };

    /// A policy with `# lint: allow(CODE)` above a statement at 10–20, and what is left of a finding of `raised` at `place`.
    fn left(allowed: &str, raised: &'static Code, place: std::ops::Range<usize>) -> (usize, Vec<bool>) {
        let source = Sources::default().add("test.policy", "");
        let span = |range| Span::new(source, range);
        let mut policy = Policy::new(System::Linux, Setting { value: Effect::Deny, span: span(0..0) });
        let (code, reason) = (allowed.to_owned(), "a reason".to_owned());
        policy.suppressions.push(Suppression { code, reason, span: span(0..9), statement: span(10..20) });
        let finding = Diagnostic::new(raised, "it is loose").label(span(place), "here");
        let (kept, used) = suppress(vec![finding], &policy, &[&LOOSE]);
        (kept.len(), used)
    }

    #[test]
    fn a_finding_is_accepted_at_its_statement_alone() {
        assert_eq!(left("loose", &LOOSE, 12..15), (0, vec![true]));
        assert_eq!(left("loose", &LOOSE, 22..25), (1, vec![false]));
        assert_eq!(left("other", &LOOSE, 12..15), (1, vec![false]));
    }

    #[test]
    fn an_error_that_is_no_gap_is_not_accepted() {
        for code in [&expectation::EXPECTATION, &within::WITHIN, &WRONG] {
            assert_eq!(left(code.name, code, 12..15), (1, vec![false]), "{}", code.name);
        }
    }
}
