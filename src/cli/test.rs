//! `srt test`: what policies are expected to decide, case by case, and which of their rules no case tries.

mod live;

use super::arguments::{Test, TestFormat};
use super::{access, files, load, output, rule, status};
use sandbox_runtime::check::Nominal;
use sandbox_runtime::diagnostic::{Level, any_error, nearest};
use sandbox_runtime::host::{Host as _, nominal};
use sandbox_runtime::ir::{Access, BoundPolicy, RuleId, decide};
use sandbox_runtime::report::junit;
use sandbox_runtime::sets::path::AbsPath;
use sandbox_runtime::source::Sources;
use sandbox_runtime::suite::{self, Case, Coverage, judge};
use sandbox_runtime::vocabulary::{BUILT_IN, System, Verb};
use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::io;
use std::path::{Path, PathBuf};

pub fn test(test: &Test) -> u8 {
    if test.live && load::this_system() != System::Linux {
        output::complain("--live: commands are run on Linux alone yet; leave it out");
        return status::USAGE;
    }
    let suites = match found(&test.suites) {
        Ok(suites) if suites.is_empty() => {
            output::complain("no suites: name them, or call them NAME.tests.yaml");
            return status::USAGE;
        }
        Ok(suites) => suites,
        Err(message) => {
            output::complain(message);
            return status::USAGE;
        }
    };
    let mut coverage = Coverage::default();
    let mut ran = Vec::new();
    for path in suites {
        ran.push(run(&path, test.live, &mut coverage));
    }
    match test.format {
        TestFormat::Human => human(&ran, &coverage),
        TestFormat::Json => output::print_json(&json(&ran, &coverage)),
        TestFormat::Junit => {
            let suites: Vec<_> = ran.iter().map(Ran::junit).collect();
            output::print(&junit::document("srt test", &suites));
        }
    }
    let few = test.min_coverage.is_some_and(|least| coverage.percent() < usize::from(least));
    if few {
        let least = test.min_coverage.unwrap_or_default();
        output::complain(format_args!(
            "{} % of the rules decided something, and {least} % are asked for",
            coverage.percent()
        ));
    }
    if ran.iter().any(|ran| ran.error.is_some()) {
        status::USAGE
    } else if few || ran.iter().any(|ran| ran.cases.iter().any(|(_, wrong)| wrong.is_some())) {
        status::FINDINGS
    } else {
        0
    }
}

/// The files that are meant: those named, and in directories whatever is called `NAME.tests.yaml`.
fn found(named: &[PathBuf]) -> Result<Vec<PathBuf>, String> {
    let here = [PathBuf::from(".")];
    let named = if named.is_empty() { &here[..] } else { named };
    let mut suites = Vec::new();
    for path in named {
        if path.is_dir() {
            below(path, &mut suites).map_err(|error| format!("cannot look into `{}`: {error}", path.display()))?;
        } else {
            suites.push(path.clone());
        }
    }
    suites.sort();
    Ok(suites)
}

fn below(directory: &Path, suites: &mut Vec<PathBuf>) -> io::Result<()> {
    for entry in std::fs::read_dir(directory)? {
        let entry = entry?;
        let name = entry.file_name();
        let name = name.to_string_lossy();
        let kind = entry.file_type()?;
        let path = entry.path().strip_prefix("./").map(Path::to_owned).unwrap_or(entry.path());
        if kind.is_dir() && !name.starts_with('.') && name != "node_modules" && name != "target" {
            below(&path, suites)?;
        } else if kind.is_file() && (name.ends_with(".tests.yaml") || name.ends_with(".tests.yml")) {
            suites.push(path);
        }
    }
    Ok(())
}

