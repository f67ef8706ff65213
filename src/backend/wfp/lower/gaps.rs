//! What filters and access lists do not hold of a policy, each with its place.

use super::super::codes;
use super::held::{VERBS, is_there};
use super::{Needs, network};
use crate::analysis::permission::{self, Permission, Prepared};
use crate::analysis::{Answer, Budget, Cause, Member, Study, changes};
use crate::backend::bubblewrap::{EXEC_BY_CONTENT, LATER_NAMES, NOT_GRANTED};
use crate::backend::gap::{Gap, Operation};
use crate::backend::{LIMIT_NOT_HELD, PROXY_ONLY, UNENFORCEABLE};
use crate::diagnostic::Diagnostic;
use crate::ir::{Access, Origin, Policy, Rule, RuleId, Subject, Unset};
use crate::sets::glob::Glob;
use crate::sets::path::{PathSet, Pattern, Segment, Start};
use crate::sets::peer::Endpoint;
use crate::vocabulary::{Effect, LimitKind, Reach, Verb};
use std::collections::BTreeSet;
use std::net::Ipv4Addr;

/// Steps for one verb in one direction; the shipped policies take a hundredth.
pub(super) const STEPS: u64 = 20_000_000;

/// Rules for which Windows has no means.
pub(super) fn refused(policy: &Policy) -> Vec<Diagnostic> {
    let by_name = |rule: &&Rule| match &rule.subject {
        Subject::Peers(set) => set.udp && matches!(set.endpoint, Endpoint::Hosts(_)),
        _ => false,
    };
    let allows = policy.rules_of(Verb::Connect).map(|(_, rule)| rule).filter(|rule| rule.effect == Effect::Allow);
    allows
        .filter(by_name)
        .map(|rule| {
            Diagnostic::new(&UNENFORCEABLE, "UDP to a name cannot be enforced on Windows: the proxy carries TCP")
                .label(rule.span, "by name, and UDP")
                .help("name the address, or drop `/udp`")
        })
        .collect()
}

/// The gaps that come of the system itself, and of rules that are not about files.
pub(super) fn gaps(policy: &Policy, needs: &Needs) -> Vec<Gap> {
    said(policy, needs).into_iter().map(|said| gap(said, Vec::new())).collect()
}

pub(super) fn gap(said: Diagnostic, region: Vec<(Operation, Subject)>) -> Gap {
    Gap { kind: codes::kind(said.code), said, region }
}

fn said(policy: &Policy, needs: &Needs) -> Vec<Diagnostic> {
    let default = policy.default_read.span;
    let mut gaps = vec![
        Diagnostic::new(
            &codes::SYSTEM_RESOLVER,
            "on Windows any name can be looked up through the system's resolver, which tells its servers of it",
        )
        .label(default, "this policy")
        .witness("the look-up of a name"),
        Diagnostic::new(
            &codes::EVERY_ACCOUNT,
            "on Windows what the machine opens to every account is open to the command, where no rule speaks of it",
        )
        .label(default, "this policy")
        .witness("read C:/ProgramData"),
        Diagnostic::new(
            &codes::SHARED_LOOPBACK,
            "on Windows the command's own processes reach each other over loopback only where a rule allows it",
        )
        .label(default, "this policy")
        .witness(format!("connect {}:1", Ipv4Addr::LOCALHOST)),
    ];
    if policy.default_read.value == Effect::Allow {
        let message = "on Windows the command reads as an account of its own, not as you";
        gaps.push(Diagnostic::new(&codes::OTHER_ACCOUNT, message).label(default, "open by default"));
    }
    for kind in [LimitKind::Files, LimitKind::Filesize] {
        if let Some(limit) = policy.limits.get(&kind) {
            let message = format!("Windows has no means to limit `{kind}`");
            gaps.push(Diagnostic::new(&LIMIT_NOT_HELD, message).label(limit.span, "not held"));
        }
    }
    gaps.extend(proxy_ports(policy, needs));
    let denied = policy.rules_of(Verb::Exec).find(|(_, rule)| rule.effect != Effect::Allow);
    if let Some((_, rule)) = denied {
        let message = "a program can still be run from memory, and a script by its interpreter";
        gaps.push(Diagnostic::new(&EXEC_BY_CONTENT, message).label(rule.span, "denies running files"));
    }
    for (_, rule) in policy.rules_of(Verb::Socket).filter(|(_, rule)| rule.effect == Effect::Allow) {
        let message = "on Windows a unix socket is reached where its file may be written, and by no other right";
        gaps.push(Diagnostic::new(&NOT_GRANTED, message).label(rule.span, "gives nothing by itself"));
    }
    gaps.extend(no_such_place(policy));
    gaps
}

