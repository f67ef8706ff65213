//! `srt explain`: what is decided about one access, by which lines, and what to write to have it otherwise; what a line is
//! good for; or the page of a diagnostic.

mod line;

use super::arguments::{Explain, Format, PolicyChoice};
use super::load::{self, Loaded};
use super::{access, output, rule, status};
use sandbox_runtime::backend::bubblewrap::{Needs, Watch};
use sandbox_runtime::compile::compile;
use sandbox_runtime::diagnostic::{Level, nearest};
use sandbox_runtime::host::Host;
use sandbox_runtime::host::real::place;
use sandbox_runtime::ir::{Access, BoundPolicy, RuleId, Verdict, Why, decide};
use sandbox_runtime::sets::path::{AbsPath, target};
use sandbox_runtime::source::Sources;
use sandbox_runtime::vocabulary::{Effect, Verb};
use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::path::{Path, PathBuf};

pub fn explain(explain: &Explain) -> u8 {
    let outcome = match (&explain.rule, &explain.subject) {
        (Some(place), _) => line::line(explain, place),
        (None, subject) => about(explain, subject.as_deref().unwrap_or_default()),
    };
    outcome.unwrap_or_else(|message| {
        output::complain(message);
        status::USAGE
    })
}

fn about(explain: &Explain, subject: &str) -> Result<u8, String> {
    match (Verb::from_word(subject), &explain.target) {
        (Some(verb), Some(target)) => access(explain, verb, target),
        (Some(verb), None) => {
            Err(format!("`explain {verb}` needs {}, as in `srt explain {verb} …`", verb.kind().expected()))
        }
        (None, None) => page(subject, explain.format),
        (None, Some(_)) => {
            let near = nearest(subject, Verb::ALL.iter().map(|verb| verb.word()));
            let hint = near.map(|near| format!("; did you mean `{near}`?")).unwrap_or_default();
            Err(format!("`{subject}` is not a verb{hint}"))
        }
    }
}

/// The page of a diagnostic.
fn page(name: &str, format: Format) -> Result<u8, String> {
    let module = |name: &str| sandbox_runtime::resolve::std_text(name.strip_prefix("std/")?);
    if let Some(text) = module(name) {
        match format {
            Format::Json => output::print_json(&serde_json::json!({ "module": name, "text": text })),
            Format::Human => output::print(text),
        }
        return Ok(0);
    }
    let codes = sandbox_runtime::codes();
    let Some(code) = codes.iter().find(|code| code.name == name) else {
        let modules: Vec<_> = sandbox_runtime::resolve::STD.iter().map(|(name, _)| format!("std/{name}")).collect();
        let words = codes.iter().map(|code| code.name).chain(Verb::ALL.iter().map(|verb| verb.word()));
        let near = nearest(name, words.chain(modules.iter().map(String::as_str)));
        let hint = near.map(|near| format!("; did you mean `{near}`?")).unwrap_or_default();
        return Err(format!("`{name}` is neither a verb, nor a finding, nor a module{hint}"));
    };
    let page: String = code.page.lines().flat_map(|line| [line.strip_prefix(' ').unwrap_or(line), "\n"]).collect();
    match format {
        Format::Json => output::print_json(&serde_json::json!({
            "code": code.name, "level": code.level, "page": page,
        })),
        Format::Human => output::print(&page),
    }
    Ok(0)
}

fn access(explain: &Explain, verb: Verb, target: &str) -> Result<u8, String> {
    let Loaded { sources, policy, diagnostics } = load::bound(&explain.choice)?;
    let Some(policy) = policy.filter(|_| !sandbox_runtime::diagnostic::any_error(&diagnostics)) else {
        output::print_diagnostics(&diagnostics, &sources, Level::Error);
        return Ok(status::FINDINGS);
    };
    let accesses = access::accesses(verb, target, || path(&explain.choice, target))?;
    // A name such as `localhost` stands for several addresses: denied if one of them is.
    let verdicts: Vec<_> = accesses.iter().map(|access| (access, decide(&policy, access))).collect();
    let Some((access, verdict)) = verdicts.iter().find(|(_, verdict)| !verdict.allowed).or(verdicts.first()) else {
        return Err(format!("`{target}` names nothing"));
    };
    let answer = Answer { policy: &policy, sources: &sources, access, verdict };
    let suggestion = suggestion(&explain.choice, &answer);
    match explain.format {
        Format::Json => output::print_json(&answer.json(&suggestion)),
        Format::Human => {
            output::print(&answer.text(&suggestion, output::stdout_colour()));
        }
    }
    Ok(0)
}

