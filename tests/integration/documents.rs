//! Policies that people read are policies that work: every `policy` block of the README, the book and the diagnostics' pages,
//! and every shipped file.

use super::support::{Scene, output, writable_by_all};
use sandbox_runtime::backend::bubblewrap::{Needs, Watch};
use sandbox_runtime::bind::{bind, observe};
use sandbox_runtime::compile::artefact::{self, Emit};
use sandbox_runtime::compile::{compile, elsewhere, placements};
use sandbox_runtime::diagnostic::{Diagnostic, Style, any_error, render};
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

/// What a text is read on, beside the nominal machine.
#[derive(Default)]
struct Setting {
    /// More lines of its listing.
    listing: String,
    nest: bool,
    bwrap: bool,
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
    let machine = nominal().with(&setting.listing).unwrap();
    let (bound, more) = bind(policy, &machine);
    said.extend(more);
    if let Some(mut policy) = bound.filter(|_| !any_error(&said)) {
        observe(&mut policy, &machine);
        let performs = if setting.bwrap { Watch::Nothing } else { Watch::Writes };
        let compiled = compile(&policy, &Needs { nest: setting.nest, performs, ..Needs::default() });
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

/// What each policy of a section raises: codes, each with a message. Beside `policy` blocks it may have, read before them:
/// `listing`, lines of the machine; `…,file-NAME`, a file beside the policy, with `,writable` one that others may write.
/// `policy,nest` is read as under `--nest`, `policy,bwrap` as what is emitted for bubblewrap.
///
/// Where the section shows no machine and no mode, it is what `srt check` says, for every system.
fn raised(section: &str) -> Vec<BTreeSet<(String, String)>> {
    let blocks = blocks(section);
    let mut setting = Setting::default();
    let mut shown = Shown::default();
    let mut plain = true;
    let mut policies = Vec::new();
    let mut elsewhere = None;
    for (words, body, _) in &blocks {
        let words: Vec<&str> = words.split(',').collect();
        let named = [System::Macos, System::Windows].into_iter().find(|system| words.contains(&system.word()));
        elsewhere = elsewhere.or(named);
        if words.contains(&"listing") {
            setting.listing.push_str(body);
            plain = false;
        } else if let Some(name) = words.iter().find_map(|word| word.strip_prefix("file-")) {
            shown.0.insert(name.to_owned(), (body.clone(), words.contains(&"writable")));
        } else {
            setting.nest |= words.contains(&"nest");
            setting.bwrap |= words.contains(&"bwrap");
            policies.extend(whole(&words.join(","), body));
        }
    }
    let on_a_machine = |text: &String| {
        let all = System::ALL.iter().flat_map(|system| said("example.policy", text, *system, &shown, &setting).0);
        all.map(|said| (said.code.name.to_owned(), said.message)).collect()
    };
    if let Some(system) = elsewhere {
        return policies.iter().map(|text| compiled_for(system, text)).collect();
    }
    // Nobody makes a file there that others may write: Wine makes up who may.
    plain &= !(cfg!(windows) && shown.0.values().any(|(_, writable)| *writable));
    if plain && !setting.nest && !setting.bwrap {
        return policies.iter().map(|text| checked(text, &shown)).collect();
    }
    policies.iter().map(on_a_machine).collect()
}

/// What `srt compile --target SYSTEM` says of a text, on another system than Linux.
fn compiled_for(system: System, text: &str) -> BTreeSet<(String, String)> {
    let mut sources = Sources::default();
    let source = sources.add("example.policy", text);
    let options = Options { system, defines: BTreeMap::new() };
    let (policy, said) = resolve(&[source], &mut sources, &Shown::default(), &options);
    let policy = policy.unwrap();
    let built = match system {
        System::Windows => artefact::wfp(&policy, &sources, &[Emit::Wfp, Emit::Acl]).unwrap(),
        _ => artefact::seatbelt(&policy, &sources, &[Emit::Sbpl]).unwrap(),
    };
    let all = said.into_iter().chain(built.diagnostics);
    all.map(|said| (said.code.name.to_owned(), said.message)).collect()
}

/// What `srt check` says of a text, with some files beside it.
fn checked(text: &str, shown: &Shown) -> BTreeSet<(String, String)> {
    let scene = Scene::new().file("example.policy", text);
    for (name, (text, writable)) in &shown.0 {
        let path = scene.home().join(name);
        fs::write(&path, text).unwrap();
        writable_by_all(&path, *writable);
    }
    check(&scene, &[])
}

/// What `srt check` says of `example.policy` in a scene: codes, each with a message.
fn check(scene: &Scene, arguments: &[&str]) -> BTreeSet<(String, String)> {
    let arguments = [&["check", "--format", "json"], arguments, &["example.policy"]].concat();
    let ended = output(scene.srt(arguments).current_dir(scene.home()));
    let files: serde_json::Value = serde_json::from_str(&ended.stdout).unwrap();
    let said = files[0]["diagnostics"].as_array().unwrap();
    let word = |said: &serde_json::Value, key: &str| said[key].as_str().unwrap().to_owned();
    said.iter().map(|said| (word(said, "code"), word(said, "message"))).collect()
}

/// The text between a heading and the next one.
fn section<'p>(page: &'p str, title: &str) -> Option<&'p str> {
    let (_, rest) = page.split_once(&format!("## {title}\n"))?;
    rest.split("\n ## ").next()?.split("\n## ").next()
}

