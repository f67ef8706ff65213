//! `srt init`: a policy to start from, by what lies in the project.
//!
//! Looks at names in the project's directory and at the hosts that its lock files name; runs nothing.

use super::arguments::Init;
use super::{files, output, status};
use sandbox_runtime::sets::path;
use std::collections::BTreeSet;
use std::fmt::Write as _;
use std::path::Path;

/// What of a project is looked for.
struct Trait {
    /// Any of these in the directory.
    signs: &'static [&'static str],
    /// What is said above the lines.
    says: &'static str,
    lines: &'static [&'static str],
}

const TRAITS: &[Trait] = &[
    Trait {
        signs: &[".git"],
        says: "it is a git repository: commits go on, hooks and settings stay as they are",
        lines: &["use std/git"],
    },
    Trait {
        signs: &["package.json", "deno.json", "bun.lockb"],
        says: "Node.js and its package managers, where people put them in a home; their caches go to $TMP",
        lines: &["use std/node"],
    },
    Trait {
        signs: &["pyproject.toml", "requirements.txt", "setup.py", "setup.cfg", "Pipfile", "uv.lock"],
        says: "Python and its package managers, where people put them in a home; their caches go to $TMP",
        lines: &["use std/python"],
    },
    Trait {
        signs: &["Cargo.toml"],
        says: "Rust's toolchains, and what cargo has downloaded already",
        lines: &["use std/rust"],
    },
];

/// Go has no module of its own yet.
const GO: &[&str] = &[
    "",
    "# go.mod: what go has downloaded already is read; what it builds is kept in $TMP, and gone with it.",
    "allow read ~/go/pkg/mod",
    "on linux {",
    "  set GOCACHE=/tmp/go-build",
    "}",
    "set GOFLAGS=-modcacherw",
];

/// Files that name where packages come from, and what stands before a URL there.
const LOCKS: &[(&str, &str)] = &[
    ("package-lock.json", "\"resolved\": \"https://"),
    ("yarn.lock", "resolved \"https://"),
    ("uv.lock", "url = \"https://"),
    ("poetry.lock", "url = \"https://"),
    ("Pipfile.lock", "\"url\": \"https://"),
];

pub fn init(init: &Init) -> u8 {
    let directory = match std::env::current_dir() {
        Ok(directory) => directory,
        Err(error) => {
            output::complain(format_args!("cannot tell where this is: {error}"));
            return status::USAGE;
        }
    };
    let target = init.output.as_path();
    let printed = target == Path::new("-");
    // Where a command may write the policy, it is closed by a line of its own.
    let own = if printed || target.is_absolute() || target.components().count() != 1 {
        None
    } else {
        target.to_str().filter(|name| path::target("", name) == *name)
    };
    let text = policy(&directory, own);
    if printed {
        output::print(&text);
        return 0;
    }
    match files::is_there(target) {
        Ok(false) => {}
        Ok(true) => {
            output::complain(format_args!("`{}` is there already; name another by -o", target.display()));
            return status::USAGE;
        }
        Err(error) => {
            output::complain(format_args!("cannot look for `{}`: {error}", target.display()));
            return status::USAGE;
        }
    }
    if let Err(error) = files::replace(target, text.as_bytes()) {
        output::complain(format_args!("cannot write `{}`: {error}", target.display()));
        return status::USAGE;
    }
    let shown = target.display();
    output::print(&format!("{shown}: read it, then `srt run --policy {shown} -- COMMAND`\n"));
    0
}

/// The policy for a project in a directory.
fn policy(directory: &Path, own: Option<&str>) -> String {
    let there = |name: &str| directory.join(name).symlink_metadata().is_ok();
    let mut text = String::from(
        "# What a command may touch in this project. Made by `srt init` from what lies here; read it, and change it.\n\
         srt 1\n\n\
         # Programs, libraries, certificates, and a temporary directory of the run's own.\n\
         use std/system\n\
         # Credentials stay closed: in files, and in the environment.\n\
         use std/secrets\n\
         # So does what runs by itself later: start-up files, git hooks, editors' tasks.\n\
         use std/shell-config\n",
    );
    for found in TRAITS {
        let Some(sign) = found.signs.iter().find(|sign| there(sign)) else { continue };
        // Writing into a string does not fail, here and below.
        let _ = writeln!(text, "# {sign}: {}.", found.says);
        for line in found.lines {
            let _ = writeln!(text, "{line}");
        }
    }
    text.push_str("\n# Nothing else can be read: no home, no other project.\ndefault read deny\n");
    text.push_str("\n# The project itself.\nallow read, write $WORKSPACE\n");
    if let Some(own) = own {
        let _ = write!(
            text,
            "\n# This file: a command that could change it would choose what the next one may do.\n\
             # lint: allow(later-names) it is here before any command is started\n\
             deny write $WORKSPACE/{own}\n"
        );
    }
    if there("go.mod") {
        text.extend(GO.iter().flat_map(|line| [*line, "\n"]));
    }
    let mut said = false;
    for (lock, before) in LOCKS {
        let hosts = hosts(&directory.join(lock), before);
        if hosts.is_empty() {
            continue;
        }
        said = true;
        let _ = write!(text, "\n# {lock}: where packages come from.\n");
        for host in hosts {
            let _ = writeln!(text, "allow connect {host}:443");
        }
    }
    if !said {
        text.push_str("\n# No host is reached. To open one: allow connect api.example.com\n");
    }
    text.push_str("\n# What stays so, whatever is added above: each run proves it.\nexpect deny read ~/.ssh\n");
    if there(".git") {
        text.push_str("expect deny write $WORKSPACE/.git/hooks\n");
    }
    text
}

/// The hosts that a lock file names; at most eight, past which it is no list that anybody reads.
fn hosts(path: &Path, before: &str) -> BTreeSet<String> {
    let Ok(text) = files::read(path) else { return BTreeSet::new() };
    let mut hosts = BTreeSet::new();
    for part in text.text.split(before).skip(1) {
        let host = part.split(['/', '"', ':']).next().unwrap_or_default().to_lowercase();
        let plain = host.chars().all(|c| c.is_ascii_alphanumeric() || "-.".contains(c));
        let name = host.contains('.') && host.chars().any(|c| c.is_ascii_alphabetic());
        if plain && name && hosts.len() < 8 {
            hosts.insert(host);
        }
    }
    hosts
}
