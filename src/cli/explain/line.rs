//! `srt explain --rule`: what the rules of a line decide alone, and what would change if the line were not there.
//!
//! Speaks of this machine, as `srt explain VERB TARGET` does: variables have their values.

use super::super::arguments::{Explain, Format, PolicyChoice};
use super::super::diff::{self, Side};
use super::super::load::{self, Loaded};
use super::super::{output, rule, status};
use sandbox_runtime::analysis::{Alone, Budget, alone, condensed};
use sandbox_runtime::backend::bubblewrap::Needs;
use sandbox_runtime::compile::compile;
use sandbox_runtime::diagnostic::{Diagnostic, Level};
use sandbox_runtime::ir::{Access, BoundPolicy, Policy, Rule, RuleId, decide};
use sandbox_runtime::source::{SourceId, Sources, Span};
use sandbox_runtime::syntax::{self, ast};
use sandbox_runtime::vocabulary::{System, Verb};
use std::borrow::Cow;
use std::collections::BTreeSet;
use std::fmt::Write as _;

/// Steps for what one target decides.
const STEPS: u64 = 50_000_000;

pub fn line(explain: &Explain, place: &str) -> Result<u8, String> {
    let Loaded { sources, policy, diagnostics } = load::bound(&explain.choice)?;
    let Some(policy) = policy.filter(|_| !sandbox_runtime::diagnostic::any_error(&diagnostics)) else {
        output::print_diagnostics(&diagnostics, &sources, Level::Error);
        return Ok(status::FINDINGS);
    };
    let (source, line) = named(&explain.choice, place, &policy, &sources)?;
    let removed = rules_of(&policy, &sources, source, line);
    if removed.is_empty() {
        let name = sources.get(source).name();
        let text = sources.get(source).text().lines().nth(line as usize - 1).map(str::trim).unwrap_or_default();
        return Err(format!("`{name}:{line}` gives this policy no rule: it says `{text}`"));
    }
    let answer = Answer::new(&policy, &sources, &removed);
    match explain.format {
        Format::Json => output::print_json(&answer.json()),
        Format::Human => output::print(&answer.text()),
    }
    Ok(0)
}

/// The text and the line in it that `FILE:LINE` or `LINE` means.
fn named(choice: &PolicyChoice, place: &str, policy: &Policy, sources: &Sources) -> Result<(SourceId, u32), String> {
    let (file, line) = place.rsplit_once(':').map_or((None, place), |(file, line)| (Some(file), line));
    let line = line.parse::<u32>().ok().filter(|line| *line > 0);
    let line = line.ok_or_else(|| format!("`{place}` is no line: write its number, or FILE:LINE as messages do"))?;
    let source = match (file, choice.policies.as_slice()) {
        (Some(file), _) => {
            let real = |path: &str| std::fs::canonicalize(path).ok();
            let same = |name: &&String| real(name).is_some_and(|name| real(file) == Some(name));
            let known = sources.named(file);
            known.or_else(|| sources.named(policy.files.iter().find(same)?)).ok_or_else(|| {
                format!("`{file}` is no part of this policy: give it by `--policy`, or name a file that it uses")
            })?
        }
        (None, [one]) => {
            let name = one.display().to_string();
            sources.named(&name).ok_or_else(|| format!("`{name}` is no part of this policy"))?
        }
        (None, []) => sources.named("std/default").ok_or("say which file the line is in, as FILE:LINE")?,
        (None, _) => return Err(format!("say which file line {line} is in, as FILE:LINE")),
    };
    let lines = sources.get(source).text().lines().count();
    if line as usize > lines {
        return Err(format!("`{}` has {}", sources.get(source).name(), output::count(lines, "line")));
    }
    Ok((source, line))
}

