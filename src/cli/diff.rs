//! `srt diff`: what one policy permits that another does not, and the reverse, as sets with an access each that shows it.
//!
//! Compares what policies mean, away from any machine: a variable is a place of its own. Two texts of one meaning have no
//! difference.

use super::arguments::{Diff, DiffFormat, FailOn};
use super::revision::{self, Place};
use super::{output, rule, status};
use sandbox_runtime::analysis::{Budget, Cause, Study, changes, condensed};
use sandbox_runtime::diagnostic::{Level, any_error};
use sandbox_runtime::ir::{Access, Policy, RuleId, decide, special};
use sandbox_runtime::resolve::{Files, Options, resolve};
use sandbox_runtime::source::Sources;
use sandbox_runtime::vocabulary::{System, Verb};
use std::borrow::Cow;
use std::fmt::Write as _;

/// Steps for one verb in one direction.
const STEPS: u64 = 200_000_000;

pub fn diff(diff: &Diff) -> u8 {
    let mut all: Vec<Change> = Vec::new();
    let mut unknown: Vec<(System, Verb)> = Vec::new();
    for system in System::ALL {
        let sides = [&diff.old, &diff.new].map(|argument| Side::read(argument, diff, *system));
        let (old, new) = match sides {
            [Ok(old), Ok(new)] => (old, new),
            [old, new] => {
                let mut worst = status::FINDINGS;
                for refused in [old.err(), new.err()].into_iter().flatten() {
                    worst = worst.max(refused);
                }
                return worst;
            }
        };
        for change in compare(&old, &new, *system, &mut unknown) {
            match all.iter_mut().find(|known| known.is_like(&change)) {
                Some(known) => known.systems.push(*system),
                None => all.push(change),
            }
        }
    }
    all.sort_by_key(|change| (change.direction, change.order));
    match diff.format {
        DiffFormat::Human => output::print(&human(&all, &unknown, ["old", "new"])),
        DiffFormat::Plain => output::print(&plain(&all, &unknown)),
        DiffFormat::Markdown => output::print(&markdown(&all, &unknown, diff)),
        DiffFormat::Json => output::print_json(&json(&all, &unknown)),
    }
    let widened = all.iter().any(|change| change.direction == Direction::Widened);
    match diff.fail_on {
        Some(FailOn::Widen) if widened => status::FINDINGS,
        Some(FailOn::Any) if !all.is_empty() => status::FINDINGS,
        // What is not known is not the same as no difference.
        Some(_) if !unknown.is_empty() => status::UNDECIDED,
        _ => 0,
    }
}

/// One of the two policies, with the text it came from.
pub struct Side<'a> {
    pub sources: Cow<'a, Sources>,
    pub policy: Cow<'a, Policy>,
}