fn proxy_ports(policy: &Policy, needs: &Needs) -> Vec<Diagnostic> {
    let mut gaps = Vec::new();
    let named =
        |rule: &Rule| matches!(&rule.subject, Subject::Peers(set) if matches!(set.endpoint, Endpoint::Hosts(_)));
    let allows = || policy.rules_of(Verb::Connect).filter(|(_, rule)| rule.effect == Effect::Allow);
    if let Some((_, rule)) = allows().find(|(_, rule)| named(rule)) {
        let message = "what is allowed by name is reached through the proxy alone";
        gaps.push(Diagnostic::new(&PROXY_ONLY, message).label(rule.span, "allows connections"));
    }
    if let Some((_, rule)) = allows().next().filter(|_| network::proxied(policy)) {
        let (low, high) = (needs.proxy_ports.start(), needs.proxy_ports.end());
        let message = format!("the proxy is reached at ports {low} to {high} of the machine's loopback");
        let witness = format!("connect {}:{low}", Ipv4Addr::LOCALHOST);
        gaps.push(Diagnostic::new(&codes::PROXY_PORTS, message).label(rule.span, "needs the proxy").witness(witness));
    }
    for (_, rule) in policy.rules_of(Verb::Listen).filter(|(_, rule)| rule.effect == Effect::Allow) {
        let Subject::Peers(set) = &rule.subject else { continue };
        if let Some(port) = needs.proxy_ports.clone().find(|port| set.ports.contains(*port)) {
            let message = format!("the command cannot listen on port {port}, which is kept for the proxy");
            let witness = format!("listen {}:{port}", Ipv4Addr::LOCALHOST);
            gaps.push(
                Diagnostic::new(&codes::KEPT_PORTS, message).label(rule.span, "allows listening").witness(witness),
            );
        }
    }
    gaps
}

/// One note for all places that are none here.
fn no_such_place(policy: &Policy) -> Option<Diagnostic> {
    let elsewhere: Vec<&Rule> = policy
        .rules
        .iter()
        .filter(|rule| VERBS.contains(&rule.verb))
        .filter(|rule| {
            matches!(&rule.subject, Subject::Paths(set)
                if set.include.iter().any(|pattern| !is_there(pattern) && pattern.segments.first() != Some(&Segment::AnyDepth)))
        })
        .collect();
    let first = elsewhere.first()?;
    let message = match elsewhere.len() {
        1 => "this rule names a place that cannot be on Windows".to_owned(),
        count => format!("{count} rules name places that cannot be on Windows, this one first"),
    };
    Some(Diagnostic::new(&codes::NO_SUCH_PLACE, message).label(first.span, "no such place on Windows"))
}

/// The gaps between the rules about files and what is held of them: for each rule that makes a difference one, with a
/// shortest access that shows it, and what is left of its set.
pub(super) fn of_files(policy: &Policy, held: &Policy) -> Vec<Gap> {
    let (whole, part) = (on_drives(policy), on_drives(held));
    let (whole, part) = (Study::new(&whole), Study::new(&part));
    let found = VERBS.iter().flat_map(|verb| [later(&whole, &part, *verb), not_granted(&whole, &part, *verb)].concat());
    // What is said of a rule is said once, for the first verb.
    let mut seen: BTreeSet<RuleId> = BTreeSet::new();
    let found = found.filter(|(id, _)| seen.insert(*id));
    found.map(|(id, said)| gap(said, region(policy, held, id))).collect()
}

