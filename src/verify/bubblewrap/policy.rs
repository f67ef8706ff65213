//! What the mounts of a plan show, against the policy itself: over all paths, but for the gaps that were declared.
//!
//! Mounts hold what there is when they are made. So of names that are not there yet only this is proved: that what differs is in
//! the sets of the rules which speak of such names, and where the command can make them itself, that it was said of those rules.
//! What only others could make during a run is a note, and not asked for.

use super::{Layer, What, permitted_together, planned};
use crate::analysis::permission::{self, Permission, Prepared, Refused};
use crate::analysis::{Answer, Budget};
use crate::backend::bubblewrap::{
    DIRECTORY_ALONE, DIRECTORY_ATTRIBUTES, DIRECTORY_LISTING, LATER_NAMES, Mount, Plan, REPLACEABLE_LINK,
};
use crate::backend::gap::{Direction, Operation};
use crate::diagnostic::{Code, Diagnostic};
use crate::ir::{BoundPolicy, NodeKind, Policy, Rule, RuleId, Subject};
use crate::sets::path::{AbsPath, PathSet, Pattern, Start};
use crate::verify::{Fault, STEPS, shown};
use crate::vocabulary::{Effect, Reach, Verb};

/// What directories are said to differ by, each at its own path.
const DIRECTORIES: [(&Code, Operation, Direction); 4] = [
    (&DIRECTORY_LISTING, Operation::Read, Direction::Looser),
    (&DIRECTORY_ATTRIBUTES, Operation::Write, Direction::Looser),
    (&DIRECTORY_ALONE, Operation::Read, Direction::Stricter),
    (&DIRECTORY_ALONE, Operation::Write, Direction::Stricter),
];

/// Names that one pattern of a rule speaks of and that are not there yet.
struct Later<'p> {
    rule: &'p Rule,
    /// It opens them; else it takes them away.
    opens: bool,
    /// Those that it matches.
    names: Subject,
    /// Of one that matches names alone: what would be below them.
    below: Vec<Subject>,
}

/// Proves that what a plan lets be read, written and run is the policy, but for the gaps.
///
/// # Errors
/// The first difference, or what is not known.
pub fn prove(policy: &BoundPolicy, plan: &Plan, gaps: &[Diagnostic]) -> Result<(), Fault> {
    let planned = planned(plan).map_err(Fault::Unread)?;
    let places = own_places(policy);
    let astray = planned.layers.iter().find(|layer| is_own(layer) && !places.iter().any(|at| layer.at.is_inside(at)));
    if let Some(layer) = astray {
        return Err(Fault::Lacks(format!("the host's tree at `{}`", layer.at)));
    }
    let own: Vec<Subject> = [own(&places, &planned.layers), nowhere(policy)].into_iter().map(Subject::Paths).collect();
    let links = Subject::Paths(links(policy, |_| true));
    for (operation, verb) in
        [(Operation::Read, Verb::Read), (Operation::Write, Verb::Write), (Operation::Exec, Verb::Exec)]
    {
        let said = Permission::of(policy, verb);
        // All of it, and where the command can make names.
        let [made, makeable] = [&[operation][..], &[operation, Operation::Write]].map(|operations| {
            let mut made = permitted_together(&planned, operations);
            made.refusals.extend(outside_landlock(plan, operation));
            made
        });
        let [said, made, makeable] = [&said, &made, &makeable].map(Prepared::new);
        if let Some(place) = for_nothing(&planned.layers, plan, operation, &said)? {
            return Err(Fault::Looser { operation, witness: place.to_string() });
        }
        let later = later(policy, verb);
        let apart = |direction| Subject::Paths(apart(policy, gaps, operation, direction));
        let (looser, stricter) = (apart(Direction::Looser), apart(Direction::Stricter));
        let own = || own.iter();
        // What is denied and shown all the same was said of the rule, where the command can make it.
        let told = |rule: &Rule| gaps.iter().any(|gap| *gap.code == LATER_NAMES && gap.span() == Some(rule.span));
        let absent: Vec<_> = later.iter().flat_map(Later::looser).collect();
        let accepted = later.iter().filter(|later| told(later.rule)).flat_map(Later::looser).collect();
        for (more, names) in [(&made, &absent), (&makeable, &accepted)] {
            let mut outside: Vec<_> = own().chain([&looser]).chain(names.iter().copied()).collect();
            // Whoever reads through a link, reads what it leads to.
            outside.extend((operation != Operation::Write).then_some(&links));
            if let Some(witness) = found(operation, more, &said, &outside)? {
                return Err(Fault::Looser { operation, witness });
            }
        }
        let outside: Vec<_> = own().chain([&stricter, &links]).chain(later.iter().flat_map(Later::stricter)).collect();
        if let Some(witness) = found(operation, &said, &made, &outside)? {
            return Err(Fault::Stricter { operation, witness });
        }
    }
    Ok(())
}

