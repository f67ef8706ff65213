//! Writing what runs outside the sandbox later, without being asked for: start-up files of shells and sessions, git hooks
//! and settings, editor tasks, settings of agents and package managers.
//!
//! Which files those are `std/shell-config` says. Directories of programs are `writable-path`'s.

use super::granted::{Granted, allows};
use super::place;
use super::shell_config::{Lists, is_near};
use crate::diagnostic::codes;
use crate::diagnostic::{Diagnostic, Level};
use crate::ir::{Policy, Rule, Subject};
use crate::sets::path::{AbsPath, Pattern};
use crate::vocabulary::{Reach, Verb};

codes! {
    /// # `start-up-file`
    ///
    /// ## What it says
    /// A rule lets the command write a file that runs, or chooses what runs, outside the sandbox without being asked for: a
    /// shell's or a session's start-up file, a git hook or setting, an editor's task, the settings of an agent, an MCP client or
    /// a package manager. In the workspace it is a warning. By `srt check --host`, and when a policy is run, the directory that
    /// `git config core.hooksPath` names is one of them, as far as the repository's settings and your own say it themselves;
    /// what these include is not read.
    ///
    /// ## Why
    /// The command leaves the sandbox the next time its owner opens a terminal, opens the folder in an editor, or types
    /// `git status`. The module `std/shell-config` denies all of these, and a policy can open one again by a more specific line.
    ///
    /// ## Example
    /// ```policy
    /// srt 1
    /// use std/system
    /// default read deny
    /// allow read, write $WORKSPACE
    /// ```
    /// ```policy
    /// srt 1
    /// use std/system
    /// default read deny
    /// # lint: allow(write-and-run) settings are no program
    /// allow read, write exact ~/.gitconfig
    /// ```
    ///
    /// ## Use instead
    /// ```policy
    /// srt 1
    /// use std/system
    /// use std/shell-config
    /// default read deny
    /// allow read        exact ~/.gitconfig
    /// allow read, write $WORKSPACE
    /// ```
    pub START_UP_FILE = "start-up-file", Error;
}

/// One finding for each rule that makes such a file writable, the gravest it has.
pub(super) fn check(granted: &Granted<'_, '_>, lists: &Lists<'_, '_>, errors_alone: bool) -> Vec<Diagnostic> {
    let policy = granted.policy();
    let mut found = Vec::new();
    for (id, rule) in allows(policy, Verb::Write) {
        let outside = near(policy, rule).then(|| lists.written(id, |listed| !listed.on_path && !listed.in_workspace));
        let inside = || {
            let local = || granted.lightly(|| lists.written(id, |listed| listed.in_workspace));
            if errors_alone { None } else { local() }
        };
        let hooks = |local: bool| {
            let place = policy.facts.hooks.as_ref().filter(|_| !local || !errors_alone)?;
            let own = place.is_inside(&place::variable("WORKSPACE", policy)) == local;
            let tree = Pattern::literal(place, Reach::Tree);
            own.then(|| granted.path(id, &tree.into(), &[])).flatten()
        };
        let outside = outside.flatten();
        let hook = |local: bool| hooks(local).map(|path| hook(rule, &path, local));
        if outside.is_none()
            && let Some(said) = hook(false)
        {
            found.push(said);
            continue;
        }
        let Some((listed, path)) = outside.or_else(inside) else {
            found.extend(granted.lightly(|| hook(true)));
            continue;
        };
        let message = format!("{}, and this rule lets the command write there", listed.why);
        let mut diagnostic = Diagnostic::new(&START_UP_FILE, message).label(rule.span, "makes it writable");
        if listed.in_workspace {
            diagnostic.level = Level::Warning;
        }
        let help = if lists.uses(listed) {
            "leave it closed, as `std/shell-config` has it, or write a comment that says why it is opened"
        } else {
            "add `use std/shell-config`, which denies it, or name the directories that the task needs"
        };
        found.push(diagnostic.witness(format!("{} {path}", Verb::Write)).help(help));
    }
    found
}

/// That a rule lets the directory be written of which git runs the hooks.
fn hook(rule: &Rule, path: &AbsPath, local: bool) -> Diagnostic {
    let message = "`core.hooksPath` names this place: a git hook runs at the next git command outside the sandbox, and this \
        rule lets the command write there";
    let mut diagnostic = Diagnostic::new(&START_UP_FILE, message).label(rule.span, "makes it writable");
    if local {
        diagnostic.level = Level::Warning;
    }
    diagnostic.witness(format!("{} {path}", Verb::Write)).help("deny writing that directory")
}

