//! The commands that the book's chapters on using `srt` beside other tools show, run as they stand there, in a home in which
//! the chapter's own files are.
//!
//! A block whose fence says `file-NAME` is a file, at that place from the home, which is called `/home/you`; `~/project` is where commands start. In a
//! `console` block a line `$ COMMAND` is run by a shell; lines below it are what it prints, on both streams, `…` standing
//! for any number of lines, and `? N` the status. In a `yaml` block the commands of `run:` and of list items that begin with
//! `srt` are run, and must end well.

use super::documents::root;
use crate::support::{Scene, output, srt};
use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};

/// The chapters, and the least number of commands that each shows.
const CHAPTERS: &[(&str, usize)] = &[
    ("ci.md", 6),
    ("compile.md", 8),
    ("embedding.md", 2),
    ("macos.md", 1),
    ("other-tools.md", 8),
    ("testing.md", 2),
    ("what-was-tried.md", 6),
    ("windows.md", 1),
];

/// The fenced blocks of a chapter: the words after the fence, the body as it stands, and its line.
fn blocks(markdown: &str) -> Vec<(String, String, usize)> {
    let mut blocks: Vec<(String, String, usize)> = Vec::new();
    let mut inside = false;
    for (number, line) in markdown.lines().enumerate() {
        match (inside, line.strip_prefix("```"), blocks.last_mut()) {
            (false, Some(words), _) => blocks.push((words.trim().to_owned(), String::new(), number + 1)),
            (true, None, Some((_, body, _))) => body.push_str(&format!("{line}\n")),
            _ => {}
        }
        inside ^= line.starts_with("```");
    }
    blocks
}

/// A home with the files of a chapter, and a project, in which there is a policy whatever the chapter shows.
fn home(chapter: &[(String, String, usize)]) -> Scene {
    let policy = include_str!("../../policies/coding-agent.policy");
    let mut scene = Scene::new().file("project/agent.policy", policy).file("project/policies/agent.policy", policy);
    for (words, body, _) in chapter {
        for word in words.split(',') {
            if let Some(name) = word.trim().strip_prefix("file-") {
                let body = body.replace("/home/you", &scene.home().display().to_string());
                scene = scene.file(name, &body);
            }
        }
    }
    scene
}

/// What a shell command printed on both streams, in the order in which it was, and its status.
fn shell(scene: &Scene, command: &str) -> (String, i32) {
    // Examples are built where the tests are.
    let examples = Path::new(env!("CARGO_BIN_EXE_srt")).with_file_name("examples");
    let path = format!("{}:{}:/usr/local/bin:/usr/bin:/bin", srt().parent().unwrap().display(), examples.display());
    let mut started = Command::new("sh");
    started
        .args(["-c", &format!("exec 2>&1\n{command}")])
        .current_dir(scene.home().join("project"))
        .env_clear()
        .env("HOME", scene.home())
        .env("PATH", path)
        .env("LANG", "C.UTF-8")
        .stdin(Stdio::null());
    let ended = output(&mut started);
    (ended.stdout.replace(&scene.home().display().to_string(), "/home/you"), ended.code)
}

/// Whether the lines are those; `…` stands for any number.
fn same(said: &[&str], shown: &[&str]) -> bool {
    match shown.split_first() {
        None => said.is_empty(),
        Some((&"…", rest)) => (0..=said.len()).any(|at| same(&said[at..], rest)),
        Some((line, rest)) => said.first() == Some(line) && same(&said[1..], rest),
    }
}

/// Runs what a chapter shows; gives the number of commands.
fn run(page: &str) -> usize {
    let text = fs::read_to_string(root().join("book/src").join(page)).unwrap();
    let chapter = blocks(&text);
    let scene = home(&chapter);
    let mut count = 0;
    for (words, body, line) in &chapter {
        let kind = words.split(',').next().unwrap_or_default();
        let commands: Vec<(String, Vec<&str>)> = match kind {
            "console" => console(body),
            "yaml" if !words.contains("file-") => pipeline(body),
            _ => continue,
        };
        for (command, shown) in commands {
            count += 1;
            let (status, shown) = match shown.split_last() {
                Some((last, rest)) if last.starts_with("? ") => (last[2..].parse().unwrap(), rest),
                _ => (0, &shown[..]),
            };
            let (said, ended) = shell(&scene, &command);
            let place = format!("{page}:{line}: `{command}`");
            assert_eq!(ended, status, "{place}: {said}");
            let said: Vec<_> = said.lines().map(str::trim_end).collect();
            assert!(shown.is_empty() || same(&said, shown), "{place} says\n{}", said.join("\n"));
        }
    }
    count
}

/// The commands of a session, each with what it prints.
fn console(body: &str) -> Vec<(String, Vec<&str>)> {
    let mut commands: Vec<(String, Vec<&str>)> = Vec::new();
    for line in body.lines() {
        match (line.strip_prefix("$ "), commands.last_mut()) {
            (Some(command), _) => commands.push((command.to_owned(), Vec::new())),
            (None, Some((_, shown))) => shown.push(line.trim_end()),
            (None, None) => panic!("no command stands above `{line}`"),
        }
    }
    commands
}

/// The commands of a pipeline's steps.
fn pipeline(body: &str) -> Vec<(String, Vec<&str>)> {
    let command = |line: &str| {
        let line = line.trim().trim_start_matches("- ");
        let line = line.strip_prefix("run: ").unwrap_or(line);
        line.starts_with("srt ").then(|| (line.to_owned(), Vec::new()))
    };
    body.lines().filter_map(command).collect()
}

#[test]
fn chapters_show_commands_that_work() {
    for (page, least) in CHAPTERS {
        let count = run(page);
        assert!(count >= *least, "only {count} commands were found in {page}");
    }
}
