//! A generated policy, bound to this machine: what it says of an attempt, and what its gaps and mounts excuse.

use super::tree::{self, Attempt, Kind};
use nix::errno::Errno;
use sandbox_runtime::backend::bubblewrap::{Mount, Needs, Plan, User, lower};
use sandbox_runtime::bind::bind;
use sandbox_runtime::compile::compile;
use sandbox_runtime::diagnostic::{Diagnostic, Level, any_error};
use sandbox_runtime::exec::linux::Watch;
use sandbox_runtime::host::real::Machine;
use sandbox_runtime::ir::operation::{Operation, permits};
use sandbox_runtime::ir::{Access, BoundPolicy, Decider, Rule, Subject, Verdict, Why};
use sandbox_runtime::resolve::{Files, Options, Text, resolve};
use sandbox_runtime::sets::path::{AbsPath, FileName};
use sandbox_runtime::source::{Sources, Span};
use sandbox_runtime::vocabulary::{Effect, System, Verb};
use std::collections::BTreeMap;
use std::path::Path;

pub struct Bound {
    pub text: String,
    pub policy: BoundPolicy,
    pub plan: Plan,
    pub gaps: Vec<Diagnostic>,
    base: AbsPath,
}

/// Why an operation is refused.
pub struct Reason {
    access: Access,
    verdict: Verdict,
}

impl std::fmt::Debug for Reason {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{} is {:?} by {:?}", self.access, self.verdict.why, self.verdict.decisive)
    }
}

/// The name of an unnamed child: no pattern of a generated policy but `*` matches it.
const UNNAMED: &str = "~unnamed~";

struct NoFiles;

impl Files for NoFiles {
    fn read(&self, _: &str) -> std::io::Result<Text> {
        Err(std::io::ErrorKind::NotFound.into())
    }
}

/// The policy of these lines, with every looser gap accepted; `None` where it cannot be enforced at all.
pub fn bound(mut lines: Vec<String>, base: &Path, needs: &Needs) -> Option<Bound> {
    for _ in 0..4 {
        let text = lines.join("\n") + "\n";
        let mut sources = Sources::default();
        let id = sources.add("case.policy", text.clone());
        let options = Options { system: System::Linux, defines: BTreeMap::new() };
        let (policy, said) = resolve(&[id], &mut sources, &NoFiles, &options);
        assert!(!any_error(&said), "a generated policy is not read: {said:?}\n{text}");
        let machine = Machine::look(Some(&base.join("w")), BTreeMap::new()).unwrap();
        let (policy, said) = bind(policy?, &machine);
        let policy = policy.filter(|_| !any_error(&said))?;
        let lowered = lower(&policy, needs).ok()?;
        let compiled = compile(&policy, needs);
        // A run looks for errors alone, and must not be told less of them than a check.
        let alone = compile(&policy, &Needs { errors_alone: true, ..needs.clone() });
        assert_eq!(errors(&alone.diagnostics), errors(&compiled.diagnostics), "\n{text}");
        assert_eq!(alone.plan, compiled.plan, "\n{text}");
        if let Some(plan) = compiled.plan {
            let base = AbsPath::parse(base.as_os_str().as_encoded_bytes()).unwrap();
            return Some(Bound { text, policy, plan, gaps: lowered.gaps, base });
        }
        // Each looser gap is accepted above its statement; from below, so that lines keep their numbers.
        let mut above = Vec::new();
        for gap in errors(&compiled.diagnostics) {
            let span = gap.span().filter(|span| span.source == id)?;
            above.push((sources.location(span).line as usize - 1, gap.code.name));
        }
        above.sort_unstable();
        above.dedup();
        for (line, code) in above.into_iter().rev() {
            lines.insert(line, format!("# lint: allow({code}) it is what is tried"));
        }
    }
    panic!("gaps that cannot be accepted:\n{}", lines.join("\n"));
}

fn errors(said: &[Diagnostic]) -> Vec<&Diagnostic> {
    said.iter().filter(|said| said.level == Level::Error).collect()
}

pub fn user(id: Option<u32>, performs: bool) -> Needs {
    let (uid, gid) = (id.unwrap_or(0), id.unwrap_or(0));
    Needs {
        nest: false,
        errors_alone: false,
        performs: if performs { Watch::Writes } else { Watch::Nothing },
        user: User { name: "someone".into(), uid, group: "someone".into(), gid },
    }
}

