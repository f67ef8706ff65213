//! Folding: `on` blocks, lists over several lines, and comments that stand together. Needs words alone, so that it works while a
//! line is being written.

use super::position::{Lines, count};
use crate::syntax::{Role, words};
use lsp_types::{FoldingRange, FoldingRangeKind};

pub(super) fn ranges(text: &str) -> Vec<FoldingRange> {
    let lines = Lines::of(text);
    let mut found = Vec::new();
    let mut add = |first: usize, last: usize, kind: FoldingRangeKind| {
        if last > first {
            let (start_line, end_line) = (count(first), count(last));
            found.push(FoldingRange { start_line, end_line, kind: Some(kind), ..FoldingRange::default() });
        }
    };
    let mut open: Vec<(char, usize)> = Vec::new();
    let mut comments: Option<(usize, usize)> = None;
    for word in words(text).0 {
        let line = lines.line_of(word.range.start);
        if word.role == Role::Comment {
            let alone = text[lines.start(line)..word.range.start].trim().is_empty();
            comments = match comments {
                Some((first, last)) if alone && last + 1 == line => Some((first, line)),
                before => {
                    if let Some((first, last)) = before {
                        add(first, last, FoldingRangeKind::Comment);
                    }
                    alone.then_some((line, line))
                }
            };
            continue;
        }
        if word.role != Role::Mark {
            continue;
        }
        match &text[word.range.clone()] {
            "[" => open.push((']', line)),
            "{" => open.push(('}', line)),
            mark @ ("]" | "}") => {
                // What was left open inside ends with what is around it.
                if let Some(at) = open.iter().rposition(|(end, _)| mark.starts_with(*end)) {
                    let (_, first) = open[at];
                    open.truncate(at);
                    add(first, line, FoldingRangeKind::Region);
                }
            }
            _ => {}
        }
    }
    if let Some((first, last)) = comments {
        add(first, last, FoldingRangeKind::Comment);
    }
    found.sort_by_key(|range| (range.start_line, range.end_line));
    found
}
