//! A profile for `sandbox-exec`, read back: which sets each of its operations is allowed on.
//!
//! Only such profiles are read on which every account of the system's precedence agrees: one rule that denies all, then rules
//! that allow, no operation both by a name of its own and by a wildcard, and no other rule that denies but by the whole
//! operation. Whatever else a profile may hold is refused.

mod formula;
mod regex;
mod scheme;

use super::{Fault, equal, is_a_gap};
use crate::analysis::permission::{self, Permission, Prepared};
use crate::analysis::{Answer, Budget, Kind};
use crate::backend::gap::{Gap, Operation};
use crate::ir::{Policy, Subject};
use crate::sets::name;
use crate::sets::path::{AbsPath, PathSet, Pattern, Start};
use crate::sets::peer::{Endpoint, PeerSet};
use crate::vocabulary::{Effect, Reach, Verb};
use formula::{Formula, Read};
use scheme::Form;
use std::collections::{BTreeMap, BTreeSet};
use std::panic::resume_unwind;
use std::thread;

/// The operations of the system by which each of ours is decided; all of a group are allowed alike.
const GROUPS: [(Operation, &[&str]); 4] = [
    (Operation::Read, &["file-read-data", "file-read-xattr"]),
    (
        Operation::Write,
        &[
            "file-link",
            "file-write-acl",
            "file-write-data",
            "file-write-flags",
            "file-write-mode",
            "file-write-owner",
            "file-write-setugid",
            "file-write-times",
            "file-write-xattr",
        ],
    ),
    (Operation::Rename, &["file-write-create", "file-write-unlink"]),
    (Operation::Exec, &["process-exec*", "file-map-executable"]),
];

/// What no rule of a policy speaks of, and each profile may allow: the operation, and the filters that it may have.
const BESIDE: [(&str, &[&str]); 7] = [
    ("process-fork", &[]),
    ("signal", &["target"]),
    ("process-info*", &["target"]),
    ("sysctl-read", &["sysctl-name", "sysctl-name-prefix"]),
    ("ipc-posix-sem", &[]),
    ("ipc-posix-shm-read-data", &["ipc-posix-name"]),
    ("pseudo-tty", &[]),
];

/// What `default` does not cover.
const UNCOVERED: [&str; 3] = ["iokit-get-properties", "nvram*", "process-info*"];

/// Proves that a profile is the policy but for the gaps; links that every macOS has are followed in the policy already.
///
/// # Errors
/// The first difference.
pub fn prove(policy: &Policy, gaps: &[Gap], text: &str) -> Result<(), Fault> {
    let verbs = [Verb::Read, Verb::Write, Verb::Exec, Verb::Socket, Verb::Mach];
    let (profile, all) = thread::scope(|scope| {
        let profile = scope.spawn(|| Profile::read(text));
        let all = verbs.map(|verb| Permission::of(policy, verb));
        (joined(profile), all)
    });
    let profile = profile.map_err(Fault::Unread)?;
    for operation in UNCOVERED {
        if !profile.denied.contains(operation) {
            return Err(Fault::Lacks(format!("a rule that denies `{operation}`")));
        }
    }
    let verb = |operation| match operation {
        Operation::Write | Operation::Rename => Verb::Write,
        Operation::Exec => Verb::Exec,
        Operation::Socket => Verb::Socket,
        Operation::Mach => Verb::Mach,
        _ => Verb::Read,
    };
    let ready: Vec<Prepared<'_>> = all.iter().map(Prepared::new).collect();
    let permitted = |operation| &ready[verbs.iter().position(|of| *of == verb(operation)).unwrap_or_default()];
    let group = |(operation, names): (Operation, &[&str])| {
        let rules: Vec<_> = names.iter().map(|name| profile.allowed.get(*name).cloned()).collect();
        if rules.windows(2).any(|pair| pair[0] != pair[1]) {
            return Err(Fault::Lacks(format!("a part of {operation}: its operations are allowed apart")));
        }
        let said = said(rules[0].as_deref(), formula::of_paths, Kind::Paths)?;
        equal(operation, permitted(operation), &Prepared::new(&said.permission), gaps)?;
        match operation {
            Operation::Read => looking(&profile, &said.permission)?,
            Operation::Rename => pins(policy, permitted(operation), &said)?,
            _ => {}
        }
        Ok(())
    };
    // Beside each other: this is what a compile for macOS takes longest for.
    let group = &group;
    thread::scope(|scope| {
        let groups = GROUPS.map(|one| scope.spawn(move || group(one)));
        groups.into_iter().try_for_each(joined)
    })?;
    let outbound = profile.allowed.get("network-outbound").cloned().unwrap_or_default();
    let (proxy, sockets): (Vec<_>, Vec<_>) =
        outbound.into_iter().partition(|filter| matches!(filter, Some(Formula::Other(_))));
    let sockets = said(Some(&sockets), formula::of_paths, Kind::Paths)?;
    equal(Operation::Socket, permitted(Operation::Socket), &Prepared::new(&sockets.permission), gaps)?;
    let mach = said(profile.allowed.get("mach-lookup").map(|rules| &rules[..]), formula::of_names, Kind::Names)?;
    equal(Operation::Mach, permitted(Operation::Mach), &Prepared::new(&mach.permission), gaps)?;
    network(policy, &proxy)?;
    gaps.iter().try_for_each(|gap| is_a_gap(gap, permitted))
}

