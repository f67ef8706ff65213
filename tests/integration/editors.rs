//! The extension in `editors/vscode`, with the editor's own libraries from npm: it can be packed, its grammar colours what people
//! write as the language has it, and it starts `srt lsp`.
//!
//! The editor itself is not here: what it would do with the package is not tried.

use super::documents::{files, root};
use super::support::{output, skip, srt};
use sandbox_runtime::diagnostic::any_error;
use sandbox_runtime::source::Sources;
use sandbox_runtime::syntax::{Role, parse, words};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

#[test]
fn the_vscode_extension_is_packed_colours_and_starts_the_server() {
    let Some(extension) = installed() else { return };
    packs(extension.path());
    colours(extension.path());
    starts(extension.path());
}

fn node(extension: &Path, program: &str, arguments: &[PathBuf]) -> serde_json::Value {
    let script = root().join("tests/integration/editors").join(program);
    let ended = output(Command::new("node").arg(script).arg(extension).args(arguments));
    serde_json::from_str(ended.ok()).unwrap_or_else(|error| panic!("{error}: {ended:?}"))
}

/// A copy of the extension with what it needs, by its lock file.
fn installed() -> Option<tempfile::TempDir> {
    let version = Command::new("node").arg("--version").output();
    let version = version.map(|said| String::from_utf8_lossy(&said.stdout).into_owned()).unwrap_or_default();
    let major = version.trim_start_matches('v').split('.').next().and_then(|major| major.parse::<u32>().ok());
    if major.is_none_or(|major| major < 20) {
        skip("the extension", "node 20 or later is not installed, which its packer wants");
        return None;
    }
    let folder = tempfile::tempdir().unwrap();
    let from = root().join("editors/vscode");
    for entry in ["", "syntaxes"] {
        fs::create_dir_all(folder.path().join(entry)).unwrap();
        for file in fs::read_dir(from.join(entry)).unwrap().flatten().filter(|file| file.path().is_file()) {
            fs::copy(file.path(), folder.path().join(entry).join(file.file_name())).unwrap();
        }
    }
    let mut npm = Command::new("npm");
    npm.args(["ci", "--ignore-scripts", "--no-audit", "--no-fund", "--loglevel=error"]).current_dir(folder.path());
    let ended = output(&mut npm);
    if ended.code != 0
        && ["ENOTFOUND", "ECONNREFUSED", "ETIMEDOUT", "EAI_AGAIN"].iter().any(|code| ended.stderr.contains(code))
    {
        skip("the extension", "the registry that npm names is not reached from here");
        return None;
    }
    ended.ok();
    Some(folder)
}

/// What an editor installs has all that the extension is, and nothing of what it is made with.
fn packs(extension: &Path) {
    output(Command::new("npm").args(["run", "--silent", "package"]).current_dir(extension)).ok();
    let list = "import sys, zipfile; print('\\n'.join(zipfile.ZipFile(sys.argv[1]).namelist()))";
    let ended = output(Command::new("python3").args(["-c", list]).arg(extension.join("srt-policy.vsix")));
    let packed: Vec<&str> = ended.ok().lines().collect();
    for wanted in [
        "extension.vsixmanifest",
        "extension/extension.js",
        "extension/package.json",
        "extension/LICENSE.txt",
        "extension/language-configuration.json",
        "extension/syntaxes/srt-policy.tmLanguage.json",
        "extension/node_modules/vscode-languageclient/package.json",
        "extension/node_modules/vscode-languageserver-protocol/package.json",
    ] {
        assert!(packed.contains(&wanted), "{wanted} is not in {packed:#?}");
    }
    for other in ["vscode-textmate", "@vscode", "package-lock.json"] {
        assert!(!packed.iter().any(|name| name.contains(other)), "{other} is in the package");
    }
}

/// The letter of a scope; a blank where it has no colour.
fn letter(scope: &str) -> char {
    let letters = [
        ("comment.", 'c'),
        ("keyword.other.lint", 'c'),
        ("entity.name.tag.finding", 'c'),
        ("keyword.", 'k'),
        ("support.function.verb", 'v'),
        ("constant.language", 'e'),
        ("entity.name.namespace", 'm'),
        ("variable.", '$'),
        ("constant.numeric", 'n'),
        ("constant.", '*'),
        ("string.", 's'),
        ("punctuation.", 'p'),
    ];
    letters.iter().find(|(start, _)| scope.starts_with(start)).map_or(' ', |(_, letter)| *letter)
}

