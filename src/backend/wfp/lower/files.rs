//! The rules about files → entries of access lists, for the command's account.
//!
//! Every path that a rule names is a point, and between points everything is decided alike. The system takes an entry of a
//! node before one that is inherited, and of inherited ones the nearest; so a point only says what it changes. Whatever no
//! entry speaks of is left to the lists that are there: nothing is granted to the account, as far as the machine does not
//! grant it to everyone.

use super::super::codes::MADE_INSIDE;
use super::super::plan::{Ace, Entry, Scope, Trustee, rights};
use super::gaps::STEPS;
use super::held::VERBS;
use crate::analysis::permission::{self, Prepared};
use crate::analysis::{Answer, Budget, Member};
use crate::backend::bubblewrap::NOT_GRANTED;
use crate::backend::gap::{Gap, Operation};
use crate::backend::{GRANT_WITHOUT_READ, PINNED_DIRECTORY};
use crate::diagnostic::Diagnostic;
use crate::ir::{Access, Decider, NodeKind, Policy, RuleId, Subject, Verdict, Why};
use crate::sets::path::{AbsPath, PathSet, Pattern, fold};
use crate::vocabulary::{Effect, Reach, Verb};
use std::collections::{BTreeMap, BTreeSet};

/// What reading takes: never more is denied than what no other right needs, so that a node can still be looked at.
const READ: Mask = Mask {
    allow: rights::READ_DATA | rights::READ_EA | rights::READ_ATTRIBUTES | rights::READ_CONTROL | rights::SYNCHRONIZE,
    deny: rights::READ_DATA | rights::READ_EA,
};
/// What writing takes, the bits aside that mean making things in a directory. Whoever may write may not change the list.
const WRITE: Mask = Mask {
    allow: rights::WRITE_EA
        | rights::WRITE_ATTRIBUTES
        | rights::DELETE
        | rights::READ_ATTRIBUTES
        | rights::READ_CONTROL
        | rights::SYNCHRONIZE,
    deny: rights::WRITE_EA
        | rights::WRITE_ATTRIBUTES
        | rights::DELETE
        | rights::DELETE_CHILD
        | rights::WRITE_DAC
        | rights::WRITE_OWNER,
};
/// Of a file its content; of a directory what is made in it.
const CONTENT: Mask =
    Mask { allow: rights::WRITE_DATA | rights::APPEND_DATA, deny: rights::WRITE_DATA | rights::APPEND_DATA };
const EXEC: Mask =
    Mask { allow: rights::EXECUTE | rights::READ_ATTRIBUTES | rights::SYNCHRONIZE, deny: rights::EXECUTE };
const MASKS: [Mask; 4] = [READ, WRITE, CONTENT, EXEC];

struct Mask {
    allow: u32,
    deny: u32,
}

/// What entries say of one right.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Said {
    Nothing,
    Allow,
    Deny,
}

/// Of each of [`MASKS`].
type Saying = [Said; 4];

/// The points of a policy that can be held.
pub(super) struct Files<'p> {
    decider: Decider<'p>,
    policy: &'p Policy,
    /// With what is said of each node itself and of what is below it, but for points.
    points: BTreeMap<AbsPath, Point>,
    unnamed: String,
}

#[derive(Default)]
struct Point {
    directory: bool,
    here: Option<Decided>,
    below: Option<Decided>,
}

/// What the policy says of one node.
struct Decided {
    read: Verdict,
    write: Verdict,
    exec: Verdict,
}

impl<'p> Files<'p> {
    pub fn new(policy: &'p Policy) -> Self {
        let mut points: BTreeMap<AbsPath, Point> = BTreeMap::new();
        for rule in policy.rules.iter().filter(|rule| VERBS.contains(&rule.verb)) {
            let Subject::Paths(set) = &rule.subject else { continue };
            for pattern in set.patterns() {
                let point = points.entry(pattern.literal_prefix()).or_default();
                point.directory |= pattern.reach == Reach::Below || pattern.segments.is_empty();
            }
        }
        if policy.default_read.value == Effect::Allow {
            points.entry(home(policy)).or_default().directory = true;
        }
        let unnamed = unnamed(&points);
        let mut files = Self { decider: Decider::new(policy), policy, points, unnamed };
        files.pin();
        files.decide();
        files
    }

