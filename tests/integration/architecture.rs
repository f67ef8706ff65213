//! The import directions, the homes of third-party packages and the places of `cfg(target_os)`, as the book's architecture
//! chapter states them.
//!
//! Reads resolved paths out of the sources' tokens (`crate::…`, `super::…`, in `use` trees and in code); it does not
//! expand macros.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

/// What each room may import, itself aside.
const MAY_IMPORT: &[(&str, &[&str])] = &[
    ("source", &[]),
    ("vocabulary", &[]),
    ("diagnostic", &["source"]),
    ("report", &["source", "diagnostic", "fix"]),
    ("compat", &["source", "diagnostic", "sets", "ir", "vocabulary"]),
    ("syntax", &["source", "diagnostic", "vocabulary"]),
    ("fix", &["source", "diagnostic", "syntax"]),
    ("sets", &["vocabulary"]),
    ("ir", &["source", "sets", "vocabulary"]),
    ("suite", &["source", "ir", "vocabulary"]),
    ("host", &["ir", "sets"]),
    ("resolve", &["source", "diagnostic", "syntax", "sets", "ir", "vocabulary"]),
    ("bind", &["source", "diagnostic", "sets", "ir", "host", "vocabulary"]),
    ("analysis", &["sets", "ir", "vocabulary"]),
    ("lint", &["source", "diagnostic", "sets", "ir", "analysis", "vocabulary"]),
    ("backend", &["source", "diagnostic", "sets", "ir", "analysis", "vocabulary"]),
    ("verify", &["diagnostic", "sets", "ir", "analysis", "backend", "vocabulary"]),
    ("compile", &["source", "diagnostic", "resolve", "sets", "ir", "lint", "backend", "verify", "vocabulary"]),
    (
        "check",
        &["source", "diagnostic", "resolve", "bind", "host", "sets", "ir", "lint", "backend", "compile", "vocabulary"],
    ),
    ("lsp", &["source", "diagnostic", "syntax", "fix", "resolve", "check", "analysis", "lint", "ir", "vocabulary"]),
    ("event", &["sets", "ir", "vocabulary"]),
    ("draft", &["source", "syntax", "sets", "ir", "vocabulary"]),
    ("proxy", &["sets", "ir", "event", "vocabulary"]),
    ("exec", &["backend", "proxy", "event", "ir", "sets", "host", "vocabulary"]),
];

/// The one home of each third-party package (`exec` has two: libc is what nix does not wrap). Who our user is, and what addresses the
/// machine has, `host` asks by the packages that wrap each system.
const HOMES: &[(&str, &[&str])] = &[
    ("pest", &["syntax"]),
    ("pest_derive", &["syntax"]),
    ("idna", &["sets"]),
    ("ipnet", &["sets"]),
    ("postcard", &["resolve"]),
    ("icu_normalizer", &["sets"]),
    ("psl", &["lint"]),
    ("sha2", &["compile"]),
    ("unicode_script", &["lint"]),
    ("rustc_hash", &["sets", "bind", "analysis", "lint"]),
    ("smallvec", &["sets"]),
    ("jsonc_parser", &["compat"]),
    ("toml", &["compat"]),
    ("miette", &["diagnostic"]),
    ("strsim", &["diagnostic"]),
    ("hickory_resolver", &["proxy"]),
    ("hyper", &["proxy"]),
    ("hyper_util", &["proxy"]),
    ("http_body_util", &["proxy"]),
    ("tokio", &["proxy", "exec"]),
    ("lsp_server", &["lsp"]),
    ("lsp_types", &["lsp"]),
    ("nix", &["exec", "host"]),
    ("libc", &["exec"]),
    ("ipconfig", &["host"]),
    ("winapi_util", &["host"]),
    ("windows_sys", &["exec"]),
    ("clap", &["cli"]),
    ("clap_complete", &["cli"]),
    ("clap_mangen", &["cli"]),
    ("serde_yaml", &["suite"]),
    ("similar", &["cli"]),
];

