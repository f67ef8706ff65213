//! What a target's text spells, once the verb has told whether it is a path, a peer or a name. Each kind has its file
//! below; here are the parts they share: braces, `exact` and `below`, variables and `or`.

mod address;
mod name;
mod path;
mod peer;

use super::ast::{Shape, Variable, VariableShape};
use super::codes;
use super::fault::{Fault, Place};
use super::grammar::{Pair, Rule};
use super::token::expand;
use crate::diagnostic::Diagnostic;
use crate::vocabulary::{Kind, Reach};

/// How many `or` may follow each other.
const MOST_FALLBACKS: usize = 8;

/// The shapes of a target's text, one an expansion, each with its own complaint if it has one.
pub(super) fn shapes(text: &str, kind: Kind, place: Place) -> Result<Vec<Shape>, Vec<Diagnostic>> {
    let (reach, body) = split_reach(text);
    let offset = text.len() - body.len();
    let expansions = expand_body(body, kind).map_err(|fault| vec![shift(fault, offset).diagnostic(place)])?;
    let place = Place { verbatim: place.verbatim && expansions.len() == 1, ..place };
    // Where the body starts, for the spans of its ports.
    let inside = if place.verbatim { Place { span: place.part(offset..text.len()), ..place } } else { place };
    let mut shapes = Vec::with_capacity(expansions.len());
    for expansion in &expansions {
        // One complaint a target: its expansions share their faults.
        shapes.push(one(expansion, reach, kind, inside).map_err(|fault| vec![shift(fault, offset).diagnostic(place)])?);
    }
    Ok(shapes)
}

/// Whether the braces of a text whose kind is not known are written well.
pub(super) fn braces(text: &str) -> Result<(), Fault> {
    let (_, body) = split_reach(text);
    // As a peer, which has the one form of braces that needs no comma.
    expand_body(body, Kind::Peer).map(|_| ()).map_err(|fault| shift(fault, text.len() - body.len()))
}

fn expand_body(body: &str, kind: Kind) -> Result<Vec<std::borrow::Cow<'_, str>>, Fault> {
    if body.starts_with("${") { Err(variable_fault(body, "nothing")) } else { expand(body, kind) }
}

fn shift(mut fault: Fault, offset: usize) -> Fault {
    fault.range = fault.range.map(|range| range.start + offset..range.end + offset);
    fault
}

/// Takes `exact ` or `below ` off the front.
fn split_reach(text: &str) -> (Option<Reach>, &str) {
    for (word, reach) in [("exact", Reach::Exact), ("below", Reach::Below)] {
        if let Some(rest) = text.strip_prefix(word)
            && rest.starts_with([' ', '\t'])
        {
            return (Some(reach), rest.trim_start_matches([' ', '\t']));
        }
    }
    (None, text)
}

/// One expansion. `or` binds the variable before it to all that follows.
fn one(text: &str, reach: Option<Reach>, kind: Kind, place: Place) -> Result<Shape, Fault> {
    if let Some(reach) = reach
        && kind != Kind::Path
    {
        let word = if reach == Reach::Exact { "exact" } else { "below" };
        return Err(Fault::new(
            &codes::MISMATCH,
            format!("`{word}` stands before {}, and only a path has something below it", kind.expected()),
            format!("take `{word}` out"),
        ));
    }
    let parts: Vec<&str> =
        if text.starts_with("$env.") { text.splitn(MOST_FALLBACKS + 2, " or ").collect() } else { vec![text] };
    if parts.len() > MOST_FALLBACKS + 1 {
        return Err(Fault::new(
            &codes::PATTERN,
            format!("more than {MOST_FALLBACKS} `or` follow each other"),
            "name fewer variables",
        ));
    }
    // Parts of a part have no place of their own.
    let inner = Place { verbatim: place.verbatim && parts.len() == 1, ..place };
    let mut shape = None;
    for part in parts.iter().rev() {
        let mut this = plain(part, reach, kind, inner).map_err(|mut fault| {
            fault.range = fault.range.filter(|_| parts.len() == 1);
            fault
        })?;
        if let Some(fallback) = shape.take() {
            let Shape::Variable(VariableShape { variable, ports: None, .. }) = &mut this else {
                return Err(no_fallback(part));
            };
            if !variable.name.starts_with("env.") || variable.optional {
                return Err(no_fallback(part));
            }
            variable.fallback = Some(Box::new(fallback));
        }
        shape = Some(this);
    }
    // `splitn` yields at least one part.
    shape.ok_or_else(|| empty(kind))
}

pub(super) fn no_fallback(part: &str) -> Fault {
    Fault::new(
        &codes::TOKEN,
        format!("`or` follows `{part}`, and only a plain `$env.NAME` can be unset"),
        "write `$env.NAME or TARGET`, or the two targets as a list",
    )
}

fn plain(text: &str, reach: Option<Reach>, kind: Kind, place: Place) -> Result<Shape, Fault> {
    if text.is_empty() {
        return Err(empty(kind));
    }
    if let Some((at, hidden)) = super::characters::first_hidden(text) {
        return Err(Fault::new(
            &codes::CHARACTER,
            format!("the character {} stands in a target", super::characters::describe(hidden)),
            "take it out",
        )
        .at(at..at + hidden.len_utf8()));
    }
    match kind {
        Kind::Path => path::path(text, reach.unwrap_or(Reach::Tree)),
        Kind::Peer | Kind::Address => peer::peer(text, kind, place),
        Kind::Variable | Kind::Service => name::name(text, kind),
    }
}

fn empty(kind: Kind) -> Fault {
    Fault::new(
        &codes::TOKEN,
        format!("expected {}, found an empty text", kind.expected()),
        "write the target, or take it out",
    )
}

/// From a `variable` pair.
fn variable(pair: Pair<'_>) -> Result<Variable, Fault> {
    let range = pair.as_span().start()..pair.as_span().end();
    let mut name = String::new();
    let mut optional = false;
    for part in pair.into_inner() {
        match part.as_rule() {
            Rule::variable_name => part.as_str().clone_into(&mut name),
            _ => optional = true,
        }
    }
    if optional && !name.starts_with("env.") {
        return Err(Fault::new(
            &codes::TOKEN,
            format!("`?` follows `${name}`, and only `$env.NAME` may be unset"),
            format!("write `${name}`"),
        )
        .instead(format!("${name}?"), format!("${name}"))
        .at(range));
    }
    Ok(Variable { name, optional, fallback: None })
}

/// Why a text that starts with `$` is not a variable with what may follow one.
fn variable_fault(text: &str, suffix: &str) -> Fault {
    if let Some(name) = text.strip_prefix("${").and_then(|rest| rest.split_once('}')).map(|(name, _)| name) {
        return Fault::new(
            &codes::TOKEN,
            format!("a variable is written without braces, not `${{{name}}}`"),
            format!("write `${name}`"),
        )
        .instead(format!("${{{name}}}"), format!("${name}"));
    }
    let after =
        text[1..].trim_start_matches("env.").trim_start_matches(|c: char| c.is_ascii_alphanumeric() || c == '_');
    let head = &text[..text.len() - after.len()];
    if head.len() == 1 || head == "$env." {
        return Fault::new(
            &codes::TOKEN,
            "`$` stands before no name",
            "write `$NAME`, or `\\$` for the character itself",
        )
        .at(0..1);
    }
    Fault::new(
        &codes::TOKEN,
        format!("`{after}` follows the variable `{head}`"),
        format!("write only {suffix} after a variable"),
    )
    .at(head.len()..text.len())
}
