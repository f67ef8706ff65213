//! `srt draft`: from what runs were refused to a patch of the policy, with what it would permit.
//!
//! The library drafts; here each statement is tried in the policy's whole text, and left out where `srt check` would newly find
//! an error or a warning, the machine's ceiling included. What reaches further than what was asked for, and is left out, is drafted
//! once more without that.

mod said;

use super::arguments::Draft as Arguments;
use super::diff::{self, Side};
use super::flags::{self, FlagText};
use super::load::{self, Loaded};
use super::{files, output, status};
use sandbox_runtime::bind::bind;
use sandbox_runtime::check::{Checked, Given, check};
use sandbox_runtime::diagnostic::{Diagnostic, Level, any_error};
use sandbox_runtime::draft::{Draft, General, Ground, Proposal, Wish, draft, insert};
use sandbox_runtime::event::{Event, Kind, Reader, Tally};
use sandbox_runtime::host::Host;
use sandbox_runtime::host::real::Machine;
use sandbox_runtime::ir::{NodeKind, Policy, Rule, decide};
use sandbox_runtime::resolve::Options;
use sandbox_runtime::sets::path::AbsPath;
use sandbox_runtime::source::Sources;
use sandbox_runtime::vocabulary::{Effect, Verb};
use similar::TextDiff;
use std::borrow::Cow;
use std::fs::File;
use std::io::{self, BufRead, BufReader};
use std::path::Path;

/// So many kinds of refusals are looked at; each is a question that the policy is asked.
const KINDS: usize = 1000;

/// So many rules are more than anybody reads.
const RULES: usize = 60;

pub fn draft_verb(arguments: &Arguments) -> u8 {
    drafted(arguments).unwrap_or_else(|message| {
        output::complain(message);
        status::USAGE
    })
}

fn drafted(arguments: &Arguments) -> Result<u8, String> {
    let directory = std::env::current_dir().map_err(|error| format!("cannot tell where this is: {error}"))?;
    let tally = read(&arguments.file)?;
    let given = load::text(&arguments.policy)?;
    let machine = load::machine(arguments.workspace.as_deref(), &arguments.defines, &directory)?;
    let ceilings = flags::ceilings(&arguments.within, true)?;
    let desk = Desk { arguments, machine, given, ceilings };
    let before = desk.looked_at(&desk.given.text);
    let Some(policy) = before.policy.as_deref().filter(|_| !any_error(&before.diagnostics)) else {
        output::print_diagnostics(&before.diagnostics, &before.sources, Level::Error);
        return Ok(status::FINDINGS);
    };
    let policy = policy.with_idle();
    let kinds: Vec<&Kind> = tally.kinds().filter(|kind| matches!(kind.event, Event::Violation(_))).collect();
    let wishes: Vec<Wish> = kinds.iter().map(|kind| wish(&kind.event)).collect();
    let secrets = desk.secrets();
    let mut drafted = desk.draft(&policy, &secrets.1, &wishes, true);
    let said = said::Said { policy: &policy, sources: &before.sources, secrets: &secrets, kinds: &kinds };
    let mut chosen = Chosen::over(&before);
    desk.choose(&mut chosen, &drafted.proposals, &said);
    let again = chosen.wishes_left_by_general();
    if !again.is_empty() {
        let few: Vec<Wish> = again.iter().map(|number| wishes[*number].clone()).collect();
        let mut narrower = desk.draft(&policy, &secrets.1, &few, false);
        narrower.proposals.iter_mut().flat_map(|it| &mut it.wishes).for_each(|number| *number = again[*number]);
        desk.choose(&mut chosen, &narrower.proposals, &said);
        drafted.refused.extend(narrower.refused.into_iter().map(|(number, refusal)| (again[number], refusal)));
    }
    let text = desk.amended(&said.lines(&chosen.taken));
    let after = desk.looked_at(&text);
    let holds = |number: &usize| {
        let policy = after.policy.as_deref();
        wishes[*number].accesses.iter().all(|access| policy.is_some_and(|policy| decide(policy, access).allowed))
    };
    if !chosen.taken.iter().flat_map(|proposal| &proposal.wishes).all(holds) {
        return Err("the draft does not allow what it is for: nothing is proposed".to_owned());
    }
    if text != desk.given.text {
        let name = &desk.given.name;
        let patch = TextDiff::from_lines(&desk.given.text, &text).unified_diff().header(name, name).to_string();
        output::print(&patch);
    }
    output::tell(&said.summary(&chosen, &drafted, tally.dropped()));
    if !chosen.taken.is_empty() {
        output::tell(&desk.difference(&text));
    }
    Ok(0)
}