/// The denials of which something is not held.
fn later(whole: &Study<'_>, part: &Study<'_>, verb: Verb) -> Vec<(RuleId, Diagnostic)> {
    let message = "on Windows this is held only for what exists when a command is started";
    let said = |id: RuleId| {
        Diagnostic::new(&LATER_NAMES, message)
            .label(whole.policy().rule(id).span, "a pattern")
            .help("deny a directory instead, or accept the gap with a comment that says why")
    };
    if let Ok(found) = changes(whole.whole(), part.whole(), verb, &mut Budget::new(STEPS)) {
        let one = |(cause, access): (Cause, Access)| match cause {
            Cause::Removed(id) => Some((id, said(id).witness(access.to_string()))),
            _ => None,
        };
        return found.into_iter().filter_map(one).collect();
    }
    // Where it is not known which of the rules make a difference, each that was narrowed may.
    let narrowed = narrowed(whole.policy(), part.policy(), verb);
    narrowed.filter(|(_, rule)| rule.effect != Effect::Allow).map(|(id, _)| (id, said(id))).collect()
}

/// The allows of which something is not held.
fn not_granted(whole: &Study<'_>, part: &Study<'_>, verb: Verb) -> Vec<(RuleId, Diagnostic)> {
    let policy = whole.policy();
    let message = "on Windows this is not granted: access lists name files, not patterns";
    let said = |(id, witness): (RuleId, Option<String>)| {
        let mut said = Diagnostic::new(&NOT_GRANTED, message).label(policy.rule(id).span, "a pattern");
        said.witness = witness;
        (id, said)
    };
    let found = changes(part.whole(), whole.whole(), verb, &mut Budget::new(STEPS)).ok();
    let added = |(cause, access): &(Cause, Access)| match cause {
        Cause::Added(id) => Some(said((*id, Some(access.to_string())))),
        _ => None,
    };
    if let Some(found) = found.and_then(|found| found.iter().map(added).collect()) {
        return found;
    }
    // A denial was narrowed too, or it is not known: each allow that was may be one.
    let verbs = if verb == Verb::Read { &[Verb::Read][..] } else { &[Verb::Read, verb] };
    let narrowed = verbs.iter().flat_map(|verb| narrowed(policy, part.policy(), *verb));
    let (more, less) = (Permission::of(policy, verb), Permission::of(part.policy(), verb));
    let (more, less) = (Prepared::new(&more), Prepared::new(&less));
    let one = |(id, rule): (RuleId, &Rule)| {
        let budget = &mut Budget::new(STEPS);
        match permission::excess(&more, Some(&less), Some(&rule.subject), &[], budget) {
            Answer::None => None,
            Answer::Some(Member::Path(path)) => Some((id, Some(format!("{verb} {path}")))),
            _ => Some((id, None)),
        }
    };
    narrowed.filter(|(_, rule)| rule.effect == Effect::Allow).filter_map(one).map(said).collect()
}

/// The rules of a verb of which less is held than they say.
fn narrowed<'p>(whole: &'p Policy, part: &'p Policy, verb: Verb) -> impl Iterator<Item = (RuleId, &'p Rule)> {
    whole.rules_of(verb).filter(|(id, rule)| part.rule(*id).subject != rule.subject)
}

/// What is not held of a rule's set, for each operation that the rule has a say in.
fn region(policy: &Policy, held: &Policy, id: RuleId) -> Vec<(Operation, Subject)> {
    let (rule, part) = (policy.rule(id), held.rule(id));
    let (Subject::Paths(whole), Subject::Paths(part)) = (&rule.subject, &part.subject) else { return Vec::new() };
    let exclude = whole.exclude.iter().chain(&part.include).cloned().collect();
    let rest = Subject::Paths(PathSet { include: whole.include.clone(), exclude });
    let operations: &[Operation] = match rule.verb {
        Verb::Read => &[Operation::Read, Operation::Write, Operation::Exec],
        Verb::Write => &[Operation::Write],
        _ => &[Operation::Exec],
    };
    operations.iter().map(|operation| (*operation, rest.clone())).collect()
}

/// The policy with everything denied that starts at no drive and no variable, which is nowhere on Windows.
fn on_drives(policy: &Policy) -> Policy {
    let any = Segment::Glob(Glob::any());
    let include = vec![
        Pattern { start: Start::Root, segments: Vec::new(), reach: Reach::Exact },
        Pattern { start: Start::Root, segments: vec![any], reach: Reach::Tree },
    ];
    let mut policy = policy.clone();
    policy.rules.extend(VERBS.map(|verb| Rule {
        effect: Effect::Forbid,
        verb,
        subject: Subject::Paths(PathSet { include: include.clone(), exclude: Vec::new() }),
        because: None,
        unset: Unset::Refuse,
        span: policy.default_read.span,
        origin: Origin::Std,
    }));
    policy
}
