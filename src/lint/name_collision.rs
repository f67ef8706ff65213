//! Names that a system takes for one and the policy for two: macOS and Windows compare without case, macOS without regard
//! to the normalisation form.

use super::{granted, is_given};
use crate::diagnostic::Diagnostic;
use crate::diagnostic::codes;
use crate::ir::{Access, Policy, Rule, Subject, decide};
use crate::sets::path::{AbsPath, FileName, fold};
use crate::vocabulary::{Effect, System, Verb};
use rustc_hash::FxHashMap;

codes! {
    /// # `name-collision`
    ///
    /// ## What it says
    /// Two rules of which one allows and one denies spell a path in two ways that are one name on macOS or Windows: they differ
    /// in upper and lower case, or in how an accent is written.
    ///
    /// ## Why
    /// Where the file system takes both for the same file, one of the rules says what the other denies. On Linux they are two
    /// files.
    ///
    /// ## Example
    /// ```policy
    /// srt 1
    /// default read deny
    /// allow read $WORKSPACE/Data
    /// deny  read $WORKSPACE/data/raw
    /// ```
    ///
    /// ## Use instead
    /// ```policy
    /// srt 1
    /// default read deny
    /// allow read $WORKSPACE/data
    /// deny  read $WORKSPACE/data/raw
    /// ```
    pub NAME_COLLISION = "name-collision", Warning;
}

/// A verb, and a path in the form in which names that are one are equal.
type Folded = (Verb, Vec<Vec<u8>>);

/// One finding for each rule that spells a path as no earlier one does.
pub fn check(policy: &Policy) -> Vec<Diagnostic> {
    if policy.system == System::Linux {
        return Vec::new();
    }
    let mut spellings: FxHashMap<Folded, Vec<(AbsPath, &Rule)>> = FxHashMap::default();
    let mut found = Vec::new();
    for rule in &policy.rules {
        let Subject::Paths(set) = &rule.subject else { continue };
        let mut said = false;
        for place in set.include.iter().map(crate::sets::path::Pattern::literal_prefix) {
            let mut folded: Vec<Vec<u8>> = vec![format!("{:?}", place.start).into_bytes()];
            for depth in 1..=place.segments.len() {
                let name: &FileName = &place.segments[depth - 1];
                folded.push(fold(name));
                let here = AbsPath { start: place.start.clone(), segments: place.segments[..depth].to_vec() };
                let known = spellings.entry((rule.verb, folded.clone())).or_default();
                let other = known.iter().find(|(path, other)| {
                    *path != here
                        && (rule.effect == Effect::Allow) != (other.effect == Effect::Allow)
                        && (is_given(rule) || is_given(other))
                });
                if let Some((path, other)) = other.filter(|_| !said) {
                    said = true;
                    let message = format!("`{here}` and `{path}` are one name on {}", policy.system);
                    let diagnostic = Diagnostic::new(&NAME_COLLISION, message).label(rule.span, "spelled so here");
                    let mut diagnostic = diagnostic.label(other.span, "and so here");
                    let (allow, deny) = ((&here, rule), (path, *other));
                    let (allow, deny) = if rule.effect == Effect::Allow { (allow, deny) } else { (deny, allow) };
                    diagnostic.witness = witness(policy, allow.0, deny).map(|access| access.to_string());
                    found.push(diagnostic.help("spell both as the file is, or write the rules `on linux`"));
                }
                if !known.iter().any(|(path, other)| *path == here && other.effect == rule.effect) {
                    known.push((here, rule));
                }
            }
        }
    }
    found
}

/// What one rule denies, by the name that the other one has for it: permitted.
fn witness(policy: &Policy, allowed: &AbsPath, (denied, deny): (&AbsPath, &Rule)) -> Option<Access> {
    let Subject::Paths(set) = &deny.subject else { return None };
    let place =
        set.include.iter().map(crate::sets::path::Pattern::literal_prefix).find(|place| place.is_inside(denied))?;
    let access = granted::access(deny.verb, allowed.join_all(place.below(denied)?))?;
    decide(policy, &access).allowed.then_some(access)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::lint::tests::{lines, symbolic_on};

    #[test]
    fn names_that_differ_in_case_or_form() {
        for (rules, expected) in [
            ("allow read $WORKSPACE/Src\ndeny read $WORKSPACE/src", true),
            ("allow read $WORKSPACE/Src\ndeny read $WORKSPACE/src/x", true),
            ("deny read $WORKSPACE/e\u{301}\nallow read $WORKSPACE/\u{e9}/x", true),
            ("allow read $WORKSPACE/src\ndeny read $WORKSPACE/src/x", false),
            ("allow read [$WORKSPACE/Src, $WORKSPACE/src]", false),
            ("allow read $WORKSPACE/Src\ndeny write $WORKSPACE/src", false),
            ("allow read ~/Src\ndeny read $WORKSPACE/src", false),
        ] {
            let text = format!("srt 1\ndefault read deny\n{rules}\n");
            for system in [System::Macos, System::Windows] {
                let policy = symbolic_on(system, &text);
                assert_eq!(!lines(&policy, &text, &check(&policy)).is_empty(), expected, "{rules}");
            }
            assert!(check(&symbolic_on(System::Linux, &text)).is_empty());
        }
    }
}