/// The rules of the statement that begins on a line; of a line within one, those of the targets that stand on it, and where
/// there is none the whole statement's.
fn rules_of(policy: &Policy, sources: &Sources, source: SourceId, line: u32) -> BTreeSet<RuleId> {
    let lines = |span: Span| {
        let last = Span { start: span.end.max(span.start + 1) - 1, ..span };
        (sources.location(span).line, sources.location(last).line)
    };
    let covers = |span: Span| {
        let (first, last) = lines(span);
        (first..=last).contains(&line)
    };
    let (file, _) = syntax::parse(sources, source);
    let begins = |span: Span| lines(span).0 == line;
    let Some(statement) = innermost(&file.statements, &covers, &begins) else { return BTreeSet::new() };
    let among = |wanted: &dyn Fn(&Rule) -> bool| -> BTreeSet<RuleId> {
        let rules = (0..).map(RuleId).zip(&policy.rules).filter(|(_, rule)| {
            let Span { source: within, start, end } = rule.span;
            within == source && statement.start <= start && end <= statement.end && wanted(rule)
        });
        rules.map(|(id, _)| id).collect()
    };
    let here = if begins(statement) { BTreeSet::new() } else { among(&|rule| covers(rule.span)) };
    if here.is_empty() { among(&|_| true) } else { here }
}

/// The statement that covers a line, in a block that begins on another line the one inside of it.
fn innermost(
    statements: &[ast::Statement],
    covers: &dyn Fn(Span) -> bool,
    begins: &dyn Fn(Span) -> bool,
) -> Option<Span> {
    let found = statements.iter().find(|statement| covers(statement.span))?;
    match &found.kind {
        ast::StatementKind::On { body, .. } if !begins(found.span) => innermost(body, covers, begins),
        _ => Some(found.span),
    }
}

/// The rules that one target came to under one verb, and what they decide.
struct Target {
    first: RuleId,
    alone: Alone,
    /// The rules that decide instead, where these decide nothing alone.
    instead: Vec<RuleId>,
}

struct Answer<'a> {
    policy: &'a BoundPolicy,
    sources: &'a Sources,
    targets: Vec<Target>,
    changes: Vec<diff::Change>,
    unknown: Vec<(System, Verb)>,
    /// What is found without the rules and not with them.
    findings: Vec<Diagnostic>,
}

impl<'a> Answer<'a> {
    fn new(policy: &'a BoundPolicy, sources: &'a Sources, removed: &BTreeSet<RuleId>) -> Self {
        let without = policy.without(removed);
        let mut unknown = Vec::new();
        let [now, then] =
            [policy, &without].map(|policy| Side { sources: Cow::Borrowed(sources), policy: Cow::Borrowed(policy) });
        let changes = diff::compare(&now, &then, policy.system, &mut unknown);
        let findings = raised(policy, &without, removed);
        Self { policy, sources, targets: targets(policy, removed), changes, unknown, findings }
    }

    fn line(&self, id: RuleId) -> String {
        let rule = self.policy.rule(id);
        format!("{}: {}", self.sources.location(rule.span), rule::words(rule, self.sources))
    }

    fn text(mut self) -> String {
        for change in &mut self.changes {
            // There is one system alone that this is about.
            change.systems.clear();
        }
        let mut text = String::new();
        for target in &self.targets {
            self.target(target, &mut text);
        }
        // Writing into a string does not fail.
        let _ = writeln!(text, "if it were not there");
        if self.changes.is_empty() && self.unknown.is_empty() {
            let _ = writeln!(text, "  nothing would be decided otherwise");
        } else {
            let changes = diff::human(&self.changes, &self.unknown, ["now", "then"]);
            for line in changes.lines() {
                let _ = writeln!(text, "  {line}");
            }
        }
        if !self.findings.is_empty() {
            let _ = writeln!(text, "  newly found:");
        }
        for found in &self.findings {
            let level = format!("{:?}", found.level).to_lowercase();
            let place = found.span().map(|span| format!("{}: ", self.sources.location(span))).unwrap_or_default();
            let _ = writeln!(text, "    {place}{level}[{}] {}", found.code.name, found.message);
            if let Some(witness) = &found.witness {
                let _ = writeln!(text, "        for example {witness}");
            }
        }
        text
    }