    /// The directories on the way to what may not be written, inside what may: a point each, so that they can be held in
    /// their places.
    fn pin(&mut self) {
        let mut ways = BTreeSet::new();
        for path in self.points.keys() {
            for above in path.ancestors().filter(|above| above != path) {
                if self.is_written(&above) {
                    ways.insert(above);
                }
            }
        }
        for way in ways {
            self.points.entry(way).or_default().directory = true;
        }
        // What has a point below it is a directory, whether or not it can be written.
        let paths: Vec<AbsPath> = self.points.keys().cloned().collect();
        for path in &paths {
            for above in path.ancestors().filter(|above| above != path) {
                if let Some(point) = self.points.get_mut(&above) {
                    point.directory = true;
                }
            }
        }
    }

    fn is_written(&self, path: &AbsPath) -> bool {
        [path.clone(), path.join(&self.unnamed)]
            .into_iter()
            .any(|path| self.decider.decide(&Access::Write(path)).allowed)
    }

    fn decide(&mut self) {
        let decided = |path: &AbsPath| Decided {
            read: self.decider.decide(&Access::Read(path.clone())),
            write: self.decider.decide(&Access::Write(path.clone())),
            exec: self.decider.decide(&Access::Exec(path.clone())),
        };
        let nodes = &self.policy.facts.nodes;
        let mut points = std::mem::take(&mut self.points);
        for (path, point) in &mut points {
            point.directory |= nodes.get(path).is_some_and(|node| node.kind == NodeKind::Directory);
            point.here = Some(decided(path));
            point.below = Some(decided(&path.join(&self.unnamed)));
        }
        self.points = points;
    }

    /// Rules that no system can hold, and names that this one cannot tell apart.
    pub fn errors(&self) -> Vec<Diagnostic> {
        let mut errors = Vec::new();
        let mut seen = BTreeSet::new();
        for (path, point) in &self.points {
            for decided in [&point.here, &point.below].into_iter().flatten() {
                for (verb, verdict) in [(Verb::Write, &decided.write), (Verb::Exec, &decided.exec)] {
                    let (true, false, Some(rule)) =
                        (verdict.allowed, decided.read.allowed, verdict.decisive.first().copied())
                    else {
                        continue;
                    };
                    if seen.insert(rule) {
                        let message = format!("this allows to {verb} what may not be read");
                        errors.push(
                            Diagnostic::new(&GRANT_WITHOUT_READ, message)
                                .label(self.policy.rule(rule).span, "allowed here")
                                .witness(path.to_string())
                                .help("allow reading it as well, or leave the rule out"),
                        );
                    }
                }
            }
        }
        errors
    }

    /// The entries of each point that changes something, and the gaps of single nodes; `write` is what the whole policy permits to
    /// write.
    pub fn entries(&self, write: &Prepared<'_>) -> (Vec<Entry>, Vec<Gap>) {
        let mut entries = Vec::new();
        let mut gaps: Vec<Gap> = self.held_in_place(write).into_iter().collect();
        let mut sayings: BTreeMap<&AbsPath, (Saying, Saying)> = BTreeMap::new();
        for (path, point) in &self.points {
            let inherited = path
                .ancestors()
                .filter(|above| above != path)
                .filter_map(|above| sayings.get(&above).map(|(_, below)| *below))
                .last()
                .unwrap_or([Said::Nothing; 4]);
            let (Some(here), Some(below)) = (&point.here, &point.below) else { continue };
            let (own, inner) = (self.saying(here, inherited, path), self.saying(below, inherited, path));
            let (mut own, mut inner) = (own, inner);
            // Making things in a directory is writing what is below it; of a file it is writing the file.
            own[2] = if point.directory { inner[1] } else { own[1] };
            inner[2] = inner[1];
            if !point.directory && own[1] != inner[1] {
                let opened = own[1] == Said::Allow;
                gaps.extend(self.made_inside(path, opened, if opened { here } else { below }, write));
            }
            let mut aces = self.aces(path, point, inherited, own, inner);
            sayings.insert(path, (own, inner));
            aces.sort_unstable_by_key(|ace| (!ace.deny, ace.trustee, ace.scope, ace.mask));
            if !aces.is_empty() {
                entries.push(Entry { path: path.clone(), aces, reasons: self.reasons(here, below) });
            }
        }
        (entries, gaps)
    }

