//! What a command does to files, and the accesses that it needs: the table of operations in the book's language chapter.

use super::{Access, Decider, Verdict};
use crate::sets::path::{AbsPath, FileName};

/// Something done to nodes of the file system. Paths are resolved.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Operation {
    /// Opening for reading, or listing a directory.
    Read(AbsPath),
    /// Running as a program, or mapping as code.
    Execute(AbsPath),
    /// Creating, changing, truncating; mode, owner, times, extended attributes; removing.
    Change(AbsPath),
    /// `rename(2)` of `from` to `to`. `nodes` are the segments from `from` down to each node that exists below it; the node
    /// itself need not be named.
    Rename { from: AbsPath, to: AbsPath, nodes: Vec<Vec<FileName>> },
    /// `RENAME_EXCHANGE`: each takes the other's place, with what exists below each.
    Exchange { one: AbsPath, nodes_of_one: Vec<Vec<FileName>>, other: AbsPath, nodes_of_other: Vec<Vec<FileName>> },
    /// `link(2)`: `new` becomes another name of what is at `existing`.
    Link { existing: AbsPath, new: AbsPath },
    /// `symlink(2)`: the place it points to does not matter.
    Symlink { new: AbsPath },
}

/// Why an operation is refused.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Refusal {
    /// It needs an access that is denied.
    Denied { access: Access, verdict: Verdict },
    /// The new name would permit what the old one denies.
    Widened { denied: Access, verdict: Verdict, permitted: Access },
}

/// Whether a policy permits an operation.
///
/// # Errors
/// The first reason why it does not.
pub fn permits(decider: &Decider<'_>, operation: &Operation) -> Result<(), Box<Refusal>> {
    let needs = |access: Access| {
        let verdict = decider.decide(&access);
        if verdict.allowed { Ok(()) } else { Err(Box::new(Refusal::Denied { access, verdict })) }
    };
    let moves = |from: &AbsPath, to: &AbsPath, nodes: &[Vec<FileName>]| {
        for node in std::iter::once(&[][..]).chain(nodes.iter().map(Vec::as_slice)) {
            let (old, new) = (from.join_all(node), to.join_all(node));
            needs(Access::Write(old.clone()))?;
            needs(Access::Write(new.clone()))?;
            widens_nothing(decider, &old, &new)?;
        }
        Ok(())
    };
    match operation {
        Operation::Read(path) => needs(Access::Read(path.clone())),
        Operation::Execute(path) => {
            needs(Access::Read(path.clone()))?;
            needs(Access::Exec(path.clone()))
        }
        Operation::Change(path) | Operation::Symlink { new: path } => needs(Access::Write(path.clone())),
        // What was at `to` needs write of `to`, which moving there needs too.
        Operation::Rename { from, to, nodes } => moves(from, to, nodes),
        Operation::Exchange { one, nodes_of_one, other, nodes_of_other } => {
            moves(one, other, nodes_of_one)?;
            moves(other, one, nodes_of_other)
        }
        Operation::Link { existing, new } => {
            needs(Access::Read(existing.clone()))?;
            needs(Access::Write(existing.clone()))?;
            needs(Access::Write(new.clone()))?;
            widens_nothing(decider, existing, new)
        }
    }
}

