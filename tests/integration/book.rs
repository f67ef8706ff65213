//! The book's pages of findings are those of the code, its summary lists every page, and its links lead somewhere.
//!
//! `make pages` (`UPDATE_PAGES=1`) writes the generated pages anew.

use super::documents::{files, root};
use sandbox_runtime::backend::Target;
use sandbox_runtime::backend::gap::Direction;
use sandbox_runtime::diagnostic::{Code, Level};
use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};

const START: &str = "- [Findings](findings.md)\n";

fn level(code: &Code) -> &'static str {
    match code.level {
        Level::Error => "error",
        Level::Warning => "warning",
        Level::Note => "note",
    }
}

/// A doc comment's text: the blank after `///` taken away, a blank line after each heading and before each block.
fn page(code: &Code) -> String {
    let mut text = String::new();
    let mut inside = false;
    for line in code.page.lines().map(|line| line.strip_prefix(' ').unwrap_or(line)) {
        let fence = line.starts_with("```");
        let apart = text.ends_with("\n\n") || text.is_empty();
        if fence && !inside && !apart {
            text.push('\n');
        }
        if !(line.is_empty() && apart && !inside) {
            let _ = writeln!(text, "{line}");
        }
        inside ^= fence;
        if line.starts_with('#') && !inside {
            text.push('\n');
        }
        // In a block it starts a comment.
        if line.starts_with("# ") && !inside {
            let _ = writeln!(text, "Level: {}.\n", level(code));
        }
    }
    format!("{}\n", text.trim_end())
}

/// The first sentence of what a code says, on one line.
fn sentence(code: &Code) -> String {
    let (_, rest) = code.page.split_once("## What it says\n").unwrap();
    let paragraph = rest.trim_start().split("\n \n").next().unwrap().split("\n\n").next().unwrap();
    let line = paragraph.split_whitespace().collect::<Vec<_>>().join(" ");
    line.split_inclusive(". ").next().unwrap_or_default().trim().replace('|', "\\|")
}

/// What each target may do otherwise than the policy says, from the tables that proofs are checked against.
fn gaps() -> String {
    let mut text = String::from(
        "# Gaps\n\n\
        A system can't always hold a rule as it is written. Where it can't, that is a *gap*, told at the rule with an access that shows it: *stricter*, the\n\
        system denies what the policy permits; *looser*, it permits what the policy denies, which is an error unless a comment accepts it; *beside*, nothing is\n\
        decided otherwise, but the words promise more than the system can hold. Each text that `srt compile` writes for macOS and Windows is read back, and what\n\
        it does otherwise than the policy must be exactly the gaps that are told for it. Arguments for bubblewrap are read back as well, and must show, over all paths,\n\
        what the plan of mounts says that `srt run` carries out; and where that plan is not the policy, but for names that only others could make meanwhile, a gap is told. There are no others than these:\n\n\
        | gap | Linux | macOS | Windows | says |\n|---|---|---|---|---|\n",
    );
    let of = |code: &Code| {
        Target::ALL.map(|target| {
            let kind = target.gaps().iter().find(|kind| kind.code == code);
            kind.map(|kind| match kind.direction {
                Direction::Stricter => "stricter",
                Direction::Looser => "**looser**",
                Direction::Beside => "beside",
            })
        })
    };
    for code in sandbox_runtime::codes() {
        let name = code.name;
        let [linux, macos, windows] = of(code).map(Option::unwrap_or_default);
        if !(linux.is_empty() && macos.is_empty() && windows.is_empty()) {
            let says = sentence(code);
            let _ = writeln!(text, "| [`{name}`](findings/{name}.md) | {linux} | {macos} | {windows} | {says} |");
        }
    }
    text
}