impl Side<'_> {
    /// Reads and resolves it; what keeps it from that has been said, and the status says of what kind it is.
    fn read(argument: &str, diff: &Diff, system: System) -> Result<Self, u8> {
        let (place, path) = revision::named(argument);
        let mut sources = Sources::default();
        let text = match &place {
            Place::Disk => super::files::read(std::path::Path::new(path)),
            Place::Revision(_) => place.read(path),
        };
        let text = text.map_err(|error| {
            output::complain(format_args!("cannot read the policy `{argument}`: {error}"));
            status::USAGE
        })?;
        let given = sources.add(path, text.text);
        let options = Options { system, defines: diff.defines.iter().cloned().collect() };
        let (policy, said) = resolve(&[given], &mut sources, &place, &options);
        if let Some(policy) = policy.filter(|_| !any_error(&said)) {
            Ok(Self { sources: Cow::Owned(sources), policy: Cow::Owned(policy) })
        } else {
            output::print_diagnostics(&said, &sources, Level::Error);
            Err(status::FINDINGS)
        }
    }

    /// The rules that decide an access, as text and place.
    fn deciding(&self, access: &Access) -> Vec<String> {
        let ids = decide(&self.policy, access).decisive;
        ids.into_iter()
            .take(2)
            .map(|id| format!("{}{}", self.line(id), rule::entry(&self.policy, self.policy.rule(id), access)))
            .collect()
    }

    fn line(&self, id: RuleId) -> String {
        let rule = self.policy.rule(id);
        format!("{}   {}", rule::words(rule, &self.sources), self.sources.location(rule.span))
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Direction {
    /// The new policy permits it, and the old one did not.
    Widened,
    Narrowed,
}

/// One difference.
pub struct Change {
    direction: Direction,
    /// Where it is one; none where only one was asked about.
    pub systems: Vec<System>,
    /// Where it stands among those of its direction.
    order: usize,
    verb: String,
    /// The set in which something is decided otherwise, as a rule has it.
    set: String,
    witness: String,
    old: Vec<String>,
    new: Vec<String>,
}

impl Change {
    fn is_like(&self, other: &Self) -> bool {
        self.direction == other.direction && self.verb == other.verb && self.set == other.set
    }
}

/// Every difference on one system; and the verbs of which it is not known.
pub fn compare(old: &Side<'_>, new: &Side<'_>, system: System, unknown: &mut Vec<(System, Verb)>) -> Vec<Change> {
    let short = condensed(&[&old.policy, &new.policy]);
    let (before, after) = match short.as_deref() {
        Some([before, after]) => (Study::new(before), Study::new(after)),
        _ => (Study::new(&old.policy), Study::new(&new.policy)),
    };
    let mut all = Vec::new();
    for (order, verb) in Verb::ALL.iter().enumerate() {
        for direction in [Direction::Widened, Direction::Narrowed] {
            let widened = direction == Direction::Widened;
            let (less, more) = if widened { (&before, &after) } else { (&after, &before) };
            let budget = &mut Budget::new(STEPS);
            let Ok(changes) = changes(less.whole(), more.whole(), *verb, budget) else {
                unknown.push((system, *verb));
                continue;
            };
            let (lesser, greater) = if widened { (old, new) } else { (new, old) };
            for (cause, access) in changes {
                let set = match cause {
                    Cause::Default => "whatever no rule matches".to_owned(),
                    Cause::Added(id) => target(greater, id),
                    Cause::Removed(id) => target(lesser, id),
                    Cause::Reach => "names, at addresses that rules treat otherwise".to_owned(),
                };
                let change = Change {
                    direction,
                    systems: vec![system],
                    order,
                    verb: verb.to_string(),
                    set,
                    witness: witness(&access),
                    old: old.deciding(&access),
                    new: new.deciding(&access),
                };
                if !all.iter().any(|known: &Change| known.is_like(&change)) {
                    all.push(change);
                }
            }
        }
    }
    all.extend(beside(old, new, system));
    all
}

/// The object, and for a name the address where it matters which.
pub fn witness(access: &Access) -> String {
    match access {
        Access::Connect { name: Some(_), address, .. } if *address != special::NOMINAL => {
            format!("{} at {address}", access.words().1)
        }
        _ => access.words().1,
    }
}

/// A rule's target as it is written.
fn target(side: &Side<'_>, id: RuleId) -> String {
    let rule = side.policy.rule(id);
    let words = rule::words(rule, &side.sources);
    words.splitn(3, ' ').nth(2).map_or(words.clone(), str::to_owned)
}

/// Limits and variables that are set: no accesses, and different all the same.
fn beside(old: &Side<'_>, new: &Side<'_>, system: System) -> Vec<Change> {
    let mut all = Vec::new();
    let order = Verb::ALL.len();
    let place = |side: &Side<'_>, span| side.sources.location(span).to_string();
    let mut add = |direction, verb: &str, set: String, witness: String, old, new| {
        all.push(Change { direction, systems: vec![system], order, verb: verb.to_owned(), set, witness, old, new });
    };
    let (before, after) = (&old.policy, &new.policy);
    let mut kinds: Vec<_> = before.limits.keys().chain(after.limits.keys()).collect();
    kinds.sort_unstable();
    kinds.dedup();
    for kind in kinds {
        let (was, is) = (before.limits.get(kind), after.limits.get(kind));
        let amount = |limit: Option<&sandbox_runtime::ir::LimitValue>| limit.map_or(u64::MAX, |limit| limit.value);
        let direction = match amount(is).cmp(&amount(was)) {
            std::cmp::Ordering::Equal => continue,
            std::cmp::Ordering::Greater => Direction::Widened,
            std::cmp::Ordering::Less => Direction::Narrowed,
        };
        let text = |limit: Option<&sandbox_runtime::ir::LimitValue>| match limit {
            Some(limit) => limit.value.to_string(),
            None => "none".to_owned(),
        };
        let line = |side, limit: Option<&sandbox_runtime::ir::LimitValue>| {
            limit.map(|limit| place(side, limit.span)).into_iter().collect::<Vec<_>>()
        };
        add(
            direction,
            "limit",
            kind.to_string(),
            format!("{} to {}", text(was), text(is)),
            line(old, was),
            line(new, is),
        );
    }
    let mut names: Vec<_> = before.set.keys().chain(after.set.keys()).collect();
    names.sort_unstable();
    names.dedup();
    for name in names {
        let (was, is) = (before.set.get(name), after.set.get(name));
        if was.map(|setting| &setting.value) == is.map(|setting| &setting.value) {
            continue;
        }
        // A value that the command did not have before may be one that it acts upon.
        let direction = if is.is_some() { Direction::Widened } else { Direction::Narrowed };
        let text = |setting: Option<&sandbox_runtime::ir::Setting<String>>| match setting {
            Some(setting) => format!("`{}`", setting.value),
            None => "nothing".to_owned(),
        };
        let line = |side, setting: Option<&sandbox_runtime::ir::Setting<String>>| {
            setting.map(|setting| place(side, setting.span)).into_iter().collect::<Vec<_>>()
        };
        add(direction, "set", name.clone(), format!("{} to {}", text(was), text(is)), line(old, was), line(new, is));
    }
    all
}

/// The systems on which a difference is one, if not on all of those asked about.
fn only(change: &Change) -> String {
    if change.systems.is_empty() || change.systems.len() == System::ALL.len() {
        return String::new();
    }
    let names: Vec<_> = change.systems.iter().map(ToString::to_string).collect();
    format!(" (on {})", names.join(", "))
}

fn title(direction: Direction) -> &'static str {
    match direction {
        Direction::Widened => "newly permitted",
        Direction::Narrowed => "newly denied",
    }
}

