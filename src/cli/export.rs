//! `srt export`: a policy as another tool's settings, with what they cannot say.

use super::arguments::Export;
use super::{load, output, status};
use sandbox_runtime::compat::export::{Lost, settings};
use sandbox_runtime::diagnostic::{Level, any_error};
use sandbox_runtime::ir::Policy;
use sandbox_runtime::source::{SourceId, Sources};
use sandbox_runtime::vocabulary::{Effect, System};
use std::collections::BTreeSet;

pub fn export(export: &Export) -> u8 {
    let mut sources = Sources::default();
    let source = match load::add(&export.file, &mut sources) {
        Ok(source) => source,
        Err(message) => {
            output::complain(message);
            return status::USAGE;
        }
    };
    let loaded = load::resolved(&[source], sources, &export.defines, System::Linux);
    let Some(policy) = loaded.policy.filter(|_| !any_error(&loaded.diagnostics)) else {
        output::print_diagnostics(&loaded.diagnostics, &loaded.sources, Level::Error);
        return status::FINDINGS;
    };
    let (value, mut lost) = settings(&policy);
    lost.extend(elsewhere(export, source, &loaded.sources, &policy));
    lost.sort();
    for one in &lost {
        let place = loaded.sources.location(one.span);
        let text = loaded.sources.slice(one.span).split_whitespace().collect::<Vec<_>>().join(" ");
        let word = if one.opens { "looser" } else { "stricter" };
        output::complain(format_args!("{place}: {word}: `{text}`: {}", one.message));
    }
    output::print(&format!("{value:#}\n"));
    let looser = lost.iter().filter(|one| one.opens).count();
    if export.strict && looser > 0 {
        output::complain(format_args!(
            "more is open under the settings than under the policy, in {}",
            output::count(looser, "place")
        ));
        return status::FINDINGS;
    }
    0
}

/// What the policy's own text says for another system alone: the settings are one for all of them.
fn elsewhere(export: &Export, source: SourceId, read: &Sources, here: &Policy) -> Vec<Lost> {
    let known: BTreeSet<_> = here.rules.iter().map(|rule| rule.span).collect();
    let mut lost = BTreeSet::new();
    for system in [System::Macos, System::Windows] {
        let mut sources = Sources::default();
        // The first text, as there, so that its places are the same.
        sources.adopt(read.get(source));
        let policy = load::resolved(&[source], sources, &export.defines, system).policy;
        for rule in policy.iter().flat_map(|policy| &policy.rules) {
            if rule.span.source == source && !known.contains(&rule.span) {
                let message = format!("what holds on {system} alone is left out");
                lost.insert(Lost { span: rule.span, message, opens: rule.effect != Effect::Allow });
            }
        }
    }
    lost.into_iter().collect()
}
