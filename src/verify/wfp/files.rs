//! The access lists, read back and proved to hold the rules about files, but for the gaps that were declared.
//!
//! An entry of a node counts before one that is inherited, and of inherited ones the nearest, a denial before a permission
//! where both are as near. As a set: what is permitted somewhere, less what is denied and not permitted again nearer. That is
//! compared with the policy over all paths. What the machine's own lists say is no part of it.

use crate::analysis::permission::{self, Permission, Prepared};
use crate::analysis::{Answer, Budget, Kind, Member};
use crate::backend::PINNED_DIRECTORY;
use crate::backend::gap::{Direction, Gap, Operation};
use crate::ir::{Policy, Subject};
use crate::sets::glob::Glob;
use crate::sets::path::{AbsPath, PathSet, Pattern, Segment, Start};
use crate::verify::{Fault, STEPS, is_a_gap, regions_of, within_gaps, witness};
use crate::vocabulary::{Effect, Reach, Verb};
use serde_json::Value;
use std::collections::BTreeMap;
use std::ops::{Bound, Range};

type Read<T> = Result<T, Fault>;

// Bits of an access mask ([MS-DTYP] section 2.4.3, [MS-SMB2] section 2.2.13.1).
const READ: u32 = 0x1;
const CONTENT: u32 = 0x2 | 0x4;
const WRITE: u32 = 0x10 | 0x100;
const EXEC: u32 = 0x20;
const DELETE_CHILD: u32 = 0x40;
const DELETE: u32 = 0x1_0000;
const READ_CONTROL: u32 = 0x2_0000;
/// What would let the command change the lists themselves.
const TAKE: u32 = 0x4_0000 | 0x8_0000 | 0xf000_0000;

/// What each right needs too: to look at a node, and to wait for it. A denial of it would deny the others.
const SHARED: u32 = 0x80 | READ_CONTROL | 0x10_0000 | 0xf000_0000;

/// One entry for the account.
struct Ace {
    path: AbsPath,
    deny: bool,
    scope: Reach,
    mask: u32,
}

/// The entries, and the places where owners have no rights of their own.
struct Lists {
    aces: Vec<Ace>,
    /// Which of them are of a node.
    at: BTreeMap<AbsPath, Range<usize>>,
    owned: Vec<(AbsPath, Reach)>,
}

/// Proves that the access lists permit what the policy permits of reading, writing and running files, but for the gaps; that
/// each gap is one; and that nothing that may not be written can be moved out of its place or removed by right of its
/// directory.
///
/// # Errors
/// The first fault, with a witness.
pub fn prove_access_lists(policy: &Policy, gaps: &[Gap], text: &str) -> Result<(), Fault> {
    let lists = read(text)?;
    let permissions = [Verb::Read, Verb::Write, Verb::Exec].map(|verb| Permission::of(policy, verb));
    let permitted = permissions.each_ref().map(Prepared::new);
    for (operation, verb, bits) in [
        (Operation::Read, Verb::Read, READ),
        (Operation::Write, Verb::Write, WRITE),
        (Operation::Exec, Verb::Exec, EXEC),
    ] {
        let artefact = lists.permission(bits, policy.default_read.value == Effect::Allow && verb != Verb::Write);
        within_gaps(operation, of(&permitted, operation), &Prepared::new(&artefact), gaps, Some(&nowhere()))?;
    }
    lists.content(gaps, of(&permitted, Operation::Write))?;
    lists.held_in_place(gaps, of(&permitted, Operation::Write))?;
    lists.kept()?;
    for gap in gaps {
        is_a_gap(gap, |operation| of(&permitted, operation))?;
        of_its_rule(policy, gap)?;
    }
    Ok(())
}

/// What the policy permits of an operation, of what it permits to read, to write and to run.
fn of<'a, 'p>([read, write, exec]: &'a [Prepared<'p>; 3], operation: Operation) -> &'a Prepared<'p> {
    match operation {
        Operation::Read => read,
        Operation::Exec => exec,
        _ => write,
    }
}

/// A set of a gap.
type Said<'g> = (&'g Gap, &'g Subject);

/// The sets of the gaps about making and taking away names: of directories that stay where they are, and of all others.
fn about_names(gaps: &[Gap]) -> (Vec<Said<'_>>, Vec<Said<'_>>) {
    let all = gaps.iter().flat_map(|gap| regions_of(gap, Operation::Rename).map(move |set| (gap, set)));
    all.partition(|(gap, _)| gap.kind.code == &PINNED_DIRECTORY)
}

