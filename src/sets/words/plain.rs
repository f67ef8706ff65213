//! What can be seen of a question without a search: that a pattern which must match lies whole in what is refused. Most
//! questions are about rules of which one holds all of another, and end here. What is not seen here is left to the search.

use super::Token;
use super::plainly_apart;
use super::question::{Question, Role};
use super::trie::Trie;
use crate::sets::budget::{Budget, Exhausted};

/// How often what lifts a refusal is looked for in what is refused again.
const DEPTH: u32 = 3;

/// Whether every word of some required pattern is refused. `false` says nothing.
pub(super) fn is_refused(question: &Question<'_, '_>, budget: &mut Budget) -> Result<bool, Exhausted> {
    for shape in &question.required {
        if all_refused(question, shape, DEPTH, budget)? {
            return Ok(true);
        }
    }
    Ok(false)
}

/// Whether every word of a pattern, as far as the required ones match it too, is in a set that is refused, and in nothing that
/// lifts it but what is refused itself.
fn all_refused<'a>(
    question: &Question<'_, 'a>,
    shape: &[Token<'a>],
    depth: u32,
    budget: &mut Budget,
) -> Result<bool, Exhausted> {
    let meets = |way: &[Token<'a>]| {
        !plainly_apart(shape, way) && !question.required.iter().any(|required| plainly_apart(required, way))
    };
    for forest in &question.forests {
        let places = around(forest.trie, shape, budget)?;
        for (set, _) in forest.trie.ends(&places) {
            let Role::Refused(ways) = (forest.role)(set) else { continue };
            let mut open = ways.iter().flat_map(|way| &way.any).filter(|way| meets(way));
            budget.spend(1 + ways.len())?;
            let kept = match depth.checked_sub(1) {
                None => open.next().is_some(),
                Some(depth) => {
                    let mut kept = false;
                    for way in open {
                        if !all_refused(question, way, depth, budget)? {
                            kept = true;
                            break;
                        }
                    }
                    kept
                }
            };
            if !kept {
                return Ok(true);
            }
        }
    }
    Ok(false)
}

/// Places that every word of a pattern leads to.
fn around<'a>(trie: &Trie<'a>, shape: &[Token<'a>], budget: &mut Budget) -> Result<Vec<u32>, Exhausted> {
    let mut places = trie.start();
    for token in shape {
        budget.spend(1 + places.len())?;
        places = trie.step_all(&places, *token);
    }
    Ok(places)
}
