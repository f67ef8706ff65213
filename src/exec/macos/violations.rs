//! What the kernel refused the command, out of the system's log, as events with the rule that refuses it.
//!
//! Decides nothing: the profile did. What comes is bounded, and nobody waits for it but a moment at the end.

use super::log::{LONGEST, refused};
use crate::event::{Event, Sink, Violation};
use crate::ir::{Access, decide};
use crate::proxy::Rules;
use crate::sets::path::AbsPath;
use crate::vocabulary::Verb;
use std::io::{self, BufRead, BufReader, Read};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::thread;
use std::time::Duration;

/// What the log shows late is waited for so long.
const LATE: Duration = Duration::from_millis(300);

/// `log stream`, and the thread that reads it.
#[derive(Debug)]
pub struct Violations(Child);

impl Violations {
    /// Starts reading. What happens before the log's own program is there is not told.
    ///
    /// # Errors
    /// Whatever starting it fails with.
    pub fn watch(log: &Path, tag: &str, rules: Arc<Rules>, events: Arc<dyn Sink>) -> io::Result<Self> {
        let mut child = Command::new(log)
            .args(["stream", "--style", "ndjson", "--predicate"])
            .arg(predicate(tag))
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()?;
        let output = child.stdout.take().ok_or(io::ErrorKind::BrokenPipe)?;
        let tag = tag.to_owned();
        thread::Builder::new().spawn(move || read(BufReader::new(output), &tag, &rules, &*events))?;
        Ok(Self(child))
    }

    /// Waits a moment for what is late, and ends.
    pub fn end(mut self) {
        thread::sleep(LATE);
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// The tag is letters, digits and `-`: there is nothing to quote.
fn predicate(tag: &str) -> String {
    format!("eventMessage ENDSWITH \"{tag}\"")
}

fn read(mut lines: impl BufRead, tag: &str, rules: &Rules, events: &dyn Sink) {
    let mut line = Vec::new();
    loop {
        line.clear();
        match lines.by_ref().take(LONGEST as u64).read_until(b'\n', &mut line) {
            Ok(0) | Err(_) => return,
            Ok(_) => {}
        }
        // A part of one that is too long is no JSON, and neither is its rest.
        if let Some(violation) = refused(&line, tag).and_then(|refused| told(refused, rules)) {
            events.report(Event::Violation(violation));
        }
    }
}

/// With the rule that refuses it; of what the policy itself allows it is said that the system did.
fn told(refused: super::log::Refused, rules: &Rules) -> Option<Violation> {
    let super::log::Refused { process, name, verb, what } = refused;
    let path = || AbsPath::parse(&what).ok();
    let access = match verb {
        Verb::Mach => Access::Mach(what.clone()),
        Verb::Read => Access::Read(path()?),
        Verb::Write => Access::Write(path()?),
        Verb::Exec => Access::Exec(path()?),
        _ => Access::Socket(path()?),
    };
    let verdict = decide(&rules.policy, &access);
    let told = verdict.decisive.first().filter(|_| !verdict.allowed).map(|id| rules.told(*id));
    let (rule, because) = told.map_or((None, None), |(rule, because)| (Some(rule), because));
    let gap = "the policy allows it, and what the profile says is stricter";
    Some(Violation {
        pid: Some(process),
        comm: Some(name),
        path: Some(what),
        why: (!verdict.allowed).then_some(verdict.why),
        rule,
        because,
        detail: verdict.allowed.then(|| gap.to_owned()),
        ..Violation::refused(&verb.to_string())
    })
}
