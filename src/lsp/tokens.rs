//! Semantic tokens: what each word is there for. Needs words alone, so that colours stay while a line is being written.

use super::position::Lines;
use crate::syntax::{Role, Word, variables, words};
use lsp_types::{SemanticToken, SemanticTokenModifier, SemanticTokenType, SemanticTokensLegend};
use std::ops::Range;

const TYPES: [SemanticTokenType; 8] = [
    SemanticTokenType::KEYWORD,
    SemanticTokenType::FUNCTION,
    SemanticTokenType::VARIABLE,
    SemanticTokenType::STRING,
    SemanticTokenType::NUMBER,
    SemanticTokenType::COMMENT,
    SemanticTokenType::NAMESPACE,
    SemanticTokenType::ENUM_MEMBER,
];
const VARIABLE: u32 = 2;
const STRING: u32 = 3;
const DECLARATION: u32 = 1;

pub(super) fn legend() -> SemanticTokensLegend {
    SemanticTokensLegend { token_types: TYPES.to_vec(), token_modifiers: vec![SemanticTokenModifier::DECLARATION] }
}

pub(super) fn tokens(text: &str) -> Vec<SemanticToken> {
    let lines = Lines::of(text);
    let mut tokens = Vec::new();
    let mut before = lines.position(0);
    let mut add = |range: Range<usize>, token_type: u32, modifiers: u32| {
        let (start, end) = (lines.position(range.start), lines.position(range.end));
        // A token stands on one line.
        if start.line != end.line || start.character == end.character {
            return;
        }
        let same = start.line == before.line;
        tokens.push(SemanticToken {
            delta_line: start.line - before.line,
            delta_start: if same { start.character - before.character } else { start.character },
            length: end.character - start.character,
            token_type,
            token_modifiers_bitset: modifiers,
        });
        before = start;
    };
    for word in words(text).0 {
        match kind(&word) {
            Some(STRING) if word.role == Role::Target => {
                let mut at = word.range.start;
                for name in variables(&text[word.range.clone()]) {
                    // With its `$`.
                    let (start, end) = (word.range.start + name.start - 1, word.range.start + name.end);
                    add(at..start, STRING, 0);
                    add(start..end, VARIABLE, 0);
                    at = end;
                }
                add(at..word.range.end, STRING, 0);
            }
            Some(kind) => add(word.range, kind, if word.role == Role::Name { DECLARATION } else { 0 }),
            None => {}
        }
    }
    tokens
}

/// The place in [`TYPES`].
fn kind(word: &Word) -> Option<u32> {
    match word.role {
        Role::Keyword => Some(0),
        Role::Verb => Some(1),
        Role::Name => Some(VARIABLE),
        Role::Target | Role::File | Role::Text => Some(STRING),
        Role::Number => Some(4),
        Role::Comment => Some(5),
        Role::Module => Some(6),
        Role::System | Role::Choice => Some(7),
        Role::Mark | Role::Unknown => None,
    }
}