/// What became of one suite.
struct Ran {
    path: String,
    /// Each case, and what is wrong with it.
    cases: Vec<(Case, Option<String>)>,
    /// Why it could not be read.
    error: Option<String>,
    /// How many cases were tried in the real sandbox, and which were not, and why.
    tried: usize,
    untried: Vec<(u32, &'static str)>,
}

fn run(path: &Path, live: bool, coverage: &mut Coverage) -> Ran {
    let shown = path.display().to_string();
    let mut ran = Ran { path: shown.clone(), cases: Vec::new(), error: None, tried: 0, untried: Vec::new() };
    let text = match files::read(path) {
        Ok(text) => text.text,
        Err(error) => {
            ran.error = Some(output::without_numbers(&format!("cannot read the suite `{shown}`: {error}")));
            return ran;
        }
    };
    let suite = match suite::parse(&text) {
        Ok(suite) => suite,
        Err(error) => {
            let place = error.place.map(|(line, column)| format!(":{line}:{column}")).unwrap_or_default();
            ran.error = Some(format!("{shown}{place}: {}", error.message));
            return ran;
        }
    };
    let mut policies =
        Policies { directory: path.parent().unwrap_or(Path::new("")).to_owned(), known: BTreeMap::new() };
    for case in suite.cases {
        let wrong = policies.of(&case, coverage).and_then(|read| {
            let Read { policy, sources } = read;
            let words = |id: RuleId| rule::words(policy.rule(id), sources);
            let accesses = accesses(&case, policy)?;
            let mut wrong = None;
            for access in &accesses {
                let verdict = decide(policy, access);
                coverage.mark(policy, sources, &verdict);
                wrong = wrong.or(judge(&case, policy, sources, access, &verdict, &words));
            }
            Ok(wrong)
        });
        let mut wrong = wrong.unwrap_or_else(|message| Some(output::without_numbers(&message)));
        if live && wrong.is_none() {
            match live::attempt(&case, &policies.directory) {
                live::Outcome::Agrees => ran.tried += 1,
                live::Outcome::NotTried(why) => ran.untried.push((case.place.0, why)),
                live::Outcome::Differs(how) => {
                    ran.tried += 1;
                    let decided = if case.allow { "allowed" } else { "denied" };
                    wrong = Some(format!("`{} {}` is {decided}, but {how}", case.access.0, case.access.1));
                }
            }
        }
        ran.cases.push((case, wrong));
    }
    ran
}

struct Read {
    policy: BoundPolicy,
    sources: Sources,
}

/// Files, the system, values of variables.
type Key = (Vec<String>, System, BTreeMap<String, String>);

/// The policies of a suite, each read once for a system and values of variables.
struct Policies {
    directory: PathBuf,
    known: BTreeMap<Key, Result<Read, String>>,
}

impl Policies {
    /// The policy of a case; the rules of one that is read are those that there are to try.
    fn of(&mut self, case: &Case, coverage: &mut Coverage) -> Result<&Read, String> {
        let key = (case.policies.clone(), case.system, case.variables.clone());
        let directory = &self.directory;
        let read = self.known.entry(key).or_insert_with(|| {
            let read = read(case, directory)?;
            let words = |id: RuleId| rule::words(read.policy.rule(id), &read.sources);
            coverage.add(&read.policy, &read.sources, &words);
            Ok(read)
        });
        read.as_ref().map_err(Clone::clone)
    }
}

fn read(case: &Case, directory: &Path) -> Result<Read, String> {
    let mut sources = Sources::default();
    let mut given = Vec::new();
    for policy in &case.policies {
        given.push(load::add(&directory.join(policy), &mut sources)?);
    }
    let own = |name: &String| !BUILT_IN.contains(&name.as_str()) && !name.starts_with("env.");
    let defines: Vec<_> = case.variables.clone().into_iter().filter(|(name, _)| own(name)).collect();
    let loaded = load::resolved(&given, sources, &defines, case.system);
    let machine = loaded.policy.as_ref().map(Nominal::of);
    let loaded = match machine {
        Some(machine) => load::bind_to(loaded, &machine.with(case.variables.clone())),
        None => load::Loaded { sources: loaded.sources, policy: None, diagnostics: loaded.diagnostics },
    };
    if let Some(policy) = loaded.policy.filter(|_| !any_error(&loaded.diagnostics)) {
        return Ok(Read { policy, sources: loaded.sources });
    }
    output::print_diagnostics(&loaded.diagnostics, &loaded.sources, Level::Error);
    Err(format!("the policy `{}` has errors: see `srt check`", case.policies.join("`, `")))
}

/// The accesses that a case is about: one, but for names that stand for several addresses.
fn accesses(case: &Case, policy: &BoundPolicy) -> Result<Vec<Access>, String> {
    let (word, target) = &case.access;
    let Some(verb) = Verb::ALL.iter().copied().find(|verb| verb.word() == word) else {
        let near = nearest(word, Verb::ALL.iter().map(|verb| verb.word()));
        let hint = near.map(|near| format!("; did you mean `{near}`?")).unwrap_or_default();
        return Err(format!("`{word}` is not a verb{hint}"));
    };
    access::accesses(verb, target, || path(case, target, policy))
}

/// A path as a policy writes it: absolute, or from a variable or the home.
fn path(case: &Case, target: &str, policy: &BoundPolicy) -> Result<AbsPath, String> {
    let written = if let Some(rest) = target.strip_prefix('~') {
        format!("{}{rest}", value("HOME", case, policy)?)
    } else if let Some(rest) = target.strip_prefix('$') {
        let (name, rest) = rest.split_at(rest.find('/').unwrap_or(rest.len()));
        format!("{}{rest}", value(name, case, policy)?)
    } else {
        target.to_owned()
    };
    AbsPath::parse(&written).map_err(|error| {
        let start = "start it with `/`, `~/` or `$WORKSPACE/`";
        format!("`{target}` is not a path: {error}; {start}")
    })
}

fn value(name: &str, case: &Case, policy: &BoundPolicy) -> Result<String, String> {
    let found = policy.facts.variables.get(name).or_else(|| case.variables.get(name)).cloned();
    let found = found.or_else(|| nominal().variable(name));
    found.ok_or_else(|| format!("`${name}` has no value: give it one under `variables`"))
}

impl Ran {
    fn failed(&self) -> impl Iterator<Item = (&Case, &str)> {
        self.cases.iter().filter_map(|(case, wrong)| Some((case, wrong.as_deref()?)))
    }

