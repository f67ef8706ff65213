//! Characters that may stand nowhere in a policy: a reader cannot see them, or sees something else than what is read.

use super::codes;
use crate::diagnostic::Diagnostic;
use crate::source::{SourceId, Span, hides};

/// The character by its number, which can be shown.
pub(super) fn describe(character: char) -> String {
    let name = match character {
        '\u{0}' => " (NUL)",
        '\r' => " (carriage return)",
        '\u{85}' => " (next line)",
        '\u{A0}' | '\u{202F}' | '\u{2007}' => " (no-break space)",
        '\u{2060}' | '\u{FEFF}' => " (zero-width no-break space)",
        '\u{2028}' => " (line separator)",
        '\u{2029}' => " (paragraph separator)",
        c if c.is_control() => " (control character)",
        _ => " (bidirectional control)",
    };
    format!("U+{:04X}{name}", u32::from(character))
}

/// The first hidden character of a token's text.
pub(super) fn first_hidden(text: &str) -> Option<(usize, char)> {
    text.char_indices().find(|(_, c)| hides(*c) || matches!(c, '\n' | '\r'))
}

/// One diagnostic for each line that holds such characters.
pub(super) fn check(text: &str, source: SourceId) -> Vec<Diagnostic> {
    let plain = |byte: u8| matches!(byte, b' '..=b'~' | b'\t' | b'\n');
    if text.bytes().all(plain) {
        return Vec::new();
    }
    let mut found: Vec<Diagnostic> = Vec::new();
    let start = if text.starts_with('\u{FEFF}') { '\u{FEFF}'.len_utf8() } else { 0 };
    let mut line = 0;
    let mut said = None;
    for (at, character) in text[start..].char_indices() {
        if character == '\n' {
            line += 1;
            continue;
        }
        let at = at + start;
        let stray_return = character == '\r' && !text[at + 1..].starts_with('\n');
        if !(hides(character) || stray_return) || said == Some(line) {
            continue;
        }
        said = Some(line);
        let blank = matches!(character, '\u{A0}' | '\u{202F}' | '\u{2007}');
        found.push(
            Diagnostic::new(&codes::CHARACTER, format!("the character {} stands in the policy", describe(character)))
                .label(Span::new(source, at..at + character.len_utf8()), "")
                .help(if blank { "write an ordinary space" } else { "take it out" }),
        );
    }
    found
}
