//! Paths: `~/.ssh/*.pub`, `$WORKSPACE/**/.env`, `@NAME`. Spelling only: nothing is looked up.

use super::{variable, variable_fault};
use crate::syntax::ast::{PathShape, Piece, Segment, Shape, Start, Variable, VariableShape};
use crate::syntax::codes;
use crate::syntax::fault::Fault;
use crate::syntax::grammar::{Breach, Pair, Rule, read};
use crate::vocabulary::Reach;
use crate::vocabulary::is_variable;

/// How many `**` one path may hold, and how many `*` one segment: past these, which of two rules is more specific
/// could take too long to decide.
const MOST_ANY_DEPTH: usize = 3;
const MOST_ANY_RUN: usize = 4;

pub(super) fn path(text: &str, reach: Reach) -> Result<Shape, Fault> {
    if let Some(name) = text.strip_prefix('@') {
        return abstract_socket(name, reach);
    }
    match common(text) {
        Some((start, segments)) => Ok(shape(reach, start, segments)),
        None => by_grammar(text, reach),
    }
}

fn by_grammar(text: &str, reach: Reach) -> Result<Shape, Fault> {
    let pairs = read(Rule::path, text).map_err(|breach| fault(text, &breach))?;
    let mut start = Start::Root;
    let mut segments = Vec::new();
    let mut depths = 0;
    // The grammar reads `path` around its parts, and the end of the text as one of them.
    let mut parts = pairs.flat_map(Pair::into_inner).filter(|pair| pair.as_rule() != Rule::EOI).peekable();
    while let Some(part) = parts.next() {
        match part.as_rule() {
            Rule::variable => start = Start::Variable(variable(part)?),
            Rule::home => start = Start::Home,
            Rule::drive => {
                let letter = part.as_str().chars().next().unwrap_or('C');
                start = Start::Drive(letter.to_ascii_uppercase());
            }
            Rule::any_start => {
                depths += 1;
                segments.push(Segment::AnyDepth);
            }
            Rule::segment => {
                let at = part.as_span().start();
                let end = part.as_span().end();
                if at == end {
                    let rooted = matches!(start, Start::Root | Start::Drive(_));
                    if parts.peek().is_none() && segments.is_empty() && rooted {
                        break;
                    }
                    return Err(empty_segment(text, at));
                }
                let read = segment(part)?;
                if read == Segment::AnyDepth {
                    depths += 1;
                    if depths > MOST_ANY_DEPTH {
                        return Err(Fault::new(
                            &codes::PATTERN,
                            format!("a path holds more than {MOST_ANY_DEPTH} `**`"),
                            "name more of the path, or write several targets",
                        )
                        .at(at..end));
                    }
                }
                segments.push(read);
            }
            _ => {}
        }
    }
    Ok(shape(reach, start, segments))
}

fn shape(reach: Reach, start: Start, segments: Vec<Segment>) -> Shape {
    match start {
        Start::Variable(variable) if segments.is_empty() => {
            Shape::Variable(VariableShape { variable, reach, ports: None })
        }
        start => Shape::Path(PathShape { reach, start, segments }),
    }
}

/// What the grammar makes of the paths that nearly every target is: `/`, `~` or `$NAME` before segments of letters, digits,
/// `.`, `_` and `-`, or `**`. Hundreds of them are read at each start, and this takes a twentieth of the time. `None` for
/// all others, right or wrong.
fn common(text: &str) -> Option<(Start, Vec<Segment>)> {
    let (first, rest) = text.split_once('/').unwrap_or((text, ""));
    let start = match first {
        "" => Start::Root,
        "~" => Start::Home,
        _ => {
            let name = first.strip_prefix('$')?;
            if !is_variable(name) {
                return None;
            }
            Start::Variable(Variable { name: name.to_owned(), optional: false, fallback: None })
        }
    };
    if first.len() == text.len() {
        return (!text.is_empty()).then(|| (start, Vec::new()));
    }
    let mut depths = 0;
    let segment = |segment: &str| match segment {
        "" | "." | ".." => None,
        "**" => {
            depths += 1;
            (depths <= MOST_ANY_DEPTH).then_some(Segment::AnyDepth)
        }
        name => {
            let plain = name.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"._-".contains(&byte));
            plain.then(|| Segment::Pieces(vec![Piece::Text(name.to_owned())]))
        }
    };
    let segments = rest.split('/').map(segment).collect::<Option<Vec<_>>>()?;
    Some((start, segments))
}