fn by_direction(all: &[Change]) -> impl Iterator<Item = (Direction, Vec<&Change>)> {
    [Direction::Widened, Direction::Narrowed]
        .into_iter()
        .map(|direction| (direction, all.iter().filter(|change| change.direction == direction).collect::<Vec<_>>()))
        .filter(|(_, changes)| !changes.is_empty())
}

/// For people; the two policies are called by the names given.
pub fn human(all: &[Change], unknown: &[(System, Verb)], names: [&str; 2]) -> String {
    let mut text = String::new();
    // Writing into a string does not fail.
    for (direction, changes) in by_direction(all) {
        let _ = writeln!(text, "{}:", title(direction));
        for change in changes {
            let _ = writeln!(text, "  {} {}{}", change.verb, change.set, only(change));
            let _ = writeln!(text, "      for example {}", change.witness);
            for (side, lines) in names.into_iter().zip([&change.old, &change.new]) {
                for line in lines {
                    let _ = writeln!(text, "      {side}: {line}");
                }
                if lines.is_empty() {
                    let _ = writeln!(text, "      {side}: by default");
                }
            }
        }
    }
    for (system, verb) in unknown {
        let _ = writeln!(text, "not known: `{verb}` on {system} takes more steps than a comparison may");
    }
    if text.is_empty() { "no difference\n".to_owned() } else { text }
}

/// A sentence or two for each difference, on one line, as a screen reader reads it: nothing is told by where it stands.
fn plain(all: &[Change], unknown: &[(System, Verb)]) -> String {
    let mut text = String::new();
    for (direction, changes) in by_direction(all) {
        for change in changes {
            let _ = write!(text, "{}: {} {}{}", title(direction), change.verb, change.set, only(change));
            let _ = write!(text, ", for example {}.", change.witness);
            for (side, lines) in [("the old policy", &change.old), ("the new policy", &change.new)] {
                // The place stands behind the rule.
                let lines: Vec<_> = lines.iter().map(|line| line.replacen("   ", ", in ", 1)).collect();
                let by = if lines.is_empty() { "by default".to_owned() } else { lines.join(", and ") };
                let _ = write!(text, " {side}: {by}.");
            }
            text.push('\n');
        }
    }
    for (system, verb) in unknown {
        let _ = writeln!(text, "not known: {verb} on {system} takes more steps than a comparison may.");
    }
    if text.is_empty() { "no difference.\n".to_owned() } else { text }
}

fn markdown(all: &[Change], unknown: &[(System, Verb)], diff: &Diff) -> String {
    let mut text = format!("### `{}` → `{}`\n\n", diff.old, diff.new);
    let cell = |text: &str| format!("`{}`", text.replace('|', "\\|").replace('`', "'"));
    for (direction, changes) in by_direction(all) {
        let _ = writeln!(text, "**{}**\n\n| verb | set | for example | rules |\n|---|---|---|---|", title(direction));
        for change in changes {
            let sides = [("old", &change.old), ("new", &change.new)];
            let rules = sides.iter().flat_map(|(side, lines)| match lines.as_slice() {
                [] => vec![format!("{side}: by default")],
                lines => lines.iter().map(|line| format!("{side}: {}", cell(line))).collect(),
            });
            let rules: Vec<_> = rules.collect();
            let _ = writeln!(
                text,
                "| {}{} | {} | {} | {} |",
                change.verb,
                only(change),
                cell(&change.set),
                cell(&change.witness),
                rules.join("<br>")
            );
        }
        text.push('\n');
    }
    for (system, verb) in unknown {
        let _ = writeln!(text, "Not known: `{verb}` on {system}.");
    }
    if all.is_empty() && unknown.is_empty() {
        text.push_str("No difference.\n");
    }
    text
}

/// For programs.
pub fn json(all: &[Change], unknown: &[(System, Verb)]) -> serde_json::Value {
    let those = |direction| -> Vec<serde_json::Value> {
        let those = all.iter().filter(|change| change.direction == direction);
        let one = |change: &Change| {
            serde_json::json!({
                "verb": change.verb,
                "set": change.set,
                "witness": change.witness,
                "systems": change.systems.iter().map(ToString::to_string).collect::<Vec<_>>(),
                "old": change.old,
                "new": change.new,
            })
        };
        those.map(one).collect()
    };
    let unknown: Vec<_> = unknown
        .iter()
        .map(|(system, verb)| serde_json::json!({ "system": system.to_string(), "verb": verb.to_string() }))
        .collect();
    serde_json::json!({
        "permitted": those(Direction::Widened),
        "denied": those(Direction::Narrowed),
        "unknown": unknown,
    })
}
