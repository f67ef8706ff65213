//! The syntax as a whole: what is read, what is refused with which words, and that one fault costs one message.
#![allow(clippy::unwrap_used)]

mod generate;
mod layout;
mod messages;
mod pages;
mod recovery;
mod robust;
mod tokens;

use super::ast::{File, StatementKind};
use super::parse;
use crate::diagnostic::Diagnostic;
use crate::source::Sources;

/// Reads a text of its own.
fn read(text: &str) -> (File, Vec<Diagnostic>) {
    read_in(&mut Sources::default(), text)
}

/// Reads a text, and keeps it for what is said about it.
fn read_in(sources: &mut Sources, text: &str) -> (File, Vec<Diagnostic>) {
    let id = sources.add("test.policy", text);
    parse(sources, id)
}

/// The diagnostics as `code: message`, for failures that say what happened.
fn said(diagnostics: &[Diagnostic]) -> Vec<String> {
    diagnostics.iter().map(|d| format!("{}: {}", d.code.name, d.message)).collect()
}

const EXAMPLE: &str = include_str!("tests/policies/agent.policy");

#[test]
fn the_example_of_the_language_is_read() {
    let (file, diagnostics) = read(EXAMPLE);
    assert_eq!(said(&diagnostics), [] as [String; 0]);
    assert_eq!(file.statements.len(), 25);
}

#[test]
fn a_suppression_inside_an_on_block_is_the_indented_statements() {
    let (file, diagnostics) = read("srt 1\non linux {\n  # lint: allow(later-names) because\n  deny read /a/*\n}\n");
    assert_eq!(said(&diagnostics), [] as [String; 0]);
    let StatementKind::On { body, .. } = &file.statements[1].kind else { panic!("not an `on` block") };
    assert_eq!(body[0].suppressions.len(), 1);
}
