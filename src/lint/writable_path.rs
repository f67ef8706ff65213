//! Directories in which shells look for programs, made writable.
//!
//! Those that are usual are known by name; on a machine, those of its own `PATH` too.

use super::granted::{Granted, allows};
use super::shell_config::Lists;
use super::{place, start_up_file};
use crate::diagnostic::codes;
use crate::diagnostic::{Diagnostic, Level};
use crate::ir::{RuleId, Subject};
use crate::sets::glob::Glob;
use crate::sets::path::{AbsPath, Pattern, Segment, Start};
use crate::vocabulary::{Reach, Verb};

codes! {
    /// # `writable-path`
    ///
    /// ## What it says
    /// A rule lets the command write a directory in which shells look for programs. In the workspace it is a warning.
    ///
    /// ## Why
    /// A program that the command puts there under a name such as `git` or `ls` runs outside the sandbox, the next time its owner
    /// types that name. By `srt check --host`, and when a policy is run, the directories of your own `PATH` are looked at too.
    ///
    /// ## Example
    /// ```policy
    /// srt 1
    /// use std/system
    /// default read deny
    /// # lint: allow(write-and-run) it installs tools
    /// allow read, write ~/.local/bin
    /// ```
    ///
    /// ## Use instead
    /// ```policy
    /// srt 1
    /// use std/system
    /// use std/shell-config
    /// default read deny
    /// # lint: allow(write-and-run) it installs tools
    /// allow read, write ~/.local/share/tools
    /// ```
    pub WRITABLE_PATH = "writable-path", Error;
}

/// The machine's (environ(7), hier(7); the installers of Homebrew, Nix and snapd put theirs into the start-up files).
const MACHINE: &[&str] = &[
    "/bin",
    "/sbin",
    "/usr/bin",
    "/usr/sbin",
    "/usr/local/bin",
    "/usr/local/sbin",
    "/usr/games",
    "/opt/homebrew/bin",
    "/opt/homebrew/sbin",
    "/opt/local/bin",
    "/home/linuxbrew/.linuxbrew/bin",
    "/snap/bin",
    "/nix/var/nix/profiles/default/bin",
    "/run/current-system/sw/bin",
];

/// The names at the top of the disk, below which these are.
const TOPS: &[&str] = &["bin", "sbin", "usr", "opt", "home", "snap", "nix", "run"];

/// One finding for each rule that makes such a directory writable, the gravest it has.
pub(super) fn check(granted: &Granted<'_, '_>, lists: &Lists<'_, '_>, errors_alone: bool) -> Vec<Diagnostic> {
    let policy = granted.policy();
    let mut found = Vec::new();
    let (workspace, own) = (place::variable("WORKSPACE", policy), place::variable("TMP", policy));
    for (id, rule) in allows(policy, Verb::Write) {
        let listed = || {
            let near = start_up_file::near(policy, rule);
            near.then(|| lists.written(id, |listed| listed.on_path).map(|(_, path)| path)).flatten()
        };
        let local = |place: &AbsPath| place.is_inside(&workspace);
        let searched = |inside: bool| {
            let places = policy.facts.search_path.iter().filter(|place| !place.is_inside(&own));
            in_one_of(granted, id, places.filter(|place| local(place) == inside).map(programs))
        };
        let outside = in_machine(granted, id).or_else(listed).or_else(|| searched(false));
        let (path, level) = match outside {
            Some(path) => (path, Level::Error),
            None if errors_alone => continue,
            None => match granted.lightly(|| searched(true)) {
                Some(path) => (path, Level::Warning),
                None => continue,
            },
        };
        let message = "a program that the command puts here is run by whoever types its name outside the sandbox";
        let mut diagnostic = Diagnostic::new(&WRITABLE_PATH, message).label(rule.span, "holds a directory on PATH");
        diagnostic.level = level;
        let help = "deny that directory, as `use std/shell-config` does for those in a home, or name those that the task needs";
        found.push(diagnostic.witness(format!("{} {path}", Verb::Write)).help(help));
    }
    found
}

