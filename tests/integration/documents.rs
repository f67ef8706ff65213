//! Policies that people read are policies that work: every `policy` block of the README, the book and the diagnostics' pages,
//! and every shipped file.

use sandbox_runtime::backend::bubblewrap::Needs;
use sandbox_runtime::bind::bind;
use sandbox_runtime::compile::{compile, elsewhere, placements};
use sandbox_runtime::diagnostic::{Diagnostic, Level, Style, any_error, render};
use sandbox_runtime::host::nominal;
use sandbox_runtime::resolve::{Files, Options, Text, resolve};
use sandbox_runtime::source::Sources;
use sandbox_runtime::vocabulary::System;
use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

/// A file that any `use "…"` or `lines("…")` of an example finds.
struct Stand;

impl Files for Stand {
    fn read(&self, path: &str) -> io::Result<Text> {
        let text = match Path::new(path).extension().and_then(|extension| extension.to_str()) {
            Some("policy") if path.contains("ceiling") => {
                "srt 1\ndefault read deny\nallow read, write $WORKSPACE\n".to_owned()
            }
            Some("policy") => "srt 1\ndefault read deny\n".to_owned(),
            _ => "example.com\n".to_owned(),
        };
        Ok(Text { text, writable_by_others: false })
    }
}

/// The real files, for the shipped policies.
struct Disk;

impl Files for Disk {
    fn read(&self, path: &str) -> io::Result<Text> {
        Ok(Text { text: fs::read_to_string(path)?, writable_by_others: false })
    }
}

/// What a text is read on, beside the nominal machine.
#[derive(Default)]
struct Setting {
    /// More lines of its listing.
    listing: String,
    nest: bool,
}

/// Everything said about a text, for one system; on Linux its plan included.
fn said(name: &str, text: &str, system: System, files: &dyn Files, setting: &Setting) -> (Vec<Diagnostic>, Sources) {
    let mut sources = Sources::default();
    let source = sources.add(name, text);
    let registry = ("registry".to_owned(), "registry.example.com".to_owned());
    let defines = text.contains("$registry").then_some(registry);
    let options = Options { system, defines: defines.into_iter().collect() };
    let (policy, mut said) = resolve(&[source], &mut sources, files, &options);
    let Some(policy) = policy.filter(|_| !any_error(&said)) else { return (said, sources) };
    if system != System::Linux {
        said.extend(elsewhere(&policy).0);
        return (said, sources);
    }
    let placed = placements(&policy).0;
    let (bound, more) = bind(policy, &nominal().with(&setting.listing).unwrap());
    said.extend(more);
    if let Some(policy) = bound.filter(|_| !any_error(&said)) {
        let compiled = compile(&policy, &Needs { nest: setting.nest, ..Needs::default() });
        said.extend(compiled.diagnostics);
        said.extend(compiled.unused);
        said.extend(placed);
    }
    (said, sources)
}

fn show(said: &[Diagnostic], sources: &Sources) -> String {
    said.iter().map(|diagnostic| render(diagnostic, sources, Style { colour: false, width: 100 })).collect()
}

pub fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

pub fn files(folder: &str, extension: &str) -> Vec<PathBuf> {
    let mut found = Vec::new();
    let mut folders = vec![root().join(folder)];
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                folders.push(path);
            } else if path.extension().is_some_and(|found| found == extension) {
                found.push(path);
            }
        }
    }
    found.sort();
    found
}

/// The fenced blocks of a Markdown text: the words after the fence, the body, and its line.
fn blocks(markdown: &str) -> Vec<(String, String, usize)> {
    let mut blocks = Vec::new();
    let mut open: Option<(String, String, usize)> = None;
    for (number, line) in markdown.lines().enumerate() {
        let line = line.strip_prefix(' ').unwrap_or(line);
        match (&mut open, line.strip_prefix("```")) {
            (None, Some(words)) => open = Some((words.trim().to_owned(), String::new(), number + 1)),
            (Some(_), Some(_)) => blocks.extend(open.take()),
            (Some((_, body, _)), None) => {
                body.push_str(line);
                body.push('\n');
            }
            (None, None) => {}
        }
    }
    assert!(open.is_none(), "a block is not closed");
    blocks
}

/// A fragment as a whole file.
fn whole(words: &str, body: &str) -> Option<String> {
    let mut words = words.split(',');
    if words.next() != Some("policy") {
        return None;
    }
    let fragment = words.any(|word| word.trim() == "fragment");
    Some(if fragment { format!("srt 1\ndefault read deny\n{body}") } else { body.to_owned() })
}

#[test]
fn every_policy_in_the_readme_and_the_book_compiles() {
    // The pages of findings show what is wrong on purpose, and have a test of their own.
    let findings = root().join("book/src/findings");
    let mut documents: Vec<_> = files("book", "md").into_iter().filter(|path| !path.starts_with(&findings)).collect();
    documents.push(root().join("README.md"));
    let mut count = 0;
    let mut wrong = String::new();
    for path in documents {
        for (words, body, line) in blocks(&fs::read_to_string(&path).unwrap()) {
            let Some(text) = whole(&words, &body) else { continue };
            count += 1;
            for system in System::ALL {
                let (said, sources) =
                    said(&format!("{}:{line}", path.display()), &text, *system, &Stand, &Setting::default());
                if any_error(&said) {
                    wrong.push_str(&format!("on {system}: {}", show(&said, &sources)));
                }
            }
        }
    }
    assert!(count > 10, "only {count} policies were found: is this test reading the book?");
    assert!(wrong.is_empty(), "{wrong}");
}

