//! The access lists against two readers that share nothing with what emits them: the program's own, and Samba's access check
//! over inheritance worked out in Python.

use super::drafts::{self, Chance, Effect};
use super::{mutants, policies, shipped};
use sandbox_runtime::backend::gap::{Direction, Gap, Operation};
use sandbox_runtime::backend::wfp::{Lowered, Needs, access_lists, lower};
use sandbox_runtime::ir::{Access, Node, NodeKind, Origin, Policy, Rule, Setting, Subject, Unset, decide};
use sandbox_runtime::sets::path::{AbsPath, PathSet, Pattern, Segment};
use sandbox_runtime::source::{Sources, Span};
use sandbox_runtime::verify::wfp::prove_access_lists;
use sandbox_runtime::vocabulary::{Reach, System, Verb};
use serde_json::{Value, json};
use std::io::Write as _;
use std::process::{Command, Stdio};

const PROBES: usize = 40;
const NAMES: [&str; 3] = ["a", "b", "c"];
/// How deep the disk is; at the bottom there are files.
const DEPTH: usize = 3;

struct Case {
    policy: Policy,
    held: Policy,
    gaps: Vec<Gap>,
    text: String,
    probes: Vec<Probe>,
}

/// What is done at a path.
#[derive(Debug, Clone)]
struct Probe {
    path: AbsPath,
    directory: bool,
    operation: &'static str,
}

fn roots() -> [AbsPath; 3] {
    [AbsPath::variable("WORKSPACE"), AbsPath::variable("HOME"), AbsPath::parse("C:/").unwrap()]
}

fn place(chance: &mut Chance, least: usize) -> AbsPath {
    let [workspace, home, drive] = roots();
    let root = match chance.below(4) {
        0 => home,
        1 => drive,
        _ => workspace,
    };
    let depth = least + chance.below(DEPTH + 1 - least);
    (0..depth).fold(root, |path, _| path.join(chance.of(&NAMES)))
}

fn pattern(chance: &mut Chance) -> Pattern {
    let path = place(chance, 0);
    let deepest = path.segments.len() == DEPTH;
    let reach = match chance.below(5) {
        0 => Reach::Exact,
        1 if !deepest => Reach::Below,
        _ => Reach::Tree,
    };
    let mut pattern = Pattern::literal(&path, reach);
    if chance.one_in(10) && !pattern.segments.is_empty() {
        let at = chance.below(pattern.segments.len());
        pattern.segments.insert(at, Segment::AnyDepth);
    }
    pattern
}

fn draft(chance: &mut Chance) -> (Policy, Sources) {
    let mut sources = Sources::default();
    let source = sources.add("generated", "somewhere".repeat(20));
    let span = |at: usize| Span::new(source, at * 9..at * 9 + 9);
    let default = if chance.one_in(4) { Effect::Allow } else { Effect::Deny };
    let mut policy = Policy::new(System::Windows, Setting { value: default, span: span(0) });
    let add = |policy: &mut Policy, effect, verb, include: &Pattern, exclude: &[Pattern]| {
        let at = policy.rules.len() + 1;
        policy.rules.push(Rule {
            effect,
            verb,
            subject: Subject::Paths(PathSet { include: vec![include.clone()], exclude: exclude.to_vec() }),
            because: None,
            unset: Unset::Refuse,
            span: span(at % 20),
            origin: Origin::Given,
        });
    };
    for _ in 0..=chance.below(8) {
        let effect = if chance.one_in(2) { Effect::Deny } else { Effect::Allow };
        let effect = if chance.one_in(20) { Effect::Forbid } else { effect };
        let verb = chance.of(&[Verb::Read, Verb::Write, Verb::Write, Verb::Exec]);
        let include = pattern(chance);
        let exclude = if chance.one_in(6) { vec![pattern(chance)] } else { Vec::new() };
        if effect == Effect::Allow && verb != Verb::Read {
            add(&mut policy, effect, Verb::Read, &include, &exclude);
        }
        add(&mut policy, effect, verb, &include, &exclude);
    }
    if chance.one_in(2) {
        // What each path is, is known of some machine.
        let mut paths = roots().to_vec();
        for depth in 0..=DEPTH {
            let kind = if depth == DEPTH { NodeKind::File } else { NodeKind::Directory };
            policy.facts.nodes.extend(paths.iter().map(|path| (path.clone(), Node { kind, device: 1, inode: 1 })));
            paths = paths.iter().flat_map(|path| NAMES.iter().map(|name| path.join(name))).collect();
        }
    }
    (policy, sources)
}