/// What a thread found; its panic is the caller's.
fn joined<T>(thread: thread::ScopedJoinHandle<'_, T>) -> T {
    thread.join().unwrap_or_else(|panic| resume_unwind(panic))
}

/// What the rules of an operation allow together.
fn said(
    rules: Option<&[Option<Formula>]>,
    of: impl Fn(&Formula) -> Result<Read, String>,
    kind: Kind,
) -> Result<Read, Fault> {
    let none = || Read { permission: Permission::none(kind), above: BTreeSet::new() };
    match rules {
        None | Some([]) => Ok(none()),
        Some([Some(formula)]) => of(formula).map_err(Fault::Unread),
        Some(rules) if rules.iter().any(Option::is_none) => {
            Ok(Read { permission: Permission::everything(kind), above: BTreeSet::new() })
        }
        Some(rules) => of(&Formula::Any(rules.iter().flatten().cloned().collect())).map_err(Fault::Unread),
    }
}

/// Nothing above what a rule denies to read or write may be renamed: here for what is named without a glob, by itself, as what
/// the gaps say comes from the same place as the profile.
fn pins(policy: &Policy, permitted: &Prepared<'_>, said: &Read) -> Result<(), Fault> {
    let denies = |verb| matches!(verb, Verb::Read | Verb::Write);
    let denials = policy.rules.iter().filter(|rule| rule.effect != Effect::Allow && denies(rule.verb));
    let sets = denials.filter_map(|rule| match &rule.subject {
        Subject::Paths(set) => Some(set),
        _ => None,
    });
    let named = sets.flat_map(|set| &set.include).filter_map(Pattern::as_literal);
    let above = |path: AbsPath| path.ancestors().take(path.segments.len()).collect::<Vec<_>>();
    let above: BTreeSet<AbsPath> = named.flat_map(above).collect();
    let node = |path: &AbsPath| Pattern::literal(path, Reach::Exact);
    // All of them at once: the profile is gone through a single time.
    let include: Vec<_> = above.iter().filter(|path| **path != AbsPath::root()).map(node).collect();
    let all = Subject::Paths(PathSet { include, exclude: Vec::new() });
    let excess = |permission: &Prepared<'_>, within: &Subject| {
        permission::excess(permission, None, Some(within), &[], &mut Budget::new(super::STEPS))
    };
    let operation = Operation::Rename;
    match excess(&Prepared::new(&said.permission), &all) {
        Answer::None => {}
        Answer::Unknown => return Err(Fault::Unknown { operation }),
        Answer::Some(found) => return Err(Fault::Looser { operation, witness: super::shown(&found) }),
    }
    for path in &above {
        let Start::Variable(name) = &path.start else { continue };
        let may = || excess(permitted, &Subject::Paths(PathSet::from(node(path)))) != Answer::None;
        if !said.above.contains(&**name) && may() {
            return Err(Fault::Lacks(format!("a pin for what is above `${name}`")));
        }
    }
    Ok(())
}

