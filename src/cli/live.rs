//! `srt run --control FD`: network rules that change while the command runs.
//!
//! Each line that comes in is a request and each line that goes out the answer to one, in order. A request that cannot be
//! carried out in full changes nothing. Serves on a thread of its own, beside the proxy.

use super::arguments::{PolicyChoice, Run};
use super::flags::{self, FlagText};
use super::{load, rule};
use sandbox_runtime::backend::Enforced;
use sandbox_runtime::backend::bubblewrap::{Needs, Network, Ports};
use sandbox_runtime::bind::bind_grants;
use sandbox_runtime::compile::artefact::mistake;
use sandbox_runtime::compile::enforced;
use sandbox_runtime::compile::live::{BadRequest, Change, LONGEST, Request};
use sandbox_runtime::diagnostic::{Diagnostic, any_error, to_json};
use sandbox_runtime::exec::Channel;
use sandbox_runtime::ir::{BoundPolicy, Policy, Rule};
use sandbox_runtime::proxy::InForce;
use sandbox_runtime::source::Sources;
use sandbox_runtime::vocabulary::{Effect, Verb};
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::io::{BufRead, BufReader, Read, Write};
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// The name under which statements of a request are shown, and what stands before them.
const NAME: &str = "--control";
const HEADER: &str = "srt 1\ndefault read deny\n";
const HEADER_LINES: u64 = 2;

/// After so many additions the rules have to be said anew: each one is kept.
const ADDITIONS: usize = 1000;

/// What is needed to change rules.
pub struct Live {
    channel: Arc<Channel>,
    choice: PolicyChoice,
    directory: PathBuf,
    /// What must hold whatever is in force: the texts as they were at the start, since the command may write the files.
    ceilings: Vec<FlagText>,
    /// What the policies said of everything else at the start.
    elsewhere: Elsewhere,
    /// The rules in force, and the texts that they are in.
    rules: Vec<Rule>,
    sources: Sources,
    additions: usize,
    /// Ports of the loopback that are redirected.
    redirected: Ports,
}

/// An answer that changes nothing.
struct Refused {
    why: String,
    findings: Vec<Value>,
}

impl From<String> for Refused {
    fn from(why: String) -> Self {
        Self { why, findings: Vec::new() }
    }
}

impl Live {
    /// For a run that starts with this policy and plan.
    pub fn new(
        run: &Run,
        channel: Arc<Channel>,
        policy: &BoundPolicy,
        enforced: &Enforced,
        sources: &Sources,
        directory: &Path,
    ) -> Result<Self, String> {
        let started = load::chosen(&run.choice, directory)?;
        let Some(started) = started.policy else {
            return Err("the policies cannot be read twice, which --control needs".to_owned());
        };
        let redirected = ports(enforced).cloned().unwrap_or_default();
        Ok(Self {
            channel,
            choice: run.choice.clone(),
            directory: directory.to_owned(),
            ceilings: flags::ceilings(&run.within, true)?,
            elsewhere: Elsewhere::of(&started),
            rules: connecting(policy),
            sources: sources.clone(),
            additions: 0,
            redirected,
        })
    }

    /// Answers requests until the other end is closed.
    pub fn serve(mut self, in_force: &InForce) {
        let channel = Arc::clone(&self.channel);
        let mut lines = BufReader::new(&*channel);
        let mut line = Vec::new();
        loop {
            line.clear();
            let whole = (&mut lines).take(LONGEST as u64 + 1).read_until(b'\n', &mut line);
            match whole {
                Ok(0) | Err(_) => return,
                Ok(_) if line.last() != Some(&b'\n') && line.len() > LONGEST && skip(&mut lines).is_err() => return,
                Ok(_) => {}
            }
            if line.iter().all(u8::is_ascii_whitespace) {
                continue;
            }
            let mut answer = self.answer(&line, in_force).to_string();
            answer.push('\n');
            if (&*channel).write_all(answer.as_bytes()).is_err() {
                return;
            }
        }
    }

