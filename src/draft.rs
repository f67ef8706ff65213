//! From what was refused to the smallest rules that would have allowed it.
//!
//! Proposes and never decides: what a statement means is read as any policy is, and it is proposed for an access only once
//! [`decide`](crate::ir::decide()) allows that. Nothing is proposed for what a `forbid` denies, or inside a secret. Whether what
//! was asked for *should* be allowed is for people: that is why the draft is a text to read.

mod hosts;
mod insert;
mod names;

pub use insert::insert;

use hosts::Connections;

use crate::ir::{Access, Kept, Policy, Rule, RuleId, Subject, Why, special};
use crate::sets::path::{AbsPath, PathSet, target};
use crate::vocabulary::{Effect, Verb};
use std::collections::{BTreeMap, BTreeSet};
use std::net::IpAddr;

/// So many paths in one directory are asked for one by one.
const FEW: usize = 3;

/// What is drafted upon.
pub struct Ground<'g> {
    /// The policy that refused, bound; with the rules that only say why something is denied.
    pub policy: &'g Policy,
    /// Bound rules that deny the reading of what is secret, whether or not the policy has them.
    pub secrets: &'g [Rule],
    /// Beginnings of targets and the places they name, such as `$WORKSPACE`; the first that fits is used.
    pub places: &'g [(&'g str, AbsPath)],
    pub is_directory: &'g dyn Fn(&AbsPath) -> bool,
    /// Statements may reach further than what was asked for, where that says how, see [`General`].
    pub general: bool,
    /// The rules of a statement, bound as the policy is; `None` where it is none.
    pub read: &'g dyn Fn(&str) -> Option<Vec<Rule>>,
}

/// Something that was refused.
#[derive(Debug, Clone)]
pub struct Wish {
    /// All of them at once; none where no rule could be about it.
    pub accesses: Vec<Access>,
    /// Of a name that was looked up and not yet connected to.
    pub without_port: bool,
}

/// What came of it. Wishes are named by where they stand among those given.
#[derive(Debug, Default)]
pub struct Draft {
    pub proposals: Vec<Proposal>,
    pub refused: Vec<(usize, Refusal)>,
    /// What the policy allows already.
    pub allowed: Vec<usize>,
}

/// Statements that allow some wishes together.
#[derive(Debug, Clone)]
pub struct Proposal {
    pub statements: Vec<String>,
    /// What they mean.
    pub rules: Vec<Rule>,
    pub wishes: Vec<usize>,
    /// How they reach further than what was asked for.
    pub general: Option<General>,
}

/// How a statement reaches further than what was asked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum General {
    /// Names that differ where a version or a temporary name stands.
    Names,
    /// All that is in a directory of which much was asked for.
    Directory,
    /// All names below a domain of which several were asked for.
    Domain,
    /// The two ports that a target without one means.
    Ports,
}

/// Why nothing is proposed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Refusal {
    /// No rule could be about it.
    Unnamed,
    /// This rule forbids it.
    Forbidden(RuleId),
    /// This rule of [`Ground::secrets`] is about it.
    Secret(usize),
    /// The address is that of a metadata service, which hands out credentials, or no single machine's.
    Special(IpAddr),
    /// No statement of ours allows it.
    NotEnough,
}

/// Drafts rules for what was refused.
pub fn draft(ground: &Ground<'_>, wishes: &[Wish]) -> Draft {
    let mut drafter = Drafter { ground, kept: Kept::new(ground.policy.clone()), draft: Draft::default() };
    let mut paths: BTreeMap<AbsPath, Asked> = BTreeMap::new();
    let mut hosts: BTreeMap<String, Connections> = BTreeMap::new();
    let mut others: Vec<(usize, String)> = Vec::new();
    for (number, wish) in wishes.iter().enumerate() {
        let Some(denied) = drafter.open(number, wish) else { continue };
        match denied {
            Access::Read(path) | Access::Write(path) | Access::Exec(path) => {
                let asked = paths.entry(path.clone()).or_default();
                asked.verbs.extend(drafter.verbs(denied));
                asked.by_default &= drafter.kept.decide(denied).why == Why::Default;
                asked.wishes.push(number);
            }
            Access::Socket(path) => others.push((number, format!("allow socket {}", drafter.written(path)))),
            Access::Connect { name, address, port, .. } => {
                let host = name.as_ref().map_or_else(|| bracketed(*address), ToString::to_string);
                let by_default = drafter.kept.decide(denied).why == Why::Default;
                let asked = hosts.entry(host).or_insert_with(|| Connections::new(name.is_some()));
                asked.add(number, wish, (*address, *port), by_default);
            }
            Access::Listen { address, port } => {
                others.push((number, format!("allow listen {}:{port}", bracketed(*address))));
            }
            Access::Env(_) | Access::Mach(_) => drafter.refuse(number, Refusal::Unnamed),
        }
    }
    drafter.paths(paths.into_iter().collect(), wishes);
    drafter.hosts(hosts, wishes);
    for (number, statement) in others {
        if !drafter.propose(vec![statement], vec![number], wishes, None) {
            drafter.refuse(number, Refusal::NotEnough);
        }
    }
    drafter.finish(wishes)
}