    fn junit(&self) -> junit::Suite {
        let cases = self.cases.iter().map(|(case, wrong)| junit::Case {
            name: case.name.clone(),
            file: self.path.clone(),
            line: Some(case.place.0),
            outcome: match wrong {
                None => junit::Outcome::Passed,
                Some(message) => junit::Outcome::Failed {
                    kind: "verdict".to_owned(),
                    message: message.clone(),
                    text: format!(
                        "{}:{}: {message}\n{}",
                        self.path,
                        case.place.0,
                        case.reason.clone().unwrap_or_default()
                    ),
                },
            },
            output: String::new(),
        });
        let mut cases: Vec<_> = cases.collect();
        cases.extend(self.error.iter().map(|message| junit::Case {
            name: self.path.clone(),
            file: self.path.clone(),
            line: None,
            outcome: junit::Outcome::Error(message.clone()),
            output: String::new(),
        }));
        junit::Suite { name: self.path.clone(), cases }
    }
}

fn human(ran: &[Ran], coverage: &Coverage) {
    // Writing into a string does not fail, here and below.
    let mut text = String::new();
    for one in ran {
        if let Some(error) = &one.error {
            output::complain(error);
            continue;
        }
        for (case, wrong) in one.failed() {
            let (line, column) = case.place;
            let _ = writeln!(text, "{}:{line}:{column}: {}\n  {wrong}", one.path, case.name);
            if let Some(reason) = &case.reason {
                let _ = writeln!(text, "  it should be, since {reason}");
            }
        }
        let failed = one.failed().count();
        let passed = one.cases.len() - failed;
        let failed = if failed > 0 { format!(", {failed} failed") } else { String::new() };
        let _ = writeln!(text, "{}: {passed} passed{failed}", one.path);
        if one.tried + one.untried.len() > 0 {
            let _ = writeln!(text, "  {} tried in the sandbox", output::count(one.tried, "case"));
        }
        for (line, why) in &one.untried {
            let _ = writeln!(text, "  {}:{line} is not tried there: {why}", one.path);
        }
    }
    if ran.iter().any(|ran| ran.error.is_none()) {
        let (decided, all) = coverage.counts();
        let _ =
            writeln!(text, "{decided} of {} decided something ({} %)", output::count(all, "rule"), coverage.percent());
        for (line, words) in coverage.untried() {
            let _ = writeln!(text, "  no case tries {}:{} {words}", line.file, line.line);
        }
    }
    output::print(&text);
}

fn json(ran: &[Ran], coverage: &Coverage) -> serde_json::Value {
    let suites: Vec<_> = ran
        .iter()
        .map(|one| {
            let cases = one.cases.iter().map(|(case, wrong)| {
                serde_json::json!({
                    "name": case.name,
                    "line": case.place.0,
                    "column": case.place.1,
                    "access": format!("{} {}", case.access.0, case.access.1),
                    "system": case.system,
                    "passed": wrong.is_none(),
                    "message": wrong,
                    "reason": case.reason,
                })
            });
            serde_json::json!({ "file": one.path, "error": one.error, "cases": cases.collect::<Vec<_>>() })
        })
        .collect();
    let (decided, all) = coverage.counts();
    let untried = coverage.untried().map(|(line, words)| {
        serde_json::json!({ "file": line.file, "line": line.line, "column": line.column, "text": words })
    });
    serde_json::json!({
        "suites": suites,
        "coverage": { "decided": decided, "rules": all, "percent": coverage.percent(), "untried": untried.collect::<Vec<_>>() },
    })
}
