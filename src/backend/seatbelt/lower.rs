//! [`Policy`] → [`Plan`]: which formula holds for each group of operations, and where the profile will differ from the policy.
//!
//! Variables may be unbound: the profile asks for their places when it is loaded. What is bound is a path like any other.

use super::codes::{self, kind};
use super::links;
use super::moves::Moves;
use super::plan::{Clauses, Granted, Parameter, Plan, Withheld};
use super::spelling::in_all_spellings;
use crate::analysis::permission::{self, Permission, Prepared};
use crate::analysis::{Answer, Budget, Member, openers};
use crate::backend::gap::{Gap, Operation};
use crate::backend::{LIMIT_NOT_HELD, PINNED_DIRECTORY};
use crate::diagnostic::{Code, Diagnostic};
use crate::ir::{LimitValue, Policy, Rule, Subject};
use crate::sets::glob::Piece;
use crate::sets::path::{AbsPath, PathSet, Pattern, Segment, Start};
use crate::sets::peer::{Endpoint, PeerSet};
use crate::source::Span;
use crate::vocabulary::{Effect, LimitKind, Reach, Verb};
use std::collections::BTreeSet;
use std::panic::resume_unwind;
use std::thread;

/// Another name of all data; Apple's "About the read-only system volume": firmlinks lead from `/` into it.
const SECOND_ROOT: &str = "/System/Volumes/Data";

/// Bytes of one path; longer literals in profiles are reported to fail.
const LONGEST: usize = 900;

/// Steps for one question about a gap; past them the gap is declared, and `verify` says whether there is one.
const STEPS: u64 = 50_000_000;

/// The verbs over paths, in the order of [`Permissions::new`].
const PERMITTED: [Verb; 4] = [Verb::Read, Verb::Write, Verb::Exec, Verb::Socket];

/// A plan and what it cannot hold.
#[derive(Debug, Clone)]
pub struct Lowered {
    pub plan: Plan,
    pub gaps: Vec<Gap>,
    /// The policy with the system's own links followed: what the plan is proved to be.
    pub policy: Policy,
}

/// What of a policy stops a compile for macOS: what cannot be enforced, and its looser gaps over files. A limit that is not held there
/// is for whoever compiles for it, or runs it there: most policies that have one are for another system.
pub fn stopping(policy: &Policy) -> Vec<Diagnostic> {
    let policy = links::followed(policy);
    let mut said: Vec<_> = policy.rules.iter().filter_map(unenforceable).collect();
    let permitted = PERMITTED.map(|verb| Permission::of(&policy, verb));
    said.extend(blind(&policy, &Permissions::new(&permitted)));
    said.extend(open(&Moves::open(&policy)).into_iter().map(|gap| gap.said));
    said
}

/// Lowers a policy; `Err` when it holds a rule that cannot be enforced on macOS at all.
///
/// # Errors
/// One diagnostic for each such rule.
///
/// # Panics
/// Never: it expects its own constant to be a path.
pub fn lower(policy: &Policy) -> Result<Lowered, Vec<Diagnostic>> {
    let policy = links::followed(policy);
    let mut errors: Vec<_> = policy.rules.iter().filter_map(unenforceable).collect();
    let permitted = PERMITTED.map(|verb| Permission::of(&policy, verb));
    let permissions = Permissions::new(&permitted);
    errors.extend(blind(&policy, &permissions));
    if !errors.is_empty() {
        return Err(errors);
    }
    let moves = Moves::of(&policy);
    let second_root = second_root(&policy, &permissions);
    // Each takes as long as the other.
    let (plan, mut gaps) = thread::scope(|scope| {
        let gaps = scope.spawn(|| gaps(&policy, &moves, &permissions));
        let plan = planned(&policy, &moves, second_root.is_some());
        (plan, gaps.join().unwrap_or_else(|panic| resume_unwind(panic)))
    });
    gaps.splice(0..0, second_root);
    Ok(Lowered { plan, gaps: once_each(gaps), policy })
}

