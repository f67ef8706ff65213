//! Targets that lead through symbolic links: out of the tree they are named in, to nothing, or through one that the system
//! itself has.
//!
//! What a link does to a rule `bind` has settled, and a link that the command can replace, or that never ends, is its
//! error. This says where the reader may be deceived.

use super::{granted, is_given, place};
use crate::diagnostic::codes;
use crate::diagnostic::{Diagnostic, Level};
use crate::ir::{Access, LinkFact, Policy, Rule, Subject, decide};
use crate::sets::path::{AbsPath, Pattern};
use crate::vocabulary::{Effect, System};

codes! {
    /// # `symlink`
    ///
    /// ## What it says
    /// A target leads through a symbolic link: out of the home or the workspace that it is named in, to a place where there is
    /// nothing, or through a link that is part of the system (`/tmp` on macOS, `/var/run` on Linux). The last is a note, since the link is followed.
    ///
    /// ## Why
    /// An `allow` opens the place that the link leads to, which is not where it seems to be. Where there is nothing at the end
    /// of a link, whoever makes something there decides what the rule is about. Links of this machine are looked at by
    /// `srt check --host`, and when a policy is run.
    ///
    /// ## Example
    /// ```listing
    /// d /srv/data
    /// l /home/user/data -> /srv/data
    /// ```
    /// ```policy
    /// srt 1
    /// use std/system
    /// default read deny
    /// allow read ~/data
    /// ```
    ///
    /// ## Use instead
    /// ```listing
    /// d /srv/data
    /// l /home/user/data -> /srv/data
    /// ```
    /// ```policy
    /// srt 1
    /// use std/system
    /// default read deny
    /// allow read /srv/data
    /// ```
    pub SYMLINK = "symlink", Warning;
}

/// Links that each installation of a system has. For macOS see hier(7) there; for Linux file-hierarchy(7).
const OF_LINUX: &[(&str, &str)] = &[
    ("/bin", "/usr/bin"),
    ("/sbin", "/usr/sbin"),
    ("/lib", "/usr/lib"),
    ("/lib64", "/usr/lib64"),
    ("/var/run", "/run"),
    ("/var/lock", "/run/lock"),
];
const OF_MACOS: &[(&str, &str)] = &[("/tmp", "/private/tmp"), ("/var", "/private/var"), ("/etc", "/private/etc")];

/// One finding for each link that the target of a rule leads through.
pub fn check(policy: &Policy) -> Vec<Diagnostic> {
    let mut found: Vec<Diagnostic> =
        policy.rules.iter().filter(|rule| is_given(rule)).filter_map(|rule| of_system(policy, rule)).collect();
    for (at, span) in &policy.facts.through {
        let Some(link) = policy.facts.links.iter().find(|link| link.at == *at) else { continue };
        let Some(rule) = policy.rules.iter().find(|rule| rule.span == *span && is_given(rule)) else { continue };
        let Some(message) = says(policy, rule, link) else { continue };
        let help = format!("name `{}` itself, if that is meant", link.to);
        let mut diagnostic = Diagnostic::new(&SYMLINK, message).label(*span, "leads through a link").help(help);
        diagnostic.witness = opened(policy, rule, link).map(|access| access.to_string());
        found.push(diagnostic);
    }
    found
}

/// What an `allow` permits behind a link.
fn opened(policy: &Policy, rule: &Rule, link: &LinkFact) -> Option<Access> {
    let Subject::Paths(set) = &rule.subject else { return None };
    let place = set.include.iter().map(Pattern::literal_prefix).find(|place| place.is_inside(&link.to))?;
    let access = granted::access(rule.verb, place)?;
    (rule.effect == Effect::Allow && decide(policy, &access).allowed).then_some(access)
}

fn says(policy: &Policy, rule: &Rule, link: &LinkFact) -> Option<String> {
    let LinkFact { at, to } = link;
    if !policy.facts.nodes.contains_key(to) && !to.is_inside(&place::variable("TMP", policy)) {
        return Some(format!("`{at}` is a link to `{to}`, where there is nothing"));
    }
    if rule.effect != Effect::Allow {
        // Both names are denied.
        return None;
    }
    let tree = ["WORKSPACE", "HOME"].iter().find(|name| at.is_inside(&place::variable(name, policy)))?;
    let outside = !to.is_inside(&place::variable(tree, policy));
    outside.then(|| format!("`{at}` is a link out of `${tree}`, and this rule opens `{to}`"))
}