/// Every generated file of the book, by its path from `book/src`.
fn generated() -> BTreeMap<PathBuf, String> {
    let codes = sandbox_runtime::codes();
    let mut index = String::from(
        "# Findings\n\n\
        What `srt` says about a policy has a name, and a page here. `srt explain NAME` shows the same page. In a page, a block that\n\
        lists files says what is on the machine besides the usual: `d` a directory, `l` a link, `x` a directory that can't be listed, `h` another\n\
        name of a file, `m` a mount (kind, device, root, place), `v` a variable.\n\n\
        An *error* stops a run. A *warning* does not, but does under `srt check --deny warnings`. A *note* is for reading. A comment\n\
        `# lint: allow(NAME) REASON` above a statement accepts the finding there.\n\n\
        | finding | level | says |\n|---|---|---|\n",
    );
    let mut summary = fs::read_to_string(root().join("book/src/SUMMARY.md")).unwrap();
    let end = summary.find(START).expect("the summary has the findings") + START.len();
    summary.truncate(end);
    let mut files = BTreeMap::new();
    for code in codes {
        let name = code.name;
        let _ = writeln!(index, "| [`{name}`](findings/{name}.md) | {} | {} |", level(code), sentence(code));
        let _ = writeln!(summary, "  - [{name}](findings/{name}.md)");
        files.insert(Path::new("findings").join(name).with_extension("md"), page(code));
    }
    files.insert("findings.md".into(), index);
    files.insert("gaps.md".into(), gaps());
    files.insert("SUMMARY.md".into(), summary);
    files
}

#[test]
fn the_pages_of_findings_are_those_of_the_code() {
    let source = root().join("book/src");
    let generated = generated();
    let update = std::env::var_os("UPDATE_PAGES").is_some();
    let mut wrong = Vec::new();
    for (path, text) in &generated {
        let path = source.join(path);
        if fs::read_to_string(&path).ok().as_ref() == Some(text) {
            continue;
        }
        if update {
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(&path, text).unwrap();
        } else {
            wrong.push(path);
        }
    }
    for path in files("book/src/findings", "md") {
        if !generated.contains_key(path.strip_prefix(&source).unwrap()) {
            if update {
                fs::remove_file(&path).unwrap();
            } else {
                wrong.push(path);
            }
        }
    }
    assert!(wrong.is_empty(), "not what the code says; run `make pages`: {wrong:#?}");
}

/// Targets of links in a Markdown text, those in blocks and in code aside.
fn links(markdown: &str) -> Vec<String> {
    let mut found = Vec::new();
    let mut inside = false;
    for line in markdown.lines() {
        if line.starts_with("```") {
            inside = !inside;
            continue;
        }
        if inside {
            continue;
        }
        // What stands between backticks is no link.
        let text: String = line.split('`').step_by(2).collect::<Vec<_>>().join("`");
        for part in text.split("](").skip(1) {
            found.extend(part.split(')').next().map(str::to_owned));
        }
    }
    found
}

/// The anchors of a text's headings, as mdbook makes them.
fn anchors(markdown: &str) -> BTreeSet<String> {
    let headings = markdown.lines().filter(|line| line.starts_with('#'));
    let anchor = |heading: &str| {
        let text = heading.trim_start_matches('#').trim().to_lowercase();
        text.chars()
            .filter_map(|c| match c {
                ' ' => Some('-'),
                _ if c.is_alphanumeric() || c == '-' || c == '_' => Some(c),
                _ => None,
            })
            .collect()
    };
    headings.map(anchor).collect()
}

#[test]
fn links_lead_somewhere() {
    let mut wrong = String::new();
    let mut count = 0;
    let mut documents = files("book/src", "md");
    documents.push(root().join("README.md"));
    for path in documents {
        let text = fs::read_to_string(&path).unwrap();
        // What mdbook puts in from another file.
        for put_in in text.split("{{#include ").skip(1) {
            let file = put_in.split("}}").next().unwrap();
            if !path.parent().unwrap().join(file).is_file() {
                let _ = writeln!(wrong, "{}: `{file}` is not there to be put in", path.display());
            }
        }
        for link in links(&text) {
            if link.starts_with("http://") || link.starts_with("https://") {
                continue;
            }
            count += 1;
            let (target, anchor) = link.split_once('#').map_or((link.as_str(), None), |(to, at)| (to, Some(at)));
            let to = if target.is_empty() { path.clone() } else { path.parent().unwrap().join(target) };
            if !to.exists() {
                let _ = writeln!(wrong, "{}: `{link}` leads nowhere", path.display());
            } else if anchor.is_some_and(|anchor| !anchors(&fs::read_to_string(&to).unwrap()).contains(anchor)) {
                let _ = writeln!(wrong, "{}: `{link}` names no heading", path.display());
            }
        }
    }
    assert!(count > 40, "only {count} links were found: is this test reading the book?");
    assert!(wrong.is_empty(), "{wrong}");
}