/// The plan of a policy that can be enforced; `second_root` when the other name of the root is closed.
fn planned(policy: &Policy, moves: &Moves, second_root: bool) -> Plan {
    let mut plan = Plan {
        read: clauses(policy, Verb::Read),
        write: clauses(policy, Verb::Write),
        exec: clauses(policy, Verb::Exec),
        socket: clauses(policy, Verb::Socket),
        mach: clauses(policy, Verb::Mach),
        ways: ways(policy),
        proxy: first_connect(policy).is_some(),
        ..Plan::default()
    };
    plan.read.everything = policy.default_read.value == Effect::Allow;
    for (verb, pattern, span) in &moves.elsewhere {
        let clauses = if *verb == Verb::Read { &mut plan.read } else { &mut plan.write };
        clauses.withhold(pattern.clone(), Some(*span));
    }
    let pin = |(pin, span): &(Pattern, Span)| {
        let set = Subject::Paths(pin.clone().into());
        Withheld { set, lifted_by: Vec::new(), span: Some(*span) }
    };
    plan.pins = moves.pins.iter().map(pin).collect();
    if second_root {
        let root = AbsPath::parse(SECOND_ROOT).expect("the constant is a path");
        for clauses in [&mut plan.read, &mut plan.socket] {
            clauses.withhold(Pattern::literal(&root, Reach::Tree), None);
        }
    }
    plan.parameters = parameters(&plan, moves);
    plan
}

fn gaps(policy: &Policy, moves: &Moves, permissions: &Permissions<'_>) -> Vec<Gap> {
    let mut gaps = Vec::new();
    gaps.extend(other_spellings(policy, permissions));
    gaps.extend(moved_names(moves, permissions));
    gaps.extend(pinned(moves, permissions));
    gaps.extend(open(moves));
    gaps.extend(proxy_only(policy));
    gaps.extend(not_held(policy));
    gaps
}

/// What the policy permits of each operation.
struct Permissions<'p> {
    read: Prepared<'p>,
    write: Prepared<'p>,
    exec: Prepared<'p>,
    socket: Prepared<'p>,
}

impl<'p> Permissions<'p> {
    fn new([read, write, exec, socket]: &'p [Permission; 4]) -> Self {
        Self {
            read: Prepared::new(read),
            write: Prepared::new(write),
            exec: Prepared::new(exec),
            socket: Prepared::new(socket),
        }
    }

    fn get(&self, operation: Operation) -> &Prepared<'p> {
        match operation {
            Operation::Write | Operation::Rename => &self.write,
            Operation::Exec => &self.exec,
            Operation::Socket => &self.socket,
            _ => &self.read,
        }
    }

    /// Adds a set to a gap for each operation of which the policy permits something in it. The first such thing, where the gap is
    /// empty: of what comes later nobody asks what it is.
    fn add(&self, region: &mut Vec<(Operation, Subject)>, operations: &[Operation], set: &Subject) -> Option<String> {
        let mut witness = None;
        // Writing and renaming are permitted alike, and asked about one after the other.
        let mut last: Option<(&Prepared<'_>, bool)> = None;
        for operation in operations {
            let permitted = self.get(*operation);
            let is_one = match last {
                Some((before, is_one)) if std::ptr::eq(before, permitted) => is_one,
                _ => {
                    let budget = &mut Budget::new(STEPS);
                    let found = if region.is_empty() {
                        permission::excess(permitted, None, Some(set), &[], budget)
                    } else {
                        permission::some_excess(permitted, None, set, budget)
                    };
                    if let Answer::Some(Member::Path(path)) = &found {
                        witness.get_or_insert_with(|| format!("{operation} {path}"));
                    }
                    found != Answer::None
                }
            };
            if is_one {
                region.push((*operation, set.clone()));
            }
            last = Some((permitted, is_one));
        }
        witness
    }

    /// The same of a set that the profile refuses as it stands, and does not ask again once the gap is one: where the policy permits
    /// nothing in it either, there is no difference to excuse.
    fn add_refused(
        &self,
        region: &mut Vec<(Operation, Subject)>,
        operations: &[Operation],
        set: &Subject,
    ) -> Option<String> {
        if region.is_empty() {
            return self.add(region, operations, set);
        }
        region.extend(operations.iter().map(|operation| (*operation, set.clone())));
        None
    }
}