fn abstract_socket(name: &str, reach: Reach) -> Result<Shape, Fault> {
    if reach != Reach::Tree {
        return Err(Fault::new(
            &codes::MISMATCH,
            format!("`@{name}` is an abstract socket and has nothing below it"),
            format!("write `@{name}` alone"),
        ));
    }
    let strange = name.chars().find(|c| !(c.is_ascii_alphanumeric() || "-_./:".contains(*c)));
    match strange {
        None if !name.is_empty() => Ok(Shape::Abstract(name.to_owned())),
        _ => Err(Fault::new(
            &codes::PATH,
            format!("`@{name}` is not the name of an abstract socket"),
            "write `@` and a name of letters, digits, `-`, `_`, `.`, `/` and `:`",
        )),
    }
}

fn empty_segment(text: &str, at: usize) -> Fault {
    if at == text.len() {
        let kept = text.trim_end_matches('/');
        let kept = if kept.is_empty() { "/" } else { kept };
        return Fault::new(
            &codes::PATH,
            format!("`{text}` ends in `/`"),
            format!("write `{kept}`, which is that place and all below it"),
        )
        .instead(text, kept)
        .at(at.saturating_sub(1)..at);
    }
    let mut fixed = text.to_owned();
    while fixed.contains("//") {
        fixed = fixed.replace("//", "/");
    }
    Fault::new(&codes::PATH, format!("`//` stands in `{text}`"), format!("write `{fixed}`"))
        .instead(text, fixed)
        .at(at - 1..at + 1)
}

fn segment(pair: Pair<'_>) -> Result<Segment, Fault> {
    let text = pair.as_str();
    let range = pair.as_span().start()..pair.as_span().end();
    if text == "**" {
        return Ok(Segment::AnyDepth);
    }
    let mut pieces = Vec::new();
    let mut runs = 0;
    for piece in pair.into_inner() {
        let at = piece.as_span().start()..piece.as_span().end();
        match piece.as_rule() {
            Rule::stars if piece.as_str() != "*" => {
                return Err(Fault::new(
                    &codes::PATTERN,
                    format!("`{}` is only a part of the segment `{text}`", piece.as_str()),
                    "write `*` for any run within a segment, or `**` alone between two `/`",
                )
                .at(at));
            }
            Rule::stars => {
                runs += 1;
                pieces.push(Piece::AnyRun);
            }
            Rule::any_char => pieces.push(Piece::AnyChar),
            Rule::class => pieces.push(class(piece)?),
            Rule::escaped => {
                let literal = &piece.as_str()[1..];
                if literal == "/" {
                    return Err(Fault::new(
                        &codes::PATH,
                        "`\\/` asks for a name with `/` in it, which no file has",
                        "write `/` alone",
                    )
                    .at(at));
                }
                push_text(&mut pieces, literal);
            }
            _ => {
                let literal = piece.as_str();
                if let Some(found) = literal.find('$') {
                    return Err(Fault::new(
                        &codes::PATH,
                        format!("`$` stands inside `{text}`, where it names no variable"),
                        "start the path with the variable, or write `\\$` for the character itself",
                    )
                    .at(at.start + found..at.start + found + 1));
                }
                push_text(&mut pieces, literal);
            }
        }
    }
    if runs > MOST_ANY_RUN {
        return Err(Fault::new(
            &codes::PATTERN,
            format!("the segment `{text}` holds more than {MOST_ANY_RUN} `*`"),
            "name more of it, or write several targets",
        )
        .at(range));
    }
    if let [Piece::Text(name)] = pieces.as_slice()
        && (name == "." || name == "..")
    {
        return Err(Fault::new(
            &codes::PATH,
            format!("`{name}` is a segment of the path"),
            "write the path without it, as the system will see it",
        )
        .at(range));
    }
    Ok(Segment::Pieces(pieces))
}

/// Adds literal characters, to the text before them if there is one.
pub(super) fn push_text(pieces: &mut Vec<Piece>, literal: &str) {
    if let Some(Piece::Text(text)) = pieces.last_mut() {
        text.push_str(literal);
    } else {
        pieces.push(Piece::Text(literal.to_owned()));
    }
}

