//! Source texts, and spans that point into them.
//!
//! A [`Span`] is a byte range into one text; everything that is later said about a policy points here. This module
//! reads no files: whoever has a text adds it under the name that people know it by (`agent.policy`, `std/system`,
//! `--allow-read`).

use std::borrow::Cow;
use std::ops::Range;
use std::sync::OnceLock;

/// One text and the name it is shown under.
#[derive(Debug, Clone)]
pub struct Source {
    name: String,
    text: Cow<'static, str>,
    /// The number of its first line; below one where what stands before the lines that people know has no number.
    first_line: i64,
    /// Byte offset of the start of each line, so that a location costs a binary search; found when first asked for.
    line_starts: OnceLock<Vec<u32>>,
}

/// Which of the texts in [`Sources`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, serde::Serialize, serde::Deserialize)]
pub struct SourceId(u32);

/// A byte range in one source.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, serde::Serialize, serde::Deserialize)]
pub struct Span {
    pub source: SourceId,
    pub start: u32,
    pub end: u32,
}

/// A place as people name it: lines and columns count from one, columns in characters.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Location {
    pub name: String,
    pub line: u32,
    pub column: u32,
}

/// Where a span begins and ends as editors and other programs count: lines from one, columns from one in UTF-16 code
/// units, the end after the last character.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Extent {
    pub line: u32,
    pub column: u32,
    pub end_line: u32,
    pub end_column: u32,
}

/// All texts of one compilation.
#[derive(Debug, Clone, Default)]
pub struct Sources {
    all: Vec<Source>,
}

impl Source {
    fn line_starts(&self) -> &[u32] {
        let ends = || self.text.match_indices('\n').map(|(at, _)| offset(at + 1));
        self.line_starts.get_or_init(|| std::iter::once(0).chain(ends()).collect())
    }

    /// The name the text is shown under.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The whole text.
    pub fn text(&self) -> &str {
        &self.text
    }

    /// Whether the text is part of the program, and no file.
    pub fn is_embedded(&self) -> bool {
        matches!(self.text, Cow::Borrowed(_))
    }

    fn line_of(&self, at: u32) -> usize {
        self.line_starts().partition_point(|start| *start <= at).saturating_sub(1)
    }

    /// The number that people know a line by.
    fn number(&self, line: usize) -> u32 {
        let number = self.first_line.saturating_add_unsigned(line as u64);
        u32::try_from(number.max(1)).unwrap_or(u32::MAX)
    }
}

impl Sources {
    /// Adds a text and returns the handle by which spans name it.
    pub fn add(&mut self, name: impl Into<String>, text: impl Into<String>) -> SourceId {
        self.push(name.into(), Cow::Owned(text.into()), 1)
    }

    /// Adds a text that is a part of a longer one, of which its first line has this number.
    pub fn add_part(&mut self, name: impl Into<String>, text: impl Into<String>, first_line: i64) -> SourceId {
        self.push(name.into(), Cow::Owned(text.into()), first_line)
    }

    /// Adds a text that is part of the program.
    pub fn add_embedded(&mut self, name: impl Into<String>, text: &'static str) -> SourceId {
        self.push(name.into(), Cow::Borrowed(text), 1)
    }

    fn push(&mut self, name: String, text: Cow<'static, str>, first_line: i64) -> SourceId {
        let id = SourceId(offset(self.all.len()));
        self.all.push(Source { name, text, first_line, line_starts: OnceLock::new() });
        id
    }

    /// All texts, in the order in which they were added.
    pub fn all(&self) -> &[Source] {
        &self.all
    }

    /// The text that is shown under a name.
    pub fn named(&self, name: &str) -> Option<SourceId> {
        self.all.iter().position(|source| source.name == name).map(|at| SourceId(offset(at)))
    }

    /// The same text under the same name, where it is here already.
    pub fn known(&self, name: &str, text: &str) -> Option<SourceId> {
        self.named(name).filter(|known| self.get(*known).text() == text)
    }

    /// The text behind a handle.
    pub fn get(&self, id: SourceId) -> &Source {
        &self.all[id.0 as usize]
    }

    /// The characters a span covers.
    pub fn slice(&self, span: Span) -> &str {
        &self.get(span.source).text[span.range()]
    }

    /// Name, line and column of a span's first character.
    pub fn location(&self, span: Span) -> Location {
        let source = self.get(span.source);
        let line = source.line_of(span.start);
        let start = source.line_starts()[line] as usize;
        let column = source.text[start..span.start as usize].chars().count();
        Location { name: source.name.clone(), line: source.number(line), column: offset(column + 1) }
    }

    /// Where a span begins and ends, in UTF-16 code units.
    pub fn extent(&self, span: Span) -> Extent {
        let source = self.get(span.source);
        let place = |at: u32| {
            let line = source.line_of(at);
            let start = source.line_starts()[line] as usize;
            let column = source.text[start..at as usize].encode_utf16().count();
            (source.number(line), offset(column + 1))
        };
        let ((line, column), (end_line, end_column)) = (place(span.start), place(span.end));
        Extent { line, column, end_line, end_column }
    }

    /// A copy of a text of another compilation.
    pub fn adopt(&mut self, source: &Source) -> SourceId {
        let id = SourceId(offset(self.all.len()));
        self.all.push(source.clone());
        id
    }

    /// The line a span starts on, without its ending.
    pub fn line(&self, span: Span) -> &str {
        let source = self.get(span.source);
        let line = source.line_of(span.start);
        let start = source.line_starts()[line] as usize;
        source.text[start..].lines().next().unwrap_or_default()
    }
}

impl Span {
    /// A span over `range` of `source`.
    pub fn new(source: SourceId, range: Range<usize>) -> Self {
        Self { source, start: offset(range.start), end: offset(range.end) }
    }

    /// The bytes the span covers.
    pub fn range(self) -> Range<usize> {
        self.start as usize..self.end as usize
    }

    /// The smallest span that covers both; both must lie in one source.
    #[must_use]
    pub fn to(self, other: Span) -> Span {
        debug_assert_eq!(self.source, other.source);
        Span { start: self.start.min(other.start), end: self.end.max(other.end), ..self }
    }
}

/// `agent.policy:12`; a flag has no lines.
impl std::fmt::Display for Location {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        if self.name.starts_with("--") { f.write_str(&self.name) } else { write!(f, "{}:{}", self.name, self.line) }
    }
}

/// Whether a character hides, reorders or breaks what a reader sees: the bidirectional controls (Unicode UAX #9 §2), line
/// and paragraph separators, no-break spaces, and control characters but for the tab and the ends of lines.
pub fn hides(character: char) -> bool {
    matches!(character,
        '\u{0}'..='\u{8}' | '\u{B}'..='\u{C}' | '\u{E}'..='\u{1F}' | '\u{7F}'..='\u{9F}'
        | '\u{A0}' | '\u{202F}' | '\u{2007}' | '\u{2060}' | '\u{FEFF}'
        | '\u{61C}' | '\u{200E}' | '\u{200F}' | '\u{202A}'..='\u{202E}' | '\u{2066}'..='\u{2069}'
        | '\u{2028}' | '\u{2029}')
}

/// Texts are limited to 4 GiB by whoever reads them; past that, positions saturate instead of wrapping.
fn offset(at: usize) -> u32 {
    u32::try_from(at).unwrap_or(u32::MAX)
}