    fn answer(&mut self, line: &[u8], in_force: &InForce) -> Value {
        let (id, done) = match Request::read(line) {
            Ok(Request { id, change }) => (id, self.change(&change, in_force)),
            Err(BadRequest { id, why }) => (id, Err(why.into())),
        };
        let mut answer = match done {
            Ok(notes) => json!({ "ok": true, "rules": self.rules.len(), "notes": notes }),
            Err(Refused { why, findings }) => json!({ "ok": false, "error": why, "findings": findings }),
        };
        if let (Some(id), Some(answer)) = (id, answer.as_object_mut()) {
            answer.insert("id".to_owned(), id);
        }
        answer
    }

    /// Replaces the rules in force; what there is to say of that.
    fn change(&mut self, change: &Change, in_force: &InForce) -> Result<Vec<String>, Refused> {
        let adds = matches!(change, Change::Add(_));
        if adds && self.additions >= ADDITIONS {
            return Err(format!("{ADDITIONS} additions are in force: say all with `rules` or `policy`").into());
        }
        let mut sources = if adds { self.sources.clone() } else { Sources::default() };
        let mut given = vec![match change {
            Change::Add(text) | Change::Rules(text) => sources.add(NAME, format!("{HEADER}{text}\n")),
            Change::Policy(path) => load::add(&self.directory.join(path), &mut sources)?,
        }];
        for FlagText { name, text } in &self.ceilings {
            // Where rules are added, it is there already.
            given.push(sources.named(name).unwrap_or_else(|| sources.add(name.as_str(), text.as_str())));
        }
        let loaded = load::resolved(&given, sources, &self.choice.defines, load::this_system());
        let sources = loaded.sources;
        let Some(mut policy) = loaded.policy.filter(|_| !any_error(&loaded.diagnostics)) else {
            return Err(refused("the rules have errors", &loaded.diagnostics, &sources));
        };
        if matches!(change, Change::Policy(_)) {
            if Elsewhere::of(&policy) != self.elsewhere {
                let differs =
                    "in what it says of anything else, the policy differs from the one that the run was started with";
                return Err(format!("{ONLY}: {differs}").into());
            }
            // What it says of files holds as it did: nothing of that is bound anew.
            policy.rules.retain(|rule| rule.verb == Verb::Connect);
            policy.expects.clear();
        } else {
            nothing_else(&policy)?;
        }
        if adds {
            policy.rules.extend(self.rules.iter().cloned());
        }
        let machine = load::chosen_machine(&self.choice, &self.directory)?;
        let (bound, said) = bind_grants(policy, &machine);
        let Some(bound) = bound.filter(|_| !any_error(&said)) else {
            return Err(refused("the rules cannot be in force here", &said, &sources));
        };
        let needs = Needs { errors_alone: true, ..Needs::default() };
        let made = enforced(&bound, &sources, &needs).map_err(|fault| mistake(&fault))?;
        let Some(enforced) = made.enforced else {
            return Err(refused("the rules cannot be in force here", &made.diagnostics, &sources));
        };
        let notes = self.notes(&enforced);
        self.rules = connecting(&bound);
        self.additions = if adds { self.additions + 1 } else { 0 };
        self.sources.clone_from(&sources);
        in_force.replace(Arc::new(rule::rules(bound, sources)));
        Ok(notes)
    }

    /// What is allowed now and was not foreseen when the sandbox was made.
    fn notes(&self, enforced: &Enforced) -> Vec<String> {
        let Some(ports) = ports(enforced) else { return Vec::new() };
        let redirected = |(low, high): &(u16, u16), there: &[(u16, u16)]| {
            (*low..=*high).all(|port| there.iter().any(|(low, high)| (*low..=*high).contains(&port)))
        };
        let new4 = ports.loopback4.iter().any(|range| !redirected(range, &self.redirected.loopback4));
        let new6 = ports.loopback6.iter().any(|range| !redirected(range, &self.redirected.loopback6));
        if new4 || new6 {
            return vec![
                "ports of the host's loopback that no rule named at the start are reached through the proxy alone"
                    .to_owned(),
            ];
        }
        Vec::new()
    }
}

