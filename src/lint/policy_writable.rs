//! A policy that the command may write: the next run is under whatever the command wrote there.
//!
//! Which files those are is a fact of the machine; without one nothing is said.

use super::granted;
use crate::diagnostic::Diagnostic;
use crate::diagnostic::codes;
use crate::ir::{Access, Policy, Subject, decide};
use crate::vocabulary::Verb;

codes! {
    /// # `policy-writable`
    ///
    /// ## What it says
    /// A rule lets the command write the policy itself, a policy that it uses, or a list that it reads.
    ///
    /// ## Why
    /// The command then chooses what the next run may do. This is found where the files are known: when the policy is run, and by
    /// `srt check --host`.
    ///
    /// ## Example
    /// ```listing
    /// f /home/user/.gitconfig
    /// f /home/user/workspace/team.policy
    /// ```
    /// ```policy,file-/home/user/workspace/team.policy
    /// srt 1
    /// allow read ~/.gitconfig
    /// ```
    /// ```policy
    /// srt 1
    /// use std/system
    /// use std/shell-config
    /// use "/home/user/workspace/team.policy"
    /// default read deny
    /// allow read, write $WORKSPACE
    /// ```
    ///
    /// ## Use instead
    /// Keep the policy outside the workspace, or deny it:
    /// ```listing
    /// f /home/user/.gitconfig
    /// f /home/user/workspace/team.policy
    /// ```
    /// ```policy,file-/home/user/workspace/team.policy
    /// srt 1
    /// allow read ~/.gitconfig
    /// ```
    /// ```policy
    /// srt 1
    /// use std/system
    /// use std/shell-config
    /// use "/home/user/workspace/team.policy"
    /// default read deny
    /// allow read, write $WORKSPACE
    /// deny write $WORKSPACE/team.policy
    /// ```
    pub POLICY_WRITABLE = "policy-writable", Error;
}

/// One finding for each rule that lets such a file be written.
pub fn check(policy: &Policy) -> Vec<Diagnostic> {
    let mut found = Vec::new();
    for (_, rule) in granted::allows(policy, Verb::Write) {
        let Subject::Paths(set) = &rule.subject else { continue };
        let files = policy.facts.policies.iter().filter(|file| set.contains(file));
        let written = files.map(|file| (file, Access::Write(file.clone())));
        let Some((file, access)) = written.into_iter().find(|(_, access)| decide(policy, access).allowed) else {
            continue;
        };
        let message = format!("the command may write `{file}`, which this policy is read from");
        let diagnostic = Diagnostic::new(&POLICY_WRITABLE, message).label(rule.span, "makes it writable");
        let help = format!("add `deny write {file}`, or keep the policy where the command can't write");
        found.push(diagnostic.witness(access.to_string()).help(help));
    }
    found
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::*;
    use crate::lint::tests::{bound, lines};
    use crate::sets::path::AbsPath;

    #[test]
    fn the_policy_itself_is_not_writable() {
        for (rules, expected) in [
            (
                "allow read, write $WORKSPACE",
                "error $WORKSPACE: the command may write `/home/user/workspace/a.policy`, which this policy is read from (write /home/user/workspace/a.policy)\n",
            ),
            ("allow read, write $WORKSPACE/src", ""),
            ("allow read, write $WORKSPACE\ndeny write $WORKSPACE/a.policy", ""),
            ("allow read, write $WORKSPACE\ndeny write **/*.policy", ""),
        ] {
            let text = format!("srt 1\ndefault read deny\n{rules}\n");
            let mut policy = bound(&text);
            assert!(check(&policy).is_empty(), "no file is known");
            policy.facts.policies.push(AbsPath::parse("/home/user/workspace/a.policy").unwrap());
            assert_eq!(lines(&policy, &text, &check(&policy)), expected);
        }
    }
}