/// Plain vocabulary that any room may use.
const EVERYWHERE: &[&str] = &["serde", "serde_json", "thiserror"];

#[test]
fn rooms_import_only_what_they_may() {
    let allowed: BTreeMap<_, BTreeSet<_>> =
        MAY_IMPORT.iter().map(|(room, rooms)| (*room, rooms.iter().copied().collect())).collect();
    let mut wrong = Vec::new();
    for file in sources() {
        let Some(allowed) = allowed.get(file.room.as_str()) else {
            assert!(matches!(file.room.as_str(), "lib" | "main" | "cli"), "the table does not know `{}`", file.room);
            continue;
        };
        for room in imports(&file) {
            if room != file.room && !allowed.contains(room.as_str()) && MAY_IMPORT.iter().any(|(name, _)| *name == room)
            {
                wrong.push(format!("{} imports {room}", file.path.display()));
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn the_book_has_the_same_table() {
    let book = fs::read_to_string(root().join("book/src/architecture.md")).unwrap();
    let words = |cell: &str| -> BTreeSet<String> { cell.split('`').skip(1).step_by(2).map(str::to_owned).collect() };
    let rows = book.lines().skip_while(|line| !line.starts_with("| module |")).skip(2);
    let rows = rows.take_while(|line| line.starts_with('|')).map(|line| line.split('|').collect::<Vec<_>>());
    let rows = rows.map(|cells| (words(cells[1]).pop_first().unwrap(), words(cells[3])));
    let said: BTreeMap<String, BTreeSet<String>> = rows.filter(|(room, _)| room != "cli").collect();
    let held = MAY_IMPORT.iter().map(|(room, may)| {
        let may = may.iter().filter(|room| **room != "vocabulary");
        ((*room).to_owned(), may.map(|room| (*room).to_owned()).collect())
    });
    assert_eq!(said, held.collect::<BTreeMap<_, _>>());
}

#[test]
fn packages_have_one_home() {
    let mut wrong = Vec::new();
    for file in sources() {
        for (package, homes) in HOMES {
            let used = file.tokens.windows(2).enumerate().any(|(at, pair)| {
                let starts_a_path = at == 0 || file.tokens[at - 1] != "::";
                pair[0] == *package && pair[1] == "::" && starts_a_path
            });
            if used && !homes.contains(&file.room.as_str()) {
                wrong.push(format!("{} uses {package}", file.path.display()));
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn every_package_has_a_home() {
    let manifest = fs::read_to_string(root().join("Cargo.toml")).unwrap();
    let mut inside = false;
    for line in manifest.lines() {
        if line.starts_with('[') {
            inside = line.ends_with("dependencies]") && !line.contains("dev-");
            continue;
        }
        let Some((name, _)) = line.split_once(" = ").filter(|_| inside) else { continue };
        let name = name.trim().replace('-', "_");
        let known = HOMES.iter().any(|(package, _)| *package == name) || EVERYWHERE.contains(&name.as_str());
        assert!(known, "`{name}` has no home in this test's table");
    }
}

#[test]
fn systems_are_told_apart_only_where_the_world_is_touched() {
    let wrong: Vec<_> = sources()
        .into_iter()
        .filter(|file| !matches!(file.room.as_str(), "exec" | "host" | "cli" | "main"))
        .filter(|file| file.tokens.iter().any(|token| matches!(token.as_str(), "target_os" | "target_family")))
        .map(|file| file.path.display().to_string())
        .collect();
    assert!(wrong.is_empty(), "{wrong:?}");
}

#[test]
fn unsafe_code_stands_only_in_exec() {
    let wrong: Vec<_> = sources()
        .into_iter()
        .filter(|file| file.room != "exec" && file.tokens.iter().any(|token| token == "unsafe"))
        .map(|file| file.path.display().to_string())
        .collect();
    assert!(wrong.is_empty(), "{wrong:?}");
}

#[test]
fn every_file_says_what_it_is() {
    let wrong: Vec<_> = sources()
        .into_iter()
        .filter(|file| !file.text.starts_with("//! "))
        .map(|file| file.path.display().to_string())
        .collect();
    assert!(wrong.is_empty(), "{wrong:?}");
}

#[test]
fn the_reader_sees_what_it_must() {
    let file = |text: &str| SourceFile {
        path: PathBuf::from("src/sets/path.rs"),
        room: "sets".to_owned(),
        module: vec!["sets".to_owned(), "path".to_owned()],
        tokens: tokens(text),
        text: text.to_owned(),
    };
    let found = |text: &str| imports(&file(text)).into_iter().collect::<Vec<_>>();
    assert_eq!(found("use crate::{ir::Policy, lint};"), ["ir", "lint"]);
    assert_eq!(found("fn f() { super::super::exec::run() }"), ["exec"]);
    assert_eq!(found("use super::{super::{proxy, event as e}, host};"), ["event", "proxy", "sets"]);
    assert_eq!(found("pub use crate::syntax as s; // crate::exec"), ["syntax"]);
    assert_eq!(found("const A: &str = \"crate::exec\"; const B: char = '\"'; crate::bind::x()"), ["bind"]);
    assert_eq!(found("mod x { use super::super::super::cli; }"), ["cli"]);
}

struct SourceFile {
    path: PathBuf,
    /// The first part of the module path; `lib` and `main` for the roots.
    room: String,
    module: Vec<String>,
    /// Without comments, literals and test modules.
    tokens: Vec<String>,
    text: String,
}

fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

fn sources() -> Vec<SourceFile> {
    let mut files = Vec::new();
    let mut folders = vec![root().join("src")];
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                folders.push(path);
            } else if path.extension().is_some_and(|extension| extension == "rs") {
                files.extend(read(&path));
            }
        }
    }
    assert!(files.len() > 20, "too few sources were found to mean anything");
    files
}

/// A file's tokens; `None` for a file of tests alone.
fn read(path: &Path) -> Option<SourceFile> {
    let relative = path.strip_prefix(root().join("src")).unwrap().with_extension("");
    let module: Vec<String> = relative.iter().map(|part| part.to_str().unwrap().to_owned()).collect();
    if module.iter().any(|part| part == "tests") {
        return None;
    }
    let text = fs::read_to_string(path).unwrap();
    let room = module[0].clone();
    let module = if module.len() == 1 && matches!(room.as_str(), "lib" | "main") { Vec::new() } else { module };
    Some(SourceFile { path: path.to_owned(), room, module, tokens: tokens(&text), text })
}

/// The rooms that a file's paths lead to.
fn imports(file: &SourceFile) -> BTreeSet<String> {
    let mut rooms = BTreeSet::new();
    let mut module = file.module.clone();
    // The depth of braces at which each inline module ends.
    let mut inline = Vec::new();
    let mut depth = 0_usize;
    let mut at = 0;
    while at < file.tokens.len() {
        match file.tokens[at].as_str() {
            "mod" if file.tokens.get(at + 2).is_some_and(|token| token == "{") => {
                module.push(file.tokens[at + 1].clone());
                inline.push(depth);
                at += 1;
            }
            "{" => depth += 1,
            "}" => {
                depth = depth.saturating_sub(1);
                if inline.last() == Some(&depth) {
                    inline.pop();
                    module.pop();
                }
            }
            "crate" | "super" if at == 0 || file.tokens[at - 1] != "::" => {
                at = follow(&file.tokens, at, &module, &mut rooms);
                continue;
            }
            _ => {}
        }
        at += 1;
    }
    rooms
}

/// Follows one path, or a `use` tree, from `at`; returns where it ends.
fn follow(tokens: &[String], mut at: usize, module: &[String], rooms: &mut BTreeSet<String>) -> usize {
    let mut path = module.to_vec();
    let token = |at: usize| tokens.get(at).map_or("", String::as_str);
    loop {
        match token(at) {
            "crate" => path.clear(),
            "super" => {
                path.pop();
            }
            "self" => {}
            "{" => {
                at += 1;
                while token(at) != "}" && at < tokens.len() {
                    if token(at) == "," {
                        at += 1;
                    } else {
                        at = follow(tokens, at, &path, rooms);
                    }
                }
                return at + 1;
            }
            "*" => {
                rooms.extend(path.first().cloned());
                return at + 1;
            }
            name => {
                rooms.insert(path.first().map_or(name, String::as_str).to_owned());
                // The rest of this path lies below; only where it ends matters.
                at += 1;
                while token(at) == "::" {
                    at += 1;
                    if token(at) == "{" {
                        let mut open = 0;
                        loop {
                            match token(at) {
                                "{" => open += 1,
                                "}" => open -= 1,
                                _ => {}
                            }
                            at += 1;
                            if open == 0 || at >= tokens.len() {
                                break;
                            }
                        }
                        return at;
                    }
                    at += 1;
                }
                if token(at) == "as" {
                    at += 2;
                }
                return at;
            }
        }
        at += 1;
        if token(at) != "::" {
            return at;
        }
        at += 1;
    }
}

/// Identifiers, `::` and single characters; comments, literals and `#[cfg(test)]` modules left out.
fn tokens(text: &str) -> Vec<String> {
    let chars: Vec<char> = text.chars().collect();
    let mut tokens: Vec<String> = Vec::new();
    let mut at = 0;
    let peek = |at: usize| chars.get(at).copied().unwrap_or('\0');
    while at < chars.len() {
        let c = chars[at];
        if c.is_whitespace() {
            at += 1;
        } else if c == '/' && peek(at + 1) == '/' {
            while at < chars.len() && chars[at] != '\n' {
                at += 1;
            }
        } else if c == '/' && peek(at + 1) == '*' {
            while at < chars.len() && !(chars[at] == '*' && peek(at + 1) == '/') {
                at += 1;
            }
            at += 2;
        } else if c == 'r' && (peek(at + 1) == '"' || (peek(at + 1) == '#' && matches!(peek(at + 2), '"' | '#'))) {
            let hashes = chars[at + 1..].iter().take_while(|c| **c == '#').count();
            at += 2 + hashes;
            while at < chars.len()
                && !(chars[at] == '"' && chars[at + 1..].iter().take_while(|c| **c == '#').count() >= hashes)
            {
                at += 1;
            }
            at += 1 + hashes;
        } else if c == '"' {
            at += 1;
            while at < chars.len() && chars[at] != '"' {
                at += if chars[at] == '\\' { 2 } else { 1 };
            }
            at += 1;
        } else if c == '\'' && (peek(at + 1) == '\\' || peek(at + 2) == '\'') {
            at += if peek(at + 1) == '\\' { 3 } else { 2 };
            while at < chars.len() && chars[at] != '\'' {
                at += 1;
            }
            at += 1;
        } else if c.is_alphanumeric() || c == '_' {
            let start = at;
            while at < chars.len() && (chars[at].is_alphanumeric() || chars[at] == '_') {
                at += 1;
            }
            tokens.push(chars[start..at].iter().collect());
        } else if c == ':' && peek(at + 1) == ':' {
            tokens.push("::".to_owned());
            at += 2;
        } else {
            tokens.push(c.to_string());
            at += 1;
        }
    }
    without_tests(&tokens)
}

fn without_tests(tokens: &[String]) -> Vec<String> {
    const TEST: [&str; 7] = ["#", "[", "cfg", "(", "test", ")", "]"];
    let mut kept = Vec::new();
    let mut at = 0;
    while at < tokens.len() {
        if tokens[at..].iter().zip(TEST).filter(|(token, test)| token == test).count() == TEST.len() {
            at += TEST.len();
            // One item: up to its `;`, or its body.
            let mut open = 0;
            while at < tokens.len() {
                match tokens[at].as_str() {
                    "{" => open += 1,
                    "}" => open -= 1,
                    _ => {}
                }
                let ends = open == 0 && matches!(tokens[at].as_str(), "}" | ";");
                at += 1;
                if ends {
                    break;
                }
            }
        } else {
            kept.push(tokens[at].clone());
            at += 1;
        }
    }
    kept
}