fn case(chance: &mut Chance) -> Case {
    loop {
        let (policy, sources) = draft(chance);
        // A write where the default lets nothing be read is refused, and nothing is emitted.
        let Ok(Lowered { plan, gaps, held }) = lower(&policy, &Needs::default()) else { continue };
        let text = access_lists(&plan, &sources);
        let probes = (0..PROBES).map(|_| probe(chance, &policy)).collect();
        return Case { policy, held, gaps, text, probes };
    }
}

/// Near the rules, mostly.
fn probe(chance: &mut Chance, policy: &Policy) -> Probe {
    let operation = chance
        .of(&["read", "read", "write", "write", "execute", "create", "create", "remove", "remove", "take", "own"]);
    let mut path = place(chance, 0);
    if !chance.one_in(3)
        && let Subject::Paths(set) = &policy.rules[chance.below(policy.rules.len())].subject
    {
        path = set.include[0].literal_prefix();
        while path.segments.len() < DEPTH && chance.one_in(2) {
            path = path.join(chance.of(&NAMES));
        }
    }
    if operation == "remove" && path.segments.is_empty() {
        path = path.join("a");
    }
    if operation == "create" && path.segments.len() == DEPTH {
        path = path.parent().unwrap();
    }
    Probe { directory: path.segments.len() < DEPTH, path, operation }
}

/// What the policy says; `None` where a gap was declared.
fn expected(case: &Case, probe: &Probe) -> Option<bool> {
    let (access, operation) = match probe.operation {
        "read" => (Access::Read(probe.path.clone()), Operation::Read),
        "execute" => (Access::Exec(probe.path.clone()), Operation::Exec),
        "write" | "remove" => (Access::Write(probe.path.clone()), Operation::Write),
        "create" => (Access::Write(probe.path.join("unnamed")), Operation::Write),
        // Of what it made the command may rewrite the list only where the plan gives it nothing to make.
        "own" if !decide(&case.held, &Access::Write(probe.path.clone())).allowed => return None,
        _ => return Some(false),
    };
    let verdict = decide(&case.policy, &access);
    let (Access::Read(path) | Access::Exec(path) | Access::Write(path)) = &access else { unreachable!() };
    // What only an open default permits is left to the machine's own lists, which here open nothing.
    if verdict.allowed && decide(&case.held, &access).decisive.is_empty() && open(&case.policy) {
        return None;
    }
    let direction = if verdict.allowed { Direction::Stricter } else { Direction::Looser };
    // Making a name, or taking one away, may be decided otherwise than changing what is there.
    let moves = matches!(probe.operation, "create" | "remove");
    let excused = case.gaps.iter().filter(|gap| gap.kind.direction == direction).any(|gap| {
        gap.region.iter().any(|(of, set)| {
            (*of == operation || moves && *of == Operation::Rename)
                && matches!(set, Subject::Paths(set) if set.contains(path))
        })
    });
    (!excused).then_some(verdict.allowed)
}

fn open(policy: &Policy) -> bool {
    policy.default_read.value == Effect::Allow
}