/// That a gap is no wider than what it is said of: the rule it points at, and what is below the places that the rule names.
fn of_its_rule(policy: &Policy, gap: &Gap) -> Read<()> {
    let span = gap.said.span();
    let mut places = Vec::new();
    for rule in policy.rules.iter().filter(|rule| Some(rule.span) == span) {
        if let Subject::Paths(set) = &rule.subject {
            places.extend(set.include.iter().map(|pattern| Pattern { reach: Reach::Tree, ..pattern.clone() }));
        }
    }
    let rule = Permission {
        grants: vec![Subject::Paths(PathSet { include: places, exclude: Vec::new() })],
        ..Permission::none(Kind::Paths)
    };
    let (rule, everything) = (Prepared::new(&rule), Permission::everything(Kind::Paths));
    let everything = Prepared::new(&everything);
    // What is said of names is looked at node by node.
    for (operation, region) in gap.region.iter().filter(|(operation, _)| *operation != Operation::Rename) {
        let wider = permission::excess(&everything, Some(&rule), Some(region), &[], &mut Budget::new(STEPS));
        if let Some(witness) = witness(*operation, wider)? {
            return Err(Fault::Gap { gap: gap.kind.code.name, operation: *operation, witness });
        }
    }
    Ok(())
}

/// What starts at no drive and no variable, which is nowhere on Windows.
fn nowhere() -> Subject {
    let any = Segment::Glob(Glob::any());
    let include = vec![
        Pattern { start: Start::Root, segments: Vec::new(), reach: Reach::Exact },
        Pattern { start: Start::Root, segments: vec![any], reach: Reach::Tree },
    ];
    Subject::Paths(PathSet { include, exclude: Vec::new() })
}

impl Lists {
    /// What is permitted of all of some bits. Where no entry speaks of them, `left` says what is so.
    fn permission(&self, bits: u32, left: bool) -> Permission {
        let set = |ace: &Ace| Subject::Paths(PathSet::from(Pattern::literal(&ace.path, ace.scope)));
        let allows: Vec<&Ace> = self.aces.iter().filter(|ace| !ace.deny && ace.mask & bits == bits).collect();
        let mut permission = Permission::none(Kind::Paths);
        permission.everything = left;
        permission.grants = allows.iter().map(|ace| set(ace)).collect();
        for deny in self.aces.iter().filter(|ace| ace.deny && ace.mask & bits != 0) {
            let nearer = |allow: &&&Ace| allow.path != deny.path && allow.path.is_inside(&deny.path);
            let lifted_by = allows.iter().filter(nearer).map(|ace| set(ace)).collect();
            permission.refusals.push(permission::Refused { set: set(deny), lifted_by });
        }
        permission
    }

    /// The nearest entry that speaks of a bit at a node itself, or below it; a denial before a permission.
    fn said(&self, path: &AbsPath, below: bool, bit: u32) -> Option<bool> {
        let applies = |ace: &&Ace| {
            ace.mask & bit != 0
                && match ace.scope {
                    Reach::Exact => ace.path == *path && !below,
                    Reach::Tree => true,
                    Reach::Below => ace.path != *path || below,
                }
        };
        let places: Vec<AbsPath> = path.ancestors().collect();
        let speaks = |place| self.aces[self.at.get(place)?.clone()].iter().filter(applies).map(|ace| !ace.deny).min();
        places.iter().rev().find_map(speaks)
    }

    fn may(&self, path: &AbsPath, below: bool, bits: u32) -> bool {
        (0..u32::BITS)
            .map(|bit| 1 << bit)
            .filter(|bit| bits & bit != 0)
            .all(|bit| self.said(path, below, bit) == Some(true))
    }

    fn paths(&self) -> Vec<&AbsPath> {
        self.at.iter().filter(|(_, aces)| !aces.is_empty()).map(|(path, _)| path).collect()
    }

