//! Formatting: the one layout that `srt fmt` has, as the one edit between what stays at the start and at the end, so that an
//! editor keeps its place.

use super::position::Lines;
use crate::source::Sources;
use crate::syntax;
use lsp_types::TextEdit;

/// The edits that lay a text out; none where it cannot be read.
pub(super) fn edits(text: &str) -> Vec<TextEdit> {
    let mut sources = Sources::default();
    let source = sources.add("", text);
    let Ok(new) = syntax::format(&sources, source) else { return Vec::new() };
    if new == text {
        return Vec::new();
    }
    // Whole lines: what stays at the start, then of the rest at the end.
    let start: usize = text
        .split_inclusive('\n')
        .zip(new.split_inclusive('\n'))
        .take_while(|(old, new)| old == new)
        .map(|(line, _)| line.len())
        .sum();
    let (old_rest, new_rest) = (&text[start..], &new[start..]);
    let end: usize = old_rest
        .split_inclusive('\n')
        .rev()
        .zip(new_rest.split_inclusive('\n').rev())
        .take_while(|(old, new)| old == new)
        .map(|(line, _)| line.len())
        .sum();
    let range = Lines::of(text).range(start..text.len() - end);
    vec![TextEdit { range, new_text: new_rest[..new_rest.len() - end].to_owned() }]
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    /// What becomes of a text, and the lines that the edit names.
    fn applied(text: &str) -> (String, String) {
        let edits = edits(text);
        let Some(edit) = edits.first() else { return (text.to_owned(), String::new()) };
        let bytes = Lines::of(text).bytes(edit.range);
        (format!("{}{}{}", &text[..bytes.start], edit.new_text, &text[bytes.end..]), text[bytes].to_owned())
    }

    #[test]
    fn only_what_differs_is_edited() {
        let text = "srt 1\ndefault read deny\nallow   read /a\nallow read /\u{e9}\n";
        let (new, old) = applied(text);
        assert_eq!(new, text.replace("   ", " "));
        assert_eq!(old, "allow   read /a\n");
        for text in ["srt 1", "srt 1\n\n\n\n", "srt 1\r\nallow read /a\r\n", "\u{feff}srt 1\nallow read [ /a,/a ]\n\n"]
        {
            let mut sources = Sources::default();
            let source = sources.add("", text);
            assert_eq!(applied(text).0, syntax::format(&sources, source).unwrap());
        }
        assert!(edits("alow\n").is_empty());
        assert!(edits("srt 1\n").is_empty());
    }
}
