//! The book's table of programs under the shipped policies: each row ends as it says.

use crate::programs::{find, others_may_enter};
use crate::support::{Scene, User, skip, users};
use std::path::{Path, PathBuf};
use std::process::Command;

const BOOK: &str = include_str!("../../book/src/programs.md");
const AGENT: &str = include_str!("../../policies/coding-agent.policy");
const GIT_CONFIG: &str = "[user]\n\tname = Someone\n\temail = someone@example.com\n[init]\n\tdefaultBranch = main\n";
const PACKAGE: &str = r#"{ "name": "scene", "version": "1.0.0", "dependencies": { "part": "file:part" } }"#;
const CRATE: &str = "[package]\nname = \"scene\"\nversion = \"0.1.0\"\nedition = \"2021\"\n";

struct Row<'b> {
    policy: &'b str,
    linked: bool,
    command: &'b str,
    exit: i32,
}

fn rows() -> Vec<Row<'static>> {
    let lines = BOOK.lines().skip_while(|line| !line.starts_with("|---")).skip(1);
    let lines = lines.take_while(|line| line.starts_with('|'));
    let row = |line: &'static str| {
        let cells: Vec<&str> = line.trim_matches('|').split(" | ").map(str::trim).collect();
        let [policy, place, command, exit] = cells[..] else { panic!("{line}") };
        assert!(["workspace", "linked worktree"].contains(&place), "{line}");
        let linked = place == "linked worktree";
        Row { policy, linked, command: command.trim_matches('`'), exit: exit.parse().unwrap() }
    };
    lines.map(row).collect()
}

/// A repository with one commit on two branches, and a package of either kind in it; or a worktree that is linked to one.
fn scene(linked: bool) -> Scene {
    let root = if linked { "main" } else { "work" };
    let scene = Scene::new()
        .file(".gitconfig", GIT_CONFIG)
        .file(&format!("{root}/a.txt"), "one\n")
        .file(&format!("{root}/package.json"), PACKAGE)
        .file(&format!("{root}/part/package.json"), r#"{ "name": "part", "version": "1.0.0" }"#)
        .file(&format!("{root}/part/.vscode/settings.json"), "{}")
        .file(&format!("{root}/Cargo.toml"), CRATE)
        .file(&format!("{root}/src/main.rs"), "fn main() {}\n");
    let git = |folder: &Path, arguments: &[&str]| {
        let git = Command::new("git").args(arguments).current_dir(folder).env("HOME", scene.home()).status();
        assert!(git.unwrap().success(), "git {arguments:?}");
    };
    let root = scene.home().join(root);
    for arguments in [
        &["init", "-q", "--template=", "-b", "main"][..],
        &["add", "a.txt", "package.json", "Cargo.toml", "src"],
        &["commit", "-qm", "one"],
        &["branch", "side"],
    ] {
        git(&root, arguments);
    }
    if linked {
        std::fs::remove_dir(scene.workspace()).unwrap();
        git(&root, &["worktree", "add", "-q", "../work", "side"]);
    }
    scene
}

/// Where cargo and the compiler are, if this machine has them where that user may go.
fn toolchain(user: User) -> Option<PathBuf> {
    let asked = Command::new("rustc").args(["--print", "sysroot"]).output().ok()?;
    let toolchain = PathBuf::from(String::from_utf8_lossy(&asked.stdout).trim());
    (user == User::Caller || others_may_enter(&toolchain)).then_some(toolchain)
}

#[test]
fn programs_end_as_the_book_says() {
    let new = BOOK.split("```policy\n").nth(1).unwrap().split("```").next().unwrap();
    let rows = rows();
    assert!(rows.len() > 20);
    let last = *users().last().unwrap();
    let runs = users().into_iter().map(|user| ("native", user)).chain([("bwrap", last)]);
    for (engine, user) in runs {
        for row in &rows {
            let mut policy = if row.policy == "new" { new.to_owned() } else { AGENT.to_owned() };
            let uses = |program: &str| row.command.split(' ').any(|word| word == program);
            if uses("cargo") {
                let Some(toolchain) = toolchain(user) else { continue };
                let path = format!("{0}/bin:/usr/bin:/bin", toolchain.display());
                policy = format!("{policy}\nallow read {}\nset PATH=\"{path}\"\n", toolchain.display());
            } else if ["git", "npm", "node", "vim", "perl"]
                .iter()
                .any(|program| uses(program) && find(program).is_none())
            {
                skip(row.command, "it is not installed");
                continue;
            }
            let output = scene(row.linked).by(user).with(["--engine", engine]).policy(&policy).run(row.command);
            assert_eq!(output.code, row.exit, "{engine} {user:?}: `{}`: {output:?}", row.command);
        }
    }
}
