//! One fault, one message: each line of realistic policies is broken in several ways, and the rest of the file stays
//! readable.

use super::{read, said};
use std::fs;
use std::path::PathBuf;

/// The policies at hand: those beside this file, and those that are shipped.
pub(super) fn policies() -> Vec<(PathBuf, String)> {
    let root = PathBuf::from(env!("CARGO_MANIFEST_DIR"));
    let mut found = Vec::new();
    let mut folders = vec![root.join("src/syntax/tests/policies"), root.join("policies")];
    while let Some(folder) = folders.pop() {
        #[allow(clippy::disallowed_methods)]
        let Ok(entries) = fs::read_dir(&folder) else { continue };
        for entry in entries {
            let path = entry.unwrap().path();
            if path.is_dir() {
                folders.push(path);
            } else if path.extension().is_some_and(|end| end == "policy") {
                #[allow(clippy::disallowed_methods)]
                let text = fs::read_to_string(&path).unwrap();
                found.push((path, text));
            }
        }
    }
    found.sort();
    assert!(found.len() >= 4, "the policies beside this file are missing");
    found
}

/// A way to break one line; `None` where it does not apply.
type Breaking = (&'static str, fn(&str) -> Option<String>);

/// The line without its comment, if a statement or an item of a list is left.
fn code(line: &str) -> Option<&str> {
    let code = line.split(" #").next().unwrap_or_default();
    (!code.trim().is_empty() && !code.trim_start().starts_with('#')).then_some(code)
}

fn replace_first(line: &str, from: &str, to: &str) -> Option<String> {
    code(line)?.contains(from).then(|| line.replacen(from, to, 1))
}

fn indent(line: &str) -> &str {
    &line[..line.len() - line.trim_start().len()]
}

const BREAKINGS: &[Breaking] = &[
    ("junk", |line| code(line).map(|_| format!("{}%%% ??? <junk>", indent(line)))),
    ("a misspelt first word", |line| {
        let word = line.split_whitespace().next()?;
        let known = [
            "srt", "use", "let", "default", "allow", "deny", "forbid", "set", "limit", "on", "within", "expect",
            "assume", "except", "because",
        ];
        known.contains(&word).then(|| line.replacen(word, &format!("{}x{}", &word[..1], &word[1..]), 1))
    }),
    ("a misspelt verb", |line| {
        let verbs = [" read", " write", " exec", " connect", " listen", " socket", " env ", " mach "];
        let word = verbs.iter().find(|verb| code(line).is_some_and(|code| code.contains(*verb)))?;
        let first = line.split_whitespace().next()?;
        ["allow", "deny", "forbid", "expect"]
            .contains(&first)
            .then(|| line.replacen(word, &format!(" z{}", word.trim_start()), 1))
    }),
    ("an unclosed list", |line| {
        let code = code(line)?;
        let at = code.rfind(']').filter(|_| !code.contains('"'))?;
        // `]` may be an address' own, which is still a bracket that is not closed.
        Some(format!("{}{}", &line[..at], &line[at + 1..]))
    }),
    ("an unopened list", |line| {
        let code = code(line)?;
        let at = code.find('[').filter(|at| !code[at + 1..].contains('['))?;
        Some(format!("{}{}", &line[..at], &line[at + 1..]))
    }),
    ("an unopened block", |line| line.starts_with("on ").then(|| line.replacen('{', "", 1))),
    ("an unclosed block", |line| (line == "}").then(String::new)),
    ("an unclosed block on one line", |line| {
        (line.starts_with("on ") && line.ends_with('}')).then(|| line.trim_end_matches('}').to_owned())
    }),
    ("a misspelt system", |line| replace_first(line, "on linux", "on lynux")),
    ("an unclosed quote", |line| {
        let at = code(line)?.rfind('"')?;
        Some(format!("{}{}", &line[..at], &line[at + 1..]))
    }),
    ("an unopened quote", |line| replace_first(line, " \"", " ")),
    ("unclosed braces", |line| {
        let code = code(line)?;
        let open = code.find('{').filter(|at| !code.starts_with("on ") && code[*at..].contains('}'))?;
        let close = open + code[open..].find('}')?;
        Some(format!("{}{}", &line[..close], &line[close + 1..]))
    }),
    ("a stray brace", |line| {
        let code = code(line)?;
        (!code.contains(" {") && !code.trim().ends_with('}')).then(|| format!("{code} }}"))
    }),
    ("a stray bracket", |line| {
        let code = code(line)?;
        (!code.contains(['[', '"']) && !code.ends_with([',', '[', '{'])).then(|| format!("{code}]"))
    }),
    ("a second word", |line| {
        let code = code(line)?;
        (!code.trim_end().ends_with(['[', '{', '}', ','])).then(|| format!("{code} more words"))
    }),
    ("a hash inside a word", |line| {
        let code = code(line)?;
        let last = code.trim_end();
        last.ends_with(|c: char| c.is_ascii_alphabetic()).then(|| format!("{last}#x"))
    }),
    ("the first word alone", |line| {
        let code = code(line)?;
        let first = code.split_whitespace().next()?;
        let more = code.split_whitespace().count() > 1 && first.chars().all(char::is_alphabetic);
        more.then(|| format!("{}{first}", indent(line)))
    }),
    ("without its last word", |line| {
        let code = code(line)?;
        let words: Vec<&str> = code.split_whitespace().collect();
        (words.len() == 3
            && ["allow", "deny", "forbid", "default", "within", "assume"].contains(&words[0])
            && words[2] != "[")
            .then(|| format!("{}{} {}", indent(line), words[0], words[1]))
    }),
];

#[test]
fn policies_at_hand_are_read() {
    for (path, text) in policies() {
        let (_, diagnostics) = read(&text);
        assert_eq!(said(&diagnostics), [] as [String; 0], "{}", path.display());
    }
}

#[test]
fn one_broken_line_costs_one_message() {
    let mut wrong = Vec::new();
    let mut tried = vec![0; BREAKINGS.len()];
    for (path, text) in policies() {
        let lines: Vec<&str> = text.lines().collect();
        for (number, line) in lines.iter().enumerate() {
            for (nth, (name, breaking)) in BREAKINGS.iter().enumerate() {
                let Some(broken) = breaking(line).filter(|broken| broken != line) else { continue };
                tried[nth] += 1;
                let mut all = lines.clone();
                all[number] = &broken;
                let (_, diagnostics) = read(&all.join("\n"));
                if diagnostics.len() != 1 {
                    let name_of = path.file_name().unwrap().to_string_lossy().into_owned();
                    wrong.push(format!("{name_of}:{}: {name}: `{broken}`\n     {:?}", number + 1, said(&diagnostics)));
                }
            }
        }
    }
    assert!(wrong.is_empty(), "{} of {}:\n{}", wrong.len(), tried.iter().sum::<u32>(), wrong.join("\n"));
    for ((name, _), times) in BREAKINGS.iter().zip(tried) {
        assert!(times > 0, "{name} never applied");
    }
}

#[test]
fn a_bad_line_does_not_hide_the_next() {
    for (text, expected) in [
        ("srt 1\nalow read /a\ndney read /b\nallow raed /c\nallow read /d\n", 3),
        ("srt 1\nallow read [/a\nallow read src\nallow read /b }\n", 3),
        ("srt 1\nallow connect [\n  a.b\n  c.d\n]\nallow wirte /a\n", 2),
        ("srt 1\non linux {\n  allow raed /a\n  allow wirte /b\n}\nallow read c\n", 3),
        ("srt 1\nallow read \"/a\nallow read \"/b\n", 2),
        ("allow read /a\nallow read src\n", 2),
        ("srt 1\n}\n}\n", 2),
        ("srt 1\non linux {\nallow read /a\non macos {\n}\n", 1),
        ("srt 1\non linux {\nallow read /a\nlet x = /b\n}\n", 1),
        ("srt 1\non linux {\nallow read /a\nlet x = /b\n", 1),
        ("allow read /a\nsrt 1\n", 1),
        ("srt 1\nsrt 1\n", 1),
        ("srt 1\non linux {\n  allow read {\n    /a,\n    /b\n  }\n  allow read /c\n}\n", 1),
        ("srt 1\nallow connect {\n  a.b,\n  c.d\n}\nallow read /c\n", 1),
        ("srt 1\non linux {\n  allow read /a {\n  allow read /b\n}\n", 1),
        ("srt 2\n", 1),
        ("srt\n", 1),
        ("", 1),
        ("# nothing\n", 1),
    ] {
        let (_, diagnostics) = read(text);
        assert_eq!(diagnostics.len(), expected, "{text:?}: {:?}", said(&diagnostics));
    }
}