/// What Landlock has no place for.
fn outside_landlock(plan: &Plan, operation: Operation) -> Option<Refused> {
    let landlock = plan.landlock.as_ref()?;
    let places = match operation {
        Operation::Write => &landlock.write,
        Operation::Exec => &landlock.exec,
        _ => return None,
    };
    let trees = places.iter().filter_map(|place| AbsPath::parse(place).ok());
    let lifted_by = trees.map(|at| Subject::Paths(tree(&at).into())).collect();
    Some(Refused { set: Subject::Paths(tree(&AbsPath::root()).into()), lifted_by })
}

fn found<'p>(
    operation: Operation,
    more: &Prepared<'p>,
    less: &Prepared<'p>,
    outside: &[&'p Subject],
) -> Result<Option<String>, Fault> {
    match permission::excess(more, Some(less), None, outside, &mut Budget::new(STEPS)) {
        Answer::None => Ok(None),
        Answer::Some(member) => Ok(Some(shown(&member))),
        Answer::Unknown => Err(Fault::Unknown { operation }),
    }
}

/// Where the run has something of its own, whatever is there on the host: `/dev`, `/proc`, `$TMP`, which is `/tmp` where nobody says
/// otherwise.
fn own_places(policy: &Policy) -> Vec<AbsPath> {
    let temporary = policy.facts.variables.get("TMP").map_or("/tmp", String::as_str);
    let temporary = AbsPath::parse(temporary).ok();
    let system = ["dev", "proc"].into_iter().map(|name| AbsPath::root().join(name));
    system.chain(temporary).collect()
}

fn is_own(layer: &Layer) -> bool {
    matches!(layer.what, What::Devices { .. } | What::Proc | What::Own { write: true, .. })
}

/// Something of the run's own that is there though the policy permits nothing in it.
fn for_nothing(
    layers: &[Layer],
    plan: &Plan,
    operation: Operation,
    said: &Prepared<'_>,
) -> Result<Option<AbsPath>, Fault> {
    let devices = plan.mounts.iter().filter_map(|mount| match mount {
        Mount::Devices { nodes } => Some(nodes),
        _ => None,
    });
    let shown = layers.iter().filter(|layer| match layer.what {
        What::Devices { .. } | What::Proc => operation == Operation::Read,
        What::Own { write: true, .. } => operation == Operation::Write,
        _ => false,
    });
    let devices = devices.flatten().filter(|_| operation == Operation::Read);
    let dev = AbsPath::root().join("dev");
    for place in shown.map(|layer| layer.at.clone()).chain(devices.map(|name| dev.join(name))) {
        let within = Subject::Paths(tree(&place).into());
        match permission::some_excess(said, None, &within, &mut Budget::new(STEPS)) {
            Answer::None => return Ok(Some(place)),
            Answer::Some(_) => {}
            Answer::Unknown => return Err(Fault::Unknown { operation }),
        }
    }
    Ok(None)
}

/// The places of the run's own that there are, but for what of the host's is shown in them.
fn own(places: &[AbsPath], layers: &[Layer]) -> PathSet {
    let there = places.iter().filter(|at| layers.iter().any(|layer| layer.at == **at && !is_host(layer)));
    let host = layers.iter().filter(|layer| is_host(layer) && places.iter().any(|at| layer.at.is_inside(at)));
    PathSet { include: there.map(tree).collect(), exclude: host.map(|layer| tree(&layer.at)).collect() }
}

fn is_host(layer: &Layer) -> bool {
    matches!(layer.what, What::Host { .. })
}

/// What is no file: sockets, shown where they may be connected to and opened by nobody, and whatever would be below a file.
fn nowhere(policy: &Policy) -> PathSet {
    let nodes = policy.facts.nodes.iter().filter(|(_, node)| node.kind != NodeKind::Directory);
    let below = nodes.flat_map(|(path, node)| {
        let reach = if node.kind == NodeKind::Socket { Reach::Tree } else { Reach::Below };
        let names = std::iter::once(path.clone()).chain(policy.facts.aliases(path));
        names.map(move |path| Pattern::literal(&path, reach))
    });
    PathSet { include: below.collect(), exclude: Vec::new() }
}

