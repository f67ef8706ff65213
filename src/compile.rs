//! The stages after binding, together: findings, proofs and the plan of a policy, less what its comments accept.
//!
//! Adds nothing to what `lint` and `backend` say; reads and runs nothing.

pub mod archive;
pub mod artefact;
mod enforced;
mod environment;
pub mod live;

pub use enforced::{Made, enforced};
pub use environment::environment;

use crate::backend::Target;
use crate::backend::bubblewrap::{Needs, Plan, lower};
use crate::backend::{seatbelt, wfp};
use crate::diagnostic::{Diagnostic, any_error};
use crate::ir::{BoundPolicy, Origin, Policy, Rule, Suppression};
use crate::lint::{self, Wanted};
use crate::resolve;
use crate::source::Span;
use crate::vocabulary::System;

/// What became of a policy.
#[derive(Debug)]
pub struct Compiled {
    /// What may be carried out: only where no finding is an error.
    pub plan: Option<Plan>,
    /// Every gap, accepted or not.
    pub gaps: Vec<Diagnostic>,
    /// Everything that is said, accepted things left out.
    pub diagnostics: Vec<Diagnostic>,
    /// A finding for each comment, outside the embedded modules, that accepts nothing. Apart, since on one machine a
    /// gap may be closed that is open on another.
    pub unused: Vec<Diagnostic>,
}

/// Compiles a bound policy for Linux.
pub fn compile(policy: &BoundPolicy, needs: &Needs) -> Compiled {
    let mut said = lint::run(policy, Wanted { errors_alone: needs.errors_alone, shell_config });
    let (plan, gaps) = match lower(policy, needs) {
        Ok(lowered) => {
            said.extend(lowered.gaps.iter().cloned());
            (Some(lowered.plan), lowered.gaps)
        }
        Err(unenforceable) => {
            said.extend(unenforceable);
            (None, Vec::new())
        }
    };
    let (diagnostics, used) =
        lint::suppress(said, policy, &[&Target::Bubblewrap.acceptable()[..], lint::ESCAPES].concat());
    let unused = lint::unused(policy, &used, |span| !in_std(policy, span));
    let plan = plan.filter(|_| !any_error(&diagnostics));
    Compiled { plan, gaps, diagnostics, unused }
}

/// What is said of a policy for a system that it is not bound on, accepted things left out; and the comments that accept
/// something there.
pub fn elsewhere(policy: &Policy) -> (Vec<Diagnostic>, Vec<Span>) {
    let mut said = lint::elsewhere(policy, Wanted { errors_alone: false, shell_config });
    if policy.system == System::Macos {
        // What stops a compile there; the notes are for whoever compiles for it.
        said.extend(seatbelt::stopping(policy));
    }
    let (said, mut used) = accepting(policy, said);
    // The gaps are for whoever compiles for it; what accepts one is of use. To find them takes long, and most policies say
    // nothing of them.
    let waits = |suppression: &Suppression| {
        Target::of(policy.system).gaps().iter().any(|kind| kind.code.name == suppression.code)
            && !used.contains(&suppression.span)
            && !in_std(policy, suppression.span)
    };
    if policy.suppressions.iter().any(waits) {
        let gaps = match policy.system {
            System::Linux => None,
            System::Macos => seatbelt::lower(policy).ok().map(|lowered| lowered.gaps),
            System::Windows => wfp::lower(policy, &wfp::Needs::default()).ok().map(|lowered| lowered.gaps),
        };
        used.extend(accepting(policy, gaps.into_iter().flatten().map(|gap| gap.said).collect()).1);
    }
    (said, used)
}

/// What is said of the places that the variables of a policy may have, accepted things left out; and the comments that accept
/// something of it. The policy is not bound.
pub fn placements(policy: &Policy) -> (Vec<Diagnostic>, Vec<Span>) {
    accepting(policy, lint::placements(policy))
}

fn accepting(policy: &Policy, said: Vec<Diagnostic>) -> (Vec<Diagnostic>, Vec<Span>) {
    let acceptable = [&Target::of(policy.system).acceptable()[..], lint::ESCAPES].concat();
    let (diagnostics, used) = lint::suppress(said, policy, &acceptable);
    let used = policy.suppressions.iter().zip(used).filter(|(_, used)| *used).map(|(suppression, _)| suppression.span);
    (diagnostics, used.collect())
}

fn shell_config(system: System) -> Vec<Rule> {
    resolve::std_rules("shell-config", system)
}

/// Whether a place is in an embedded module, which is written for every machine at once.
fn in_std(policy: &Policy, span: Span) -> bool {
    policy.rules.iter().any(|rule| rule.origin == Origin::Std && rule.span.source == span.source)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use crate::bind::{bind, bind_grants};
    use crate::diagnostic::Level;
    use crate::host::nominal;
    use crate::resolve::{Options, STD, resolve, tests::Texts};
    use crate::source::Sources;
    use crate::vocabulary::{Effect, Verb};

    #[test]
    fn what_is_an_error_does_not_depend_on_what_else_is_wanted() {
        for nest in [false, true] {
            for (name, text) in STD {
                let mut sources = Sources::default();
                let text = if *name == "default" {
                    (*text).to_owned()
                } else {
                    format!("srt 1\nuse std/system\nuse std/{name}\ndefault read allow\nallow read, write $WORKSPACE\n")
                };
                let given = sources.add(*name, text);
                let options = Options { system: System::Linux, defines: std::collections::BTreeMap::new() };
                let policy = resolve(&[given], &mut sources, &Texts(&[]), &options).0.unwrap();
                let [all, errors] = [false, true].map(|errors_alone| {
                    let bind = if errors_alone { bind_grants } else { bind };
                    let policy = bind(policy.clone(), &nominal()).0.unwrap();
                    if errors_alone && *name == "secrets" {
                        let reads = policy.rules_of(Verb::Read).filter(|(_, rule)| rule.effect == Effect::Deny).count();
                        assert!(reads < 30, "of hundreds of secrets few are there, or may be made: {reads}");
                    }
                    let compiled = compile(&policy, &Needs { nest, errors_alone, ..Needs::default() });
                    let errors = compiled.diagnostics.into_iter().filter(|said| said.level == Level::Error);
                    (compiled.plan, errors.collect::<Vec<_>>())
                });
                assert_eq!(all, errors, "std/{name}");
            }
        }
    }
}