fn evaluated(cases: &[(&Value, &[Probe])]) -> Vec<Vec<bool>> {
    let script = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/oracles/acl.py");
    // Samba's modules come with the system's Python.
    let python = if std::path::Path::new("/usr/bin/python3").exists() { "/usr/bin/python3" } else { "python3" };
    let mut child = Command::new(python).arg(script).stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
    let mut stdin = child.stdin.take().unwrap();
    let line = |(artefact, probes): &(&Value, &[Probe])| {
        let probe = |probe: &Probe| json!({ "path": probe.path.to_string(), "directory": probe.directory, "operation": probe.operation });
        json!({ "lists": artefact, "accesses": probes.iter().map(probe).collect::<Vec<_>>() }).to_string()
    };
    let lines = cases.iter().map(line).collect::<Vec<_>>().join("\n");
    let writer = std::thread::spawn(move || stdin.write_all(lines.as_bytes()));
    let output = child.wait_with_output().unwrap();
    assert!(output.status.success(), "the evaluator needs python3-samba: run `.ci/setup test`");
    writer.join().unwrap().unwrap();
    let text = String::from_utf8(output.stdout).unwrap();
    let answers: Vec<Vec<bool>> = text.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert_eq!(answers.len(), cases.len());
    answers
}

fn difference(cases: &[(&Case, Value)]) -> Option<String> {
    let asked: Vec<(&Value, &[Probe])> = cases.iter().map(|(case, artefact)| (artefact, &case.probes[..])).collect();
    for ((case, artefact), answers) in cases.iter().zip(evaluated(&asked)) {
        for (probe, answer) in case.probes.iter().zip(answers) {
            if expected(case, probe).is_some_and(|expected| expected != answer) {
                let rule = |rule: &Rule| {
                    let Subject::Paths(set) = &rule.subject else { unreachable!() };
                    let all = |list: &[Pattern]| list.iter().map(ToString::to_string).collect::<Vec<_>>().join(", ");
                    format!("{} {} {} except {}", rule.effect, rule.verb, all(&set.include), all(&set.exclude))
                };
                let rules = case.policy.rules.iter().map(rule).collect::<Vec<_>>().join("\n");
                let default = case.policy.default_read.value;
                let known = case.policy.facts.nodes.len();
                return Some(format!(
                    "{} {} {}: {answer}\n{default}, {known} known\n{rules}\n{artefact:#}\n{:?}",
                    probe.operation, probe.path, probe.directory, case.gaps
                ));
            }
        }
    }
    None
}

fn cases(count: usize, seed: u64) -> Vec<Case> {
    let mut chance = Chance::new(seed);
    (0..count).map(|_| case(&mut chance)).collect()
}

fn artefacts(cases: &[Case]) -> Vec<(&Case, Value)> {
    cases.iter().map(|case| (case, serde_json::from_str(&case.text).unwrap())).collect()
}

#[test]
#[cfg_attr(windows, ignore = "asks an evaluator in Python, which Wine cannot start")]
fn the_lists_decide_as_the_policy_does() {
    let cases = cases(policies(), drafts::seed());
    if let Some(difference) = difference(&artefacts(&cases)) {
        panic!("{difference}");
    }
    let verdicts: Vec<Option<bool>> =
        cases.iter().flat_map(|case| case.probes.iter().map(|probe| expected(case, probe))).collect();
    let count = |of: Option<bool>| verdicts.iter().filter(|verdict| **verdict == of).count();
    let (yes, no, excused) = (count(Some(true)), count(Some(false)), count(None));
    println!("{yes} permitted, {no} denied, {excused} not compared");
    assert!(yes * 8 > verdicts.len() && no * 5 > verdicts.len() && excused * 3 < verdicts.len());
}

#[test]
fn each_list_is_proved() {
    for case in cases(policies(), drafts::seed().wrapping_add(1)) {
        let proved = prove_access_lists(&case.policy, &case.gaps, &case.text);
        assert_eq!(proved, Ok(()), "{:#?}\n{}", case.policy.rules, case.text);
    }
}

/// A directory that stays in its place for what is below it, and that a rule about later names closes as a whole: nothing is
/// missed there, and no gap says so.
#[test]
fn what_is_denied_anyhow_may_be_held_in_place_without_a_gap() {
    let rules = "on windows {\n  allow read, write below C:/b\n  deny write C:/b/a/a\n  deny read exact C:/**/a\n}";
    for (rules, expected) in [(rules, 0), (&rules.replace("  deny read exact C:/**/a\n", ""), 1)] {
        let (policy, sources) = shipped::resolved("own.policy", &format!("srt 1\ndefault read deny\n{rules}\n"));
        let Lowered { plan, gaps, .. } = lower(&policy, &Needs::default()).unwrap();
        let text = access_lists(&plan, &sources);
        assert!(text.contains("FILE_DELETE_CHILD"), "{text}");
        let pinned = gaps.iter().filter(|gap| gap.kind.code.name == "pinned-directory");
        assert_eq!(pinned.count(), expected);
        assert_eq!(prove_access_lists(&policy, &gaps, &text), Ok(()));
    }
}

