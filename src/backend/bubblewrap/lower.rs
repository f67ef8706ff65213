//! [`BoundPolicy`] → [`Plan`]: which mounts make the file rules true, and what else the sandbox is made of.
//!
//! The mounts are found by asking [`decide`](crate::ir::decide) at every path where an answer may change: a rule's
//! literal targets, what its globs expanded to, links, other names of the same node, and the private places. Between two
//! such paths every node is decided alike, so one mount serves them all. Nothing here looks at the machine: what `bind`
//! saw is all there is.

mod codes;
mod cover;
mod instances;
mod judge;
mod later;
mod mounts;
mod network;
mod opened;
mod sockets;
#[cfg(test)]
mod tests;
mod tree;

pub use codes::{
    CODES, DIRECTORY_ALONE, DIRECTORY_ATTRIBUTES, DIRECTORY_LISTING, EXEC_BY_CONTENT, GAPS, LATER_NAMES, NOT_GRANTED,
    REPLACEABLE_LINK,
};

use super::plan::Plan;
use super::seccomp::{self, Watch};
use crate::backend::limits::Limits;
use crate::diagnostic::Diagnostic;
use crate::ir::{BoundPolicy, Policy};
use crate::vocabulary::{Effect, Verb};
use judge::Judge;
use later::Performed;
use opened::Opened;
use std::collections::BTreeSet;
use tree::Tree;

/// What was asked for beside the policy.
#[derive(Debug, Clone, Default)]
pub struct Needs {
    /// `--nest`: namespaces and mounts inside are permitted.
    pub nest: bool,
    /// Neither findings that are no errors are wanted nor those that a comment accepts: what only they need is not worked
    /// out.
    pub errors_alone: bool,
    /// Which calls about files whoever carries the plan out can make in the command's place. Those that write: so rules hold over
    /// names that are not there yet. All that open, too (`--strict-reads`): so what is denied to read is denied when it appears,
    /// and each is made so, which takes long.
    pub performs: Watch,
    /// Who runs the command, for the minimal `/etc/passwd` of a closed root.
    pub user: User,
}

/// One line of `/etc/passwd`, as far as name look-ups need it.
#[derive(Debug, Clone, Default)]
pub struct User {
    pub name: String,
    pub uid: u32,
    /// The primary group.
    pub group: String,
    pub gid: u32,
}

/// A plan and what it cannot hold.
#[derive(Debug, Clone)]
pub struct Lowered {
    pub plan: Plan,
    /// Gaps: stricter ones are notes, looser ones errors.
    pub gaps: Vec<Diagnostic>,
}

/// Lowers a bound policy; `Err` when it holds a rule that cannot be enforced on Linux at all.
///
/// # Errors
/// One diagnostic for each such rule.
pub fn lower(policy: &BoundPolicy, needs: &Needs) -> Result<Lowered, Vec<Diagnostic>> {
    let policy: &Policy = policy;
    let mut errors = Vec::new();
    let mut gaps = Vec::new();
    let network = network::lower(policy, &mut gaps, &mut errors);
    let listen = network::listen(policy, &mut errors);
    let sockets = policy.rules_of(Verb::Socket).any(|(_, rule)| rule.effect == Effect::Allow);
    let judge = match Judge::new(policy, needs.errors_alone) {
        Ok(judge) => judge,
        Err(error) => {
            errors.push(*error);
            return Err(errors);
        }
    };
    let opened = Opened::new(policy, needs);
    let tree = Tree::new(&judge, &opened.places(policy));
    let mut layout = mounts::lay_out(&tree, &judge, &opened, needs);
    let (later, performed) = later::gaps(&tree, &layout, &judge, needs);
    errors.extend(judge.errors());
    errors.extend(std::mem::take(&mut layout.errors));
    gaps.append(&mut layout.gaps);
    if needs.nest {
        if needs.performs == Watch::Opens {
            errors.push(
                Diagnostic::new(&codes::NEST_CONFLICT, "`--nest` cannot hold `--strict-reads`").help("leave one out"),
            );
        }
        errors.extend(later.iter().filter(|gap| *gap.code == codes::LATER_NAMES).map(|gap| {
            let mut refused = Diagnostic::new(&codes::NEST_CONFLICT, codes::NEST_CONFLICT_SAYS)
                .help("run without `--nest`, or name paths that exist");
            refused.labels.clone_from(&gap.labels);
            refused.witness.clone_from(&gap.witness);
            refused
        }));
    }
    gaps.extend(later);
    if !needs.errors_alone {
        gaps.extend(sockets::gaps(&tree, &layout.covers, &judge));
    }
    if !errors.is_empty() {
        return Err(errors);
    }
    let plan = Plan {
        root: layout.root,
        mounts: layout.mounts,
        network,
        listen,
        syscalls: seccomp::Table {
            nest: needs.nest,
            notified: true,
            watch: Watch::Nothing,
            performed: if performed == Performed::Nothing { Watch::Nothing } else { needs.performs },
            runs: false,
        },
        unheard: performed == Performed::Accepted,
        sockets,
        landlock: (!needs.nest).then_some(layout.landlock),
        limits: Limits::of(policy),
    };
    Ok(Lowered { plan, gaps: once_each(gaps) })
}

/// One gap of a kind for a rule: its other instances would say nothing new.
fn once_each(gaps: Vec<Diagnostic>) -> Vec<Diagnostic> {
    let mut seen = BTreeSet::new();
    gaps.into_iter().filter(|gap| gap.span().is_none_or(|span| seen.insert((gap.code.name, span)))).collect()
}