/// The letters that a word may have, by what it is there for.
fn letters_of(role: Role) -> &'static str {
    match role {
        Role::Keyword => "k",
        Role::Verb => "v",
        Role::System | Role::Choice => "e",
        Role::Number => "n",
        Role::Name => "$",
        Role::Module => "m",
        // With variables, wildcards, escapes and ports in them.
        Role::File | Role::Target | Role::Text => "s$*n",
        Role::Comment => "c",
        Role::Mark => "p",
        Role::Unknown => "",
    }
}

/// Each word has the colour of what it is there for, as the language's own reader says: of every shipped policy, and of every
/// policy in the book that has no fault.
fn colours(extension: &Path) {
    let shipped = files("policies", "policy");
    let folder = tempfile::tempdir().unwrap();
    let mut all = shipped.clone();
    for page in files("book", "md") {
        for block in fs::read_to_string(&page).unwrap().split("```policy").skip(1) {
            let body: String =
                block.split_inclusive('\n').skip(1).take_while(|line| !line.starts_with("```")).collect();
            let path = folder.path().join(format!("{}.policy", all.len()));
            let mut sources = Sources::default();
            let head = if body.contains("srt 1") { "" } else { "srt 1\n" };
            let source = sources.add("p", format!("{head}{body}"));
            if !any_error(&parse(&sources, source).1) {
                fs::write(&path, body).unwrap();
                all.push(path);
            }
        }
    }
    assert!(all.len() > shipped.len() + 100, "only {} policies were found", all.len());
    let said = node(extension, "colours.cjs", &all);
    let mut wrong = String::new();
    for (path, lines) in all.iter().zip(said.as_array().unwrap()) {
        let text = fs::read_to_string(path).unwrap();
        let mut letters: Vec<char> = Vec::new();
        let mut shown = String::new();
        for (line, tokens) in text.split('\n').zip(lines.as_array().unwrap()) {
            let mut of_line = Vec::new();
            for token in tokens.as_array().unwrap() {
                let at = |place: usize| usize::try_from(token[place].as_u64().unwrap()).unwrap();
                of_line.resize(at(1).max(of_line.len()), ' ');
                of_line[at(0)..at(1)].fill(letter(token[2].as_str().unwrap()));
            }
            // One for each byte, from one for each UTF-16 unit.
            let mut unit = 0;
            let mut marks = String::new();
            for character in line.chars() {
                let mark = if character.is_whitespace() { ' ' } else { of_line[unit] };
                letters.extend(std::iter::repeat_n(mark, character.len_utf8()));
                marks.push(mark);
                unit += character.len_utf16();
            }
            letters.push(' ');
            // Comments are rewritten often, and have one colour.
            if !line.trim_start().starts_with('#') && !line.trim().is_empty() {
                shown.push_str(&format!("{line}\n{}\n", marks.trim_end()));
            }
        }
        for word in words(&text).0 {
            for at in word.range.clone().filter(|at| !text.as_bytes()[*at].is_ascii_whitespace()) {
                if !letters_of(word.role).contains(letters[at]) {
                    let written = &text[word.range.clone()];
                    wrong.push_str(&format!("{}: {:?} `{written}` is {}\n", path.display(), word.role, letters[at]));
                    break;
                }
            }
        }
        if let Ok(name) = path.strip_prefix(root().join("policies")) {
            let name = name.display().to_string().replace('/', "-").replace(".policy", "");
            let mut settings = insta::Settings::clone_current();
            settings.set_snapshot_path(root().join("snapshots/editors"));
            settings.set_prepend_module_to_snapshot(false);
            settings.set_omit_expression(true);
            settings.bind(|| insta::assert_snapshot!(name, shown));
        }
    }
    assert!(wrong.is_empty(), "{wrong}");
}

/// The extension asks for a server that speaks, of the files that it says are its own.
fn starts(extension: &Path) {
    let policy = extension.join("wrong.policy");
    fs::write(&policy, "srt 1\ndefault read deny\nallow connect $registry\nalow read /a\n").unwrap();
    let said = node(extension, "client.cjs", &[srt().to_owned(), policy]);
    let manifest: serde_json::Value =
        serde_json::from_str(&fs::read_to_string(extension.join("package.json")).unwrap()).unwrap();
    assert_eq!(said["selector"][0]["language"], manifest["contributes"]["languages"][0]["id"]);
    assert_eq!(said["server"]["args"], serde_json::json!(["lsp", "--define", "registry=registry.example"]));
    assert_eq!(said["findings"], serde_json::json!([["syntax", 3]]));
    assert!(said["capabilities"].as_array().unwrap().len() >= 9, "{said}");
    assert_eq!((&said["status"], &said["subscriptions"]), (&0.into(), &1.into()));
}