    /// Content is written where attributes are; but of a directory the same bits mean making something in it, which is
    /// writing what is below.
    fn content(&self, gaps: &[Gap], permitted: &Prepared<'_>) -> Read<()> {
        let operation = Operation::Write;
        let (_, mut said) = about_names(gaps);
        let (content, write) = (self.permission(CONTENT, false), self.permission(WRITE, false));
        let paths = self.paths();
        let nodes = paths.iter().map(|path| Pattern::literal(path, Reach::Exact)).collect();
        let nodes = Subject::Paths(PathSet { include: nodes, exclude: Vec::new() });
        let (content, write) = (Prepared::new(&content), Prepared::new(&write));
        let excess = |more, less| permission::excess(more, Some(less), None, &[&nodes], &mut Budget::new(STEPS));
        if let Some(witness) = witness(operation, excess(&content, &write))? {
            return Err(Fault::Looser { operation, witness });
        }
        if let Some(witness) = witness(operation, excess(&write, &content))? {
            return Err(Fault::Stricter { operation, witness });
        }
        for path in paths {
            let (content, own, below) =
                (self.may(path, false, CONTENT), self.may(path, false, WRITE), self.may(path, true, WRITE));
            let inner = self.at.range((Bound::Excluded(path), Bound::Unbounded));
            let directory = inner.take_while(|(other, _)| other.is_inside(path)).any(|(_, aces)| !aces.is_empty());
            let known = directory || path.segments.is_empty();
            if content == below {
                continue;
            }
            let way = if content { Direction::Looser } else { Direction::Stricter };
            let inside = Subject::Paths(PathSet::from(Pattern::literal(path, Reach::Below)));
            let is_vague = !known && content == own;
            let declared = said.iter().position(|(gap, set)| gap.kind.direction == way && **set == inside);
            if let Some(index) = declared.filter(|_| is_vague) {
                said.remove(index);
                continue;
            }
            // By a rule that is held for what is there alone, the policy may want it so.
            let is_wanted =
                || permission::some_of(permitted, !content, &inside, &mut Budget::new(STEPS)) == Answer::None;
            if is_vague && is_wanted() {
                continue;
            }
            let witness = path.to_string();
            return Err(if content {
                Fault::Looser { operation, witness }
            } else {
                Fault::Stricter { operation, witness }
            });
        }
        match said.first() {
            Some((gap, _)) => Err(Fault::NoGap { gap: gap.kind.code.name }),
            None => Ok(()),
        }
    }

    /// A node that may not be written, and each directory on the way to it that could be, is neither moved nor removed; and
    /// of what the policy permits to write nothing else is held so but what a gap says.
    fn held_in_place(&self, gaps: &[Gap], permitted: &Prepared<'_>) -> Read<()> {
        let operation = Operation::Rename;
        let (delete, write) = (self.permission(DELETE, false), self.permission(WRITE, false));
        let (delete, write) = (Prepared::new(&delete), Prepared::new(&write));
        let more = permission::excess(&delete, Some(&write), None, &[], &mut Budget::new(STEPS));
        if let Some(witness) = witness(operation, more)? {
            return Err(Fault::Looser { operation, witness });
        }
        let (pinned, _) = about_names(gaps);
        for (gap, region) in &pinned {
            let free = permission::some_excess(&delete, None, region, &mut Budget::new(STEPS));
            if let Some(witness) = witness(operation, free)? {
                return Err(Fault::Gap { gap: gap.kind.code.name, operation, witness });
            }
        }
        let denied = self.paths().into_iter().filter(|path| !permitted.permits(&Member::Path((*path).clone())));
        let include = denied.map(|path| Pattern::literal(path, Reach::Exact)).collect();
        let denied = Subject::Paths(PathSet { include, exclude: Vec::new() });
        let stricter: Vec<&Subject> = pinned.into_iter().map(|(_, set)| set).chain([&denied]).collect();
        let less = permission::excess(&write, Some(&delete), None, &stricter, &mut Budget::new(STEPS));
        if let Some(witness) = witness(operation, less)? {
            return Err(Fault::Stricter { operation, witness });
        }
        for path in self.paths() {
            if self.may(path, false, WRITE) && self.may(path, true, WRITE) {
                continue;
            }
            for above in path.ancestors().filter(|above| above != path) {
                if !self.may(&above, false, WRITE) && !self.may(&above, true, WRITE) {
                    continue;
                }
                let witness = above.to_string();
                if self.said(&above, false, DELETE_CHILD) != Some(false) {
                    return Err(Fault::Looser { operation, witness });
                }
                if self.said(&above, false, DELETE) == Some(true) {
                    return Err(Fault::Looser { operation, witness });
                }
            }
        }
        Ok(())
    }