/// What was asked for of one path.
#[derive(Debug, Clone)]
struct Asked {
    verbs: BTreeSet<Verb>,
    /// No rule denies it.
    by_default: bool,
    wishes: Vec<usize>,
}

impl Default for Asked {
    fn default() -> Self {
        Self { verbs: BTreeSet::new(), by_default: true, wishes: Vec::new() }
    }
}

struct Drafter<'d> {
    ground: &'d Ground<'d>,
    kept: Kept,
    draft: Draft,
}

impl Drafter<'_> {
    /// The access of a wish that is denied and may be opened; else what became of the wish is noted.
    fn open<'w>(&mut self, number: usize, wish: &'w Wish) -> Option<&'w Access> {
        if wish.accesses.is_empty() {
            self.refuse(number, Refusal::Unnamed);
            return None;
        }
        let Some(denied) = wish.accesses.iter().find(|access| !self.kept.decide(access).allowed) else {
            self.draft.allowed.push(number);
            return None;
        };
        if let Some(refusal) = wish.accesses.iter().find_map(|access| self.closed(access)) {
            self.refuse(number, refusal);
            return None;
        }
        Some(denied)
    }

    /// Why an access must stay as it is.
    fn closed(&self, access: &Access) -> Option<Refusal> {
        let path = match access {
            Access::Read(path) | Access::Write(path) | Access::Exec(path) => Some(path),
            _ => None,
        };
        // Reading comes first: what denies that denies the rest.
        let reading = path.map(|path| Access::Read(path.clone()));
        for access in reading.iter().chain([access]) {
            let verdict = self.kept.decide(access);
            if let (Why::Forbidden, Some(rule)) = (verdict.why, verdict.decisive.first()) {
                return Some(Refusal::Forbidden(*rule));
            }
        }
        if let Some(secret) = path.and_then(|path| self.secret(path)) {
            return Some(Refusal::Secret(secret));
        }
        match access {
            Access::Connect { address, .. } if no_machines(*address) => Some(Refusal::Special(*address)),
            _ => None,
        }
    }

    /// The secret that a path is.
    fn secret(&self, path: &AbsPath) -> Option<usize> {
        self.ground.secrets.iter().position(|rule| matches!(&rule.subject, Subject::Paths(set) if set.contains(path)))
    }

    /// The verbs that it takes to allow an access to a path: nothing may be written or run that may not be read.
    fn verbs(&self, access: &Access) -> Vec<Verb> {
        let verb = access.words().0;
        let (Access::Write(path) | Access::Exec(path)) = access else { return vec![verb] };
        let read = self.kept.decide(&Access::Read(path.clone())).allowed;
        if read { vec![verb] } else { vec![Verb::Read, verb] }
    }

    /// A path as a policy names it.
    fn written(&self, path: &AbsPath) -> String {
        let (start, rest) = self.place(path);
        target(start, &rest)
    }

    /// The beginning that a path is named by, and the rest of it.
    fn place(&self, path: &AbsPath) -> (&str, String) {
        for (start, place) in self.ground.places {
            if let Some(rest) = path.below(place) {
                return (start, AbsPath::root().join_all(rest).to_string().trim_end_matches('/').to_owned());
            }
        }
        ("", path.to_string())
    }

    fn paths(&mut self, mut asked: Vec<(AbsPath, Asked)>, wishes: &[Wish]) {
        if self.ground.general {
            self.general_paths(&mut asked, wishes);
        }
        for (path, asked) in asked {
            let alone = asked.verbs.iter().all(|verb| *verb == Verb::Read) && (self.ground.is_directory)(&path);
            let exact = if alone { "exact " } else { "" };
            let statements = statements(&asked.verbs, &format!("{exact}{}", self.written(&path)));
            if !self.propose(statements, asked.wishes.clone(), wishes, None) {
                asked.wishes.into_iter().for_each(|number| self.refuse(number, Refusal::NotEnough));
            }
        }
    }

    /// Takes up what is said of several paths together.
    fn general_paths(&mut self, asked: &mut Vec<(AbsPath, Asked)>, wishes: &[Wish]) {
        // Wider sets come first, so that what they hold is not asked for again.
        for (directory, verbs) in self.directories(asked) {
            let is_meant = |(path, asked): &(AbsPath, Asked)| {
                path.parent().as_ref() == Some(&directory) && asked.verbs == verbs && asked.by_default
            };
            let numbers = numbers(asked.iter().filter(|one| is_meant(one)));
            let statements = statements(&verbs, &self.written(&directory));
            if self.propose(statements, numbers, wishes, Some(General::Directory)) {
                asked.retain(|one| !is_meant(one));
            }
        }
        for group in names::alike(asked.iter().map(|(path, asked)| (path, &asked.verbs))) {
            let members: Vec<_> = asked.iter().filter(|(path, _)| group.paths.contains(path)).collect();
            let (start, _) = self.place(&group.paths[0]);
            let depth = self.ground.places.iter().find(|(name, _)| *name == start).map_or(0, |(_, p)| p.segments.len());
            let Some(rest) = group.pattern(depth) else { continue };
            let numbers = numbers(members.into_iter());
            if self.propose(statements(&group.verbs, &format!("{start}{rest}")), numbers, wishes, Some(General::Names))
            {
                asked.retain(|(path, asked)| !(group.paths.contains(path) && asked.verbs == group.verbs));
            }
        }
    }

    /// Directories in which more was asked for than is named one by one, and that are not too much to open.
    fn directories(&self, asked: &[(AbsPath, Asked)]) -> Vec<(AbsPath, BTreeSet<Verb>)> {
        let mut counts: BTreeMap<(AbsPath, &BTreeSet<Verb>), usize> = BTreeMap::new();
        for (path, asked) in asked.iter().filter(|(_, asked)| asked.by_default) {
            if let Some(parent) = path.parent() {
                *counts.entry((parent, &asked.verbs)).or_default() += 1;
            }
        }
        let narrow = |directory: &AbsPath| {
            let places = self.ground.places.iter().filter_map(|(_, place)| directory.below(place));
            places.map(<[_]>::len).min().map_or(directory.segments.len() >= 3, |below| below >= 1)
        };
        let many = counts.into_iter().filter(|((directory, _), count)| *count > FEW && narrow(directory));
        many.map(|((directory, verbs), _)| (directory, verbs.clone())).collect()
    }

    /// Takes statements up if they open no secret and allow all of the wishes.
    fn propose(
        &mut self,
        statements: Vec<String>,
        numbers: Vec<usize>,
        wishes: &[Wish],
        general: Option<General>,
    ) -> bool {
        let mut rules = Vec::new();
        for statement in &statements {
            match (self.ground.read)(statement) {
                Some(more) => rules.extend(more),
                None => return false,
            }
        }
        if !self.opens_no_secret(&rules) {
            return false;
        }
        let amended = amended(self.ground.policy, &rules);
        let fulfilled = |number: &usize| wishes[*number].accesses.iter().all(|access| amended.decide(access).allowed);
        if !numbers.iter().all(fulfilled) {
            return false;
        }
        self.draft.proposals.push(Proposal { statements, rules, wishes: numbers, general });
        true
    }

    /// Whether everything secret stays denied that is in the set of a rule of the draft, these ones included.
    fn opens_no_secret(&self, more: &[Rule]) -> bool {
        let taken = self.draft.proposals.iter().flat_map(|proposal| &proposal.rules);
        let drafted: Vec<&Rule> = taken.chain(more).filter(|rule| rule.effect == Effect::Allow).collect();
        let own = self.ground.policy.rules.iter().filter(|rule| rule.effect == Effect::Allow);
        let reading: Vec<&PathSet> = own
            .chain(drafted.iter().copied())
            .filter(|rule| rule.verb == Verb::Read)
            .filter_map(|rule| paths(&rule.subject))
            .collect();
        let met = |secret: &&PathSet| {
            drafted.iter().any(|rule| paths(&rule.subject).is_some_and(|set| set.overlap(secret).is_some()))
        };
        let secrets = self.ground.secrets.iter().filter_map(|rule| paths(&rule.subject));
        secrets.filter(met).all(|secret| self.stays_denied(secret, &reading))
    }

    /// Whether the policy has a rule that denies reading all of a secret, and that none of these allowed sets opens there: what
    /// a rule does not let be read, can be neither written nor run.
    fn stays_denied(&self, secret: &PathSet, reading: &[&PathSet]) -> bool {
        let opened = |denied: &PathSet| {
            reading.iter().any(|set| set.overlap(secret).is_some() && set.is_strictly_inside(denied))
        };
        self.ground.policy.rules.iter().any(|rule| {
            rule.effect != Effect::Allow
                && rule.verb == Verb::Read
                && paths(&rule.subject).is_some_and(|denied| {
                    secret.is_inside(denied) && (rule.effect == Effect::Forbid || !opened(denied))
                })
        })
    }

    fn refuse(&mut self, number: usize, refusal: Refusal) {
        self.draft.refused.push((number, refusal));
    }

    /// Leaves out what others make unnecessary, each of its wishes by itself: so that whoever allows it says so.
    fn finish(mut self, wishes: &[Wish]) -> Draft {
        let mut at = 0;
        while at < self.draft.proposals.len() {
            let rest: Vec<&Proposal> =
                self.draft.proposals.iter().enumerate().filter(|(other, _)| *other != at).map(|(_, it)| it).collect();
            let together: Vec<Rule> = rest.iter().flat_map(|proposal| proposal.rules.clone()).collect();
            let allows =
                |policy: &Kept, number: usize| wishes[number].accesses.iter().all(|it| policy.decide(it).allowed);
            let without = amended(self.ground.policy, &together);
            let numbers = &self.draft.proposals[at].wishes;
            let alone =
                |number: &usize| rest.iter().position(|it| allows(&amended(self.ground.policy, &it.rules), *number));
            let needless = numbers.iter().all(|number| allows(&without, *number));
            let others: Option<Vec<usize>> = if needless { numbers.iter().map(alone).collect() } else { None };
            if let Some(others) = others {
                let gone = self.draft.proposals.remove(at);
                for (number, other) in gone.wishes.into_iter().zip(others) {
                    self.draft.proposals[other].wishes.push(number);
                }
            } else {
                at += 1;
            }
        }
        self.draft.refused.sort_by_key(|(number, _)| *number);
        self.draft
    }
}