/// The files that the blocks of a page show, by the names under which its policies use them; there are no others.
#[derive(Default)]
struct Shown(BTreeMap<String, (String, bool)>);

impl Files for Shown {
    fn read(&self, path: &str) -> io::Result<Text> {
        let (text, writable_by_others) = self.0.get(path).cloned().ok_or(io::ErrorKind::NotFound)?;
        Ok(Text { text, writable_by_others })
    }
}

/// The names of the codes that each policy of a section raises. Beside `policy` blocks it may have, read before them:
/// `listing`, lines of the machine; `…,file-NAME`, a file beside the policy, with `,writable` one that others may write.
/// `policy,nest` is read as under `--nest`, `policy,macos` on that system.
fn raised(section: &str) -> Vec<BTreeSet<&'static str>> {
    let blocks = blocks(section);
    let mut setting = Setting::default();
    let mut shown = Shown::default();
    let mut policies = Vec::new();
    for (words, body, _) in &blocks {
        let words: Vec<&str> = words.split(',').collect();
        if words.contains(&"listing") {
            setting.listing.push_str(body);
        } else if let Some(name) = words.iter().find_map(|word| word.strip_prefix("file-")) {
            shown.0.insert(name.to_owned(), (body.clone(), words.contains(&"writable")));
        } else {
            policies.extend(
                whole(&words.join(","), body).map(|text| (text, words.contains(&"nest"), words.contains(&"macos"))),
            );
        }
    }
    let mut raised = Vec::new();
    for (text, nest, macos) in policies {
        setting.nest = nest;
        let system = if macos { System::Macos } else { System::Linux };
        let (said, _) = said("example.policy", &text, system, &shown, &setting);
        raised.push(said.iter().map(|said| said.code.name).collect());
    }
    raised
}

/// The text between a heading and the next one.
fn section<'p>(page: &'p str, title: &str) -> Option<&'p str> {
    let (_, rest) = page.split_once(&format!("## {title}\n"))?;
    rest.split("\n ## ").next()?.split("\n## ").next()
}

#[test]
fn every_example_on_a_page_raises_its_code_and_every_remedy_does_not() {
    let mut wrong = String::new();
    for code in sandbox_runtime::codes() {
        let (Some(example), Some(remedy)) = (section(code.page, "Example"), section(code.page, "Use instead")) else {
            wrong.push_str(&format!("`{}` has no `## Example` or no `## Use instead`\n", code.name));
            continue;
        };
        let (examples, remedies) = (raised(example), raised(remedy));
        // A section without a policy would hold whatever the code did.
        if examples.is_empty() || remedies.is_empty() {
            wrong.push_str(&format!("the page of `{}` has a section without a policy\n", code.name));
        }
        for said in examples.iter().filter(|said| !said.contains(code.name)) {
            wrong.push_str(&format!("the example of `{}` does not raise it, but {said:?}\n", code.name));
        }
        for said in remedies.iter().filter(|said| said.contains(code.name)) {
            wrong.push_str(&format!("the remedy of `{}` raises it: {said:?}\n", code.name));
        }
    }
    assert!(wrong.is_empty(), "{wrong}");
}

/// The findings about how rules stand to each other.
const PRECEDENCE: [&str; 5] = ["conflict", "dead-rule", "overlap", "redundant-rule", "reopens"];

#[test]
fn shipped_policies_raise_nothing_on_any_system() {
    let mut wrong = String::new();
    for path in files("policies", "policy") {
        let mut text = fs::read_to_string(&path).unwrap();
        let module = path.parent().is_some_and(|folder| folder.ends_with("std"));
        // A module is used, never given: it need not say what the default is.
        if module && !text.lines().any(|line| line.starts_with("default read")) {
            text = text.replacen("srt 1\n", "srt 1\ndefault read allow\n", 1);
        }
        for system in System::ALL {
            let (said, sources) = said(&path.display().to_string(), &text, *system, &Disk, &Setting::default());
            let grave: Vec<_> = said
                .into_iter()
                // How its rules stand to each other is looked at down to the notes; of a module that is given by itself,
                // with a default that it does not have, whether its rules are needed is not.
                .filter(|said| said.level >= Level::Warning || !module && PRECEDENCE.contains(&said.code.name))
                // What a module accepts depends on the policy that uses it.
                .filter(|said| !(module && said.code.name == "unused-suppression"))
                .collect();
            if !grave.is_empty() {
                wrong.push_str(&format!("on {system}: {}", show(&grave, &sources)));
            }
        }
    }
    assert!(wrong.is_empty(), "{wrong}");
}

#[test]
fn shipped_policies_say_first_what_they_are_for() {
    for path in files("policies", "policy") {
        let text = fs::read_to_string(&path).unwrap();
        assert!(text.starts_with("# ") && text.lines().next().unwrap().len() > 12, "{}", path.display());
    }
}
