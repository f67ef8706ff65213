//! What running text of the README, the book and the pages of findings calls a verb or a flag is one, and takes the value that
//! is shown. What stands in blocks is run, elsewhere.

use super::documents::{files, root};
use super::support::{Scene, output};
use std::collections::BTreeMap;
use std::fs;

/// What stands between backticks in running text.
fn spans(markdown: &str) -> Vec<String> {
    let mut fenced = false;
    let running = markdown.lines().filter(|line| {
        let fence = line.trim_start().starts_with("```");
        fenced ^= fence;
        !fenced && !fence
    });
    running.flat_map(|line| line.split('`').skip(1).step_by(2)).map(str::to_owned).collect()
}

/// What each verb's `--help` says, those of its own verbs with it.
fn helps(scene: &Scene) -> BTreeMap<String, String> {
    let help = |verb: &[&str]| output(&mut scene.srt(verb.iter().chain(&["--help"]).copied())).ok().to_owned();
    let listed = |text: &str| -> Vec<String> {
        let after = text.lines().skip_while(|line| !matches!(*line, "Verbs:" | "Commands:")).skip(1);
        let verbs = after.take_while(|line| line.starts_with("  "));
        verbs
            .filter_map(|line| line.split_whitespace().next())
            .filter(|verb| *verb != "help")
            .map(str::to_owned)
            .collect()
    };
    let whole = |verb: String| {
        let mut text = help(&[&verb]);
        for own in listed(&text) {
            text.push_str(&help(&[&verb, &own]));
        }
        (verb, text)
    };
    listed(&help(&[])).into_iter().map(whole).collect()
}

/// What a help text says of a flag, on one line.
fn entry(help: &str, flag: &str) -> Option<String> {
    let begins = |line: &str| line.starts_with("  ") && line.trim_start().starts_with('-');
    let mut lines = help.lines().skip_while(|line| !(begins(line) && line.split([' ', ',']).any(|word| word == flag)));
    let first = lines.next()?;
    let more = lines.take_while(|line| line.starts_with("   ") && !begins(line));
    Some([first].into_iter().chain(more).flat_map(str::split_whitespace).collect::<Vec<_>>().join(" "))
}

/// Whether a help text has this flag, and the flag this value, where its values are listed.
fn takes(help: &str, flag: &str, value: Option<&str>) -> bool {
    entry(help, flag).is_some_and(|entry| {
        let values = entry.split_once("[possible values: ").and_then(|(_, values)| values.split_once(']'));
        match (values, value) {
            (Some((values, _)), Some(value)) => {
                value.starts_with(char::is_uppercase) || values.split(", ").any(|known| known == value)
            }
            _ => true,
        }
    })
}

#[test]
fn commands_in_running_text_are_commands() {
    let helps = helps(&Scene::new());
    let mut pages = files("book/src", "md");
    pages.push(root().join("README.md"));
    let (mut seen, mut wrong) = (0, Vec::new());
    for page in pages {
        for span in spans(&fs::read_to_string(&page).unwrap()) {
            let words: Vec<&str> = span.split_whitespace().collect();
            let known: Vec<&String> = match words[..] {
                // A policy's first line, and `srt COMMAND` for `srt run -- COMMAND`.
                ["srt", verb, ..] if verb == "1" || verb.starts_with(char::is_uppercase) => continue,
                ["srt", verb, ..] => helps.get(verb).into_iter().collect(),
                [flag, ..] if flag.starts_with("--") => helps.values().collect(),
                _ => continue,
            };
            seen += 1;
            let own: Vec<&str> = words.iter().copied().take_while(|word| *word != "--").collect();
            let flags = own.iter().enumerate().filter(|(_, word)| word.starts_with("--"));
            let mut right = !known.is_empty();
            for (at, flag) in flags {
                right &= known.iter().any(|help| takes(help, flag, own.get(at + 1).copied()));
            }
            if !right {
                wrong.push(format!("{}: `{span}`", page.display()));
            }
        }
    }
    assert!(seen > 100, "only {seen} were found: is this test reading the book?");
    assert!(wrong.is_empty(), "{wrong:#?}");
}

#[test]
fn a_verb_a_flag_and_a_value_that_are_none_are_seen() {
    let helps = helps(&Scene::new());
    assert!(helps.len() > 10 && helps.contains_key("check") && !helps.contains_key("chekc"));
    assert!(takes(&helps["check"], "--format", Some("sarif")) && takes(&helps["check"], "--format", Some("FORMAT")));
    assert!(!takes(&helps["check"], "--format", Some("sariff")) && !takes(&helps["check"], "--formt", None));
}