    /// What one target decides alone.
    fn target(&self, target: &Target, text: &mut String) {
        let rule = self.policy.rule(target.first);
        let _ = writeln!(text, "{}", self.line(target.first));
        if let Some(because) = &rule.because {
            let _ = writeln!(text, "    {because}");
        }
        let shown = |access: &Access| format!("{} {}", access.words().0, diff::witness(access));
        let _ = writeln!(text, "  {}", target.alone.sentence(rule.effect, shown));
        for id in &target.instead {
            let _ = writeln!(text, "    by {}", self.line(*id));
        }
        if target.instead.is_empty() && matches!(target.alone, Alone::Covered(_) | Alone::Overruled(_)) {
            let _ = writeln!(text, "    by default");
        }
    }

    fn json(&self) -> serde_json::Value {
        let rule = |id: RuleId| {
            let rule = self.policy.rule(id);
            rule::json(rule, self.sources, &rule::words(rule, self.sources))
        };
        let one = |target: &Target| {
            let (alone, witness): (_, Option<&Access>) = match &target.alone {
                Alone::Decides(access) => ("decides", Some(access)),
                Alone::Covered(access) => ("covered", Some(access)),
                Alone::Overruled(access) => ("overruled", Some(access)),
                Alone::Empty => ("empty", None),
                Alone::Unknown => ("unknown", None),
            };
            serde_json::json!({
                "rule": rule(target.first),
                "alone": alone,
                "witness": witness.map(|access| format!("{} {}", access.words().0, diff::witness(access))),
                "instead": target.instead.iter().map(|id| rule(*id)).collect::<Vec<_>>(),
            })
        };
        serde_json::json!({
            "rules": self.targets.iter().map(one).collect::<Vec<_>>(),
            "without": diff::json(&self.changes, &self.unknown),
            "findings": output::json(&self.findings, self.sources),
        })
    }
}

/// Each target's rules, a verb at a time, in the order of the text.
fn targets(policy: &BoundPolicy, rules: &BTreeSet<RuleId>) -> Vec<Target> {
    let mut groups: Vec<BTreeSet<RuleId>> = Vec::new();
    let key = |id: RuleId| {
        let rule = policy.rule(id);
        (rule.span.start, rule.verb, rule.effect)
    };
    let mut places = std::collections::BTreeMap::new();
    for id in rules {
        let place = *places.entry(key(*id)).or_insert(groups.len());
        match groups.get_mut(place) {
            Some(group) => drop(group.insert(*id)),
            None => groups.push(BTreeSet::from([*id])),
        }
    }
    groups.sort_by_key(|group| group.first().map(|id| (key(*id).0, *id)));
    let one = |group: BTreeSet<RuleId>| {
        let without = policy.without(&group);
        let short = condensed(&[policy, &without]);
        let [now, then] = short.as_deref().map_or([&**policy, &*without], |short| [&short[0], &short[1]]);
        let alone = alone(now, then, &group, &mut Budget::new(STEPS));
        let instead = match &alone {
            Alone::Covered(access) => decide(&without, access).decisive,
            Alone::Overruled(access) => decide(policy, access).decisive,
            Alone::Decides(_) | Alone::Empty | Alone::Unknown => Vec::new(),
        };
        Some(Target { first: *group.first()?, alone, instead })
    };
    groups.into_iter().filter_map(one).collect()
}

/// What is said of the policy without the rules that is not said of it with them: errors, warnings, and allows that nothing
/// needs any more.
fn raised(policy: &BoundPolicy, without: &BoundPolicy, removed: &BTreeSet<RuleId>) -> Vec<Diagnostic> {
    let [before, mut after] = [policy, without].map(|policy| compile(policy, &Needs::default()).diagnostics);
    let gone: BTreeSet<Span> = removed.iter().map(|id| policy.rule(*id).span).collect();
    after.retain(|said| {
        let known = before.iter().any(|known| known.code == said.code && known.span() == said.span());
        let grave = said.level > Level::Note || said.code.name == "redundant-rule";
        grave && !known && said.span().is_none_or(|span| !gone.contains(&span))
    });
    after.sort_by_key(|said| (std::cmp::Reverse(said.level), said.span()));
    after
}