/// What may be read can be looked at.
fn looking(profile: &Profile, read: &Permission) -> Result<(), Fault> {
    let rules = profile.allowed.get("file-read-metadata").map(|rules| &rules[..]);
    // What is above a variable only adds to it.
    let known: Option<Vec<_>> = rules.map(|rules| {
        let plain = |formula: &Formula| match formula {
            Formula::Any(parts) => {
                Formula::Any(parts.iter().filter(|part| !matches!(part, Formula::Above(_))).cloned().collect())
            }
            other => other.clone(),
        };
        rules.iter().map(|rule| rule.as_ref().map(plain)).collect()
    });
    let metadata = said(known.as_deref(), formula::of_paths, Kind::Paths)?;
    let (read, metadata) = (Prepared::new(read), Prepared::new(&metadata.permission));
    match permission::excess(&read, Some(&metadata), None, &[], &mut Budget::new(super::STEPS)) {
        Answer::None => Ok(()),
        Answer::Unknown => Err(Fault::Unknown { operation: Operation::Read }),
        Answer::Some(found) => Err(Fault::Lacks(format!("the right to look at {found:?}"))),
    }
}

/// The proxy and nothing else, where something may be connected to.
fn network(policy: &Policy, rules: &[Option<Formula>]) -> Result<(), Fault> {
    let connects = policy.rules.iter().any(|rule| {
        rule.verb == Verb::Connect
            && rule.effect == Effect::Allow
            && match &rule.subject {
                Subject::Peers(PeerSet { endpoint: Endpoint::Hosts(hosts), .. }) => !hosts.include.is_empty(),
                _ => true,
            }
    });
    let proxy = Formula::Other("(remote tcp localhost:$proxy.port)".to_owned());
    match rules {
        [] if !connects => Ok(()),
        [] => Err(Fault::Lacks("a rule for the proxy".to_owned())),
        [Some(rule)] if connects && *rule == proxy => Ok(()),
        _ => Err(Fault::Looser { operation: Operation::Connect, witness: format!("{rules:?}") }),
    }
}

/// The rules of a profile.
#[derive(Debug, Default)]
struct Profile {
    /// Each operation's rules, in order; `None` for one without a filter.
    allowed: BTreeMap<String, Vec<Option<Formula>>>,
    denied: BTreeSet<String>,
}

/// What an expression comes to.
enum Value {
    Text(Vec<Part>),
    Filter(Formula),
}

/// A piece of a text.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Part {
    Bytes(Vec<u8>),
    Parameter(String),
}

impl Profile {
    fn read(text: &str) -> Result<Self, String> {
        let forms = scheme::forms(text)?;
        let mut forms = forms.iter();
        if forms.next() != scheme::forms("(version 1)")?.first()
            || forms.next() != scheme::forms("(deny default (with message (param \"log.tag\")))")?.first()
        {
            return Err("it does not begin by denying everything".to_owned());
        }
        let mut profile = Self::default();
        let mut defined: BTreeMap<String, Formula> = BTreeMap::new();
        for form in forms {
            let Form::List(parts) = form else { return Err("a form that is no rule".to_owned()) };
            match &parts[..] {
                [Form::Symbol(word), Form::Symbol(name), value] if word == "define" => {
                    let formula = filter(value, &defined)?;
                    if defined.insert(name.clone(), formula).is_some() {
                        return Err(format!("`{name}` is defined twice"));
                    }
                }
                [Form::Symbol(word), Form::Symbol(_)] if word == "deny" && !profile.allowed.is_empty() => {
                    return Err("it denies after it has allowed".to_owned());
                }
                [Form::Symbol(word), Form::Symbol(operation)] if word == "deny" => {
                    profile.denied.insert(operation.clone());
                }
                [Form::Symbol(word), rest @ ..] if word == "allow" => profile.allow(rest, &defined)?,
                _ => return Err(format!("a form that is no rule: {form:?}")),
            }
        }
        profile.consistent()?;
        Ok(profile)
    }