#[test]
fn every_example_on_a_page_raises_its_code_alone_and_every_remedy_nothing() {
    let mut wrong = String::new();
    for code in sandbox_runtime::codes() {
        let page = code.page;
        let (Some(example), Some(remedy)) = (section(page, "Example"), section(page, "Use instead")) else {
            wrong.push_str(&format!("`{}` has no `## Example` or no `## Use instead`\n", code.name));
            continue;
        };
        let (examples, remedies) = (raised(example), raised(remedy));
        // A section without a policy would hold whatever the code did.
        if examples.is_empty() || remedies.is_empty() {
            wrong.push_str(&format!("the page of `{}` has a section without a policy\n", code.name));
        }
        for said in examples {
            if !said.iter().any(|(name, _)| *name == code.name) {
                wrong.push_str(&format!("the example of `{}` does not raise it\n", code.name));
            }
            for (name, message) in said.iter().filter(|(name, _)| *name != code.name) {
                wrong.push_str(&format!("the example of `{}` raises `{name}` too: {message}\n", code.name));
            }
        }
        for (name, message) in remedies.iter().flatten() {
            wrong.push_str(&format!("the remedy of `{}` raises `{name}`: {message}\n", code.name));
        }
    }
    assert!(wrong.is_empty(), "{wrong}");
}

/// A remedy that is offered takes its finding away, and brings no other: of the pages' examples, and of what is written wrong
/// most often.
#[test]
fn what_is_offered_as_a_remedy_is_one() {
    let mut texts: Vec<(String, Shown)> = Vec::new();
    for code in sandbox_runtime::codes() {
        let Some(example) = section(code.page, "Example") else { continue };
        let mut shown = Shown::default();
        for (words, body, _) in blocks(example) {
            let words: Vec<&str> = words.split(',').collect();
            if let Some(name) = words.iter().find_map(|word| word.strip_prefix("file-")) {
                shown.0.insert(name.to_owned(), (body.clone(), words.contains(&"writable")));
            } else if let Some(text) = whole(&words.join(","), &body) {
                texts.push((text, Shown(shown.0.clone())));
            }
        }
    }
    for line in [
        "alow read /a",
        "allow raed /a",
        "allow read $WORKSPCE",
        "allow read \"$WORKSPCE/a b\"",
        "use std/systm",
        "use std/system",
        "allow read /a/",
        "allow read /a//b",
        "allow read .",
        "allow read ${HOME}/a",
        "allow read $CACHE?",
        "allow connect 127.1:80",
        "allow connect a.example:90-80",
        "limit memry 1GiB",
        "on lnux {\n  allow read /a\n}",
        "expect dny read /a",
        "default reed deny",
        "allow read /a excpt /a/b",
        "let x = /a",
        "allow read /a\nallow read [/a/b, /c]",
        "deny read /a\nallow read, write [/a, /b]",
        "# lint: allow(dead-rule) it is not\nallow read /a",
        "deny read /a\nallow read [\n  /c, # one\n  /a,\n]",
        "let x = [/a, /b]\nallow read $x\ndeny read /a",
        "allow read /a\nallow read, write /a/b",
    ] {
        texts.push((format!("srt 1\ndefault read deny\n{line}\n"), Shown::default()));
    }
    let mut tried: BTreeMap<String, usize> = BTreeMap::new();
    let mut wrong = String::new();
    for (text, shown) in texts {
        let found = |text: &str| -> Vec<serde_json::Value> {
            let scene = Scene::new().file("example.policy", text);
            for (name, (text, _)) in &shown.0 {
                // A place on another machine is not made on this one.
                if !name.starts_with('/') {
                    let path = scene.home().join(name);
                    fs::create_dir_all(path.parent().unwrap()).unwrap();
                    fs::write(path, text).unwrap();
                }
            }
            let ended = output(scene.srt(["check", "--format", "json", "example.policy"]).current_dir(scene.home()));
            let files: serde_json::Value = serde_json::from_str(&ended.stdout).unwrap();
            files[0]["diagnostics"].as_array().unwrap().clone()
        };
        let before = found(&text);
        for said in before.iter().filter(|said| !said["fix"].is_null()) {
            let mut mended = text.clone();
            let mut edits = said["fix"]["edits"].as_array().unwrap().clone();
            edits.sort_by_key(|edit| std::cmp::Reverse(edit["start"].as_u64()));
            for edit in edits {
                let at = |key: &str| usize::try_from(edit[key].as_u64().unwrap()).unwrap();
                mended.replace_range(at("start")..at("end"), edit["text"].as_str().unwrap());
            }
            let codes = |said: &[serde_json::Value]| -> BTreeMap<String, usize> {
                let mut count = BTreeMap::new();
                for one in said {
                    *count.entry(one["code"].as_str().unwrap().to_owned()).or_default() += 1;
                }
                count
            };
            let (was, after) = (codes(&before), found(&mended));
            let is = codes(&after);
            let code = said["code"].as_str().unwrap();
            *tried.entry(code.to_owned()).or_default() += 1;
            let more = is.iter().any(|(code, count)| was.get(code).is_none_or(|was| was < count));
            if more || is.get(code).unwrap_or(&0) >= &was[code] {
                wrong.push_str(&format!("{text}\nbecame\n{mended}\n{was:?}\n{is:?}\n\n"));
            }
        }
    }
    assert!(wrong.is_empty(), "{wrong}");
    let words: Vec<_> = tried.iter().map(|(code, count)| format!("{code} {count}")).collect();
    for code in ["syntax", "unknown-variable", "unused-suppression", "dead-rule", "redundant-rule", "unused-variable"] {
        assert!(tried.contains_key(code), "{code} is never mended: {words:?}");
    }
    assert!(tried.values().sum::<usize>() >= 25, "{words:?}");
}

