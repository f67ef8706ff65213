//! Which events of a log are meant.

use super::super::arguments::{Ended, Log};
use super::super::{load, output};
use sandbox_runtime::bind::bind;
use sandbox_runtime::diagnostic::{Level, any_error};
use sandbox_runtime::event::{Event, Outcome, RuleText, timestamp};
use sandbox_runtime::ir::{BoundPolicy, decide};
use sandbox_runtime::source::Sources;
use sandbox_runtime::vocabulary::Verb;
use std::time::{Duration, SystemTime};

/// All that an event must be.
pub struct Filter {
    operation: Option<String>,
    /// A policy whose only rule is about the target.
    target: Option<BoundPolicy>,
    outcome: Option<Outcome>,
    /// The end of the file's name, if any, and the line.
    rule: Option<(Option<String>, u32)>,
    pid: Option<i32>,
    since: Option<String>,
}

impl Filter {
    /// The filter that the command line asks for.
    ///
    /// # Errors
    /// A sentence for the command line.
    pub fn new(log: &Log) -> Result<Self, String> {
        let verb = log.operation.as_deref().map(verb).transpose()?;
        let target = match (verb, &log.target) {
            (Some(verb), Some(target)) => Some(set(log, verb, target)?),
            _ => None,
        };
        let outcome = log.outcome.map(|outcome| match outcome {
            Ended::Refused => Outcome::Refused,
            Ended::Predicted => Outcome::Predicted,
            Ended::Allowed => Outcome::Allowed,
        });
        let rule = log.rule.as_deref().map(place).transpose()?;
        let (operation, since) = (log.operation.clone(), log.since.clone());
        Ok(Self { operation, target, outcome, rule, pid: log.pid, since })
    }

    /// Whether an event is one of those. Of events that were dropped nothing is known: they are.
    pub fn keeps(&self, event: &Event) -> bool {
        let (operation, outcome, rule, pid) = match event {
            Event::Violation(it) => (&it.operation, it.outcome, it.rule.as_ref(), it.pid),
            Event::Connection(it) => (&it.operation, it.outcome, it.rule.as_ref(), None),
            Event::Limit(_) => {
                let since = self.since.as_ref().is_none_or(|since| event.timestamp() >= Some(since));
                let any =
                    self.operation.is_none() && self.outcome.is_none() && self.rule.is_none() && self.pid.is_none();
                return any && since;
            }
            Event::Dropped { .. } => return true,
        };
        let since = |since: &String| event.timestamp().is_some_and(|time| time >= &**since);
        let aimed =
            |policy: &BoundPolicy| event.accesses().iter().any(|access| !decide(policy, access).matching.is_empty());
        self.operation.as_ref().is_none_or(|wanted| wanted == operation)
            && self.outcome.is_none_or(|wanted| wanted == outcome)
            && self.pid.is_none_or(|wanted| Some(wanted) == pid)
            && self.rule.as_ref().is_none_or(|wanted| rule.is_some_and(|rule| is_at(rule, wanted)))
            && self.since.as_ref().is_none_or(since)
            && self.target.as_ref().is_none_or(aimed)
    }
}

fn is_at(rule: &RuleText, (file, line): &(Option<String>, u32)) -> bool {
    let named = |file: &String| rule.file == *file || rule.file.ends_with(&format!("/{file}"));
    rule.line == *line && file.as_ref().is_none_or(named)
}

/// The verb by which an operation's target is read.
fn verb(operation: &str) -> Result<Verb, String> {
    match operation {
        "resolve" => Ok(Verb::Connect),
        _ => Verb::from_word(operation).filter(|verb| !matches!(verb, Verb::Env | Verb::Mach)).ok_or_else(|| {
            format!("`{operation}` is no operation: read, write, exec, connect, listen, socket and resolve are")
        }),
    }
}

/// The target as the language has it, on this machine.
fn set(log: &Log, verb: Verb, target: &str) -> Result<BoundPolicy, String> {
    let directory = std::env::current_dir().map_err(|error| format!("cannot tell where this is: {error}"))?;
    let mut sources = Sources::default();
    // A denial without ports is about every port.
    let text = format!("srt 1\ndefault read allow\ndeny {verb} {target}\n");
    let given = sources.add("the command line", text);
    let loaded = load::resolved(&[given], sources, &log.defines, load::this_system());
    let (sources, mut said) = (loaded.sources, loaded.diagnostics);
    let bound = match loaded.policy.filter(|_| !any_error(&said)) {
        Some(policy) => {
            let machine = load::machine(log.workspace.as_deref(), &log.defines, &directory)?;
            let (bound, more) = bind(policy, &machine);
            said.extend(more);
            bound.filter(|_| !any_error(&said))
        }
        None => None,
    };
    bound.ok_or_else(|| {
        output::print_diagnostics(&said, &sources, Level::Error);
        format!("`{target}` is no target of `{verb}`")
    })
}

/// `12`, or `agent.policy:12`.
fn place(text: &str) -> Result<(Option<String>, u32), String> {
    let (file, line) = text.rsplit_once(':').map_or((None, text), |(file, line)| (Some(file.to_owned()), line));
    let line = line.parse().map_err(|_| format!("--rule {text}: write it as LINE or FILE:LINE"))?;
    Ok((file, line))
}

/// The beginning of a timestamp: one that was given, or of so long ago.
///
/// # Errors
/// A sentence for the command line.
pub fn since(text: &str) -> Result<String, String> {
    let wrong = || "write it as 30s, 10m, 2h or 1d, or as a time (UTC) such as 2026-01-31T08:00".to_owned();
    let unit = |last: char| match last {
        's' => Some(1),
        'm' => Some(60),
        'h' => Some(3600),
        'd' => Some(86_400),
        _ => None,
    };
    if let Some(unit) = text.chars().last().and_then(unit) {
        let count: u64 = text[..text.len() - 1].parse().map_err(|_| wrong())?;
        let ago = Duration::from_secs(count.checked_mul(unit).ok_or_else(wrong)?);
        return Ok(timestamp(SystemTime::now().checked_sub(ago).unwrap_or(SystemTime::UNIX_EPOCH)));
    }
    // Times stand in the order of their texts, and a beginning before what goes on.
    let text = text.replacen(' ', "T", 1);
    let text = text.trim_end_matches('Z');
    let form = b"0000-00-00T00:00:00.000";
    let fits = |(form, byte): (&u8, u8)| if *form == b'0' { byte.is_ascii_digit() } else { *form == byte };
    let whole = [10, 13, 16, 19, 23].contains(&text.len()) && form.iter().zip(text.bytes()).all(fits);
    if whole { Ok(text.to_owned()) } else { Err(wrong()) }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn times_are_given_or_so_long_ago() {
        let now = timestamp(SystemTime::now());
        for ago in ["0s", "90m", "2h", "365d"] {
            let since = since(ago).unwrap();
            assert!(since.len() == now.len() && since <= timestamp(SystemTime::now()), "{ago}: {since}");
        }
        assert!(since("99999999999d").unwrap().starts_with("1970-01-01"));
        assert_eq!(since("2026-01-31 08:00").unwrap(), "2026-01-31T08:00");
        assert_eq!(since("2026-01-31T08:00:00.000Z").unwrap(), "2026-01-31T08:00:00.000");
        for wrong in ["", "s", "-1h", "1.5h", "yesterday", "2026", "2026-01-31T", "2026-01-31T08:00+01:00", "1w", "ü"]
        {
            assert!(since(wrong).is_err(), "{wrong}");
        }
    }
}