/// From a `class` pair.
fn class(pair: Pair<'_>) -> Result<Piece, Fault> {
    let text = pair.as_str();
    let range = pair.as_span().start()..pair.as_span().end();
    let mut negated = false;
    let mut ranges: Vec<(char, char)> = Vec::new();
    for item in pair.into_inner() {
        if item.as_rule() == Rule::negation {
            negated = true;
            continue;
        }
        if ranges.is_empty() && !negated && item.as_str().starts_with('^') {
            return Err(Fault::new(
                &codes::PATH,
                format!("`{text}` starts with `^`"),
                format!("write `[!{}` for all other characters, or `\\^` for the character itself", &text[2..]),
            )
            .at(range));
        }
        let mut ends = item.into_inner().map(|end| {
            let written = end.as_str();
            let literal = if written.len() > 1 { written.strip_prefix('\\').unwrap_or(written) } else { written };
            literal.chars().next().unwrap_or('\\')
        });
        let Some(low) = ends.next() else { continue };
        let high = ends.next().unwrap_or(low);
        if low > high {
            return Err(Fault::new(
                &codes::PATH,
                format!("the range `{low}-{high}` in `{text}` is empty"),
                format!("write `{high}-{low}`"),
            )
            .at(range));
        }
        if low <= '/' && '/' <= high {
            return Err(Fault::new(
                &codes::PATH,
                format!("`{text}` holds `/`, which no name has in it"),
                "write the characters without it; a range such as `!-~` has it inside",
            )
            .at(range));
        }
        ranges.push((low, high));
    }
    Ok(Piece::Class { negated, ranges })
}

/// Why a text is not a path at all.
fn fault(text: &str, breach: &Breach) -> Fault {
    let expected = "expected a path";
    if let Some(rest) = text.strip_prefix('~')
        && !rest.starts_with('/')
    {
        return Fault::new(
            &codes::PATH,
            format!("`{text}` starts with `~` and a name, and only the caller's own home has a short form"),
            "write the path from `/`, or `~/`",
        );
    }
    if breach.at < text.len() && text[breach.at..].starts_with('[') && breach.at > 0 {
        return Fault::new(
            &codes::PATH,
            "this `[` is not closed",
            "write `]` after the characters, or `\\[` for the character itself",
        )
        .at(breach.at..breach.at + 1);
    }
    if text.starts_with('$') {
        return variable_fault(text, "`/` and more segments");
    }
    if text == "**" {
        return Fault::new(&codes::PATH, "`**` alone is every path", "write `/`, which is that place and all below it");
    }
    if text.starts_with("**") {
        return Fault::new(
            &codes::PATTERN,
            format!("`**` is only a part of the first segment of `{text}`"),
            format!("write `**/*{}`", text.trim_start_matches('*')),
        );
    }
    let drive = text.as_bytes();
    if drive.len() >= 2 && drive[0].is_ascii_alphabetic() && drive[1] == b':' && !text.contains('.') {
        return Fault::new(
            &codes::PATH,
            format!("{expected}, found `{text}`"),
            format!("write `{}:/` and `/` between the segments", text[..1].to_ascii_uppercase()),
        );
    }
    if text.contains("://") {
        return Fault::new(
            &codes::PATH,
            format!("{expected}, found the URL `{text}`"),
            "write `allow connect` and the domain alone",
        );
    }
    if text == "." || text == "./" {
        return Fault::new(&codes::PATH, format!("{expected}, found `{text}`"), "write `$WORKSPACE`")
            .instead(text, "$WORKSPACE");
    }
    if text == ".." || text.starts_with("../") {
        return Fault::new(
            &codes::PATH,
            format!("{expected}, found `{text}`, which depends on where a command is started"),
            "write the path from `/`, `~/` or a variable",
        );
    }
    let inner = text.strip_prefix("./").unwrap_or(text);
    Fault::new(
        &codes::PATH,
        format!("{expected}, found `{text}`, which depends on where a command is started"),
        format!("write `$WORKSPACE/{inner}`, or start the path with `/`, `~/` or `**/`"),
    )
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn the_short_way_is_the_grammars(start in r"(/|~|~/|\$[A-Za-z0-9_.]{0,3}|\$W/|\*\*/|)", rest in r"([a.~$*_/-]|\*\*|/){0,9}") {
            let text = format!("{start}{rest}");
            if let Some((start, segments)) = common(&text) {
                let read = by_grammar(&text, Reach::Tree).map_err(|fault| fault.message);
                prop_assert_eq!(read, Ok(shape(Reach::Tree, start, segments)), "{}", text);
            }
        }
    }

    #[test]
    fn most_paths_go_the_short_way() {
        for text in ["/etc/passwd", "~", "~/.ssh/id_rsa", "$WORKSPACE", "$WORKSPACE/**/.git/hooks"] {
            assert!(common(text).is_some(), "{text}");
        }
        for text in ["", "/", "/a/", "//a", "/a/../b", "$1/a", "$a.b", "/a*", "/a/**/**/**/**/b", "a/b", "~a/b"] {
            assert!(common(text).is_none(), "{text}");
        }
    }
}
