//! Files that are denied under one name and have others.
//!
//! Where the other names are is not looked for on the disk: those that rules name are known.

use crate::diagnostic::Diagnostic;
use crate::diagnostic::codes;
use crate::ir::{Access, HardLink, Policy, Verdict, decide};
use crate::sets::path::AbsPath;
use crate::vocabulary::Effect;

codes! {
    /// # `hard-link`
    ///
    /// ## What it says
    /// A file that a rule denies has other names (hard links) on a file system of which something is open.
    ///
    /// ## Why
    /// A rule is about names, and a mount holds one name. Under another one the same file may be open: the command reads it
    /// there, or writes what a rule keeps it from writing. By `srt check --host`; a run does not look.
    ///
    /// ## Example
    /// ```listing
    /// f /home/user/workspace/keys/deploy
    /// h /home/user/workspace/src/deploy -> /home/user/workspace/keys/deploy
    /// ```
    /// ```policy
    /// srt 1
    /// default read deny
    /// allow read $WORKSPACE
    /// deny  read $WORKSPACE/keys/deploy
    /// ```
    ///
    /// ## Use instead
    /// A copy in place of the second name, or a rule for each:
    /// ```listing
    /// f /home/user/workspace/keys/deploy
    /// f /home/user/workspace/src/deploy
    /// ```
    /// ```policy
    /// srt 1
    /// default read deny
    /// allow read $WORKSPACE
    /// deny  read $WORKSPACE/keys/deploy
    /// ```
    pub HARD_LINK = "hard-link", Warning;
}

/// One finding for each such file and rule.
pub fn check(policy: &Policy) -> Vec<Diagnostic> {
    let one = |link: &HardLink| {
        let (act, verdict) = denied(policy, &link.at)?;
        let rule = policy.rule(*verdict.decisive.first()?);
        let open = link.others.iter().map(|other| act(other.clone())).find(|access| decide(policy, access).allowed);
        let closed = |other: &&AbsPath| !decide(policy, &act((*other).clone())).allowed;
        let others = link.names.saturating_sub(1);
        if open.is_none() && link.others.iter().filter(closed).count() as u64 >= others {
            return None;
        }
        let more = if others == 1 { "another name".to_owned() } else { format!("{others} other names") };
        let message = match &open {
            Some(access) => format!("`{}` has {more}, and `{}` is open", link.at, access.words().1),
            None => format!("`{}` has {more}, under which it may be open", link.at),
        };
        let mut diagnostic = Diagnostic::new(&HARD_LINK, message).label(rule.span, "denied under the one name");
        if let Some(access) = &open {
            if let Some(allow) = decide(policy, access).decisive.first() {
                diagnostic = diagnostic.label(policy.rule(*allow).span, "and open under the other by this");
            }
            diagnostic = diagnostic.witness(access.to_string());
        }
        let help = format!("deny each of its names (`find / -xdev -samefile {}` shows them), or make copies", link.at);
        Some(diagnostic.help(help))
    };
    policy.facts.hard_links.iter().filter_map(one).collect()
}

/// Something that is done with a path.
type Act = fn(AbsPath) -> Access;

/// What a rule denies of a path, and the verdict.
fn denied(policy: &Policy, path: &AbsPath) -> Option<(Act, Verdict)> {
    let acts: [Act; 2] = [Access::Read, Access::Write];
    acts.into_iter().find_map(|act| {
        let verdict = decide(policy, &act(path.clone()));
        let by_rule = verdict.decisive.first().is_some_and(|id| policy.rule(*id).effect != Effect::Allow);
        (!verdict.allowed && by_rule).then_some((act, verdict))
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::lint::tests::{bound_on, lines};

    const LINKED: &str = "f /home/user/workspace/keys/a\nh /home/user/workspace/src/b -> /home/user/workspace/keys/a\n";

    #[test]
    fn other_names_of_what_is_denied() {
        for (rules, machine, expected) in [
            (
                "allow read $WORKSPACE\ndeny read $WORKSPACE/keys/a",
                LINKED,
                "warning $WORKSPACE/keys/a: `/home/user/workspace/keys/a` has another name, under which it may be open (nothing)\n",
            ),
            (
                "allow read [$WORKSPACE, $WORKSPACE/src/b]\ndeny read $WORKSPACE/keys/a",
                LINKED,
                "warning $WORKSPACE/keys/a: `/home/user/workspace/keys/a` has another name, and `/home/user/workspace/src/b` is open (read /home/user/workspace/src/b)\n",
            ),
            ("allow read $WORKSPACE\ndeny read [$WORKSPACE/keys/a, $WORKSPACE/src/b]", LINKED, ""),
            ("allow read $WORKSPACE\ndeny read $WORKSPACE/keys/a", "f /home/user/workspace/keys/a\n", ""),
            // Nothing on that file system is open.
            ("allow read /usr\ndeny read $WORKSPACE/keys/a", &format!("m ext4 8:1 / /usr\n{LINKED}"), ""),
            ("allow read $WORKSPACE", LINKED, ""),
        ] {
            let text = format!("srt 1\ndefault read deny\n{rules}\n");
            let policy = bound_on(machine, &text);
            assert_eq!(lines(&policy, &text, &check(&policy)), expected, "{rules}");
        }
    }
}
