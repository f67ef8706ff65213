//! The Windows filters against two readers that share nothing with what emits them: the program's own, and an evaluator of
//! the filtering platform's arbitration in Python.

mod drafts;
mod lists;
mod mutants;
mod shipped;

use drafts::{Draft, Probe};
use sandbox_runtime::backend::gap::Gap;
use sandbox_runtime::backend::wfp::{Lowered, Needs, filters, lower};
use sandbox_runtime::ir::{Access, Policy, Rule, decide};
use sandbox_runtime::sets::peer::Protocol;
use sandbox_runtime::source::Sources;
use sandbox_runtime::verify::wfp::prove_filters;
use serde_json::{Value, json};
use std::io::Write as _;
use std::net::Ipv4Addr;
use std::process::{Command, Stdio};

/// Policies of a run, each with [`PROBES`] accesses: 5 000 verdicts, and 100 000 and more where much is asked for.
fn policies() -> usize {
    let long =
        std::env::var("ANALYSIS_CASES").is_ok_and(|cases| cases.parse::<u64>().is_ok_and(|cases| cases > 100_000));
    if long { 3000 } else { 150 }
}

const PROBES: usize = 40;

/// A policy, its filters as they are emitted, and what is asked.
struct Case {
    policy: Policy,
    gaps: Vec<Gap>,
    text: String,
    probes: Vec<Probe>,
}

fn cases(count: usize, seed: u64) -> Vec<Case> {
    let mut chance = drafts::Chance::new(seed);
    let one = |_| {
        let draft = Draft::new(&mut chance);
        let (policy, sources) = draft.policy();
        let (text, gaps) = emitted(&policy, &sources);
        let probes = (0..PROBES).map(|_| draft.probe(&mut chance)).collect();
        Case { policy, gaps, text, probes }
    };
    (0..count).map(one).collect()
}

fn emitted(policy: &Policy, sources: &Sources) -> (String, Vec<Gap>) {
    let Lowered { plan, gaps, .. } = lower(policy, &Needs::default()).unwrap();
    (filters(&plan, sources), gaps)
}

/// What the policy says of a probe: an access of its own, or something that is closed, or no business of the filters.
fn expected(policy: &Policy, probe: &Probe) -> bool {
    let needs = Needs::default();
    match *probe {
        Probe::Connect { address, port, protocol } => {
            let proxied = policy.rules.iter().any(|rule| {
                (rule.effect, rule.verb) == (drafts::Effect::Allow, sandbox_runtime::vocabulary::Verb::Connect)
            });
            let loopback = address == std::net::IpAddr::from([127, 0, 0, 1])
                || address == "::1".parse::<std::net::IpAddr>().unwrap();
            let access = Access::Connect { name: None, address, port, protocol };
            decide(policy, &access).allowed
                || proxied && loopback && protocol == Protocol::Tcp && needs.proxy_ports.contains(&port)
        }
        Probe::Listen { address, port } => {
            decide(policy, &Access::Listen { address, port }).allowed && !needs.proxy_ports.contains(&port)
        }
        Probe::Ping { .. } | Probe::Receive { .. } => false,
        Probe::Bind { port, protocol, .. } => match protocol {
            6 => !needs.proxy_ports.contains(&port),
            17 => true,
            _ => false,
        },
        Probe::Other { .. } => true,
    }
}

/// What the evaluator says of all probes of all cases; a text where it refuses.
fn evaluated(cases: &[(&Value, &[Probe])]) -> Vec<Vec<Value>> {
    let script = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/oracles/wfp.py");
    let mut child = Command::new("python3").arg(script).stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
    let mut stdin = child.stdin.take().unwrap();
    let line = |(artefact, probes): &(&Value, &[Probe])| {
        let accesses: Vec<Value> = probes.iter().map(Probe::json).collect();
        json!({ "filters": artefact, "accesses": accesses }).to_string()
    };
    let lines = cases.iter().map(line).collect::<Vec<_>>().join("\n");
    let writer = std::thread::spawn(move || stdin.write_all(lines.as_bytes()));
    let output = child.wait_with_output().unwrap();
    writer.join().unwrap().unwrap();
    assert!(output.status.success());
    let text = String::from_utf8(output.stdout).unwrap();
    let answers: Vec<Vec<Value>> = text.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert_eq!(answers.len(), cases.len());
    answers
}