    fn saying(&self, decided: &Decided, inherited: Saying, path: &AbsPath) -> Saying {
        let said = |verdict: &Verdict, inherited: Said| {
            let by_rule = !verdict.decisive.is_empty();
            // An open default opens the home, which no other account could read.
            let home = self.policy.default_read.value == Effect::Allow && *path == home(self.policy);
            match (verdict.allowed, by_rule, inherited) {
                (true, true, _) | (true, false, Said::Deny) => Said::Allow,
                (true, false, _) if home => Said::Allow,
                (false, true, _) | (false, false, Said::Allow) => Said::Deny,
                (_, false, _) => inherited,
            }
        };
        let write = said(&decided.write, inherited[1]);
        [said(&decided.read, inherited[0]), write, write, said(&decided.exec, inherited[3])]
    }

    fn aces(&self, path: &AbsPath, point: &Point, inherited: Saying, own: Saying, inner: Saying) -> Vec<Ace> {
        let mut masks: BTreeMap<(bool, Scope), u32> = BTreeMap::new();
        let mut add = |said: Said, scope, mask: &Mask| match said {
            Said::Nothing => {}
            Said::Allow => *masks.entry((false, scope)).or_default() |= mask.allow,
            Said::Deny => *masks.entry((true, scope)).or_default() |= mask.deny,
        };
        for (right, mask) in MASKS.iter().enumerate() {
            let (here, below) = (own[right] != inherited[right], inner[right] != inherited[right]);
            if here && below && own[right] == inner[right] {
                add(own[right], Scope::Tree, mask);
                continue;
            }
            if here {
                add(own[right], Scope::Node, mask);
            }
            // A point whose own entries differ from what is inherited may leave what is below to what is inherited.
            if below {
                add(inner[right], Scope::Below, mask);
            }
        }
        let (removed, emptied) = self.pinned(path, point);
        if emptied {
            *masks.entry((true, Scope::Node)).or_default() |= rights::DELETE_CHILD;
        }
        if removed {
            *masks.entry((true, Scope::Node)).or_default() |= rights::DELETE;
        }
        let ace = |((deny, scope), mask)| Ace { deny, trustee: Trustee::Account, scope, mask };
        let mut aces: Vec<Ace> = masks.into_iter().map(ace).collect();
        // Who makes a file owns it, and an owner may rewrite its list unless the list speaks of owners.
        let written = rights::WRITE_DATA | rights::WRITE_ATTRIBUTES;
        let makes: Vec<Scope> =
            aces.iter().filter(|ace| !ace.deny && ace.mask & written != 0).map(|ace| ace.scope).collect();
        if let Some(first) = makes.first() {
            let scope = if makes.len() == 1 { *first } else { Scope::Tree };
            aces.push(Ace { deny: false, trustee: Trustee::Owner, scope, mask: rights::READ_CONTROL });
        }
        aces
    }

    /// Whether a node must not be moved or removed, since something below it may not be written; and whether what is in it
    /// must not be removed by right of the directory.
    fn pinned(&self, path: &AbsPath, point: &Point) -> (bool, bool) {
        let written = |decided: &Option<Decided>| decided.as_ref().is_some_and(|decided| decided.write.allowed);
        let closed = |point: &Point| !written(&point.here) || !written(&point.below);
        if !written(&point.here) && !written(&point.below) {
            return (false, false);
        }
        let mut below = self.points.range(path.clone()..).skip(1).take_while(|(other, _)| other.is_inside(path));
        let holds = below.any(|(_, other)| closed(other));
        (holds && written(&point.here), holds)
    }

