//! Names: where a `let` gives one, where it is used, and renaming it; and the file or list that a `use`, a `within` or
//! `lines(…)` leads to. A name is a file's own, so nothing outside of the text changes.

use super::document::{Document, uri_of};
use super::position::Lines;
use crate::resolve::beside;
use crate::syntax::{Place, Role, Word, variables, words};
use crate::vocabulary::{BUILT_IN, is_variable};
use lsp_types::{Location, Position, Range, TextEdit};
use std::ops;

/// One place where a name stands, without `$`.
struct Occurrence {
    bytes: ops::Range<usize>,
    defines: bool,
}

fn occurrences(text: &str) -> Vec<Occurrence> {
    let mut all = Vec::new();
    for word in words(text).0 {
        match word.role {
            Role::Name if word.place == Place::LetName => all.push(Occurrence { bytes: word.range, defines: true }),
            Role::Target => all.extend(variables(&text[word.range.clone()]).into_iter().map(|name| Occurrence {
                bytes: word.range.start + name.start..word.range.start + name.end,
                defines: false,
            })),
            _ => {}
        }
    }
    all
}

/// The name at a place, its `$` included.
fn at(text: &str, position: Position) -> Option<(String, ops::Range<usize>)> {
    let offset = Lines::of(text).offset(position);
    let here = |one: &Occurrence| {
        let start = one.bytes.start - usize::from(!one.defines);
        (start..=one.bytes.end).contains(&offset)
    };
    let found = occurrences(text).into_iter().find(here)?;
    Some((text[found.bytes.clone()].to_owned(), found.bytes))
}

/// Where the name or the file at a place is defined.
pub(super) fn definition(document: &Document, position: Position) -> Option<Location> {
    let text = &*document.text;
    let lines = Lines::of(text);
    if let Some((name, _)) = at(text, position) {
        let defined = occurrences(text).into_iter().find(|one| one.defines && text[one.bytes.clone()] == name)?;
        return Some(Location { uri: document.uri.clone(), range: lines.range(defined.bytes) });
    }
    let path = file_at(text, lines.offset(position))?;
    let uri = uri_of(&beside(&document.name, &path))?;
    Some(Location { uri, range: Range::default() })
}

/// The path in quotes at a byte.
fn file_at(text: &str, offset: usize) -> Option<String> {
    let here = |word: &Word| word.role == Role::File && (word.range.start..=word.range.end).contains(&offset);
    let word = words(text).0.into_iter().find(here)?;
    Some(text[word.range].trim_matches('"').to_owned())
}

/// Where the name at a place stands.
pub(super) fn references(document: &Document, position: Position, with_definition: bool) -> Vec<Location> {
    let text = &*document.text;
    let Some((name, _)) = at(text, position) else { return Vec::new() };
    let lines = Lines::of(text);
    let same = occurrences(text).into_iter().filter(|one| text[one.bytes.clone()] == name);
    same.filter(|one| with_definition || !one.defines)
        .map(|one| Location { uri: document.uri.clone(), range: lines.range(one.bytes) })
        .collect()
}

/// What would be renamed at a place: the name of a `let`.
pub(super) fn renamed(text: &str, position: Position) -> Result<Range, String> {
    let (name, bytes) = at(text, position).ok_or("only the name of a `let` can be changed")?;
    if !occurrences(text).iter().any(|one| one.defines && text[one.bytes.clone()] == name) {
        return Err(format!("no `let` of this file defines `${name}`"));
    }
    Ok(Lines::of(text).range(bytes))
}

/// The edits that give the name at a place another one.
pub(super) fn rename(text: &str, position: Position, new: &str) -> Result<Vec<TextEdit>, String> {
    renamed(text, position)?;
    let new = new.strip_prefix('$').unwrap_or(new);
    if !is_variable(new) {
        return Err(format!("`{new}` is not a name: letters, digits and `_`, no digit first"));
    }
    if BUILT_IN.contains(&new) || new == "env" {
        return Err(format!("`{new}` is built in and can't be given another meaning"));
    }
    let (old, _) = at(text, position).unwrap_or_default();
    let all = occurrences(text);
    if old != new && all.iter().any(|one| text[one.bytes.clone()] == *new) {
        return Err(format!("`{new}` has a meaning in this file"));
    }
    let lines = Lines::of(text);
    let same = all.into_iter().filter(|one| text[one.bytes.clone()] == old);
    Ok(same.map(|one| TextEdit { range: lines.range(one.bytes), new_text: new.to_owned() }).collect())
}
