//! Whatever the text, there is an answer: no panic, spans inside the text, and time in proportion to it.

use super::{EXAMPLE, read, read_in, said};
use crate::source::{Sources, Span};
use crate::syntax::{LARGEST, format, shapes};
use crate::vocabulary::Kind;
use proptest::prelude::*;

fn survives(text: &str) {
    let mut sources = Sources::default();
    let (_, diagnostics) = read_in(&mut sources, text);
    for diagnostic in &diagnostics {
        assert!(
            !diagnostic.message.is_empty() && diagnostic.help.as_deref().is_some_and(|help| !help.is_empty()),
            "{diagnostic:?}"
        );
        for label in &diagnostic.labels {
            let range = label.span.range();
            assert!(text.get(range).is_some(), "{diagnostic:?} is not inside {text:?}");
        }
    }
    let id = sources.add("again", text);
    if format(&sources, id).is_ok() {
        super::layout::holds(text);
    }
    let span = Span::new(id, 0..text.len());
    for kind in [Kind::Path, Kind::Peer, Kind::Address, Kind::Variable, Kind::Service] {
        let _ = shapes(text, kind, span);
    }
}

/// Pieces of the language in any order.
fn soup() -> impl Strategy<Value = String> {
    let piece = proptest::sample::select(vec![
        "srt 1\n",
        "allow",
        "deny",
        "read",
        "connect",
        "write",
        " ",
        "\n",
        "\t",
        ",",
        "[",
        "]",
        "{",
        "}",
        "\"",
        "\\",
        "#",
        "# lint: allow(",
        "on linux",
        "on",
        "except",
        "because",
        "let x = ",
        "$",
        "$env.X",
        " or ",
        "?",
        "*",
        "**",
        "/",
        "//",
        "~",
        ":",
        ":{",
        "22",
        "-",
        "::1",
        "[::1]",
        "a.b",
        "exact ",
        "set A=",
        "limit ",
        "\r",
        "\r\n",
        "é",
        "\u{feff}",
        "\u{a0}",
        ".",
        "..",
        "use std/",
        "expect allow",
        "@",
        "!",
        "^",
        ")",
    ]);
    prop::collection::vec(piece, 0..40).prop_map(|pieces| pieces.concat())
}

/// A policy with some bytes cut out or put in.
fn torn() -> impl Strategy<Value = String> {
    (0..EXAMPLE.len(), 0..40_usize, "[ -~\n]{0,5}").prop_map(|(at, length, new)| {
        let from = (0..=at).rev().find(|at| EXAMPLE.is_char_boundary(*at)).unwrap_or(0);
        let to = (from + length..=EXAMPLE.len()).find(|at| EXAMPLE.is_char_boundary(*at)).unwrap_or(EXAMPLE.len());
        format!("{}{new}{}", &EXAMPLE[..from], &EXAMPLE[to..])
    })
}

proptest! {
    #![proptest_config(ProptestConfig { cases: ProptestConfig::default().cases, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn any_text(text in "\\PC{0,80}") {
        survives(&text);
        survives(&format!("srt 1\nallow read {text}"));
        survives(&format!("srt 1\nallow connect {text}"));
    }

    #[test]
    fn any_bytes(bytes in prop::collection::vec(any::<u8>(), 0..80)) {
        survives(&String::from_utf8_lossy(&bytes));
    }

    #[test]
    fn pieces_of_the_language(text in soup()) {
        survives(&text);
        survives(&format!("srt 1\n{text}"));
    }

    #[test]
    fn torn_policies(text in torn()) {
        survives(&text);
    }
}

#[test]
fn hostile_texts_end() {
    let many = 20_000;
    for text in [
        format!("srt 1\nallow read {}", "{".repeat(many)),
        format!("srt 1\nallow read {}a,b{}", "{".repeat(many), "}".repeat(many)),
        format!("srt 1\nallow read {}", "[".repeat(many)),
        format!("srt 1\nallow read [{}", "a,\n".repeat(many)),
        format!("srt 1\n{}", "allow read [\"/a\",\n".repeat(many / 10)),
        format!("srt 1\n{}", "x [\n".repeat(many / 10)),
        format!("srt 1\n{}", "\"\n".repeat(many / 10)),
        format!("srt 1\n{}", "on linux {\n".repeat(many / 10)),
        format!("srt 1\n{}", "}\n".repeat(many / 10)),
        format!("srt 1\nallow read $env.A{}", " or $env.A".repeat(many)),
        format!("srt 1\nallow read /{}", "{a,b}".repeat(many / 10)),
        format!("srt 1\nallow read /{}", "*".repeat(many)),
        format!("srt 1\nallow read /a\n{}", "# c\n".repeat(many)),
        format!("srt 1\nalow read /a\n{}", "  # c\n".repeat(many)),
        format!("srt 1\n{}", "  # c\nx\n".repeat(many / 10)),
        "\\".repeat(many),
        "#".repeat(many),
    ] {
        let (_, _) = read(&text);
    }
}

#[test]
fn a_text_that_is_too_large_is_refused() {
    let (file, diagnostics) = read(&"#".repeat(LARGEST + 1));
    assert!(file.statements.is_empty());
    assert_eq!(
        said(&diagnostics),
        [format!("syntax: the policy is {} bytes long, and {LARGEST} is the most", LARGEST + 1)]
    );
}

#[test]
fn a_block_keeps_its_suppressions() {
    let (file, diagnostics) = read("srt 1\n# lint: allow(x) y\non linux {\nallow read /a\n}\n");
    assert_eq!(said(&diagnostics), [] as [String; 0]);
    assert_eq!(file.statements[1].suppressions.len(), 1);
}

#[test]
fn suppressions_are_kept_with_their_statement() {
    let (file, diagnostics) =
        read("srt 1\n# lint: allow(broad-grant) one\n# and\n# lint: allow(dead-rule) two words\nallow read /\n");
    assert_eq!(said(&diagnostics), [] as [String; 0]);
    let kept: Vec<_> =
        file.statements[1].suppressions.iter().map(|one| (one.code.value.as_str(), one.reason.as_str())).collect();
    assert_eq!(kept, [("broad-grant", "one"), ("dead-rule", "two words")]);
    for text in [
        "# lint: allow(x) y\n",
        "allow read / # lint: allow(x) y\n",
        "allow read [ # lint: allow(x) y\n/a]\n",
        "allow read /a\n# lint: allow(x) y\nexcept /a/b\n",
        "# lint: allow(x) y\n\nallow read /\n",
        "# lint: allow(x)\nallow read /\n",
        "# lint: allow() y\nallow read /\n",
        "# lint: y\nallow read /\n",
        "on linux {\nallow read /a\n# lint: allow(x) y\n}\n",
    ] {
        let (_, diagnostics) = read(&format!("srt 1\n{text}"));
        assert!(
            diagnostics.len() == 1 && diagnostics[0].code.name == "lint-comment",
            "{text}: {:?}",
            said(&diagnostics)
        );
    }
}