#[test]
fn the_summary_lists_every_page_once() {
    let source = root().join("book/src");
    let summary = fs::read_to_string(source.join("SUMMARY.md")).unwrap();
    let mut listed: Vec<_> = links(&summary).into_iter().map(|link| source.join(link)).collect();
    listed.sort();
    let pages: Vec<_> = files("book/src", "md").into_iter().filter(|path| !path.ends_with("SUMMARY.md")).collect();
    assert_eq!(listed, pages);
}

/// The schema of events names the fields that events have, and asks for those that are always there.
#[test]
fn the_schema_of_events_is_that_of_the_code() {
    use sandbox_runtime::event::{Connection, Event, RuleText, Violation};
    use sandbox_runtime::ir::Why;
    let text = std::fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join("book/src/json.md")).unwrap();
    let blocks = text.split("```json\n").skip(1).map(|rest| rest.split("```").next().unwrap());
    let schemas = blocks.map(|block| serde_json::from_str::<serde_json::Value>(block).unwrap());
    let schema = schemas.into_iter().find(|schema| schema["$defs"]["violation"].is_object()).unwrap();
    let some = |text: &str| Some(text.to_owned());
    let rule = Some(RuleText { file: String::new(), line: 1, text: String::new() });
    let bare = Violation::refused("write");
    let full = Violation {
        pid: Some(1),
        comm: some("sh"),
        count: Some(2),
        path: some("/x"),
        host: some("x"),
        port: Some(1),
        address: some("x"),
        why: Some(Why::Denied),
        rule: rule.clone(),
        because: some("x"),
        remedy: some("x"),
        detail: some("x"),
        ..bare.clone()
    };
    let connection = |more: bool| Connection {
        path: some("x").filter(|_| more),
        host: some("x").filter(|_| more),
        port: more.then_some(1),
        address: more.then(String::new),
        through: more.then(String::new),
        rule: rule.clone().filter(|_| more),
        sent: more.then_some(1),
        received: more.then_some(1),
        milliseconds: more.then_some(1),
        ..Connection::allowed("connect")
    };
    let dropped = || Event::Dropped { count: 1 };
    let limit = || {
        let limit = sandbox_runtime::vocabulary::LimitKind::Memory;
        Event::Limit(sandbox_runtime::event::Limit { timestamp: String::new(), limit, most: 1, found: 2 })
    };
    for (name, bare, full) in [
        ("violation", Event::Violation(bare), Event::Violation(full)),
        ("connection", Event::Connection(connection(false)), Event::Connection(connection(true))),
        ("limit", limit(), limit()),
        ("dropped", dropped(), dropped()),
    ] {
        let keys = |event: &Event| -> BTreeSet<String> {
            serde_json::to_value(event).unwrap().as_object().unwrap().keys().cloned().collect()
        };
        let own = &schema["$defs"][name];
        let properties: BTreeSet<String> = own["properties"].as_object().unwrap().keys().cloned().collect();
        let required: BTreeSet<String> = serde_json::from_value(own["required"].clone()).unwrap();
        assert_eq!((properties, required), (keys(&full), keys(&bare)), "{name}");
    }
    let all = [Why::Forbidden, Why::Denied, Why::Default, Why::ReadDenied, Why::Special];
    assert_eq!(schema["$defs"]["violation"]["properties"]["why"]["enum"], serde_json::to_value(all).unwrap());
}