fn in_machine(granted: &Granted<'_, '_>, id: RuleId) -> Option<AbsPath> {
    let policy = granted.policy();
    let Subject::Paths(set) = &policy.rule(id).subject else { return None };
    // Those in a home are listed.
    let home = place::variable("HOME", policy);
    let near = |pattern: &Pattern| match pattern.segments.first() {
        _ if pattern.start != Start::Root || pattern.begins_inside(&home) => false,
        Some(Segment::Literal(top)) => TOPS.iter().any(|known| known.as_bytes() == &**top),
        _ => true,
    };
    if !set.include.iter().any(near) {
        return None;
    }
    in_one_of(granted, id, MACHINE.iter().map(|place| programs(&place::tree(place, policy).literal_prefix())))
}

fn in_one_of(granted: &Granted<'_, '_>, id: RuleId, mut places: impl Iterator<Item = Pattern>) -> Option<AbsPath> {
    places.find_map(|place| granted.path(id, &place.into(), &[]))
}

/// What a shell finds in a directory: names in it, nothing below them.
fn programs(place: &AbsPath) -> Pattern {
    let mut programs = Pattern::literal(place, Reach::Exact);
    programs.segments.push(Segment::Glob(Glob::any()));
    programs
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::*;
    use crate::ir::Policy;
    use crate::lint::tests::{asked, bound, lines, module, symbolic};

    fn said_by(policy: &Policy, text: &str) -> String {
        lines(policy, text, &asked(policy, |granted| check(granted, &Lists::new(granted, module), false)))
    }

    #[test]
    fn directories_of_programs_are_not_writable() {
        for (rules, expected) in [
            ("allow read, write ~/.local", "(write $HOME/.local/bin)"),
            ("allow read, write ~/.cargo", "(write $HOME/.cargo/bin)"),
            ("allow read, write /usr/local", "(write /usr/local/bin/"),
            ("allow read, write /", "(write /bin/"),
            ("allow read, write exact /usr/bin/git", "(write /usr/bin/git)"),
            ("allow read, write /opt/homebrew", "(write /opt/homebrew/bin/"),
            ("allow read, write /usr/local\ndeny write [/usr/local/bin, /usr/local/sbin]", ""),
            ("allow read, write /usr/bin/site/data", ""),
            ("allow read, write [~/src, $WORKSPACE, $TMP, /usr/share/x, ~/.cache/pip, /srv]", ""),
        ] {
            let text = format!("srt 1\ndefault read deny\n{rules}\n");
            let policy = symbolic(&text);
            let said = said_by(&policy, &text);
            assert!(if expected.is_empty() { said.is_empty() } else { said.contains(expected) }, "{rules}: {said}");
        }
    }

    #[test]
    fn every_place_of_the_table_is_below_its_tops() {
        let policy = symbolic("srt 1\ndefault read deny\n");
        for place in MACHINE {
            let pattern = place::tree(place, &policy);
            assert!(TOPS.iter().any(|top| pattern.literal_at(0) == Some(top.as_bytes())), "{place}");
        }
    }

    #[test]
    fn the_path_of_the_machine_is_looked_at() {
        let text = "srt 1\ndefault read deny\nallow read, write [~/tools, $WORKSPACE]\n";
        let mut policy = bound(text);
        assert_eq!(said_by(&policy, text), "");
        let at = |text: &str| AbsPath::parse(text).unwrap();
        policy.facts.search_path =
            vec![at("/home/user/workspace/.venv/bin"), at("/home/user/tools/bin"), at("/tmp/bin")];
        let said = said_by(&policy, text);
        assert!(said.contains("error ~/tools: ") && said.contains("(write /home/user/tools/bin/"), "{said}");
        assert!(
            said.contains("warning $WORKSPACE: ") && said.contains("(write /home/user/workspace/.venv/bin/"),
            "{said}"
        );
        assert_eq!(asked(&policy, |granted| check(granted, &Lists::new(granted, module), true)).len(), 1);
    }
}
