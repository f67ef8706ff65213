//! Everything that is said of policy texts without running anything: about their names for each system, about their meaning
//! for one, on an assumed machine or a real one.
//!
//! Adds nothing to what the stages say. What a file is and where it lies is the caller's: texts come in under their names, and
//! what they use is read through [`Files`].

mod nominal;

pub use nominal::Nominal;

use crate::backend::bubblewrap::{NOT_GRANTED, Needs, Watch};
use crate::bind::{bind, observe};
use crate::compile::{compile, elsewhere, placements};
use crate::diagnostic::{Diagnostic, any_error};
use crate::host::Host;
use crate::ir::{BoundPolicy, Policy};
use crate::resolve::{Files, Options, resolve_each};
use crate::source::{Sources, Span};
use crate::vocabulary::System;
use std::panic::resume_unwind;
use std::thread;

/// A text that is looked at, and the name it is shown under.
#[derive(Debug, Clone)]
pub struct Given {
    pub name: String,
    pub text: String,
}

/// What came of looking at texts.
#[derive(Debug)]
pub struct Checked {
    /// All that was said.
    pub diagnostics: Vec<Diagnostic>,
    /// The texts that it points into.
    pub sources: Sources,
    /// Their union on the machine, where no name or syntax is wrong.
    pub policy: Option<BoundPolicy>,
}

/// Looks at the union of some texts: for one system all the way, for the others at names and at what they alone refuse. With a
/// machine that one is `options.system`; without, it is Linux, which the assumed machine has, whatever this runs on, and what
/// depends on which files there are is not said. The policy that comes out is that of `options.system`.
pub fn check(given: &[Given], files: &dyn Files, options: &Options, machine: Option<&dyn Host>) -> Checked {
    let mut sources = Sources::default();
    let given: Vec<_> = given.iter().map(|given| sources.add(given.name.clone(), given.text.clone())).collect();
    let whole = if machine.is_some() { options.system } else { System::Linux };
    let mut others = System::ALL.to_vec();
    others.retain(|system| *system != whole);
    let systems = others.iter().chain([&whole]);
    let each: Vec<_> = systems.map(|system| Options { system: *system, ..options.clone() }).collect();
    let mut resolved = resolve_each(&given, &mut sources, files, &each);
    // Said once: what is wrong everywhere comes with the same words for each system.
    if let Some(wrong) = resolved.iter().position(|(_, said)| any_error(said)) {
        return Checked { diagnostics: resolved.swap_remove(wrong).1, sources, policy: None };
    }
    let (policy, said) = resolved.pop().unwrap_or_default();
    let Some(policy) = policy else { return Checked { diagnostics: said, sources, policy: None } };
    // Beside each other: an editor waits for the last of them.
    let (diagnostics, mut bound) = thread::scope(|scope| {
        let others = resolved.iter().filter_map(|(policy, _)| policy.as_ref());
        let others: Vec<_> = others.map(|policy| (policy.system, scope.spawn(|| elsewhere(policy)))).collect();
        let others = others.into_iter().map(|(system, found)| (system, joined(found)));
        here(policy, said, machine, others)
    });
    if whole != options.system {
        let own = resolved.into_iter().filter_map(|(policy, _)| policy).find(|policy| policy.system == options.system);
        bound = own.and_then(|policy| {
            let machine = Nominal::of(&policy);
            bind(policy, &machine).0
        });
    }
    Checked { diagnostics, sources, policy: bound }
}

/// What a thread found; its panic is the caller's.
fn joined<T>(thread: thread::ScopedJoinHandle<'_, T>) -> T {
    thread.join().unwrap_or_else(|panic| resume_unwind(panic))
}

/// What is said on the system that is looked at all the way, and what only `others` say.
fn here(
    policy: Policy,
    mut said: Vec<Diagnostic>,
    machine: Option<&dyn Host>,
    others: impl Iterator<Item = (System, (Vec<Diagnostic>, Vec<Span>))>,
) -> (Vec<Diagnostic>, Option<BoundPolicy>) {
    let mut accepted = Vec::new();
    let mut placed = Vec::new();
    let (bound, more) = if let Some(machine) = machine {
        let (mut bound, more) = bind(policy, machine);
        if let Some(policy) = &mut bound {
            observe(policy, machine);
        }
        (bound, more)
    } else {
        (placed, accepted) = placements(&policy);
        let machine = Nominal::of(&policy);
        bind(policy, &machine)
    };
    said.extend(more);
    let Some(bound) = bound.filter(|_| !any_error(&said)) else { return (said, None) };
    let (found, unused) = if bound.system == System::Linux {
        let compiled = compile(&bound, &Needs { performs: Watch::Writes, ..Needs::default() });
        (compiled.diagnostics, compiled.unused)
    } else {
        (elsewhere(&bound).0, Vec::new())
    };
    said.extend(found);
    said.extend(placed);
    for (system, (more, used)) in others {
        accepted.extend(used);
        for mut one in more {
            // What is so everywhere has been said.
            if !said.iter().any(|known| known.code == one.code && known.span() == one.span()) {
                one.message = format!("on {system}: {}", one.message);
                said.push(one);
            }
        }
    }
    if machine.is_none() {
        let unused = unused.into_iter();
        said.extend(unused.filter(|unused| unused.span().is_none_or(|at| !accepted.contains(&at))));
        // What is there and what is not is known on a machine alone.
        said.retain(|said| said.code != &NOT_GRANTED);
    }
    (said, Some(bound))
}
