//! What a draft says: of each rule what it is for, and of what is not drafted why.

use super::super::{output, rule};
use super::Chosen;
use sandbox_runtime::draft::{Draft, General, Proposal, Refusal};
use sandbox_runtime::event::{Event, Kind, printable};
use sandbox_runtime::ir::{Policy, Rule, RuleId, decide};
use sandbox_runtime::source::{Sources, hides};
use std::collections::BTreeSet;
use std::fmt::Write as _;

/// So many of what is not drafted are told one by one.
const LINES: usize = 20;

/// So many programs are named.
const PROGRAMS: usize = 4;

pub struct Said<'a> {
    pub policy: &'a Policy,
    pub sources: &'a Sources,
    pub secrets: &'a (Sources, Vec<Rule>),
    pub kinds: &'a [&'a Kind],
}

impl Said<'_> {
    /// The statements of proposals, each with what it was drafted for above it.
    pub fn lines(&self, proposals: &[Proposal]) -> String {
        let mut text = String::new();
        for proposal in proposals {
            // Writing into a string does not fail.
            let _ = writeln!(text, "# drafted: {}", self.reason(proposal));
            for statement in &proposal.statements {
                let _ = writeln!(text, "{statement}");
            }
        }
        text
    }

    fn reason(&self, proposal: &Proposal) -> String {
        let kinds: Vec<&Kind> = proposal.wishes.iter().map(|number| self.kinds[*number]).collect();
        let mut operations: Vec<(String, u64)> = Vec::new();
        for kind in &kinds {
            let Event::Violation(violation) = &kind.event else { continue };
            match operations.iter_mut().find(|(operation, _)| *operation == violation.operation) {
                Some((_, count)) => *count += kind.count,
                None => operations.push((violation.operation.clone(), kind.count)),
            }
        }
        let words = operations.iter().map(|(operation, count)| format!("{operation} {count} ×"));
        let mut text = words.collect::<Vec<_>>().join(", ");
        if kinds.len() > 1 {
            let _ = write!(text, " in {} places", kinds.len());
        }
        let programs: BTreeSet<&str> = kinds.iter().flat_map(|kind| kind.by.iter().map(String::as_str)).collect();
        if !programs.is_empty() {
            let some: Vec<&str> = programs.iter().copied().take(PROGRAMS).collect();
            let more = if programs.len() > PROGRAMS { " and others" } else { "" };
            let _ = write!(text, ", by {}{more}", some.join(", "));
        }
        text.push_str(&self.denied_by(proposal));
        text.push_str(match proposal.general {
            Some(General::Names) => "; a star stands where the names differ",
            Some(General::Directory) => "; all of the directory, as much of it was asked for",
            Some(General::Domain) => "; all names below the domain, as several of them were asked for",
            Some(General::Ports) => "; no port was named, so the usual two",
            None => "",
        });
        plain(&text)
    }

    /// Which rules of the policy the proposal opens.
    fn denied_by(&self, proposal: &Proposal) -> String {
        let Ok(accesses) = proposal.wishes.iter().map(|number| self.accesses(*number)).collect::<Result<Vec<_>, _>>()
        else {
            return String::new();
        };
        let mut rules: BTreeSet<RuleId> = BTreeSet::new();
        for access in accesses.iter().flatten() {
            let verdict = decide(self.policy, access);
            if !verdict.allowed {
                rules.extend(verdict.decisive.first());
            }
        }
        let words = rules.iter().map(|id| {
            let rule = self.policy.rule(*id);
            let because = rule.because.as_ref().map(|text| format!(" ({text})")).unwrap_or_default();
            format!("{}{because}", self.sources.location(rule.span))
        });
        let words: Vec<String> = words.collect();
        if words.is_empty() { String::new() } else { format!("; denied by {}", words.join(", ")) }
    }

    fn accesses(&self, number: usize) -> Result<Vec<sandbox_runtime::ir::Access>, ()> {
        match &self.kinds[number].event {
            Event::Violation(violation) => Ok(violation.accesses()),
            _ => Err(()),
        }
    }

    /// What became of everything, in lines.
    pub fn summary(&self, chosen: &Chosen, drafted: &Draft, dropped: u64) -> String {
        let mut text = String::new();
        let wishes: BTreeSet<usize> = chosen.taken.iter().flat_map(|proposal| proposal.wishes.clone()).collect();
        let rules = chosen.taken.iter().map(|proposal| proposal.statements.len()).sum::<usize>();
        let all = output::count(self.kinds.len(), "kind");
        let _ = match wishes.len() {
            0 => writeln!(text, "srt: nothing is drafted for {all} of refusals"),
            some => writeln!(text, "srt: {} for {some} of {all} of refusals", output::count(rules, "rule")),
        };
        if !drafted.allowed.is_empty() {
            let _ = writeln!(text, "{} allowed already", output::count(drafted.allowed.len(), "kind"));
        }
        if dropped > 0 {
            let _ = writeln!(text, "{} missing in the log", output::count_u64(dropped, "event"));
        }
        let mut left: Vec<(usize, String)> =
            drafted.refused.iter().map(|(number, refusal)| (*number, self.refusal(refusal))).collect();
        for (proposal, why) in &chosen.left {
            let why = format!("`{}` is left out: {why}", proposal.statements.join("`, `"));
            left.extend(proposal.wishes.iter().map(|number| (*number, why.clone())));
        }
        left.sort();
        for (number, why) in left.iter().take(LINES) {
            let _ = writeln!(text, "not drafted: {}: {}", self.object(*number), plain(why));
        }
        if left.len() > LINES {
            let _ = writeln!(text, "not drafted: {} others", left.len() - LINES);
        }
        for note in &chosen.notes {
            let _ = writeln!(text, "not-granted: {}", plain(note));
        }
        text
    }

    fn object(&self, number: usize) -> String {
        let Event::Violation(it) = &self.kinds[number].event else { return String::new() };
        let object = match (&it.path, &it.host, it.port) {
            (Some(path), ..) => path.clone(),
            (None, Some(host), Some(port)) => format!("{host}:{port}"),
            (None, Some(host), None) => host.clone(),
            (None, None, _) => it.detail.clone().unwrap_or_default(),
        };
        plain(&format!("{} {object}", it.operation))
    }

    fn refusal(&self, refusal: &Refusal) -> String {
        match refusal {
            Refusal::Unnamed => "no rule could be about it".to_owned(),
            Refusal::Forbidden(id) => {
                let rule = self.policy.rule(*id);
                format!("{} says `{}`", self.sources.location(rule.span), rule::with_reason(rule, self.sources))
            }
            Refusal::Secret(number) => {
                let (sources, rules) = self.secrets;
                let rule = &rules[*number];
                format!("it is a secret: {} says `{}`", sources.location(rule.span), rule::words(rule, sources))
            }
            Refusal::Special(address) => {
                format!("{address} is the address of a metadata service, or of no single machine")
            }
            Refusal::NotEnough => "no narrower statement opens what denies it, or one would open a secret".to_owned(),
        }
    }
}

/// On one line, without what a terminal or a reader of the policy takes for something else.
fn plain(text: &str) -> String {
    printable(text).chars().map(|c| if hides(c) { '?' } else { c }).collect()
}