    /// One bit means the content of a file and what is made in a directory: it is decided as for a file.
    fn made_inside(&self, path: &AbsPath, opened: bool, decided: &Decided, write: &Prepared<'_>) -> Option<Gap> {
        let witness = format!("write {}", path.join(&self.unnamed));
        let decisive = decided.write.decisive.first().map(|rule| self.policy.rule(*rule).span);
        let gap = if opened {
            let message = format!("if `{path}` is a directory, files can be made in it");
            Diagnostic::new(&MADE_INSIDE, message).label(decisive?, "opens one path for writing")
        } else if decided.write.allowed {
            let message = format!("if `{path}` is a directory, nothing can be made in it");
            Diagnostic::new(&NOT_GRANTED, message).label(decisive?, "opens what is below it")
        } else {
            return None;
        };
        let region = made(path, Reach::Below);
        // The whole policy may close what its rules that can be held open, and the reverse.
        let differs = permission::some_of(write, !opened, &region.1, &mut Budget::new(STEPS)) != Answer::None;
        differs.then(|| super::gaps::gap(gap.witness(witness), vec![region]))
    }

    /// One gap for all directories that could be moved away by the rules, and on Windows cannot: something below them is closed.
    fn held_in_place(&self, write: &Prepared<'_>) -> Option<Gap> {
        // What may not be written at all is not missed: by a rule that is held for what is there alone.
        let missed = |path: &AbsPath| write.permits(&Member::Path(path.clone()));
        let held = self.points.iter().filter(|(path, point)| self.pinned(path, point).0 && missed(path));
        let mut region = Vec::new();
        let mut first = None;
        for (path, point) in held {
            region.push(made(path, Reach::Exact));
            first = first.or_else(|| Some((path, point.here.as_ref()?.write.decisive.first()?)));
        }
        let (path, rule) = first?;
        let message = "on Windows a directory in which something may not be written is neither moved nor removed";
        let said = Diagnostic::new(&PINNED_DIRECTORY, message)
            .label(self.policy.rule(*rule).span, "opens it for writing")
            .witness(format!("remove {path}"));
        Some(super::gaps::gap(said, region))
    }

    fn reasons(&self, here: &Decided, below: &Decided) -> Vec<(Effect, Verb, crate::source::Span)> {
        let mut ids: Vec<RuleId> = [here, below]
            .into_iter()
            .flat_map(|decided| [&decided.read, &decided.write, &decided.exec])
            .filter(|verdict| verdict.why != Why::Default || !verdict.decisive.is_empty())
            .flat_map(|verdict| verdict.decisive.iter().copied())
            .collect();
        ids.sort_unstable();
        ids.dedup();
        let rule = |id: RuleId| {
            let rule = self.policy.rule(id);
            (rule.effect, rule.verb, rule.span)
        };
        ids.into_iter().map(rule).collect()
    }
}

/// Where the home is: on a machine, its place there.
fn home(policy: &Policy) -> AbsPath {
    let place = policy.facts.variables.get("HOME").and_then(|home| AbsPath::parse(home).ok());
    place.unwrap_or_else(|| AbsPath::variable("HOME"))
}

/// Making or taking away a name.
fn made(path: &AbsPath, reach: Reach) -> (Operation, Subject) {
    (Operation::Rename, Subject::Paths(PathSet::from(Pattern::literal(path, reach))))
}

/// A name that no point has, whatever its case.
fn unnamed(points: &BTreeMap<AbsPath, Point>) -> String {
    let taken: BTreeSet<Vec<u8>> = points.keys().flat_map(|path| path.segments.iter().map(|name| fold(name))).collect();
    let mut name = "name".to_owned();
    while taken.contains(name.as_bytes()) {
        name.push('-');
    }
    name
}
