//! The tree that generated policies are about, and what is done to it.

use super::chance::Chance;
use crate::sandbox::give;
use sandbox_runtime::ir::operation::Operation;
use sandbox_runtime::sets::path::{AbsPath, FileName};
use std::fs;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::Path;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    Directory,
    File,
    /// A copy of true(1).
    Program,
    Link(&'static str),
}

/// Parents first, relative to the tree's own directory.
pub const NODES: [(&str, Kind); 29] = [
    ("w", Kind::Directory),
    ("w/f", Kind::File),
    ("w/l", Kind::Link("a/f")),
    ("w/a", Kind::Directory),
    ("w/a/f", Kind::File),
    ("w/a/p", Kind::Program),
    ("w/a/e", Kind::Directory),
    ("w/a/d", Kind::Directory),
    ("w/a/d/f", Kind::File),
    ("w/a/d/k.pem", Kind::File),
    ("w/a/d/x", Kind::Directory),
    ("w/a/d/x/f", Kind::File),
    ("w/b", Kind::Directory),
    ("w/b/f", Kind::File),
    ("w/b/k.pem", Kind::File),
    ("w/b/p", Kind::Program),
    ("w/b/e", Kind::Directory),
    ("w/b/l", Kind::Link("../a/d")),
    ("w/.git", Kind::Directory),
    ("w/.git/config", Kind::File),
    ("w/.git/hooks", Kind::Directory),
    ("w/.git/hooks/p", Kind::Program),
    ("w/h", Kind::Directory),
    ("w/h/hooks", Kind::Directory),
    ("w/h/hooks/f", Kind::File),
    ("o", Kind::Directory),
    ("o/f", Kind::File),
    ("o/d", Kind::Directory),
    ("o/d/f", Kind::File),
];

/// Names that are free in every directory, or in most.
const NEW: [&str; 5] = ["n", "n.pem", "hooks", "x", "p"];

/// One thing to try: what, where, and the other place.
pub type Attempt = (&'static str, String, String);

/// Every kind of attempt.
pub const KINDS: [&str; 20] = [
    "read", "list", "exec", "map", "create", "modify", "truncate", "chmod", "utimes", "xattr", "unlink", "rmdir",
    "mkdir", "symlink", "regular", "fifo", "link", "rename", "replace", "exchange",
];

pub fn kind(path: &str) -> Option<Kind> {
    NODES.iter().find(|(name, _)| *name == path).map(|(_, kind)| *kind)
}

fn is_empty(directory: &str) -> bool {
    !NODES.iter().any(|(name, _)| name.strip_prefix(directory).is_some_and(|rest| rest.starts_with('/')))
}

fn nested(one: &str, other: &str) -> bool {
    let inside = |a: &str, b: &str| a.strip_prefix(b).is_some_and(|rest| rest.is_empty() || rest.starts_with('/'));
    inside(one, other) || inside(other, one)
}

/// Builds the tree, anew, for a user.
pub fn build(base: &Path, user: Option<u32>) {
    if base.exists() {
        fs::remove_dir_all(base).unwrap();
    }
    fs::create_dir(base).unwrap();
    give(base, user);
    for (name, kind) in NODES {
        let path = base.join(name);
        match kind {
            Kind::Directory => fs::create_dir(&path).unwrap(),
            // What it holds is what it is called, so that one file is not taken for another.
            Kind::File => fs::write(&path, name).unwrap(),
            Kind::Program => {
                fs::copy("/bin/true", &path).unwrap();
                fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).unwrap();
            }
            Kind::Link(to) => symlink(to, &path).unwrap(),
        }
        give(&path, user);
    }
}

/// Everything that is done to single nodes and new names, and a number of pairs; times last, since they are looked at
/// from outside afterwards.
pub fn attempts(chance: &mut Chance, attributes: bool) -> Vec<Attempt> {
    let mut list = Vec::new();
    let mut new = Vec::new();
    let mut one = |what: &'static str, path: &str| list.push((what, path.to_owned(), String::new()));
    for (path, kind) in NODES {
        let whats: &[&'static str] = match kind {
            Kind::Directory if is_empty(path) => &["list", "chmod", "xattr", "rmdir"],
            Kind::Directory => &["list", "chmod", "xattr"],
            Kind::File => &["read", "map", "modify", "truncate", "chmod", "xattr", "unlink"],
            Kind::Program => &["read", "map", "exec", "modify", "truncate", "chmod", "xattr", "unlink"],
            Kind::Link(_) => &["unlink"],
        };
        for what in whats.iter().filter(|what| attributes || **what != "xattr") {
            one(what, path);
        }
        if kind == Kind::Directory {
            let free: Vec<_> = NEW.iter().map(|name| format!("{path}/{name}")).collect();
            new.extend(free.into_iter().filter(|path| self::kind(path).is_none()));
        }
    }
    for _ in 0..30 {
        let path = chance.pick(&new).clone();
        for what in ["create", "mkdir", "symlink", "regular", "fifo"] {
            one(what, &path);
        }
    }
    for _ in 0..160 {
        let (from, its) = *chance.pick(&NODES);
        let (other, others) = *chance.pick(&NODES);
        let place = chance.pick(&new).clone();
        let is_file = |kind| matches!(kind, Kind::File | Kind::Program);
        let pair = |what, to: &str| (what, from.to_owned(), to.to_owned());
        let fits = if is_file(its) { is_file(others) } else { its == others && is_empty(other) };
        match chance.below(4) {
            0 if is_file(its) => list.push(pair("link", &place)),
            1 if !nested(from, &place) => list.push(pair("rename", &place)),
            2 if !nested(from, other) && fits => list.push(pair("replace", other)),
            3 if !nested(from, other) => list.push(pair("exchange", other)),
            _ => {}
        }
    }
    chance.shuffle(&mut list);
    list.extend(
        NODES
            .iter()
            .filter(|(_, kind)| !matches!(kind, Kind::Link(_)))
            .map(|(path, _)| ("utimes", (*path).to_owned(), String::new())),
    );
    list
}

/// What an attempt is to the policy.
pub fn operation(base: &AbsPath, (what, path, other): &Attempt) -> Operation {
    let at = |path: &str| path.split('/').fold(base.clone(), |place, name| place.join(name));
    let below = |path: &str| {
        let within = NODES.iter().filter_map(|(name, _)| name.strip_prefix(path)?.strip_prefix('/'));
        within.map(|rest| rest.split('/').map(FileName::from).collect()).collect()
    };
    let place = at(path);
    match *what {
        "read" | "list" => Operation::Read(place),
        "exec" | "map" => Operation::Execute(place),
        "symlink" => Operation::Symlink { new: place },
        "link" => Operation::Link { existing: place, new: at(other) },
        "rename" | "replace" => Operation::Rename { from: place, to: at(other), nodes: below(path) },
        "exchange" => Operation::Exchange {
            one: place,
            nodes_of_one: below(path),
            other: at(other),
            nodes_of_other: below(other),
        },
        _ => Operation::Change(place),
    }
}
