//! `srt run --print-policy`: what would be in force, with where each rule came from.

use super::rule;
use sandbox_runtime::ir::BoundPolicy;
use sandbox_runtime::source::Sources;
use std::fmt::Write as _;
use std::io::Write as _;

pub fn print(policy: &BoundPolicy, sources: &Sources) {
    let text = text(policy, sources);
    // A closed pipe is how readers say that they have enough.
    let _ = std::io::stdout().write_all(text.as_bytes());
}

/// One line a rule, its place in the text behind it; the lines are in columns so that places can be read down.
fn text(policy: &BoundPolicy, sources: &Sources) -> String {
    let mut lines: Vec<(String, String)> = Vec::new();
    let mut line = |text: String, span| lines.push((text, sources.location(span).to_string()));
    let default = &policy.default_read;
    line(format!("default read {}", default.value), default.span);
    if let Some(default) = &policy.default_env {
        line(format!("default env {}", default.value), default.span);
    }
    for rule in &policy.rules {
        line(rule::with_reason(rule, sources), rule.span);
    }
    for ignore in &policy.ignores {
        let target = sources.slice(ignore.span).split_whitespace().collect::<Vec<_>>().join(" ");
        let because = ignore.because.as_ref().map(|because| format!(" because {because:?}")).unwrap_or_default();
        line(format!("ignore {} {target}{because}", ignore.verb), ignore.span);
    }
    for (name, setting) in &policy.set {
        line(format!("set {name}={}", setting.value), setting.span);
    }
    for (kind, limit) in &policy.limits {
        line(format!("limit {kind} {}", amount(*kind, limit.value)), limit.span);
    }
    let width = lines.iter().map(|(text, _)| text.chars().count()).filter(|width| *width <= 72).max().unwrap_or(0);
    let mut text = String::new();
    for (name, value) in &policy.facts.variables {
        // Writing into a string does not fail.
        let _ = writeln!(text, "# ${name} is {value}");
    }
    for (rule, place) in lines {
        let _ = writeln!(text, "{rule:width$}  # {place}");
    }
    text
}

fn amount(kind: sandbox_runtime::vocabulary::LimitKind, value: u64) -> String {
    use sandbox_runtime::vocabulary::LimitKind as Kind;
    match kind {
        Kind::Memory | Kind::Filesize => {
            for (unit, size) in [("GiB", 1 << 30), ("MiB", 1 << 20), ("KiB", 1 << 10)] {
                if value >= size && value.is_multiple_of(size) {
                    return format!("{}{unit}", value / size);
                }
            }
            value.to_string()
        }
        Kind::Cpu => format!("{value}s"),
        Kind::Time => {
            for (unit, size) in [("h", 3_600_000), ("m", 60_000), ("s", 1000)] {
                if value >= size && value.is_multiple_of(size) {
                    return format!("{}{unit}", value / size);
                }
            }
            format!("{value}ms")
        }
        Kind::Processes | Kind::Files => value.to_string(),
    }
}