/// No read or exec that the new name permits and the old one denies.
fn widens_nothing(decider: &Decider<'_>, old: &AbsPath, new: &AbsPath) -> Result<(), Box<Refusal>> {
    for access in [Access::Read, Access::Exec] {
        let (denied, permitted) = (access(old.clone()), access(new.clone()));
        let verdict = decider.decide(&denied);
        if !verdict.allowed && decider.decide(&permitted).allowed {
            return Err(Box::new(Refusal::Widened { denied, verdict, permitted }));
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::*;
    use crate::ir::{Origin, Policy, Rule, Setting, Subject, Unset};
    use crate::sets::path::{PathSet, Pattern};
    use crate::source::{Sources, Span};
    use crate::vocabulary::{Effect, Reach, System, Verb};

    fn at(text: &str) -> AbsPath {
        AbsPath::parse(text).unwrap()
    }

    fn below(text: &str) -> Vec<FileName> {
        at(text).segments
    }

    fn policy() -> Policy {
        let span = Span::new(Sources::default().add("test", ""), 0..0);
        let mut policy = Policy::new(System::Linux, Setting { value: Effect::Deny, span });
        for (effect, verb, path) in [
            (Effect::Allow, Verb::Read, "/w"),
            (Effect::Allow, Verb::Write, "/w"),
            (Effect::Deny, Verb::Write, "/w/hooks"),
            (Effect::Deny, Verb::Write, "/w/x/hooks"),
            (Effect::Deny, Verb::Exec, "/w/data"),
            (Effect::Allow, Verb::Write, "/out"),
            (Effect::Allow, Verb::Read, "/r"),
        ] {
            let subject = Subject::Paths(PathSet::from(Pattern::literal(&at(path), Reach::Tree)));
            policy.rules.push(Rule {
                effect,
                verb,
                subject,
                because: None,
                unset: Unset::Refuse,
                span,
                origin: Origin::Given,
            });
        }
        policy
    }

    fn refusal(operation: &Operation) -> Option<String> {
        let policy = policy();
        permits(&Decider::new(&policy), operation).err().map(|refusal| match *refusal {
            Refusal::Denied { access, .. } => match access {
                Access::Read(path) => format!("read {path}"),
                Access::Write(path) => format!("write {path}"),
                Access::Exec(path) => format!("exec {path}"),
                other => format!("{other:?}"),
            },
            Refusal::Widened { permitted: Access::Exec(path), .. } => format!("widens exec to {path}"),
            Refusal::Widened { permitted, .. } => format!("widens {permitted:?}"),
        })
    }

    fn rename(from: &str, to: &str, nodes: &[&str]) -> Operation {
        Operation::Rename { from: at(from), to: at(to), nodes: nodes.iter().map(|node| below(node)).collect() }
    }

    #[test]
    fn the_table() {
        for (operation, expected) in [
            (Operation::Read(at("/w/a")), None),
            (Operation::Read(at("/out/a")), Some("read /out/a")),
            (Operation::Execute(at("/w/a")), None),
            (Operation::Execute(at("/w/data/a")), Some("exec /w/data/a")),
            (Operation::Execute(at("/out/a")), Some("read /out/a")),
            (Operation::Change(at("/w/a")), None),
            (Operation::Change(at("/r/a")), Some("write /r/a")),
            (Operation::Symlink { new: at("/w/a") }, None),
            (Operation::Symlink { new: at("/w/hooks") }, Some("write /w/hooks")),
            (rename("/w/a", "/w/b", &[]), None),
            (rename("/w/a", "/r/b", &[]), Some("write /r/b")),
            (rename("/r/a", "/w/b", &[]), Some("write /r/a")),
            // A directory whose content would land under a rule, or comes from under one.
            (rename("/w/y", "/w/x", &["/a"]), None),
            (rename("/w/y", "/w/x", &["/a", "/hooks"]), Some("write /w/x/hooks")),
            (rename("/w/x", "/w/y", &["/hooks"]), Some("write /w/x/hooks")),
            (rename("/w/data/a", "/w/b", &[]), Some("widens exec to /w/b")),
            (rename("/w/b", "/w/data/a", &[]), None),
            (Operation::Link { existing: at("/w/a"), new: at("/w/b") }, None),
            (Operation::Link { existing: at("/r/a"), new: at("/w/b") }, Some("write /r/a")),
            (Operation::Link { existing: at("/out/a"), new: at("/w/b") }, Some("read /out/a")),
            (Operation::Link { existing: at("/w/data/a"), new: at("/w/b") }, Some("widens exec to /w/b")),
        ] {
            assert_eq!(refusal(&operation).as_deref(), expected, "{operation:?}");
        }
    }

    #[test]
    fn an_exchange_is_both_directions() {
        let exchange = |one: &str, other: &str, nodes: &[&str]| Operation::Exchange {
            one: at(one),
            nodes_of_one: Vec::new(),
            other: at(other),
            nodes_of_other: nodes.iter().map(|node| below(node)).collect(),
        };
        assert_eq!(refusal(&exchange("/w/a", "/w/b", &["/c"])), None);
        assert_eq!(refusal(&exchange("/w/x", "/w/y", &["/hooks"])).as_deref(), Some("write /w/x/hooks"));
        assert_eq!(refusal(&exchange("/w/a", "/w/data/a", &[])).as_deref(), Some("widens exec to /w/a"));
        assert_eq!(
            refusal(&rename("/out/a", "/w/a", &[])).as_deref(),
            Some("widens Read(AbsPath { start: Root, segments: [\"w\", \"a\"] })")
        );
    }
}