    fn allow(&mut self, parts: &[Form], defined: &BTreeMap<String, Formula>) -> Result<(), String> {
        let known = |name: &str| {
            GROUPS.iter().any(|(_, names)| names.contains(&name))
                || BESIDE.iter().any(|(own, _)| *own == name)
                || ["file-read-metadata", "network-outbound", "mach-lookup"].contains(&name)
        };
        let names: Vec<&str> = parts
            .iter()
            .map_while(|part| match part {
                Form::Symbol(name) if !defined.contains_key(name) => Some(&name[..]),
                _ => None,
            })
            .collect();
        let filters = &parts[names.len()..];
        let formulas = filters.iter().map(|form| filter(form, defined)).collect::<Result<Vec<_>, _>>()?;
        // Several filters are alternatives.
        let formula = match formulas.len() {
            0 => None,
            1 => formulas.into_iter().next(),
            _ => Some(Formula::Any(formulas.into())),
        };
        if names.is_empty() {
            return Err("a rule without an operation".to_owned());
        }
        for name in names {
            if !known(name) {
                return Err(format!("it allows `{name}`"));
            }
            self.allowed.entry(name.to_owned()).or_default().push(formula.clone());
        }
        Ok(())
    }

    /// What is beside the policy is what it may be; what is denied is denied as a whole, and first.
    fn consistent(&self) -> Result<(), String> {
        for (operation, words) in BESIDE {
            for rule in self.allowed.get(operation).into_iter().flatten() {
                let fits = match rule {
                    None => words.is_empty(),
                    Some(Formula::Any(parts)) => parts.iter().all(|part| begins(part, words)),
                    Some(one) => begins(one, words),
                };
                if !fits {
                    return Err(format!("it allows too much of `{operation}`"));
                }
            }
        }
        match self.denied.iter().find(|name| !UNCOVERED.contains(&&name[..])) {
            Some(name) => Err(format!("it denies `{name}` by itself")),
            None => Ok(()),
        }
    }
}

fn begins(formula: &Formula, words: &[&str]) -> bool {
    let Formula::Other(text) = formula else { return false };
    let word = text.trim_start_matches('(').split([' ', ')']).next().unwrap_or_default();
    // Nobody's processes but those of the sandbox.
    words.contains(&word) && (word != "target" || text == "(target same-sandbox)")
}

fn filter(form: &Form, defined: &BTreeMap<String, Formula>) -> Result<Formula, String> {
    match value(form, defined)? {
        Value::Filter(formula) => Ok(formula),
        Value::Text(_) => Err("a text where a filter should be".to_owned()),
    }
}

fn value(form: &Form, defined: &BTreeMap<String, Formula>) -> Result<Value, String> {
    let parts = match form {
        Form::Text(bytes) => return Ok(Value::Text(vec![Part::Bytes(bytes.clone())])),
        Form::Symbol(name) => {
            let formula = defined.get(name).ok_or_else(|| format!("`{name}` is not defined"))?;
            return Ok(Value::Filter(formula.clone()));
        }
        Form::List(parts) => parts,
    };
    let Some((Form::Symbol(word), rest)) = parts.split_first() else {
        return Err("a list that begins with no word".to_owned());
    };
    let filters = || rest.iter().map(|form| filter(form, defined)).collect::<Result<Vec<_>, _>>();
    let text = || match rest {
        [one] => match value(one, defined)? {
            Value::Text(parts) => Ok(parts),
            Value::Filter(_) => Err("a filter where a text should be".to_owned()),
        },
        _ => Err(format!("`{word}` takes one text")),
    };
    Ok(match &word[..] {
        "param" => match rest {
            [Form::Text(name)] => Value::Text(vec![Part::Parameter(String::from_utf8_lossy(name).into_owned())]),
            _ => return Err("`param` takes one name".to_owned()),
        },
        "string-append" => {
            let mut all = Vec::new();
            for form in rest {
                match value(form, defined)? {
                    Value::Text(parts) => all.extend(parts),
                    Value::Filter(_) => return Err("a filter where a text should be".to_owned()),
                }
            }
            Value::Text(all)
        }
        "require-all" => Value::Filter(Formula::All(filters()?.into())),
        "require-any" => Value::Filter(Formula::Any(filters()?.into())),
        "require-not" => match filters()?.pop().filter(|_| rest.len() == 1) {
            Some(one) => Value::Filter(Formula::Not(one.into())),
            None => return Err("`require-not` takes one filter".to_owned()),
        },
        "literal" => Value::Filter(Formula::Path(place(text()?, Reach::Exact)?)),
        "subpath" => Value::Filter(Formula::Path(place(text()?, Reach::Tree)?)),
        "regex" => Value::Filter(regular(&text()?)?),
        "global-name" => Value::Filter(Formula::Name(name::Pattern::Literal(plain(&text()?)?))),
        "global-name-regex" => {
            let pieces = regex::name(plain(&text()?)?.as_bytes())?;
            Value::Filter(Formula::Name(name::Pattern::Glob(crate::sets::glob::Glob::from(pieces))))
        }
        _ => Value::Filter(Formula::Other(written(form, defined)?)),
    })
}