/// The same of what is made inside a place that one rule opens for all and another for itself alone.
#[test]
fn what_is_denied_anyhow_may_be_made_nowhere_without_a_gap() {
    let own = "allow read, write C:/w\n  deny read exact C:/w/b/c";
    let later = "\n  deny write below C:/w/**/c";
    for (rules, expected) in [(format!("{own}{later}"), 0), (own.to_owned(), 1)] {
        let text = format!("srt 1\ndefault read deny\non windows {{\n  {rules}\n}}\n");
        let (policy, sources) = shipped::resolved("own.policy", &text);
        let Lowered { plan, gaps, .. } = lower(&policy, &Needs::default()).unwrap();
        assert_eq!(gaps.iter().filter(|gap| gap.kind.code.name == "not-granted").count(), expected, "{rules}");
        assert_eq!(prove_access_lists(&policy, &gaps, &access_lists(&plan, &sources)), Ok(()), "{rules}");
    }
}

/// A difference without a gap is a fault, and so is a gap without a difference, or one that is wider than its rule.
#[test]
fn each_gap_is_declared_and_no_wider() {
    let tree = |path: AbsPath| Subject::Paths(PathSet::from(Pattern::literal(&path, Reach::Tree)));
    let everything = Subject::Paths(PathSet {
        include: roots().iter().map(|root| Pattern::literal(root, Reach::Tree)).collect(),
        exclude: Vec::new(),
    });
    let (mut left_out, mut widened) = (0, 0);
    for case in cases(policies(), drafts::seed().wrapping_add(2)) {
        let proved = |gaps: &[Gap]| prove_access_lists(&case.policy, gaps, &case.text);
        for index in 0..case.gaps.len() {
            let gap = &case.gaps[index];
            if gap.region.is_empty() {
                continue;
            }
            let mut wider = case.gaps.clone();
            for (_, set) in &mut wider[index].region {
                *set = everything.clone();
            }
            // Nothing may be removable anyway: then that nothing is is no lie.
            let pinned = gap.kind.code.name == "pinned-directory";
            assert!(pinned || proved(&wider).is_err(), "{:?}\n{}", wider[index], case.text);
            widened += usize::from(!pinned);
            let mut elsewhere = case.gaps.clone();
            for (_, set) in &mut elsewhere[index].region {
                *set = tree(AbsPath::variable("NOWHERE"));
            }
            assert!(proved(&elsewhere).is_err(), "{:?}\n{}", elsewhere[index], case.text);
            // Another gap may say the same of another rule.
            let mut fewer = case.gaps.clone();
            fewer.remove(index);
            left_out += usize::from(proved(&fewer).is_err());
        }
    }
    assert!(widened > 20 && left_out > 20, "{left_out} of {widened}");
}

type Mistake = fn(&mut Value) -> bool;

/// Changes the texts of entries; an empty one is taken out.
fn aces(artefact: &mut Value, mut change: impl FnMut(&str) -> Option<String>) -> bool {
    let mut changed = false;
    for entry in artefact["entries"].as_array_mut().unwrap() {
        entry["aces"].as_array_mut().unwrap().retain_mut(|ace| {
            let Some(text) = change(ace["sddl"].as_str().unwrap()) else { return true };
            changed = true;
            ace["sddl"] = json!(text);
            !text.is_empty()
        });
    }
    changed
}

