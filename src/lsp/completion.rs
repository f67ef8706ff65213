//! Completion: what may stand at the place that is being written. Needs words alone. Paths come from the disk where they are
//! literal, as the surroundings list them; where they do not know yet, the editor is told to ask again.

use super::document::Document;
use super::language::{REACHES, STATEMENTS, TAILS, VARIABLES, VERBS};
use super::position::Lines;
use super::{Entry, Surroundings};
use crate::resolve::{STD, beside, is_absolute};
use crate::syntax::{Place, Role, words};
use crate::vocabulary::{Kind, LimitKind, System, Verb};
use lsp_types::{CompletionItem, CompletionItemKind, CompletionList, CompletionTextEdit, Position, TextEdit};
use std::ops::Range;

/// How many names of a directory are offered.
const MOST: usize = 500;

/// What is being written: the bytes so far, and what may stand there.
struct Spot<'t> {
    written: &'t str,
    range: Range<usize>,
}

pub(super) fn list(
    document: &Document,
    position: Position,
    around: &dyn Surroundings,
    workspace: Option<&str>,
) -> CompletionList {
    let text = &*document.text;
    let lines = Lines::of(text);
    let offset = lines.offset(position);
    let (row, end) = words(&text[..offset]);
    // The word that ends at the cursor is the one that is being written.
    let last = row.last().filter(|word| word.range.end == offset && word.role != Role::Mark);
    if last.is_some_and(|word| word.role == Role::Comment) {
        return CompletionList::default();
    }
    let mut is_incomplete = false;
    let range = last.map_or(offset..offset, |word| word.range.clone());
    // What may stand there does not depend on what does so far.
    let (before, place) = if last.is_some() { words(&text[..range.start]) } else { (row, end) };
    let verb = before.last().and_then(|word| word.verb);
    let spot = Spot { written: &text[range.clone()], range };
    let word = |word: &&str| plain(word, "", CompletionItemKind::KEYWORD);
    let mut items: Vec<CompletionItem> = match place {
        Place::Statement => listed(STATEMENTS, CompletionItemKind::KEYWORD)
            .into_iter()
            .chain(listed(TAILS, CompletionItemKind::KEYWORD))
            .collect(),
        Place::Version => vec![word(&"1")],
        Place::Used => modules(),
        Place::Subject => ["read", "env"].iter().map(word).collect(),
        Place::DefaultAnswer | Place::ExpectAnswer => ["allow", "deny"].iter().map(word).collect(),
        Place::Verb => listed(VERBS, CompletionItemKind::FUNCTION),
        Place::AfterTarget => listed(TAILS, CompletionItemKind::KEYWORD),
        Place::Limit => LimitKind::ALL.iter().map(|kind| word(&kind.word())).collect(),
        Place::System => System::ALL.iter().map(|system| word(&system.word())).collect(),
        Place::Relation => ["inside", "outside"].iter().map(word).collect(),
        Place::Target | Place::Variable => targets(text, verb, place),
        _ => Vec::new(),
    };
    let written = spot.written.trim_start_matches('"');
    let quotes = spot.written.len() - written.len();
    items.retain(|item| item.label.starts_with(written));
    let mut start = spot.range.start + quotes;
    if written.contains('/') || (quotes > 0 && matches!(place, Place::Used | Place::File)) {
        let paths = match place {
            Place::Target if verb.is_none_or(|verb| verb.kind() == Kind::Path) => {
                rooted(written, around, workspace).map(|place| (around.entries(&place), false))
            }
            Place::Used | Place::File if quotes > 0 => Some((beside_file(&document.name, written, around), true)),
            _ => None,
        };
        if let Some((entries, policies)) = paths {
            let (before, typed) = written.rsplit_once('/').map_or((0, written), |(head, tail)| (head.len() + 1, tail));
            start += before;
            is_incomplete = entries.is_none();
            items = entries
                .into_iter()
                .flatten()
                .filter(|entry| entry.name.starts_with(typed) && entry.name.chars().all(is_plain))
                .filter(|entry| !policies || entry.is_directory || entry.name.ends_with(".policy"))
                .take(MOST)
                .map(|entry| {
                    let kind = if entry.is_directory { CompletionItemKind::FOLDER } else { CompletionItemKind::FILE };
                    plain(&entry.name, "", kind)
                })
                .collect();
            items.sort_by(|a, b| a.label.cmp(&b.label));
        }
    }
    let range = lines.range(start..spot.range.end);
    for item in &mut items {
        item.text_edit = Some(CompletionTextEdit::Edit(TextEdit { range, new_text: item.label.clone() }));
    }
    CompletionList { is_incomplete, items }
}