/// The operations in which a denial of a verb is felt.
fn felt(verb: Verb) -> &'static [Operation] {
    match verb {
        Verb::Read => &[Operation::Read, Operation::Write, Operation::Rename, Operation::Exec],
        Verb::Write => &[Operation::Write, Operation::Rename],
        Verb::Exec => &[Operation::Exec],
        Verb::Socket => &[Operation::Socket],
        _ => &[],
    }
}

fn clauses(policy: &Policy, verb: Verb) -> Clauses {
    let mut clauses = Clauses::default();
    let allows = policy.rules_of(verb).filter(|(_, rule)| rule.effect == Effect::Allow);
    clauses.granted.extend(allows.map(|(_, rule)| Granted { set: rule.subject.clone(), span: rule.span }));
    for (id, openers) in openers(policy, verb) {
        let rule = policy.rule(id);
        let lifted_by = openers.iter().map(|allow| policy.rule(*allow).subject.clone());
        let set = match &rule.subject {
            Subject::Paths(set) => Subject::Paths(in_all_spellings(set)),
            other => other.clone(),
        };
        clauses.withheld.push(Withheld { set, lifted_by: lifted_by.collect(), span: Some(rule.span) });
    }
    clauses
}

/// Whatever lies above a place that a rule allows something at.
fn ways(policy: &Policy) -> Vec<Pattern> {
    let mut ways = BTreeSet::new();
    let verbs = [Verb::Read, Verb::Write, Verb::Exec, Verb::Socket];
    for rule in policy.rules.iter().filter(|rule| rule.effect == Effect::Allow && verbs.contains(&rule.verb)) {
        let Subject::Paths(set) = &rule.subject else { continue };
        for pattern in &set.include {
            for length in 0..pattern.segments.len() {
                let mut segments = pattern.segments[..length].to_vec();
                let deep = segments.last() == Some(&Segment::AnyDepth);
                if deep {
                    segments.pop();
                }
                let reach = if deep { Reach::Tree } else { Reach::Exact };
                ways.insert(Pattern { start: pattern.start.clone(), segments, reach });
            }
        }
    }
    ways.into_iter().collect()
}

/// Every parameter that the profile will ask for.
fn parameters(plan: &Plan, moves: &Moves) -> Vec<Parameter> {
    let mut parameters = BTreeSet::new();
    let mut subjects: Vec<&Subject> = Vec::new();
    for clauses in [&plan.read, &plan.write, &plan.exec, &plan.socket] {
        subjects.extend(clauses.granted.iter().map(|granted| &granted.set));
        for withheld in &clauses.withheld {
            subjects.push(&withheld.set);
            subjects.extend(&withheld.lifted_by);
        }
    }
    subjects.extend(plan.pins.iter().map(|pin| &pin.set));
    let sets = subjects.into_iter().filter_map(|subject| match subject {
        Subject::Paths(set) => Some(set),
        _ => None,
    });
    for pattern in sets.flat_map(PathSet::patterns).chain(&plan.ways) {
        if let Start::Variable(name) = &pattern.start {
            parameters.insert(Parameter::Ancestors(name.clone()));
            let plain = pattern.is_literal() && pattern.reach != Reach::Below;
            parameters.insert(if plain { Parameter::Place(name.clone()) } else { Parameter::Regex(name.clone()) });
        }
    }
    parameters.extend(moves.above.iter().cloned().map(Parameter::Ancestors));
    parameters.insert(Parameter::LogTag);
    parameters.extend(plan.proxy.then_some(Parameter::ProxyPort));
    parameters.into_iter().collect()
}