/// Shipped policies are judged as people judge them: by `srt check`, down to the notes, on every system.
#[test]
fn shipped_policies_raise_nothing() {
    let mut wrong = String::new();
    let shipped: Vec<_> = files("policies", "policy").into_iter().filter(|path| !is_module(path)).collect();
    assert!(shipped.len() >= 6, "only {} policies were found", shipped.len());
    for path in shipped {
        let text = fs::read_to_string(&path).unwrap();
        let define = text.contains("$registry").then_some(["--define", "registry=registry.example.com"]);
        let path = path.to_str().unwrap();
        for word in raised_by(&text, define.as_ref().map_or(&[], |define| &define[..])) {
            wrong.push_str(&format!("{path}: {word}\n"));
        }
    }
    assert!(wrong.is_empty(), "{wrong}");
}

/// A module is used, not given: whatever uses it, it brings no finding along.
#[test]
fn embedded_modules_raise_nothing_in_a_policy_that_uses_them() {
    let mut wrong = String::new();
    let modules: Vec<_> = files("policies", "policy").into_iter().filter(|path| is_module(path)).collect();
    assert!(modules.len() >= 9, "only {} modules were found", modules.len());
    for path in modules {
        let text = fs::read_to_string(&path).unwrap();
        let name = path.file_stem().unwrap().to_str().unwrap();
        if text.lines().any(|line| line.starts_with("default read")) {
            for word in raised_by(&text, &[]) {
                wrong.push_str(&format!("{name}: {word}\n"));
            }
            continue;
        }
        for rest in [
            "default read deny\nallow read $WORKSPACE\n",
            "use std/shell-config\ndefault read deny\nallow read, write $WORKSPACE\n",
            "default read allow\n",
            "use std/shell-config\ndefault read allow\nallow write $WORKSPACE\n",
        ] {
            for word in raised_by(&format!("srt 1\nuse std/system\nuse std/{name}\n{rest}"), &[]) {
                wrong.push_str(&format!("a policy that uses {name}, with {rest:?}: {word}\n"));
            }
        }
        // Its own text, which those who copy it give.
        for default in ["allow", "deny"] {
            let text = text.replacen("srt 1\n", &format!("srt 1\ndefault read {default}\n"), 1);
            let said = raised_by(&text, &[]);
            // What it accepts depends on the policy that uses it, and so does what it adds to.
            let own = said.into_iter().filter(|word| {
                !(word.starts_with("unused-suppression") || default == "allow" && word.starts_with("redundant-rule"))
            });
            for word in own {
                wrong.push_str(&format!("{name} by itself, where reading is {default}: {word}\n"));
            }
        }
    }
    assert!(wrong.is_empty(), "{wrong}");
}

fn is_module(path: &Path) -> bool {
    path.parent().is_some_and(|folder| folder.ends_with("std"))
}

/// What `srt check` says of a text, one finding a line.
fn raised_by(text: &str, arguments: &[&str]) -> Vec<String> {
    let scene = Scene::new().file("example.policy", text);
    let said = check(&scene, arguments);
    said.into_iter().map(|(code, message)| format!("{code}: {message}")).collect()
}

#[test]
fn shipped_policies_say_first_what_they_are_for() {
    for path in files("policies", "policy") {
        let text = fs::read_to_string(&path).unwrap();
        assert!(text.starts_with("# ") && text.lines().next().unwrap().len() > 12, "{}", path.display());
    }
}