/// The links that are known, those below which `wanted` is.
fn links(policy: &Policy, wanted: impl Fn(&AbsPath) -> bool) -> PathSet {
    let nodes = policy.facts.nodes.iter().filter(|(_, node)| node.kind == NodeKind::Link).map(|(path, _)| path);
    let all = nodes.chain(policy.facts.links.iter().map(|link| &link.at));
    PathSet { include: all.filter(|path| wanted(path)).map(tree).collect(), exclude: Vec::new() }
}

/// Where single nodes are said to differ: a gap is told once for a rule, and is about each node that the rule speaks of.
fn apart(policy: &Policy, gaps: &[Diagnostic], operation: Operation, direction: Direction) -> PathSet {
    let told = |code: &Code, path: &AbsPath| gaps.iter().any(|gap| gap.code == code && speaks_of(policy, gap, path));
    let codes: Vec<&Code> = DIRECTORIES
        .iter()
        .filter(|(_, of, way)| *of == operation && *way == direction)
        .map(|(code, ..)| *code)
        .collect();
    let nodes = policy.facts.nodes.iter().filter(|(_, node)| node.kind == NodeKind::Directory);
    let names = nodes.flat_map(|(path, _)| std::iter::once(path.clone()).chain(policy.facts.aliases(path)));
    let directories = names.chain([AbsPath::root()]).filter(|path| {
        // No directory is run.
        operation == Operation::Exec || codes.iter().any(|code| told(code, path))
    });
    let mut include: Vec<_> = directories.map(|path| Pattern::literal(&path, Reach::Exact)).collect();
    if operation == Operation::Write && direction == Direction::Looser {
        include.extend(links(policy, |path| told(&REPLACEABLE_LINK, path)).include);
    }
    PathSet { include, exclude: Vec::new() }
}

/// Whether the rule that a gap is about names a node, or what is in it.
fn speaks_of(policy: &Policy, gap: &Diagnostic, path: &AbsPath) -> bool {
    let Some(span) = gap.span() else { return gap.witness.as_deref().and_then(place).as_ref() == Some(path) };
    let child = path.join("\u{1}");
    policy.rules.iter().zip((0..).map(RuleId)).filter(|(rule, _)| rule.span == span).any(|(rule, id)| {
        let Subject::Paths(own) = &rule.subject else { return false };
        let mut patterns = std::iter::once(own).chain(policy.facts.elsewhere_of(id)).flat_map(PathSet::patterns);
        patterns.any(|pattern| pattern.contains(path) || pattern.contains(&child))
    })
}

fn tree(path: &AbsPath) -> Pattern {
    Pattern::literal(path, Reach::Tree)
}

impl Later<'_> {
    /// Where it makes mounts permit more than the policy: what is taken away is not there to be covered, and what is opened for
    /// itself alone may be made as a directory.
    fn looser(&self) -> &[Subject] {
        if self.opens { &self.below } else { std::slice::from_ref(&self.names) }
    }

    /// And where less: what is opened is not there to be mounted, and what is taken away for itself alone closes what it is in.
    fn stricter(&self) -> &[Subject] {
        if self.opens { std::slice::from_ref(&self.names) } else { &self.below }
    }
}

/// The names that rules speak of by a glob, or by a target that is missing, less what is there.
fn later(policy: &Policy, verb: Verb) -> Vec<Later<'_>> {
    let mut all = Vec::new();
    for (rule, id) in policy.rules.iter().zip((0..).map(RuleId)) {
        let Subject::Paths(paths) = &rule.subject else { continue };
        // What may not be read may be neither written nor run.
        if rule.verb != Verb::Read && rule.verb != verb {
            continue;
        }
        let allows = rule.effect == Effect::Allow;
        for set in std::iter::once(paths).chain(policy.facts.elsewhere_of(id)) {
            for (patterns, opens) in [(&set.include, allows), (&set.exclude, !allows)] {
                let patterns = patterns.iter().filter(|pattern| pattern.start == Start::Root);
                let absent = patterns.filter(|pattern| policy.facts.is_absent(pattern));
                all.extend(absent.map(|pattern| Later {
                    rule,
                    opens,
                    names: Subject::Paths(policy.facts.absent(pattern)),
                    below: policy.facts.below_absent(pattern).into_iter().map(Subject::Paths).collect(),
                }));
            }
        }
    }
    all
}

/// The path of a witness, which may begin with a verb.
fn place(witness: &str) -> Option<AbsPath> {
    let path = witness.find('/').map(|start| &witness[start..])?;
    AbsPath::parse(path.as_bytes()).ok()
}

#[cfg(test)]
mod tests;
