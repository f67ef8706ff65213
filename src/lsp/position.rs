//! Positions as the protocol counts them, lines and UTF-16 code units from zero, in a text of bytes.
//!
//! Whatever a client says names a place: past the end of a line is its end, past the last line is the end of the text, and in
//! the middle of a character is its start.

use lsp_types::{Position, Range};
use std::ops;

/// A text and where its lines start.
pub(super) struct Lines<'t> {
    text: &'t str,
    starts: Vec<usize>,
}

impl<'t> Lines<'t> {
    /// Lines end at `\n`, `\r\n` and `\r`.
    pub fn of(text: &'t str) -> Self {
        let bytes = text.as_bytes();
        let ends = bytes.iter().enumerate().filter(|(at, byte)| match byte {
            b'\n' => true,
            b'\r' => bytes.get(at + 1) != Some(&b'\n'),
            _ => false,
        });
        let starts = std::iter::once(0).chain(ends.map(|(at, _)| at + 1)).collect();
        Self { text, starts }
    }

    /// The byte at a position.
    pub fn offset(&self, position: Position) -> usize {
        let Some(start) = self.starts.get(position.line as usize) else { return self.text.len() };
        let line = self.line(position.line as usize);
        let mut units = 0;
        for (at, character) in line.char_indices() {
            units += character.len_utf16();
            if units > position.character as usize {
                return start + at;
            }
        }
        start + line.len()
    }

    /// The position of a byte; of one inside a character, of the character.
    pub fn position(&self, offset: usize) -> Position {
        let mut offset = offset.min(self.text.len());
        while !self.text.is_char_boundary(offset) {
            offset -= 1;
        }
        let line = self.starts.partition_point(|start| *start <= offset).saturating_sub(1);
        let units: usize = self.text[self.starts[line]..offset].chars().map(char::len_utf16).sum();
        Position { line: count(line), character: count(units) }
    }

    pub fn range(&self, range: ops::Range<usize>) -> Range {
        Range { start: self.position(range.start), end: self.position(range.end) }
    }

    /// A range as bytes; one that ends before it starts is empty.
    pub fn bytes(&self, range: Range) -> ops::Range<usize> {
        let start = self.offset(range.start);
        start..self.offset(range.end).max(start)
    }

    /// A line without its end.
    pub fn line(&self, line: usize) -> &'t str {
        let Some(start) = self.starts.get(line) else { return "" };
        let end = self.starts.get(line + 1).copied().unwrap_or(self.text.len());
        self.text[*start..end].trim_end_matches(['\r', '\n'])
    }

    /// Which line a byte is on.
    pub fn line_of(&self, offset: usize) -> usize {
        self.starts.partition_point(|start| *start <= offset).saturating_sub(1)
    }

    /// Where a line starts; past the last, the end of the text.
    pub fn start(&self, line: usize) -> usize {
        self.starts.get(line).copied().unwrap_or(self.text.len())
    }
}

/// Texts are bounded far below what the protocol can count.
pub(super) fn count(number: usize) -> u32 {
    u32::try_from(number).unwrap_or(u32::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: &str = "a\u{e9}\u{1F600}b\r\nx\ry\n";

    #[test]
    fn units_are_utf_16() {
        let lines = Lines::of(TEXT);
        let at = |line, character| lines.offset(Position { line, character });
        assert_eq!([0, 1, 2, 3, 4, 5].map(|character| at(0, character)), [0, 1, 3, 3, 7, 8]);
        assert_eq!(
            [at(0, 99), at(1, 0), at(1, 9), at(2, 0), at(3, 0), at(3, 5), at(9, 0)],
            [8, 10, 11, 12, 14, 14, 14]
        );
    }

    #[test]
    fn every_byte_has_a_position_that_leads_back() {
        let lines = Lines::of(TEXT);
        for (at, _) in TEXT.char_indices().filter(|(_, character)| *character != '\n') {
            let position = lines.position(at);
            assert_eq!(lines.offset(position), at, "{position:?}");
        }
        // Inside of a character.
        assert_eq!(lines.position(5), lines.position(3));
    }

    #[test]
    fn a_range_never_ends_before_it_starts() {
        let lines = Lines::of(TEXT);
        let wrong = Range { start: Position { line: 2, character: 0 }, end: Position { line: 0, character: 0 } };
        assert_eq!(lines.bytes(wrong), 12..12);
    }
}
