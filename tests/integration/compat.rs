//! Other tools' files: what each key comes to, and that what is imported decides as the other tool's documents say.

mod keys;
mod precedence;
mod systems;

use sandbox_runtime::compat::{Places, Text as Part, Translation, settings};
use sandbox_runtime::diagnostic::any_error;
use sandbox_runtime::ir::Policy;
use sandbox_runtime::resolve::{Files, Options, Text, resolve};
use sandbox_runtime::source::Sources;
use sandbox_runtime::vocabulary::System;
use std::collections::BTreeMap;
use std::io;

struct NoFiles;

impl Files for NoFiles {
    fn read(&self, _: &str) -> io::Result<Text> {
        Err(io::ErrorKind::NotFound.into())
    }
}

/// The policy that texts given together are, on one system.
#[track_caller]
fn policy(texts: Vec<Part>, system: System) -> Policy {
    policy_and_sources(texts, system).0
}

#[track_caller]
fn policy_and_sources(texts: Vec<Part>, system: System) -> (Policy, Sources) {
    let mut sources = Sources::default();
    let given: Vec<_> = texts.into_iter().map(|text| text.add_to(&mut sources)).collect();
    let options = Options { system, defines: BTreeMap::new() };
    let (policy, said) = resolve(&given, &mut sources, &NoFiles, &options);
    let shown: Vec<_> = said.iter().map(|said| format!("{}: {}", said.code.name, said.message)).collect();
    assert!(!any_error(&said), "{shown:#?}");
    (policy.unwrap(), sources)
}

/// One text alone.
fn alone(text: impl Into<String>) -> Vec<Part> {
    vec![Part { name: "p".to_owned(), text: text.into(), first_line: 1 }]
}

const PLACES: Places<'static> = Places { workspace: Some("/srv/work"), home: Some("/home/me") };

fn translated(text: &str) -> Translation {
    settings::translate(text, PLACES, None)
}

/// What a translation says beside its base: statements, then sentences with what becomes of them.
fn shown(translation: &Translation) -> String {
    let mut text = String::new();
    for statement in &translation.statements {
        let place = &statement.place;
        text.push_str(&format!("{}:{} {}\n", place.line, place.column, place.key));
        for line in statement.lines.iter().filter(|line| !line.starts_with("# lint")) {
            text.push_str(&format!("    {line}\n"));
        }
    }
    for said in &translation.said {
        let word = format!("{:?}", said.gravity).to_lowercase();
        let place = &said.place;
        text.push_str(&format!("{}:{} {}\n    {word}: {}\n", place.line, place.column, place.key, said.message));
    }
    text
}