/// A path as a shell or a policy writes it, taken to the node it leads to on this machine.
fn path(choice: &PolicyChoice, target: &str) -> Result<AbsPath, String> {
    let directory = std::env::current_dir().map_err(|error| format!("cannot tell where this is: {error}"))?;
    let written = if target.starts_with(['~', '$']) {
        let machine = load::chosen_machine(choice, &directory)?;
        let (name, rest) = match target.strip_prefix('$') {
            Some(rest) => rest.split_at(rest.find('/').unwrap_or(rest.len())),
            None => ("HOME", &target[1..]),
        };
        if !(rest.is_empty() || rest.starts_with('/')) {
            return Err(format!("`{target}` is not a path: after `~` only `/` may follow"));
        }
        let value = machine.variable(name).ok_or_else(|| format!("`${name}` has no value here"))?;
        PathBuf::from(format!("{value}{rest}"))
    } else {
        directory.join(target)
    };
    let resolved = deepest_resolved(&written);
    place(&resolved).ok_or_else(|| format!("`{}` is no path that a policy can name", resolved.display()))
}

/// Links followed as far as the path exists; what does not exist stays as written.
fn deepest_resolved(path: &Path) -> PathBuf {
    let mut rest = Vec::new();
    let mut existing = path;
    loop {
        if let Ok(real) = std::fs::canonicalize(existing) {
            return rest.iter().rev().fold(real, |path, name| path.join(name));
        }
        match (existing.parent(), existing.file_name()) {
            (Some(parent), Some(name)) => {
                rest.push(name);
                existing = parent;
            }
            _ => return path.to_owned(),
        }
    }
}

/// What was decided, with all that is needed to say why.
struct Answer<'a> {
    policy: &'a BoundPolicy,
    sources: &'a Sources,
    access: &'a Access,
    verdict: &'a Verdict,
}

/// What to do to have the other verdict.
enum Suggestion {
    /// This line, which was tried, and the errors that it raises.
    Write(String, Vec<&'static str>),
    /// No line added changes it.
    TakeAway,
}

/// How often each code is an error of the policy.
fn errors(policy: &BoundPolicy) -> BTreeMap<&'static str, usize> {
    let mut errors = BTreeMap::new();
    for said in compile(policy, &Needs { performs: Watch::Writes, ..Needs::default() })
        .diagnostics
        .iter()
        .filter(|said| said.level == Level::Error)
    {
        *errors.entry(said.code.name).or_default() += 1;
    }
    errors
}

/// The first of a few plain rules that, added to the policy, gives the other verdict: each is tried, none is guessed. One
/// that raises an error is named only where no other will do.
fn suggestion(choice: &PolicyChoice, answer: &Answer<'_>) -> Suggestion {
    let (verb, object) = answer.access.words();
    let object = match answer.access {
        Access::Read(_) | Access::Write(_) | Access::Exec(_) | Access::Socket(_) => portable(answer.policy, &object),
        _ => object,
    };
    let effects: &[&str] = if answer.verdict.allowed { &["deny", "forbid"] } else { &["allow"] };
    let before = errors(answer.policy);
    let mut flawed = Suggestion::TakeAway;
    for effect in effects {
        for candidate in candidates(answer.access, effect, verb, &object) {
            let Some(policy) = load::bound_with(choice, &candidate) else { continue };
            if decide(&policy, answer.access).allowed == answer.verdict.allowed {
                continue;
            }
            let raised = errors(&policy).into_iter();
            let new = raised.filter(|(code, count)| before.get(code).is_none_or(|before| count > before));
            let new: Vec<_> = new.map(|(code, _)| code).collect();
            if new.is_empty() {
                return Suggestion::Write(candidate, new);
            }
            if matches!(flawed, Suggestion::TakeAway) {
                flawed = Suggestion::Write(candidate, new);
            }
        }
    }
    flawed
}

/// A path as one would write it in a policy: from the workspace or the home where it lies there, quoted where it must be.
fn portable(policy: &BoundPolicy, path: &str) -> String {
    let below = |name: &str| {
        let value = policy.facts.variables.get(name)?;
        path.strip_prefix(value.as_str()).filter(|rest| rest.is_empty() || rest.starts_with('/'))
    };
    let (start, rest) = match (below("WORKSPACE"), below("HOME")) {
        (Some(rest), _) => ("$WORKSPACE", rest),
        (None, Some(rest)) => ("~", rest),
        (None, None) => ("", path),
    };
    target(start, rest)
}

fn candidates(access: &Access, effect: &str, verb: Verb, object: &str) -> Vec<String> {
    let mut candidates = vec![format!("{effect} {verb} {object}")];
    match access {
        Access::Read(_) | Access::Write(_) | Access::Exec(_) | Access::Socket(_) => {
            if effect == "allow" && matches!(verb, Verb::Write | Verb::Exec) {
                candidates.push(format!("{effect} read, {verb} {object}"));
            }
            candidates.push(format!("{effect} {verb} exact {object}"));
        }
        Access::Connect { name: Some(_), address, port, .. } if effect == "allow" => {
            let address = if address.is_ipv6() { format!("[{address}]") } else { address.to_string() };
            candidates.push(format!("{effect} {verb} {address}:{port}"));
        }
        _ => {}
    }
    candidates
}