/// The policy with some rules more.
fn amended(policy: &Policy, rules: &[Rule]) -> Kept {
    let mut policy = policy.clone();
    policy.rules.extend_from_slice(rules);
    Kept::new(policy)
}

fn numbers<'a>(asked: impl Iterator<Item = &'a (AbsPath, Asked)>) -> Vec<usize> {
    asked.flat_map(|(_, asked)| asked.wishes.iter().copied()).collect()
}

/// What allows some verbs. What may be read may be run; where it is written too, and nobody asked to run it, it may not.
fn statements(verbs: &BTreeSet<Verb>, target: &str) -> Vec<String> {
    let words = verbs.iter().map(|verb| verb.word()).collect::<Vec<_>>().join(", ");
    let mut statements = vec![format!("allow {words} {target}")];
    if verbs.iter().eq(&[Verb::Read, Verb::Write]) {
        statements.push(format!("deny exec {target}"));
    }
    statements
}

fn paths(subject: &Subject) -> Option<&PathSet> {
    match subject {
        Subject::Paths(set) => Some(set),
        _ => None,
    }
}

fn bracketed(address: IpAddr) -> String {
    match address {
        IpAddr::V4(v4) => v4.to_string(),
        IpAddr::V6(v6) => format!("[{v6}]"),
    }
}

/// Whether an address is that of a metadata service, or of no single machine: link-local, multicast, reserved.
fn no_machines(address: IpAddr) -> bool {
    special::class(address, &[]) == special::Class::Special && !address.is_loopback()
}
