//! The summary for people: equal events on one line, and how to allow what was refused.
//!
//! The words come from the command's own requests and go to a terminal, so nothing in them may steer it.

use super::{Event, Outcome, Tally, Violation};
use crate::ir::Why;
use std::fmt::Write;

/// How many lines are worth reading; the rest is counted.
const LINES: usize = 20;

/// The summary of `events`, one line a kind, without a final newline; empty when there are none.
pub fn summary(events: impl IntoIterator<Item = Event>) -> String {
    let mut tally = Tally::default();
    events.into_iter().for_each(|event| tally.add(event));
    render(&tally)
}

/// The summary of a tally.
pub(super) fn render(tally: &Tally) -> String {
    let mut lines: Vec<String> = tally.kinds().take(LINES).map(|(violation, count)| line(violation, count)).collect();
    let more: u64 = tally.kinds().skip(LINES).map(|(_, count)| count).sum::<u64>() + tally.dropped();
    if more > 0 {
        lines.push(format!("{more} more refused"));
    }
    lines.join("\n")
}

fn line(violation: &Violation, count: u64) -> String {
    let mut line = format!("{count} {}", what(violation, count));
    let done = match violation.outcome {
        Outcome::Allowed => "allowed",
        Outcome::Refused => "refused",
        Outcome::Predicted => "expected to be refused",
    };
    // Writing into a string does not fail.
    let _ = match (&violation.rule, violation.why) {
        _ if violation.detail.is_some() => {
            write!(line, " {done}: {}", violation.detail.as_deref().unwrap_or_default())
        }
        (_, Some(Why::Special)) => {
            let address = violation.address.as_deref().unwrap_or("its address");
            write!(line, " {done}: the name is allowed, but no rule allows {address}, which is special or private")
        }
        (Some(rule), _) => {
            let because = violation.because.as_ref().map(|text| format!(" (because {text})")).unwrap_or_default();
            write!(line, " {done} by {}:{}{because}", rule.file, rule.line)
        }
        (None, _) => write!(line, " {done}: no rule allows it"),
    };
    if let Some(remedy) = &violation.remedy {
        let _ = write!(line, "; to allow: `{remedy}`");
    }
    printable(&line)
}

fn what(violation: &Violation, count: u64) -> String {
    let s = if count == 1 { "" } else { "s" };
    let object = match (&violation.host, violation.port, &violation.path) {
        (Some(host), Some(port), _) if host.contains(':') => format!("[{host}]:{port}"),
        (Some(host), Some(port), _) => format!("{host}:{port}"),
        (Some(host), None, _) => host.clone(),
        (None, _, Some(path)) => path.clone(),
        (None, _, None) if violation.detail.is_some() => return format!("act{s}"),
        (None, _, None) => "something unnamed".into(),
    };
    match violation.operation.as_str() {
        "connect" | "socket" => format!("connection{s} to {object}"),
        "resolve" if violation.host.is_none() => format!("look-up{s}"),
        operation => format!("`{operation}`{s} of {object}"),
    }
}

/// The text without what a terminal takes for a command or what hides or turns other characters.
pub fn printable(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for character in text.chars() {
        match character {
            '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2060}'..='\u{206f}' | '\u{feff}' => {
                out.extend(character.escape_unicode());
            }
            _ if character.is_control() => out.extend(character.escape_default()),
            _ => out.push(character),
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::super::RuleText;
    use super::super::tests::refused;
    use super::*;

    #[test]
    fn equal_refusals_are_one_line() {
        let mut by_rule = refused("evil.test", 80);
        by_rule.rule = Some(RuleText { file: "agent.policy".into(), line: 12, text: "deny connect *.test".into() });
        by_rule.why = Some(Why::Denied);
        by_rule.because = Some("not for agents".into());
        by_rule.remedy = None;
        let mut special = refused("inside.test", 80);
        special.why = Some(Why::Special);
        special.address = Some("169.254.169.254".into());
        special.remedy = Some("allow connect 169.254.169.254:80".into());
        let mut write = refused("", 0);
        (write.host, write.port, write.path, write.remedy) = (None, None, Some("/etc/x".into()), None);
        write.operation = "write".into();
        let events = [by_rule.clone(), refused("other.test", 443), by_rule, special, write];
        assert_eq!(
            summary(events.map(Event::Violation)),
            "2 connections to evil.test:80 refused by agent.policy:12 (because not for agents)\n\
             1 connection to other.test:443 refused: no rule allows it; to allow: `allow connect other.test:443`\n\
             1 connection to inside.test:80 refused: the name is allowed, but no rule allows 169.254.169.254, which is \
             special or private; to allow: `allow connect 169.254.169.254:80`\n\
             1 `write` of /etc/x refused: no rule allows it"
        );
    }

    #[test]
    fn what_does_not_fit_is_counted() {
        let events = (0..30).map(|number| Event::Violation(refused(&format!("h{number}.test"), 80)));
        let text = summary(events);
        assert_eq!(text.lines().count(), LINES + 1);
        assert!(text.ends_with("\n10 more refused"), "{text}");
    }

    #[test]
    fn nothing_in_an_event_steers_the_terminal() {
        let mut violation = refused("x", 80);
        violation.host = None;
        violation.path = Some("/a\x1b[2J\u{202e}\r\n\u{9b}b".into());
        violation.remedy = None;
        let text = summary([Event::Violation(violation)]);
        assert_eq!(text, r"1 connection to /a\u{1b}[2J\u{202e}\r\n\u{9b}b refused: no rule allows it");
    }
}