impl Answer<'_> {
    fn place(&self, id: RuleId) -> String {
        self.sources.location(self.policy.rule(id).span).to_string()
    }

    fn line(&self, id: RuleId) -> String {
        let rule = self.policy.rule(id);
        format!("{}{}", rule::words(rule, self.sources), rule::entry(self.policy, rule, self.access))
    }

    fn others(&self) -> impl Iterator<Item = RuleId> {
        self.verdict.matching.iter().copied().filter(|id| !self.verdict.decisive.contains(id))
    }

    fn why(&self) -> &'static str {
        match self.verdict.why {
            Why::Forbidden => "a `forbid` matches, which nothing opens",
            Why::Denied => "a `deny` matches, and no more specific `allow` opens it",
            Why::Allowed if self.verdict.decisive.len() > 1 => "an `allow` is more specific than the `deny` it meets",
            Why::Allowed => "an `allow` matches",
            Why::Default if self.verdict.decisive.is_empty() => "no rule matches",
            Why::Default => "no rule about running it matches, and it may be run if it may be read",
            Why::ReadDenied => "a rule denies reading it, and so writing and running it",
            Why::Special => "the name is allowed, but it leads to an address that only an address rule can allow",
        }
    }

    fn text(&self, suggestion: &Suggestion, colour: bool) -> String {
        let paint =
            |code: &str, text: &str| if colour { format!("\x1b[{code}m{text}\x1b[0m") } else { text.to_owned() };
        let verdict = if self.verdict.allowed { paint("1;32", "allowed") } else { paint("1;31", "denied") };
        let mut text = String::new();
        // Writing into a string does not fail.
        let _ = writeln!(text, "{verdict}: {}", self.access);
        let _ = writeln!(text, "  because {}", self.why());
        for id in &self.verdict.decisive {
            let _ = writeln!(text, "    {}: {}", paint("36", &self.place(*id)), self.line(*id));
            if let Some(because) = &self.policy.rule(*id).because {
                let _ = writeln!(text, "      {because}");
            }
        }
        if self.verdict.decisive.is_empty() && self.verdict.why == Why::Default {
            let _ = writeln!(text, "    {}", self.default());
        }
        let others: Vec<_> = self.others().collect();
        if !others.is_empty() {
            let _ = writeln!(text, "  these match too");
            for id in others {
                let would = match self.policy.rule(id).effect {
                    Effect::Allow => "would allow it",
                    Effect::Deny => "would deny it",
                    Effect::Forbid => "would forbid it",
                };
                let _ = writeln!(text, "    {}: {} ({would})", paint("36", &self.place(id)), self.line(id));
            }
        }
        let other = if self.verdict.allowed { "deny" } else { "allow" };
        let _ = match suggestion {
            Suggestion::Write(rule, raises) if raises.is_empty() => writeln!(text, "  to {other} it, add: {rule}"),
            Suggestion::Write(rule, raises) => {
                let codes = raises.join("` and `");
                writeln!(
                    text,
                    "  to {other} it, add: {rule}\n    which raises `{codes}`: see `srt explain {}`",
                    raises[0]
                )
            }
            Suggestion::TakeAway => {
                writeln!(text, "  to {other} it, change the rule above: no rule added to it can")
            }
        };
        text
    }

    /// What decides where no rule matches, and where that is said.
    fn default(&self) -> String {
        let default = &self.policy.default_read;
        match (self.access, &self.policy.default_env) {
            (Access::Read(_) | Access::Exec(_), _) => {
                format!("{}: default read {}", self.sources.location(default.span), default.value)
            }
            (Access::Env(_), Some(default)) => {
                format!("{}: default env {}", self.sources.location(default.span), default.value)
            }
            (Access::Env(_), None) => "the environment is open where nothing closes it".to_owned(),
            (access, _) => format!("{} is denied where nothing allows it", access.words().0),
        }
    }

    fn json(&self, suggestion: &Suggestion) -> serde_json::Value {
        let rule = |id: RuleId| rule::json(self.policy.rule(id), self.sources, &self.line(id));
        let (verb, object) = self.access.words();
        serde_json::json!({
            "verb": verb,
            "object": object,
            "allowed": self.verdict.allowed,
            "why": self.verdict.why,
            "decisive": self.verdict.decisive.iter().map(|id| rule(*id)).collect::<Vec<_>>(),
            "matching": self.others().map(rule).collect::<Vec<_>>(),
            "suggestion": match suggestion {
                Suggestion::Write(rule, _) => Some(rule),
                Suggestion::TakeAway => None,
            },
            "raises": match suggestion {
                Suggestion::Write(_, raises) => raises.as_slice(),
                Suggestion::TakeAway => &[],
            },
        })
    }
}