/// Everything that was refused, by kinds.
fn read(path: &Path) -> Result<Tally, String> {
    let cannot_read = |error: io::Error| format!("cannot read `{}`: {error}", path.display());
    let mut tally = Tally::new(KINDS);
    let lines: Box<dyn BufRead> = if path == Path::new("-") {
        Box::new(io::stdin().lock())
    } else {
        Box::new(BufReader::new(File::open(path).map_err(cannot_read)?))
    };
    let mut reader = Reader::new(lines);
    while let Some(event) = reader.event().map_err(cannot_read)? {
        if !matches!(event, Event::Connection(_)) {
            tally.add(event);
        }
    }
    reader.last().into_iter().for_each(|event| tally.add(event));
    if reader.unread() > 0 {
        output::complain(format_args!(
            "{} no events",
            match reader.unread() {
                1 => "1 line is".to_owned(),
                count => format!("{count} lines are"),
            }
        ));
    }
    Ok(tally)
}

fn wish(event: &Event) -> Wish {
    match event {
        // What was wrong with it was no rule.
        Event::Violation(violation) if violation.detail.is_none() => {
            Wish { accesses: violation.accesses(), without_port: violation.port.is_none() && violation.host.is_some() }
        }
        _ => Wish { accesses: Vec::new(), without_port: false },
    }
}

/// What there is to draft with.
struct Desk<'a> {
    arguments: &'a Arguments,
    machine: Machine,
    given: Given,
    /// What the machine's owner has every policy be within.
    ceilings: Vec<FlagText>,
}

/// Which proposals are taken up.
struct Chosen {
    taken: Vec<Proposal>,
    /// What keeps others from it.
    left: Vec<(Proposal, String)>,
    /// What is said of those that are taken.
    notes: Vec<String>,
    /// What is found with them, wherever it stands.
    known: Vec<(&'static str, String)>,
}

impl Chosen {
    fn over(before: &Checked) -> Self {
        let known = before.diagnostics.iter().map(key).collect();
        Self { taken: Vec::new(), left: Vec::new(), notes: Vec::new(), known }
    }

    /// Takes out what reaches further than it was asked to, and was left: its wishes.
    fn wishes_left_by_general(&mut self) -> Vec<usize> {
        let is_general = |(it, _): &mut (Proposal, String)| it.general.is_some_and(|how| how != General::Ports);
        self.left.extract_if(.., is_general).flat_map(|(proposal, _)| proposal.wishes).collect()
    }
}

impl Desk<'_> {
    /// What `srt check --host` says of a text in the place of the policy's.
    fn looked_at(&self, text: &str) -> Checked {
        let mut given = vec![Given { name: self.given.name.clone(), text: text.to_owned() }];
        let ceilings = self.ceilings.iter().cloned();
        given.extend(ceilings.map(|ceiling| Given { name: ceiling.name, text: ceiling.text }));
        let options =
            Options { system: load::this_system(), defines: self.arguments.defines.iter().cloned().collect() };
        check(&given, &files::Disk, &options, Some(&self.machine))
    }

    /// The rules of a few statements on this machine, and their texts.
    fn rules(&self, statements: &str) -> (Sources, Option<Vec<Rule>>) {
        let mut sources = Sources::default();
        let given = sources.add("a draft", format!("srt 1\ndefault read allow\n{statements}\n"));
        let defines = &self.arguments.defines;
        let Loaded { sources, policy, diagnostics } = load::resolved(&[given], sources, defines, load::this_system());
        let bound = policy.filter(|_| !any_error(&diagnostics)).and_then(|policy| {
            let (bound, said) = bind(policy, &self.machine);
            bound.filter(|_| !any_error(&said))
        });
        (sources, bound.map(|bound| bound.with_idle().rules))
    }

