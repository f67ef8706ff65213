//! Everything that is said of policy texts without running anything: about their names for each system, about their meaning
//! for one, on an assumed machine or a real one.
//!
//! Adds nothing to what the stages say. What a file is and where it lies is the caller's: texts come in under their names, and
//! what they use is read through [`Files`].

mod nominal;

pub use nominal::Nominal;

use crate::backend::bubblewrap::{NOT_GRANTED, Needs};
use crate::bind::{bind, observe};
use crate::compile::{compile, elsewhere, placements};
use crate::diagnostic::{Diagnostic, any_error};
use crate::host::Host;
use crate::ir::{BoundPolicy, Policy};
use crate::resolve::{Files, Options, resolve};
use crate::source::{Sources, Span};
use crate::vocabulary::System;

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

/// Looks at the union of some texts: for `options.system` all the way, for the others at names and at what they alone refuse.
/// Without a machine it is an assumed one, and what depends on which files there are is not said.
pub fn check(given: &[Given], files: &dyn Files, options: &Options, machine: Option<&dyn Host>) -> Checked {
    let mut others = Vec::new();
    for system in System::ALL.iter().filter(|system| **system != options.system) {
        let (policy, diagnostics, sources) = resolved(given, files, &Options { system: *system, ..options.clone() });
        // Said once: what is wrong everywhere comes with the same words for each system.
        if any_error(&diagnostics) {
            return Checked { diagnostics, sources, policy: None };
        }
        // Its lists are the same for each system, and are read once as long as one is there.
        others.extend(policy.map(|policy| (*system, elsewhere(&policy), sources, policy)));
    }
    let (policy, mut said, mut sources) = resolved(given, files, options);
    let Some(policy) = policy.filter(|_| !any_error(&said)) else {
        return Checked { diagnostics: said, sources, policy: None };
    };
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
    let bound = bound.filter(|_| !any_error(&said));
    if let Some(policy) = &bound {
        let compiled = compile(policy, &Needs { performs: true, ..Needs::default() });
        said.extend(compiled.diagnostics);
        said.extend(placed);
        for (system, (more, used), from, _) in others {
            accepted.extend(used.into_iter().map(|span| moved(span, &from, &mut sources)));
            for mut one in more {
                for label in &mut one.labels {
                    label.span = moved(label.span, &from, &mut sources);
                }
                // What is so everywhere has been said.
                if !said.iter().any(|known| known.code == one.code && known.span() == one.span()) {
                    one.message = format!("on {system}: {}", one.message);
                    said.push(one);
                }
            }
        }
        if machine.is_none() {
            said.extend(
                compiled.unused.into_iter().filter(|unused| unused.span().is_none_or(|at| !accepted.contains(&at))),
            );
            // What is there and what is not is known on a machine alone.
            said.retain(|said| said.code != &NOT_GRANTED);
        }
    }
    Checked { diagnostics: said, sources, policy: bound }
}

/// The same place among other texts.
fn moved(span: Span, from: &Sources, to: &mut Sources) -> Span {
    let source = from.get(span.source);
    let known = to.named(source.name());
    Span { source: known.unwrap_or_else(|| to.adopt(source)), ..span }
}

fn resolved(given: &[Given], files: &dyn Files, options: &Options) -> (Option<Policy>, Vec<Diagnostic>, Sources) {
    let mut sources = Sources::default();
    let given: Vec<_> = given.iter().map(|given| sources.add(given.name.clone(), given.text.clone())).collect();
    let (policy, diagnostics) = resolve(&given, &mut sources, files, options);
    (policy, diagnostics, sources)
}