    /// Nobody in the sandbox can rewrite a list: no entry gives that right, and owners have none of their own.
    fn kept(&self) -> Read<()> {
        if let Some(ace) = self.aces.iter().find(|ace| ace.deny && ace.mask & SHARED != 0) {
            return Err(Fault::Unread(format!("a denial at `{}` takes what other rights need", ace.path)));
        }
        for ace in self.aces.iter().filter(|ace| !ace.deny) {
            if ace.mask & (TAKE | DELETE_CHILD) != 0 {
                return Err(Fault::Unread(format!("an entry at `{}` gives too much", ace.path)));
            }
            let makes = ace.mask & (CONTENT | WRITE) != 0;
            let owned = |(place, scope): &(AbsPath, Reach)| match scope {
                Reach::Tree => ace.path.is_inside(place),
                scope => ace.path == *place && ace.scope == *scope,
            };
            if makes && !self.owned.iter().any(owned) {
                return Err(Fault::Lacks(format!("an entry for owners at `{}`", ace.path)));
            }
        }
        Ok(())
    }
}

fn read(text: &str) -> Read<Lists> {
    let whole: Value = serde_json::from_str(text).map_err(|error| unread(&error))?;
    if whole["version"] != 1 {
        return Err(unread(&"the version is not 1"));
    }
    let entries = whole["entries"].as_array().ok_or_else(|| unread(&"there is no list of entries"))?;
    let mut lists = Lists { aces: Vec::new(), at: BTreeMap::new(), owned: Vec::new() };
    for entry in entries {
        let named = entry["path"].as_str().and_then(path).ok_or_else(|| unread(&"an entry has no path"))?;
        let first = lists.aces.len();
        let aces = entry["aces"].as_array().ok_or_else(|| unread(&format!("`{named}` has no entries")))?;
        let mut allowed = false;
        for text in aces {
            let text = text["sddl"].as_str().ok_or_else(|| unread(&format!("`{named}` has an odd entry")))?;
            let (deny, scope, mask, trustee) =
                ace(text).ok_or_else(|| unread(&format!("`{text}` is not understood")))?;
            if deny && allowed {
                return Err(unread(&format!("the entries of `{named}` are not in canonical order")));
            }
            allowed |= !deny;
            match trustee {
                "$ACCOUNT" => lists.aces.push(Ace { path: named.clone(), deny, scope, mask }),
                "OW" if !deny && mask == READ_CONTROL => lists.owned.push((named.clone(), scope)),
                _ => return Err(unread(&format!("`{text}` is for somebody else"))),
            }
        }
        if lists.at.insert(named.clone(), first..lists.aces.len()).is_some() {
            return Err(unread(&format!("`{named}` has two entries")));
        }
    }
    Ok(lists)
}

/// `$NAME`, `$NAME/…` or `X:/…`.
fn path(text: &str) -> Option<AbsPath> {
    let Some(rest) = text.strip_prefix('$') else {
        let path = AbsPath::parse(text).ok()?;
        return matches!(path.start, Start::Drive(_)).then_some(path);
    };
    let (name, below) = rest.split_once('/').map_or((rest, None), |(name, below)| (name, Some(below)));
    let start = AbsPath::variable(name);
    let Some(below) = below else { return Some(start) };
    let below = AbsPath::parse(format!("/{below}")).ok()?;
    Some(start.join_all(&below.segments))
}

/// `(A;OICI;0x12;;;TRUSTEE)`, see [MS-DTYP] section 2.5.1.1.
fn ace(text: &str) -> Option<(bool, Reach, u32, &str)> {
    let fields: Vec<&str> = text.strip_prefix('(')?.strip_suffix(')')?.split(';').collect();
    let [kind, flags, mask, "", "", trustee] = fields[..] else { return None };
    let deny = match kind {
        "A" => false,
        "D" => true,
        _ => return None,
    };
    let scope = match flags {
        "" => Reach::Exact,
        "OICI" => Reach::Tree,
        "OICIIO" => Reach::Below,
        _ => return None,
    };
    Some((deny, scope, u32::from_str_radix(mask.strip_prefix("0x")?, 16).ok()?, trustee))
}

fn unread(why: &dyn std::fmt::Display) -> Fault {
    Fault::Unread(why.to_string())
}