    /// The rules by which `std/secrets` denies reading.
    fn secrets(&self) -> (Sources, Vec<Rule>) {
        let (sources, rules) = self.rules("use std/secrets");
        let denies = |rule: &Rule| rule.effect != Effect::Allow && rule.verb == Verb::Read;
        (sources, rules.unwrap_or_default().into_iter().filter(denies).collect())
    }

    fn draft(&self, policy: &Policy, secrets: &[Rule], wishes: &[Wish], general: bool) -> Draft {
        let place = |name: &str| AbsPath::parse(self.machine.variable(name)?).ok();
        let places = [("$WORKSPACE", place("WORKSPACE")), ("~", place("HOME"))];
        let places: Vec<(&str, AbsPath)> =
            places.into_iter().filter_map(|(start, place)| Some((start, place?))).collect();
        let is_directory =
            |path: &AbsPath| matches!(self.machine.node(path), Ok(Some(node)) if node.kind == NodeKind::Directory);
        let read = |statement: &str| self.rules(statement).1;
        let ground = Ground { policy, secrets, places: &places, is_directory: &is_directory, general, read: &read };
        draft(&ground, wishes)
    }

    /// The policy's text with some lines more.
    fn amended(&self, lines: &str) -> String {
        let mut sources = Sources::default();
        let source = sources.add(self.given.name.as_str(), self.given.text.as_str());
        if lines.is_empty() { self.given.text.clone() } else { insert(&sources, source, lines) }
    }

    /// Takes up one proposal after the other, where nothing grave is newly found.
    fn choose(&self, chosen: &mut Chosen, proposals: &[Proposal], said: &said::Said<'_>) {
        for proposal in proposals {
            if chosen.taken.len() >= RULES {
                chosen.left.push((proposal.clone(), "there are too many others".to_owned()));
                continue;
            }
            chosen.taken.push(proposal.clone());
            let found = self.looked_at(&self.amended(&said.lines(&chosen.taken)));
            // The same may be said of another rule: each is known as often as it was said before.
            let mut old = chosen.known.clone();
            let mut is_new = |diagnostic: &&Diagnostic| match old.iter().position(|known| *known == key(diagnostic)) {
                Some(at) => {
                    old.swap_remove(at);
                    false
                }
                None => true,
            };
            let new: Vec<&Diagnostic> = found.diagnostics.iter().filter(|one| is_new(one)).collect();
            if let Some(grave) = new.iter().find(|diagnostic| diagnostic.level > Level::Note) {
                chosen.left.push((proposal.clone(), format!("`{}`: {}", grave.code.name, grave.message)));
                chosen.taken.pop();
                continue;
            }
            let not_granted = new.iter().filter(|diagnostic| diagnostic.code.name == "not-granted");
            chosen.notes.extend(not_granted.map(|diagnostic| diagnostic.message.clone()));
            chosen.known.extend(new.into_iter().map(key));
        }
    }

    /// What the new text permits that the old one does not.
    fn difference(&self, text: &str) -> String {
        let side = |text: &str| {
            let mut sources = Sources::default();
            let given = sources.add(self.given.name.as_str(), text);
            let loaded = load::resolved(&[given], sources, &self.arguments.defines, load::this_system());
            Some(Side { sources: Cow::Owned(loaded.sources), policy: Cow::Owned(loaded.policy?) })
        };
        let (Some(old), Some(new)) = (side(&self.given.text), side(text)) else { return String::new() };
        let mut unknown = Vec::new();
        let mut changes = diff::compare(&old, &new, load::this_system(), &mut unknown);
        for change in &mut changes {
            change.systems.clear();
        }
        diff::human(&changes, &unknown, ["old", "new"])
    }
}

/// A finding wherever it stands: lines move.
fn key(diagnostic: &Diagnostic) -> (&'static str, String) {
    (diagnostic.code.name, diagnostic.message.clone())
}