/// What no profile can say.
fn unenforceable(rule: &Rule) -> Option<Diagnostic> {
    let refuse = |why: &str, help: &str| {
        let what = format!("this build cannot enforce `{} {}` on macOS: {why}", rule.effect, rule.verb);
        Some(Diagnostic::new(&codes::UNENFORCEABLE, what).label(rule.span, "needs it").help(help))
    };
    if rule.effect == Effect::Allow && matches!(&rule.subject, Subject::Peers(peers) if peers.udp) {
        return refuse("the proxy carries no UDP", "drop `/udp`, or leave the rule out");
    }
    if rule.effect == Effect::Allow && rule.verb == Verb::Listen {
        return refuse("nothing serves the outside", "leave the rule out, or write it in `on linux`");
    }
    let Subject::Paths(set) = &rule.subject else { return None };
    for pattern in set.patterns() {
        if let Start::Drive(drive) = &pattern.start {
            return refuse(&format!("there is no drive `{drive}:`"), "write the rule in `on windows`");
        }
        let length: usize = pattern.segments.iter().map(|segment| 1 + size(segment)).sum();
        if length > LONGEST {
            return refuse("the path is too long for a profile", "name a directory above it");
        }
        let wide = |piece: &Piece| match piece {
            Piece::Class { negated, ranges } => {
                let many = || ranges.iter().flat_map(|(low, high)| *low..=*high).nth(super::spelling::MOST).is_some();
                ranges.iter().any(|(_, high)| !high.is_ascii()) && (*negated || many())
            }
            _ => false,
        };
        let globs = pattern.segments.iter().filter_map(|segment| match segment {
            Segment::Glob(glob) => Some(glob),
            _ => None,
        });
        if globs.flat_map(|glob| &*glob.0).any(wide) {
            return refuse("profiles have no large classes of letters outside ASCII", "write `?`, or name the letters");
        }
    }
    None
}

fn size(segment: &Segment) -> usize {
    match segment {
        Segment::AnyDepth => 2,
        Segment::Literal(name) => name.len(),
        Segment::Glob(glob) => glob.to_string().len(),
    }
}

/// What may be written or run and not be read.
fn blind(policy: &Policy, permissions: &Permissions<'_>) -> Vec<Diagnostic> {
    let mut found = Vec::new();
    for (operation, verb) in [(Operation::Write, Verb::Write), (Operation::Exec, Verb::Exec)] {
        let (granted, read) = (permissions.get(operation), permissions.get(Operation::Read));
        let answer = permission::excess(granted, Some(read), None, &[], &mut Budget::new(STEPS));
        let Answer::Some(Member::Path(path)) = answer else { continue };
        let allows = |rule: &&Rule| {
            rule.verb == verb
                && rule.effect == Effect::Allow
                && matches!(&rule.subject, Subject::Paths(set) if set.contains(&path))
        };
        let span = policy.rules.iter().find(allows).map_or(policy.default_read.span, |rule| rule.span);
        found.push(
            Diagnostic::new(
                &codes::GRANT_WITHOUT_READ,
                format!("{verb} is allowed on `{path}`, but reading it is not"),
            )
            .label(span, format!("allows {verb}"))
            .help(format!("write `allow read, {verb}`, or leave the rule out"))
            .witness(path.to_string()),
        );
    }
    found
}

/// What neither a pin nor a denial elsewhere holds.
fn open(moves: &Moves) -> Vec<Gap> {
    let gap = |(span, witness): &(Span, String)| {
        let message = "on macOS a directory that holds what this denies can be renamed into its place, or out of it";
        let said = Diagnostic::new(&codes::MOVED_DIRECTORY, message)
            .label(*span, "denies names at any depth")
            .help("deny the whole directory, or accept the gap with `# lint: allow(moved-directory) REASON`")
            .witness(witness.clone());
        Gap { kind: kind(&codes::MOVED_DIRECTORY), said, region: Vec::new() }
    };
    once_each(moves.open.iter().map(gap).collect())
}

fn second_root(policy: &Policy, permissions: &Permissions<'_>) -> Option<Gap> {
    let root = AbsPath::parse(SECOND_ROOT).expect("the constant is a path");
    let set = Subject::Paths(Pattern::literal(&root, Reach::Tree).into());
    let mut region = Vec::new();
    let operations = [Operation::Read, Operation::Write, Operation::Rename, Operation::Exec, Operation::Socket];
    let witness = permissions.add(&mut region, &operations, &set)?;
    let allows = |rule: &&Rule| {
        rule.effect == Effect::Allow
            && matches!(&rule.subject, Subject::Paths(set) if set.include.iter().any(|pattern| pattern.contains(&root)))
    };
    let span = policy.rules.iter().find(allows).map_or(policy.default_read.span, |rule| rule.span);
    let message = format!("on macOS nothing can be reached by its other name below `{SECOND_ROOT}`");
    Some(gap(&codes::SECOND_ROOT, message, span, Some(witness), region))
}

