//! What is asked of words, and what can be said of one word by itself. The search for one is [`search`](super::search)'s.

use super::letters::Alphabet;
use super::trie::Trie;
use super::{Origin, Token, Unit, matches};
use crate::sets::budget::{Budget, Exhausted};

/// What is asked.
pub(in crate::sets) struct Question<'q, 'a> {
    /// All of these must match.
    pub required: Vec<&'q [Token<'a>]>,
    /// None of these may.
    pub refused: Vec<&'q [Token<'a>]>,
    /// Nor any set of these, but for those that are lifted.
    pub forests: Vec<Forest<'q, 'a>>,
    /// Places there are, beside those that patterns start at.
    pub origins: Vec<Origin<'a>>,
    pub alphabet: Alphabet,
    /// Only words of fewer units are of interest.
    pub shorter_than: Option<usize>,
}

/// Many sets as one tree, and what each of them is to the question.
pub(in crate::sets) struct Forest<'q, 'a> {
    pub trie: &'q Trie<'a>,
    pub role: Box<dyn Fn(u32) -> Role<'q, 'a> + 'q>,
}

/// What a set is to a question.
pub(in crate::sets) enum Role<'q, 'a> {
    Ignored,
    /// Refused, unless one of these holds; with none of them, always.
    Refused(Vec<Exception<'q, 'a>>),
}

/// Some pattern of the first matches and none of the second.
#[derive(Debug, Clone, Default)]
pub(in crate::sets) struct Exception<'q, 'a> {
    pub any: Vec<&'q [Token<'a>]>,
    pub but: Vec<&'q [Token<'a>]>,
}

impl Exception<'_, '_> {
    pub(super) fn holds(&self, word: &[Unit<'_>]) -> bool {
        self.any.iter().any(|shape| matches(shape, word)) && !self.but.iter().any(|shape| matches(shape, word))
    }
}

impl<'a> Question<'_, 'a> {
    /// The shortest word of a required pattern that is literal but for what may follow; and whether it has no other.
    pub(super) fn literal(&self) -> Option<(Vec<Unit<'a>>, bool)> {
        let unit = |token: &Token<'a>| match token {
            Token::Origin(origin) => Some(Unit::Origin(*origin)),
            Token::Literal(literal) => Some(Unit::Segment(literal.to_vec())),
            Token::Glob(_) | Token::One | Token::Many => None,
        };
        self.required.iter().find_map(|shape| {
            let end = shape.iter().rposition(|token| *token != Token::Many).map_or(0, |last| last + 1);
            Some((shape[..end].iter().map(unit).collect::<Option<_>>()?, end == shape.len()))
        })
    }

    /// Whether a word is an answer, if not the shortest.
    pub(super) fn admits(&self, word: &[Unit<'a>], budget: &mut Budget) -> Result<bool, Exhausted> {
        budget.spend(1 + self.required.len() + self.refused.len())?;
        let matched = |shape: &&[Token<'a>]| matches(shape, word);
        if !self.required.iter().all(matched) || self.refused.iter().any(matched) {
            return Ok(false);
        }
        for forest in &self.forests {
            let mut places = forest.trie.start();
            for unit in word {
                budget.spend(1 + places.len())?;
                places = forest.trie.step(&places, unit);
            }
            let refused = |set| match (forest.role)(set) {
                Role::Ignored => false,
                Role::Refused(ways) => !ways.iter().any(|way| way.holds(word)),
            };
            if forest.trie.ends(&places).any(|(set, _)| refused(set)) {
                return Ok(false);
            }
        }
        Ok(true)
    }
}