/// Whether a rule may reach something that is listed outside the workspace.
pub(super) fn near(policy: &Policy, rule: &Rule) -> bool {
    matches!(&rule.subject, Subject::Paths(set) if set.include.iter().any(|pattern| is_near(policy, pattern)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::lint::tests::{asked, bound, bound_on, lines, module, symbolic, symbolic_on};
    use crate::vocabulary::System;

    fn said_by(policy: &Policy, text: &str) -> String {
        lines(policy, text, &asked(policy, |granted| check(granted, &Lists::new(granted, module), false)))
    }

    #[test]
    fn start_up_files_are_not_writable() {
        for (rules, expected) in [
            ("allow read, write ~", "error ~: what a shell reads"),
            ("allow read, write /", "error /: what a shell reads"),
            ("allow read, write ~/.config", "error ~/.config: what a shell reads"),
            ("allow read, write exact ~/.gitconfig", "error exact ~/.gitconfig: git settings name programs"),
            ("allow read, write ~/.claude", "error ~/.claude: an agent's settings"),
            ("allow read, write ~/*", "error ~/*: what a shell reads"),
            ("allow read, write **/.bashrc", "error **/.bashrc: what a shell reads"),
            ("allow read, write /etc", "error /etc: the machine's start-up files"),
            ("allow read, write $WORKSPACE", "warning $WORKSPACE: a git hook or setting"),
            ("allow read, write $WORKSPACE/.vscode", "warning $WORKSPACE/.vscode: an editor runs"),
            ("use std/shell-config\nallow read, write [~, $WORKSPACE, /]", ""),
            (
                "use std/shell-config\nallow read, write below $WORKSPACE/.vscode",
                "warning below $WORKSPACE/.vscode: an editor",
            ),
            ("use std/shell-config\nallow read, write exact ~/.bashrc", "error exact ~/.bashrc: what a shell reads"),
            ("allow read, write [~/src, ~/.cache/x, $TMP, /srv/data, ~/.local/share/x]", ""),
            ("allow read ~", ""),
        ] {
            let text =
                format!("srt 1\n{}default read deny\n{rules}\n", if rules.starts_with("use") { "" } else { "\n" });
            // `use` comes first.
            let text = match rules.split_once('\n') {
                Some((module, rest)) if module.starts_with("use") => {
                    format!("srt 1\n{module}\ndefault read deny\n{rest}\n")
                }
                _ => text,
            };
            for policy in [symbolic(&text), bound(&text)] {
                let said = said_by(&policy, &text);
                assert!(
                    if expected.is_empty() { said.is_empty() } else { said.starts_with(expected) },
                    "{rules}: {said}"
                );
            }
        }
    }

    #[test]
    fn hooks_are_where_git_is_told_that_they_are() {
        for (hooks, rules, expected) in [
            ("/srv/hooks", "allow read, write /srv", "error /srv: `core.hooksPath` names this place"),
            ("/srv/hooks", "allow read, write /srv/data", ""),
            ("/srv/hooks", "allow read, write /srv\ndeny write /srv/hooks", ""),
            ("/home/user/workspace/ci/hooks", "allow read, write $WORKSPACE/ci", "warning $WORKSPACE/ci: "),
        ] {
            let text = format!("srt 1\nuse std/shell-config\ndefault read deny\n{rules}\n");
            let policy = bound_on(&format!("g {hooks}\n"), &text);
            let said = said_by(&policy, &text);
            assert!(if expected.is_empty() { said.is_empty() } else { said.starts_with(expected) }, "{rules}: {said}");
        }
    }

    #[test]
    fn each_system_has_its_own() {
        let text = "srt 1\ndefault read deny\non macos { allow read, write ~/Library/LaunchAgents }\n";
        assert!(said_by(&symbolic_on(System::Macos, text), text).contains("what a session starts"));
        assert_eq!(said_by(&symbolic(text), text), "");
    }

    #[test]
    fn what_runs_a_command_asks_for_the_errors_alone() {
        let text = "srt 1\ndefault read deny\nallow read, write [$WORKSPACE, ~/.bashrc]\n";
        let policy = bound(text);
        assert_eq!(asked(&policy, |granted| check(granted, &Lists::new(granted, module), true)).len(), 1);
        let unread = |_| panic!("the lists were read for nothing");
        let text = "srt 1\ndefault read deny\nallow read, write [$WORKSPACE, ~/src]\n";
        let policy = bound(text);
        assert!(asked(&policy, |granted| check(granted, &Lists::new(granted, unread), true)).is_empty());
    }
}
