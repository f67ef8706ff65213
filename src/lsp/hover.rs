//! Hover: what a word means; of a rule's target what the rule decides alone, what it opens, and what is not as it says.
//!
//! The meaning of a rule is said of the whole policy on an assumed machine, and only where the text is the one that was
//! checked. Words, variables and modules are explained whatever the text.

use super::document::Document;
use super::language::{JOINTS, REACHES, STATEMENTS, TAILS, VARIABLES, VERBS, about};
use super::position::Lines;
use crate::analysis::{Answer, Budget, Study, alone, short};
use crate::ir::{RuleId, decide};
use crate::syntax::{Place, Role, Word, variables, words};
use crate::vocabulary::{Effect, Verb};
use lsp_types::{Hover, HoverContents, MarkupContent, MarkupKind, Position};
use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;

/// Steps for what is asked about one rule: well below what one waits for.
const STEPS: u64 = 2_000_000;

pub(super) fn hover(document: &Document, position: Position) -> Option<Hover> {
    let text = &*document.text;
    let lines = Lines::of(text);
    let offset = lines.offset(position);
    let (all, _) = words(text);
    let word = all.iter().find(|word| word.range.contains(&offset))?;
    let written = &text[word.range.clone()];
    let value = match word.role {
        Role::Keyword => {
            let lists = [STATEMENTS, TAILS, REACHES, JOINTS, VERBS];
            format!("`{written}`: {}", lists.iter().find_map(|list| about(list, written))?)
        }
        Role::Verb => format!("`{written}`: {}", about(VERBS, written)?),
        Role::Module => module(written)?,
        Role::Comment => finding(written)?,
        Role::Target | Role::Name => {
            let parts = [name(text, &all, word, offset), meaning(document, offset)];
            let parts: Vec<String> = parts.into_iter().flatten().collect();
            (!parts.is_empty()).then(|| parts.join("\n\n---\n\n"))?
        }
        _ => return None,
    };
    let contents = HoverContents::Markup(MarkupContent { kind: MarkupKind::Markdown, value });
    Some(Hover { contents, range: Some(lines.range(word.range.clone())) })
}

/// A module's text.
fn module(written: &str) -> Option<String> {
    let text = crate::resolve::std_text(written.strip_prefix("std/")?)?;
    Some(format!("`{written}`, embedded in `srt`\n\n```policy\n{}\n```", text.trim_end()))
}

/// The page of the finding that a `lint:` comment names.
fn finding(comment: &str) -> Option<String> {
    let (code, _) = comment.split_once("lint:")?.1.trim_start().strip_prefix("allow(")?.split_once(')')?;
    let code = crate::codes().into_iter().find(|known| known.name == code.trim())?;
    Some(code.page.lines().flat_map(|line| [line.strip_prefix(' ').unwrap_or(line), "\n"]).collect())
}

/// What the variable at a byte stands for.
fn name(text: &str, all: &[Word], word: &Word, offset: usize) -> Option<String> {
    let name = if word.role == Role::Name {
        (word.place == Place::LetName).then(|| &text[word.range.clone()])?
    } else {
        let at = offset - word.range.start;
        let names = variables(&text[word.range.clone()]);
        let range = names.into_iter().find(|name| (name.start - 1..name.end).contains(&at))?;
        &text[word.range.clone()][range]
    };
    if let Some(said) = about(VARIABLES, name) {
        return Some(format!("`${name}`: {said}"));
    }
    if let Some(variable) = name.strip_prefix("env.") {
        return Some(format!("`${name}`: the value of `{variable}` in the caller's environment"));
    }
    let defined =
        |one: &&Word| one.place == Place::LetName && one.role == Role::Name && text[one.range.clone()] == *name;
    let definition = all.iter().find(defined)?;
    let of = |one: &&Word| one.statement == definition.statement && one.role != Role::Comment;
    let end = all.iter().filter(of).map(|one| one.range.end).max()?;
    Some(format!("```policy\nlet {}\n```", &text[definition.range.start..end]))
}

/// What the rules of the target at a byte decide.
fn meaning(document: &Document, offset: usize) -> Option<String> {
    let found = document.current()?;
    let policy = found.checked.policy.as_ref()?;
    let sources = &found.checked.sources;
    let own = sources.named(&document.name)?;
    let mut groups: BTreeMap<(Verb, Effect), BTreeSet<RuleId>> = BTreeMap::new();
    for (id, rule) in (0..).map(RuleId).zip(&policy.rules) {
        if rule.span.source == own && rule.span.range().contains(&offset) {
            groups.entry((rule.verb, rule.effect)).or_default().insert(id);
        }
    }
    let policy = &*short(policy);
    let study = Study::new(policy);
    let mut text = String::new();
    for ((_, effect), ids) in groups {
        let first = *ids.first()?;
        // Writing into a string does not fail.
        let _ = writeln!(text, "`{}`", policy.rule(first).words(sources));
        let mut budget = Budget::new(STEPS);
        let known = alone(policy, &policy.without(&ids), &ids, &mut budget);
        let _ = writeln!(text, "- {}", known.sentence(effect, |access| format!("`{access}`")));
        let mut others: Vec<(&str, RuleId)> = Vec::new();
        for id in ids {
            let rule = policy.rule(id);
            if effect == Effect::Allow {
                others.extend(study.opened_by(id).into_iter().map(|deny| ("opens", deny)));
                if let Answer::Some(access) = study.whole().denied(rule.verb, &rule.subject, &mut budget) {
                    let _ = writeln!(text, "- not all of it: `{access}` is denied");
                    others.extend(decide(policy, &access).decisive.into_iter().map(|by| ("denied by", by)));
                }
            } else if let Answer::Some(access) = study.whole().permitted(rule.verb, &rule.subject, &mut budget) {
                let _ = writeln!(text, "- not all of it: `{access}` is allowed");
                others.extend(decide(policy, &access).decisive.into_iter().map(|by| ("opened by", by)));
            }
        }
        let mut said = BTreeSet::new();
        for (word, other) in others {
            let other = policy.rule(other);
            if said.insert((word, other.span)) {
                let place = sources.location(other.span);
                let _ = writeln!(text, "- {word} `{}` ({place})", other.words(sources));
            }
        }
        text.push('\n');
    }
    (!text.is_empty()).then(|| text.trim_end().to_owned())
}