/// The first difference between what is expected of the cases and what the evaluator says.
fn difference(cases: &[Case], artefacts: &[Value]) -> Option<String> {
    let asked: Vec<(&Value, &[Probe])> =
        artefacts.iter().zip(cases).map(|(artefact, case)| (artefact, &case.probes[..])).collect();
    for ((case, artefact), answers) in cases.iter().zip(artefacts).zip(evaluated(&asked)) {
        assert_eq!(answers.len(), case.probes.len());
        for (probe, answer) in case.probes.iter().zip(answers) {
            let expected = expected(&case.policy, probe);
            if answer != expected {
                let rule = |rule: &Rule| format!("{:?} {} {:?}", rule.effect, rule.verb, rule.subject);
                let rules = case.policy.rules.iter().map(rule).collect::<Vec<_>>().join("\n");
                return Some(format!("{probe:?}: {answer}, expected {expected}\n{rules}\n{artefact:#}"));
            }
        }
    }
    None
}

#[test]
#[cfg_attr(windows, ignore = "asks an evaluator in Python, which Wine cannot start")]
fn the_filters_decide_as_the_policy_does() {
    let cases = cases(policies(), drafts::seed());
    let artefacts: Vec<Value> = cases.iter().map(|case| serde_json::from_str(&case.text).unwrap()).collect();
    if let Some(difference) = difference(&cases, &artefacts) {
        panic!("{difference}");
    }
    // A batch that is all of one kind proves nothing.
    let verdicts: Vec<(bool, &Probe)> =
        cases.iter().flat_map(|case| case.probes.iter().map(|probe| (expected(&case.policy, probe), probe))).collect();
    let all = verdicts.len();
    let count = |of: &dyn Fn(&(bool, &Probe)) -> bool| verdicts.iter().filter(|one| of(one)).count();
    let connections = count(&|(_, probe)| matches!(probe, Probe::Connect { .. }));
    let connected = count(&|(allowed, probe)| *allowed && matches!(probe, Probe::Connect { .. }));
    let listening = count(&|(_, probe)| matches!(probe, Probe::Listen { .. }));
    let listened = count(&|(allowed, probe)| *allowed && matches!(probe, Probe::Listen { .. }));
    println!(
        "{all} verdicts: {connected} of {connections} connections, {listened} of {listening} listenings permitted"
    );
    assert!(connected * 6 > connections && connected * 5 < connections * 4, "{connected} of {connections}");
    assert!(listened * 10 > listening && listened * 5 < listening * 4, "{listened} of {listening}");
}

#[test]
fn each_artefact_is_proved() {
    for case in cases(policies(), drafts::seed().wrapping_add(1)) {
        let prove = |gaps: &[Gap]| prove_filters(&case.policy, gaps, &Needs::default().proxy_ports, &case.text);
        assert_eq!(prove(&case.gaps), Ok(()), "{:#?}\n{}", case.policy.rules, case.text);
        // The way to the proxy is open wherever it is declared; a policy may allow the same by a rule.
        let undeclared: Vec<Gap> =
            case.gaps.iter().filter(|gap| gap.kind.code.name != "proxy-ports").cloned().collect();
        let reached = |port| {
            let (address, protocol) = (Ipv4Addr::LOCALHOST.into(), Protocol::Tcp);
            decide(&case.policy, &Access::Connect { name: None, address, port, protocol }).allowed
        };
        if undeclared.len() < case.gaps.len() && !Needs::default().proxy_ports.all(reached) {
            assert!(prove(&undeclared).is_err(), "{:#?}\n{}", case.policy.rules, case.text);
        }
    }
}

#[test]
fn the_same_policy_is_the_same_text() {
    for case in cases(20, 7).iter().zip(cases(20, 7)) {
        assert_eq!(case.0.text, case.1.text);
    }
}