/// Adds and takes bits of the masks of one kind of entry.
fn bits(artefact: &mut Value, kind: &str, more: u32, less: u32) -> bool {
    aces(artefact, |text| {
        let mut fields: Vec<String> = text.split(';').map(str::to_owned).collect();
        let mask = u32::from_str_radix(fields[2].strip_prefix("0x").unwrap(), 16).unwrap();
        let changed = (mask | more) & !less;
        let fit = text.starts_with(kind) && text.contains("ACCOUNT") && changed != mask;
        fields[2] = format!("{changed:#x}");
        fit.then(|| fields.join(";"))
    })
}

const MISTAKES: &[(&str, Mistake)] = &[
    ("denials are dropped", |artefact| aces(artefact, |text| text.starts_with("(D").then(String::new))),
    ("permissions are dropped", |artefact| aces(artefact, |text| text.starts_with("(A").then(String::new))),
    ("denials are not inherited", |artefact| {
        aces(artefact, |text| text.starts_with("(D;OICI;").then(|| text.replacen("OICI", "", 1)))
    }),
    ("permissions are not inherited", |artefact| {
        aces(artefact, |text| {
            (text.starts_with("(A;OICI;") && !text.contains("OW")).then(|| text.replacen("OICI", "", 1))
        })
    }),
    ("below is the node too", |artefact| {
        aces(artefact, |text| text.contains(";OICIIO;").then(|| text.replacen("OICIIO", "OICI", 1)))
    }),
    ("exact is the tree", |artefact| {
        aces(artefact, |text| text.starts_with("(A;;").then(|| text.replacen(";;", ";OICI;", 1)))
    }),
    ("permissions and denials are swapped", |artefact| {
        aces(artefact, |text| text.starts_with("(D").then(|| text.replacen("(D", "(A", 1)))
    }),
    ("reading is not denied", |artefact| bits(artefact, "(D", 0, 0x1 | 0x8)),
    ("writing is not denied", |artefact| bits(artefact, "(D", 0, 0x2 | 0x4 | 0x10 | 0x100)),
    ("running is not denied", |artefact| bits(artefact, "(D", 0, 0x20)),
    ("removing is not denied", |artefact| bits(artefact, "(D", 0, 0x1_0000)),
    ("removing by right of the directory is allowed", |artefact| {
        bits(artefact, "(D", 0, 0x40) & bits(artefact, "(A", 0x40, 0)
    }),
    ("the list may be rewritten", |artefact| bits(artefact, "(A", 0x4_0000, 0) & bits(artefact, "(D", 0, 0x4_0000)),
    ("owners may rewrite their lists", |artefact| aces(artefact, |text| text.contains(";OW)").then(String::new))),
    ("writing includes running", |artefact| bits(artefact, "(A", 0x20, 0)),
    ("looking is denied with reading", |artefact| bits(artefact, "(D", 0x10_0000, 0)),
    ("the first entry is forgotten", |artefact| {
        let entries = artefact["entries"].as_array_mut().unwrap();
        !entries.is_empty() && entries.remove(0).is_object()
    }),
    ("the last entry is forgotten", |artefact| artefact["entries"].as_array_mut().unwrap().pop().is_some()),
];

/// Each is caught by the program's reader, and nearly all by Samba too.
#[test]
#[cfg_attr(windows, ignore = "asks an evaluator in Python, which Wine cannot start")]
fn each_mistake_is_caught() {
    let cases = cases(80, 4712);
    let mut missed = Vec::new();
    for (name, mistake) in MISTAKES {
        let mut changed = artefacts(&cases);
        changed.retain_mut(|(_, artefact)| mistake(artefact));
        assert!(changed.len() >= 3, "{name}: only {} artefacts are fit for it", changed.len());
        let fault = |(case, artefact): &&(&Case, Value)| {
            prove_access_lists(&case.policy, &case.gaps, &artefact.to_string()).is_err()
        };
        // What ships is the program's reader.
        let by_reader = changed.iter().filter(fault).count();
        let by_oracle = difference(&changed).is_some();
        println!("{name}: read back wrong {by_reader} times of {}, by Samba: {by_oracle}", changed.len());
        if by_reader == 0 {
            missed.push(*name);
        }
    }
    assert!(missed.is_empty(), "{missed:?}");
    assert!(MISTAKES.len() + mutants::count() >= 30);
}