/// Whether a character stands for itself in a target without quotes or escapes.
fn is_plain(character: char) -> bool {
    !character.is_whitespace() && !character.is_control() && !"*?[]{},\\\"#$".contains(character)
}

fn plain(label: &str, detail: &str, kind: CompletionItemKind) -> CompletionItem {
    CompletionItem {
        label: label.to_owned(),
        detail: (!detail.is_empty()).then(|| detail.to_owned()),
        kind: Some(kind),
        ..CompletionItem::default()
    }
}

fn listed(list: &[(&str, &str)], kind: CompletionItemKind) -> Vec<CompletionItem> {
    list.iter().map(|(word, said)| plain(word, said, kind)).collect()
}

fn modules() -> Vec<CompletionItem> {
    STD.iter()
        .map(|(name, text)| {
            let said = text.lines().next().unwrap_or_default().trim_start_matches(['#', ' ']);
            plain(&format!("std/{name}"), said, CompletionItemKind::MODULE)
        })
        .collect()
}

/// Variables, those of the file first, and the words that stand before a path.
fn targets(text: &str, verb: Option<Verb>, place: Place) -> Vec<CompletionItem> {
    let lets = words(text).0.into_iter().filter(|word| word.place == Place::LetName && word.role == Role::Name);
    let mut names: Vec<String> = lets.map(|word| format!("${}", &text[word.range])).collect();
    names.sort();
    names.dedup();
    let mut items: Vec<_> =
        names.iter().map(|name| plain(name, "of this file", CompletionItemKind::VARIABLE)).collect();
    if verb.is_none_or(|verb| verb.kind() == Kind::Path) {
        let built_in =
            VARIABLES.iter().map(|(name, said)| plain(&format!("${name}"), said, CompletionItemKind::VARIABLE));
        items.extend(built_in);
        if place == Place::Target && verb.is_some() {
            items.extend(listed(REACHES, CompletionItemKind::KEYWORD));
        }
    }
    items
}

/// The directory of a target that is being written; nothing where it is no literal one.
fn rooted(written: &str, around: &dyn Surroundings, workspace: Option<&str>) -> Option<String> {
    let (directory, _) = written.rsplit_once('/')?;
    let below = |start: &str, place: Option<String>| {
        let rest = directory.strip_prefix(start)?;
        (rest.is_empty() || rest.starts_with('/')).then_some(())?;
        Some(format!("{}{rest}", place?))
    };
    match directory {
        "" => Some("/".to_owned()),
        // The top of a drive.
        _ if is_absolute(written) && !directory.contains('/') => Some(format!("{directory}/")),
        _ if is_absolute(written) => Some(directory.to_owned()),
        _ => below("~", around.home())
            .or_else(|| below("$HOME", around.home()))
            .or_else(|| below("$WORKSPACE", workspace.map(str::to_owned))),
    }
}

/// What lies where a path beside the policy leads.
fn beside_file(name: &str, written: &str, around: &dyn Surroundings) -> Option<Vec<Entry>> {
    let directory = written.rsplit_once('/').map_or(".", |(head, _)| if head.is_empty() { "/" } else { head });
    around.entries(&beside(name, directory))
}
