//! The names of environment variables and of mach services.

use super::path::push_text;
use super::{variable, variable_fault};
use crate::syntax::ast::{Piece, Shape, VariableShape};
use crate::syntax::codes;
use crate::syntax::fault::Fault;
use crate::syntax::grammar::{Pair, Rule, read};
use crate::vocabulary::{Kind, Reach};

/// How many `*` one name may hold, as one segment of a path.
const MOST_ANY_RUN: usize = 4;

pub(super) fn name(text: &str, kind: Kind) -> Result<Shape, Fault> {
    let expected = kind.expected();
    let pairs = read(Rule::name, text).map_err(|breach| {
        Fault::new(&codes::TOKEN, format!("expected {expected}, found `{text}`"), "write the name")
            .at(breach.at..text.len())
    })?;
    let mut pieces = Vec::new();
    let mut runs = 0;
    for part in pairs.flat_map(Pair::into_inner) {
        let range = part.as_span().start()..part.as_span().end();
        match part.as_rule() {
            Rule::variable => {
                return Ok(Shape::Variable(VariableShape {
                    variable: variable(part)?,
                    reach: Reach::Tree,
                    ports: None,
                }));
            }
            Rule::stars if kind == Kind::Service => {
                return Err(Fault::new(
                    &codes::TOKEN,
                    format!("`{text}` holds `*`, and a mach service is named in full"),
                    "write each service in full",
                )
                .at(range));
            }
            Rule::stars if part.as_str() == "*" => {
                runs += 1;
                pieces.push(Piece::AnyRun);
            }
            Rule::stars => {
                return Err(Fault::new(
                    &codes::TOKEN,
                    format!("`{}` stands in a name, which has no segments", part.as_str()),
                    "write `*`",
                )
                .at(range));
            }
            Rule::escaped => push_text(&mut pieces, &part.as_str()[1..]),
            Rule::name_text => {
                check(text, part.as_str(), range.start, expected)?;
                push_text(&mut pieces, part.as_str());
            }
            _ => {}
        }
    }
    if runs > MOST_ANY_RUN {
        return Err(Fault::new(
            &codes::PATTERN,
            format!("`{text}` holds more than {MOST_ANY_RUN} `*`"),
            "name more of it, or write several targets",
        ));
    }
    if let Some(Piece::Text(all)) = pieces.iter().find(|piece| matches!(piece, Piece::Text(t) if t.contains('='))) {
        return Err(Fault::new(
            &codes::TOKEN,
            format!("`{all}` holds `=`, which no name has"),
            "write the name alone; `set NAME=VALUE` gives a variable its value",
        ));
    }
    Ok(Shape::Name(pieces))
}

fn check(text: &str, literal: &str, offset: usize, expected: &str) -> Result<(), Fault> {
    if text.starts_with('$') {
        return Err(variable_fault(text, "nothing"));
    }
    if let Some(at) = literal.find(['/', '?', '[', '$', ' ', '\t', '~']) {
        let strange = &literal[at..=at];
        return Err(Fault::new(
            &codes::TOKEN,
            format!("expected {expected}, found `{text}`, which holds `{strange}`"),
            format!("write the name with `*` and braces alone, or `\\{strange}` for the character itself"),
        )
        .at(offset + at..offset + at + 1));
    }
    Ok(())
}