impl Bound {
    pub fn decider(&self) -> Decider<'_> {
        Decider::new(&self.policy)
    }

    /// Everything that speaks against an attempt, and by [`permits`] whether something does.
    pub fn reasons(&self, decider: &Decider<'_>, attempt: &Attempt) -> Vec<Reason> {
        let operation = tree::operation(&self.base, attempt);
        let mut reasons = Vec::new();
        let mut needs = |access: Access| {
            let verdict = decider.decide(&access);
            if !verdict.allowed {
                reasons.push(Reason { access, verdict });
            }
        };
        let mut moved = Vec::new();
        match &operation {
            Operation::Read(path) => needs(Access::Read(path.clone())),
            Operation::Execute(path) => {
                needs(Access::Read(path.clone()));
                needs(Access::Exec(path.clone()));
            }
            Operation::Change(path) | Operation::Symlink { new: path } => needs(Access::Write(path.clone())),
            Operation::Link { existing, new } => {
                needs(Access::Read(existing.clone()));
                moved.push((existing.clone(), new.clone()));
            }
            Operation::Rename { from, to, nodes } => moved.extend(pairs(from, to, nodes)),
            Operation::Exchange { one, nodes_of_one, other, nodes_of_other } => {
                moved.extend(pairs(one, other, nodes_of_one));
                moved.extend(pairs(other, one, nodes_of_other));
            }
        }
        for (old, new) in moved {
            needs(Access::Write(old.clone()));
            needs(Access::Write(new.clone()));
            for access in [Access::Read, Access::Exec] {
                if decider.decide(&access(new.clone())).allowed {
                    needs(access(old.clone()));
                }
            }
        }
        let permitted = permits(decider, &operation);
        assert_eq!(permitted.is_ok(), reasons.is_empty(), "{operation:?}: {permitted:?} {reasons:?}\n{}", self.text);
        reasons
    }

    /// The declared gap by which an attempt succeeds that the policy denies for this reason.
    pub fn looser(&self, decider: &Decider<'_>, attempt: &Attempt, reason: &Reason) -> Option<&'static str> {
        let (path, verb) = match &reason.access {
            Access::Read(path) => (path, Verb::Read),
            Access::Exec(path) => (path, Verb::Exec),
            Access::Write(path) => (path, Verb::Write),
            _ => return None,
        };
        let mut spans = self.spans(&reason.verdict, path, verb);
        spans.extend(self.below(decider, path, verb));
        let kind = self.kind(path);
        let is_directory = kind == Some(Kind::Directory);
        if matches!(kind, Some(Kind::Link(_))) {
            // That a link can be replaced is said once, of the rule that denies writing it.
            spans.extend(self.spans(&decider.decide(&Access::Write(path.clone())), path, Verb::Write));
        }
        let fits = |code: &str| match code {
            "later-names" => kind.is_none(),
            "directory-listing" => attempt.0 == "list" && is_directory,
            "directory-attributes" => matches!(attempt.0, "chmod" | "utimes" | "xattr") && is_directory,
            "replaceable-link" => matches!(kind, Some(Kind::Link(_))),
            _ => false,
        };
        self.gap(&spans, fits)
    }

    /// Why an attempt may fail that the policy permits: the declared gap, or what the book says of the error.
    pub fn stricter(&self, decider: &Decider<'_>, attempt: &Attempt, errno: Errno) -> Option<&'static str> {
        let (what, path, other) = attempt;
        let (path, other) = (self.at(path), self.at(other));
        let two = !attempt.2.is_empty();
        let places: Vec<&AbsPath> = [&path, &other].into_iter().take(if two { 2 } else { 1 }).collect();
        let holder = |path: &AbsPath| self.mount_of(&path.parent().unwrap());
        let moves = matches!(*what, "rename" | "replace" | "exchange");
        match errno {
            // What it holds would come under other rules.
            Errno::EXDEV
                if moves
                    && self.plan.syscalls.performed != Watch::Nothing
                    && places.iter().any(|place| self.kind(place) == Some(Kind::Directory)) =>
            {
                return Some("EXDEV");
            }
            Errno::EXDEV if moves && holder(&path) != holder(&other) => return Some("EXDEV"),
            Errno::EXDEV if *what == "link" && self.mount_of(&path) != holder(&other) => return Some("EXDEV"),
            Errno::EBUSY
                if (moves || matches!(*what, "unlink" | "rmdir"))
                    && places.iter().any(|place| self.is_mounted(place)) =>
            {
                return Some("EBUSY");
            }
            // The same for a directory in one that is read-only, which the kernel says first.
            Errno::EROFS if moves || *what == "rmdir" => {
                let is_mounted = |place: &&AbsPath| self.kind(place) == Some(Kind::Directory) && self.is_mounted(place);
                if places.iter().any(is_mounted) {
                    return Some("EROFS");
                }
            }
            _ => {}
        }
        for place in places {
            let kind = self.kind(place);
            let fits = |code: &str| match code {
                "not-granted" => kind.is_none(),
                "directory-alone" => kind == Some(Kind::Directory),
                "pinned-file" => {
                    matches!(kind, Some(Kind::File | Kind::Program)) && (moves || *what == "unlink" || *what == "link")
                }
                "replaceable-link" => matches!(kind, Some(Kind::Link(_))),
                _ => false,
            };
            for verb in [Verb::Read, Verb::Write, Verb::Exec] {
                let mut spans = self.spans(&decider.decide(&access(verb, place)), place, verb);
                spans.extend(self.below(decider, place, verb));
                if let Some(code) = self.gap(&spans, fits) {
                    return Some(code);
                }
            }
        }
        None
    }

    fn gap(&self, spans: &[Span], fits: impl Fn(&str) -> bool) -> Option<&'static str> {
        let by = |gap: &&Diagnostic| fits(gap.code.name) && gap.span().is_some_and(|span| spans.contains(&span));
        self.gaps.iter().find(by).map(|gap| gap.code.name)
    }

    /// The rules that made a verdict; where none did, those whose `except` took the path out.
    fn spans(&self, verdict: &Verdict, path: &AbsPath, verb: Verb) -> Vec<Span> {
        let mut spans: Vec<Span> = verdict.decisive.iter().map(|id| self.policy.rule(*id).span).collect();
        let takes_out = |rule: &&Rule| {
            let Subject::Paths(set) = &rule.subject else { return false };
            let by_allow = rule.effect == Effect::Allow;
            // What an `except` took out of an allow is denied by default; what it took out of a deny is allowed.
            let matters = if by_allow { verdict.why == Why::Default } else { verdict.allowed };
            matters && rule.verb == verb && set.exclude.iter().any(|pattern| pattern.contains(path))
        };
        spans.extend(self.policy.rules.iter().filter(takes_out).map(|rule| rule.span));
        spans
    }

    /// The rules about what is below a directory: a gap between the two may be the fault of either's.
    fn below(&self, decider: &Decider<'_>, path: &AbsPath, verb: Verb) -> Vec<Span> {
        if self.kind(path) != Some(Kind::Directory) {
            return Vec::new();
        }
        let child = path.join(UNNAMED);
        self.spans(&decider.decide(&access(verb, &child)), &child, verb)
    }

    fn at(&self, path: &str) -> AbsPath {
        path.split('/').filter(|name| !name.is_empty()).fold(self.base.clone(), |place, name| place.join(name))
    }

    fn kind(&self, path: &AbsPath) -> Option<Kind> {
        let names: Vec<_> =
            path.below(&self.base)?.iter().map(|name| String::from_utf8_lossy(name).into_owned()).collect();
        tree::kind(&names.join("/"))
    }

    /// The number of the mount that a path is on, by the plan.
    fn mount_of(&self, path: &AbsPath) -> Option<usize> {
        let mut places = self.plan.mounts.iter().map(place).enumerate().rev();
        places.find_map(|(at, place)| path.is_inside(&place?).then_some(at))
    }

    fn is_mounted(&self, path: &AbsPath) -> bool {
        self.plan.mounts.iter().any(|mount| place(mount).as_ref() == Some(path))
    }
}

fn access(verb: Verb, path: &AbsPath) -> Access {
    match verb {
        Verb::Write => Access::Write(path.clone()),
        Verb::Exec => Access::Exec(path.clone()),
        _ => Access::Read(path.clone()),
    }
}

fn pairs(from: &AbsPath, to: &AbsPath, nodes: &[Vec<FileName>]) -> Vec<(AbsPath, AbsPath)> {
    let below = nodes.iter().map(|node| (from.join_all(node), to.join_all(node)));
    std::iter::once((from.clone(), to.clone())).chain(below).collect()
}

/// Where something is mounted.
fn place(mount: &Mount) -> Option<AbsPath> {
    let path = match mount {
        Mount::Bind { path, .. }
        | Mount::EmptyDirectory { path, .. }
        | Mount::MaskFile { path, .. }
        | Mount::Private { path, .. } => &path[..],
        _ => return None,
    };
    AbsPath::parse(path).ok()
}