fn other_spellings(policy: &Policy, permissions: &Permissions<'_>) -> Option<Gap> {
    let mut region = Vec::new();
    let mut first: Option<(Span, Option<String>)> = None;
    for rule in policy.rules.iter().filter(|rule| rule.effect != Effect::Allow) {
        let Subject::Paths(set) = &rule.subject else { continue };
        let spelled = in_all_spellings(set);
        if spelled.include == set.include {
            continue;
        }
        let exclude = set.patterns().cloned().collect();
        let others = Subject::Paths(PathSet { include: spelled.include, exclude });
        let before = region.len();
        let witness = permissions.add(&mut region, felt(rule.verb), &others);
        if region.len() > before {
            first.get_or_insert((rule.span, witness));
        }
    }
    let (span, witness) = first?;
    let message = "on macOS what a rule denies is denied in every spelling of its name";
    Some(gap(&codes::OTHER_SPELLINGS, message, span, witness, region))
}

fn moved_names(moves: &Moves, permissions: &Permissions<'_>) -> Option<Gap> {
    let mut region = Vec::new();
    let mut first: Option<(Span, Option<String>)> = None;
    for (verb, pattern, span) in &moves.elsewhere {
        let before = region.len();
        let set = Subject::Paths(pattern.clone().into());
        let witness = permissions.add_refused(&mut region, felt(*verb), &set);
        if region.len() > before {
            first.get_or_insert((*span, witness));
        }
    }
    let (span, witness) = first?;
    let message = "on macOS names that a rule denies at any depth are denied in every other writable place too";
    Some(gap(&codes::MOVED_NAMES, message, span, witness, region))
}

fn pinned(moves: &Moves, permissions: &Permissions<'_>) -> Option<Gap> {
    let mut region = Vec::new();
    let mut first: Option<(Span, Option<String>)> = None;
    for (pin, span) in &moves.pins {
        let before = region.len();
        let witness = permissions.add_refused(&mut region, &[Operation::Rename], &Subject::Paths(pin.clone().into()));
        if region.len() > before {
            first.get_or_insert((*span, witness));
        }
    }
    let (span, witness) = first?;
    let message = "on macOS a directory above what a rule denies can be neither made nor renamed nor removed";
    Some(gap(&PINNED_DIRECTORY, message, span, witness, region))
}

fn first_connect(policy: &Policy) -> Option<&Rule> {
    let something = |rule: &&Rule| match &rule.subject {
        Subject::Peers(PeerSet { endpoint: Endpoint::Hosts(hosts), .. }) => !hosts.include.is_empty(),
        Subject::Peers(_) => true,
        _ => false,
    };
    policy.rules.iter().filter(|rule| rule.effect == Effect::Allow && rule.verb == Verb::Connect).find(something)
}

/// Limits that macOS has no means for: of each process it bounds nothing but what setrlimit(2) says, and the number of processes
/// for a user as a whole.
fn not_held(policy: &Policy) -> Vec<Gap> {
    let limited = [LimitKind::Memory, LimitKind::Processes].into_iter();
    let limited = limited.filter_map(|kind| Some((kind, policy.limits.get(&kind)?)));
    let gap = |(kind, limit): (LimitKind, &LimitValue)| {
        let message = format!("macOS has no means to limit `{kind}` for one command");
        gap(&LIMIT_NOT_HELD, message, limit.span, None, Vec::new())
    };
    limited.map(gap).collect()
}

fn proxy_only(policy: &Policy) -> Option<Gap> {
    let rule = first_connect(policy)?;
    let message = "connections reach the network by the sandbox's proxy alone, that is by HTTP_PROXY and its like";
    Some(gap(&codes::PROXY_ONLY, message, rule.span, None, Vec::new()))
}

fn gap(
    code: &'static Code,
    message: impl Into<String>,
    span: Span,
    witness: Option<String>,
    region: Vec<(Operation, Subject)>,
) -> Gap {
    let mut said = Diagnostic::new(code, message).label(span, "by this rule");
    said.witness = witness;
    Gap { kind: kind(code), said, region }
}

/// One gap of a kind for a rule: its other instances would say nothing new.
fn once_each(gaps: Vec<Gap>) -> Vec<Gap> {
    let mut seen = BTreeSet::new();
    gaps.into_iter().filter(|gap| gap.said.span().is_none_or(|span| seen.insert((gap.kind.code.name, span)))).collect()
}
