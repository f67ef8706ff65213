//! File systems that are mounted inside a tree that a rule allows.

use super::{granted, is_given};
use crate::diagnostic::Diagnostic;
use crate::diagnostic::codes;
use crate::ir::{MountFact, Policy, Subject, decide};
use crate::sets::path::Pattern;
use crate::vocabulary::{Effect, Verb};

codes! {
    /// # `mount-inside`
    ///
    /// ## What it says
    /// A tree that a rule allows holds a place at which another file system is mounted, and the rule opens that as well.
    ///
    /// ## Why
    /// A share of another machine, a disk that was plugged in, or a directory of another user that was bound there, is
    /// seldom what whoever wrote the rule had in mind. By `srt check --host`; a run does not look.
    ///
    /// ## Example
    /// ```listing
    /// m nfs4 0:50 / /home/user/workspace/share
    /// ```
    /// ```policy
    /// srt 1
    /// default read deny
    /// allow read $WORKSPACE
    /// ```
    ///
    /// ## Use instead
    /// A rule for the place itself, or an `except`:
    /// ```listing
    /// m nfs4 0:50 / /home/user/workspace/share
    /// ```
    /// ```policy
    /// srt 1
    /// default read deny
    /// allow read $WORKSPACE except $WORKSPACE/share
    /// ```
    pub MOUNT_INSIDE = "mount-inside", Note;
}

/// One finding for each rule that opens such a place without naming it.
pub fn check(policy: &Policy) -> Vec<Diagnostic> {
    let named = |mount: &&MountFact| {
        let sets = policy.rules.iter().filter_map(|rule| match &rule.subject {
            Subject::Paths(set) if is_given(rule) && rule.effect == Effect::Allow => Some(&set.include),
            _ => None,
        });
        sets.flatten().any(|pattern: &Pattern| pattern.literal_prefix() == mount.at)
    };
    let mounts: Vec<&MountFact> = policy.facts.mounted.iter().filter(|mount| !named(mount)).collect();
    let mut found = Vec::new();
    for verb in [Verb::Write, Verb::Read] {
        // The default has said so already.
        if mounts.is_empty() || verb == Verb::Read && policy.default_read.value == Effect::Allow {
            continue;
        }
        for (_, rule) in granted::allows(policy, verb) {
            let Subject::Paths(set) = &rule.subject else { continue };
            let opened = |mount: &&MountFact| {
                let access = granted::access(verb, mount.at.clone())?;
                (set.contains(&mount.at) && decide(policy, &access).allowed).then_some(access)
            };
            let mut opened = mounts.iter().filter_map(|mount| Some((mount, opened(mount)?)));
            let Some((mount, access)) = opened.next() else { continue };
            let more = match opened.count() {
                0 => String::new(),
                1 => ", and 1 more is".to_owned(),
                more => format!(", and {more} more are"),
            };
            let message =
                format!("another file system ({}) is mounted at `{}`, inside this tree{more}", mount.kind, mount.at);
            let diagnostic = Diagnostic::new(&MOUNT_INSIDE, message).label(rule.span, "opens it too");
            let help = format!("name `{0}` in a rule if it is meant, or take it out by `except {0}`", mount.at);
            found.push(diagnostic.witness(access.to_string()).help(help));
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::lint::tests::{bound_on, lines};

    #[test]
    fn what_is_mounted_inside_a_tree() {
        const MACHINE: &str = "m ext4 8:1 / /\nm nfs4 0:50 / /home/user/workspace/share\nm tmpfs 0:51 / /home/user/workspace/t\n\
            m ext4 8:2 / /srv/data\n";
        for (rules, expected) in [
            (
                "allow read, write $WORKSPACE",
                "note $WORKSPACE: another file system (nfs4) is mounted at `/home/user/workspace/share`, inside this tree (write /home/user/workspace/share)\n\
                 note $WORKSPACE: another file system (nfs4) is mounted at `/home/user/workspace/share`, inside this tree (read /home/user/workspace/share)\n",
            ),
            ("allow read [$WORKSPACE, $WORKSPACE/share]", ""),
            ("allow read $WORKSPACE\ndeny read $WORKSPACE/share", ""),
            ("allow read [/srv/data, $WORKSPACE/src, exact $WORKSPACE]", ""),
            (
                "allow read /srv",
                "note /srv: another file system (ext4) is mounted at `/srv/data`, inside this tree (read /srv/data)\n",
            ),
        ] {
            let text = format!("srt 1\ndefault read deny\n{rules}\n");
            let policy = bound_on(MACHINE, &text);
            assert_eq!(lines(&policy, &text, &check(&policy)), expected, "{rules}");
        }
    }
}
