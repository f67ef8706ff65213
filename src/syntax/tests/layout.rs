//! The formatter: twice is once, nothing changes its meaning, comments stay.

use super::generate::policy;
use super::{read, said};
use crate::source::{SourceId, Sources, Span};
use crate::syntax::ast::{File, LetValue, Shape, Statement, StatementKind, Target};
use crate::syntax::format;
use proptest::prelude::*;

fn formatted(text: &str) -> String {
    let mut sources = Sources::default();
    let id = sources.add("test.policy", text);
    format(&sources, id).unwrap_or_else(|diagnostics| panic!("{:?}\n{text}", said(&diagnostics)))
}

/// The tree with every span alike, so that two layouts of one policy are equal.
fn without_spans(mut file: File) -> File {
    let mut sources = Sources::default();
    let nowhere = Span::new(sources.add("", ""), 0..0);
    file.statements.iter_mut().for_each(|statement| erase_statement(statement, nowhere));
    file
}

fn erase_statement(statement: &mut Statement, nowhere: Span) {
    statement.span = nowhere;
    for suppression in &mut statement.suppressions {
        suppression.span = nowhere;
        suppression.code.span = nowhere;
    }
    match &mut statement.kind {
        StatementKind::Version(version) => version.span = nowhere,
        StatementKind::UseStd(name) | StatementKind::UsePath(name) | StatementKind::Within(name) => name.span = nowhere,
        StatementKind::Let { name, value } => {
            name.span = nowhere;
            match value {
                LetValue::Targets(targets) => erase_targets(targets, nowhere),
                LetValue::Lines(file) => file.span = nowhere,
            }
        }
        StatementKind::Default { subject, .. } => subject.span = nowhere,
        StatementKind::Rule(rule) => {
            rule.effect.span = nowhere;
            rule.verbs.iter_mut().for_each(|verb| verb.span = nowhere);
            erase_targets(&mut rule.targets, nowhere);
            erase_targets(&mut rule.except, nowhere);
            rule.because.iter_mut().for_each(|because| because.span = nowhere);
        }
        StatementKind::Set { name, value } => {
            name.span = nowhere;
            value.span = nowhere;
        }
        StatementKind::Limit(limits) => {
            for limit in limits {
                limit.kind.span = nowhere;
                limit.value.span = nowhere;
            }
        }
        StatementKind::On { systems, body } => {
            for system in systems {
                system.span = nowhere;
            }
            for statement in body {
                erase_statement(statement, nowhere);
            }
        }
        StatementKind::Expect(expect) => {
            expect.verbs.iter_mut().for_each(|verb| verb.span = nowhere);
            erase_targets(&mut expect.targets, nowhere);
            erase_targets(&mut expect.except, nowhere);
        }
        StatementKind::Ignore(ignore) => {
            ignore.verbs.iter_mut().for_each(|verb| verb.span = nowhere);
            erase_targets(&mut ignore.targets, nowhere);
            erase_targets(&mut ignore.except, nowhere);
            ignore.because.iter_mut().for_each(|because| because.span = nowhere);
        }
        StatementKind::Assume { variable, targets, .. } => {
            variable.span = nowhere;
            erase_targets(targets, nowhere);
        }
    }
}

fn erase_targets(targets: &mut [Target], nowhere: Span) {
    for target in targets {
        target.span = nowhere;
        target.shapes.iter_mut().for_each(|shape| erase_shape(shape, nowhere));
    }
}

fn erase_shape(shape: &mut Shape, nowhere: Span) {
    let ports = match shape {
        Shape::Host(host) => &mut host.ports,
        Shape::Address(address) => &mut address.ports,
        Shape::Variable(variable) => {
            if let Some(fallback) = &mut variable.variable.fallback {
                erase_shape(fallback, nowhere);
            }
            &mut variable.ports
        }
        Shape::Path(_) | Shape::Name(_) | Shape::Abstract(_) => return,
    };
    if let Some(ports) = ports {
        ports.span = nowhere;
    }
}

/// The comments of a text in order, found without the grammar: a `#` at the start of a line or after a blank, outside of
/// quotes.
fn comments(text: &str) -> Vec<String> {
    let text = text.trim_start_matches('\u{feff}');
    let mut found = Vec::new();
    for line in text.lines() {
        let mut quoted = false;
        let mut characters = line.char_indices();
        let mut previous = ' ';
        while let Some((at, character)) = characters.next() {
            match character {
                '\\' => {
                    characters.next();
                }
                '"' => quoted = !quoted,
                '#' if !quoted && previous.is_whitespace() => {
                    found.push(line[at..].trim_end().to_owned());
                    break;
                }
                _ => {}
            }
            previous = character;
        }
    }
    found
}