/// The ports of the loopback that are redirected, where any are.
fn ports(enforced: &Enforced) -> Option<&Ports> {
    match enforced {
        Enforced::Bubblewrap(plan) => match &plan.network {
            Network::Proxy(ports) => Some(ports),
            Network::Loopback => None,
        },
        Enforced::Seatbelt(_) | Enforced::Wfp(_) => None,
    }
}

const ONLY: &str = "network rules alone can change while a command runs";

/// What a policy says of anything but connections, however it is written.
#[derive(PartialEq, Eq)]
struct Elsewhere {
    /// Each rule, and how often it is there.
    rules: BTreeMap<String, usize>,
    settings: String,
}

impl Elsewhere {
    fn of(policy: &Policy) -> Self {
        let mut rules = BTreeMap::new();
        for rule in policy.rules.iter().filter(|rule| rule.verb != Verb::Connect) {
            *rules.entry(format!("{} {} {:?}", rule.effect, rule.verb, rule.subject)).or_default() += 1;
        }
        let env = policy.default_env.as_ref().map(|default| default.value);
        let set: Vec<_> = policy.set.iter().map(|(name, setting)| (name, &setting.value)).collect();
        let limits: Vec<_> = policy.limits.iter().map(|(kind, limit)| (kind.to_string(), limit.value)).collect();
        let ignores: Vec<_> = policy.ignores.iter().map(|ignore| (ignore.verb, &ignore.subject)).collect();
        Self { rules, settings: format!("{:?}", (policy.default_read.value, env, set, limits, ignores)) }
    }
}

fn connecting(policy: &Policy) -> Vec<Rule> {
    policy.rules_of(Verb::Connect).map(|(_, rule)| rule.clone()).collect()
}

/// That statements are about connections.
fn nothing_else(policy: &Policy) -> Result<(), Refused> {
    if let Some(rule) = policy.rules.iter().find(|rule| rule.verb != Verb::Connect) {
        return Err(format!("{ONLY}, and this says `{} {}`", rule.effect, rule.verb).into());
    }
    if policy.default_read.value != Effect::Deny || policy.default_env.is_some() {
        return Err(format!("{ONLY}, and this has a default").into());
    }
    if !policy.ignores.is_empty() {
        return Err(format!("{ONLY}, and this says `ignore`").into());
    }
    if !policy.set.is_empty() || !policy.limits.is_empty() {
        return Err(format!("{ONLY}, and this sets a variable or a limit").into());
    }
    Ok(())
}

fn refused(why: &str, diagnostics: &[Diagnostic], sources: &Sources) -> Refused {
    let mut findings: Vec<Value> = diagnostics.iter().map(|diagnostic| to_json(diagnostic, sources)).collect();
    // As whoever sent them counts.
    for label in findings.iter_mut().filter_map(|finding| finding["labels"].as_array_mut()).flatten() {
        if label["file"] == NAME
            && let Some(line) = label["line"].as_u64()
        {
            label["line"] = json!(line.saturating_sub(HEADER_LINES).max(1));
        }
    }
    Refused { why: why.to_owned(), findings }
}

/// The rest of a line that is too long.
fn skip(lines: &mut impl BufRead) -> std::io::Result<()> {
    loop {
        let there = lines.fill_buf()?;
        if there.is_empty() {
            return Err(std::io::ErrorKind::UnexpectedEof.into());
        }
        let end = there.iter().position(|byte| *byte == b'\n');
        let count = end.map_or(there.len(), |end| end + 1);
        lines.consume(count);
        if end.is_some() {
            return Ok(());
        }
    }
}
