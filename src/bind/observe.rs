//! What findings alone want to know of the machine: no decision and no plan rests on it, so a run does not look.

use super::walk::MADE_UP;
use crate::host::Host;
use crate::ir::{Access, BoundPolicy, Decider, HardLink, MountFact, Node, NodeKind, Policy, Subject, Verdict};
use crate::sets::path::{AbsPath, Pattern};
use crate::vocabulary::{Effect, Verb};

/// What they hold is gone with the machine.
const IN_MEMORY: [&str; 2] = ["ramfs", "tmpfs"];

/// Looks for other names of files that are denied, and for file systems inside trees that are allowed.
pub fn observe(policy: &mut BoundPolicy, host: &dyn Host) {
    policy.0.facts.hard_links = hard_links(policy, host);
    policy.0.facts.mounted = mounted(policy, host);
}

fn hard_links(policy: &Policy, host: &dyn Host) -> Vec<HardLink> {
    let decider = Decider::new(policy);
    let files = policy.facts.nodes.iter().filter(|(_, node)| node.kind == NodeKind::File);
    let named = files.filter_map(|(path, node)| {
        let verb = closed(policy, &decider, path)?;
        let names = host.names_of_file(path);
        if names < 2 || !may_be_open(policy, verb, node) {
            return None;
        }
        let same = |other: &Node| (other.device, other.inode) == (node.device, node.inode);
        let others = policy.facts.nodes.iter().filter(|(other, found)| *other != path && same(found));
        Some(HardLink { at: path.clone(), names, others: others.map(|(other, _)| other.clone()).collect() })
    });
    named.collect()
}

/// What a rule denies of a path, reading first.
fn closed(policy: &Policy, decider: &Decider<'_>, path: &AbsPath) -> Option<Verb> {
    let by_rule = |verdict: Verdict| {
        !verdict.allowed && verdict.decisive.first().is_some_and(|id| policy.rule(*id).effect != Effect::Allow)
    };
    if by_rule(decider.decide(&Access::Read(path.clone()))) {
        return Some(Verb::Read);
    }
    by_rule(decider.decide(&Access::Write(path.clone()))).then_some(Verb::Write)
}

/// Whether something on the same file system is open to a verb: only there a file can have another name.
fn may_be_open(policy: &Policy, verb: Verb, node: &Node) -> bool {
    if verb == Verb::Read && policy.default_read.value == Effect::Allow {
        return true;
    }
    let allows = policy.rules_of(verb).filter(|(_, rule)| rule.effect == Effect::Allow);
    let patterns = allows.filter_map(|(_, rule)| match &rule.subject {
        Subject::Paths(set) => Some(&set.include),
        _ => None,
    });
    patterns.flatten().any(|pattern| {
        let prefix = pattern.literal_prefix();
        let deepest = prefix.ancestors().filter_map(|place| policy.facts.nodes.get(&place)).last();
        deepest.is_some_and(|found| found.device == node.device)
    })
}

fn mounted(policy: &Policy, host: &dyn Host) -> Vec<MountFact> {
    let allows = policy.rules.iter().filter(|rule| rule.effect == Effect::Allow);
    let patterns: Vec<&Pattern> = allows
        .filter_map(|rule| if let Subject::Paths(set) = &rule.subject { Some(&set.include) } else { None })
        .flatten()
        .collect();
    let inside = |mount: &MountFact| {
        patterns.iter().any(|pattern| {
            let prefix = pattern.literal_prefix();
            mount.at != prefix && mount.at.is_inside(&prefix) && pattern.contains(&mount.at)
        })
    };
    let mounts = host.mounts();
    // What was mounted there later, or above, is what is seen.
    let seen = |index: usize| !mounts[index + 1..].iter().any(|later| mounts[index].at.is_inside(&later.at));
    let real = mounts.iter().enumerate().filter(|(index, mount)| {
        !MADE_UP.contains(&mount.kind.as_str())
            && !IN_MEMORY.contains(&mount.kind.as_str())
            && seen(*index)
            && inside(mount)
    });
    real.map(|(_, mount)| mount.clone()).collect()
}