/// The invariants of one text.
pub(super) fn holds(text: &str) {
    let (before, diagnostics) = read(text);
    assert_eq!(said(&diagnostics), [] as [String; 0], "{text}");
    let once = formatted(text);
    let (after, diagnostics) = read(&once);
    assert_eq!(said(&diagnostics), [] as [String; 0], "of\n{text}\ncame\n{once}");
    assert_eq!(without_spans(before), without_spans(after), "of\n{text}\ncame\n{once}");
    assert_eq!(comments(text), comments(&once), "of\n{text}\ncame\n{once}");
    assert_eq!(formatted(&once), once, "of\n{text}");
    // A space that belongs to a name is escaped.
    let trailing = once.replace("\\ ", "").contains(" \n");
    assert!(once.ends_with('\n') && !once.contains("\n\n\n") && !trailing, "{once}");
}

#[test]
fn policies_at_hand_keep_their_meaning() {
    for (_, text) in super::recovery::policies() {
        holds(&text);
        holds(&text.replace('\n', "\r\n"));
        holds(&format!("\u{feff}{text}"));
    }
}

#[test]
fn one_layout() {
    for (text, expected) in [
        ("srt   1", "srt 1\n"),
        ("\n\nsrt 1\n\n\n\nuse\tstd/git  # c  \n\n", "srt 1\n\nuse std/git # c\n"),
        ("srt 1\nallow read ,write   \"/a\"", "srt 1\nallow read, write /a\n"),
        ("srt 1\nallow read ,  write   \"/a\"", "srt 1\nallow read, write /a\n"),
        ("srt 1\nallow read [\n\"/a b\",\n/b\n]", "srt 1\nallow read [\"/a b\", /b]\n"),
        (
            "srt 1\nallow read [ # head\n/a, # one\n\n\n# two\n/b]",
            "srt 1\nallow read [ # head\n  /a, # one\n\n  # two\n  /b,\n]\n",
        ),
        (
            "srt 1\nallow read /a # c\n# d\n   except /a/b\nbecause \"x\" # e",
            "srt 1\nallow read /a # c\n  # d\n  except /a/b\n  because \"x\" # e\n",
        ),
        ("srt 1\nallow read /a\n\n  except /a/b\n because \"x\"", "srt 1\nallow read /a except /a/b because \"x\"\n"),
        (
            "srt 1\non macos { allow mach a.b } # c\non linux ,macos{\n\n  set A=\"1\"\n\n}",
            "srt 1\non macos {\n  allow mach a.b\n} # c\non linux, macos {\n  set A=1\n}\n",
        ),
        (
            "srt 1\nset A=\"a b\"\nset B=\"\"\nlimit memory 1GiB ,files 3",
            "srt 1\nset A=\"a b\"\nset B=\"\"\nlimit memory 1GiB, files 3\n",
        ),
        ("srt 1\nlet x=[a.b]\nlet y =\"lines(x)\"", "srt 1\nlet x = [a.b]\nlet y = \"lines(x)\"\n"),
        ("srt 1\nallow connect [\"read\", \"a.b\", \"x#y\"]", "BAD"),
        (
            "srt 1\nassume   $CACHE outside \"/a\"\nallow read   exact  \"$env.X\" or  \"/b\"",
            "srt 1\nassume $CACHE outside /a\nallow read exact $env.X or /b\n",
        ),
    ] {
        let mut sources = Sources::default();
        let id: SourceId = sources.add("test.policy", text);
        match format(&sources, id) {
            Ok(got) => assert_eq!(got, expected, "{text}"),
            Err(diagnostics) => assert_eq!(expected, "BAD", "{text}: {:?}", said(&diagnostics)),
        }
    }
}

#[test]
fn long_lists_are_broken() {
    let items: Vec<String> = (0..12).map(|n| format!("host-{n}.example.com")).collect();
    let text = format!("srt 1\nallow connect [{}] because \"all of them\"\n", items.join(", "));
    let broken = format!("srt 1\nallow connect [\n  {},\n]\n  because \"all of them\"\n", items.join(",\n  "));
    assert_eq!(formatted(&text), broken);
    holds(&text);
}

proptest! {
    #![proptest_config(ProptestConfig { cases: ProptestConfig::default().cases / 2, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn generated_policies_keep_their_meaning(text in policy()) {
        holds(&text);
    }
}