/// A link of the system at the beginning of a target, where it was not followed.
fn of_system(policy: &Policy, rule: &Rule) -> Option<Diagnostic> {
    let links = match policy.system {
        System::Linux => OF_LINUX,
        System::Macos => OF_MACOS,
        System::Windows => return None,
    };
    let Subject::Paths(set) = &rule.subject else { return None };
    let leads =
        |pattern: &Pattern| links.iter().find(|(at, _)| AbsPath::parse(at).is_ok_and(|at| pattern.begins_inside(&at)));
    let (at, to) = set.include.iter().find_map(leads)?;
    let message =
        format!("`{at}` is a link to `{to}` on {}, and what is there is what the rule is about", policy.system);
    let mut diagnostic = Diagnostic::new(&SYMLINK, message).label(rule.span, "leads through a link");
    diagnostic.level = Level::Note;
    Some(diagnostic.help(format!("write `{to}`")))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::lint::tests::{bound_on, lines, symbolic, symbolic_on};

    const MACHINE: &str = "d /srv/data/x\nl /home/user/data -> /srv/data\nl /home/user/inside -> src\nd /home/user/src\n\
        l /home/user/gone -> /srv/gone\nl /home/user/workspace/out -> ../src\n";

    #[test]
    fn links_of_the_machine() {
        for (rules, expected) in [
            (
                "allow read ~/data",
                "warning ~/data: `/home/user/data` is a link out of `$HOME`, and this rule opens `/srv/data` (read /srv/data)\n",
            ),
            (
                "allow read ~/data/x",
                "warning ~/data/x: `/home/user/data` is a link out of `$HOME`, and this rule opens `/srv/data` (read /srv/data/x)\n",
            ),
            ("deny read ~/data", ""),
            ("allow read ~/inside", ""),
            (
                "allow read ~/gone",
                "warning ~/gone: `/home/user/gone` is a link to `/srv/gone`, where there is nothing (read /srv/gone)\n",
            ),
            (
                "deny read ~/gone/x",
                "warning ~/gone/x: `/home/user/gone` is a link to `/srv/gone`, where there is nothing (nothing)\n",
            ),
            (
                "allow read $WORKSPACE/out",
                "warning $WORKSPACE/out: `/home/user/workspace/out` is a link out of `$WORKSPACE`, and this rule opens `/home/user/src` (read /home/user/src)\n",
            ),
            ("allow read [/srv/data, ~/src, ~]", ""),
        ] {
            let text = format!("srt 1\ndefault read deny\n{rules}\n");
            let policy = bound_on(MACHINE, &text);
            assert_eq!(lines(&policy, &text, &check(&policy)), expected, "{rules}");
        }
    }

    #[test]
    fn links_of_the_system() {
        for (system, rule, expected) in [
            (System::Macos, "allow read /tmp/x", "note /tmp/x: `/tmp` is a link to `/private/tmp` on macos"),
            (System::Macos, "deny read /etc", "note /etc: "),
            (System::Macos, "allow read /private/tmp/x", ""),
            (System::Linux, "allow read /var/run/x", "note /var/run/x: `/var/run` is a link to `/run` on linux"),
            (System::Linux, "allow read [/run, /usr/lib, /tmp, /etc, **/bin]", ""),
            (System::Windows, "allow read /tmp/x", ""),
        ] {
            let text = format!("srt 1\ndefault read deny\n{rule}\n");
            let policy = symbolic_on(system, &text);
            let said = lines(&policy, &text, &check(&policy));
            assert!(if expected.is_empty() { said.is_empty() } else { said.starts_with(expected) }, "{rule}: {said}");
        }
        let text = "srt 1\ndefault read deny\nallow read /var/run/x\n";
        let policy = bound_on("d /run/x\nl /var/run -> /run\n", text);
        assert!(check(&policy).is_empty(), "it was followed");
        assert!(!check(&symbolic(text)).is_empty());
    }
}