/// A filter that is no set, with its texts put together.
fn written(form: &Form, defined: &BTreeMap<String, Formula>) -> Result<String, String> {
    let Form::List(parts) = form else { return Err("a filter that is no list".to_owned()) };
    let mut words = Vec::new();
    for part in parts {
        words.push(match part {
            Form::Symbol(name) => name.clone(),
            other => match value(other, defined)? {
                // As a prefix it would be one of every name.
                Value::Text(parts)
                    if parts.iter().all(|part| matches!(part, Part::Bytes(bytes) if bytes.is_empty())) =>
                {
                    return Err("an empty text in a filter".to_owned());
                }
                Value::Text(parts) => parts
                    .iter()
                    .map(|part| match part {
                        Part::Bytes(bytes) => String::from_utf8_lossy(bytes).into_owned(),
                        Part::Parameter(name) => format!("${name}"),
                    })
                    .collect(),
                Value::Filter(_) => return Err("a filter inside another".to_owned()),
            },
        });
    }
    Ok(format!("({})", words.join(" ")))
}

fn plain(parts: &[Part]) -> Result<String, String> {
    match parts {
        [Part::Bytes(bytes)] => String::from_utf8(bytes.clone()).map_err(|_| "a name that is not UTF-8".to_owned()),
        _ => Err("a name with a parameter in it".to_owned()),
    }
}

fn place(mut parts: Vec<Part>, reach: Reach) -> Result<Pattern, String> {
    let start = match parts.first() {
        Some(Part::Parameter(name)) if !name.contains(".regex") => {
            let start = Start::Variable(name.as_str().into());
            parts.remove(0);
            start
        }
        _ => Start::Root,
    };
    let rest = match &parts[..] {
        [] if start != Start::Root => Vec::new(),
        [Part::Bytes(bytes)] => bytes.clone(),
        _ => return Err("a path of other parts than a parameter and a text".to_owned()),
    };
    let path = match (&start, rest.is_empty()) {
        (Start::Variable(_), true) => AbsPath::root(),
        _ => AbsPath::parse(&rest).map_err(|error| error.to_string())?,
    };
    Ok(Pattern { start, ..Pattern::literal(&path, reach) })
}

fn regular(parts: &[Part]) -> Result<Formula, String> {
    match parts {
        [Part::Parameter(name)] => match name.strip_suffix(".ancestors") {
            Some(name) => Ok(Formula::Above(name.to_owned())),
            None => Err(format!("an expression that is the parameter `{name}`")),
        },
        [Part::Bytes(text)] => match text.strip_prefix(b"^") {
            Some(text) => Ok(Formula::Path(regex::pattern(Start::Root, text)?)),
            None => Err("an expression that is not anchored".to_owned()),
        },
        [Part::Bytes(anchor), Part::Parameter(name), Part::Bytes(text)] if anchor == b"^" => {
            let name = name.strip_suffix(".regex").ok_or("a parameter that is no expression")?;
            Ok(Formula::Path(regex::pattern(Start::Variable(name.into()), text)?))
        }
        _ => Err("an expression of other parts than a parameter and a text".to_owned()),
    }
}

#[cfg(test)]
mod tests;
