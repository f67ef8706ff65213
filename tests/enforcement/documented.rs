//! The commands that the README and the book's first chapter show, run as they stand there.

use crate::support::{Scene, srt};
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

/// The bodies of the blocks whose fence names this language.
fn blocks(markdown: &str, language: &str) -> Vec<String> {
    let fence = format!("```{language}\n");
    markdown.split(&fence).skip(1).map(|rest| rest.split("```").next().unwrap().to_owned()).collect()
}

/// A home in which the documents' words mean something: a project with a policy, a test, an agent and some data.
fn home(policy: &str) -> Scene {
    let mut scene = Scene::new().file("agent.policy", policy);
    for project in ["project", "src/project"] {
        scene = scene
            .file(&format!("{project}/my-agent"), "#!/bin/sh\necho at work > made && cat made\n")
            .file(&format!("{project}/Makefile"), "test:\n\t@echo tested\n")
            .file(&format!("{project}/data/prices.txt"), "3\n1\n2\n")
            .folder(&format!("{project}/data/out"))
            .folder(&format!("{project}/.git/hooks"));
        let agent = scene.home().join(project).join("my-agent");
        fs::set_permissions(agent, fs::Permissions::from_mode(0o755)).unwrap();
    }
    scene
}

/// Runs the commands of a document in order; gives what each said.
fn commands_of(document: &str) -> Vec<(String, String)> {
    let text = fs::read_to_string(root().join(document)).unwrap();
    let policies = blocks(&text, "policy");
    let scene = home(policies.first().expect("the document shows a policy"));
    let makefile = fs::read_to_string(root().join("Makefile")).unwrap();
    let folder = srt().parent().unwrap().display().to_string();
    let mut directory: PathBuf = scene.home().join("src/project");
    let mut said = Vec::new();
    for block in blocks(&text, "console") {
        for line in block.lines() {
            let command = line.strip_prefix("$ ").unwrap_or_else(|| panic!("{document}: not a command: {line}"));
            if let Some(target) = command.strip_prefix("make ") {
                let target = target.split_whitespace().next().unwrap();
                assert!(makefile.contains(&format!("\n{target}: ")), "{document}: no such target: {target}");
                continue;
            }
            if let Some(to) = command.strip_prefix("cd ") {
                directory = PathBuf::from(to.replace('~', &scene.home().display().to_string()));
                continue;
            }
            assert!(command.starts_with("srt "), "{document}: what is `{command}`?");
            let path = format!("{folder}:{}:/usr/local/bin:/usr/bin:/bin", directory.display());
            let ended = Command::new("sh")
                .args(["-c", command])
                .current_dir(&directory)
                .env_clear()
                .env("HOME", scene.home())
                .env("PATH", path)
                .stdin(Stdio::null())
                .output()
                .unwrap();
            let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
            assert!(ended.status.success(), "{document}: `{command}`: {} {}", text(&ended.stdout), text(&ended.stderr));
            said.push((command.to_owned(), text(&ended.stdout) + &text(&ended.stderr)));
        }
    }
    said
}

/// What the command that starts like this said.
#[track_caller]
fn answer<'a>(said: &'a [(String, String)], start: &str) -> &'a str {
    let found = said.iter().find(|(command, _)| command.starts_with(start));
    &found.unwrap_or_else(|| panic!("no command starts with `{start}`")).1
}

#[test]
fn the_readme_shows_commands_that_work() {
    let said = commands_of("README.md");
    assert_eq!(answer(&said, "srt run"), "at work\n");
    assert!(answer(&said, "srt explain").starts_with("denied: write "), "{said:?}");
}

#[test]
fn getting_started_shows_commands_that_work() {
    let said = commands_of("book/src/getting-started.md");
    assert_eq!(answer(&said, "srt make"), "tested\n");
    assert!(answer(&said, "srt check").contains("1 file checked"), "{said:?}");
    assert!(answer(&said, "srt explain").starts_with("denied: write "), "{said:?}");
    assert_eq!(answer(&said, "srt run"), "at work\n");
    assert_eq!(answer(&said, "srt --allow-read"), "1\n2\n3\n");
}
