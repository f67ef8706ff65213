//! The summary for people: equal events on one line, and how to allow what was refused.
//!
//! The words come from the command's own requests and go to a terminal, so nothing in them may steer it.

use super::{Connection, Event, Kind, Outcome, Tally, Violation};
use crate::ir::Why;
use std::fmt::Write;

/// How many lines are worth reading; the rest is counted.
const LINES: usize = 20;

/// So many files that one rule refuses are told one by one.
const FEW: usize = 3;

/// The summary of `events`, one line a kind, without a final newline; empty when there are none.
pub fn summary(events: impl IntoIterator<Item = Event>) -> String {
    let mut tally = Tally::new(usize::MAX);
    events.into_iter().for_each(|event| tally.add(event));
    render(&tally)
}

/// All that is alike in one sentence, with how to allow it where it was refused.
pub fn sentence(kind: &Kind) -> String {
    match &kind.event {
        Event::Violation(violation) => line(violation, kind.count, &what(violation, kind.count), true),
        Event::Connection(connection) => allowed(connection, kind),
        Event::Limit(limit) => format!("the command was ended: it passed `limit {}`", limit.limit),
        Event::Dropped { count } => format!("{count} events are missing"),
    }
}

fn allowed(connection: &Connection, kind: &Kind) -> String {
    let s = if kind.count == 1 { "" } else { "s" };
    let Connection { path, host, port, operation, rule, through, .. } = connection;
    let object = match (host, port, path) {
        (Some(host), Some(port), _) if host.contains(':') => format!("[{host}]:{port}"),
        (Some(host), Some(port), _) => format!("{host}:{port}"),
        (Some(object), None, _) | (None, _, Some(object)) => object.clone(),
        (None, _, None) => "somewhere".to_owned(),
    };
    let direction = if operation == "listen" { "in at" } else { "to" };
    let mut line = format!("{} connection{s} {direction} {object} allowed", kind.count);
    // Writing into a string does not fail.
    if let Some(rule) = rule {
        let _ = write!(line, " by {}:{}", rule.file, rule.line);
    }
    if let Some(through) = through {
        let _ = write!(line, ", through {through}");
    }
    if kind.sent > 0 || kind.received > 0 {
        let _ = write!(line, "; {} bytes sent, {} received", kind.sent, kind.received);
    }
    printable(&line)
}

/// The summary of a tally.
pub(super) fn render(tally: &Tally) -> String {
    let groups = groups(tally);
    let mut lines: Vec<String> = groups.iter().take(LINES).map(Group::line).collect();
    let more: u64 = groups.iter().skip(LINES).map(Group::count).sum::<u64>() + tally.dropped();
    if more > 0 {
        lines.push(format!("{more} more refused"));
    }
    lines.join("\n")
}

/// What is told in one line.
struct Group<'t>(Vec<(&'t Violation, u64)>);

/// Each kind by itself, but many of files that one rule refuses alike; or, without a rule, many in one directory.
fn groups(tally: &Tally) -> Vec<Group<'_>> {
    let mut groups: Vec<Group<'_>> = Vec::new();
    for (violation, count) in tally.violations() {
        let alike = |group: &&mut Group<'_>| group.0[0].0.is_of_a_file_like(violation);
        match groups.iter_mut().find(alike) {
            Some(group) => group.0.push((violation, count)),
            None => groups.push(Group(vec![(violation, count)])),
        }
    }
    groups.into_iter().flat_map(Group::apart).collect()
}

impl Violation {
    fn is_of_a_file_like(&self, other: &Violation) -> bool {
        let is_of_a_file = |one: &Violation| matches!(&*one.operation, "read" | "write") && one.detail.is_none();
        let directory =
            |one: &Violation| one.path.as_deref().and_then(|path| Some(path.rsplit_once('/')?.0.to_owned()));
        is_of_a_file(self)
            && is_of_a_file(other)
            && (self.rule.is_some() || directory(self) == directory(other))
            && (&self.operation, self.outcome, self.why, &self.rule, &self.because)
                == (&other.operation, other.outcome, other.why, &other.rule, &other.because)
    }
}

impl<'t> Group<'t> {
    /// Few are told one by one, each with its remedy.
    fn apart(self) -> Vec<Group<'t>> {
        if self.0.len() > FEW { vec![self] } else { self.0.into_iter().map(|kind| Group(vec![kind])).collect() }
    }

    fn count(&self) -> u64 {
        self.0.iter().map(|(_, count)| count).sum()
    }

    fn line(&self) -> String {
        let [(first, count), others @ ..] = &self.0[..] else { return String::new() };
        if others.is_empty() {
            return line(first, *count, &what(first, *count), true);
        }
        let paths: Vec<&str> = self.0.iter().filter_map(|(violation, _)| violation.path.as_deref()).collect();
        let common = paths.iter().fold(paths[0], |common, path| shared(common, path));
        // Of a directory that is itself among them, as of all others.
        let place = common.rfind('/').map_or("", |slash| &common[..slash]);
        let place = if place.is_empty() { "/" } else { place };
        let (acts, count) = (if first.operation == "write" { "writes to" } else { "reads of" }, self.count());
        line(first, count, &format!("{acts} {} paths in {place}", paths.len()), false)
    }
}

/// What two texts begin with.
fn shared<'t>(one: &'t str, other: &str) -> &'t str {
    let differ = one.char_indices().zip(other.chars()).find(|((_, a), b)| a != b);
    let end = differ.map_or(one.len().min(other.len()), |((at, _), _)| at);
    &one[..end]
}

fn line(violation: &Violation, count: u64, what: &str, alone: bool) -> String {
    let mut line = format!("{count} {what}");
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
    if let Some(remedy) = violation.remedy.as_ref().filter(|_| alone) {
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
        "write" => format!("write{s} to {object}"),
        "read" => format!("read{s} of {object}"),
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
             1 write to /etc/x refused: no rule allows it"
        );
    }

    #[test]
    fn many_files_that_one_rule_refuses_are_one_line() {
        let write = |path: &str| {
            let remedy = Some(format!("allow write {path}"));
            let outcome = Outcome::Predicted;
            let path = Some(path.to_owned());
            Event::Violation(Violation { host: None, port: None, path, remedy, outcome, ..refused_write() })
        };
        let few = ["/usr/lib/a", "/usr/lib/b", "/usr/lib/b"].map(write);
        assert_eq!(
            summary(few.clone()),
            "1 write to /usr/lib/a expected to be refused: no rule allows it; to allow: `allow write /usr/lib/a`\n\
             2 writes to /usr/lib/b expected to be refused: no rule allows it; to allow: `allow write /usr/lib/b`"
        );
        let more = ["/usr/lib/bd", "/usr/lib/\u{e9}", "/usr/lib/\u{e8}", "/usr/x"].map(write);
        assert_eq!(
            summary(few.into_iter().chain(more)),
            "6 writes to 5 paths in /usr/lib expected to be refused: no rule allows it\n\
             1 write to /usr/x expected to be refused: no rule allows it; to allow: `allow write /usr/x`"
        );
        let rule = RuleText { file: "agent.policy".into(), line: 12, text: "deny write **/hooks".into() };
        let by_rule = ["/a/hooks/x", "/b/hooks/y", "/b/hooks/z", "/b/hooks"].map(|path| match write(path) {
            Event::Violation(violation) => Event::Violation(Violation { rule: Some(rule.clone()), ..violation }),
            other => other,
        });
        assert_eq!(summary(by_rule), "4 writes to 4 paths in / expected to be refused by agent.policy:12");
    }

    fn refused_write() -> Violation {
        Violation { operation: "write".into(), ..refused("", 0) }
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
