//! The words of texts that are whole, and of those that are being written.

#![allow(clippy::unwrap_used)]
use super::*;
use crate::source::{Sources, Span};
use crate::syntax::ast::{File, LetValue, Statement, StatementKind, Target};
use proptest::prelude::*;

/// The targets of a tree, each cut into the tokens that the row has for it.
fn targets(file: &File) -> Vec<Span> {
    fn add(statements: &[Statement], spans: &mut Vec<Span>) {
        for statement in statements {
            if let StatementKind::On { body, .. } = &statement.kind {
                add(body, spans);
            }
            let mut all = |targets: &[Target]| spans.extend(targets.iter().map(|target| target.span));
            match &statement.kind {
                StatementKind::Rule(rule) => [&rule.targets, &rule.except].into_iter().for_each(|list| all(list)),
                StatementKind::Expect(said) => [&said.targets, &said.except].into_iter().for_each(|list| all(list)),
                StatementKind::Ignore(said) => [&said.targets, &said.except].into_iter().for_each(|list| all(list)),
                StatementKind::Let { value: LetValue::Targets(targets), .. } => all(targets),
                StatementKind::Assume { targets, .. } => all(targets),
                _ => {}
            }
        }
    }
    let mut spans = Vec::new();
    add(&file.statements, &mut spans);
    spans.sort();
    spans
}

fn std_texts() -> [&'static str; 3] {
    [
        include_str!("../../../policies/std/shell-config.policy"),
        include_str!("../../../policies/std/secrets.policy"),
        include_str!("../../../policies/coding-agent.policy"),
    ]
}

fn agree(text: &str) {
    let mut sources = Sources::default();
    let id = sources.add("p", text);
    let (file, said) = crate::syntax::parse(&sources, id);
    assert!(!crate::diagnostic::any_error(&said), "{text}\n{said:?}");
    let (words, _) = words(text);
    assert!(words.iter().all(|word| word.role != Role::Unknown), "{text}\n{words:?}");
    let spans = targets(&file);
    for span in &spans {
        let inside =
            words.iter().filter(|word| span.range().start <= word.range.start && word.range.end <= span.range().end);
        let inside: Vec<_> = inside.filter(|word| !matches!(word.role, Role::Comment)).collect();
        assert!(!inside.is_empty(), "{}", sources.slice(*span));
        assert!(inside.iter().all(|word| matches!(word.role, Role::Target | Role::Keyword)), "{inside:?}");
        assert_eq!(inside[0].range.start, span.range().start);
        assert_eq!(inside[inside.len() - 1].range.end, span.range().end, "{}", sources.slice(*span));
    }
    let covered = |word: &Word| spans.iter().any(|span| span.range().contains(&word.range.start));
    for word in words.iter().filter(|word| word.role == Role::Target && word.place == Place::Target) {
        assert!(covered(word), "{} in\n{text}", &text[word.range.clone()]);
    }
}

#[test]
fn the_words_are_where_the_tree_has_its_targets() {
    for text in std_texts() {
        agree(text);
    }
    agree(
        "srt 1\nlet a = [x.y, \"z.w\"]\nlet l = lines(\"hosts.txt\")\nallow read, write [/a, # why\n  exact ~/b,\n]\n  except /a/{b,c}/[d-f]\n  # and\n  because \"it, [is]\"\n\
         allow connect [::1]:443\nallow connect [[::1]:443, 10.0.0.0/8:{80,443}/udp]\nset A=\"b c\"\nset B=c=d\nlimit memory 4GiB, time 3m\n\
         on linux, macos { expect allow read exact /x }\non windows {\n  allow socket C:/a\n}\nallow socket $env.X?\nallow read $env.Y or /z\nassume $Q inside ~\nwithin \"c.policy\"\ndefault env deny\nallow read /a\\,b\n",
    );
}

#[test]
fn a_line_that_is_being_written_says_what_may_follow() {
    for (text, place) in [
        ("", Place::Statement),
        ("allow ", Place::Verb),
        ("allow read, ", Place::Verb),
        ("allow read ", Place::Target),
        ("allow read [/a, ", Place::Target),
        ("allow read [/a", Place::AfterTarget),
        ("allow read /a ", Place::AfterTarget),
        ("allow read [/a,\n  /b", Place::AfterTarget),
        ("allow read [/a,\nallow ", Place::Verb),
        ("use ", Place::Used),
        ("on linux, ", Place::System),
        ("on linux { ", Place::Statement),
        ("limit ", Place::Limit),
        ("default ", Place::Subject),
        ("default read ", Place::DefaultAnswer),
        ("expect ", Place::ExpectAnswer),
        ("let a ", Place::LetEquals),
        ("let a=", Place::Target),
        ("assume $A ", Place::Relation),
    ] {
        assert_eq!(words(text).1, place, "{text}");
    }
}

#[test]
fn variables_stand_where_a_target_starts() {
    let found = |text: &str| variables(text).into_iter().map(|range| text[range].to_owned()).collect::<Vec<_>>();
    assert_eq!(found("$WORKSPACE/a$b"), ["WORKSPACE"]);
    assert_eq!(found("\"$llm\""), ["llm"]);
    assert_eq!(found("$env.A_B?"), ["env.A_B"]);
    assert_eq!(found("{$a,$b}/$c"), ["a", "b"]);
    assert_eq!(found("{/x,$b}:22"), ["b"]);
    assert_eq!(found("/x{$a,$b}"), [""; 0]);
    assert_eq!(found("\\$a"), [""; 0]);
    assert_eq!(found("$"), [""; 0]);
}

proptest! {
    #[test]
    fn words_cover_whatever_is_written_once_and_in_order(text in "([a-z/$\"\\[\\]{},=#\\\\() \t\n\u{e9}\u{1F600}]|allow |read |let |except |on |set |lines\\()*") {
        let mut at = 0;
        for word in words(&text).0 {
            prop_assert!(word.range.start >= at && word.range.end > word.range.start);
            prop_assert!(text[at..word.range.start].chars().all(char::is_whitespace), "{:?}", &text[at..word.range.start]);
            at = word.range.end;
            for range in variables(&text[word.range.clone()]) {
                prop_assert!(!text[word.range.clone()][range].is_empty());
            }
        }
        prop_assert!(text[at..].chars().all(char::is_whitespace));
    }
}
