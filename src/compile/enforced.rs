//! A bound policy → what carries it out on its own system: for Linux the plan, for the others the texts that were proved.

use super::artefact::{self, Built, Emit};
use super::compile;
use crate::backend::bubblewrap::Needs;
use crate::backend::limits::Limits;
use crate::backend::{Enforced, seatbelt, wfp};
use crate::diagnostic::{Diagnostic, any_error};
use crate::ir::{BoundPolicy, Policy};
use crate::source::Sources;
use crate::verify::Fault;
use crate::vocabulary::{Effect, System, Verb};

/// What became of a policy that is to be run.
#[derive(Debug)]
pub struct Made {
    /// Only where no finding is an error.
    pub enforced: Option<Enforced>,
    /// Everything that is said, accepted things left out.
    pub diagnostics: Vec<Diagnostic>,
}

/// Makes what carries a policy out on the system that it is for. `needs` is heeded on Linux alone.
///
/// # Errors
/// When a text is not the policy: a mistake in this program.
pub fn enforced(policy: &BoundPolicy, sources: &Sources, needs: &Needs) -> Result<Made, Fault> {
    match policy.system {
        System::Linux => {
            let compiled = compile(policy, needs);
            Ok(Made { enforced: compiled.plan.map(Enforced::Bubblewrap), diagnostics: compiled.diagnostics })
        }
        System::Macos => {
            let built = artefact::seatbelt(policy, sources, &[Emit::Sbpl])?;
            Ok(made(built, |mut texts| {
                let text = texts.pop()?;
                let profile = seatbelt::Profile { text, proxy: connects(policy), limits: Limits::of(policy) };
                Some(Enforced::Seatbelt(profile))
            }))
        }
        System::Windows => {
            let built = artefact::wfp(policy, sources, &[Emit::Wfp, Emit::Acl])?;
            Ok(made(built, |texts| {
                let [filters, access_lists] = <[String; 2]>::try_from(texts).ok()?;
                let proxy = connects(policy).then(|| wfp::Needs::default().proxy_ports);
                Some(Enforced::Wfp(wfp::Texts { filters, access_lists, proxy, limits: Limits::of(policy) }))
            }))
        }
    }
}

/// Whether anything may be connected to, which is the proxy's to decide.
fn connects(policy: &Policy) -> bool {
    policy.rules_of(Verb::Connect).any(|(_, rule)| rule.effect == Effect::Allow)
}

fn made(built: Built, enforced: impl FnOnce(Vec<String>) -> Option<Enforced>) -> Made {
    let Built { artefacts, diagnostics, gaps: _ } = built;
    let texts: Option<Vec<String>> = artefacts.into_iter().map(|(_, bytes)| String::from_utf8(bytes).ok()).collect();
    let enforced = if any_error(&diagnostics) { None } else { texts.and_then(enforced) };
    Made { enforced, diagnostics }
}
