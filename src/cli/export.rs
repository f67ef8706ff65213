//! `srt export`: a policy as another tool's settings, with what they cannot say.

use super::arguments::Export;
use super::{load, output, status};
use sandbox_runtime::compat::export::settings;
use sandbox_runtime::diagnostic::{Level, any_error};
use sandbox_runtime::source::Sources;
use sandbox_runtime::vocabulary::System;

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
    let (value, lost) = settings(&policy);
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
