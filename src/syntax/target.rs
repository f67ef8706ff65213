//! Targets where they stand: in a rule, its `except`, a `let`. What their text spells is `shape`'s business.

use super::ast::{AddressShape, HostPattern, Piece, Segment, Shape, Spanned, Start, Target, VariableShape};
use super::codes;
use super::fault::{Fault, Place};
use super::grammar::{Pair, Rule};
use super::reader::Reader;
use super::token::Token;
use super::{shape, suppression};
use crate::source::Span;
use crate::vocabulary::{Kind, System, Verb};

/// How many targets of one `except` may be other than literal.
const MOST_OPEN_EXCEPTIONS: usize = 64;

/// What targets are wanted for.
#[derive(Clone, Copy)]
pub(super) enum Role<'a> {
    /// A `let`: not known yet.
    Unknown,
    /// What a verb is about.
    Rule { verbs: &'a [Spanned<Verb>], systems: &'a [Spanned<System>], allow: bool },
    /// What a rule leaves out.
    Except { verbs: &'a [Spanned<Verb>], systems: &'a [Spanned<System>] },
    /// No verb, but a kind.
    Kind { kind: Kind, systems: &'a [Spanned<System>] },
}

impl Role<'_> {
    fn kind(self) -> Option<Kind> {
        match self {
            Role::Unknown => None,
            Role::Rule { verbs, .. } | Role::Except { verbs, .. } => verbs.first().map(|verb| verb.value.kind()),
            Role::Kind { kind, .. } => Some(kind),
        }
    }

    fn systems(&self) -> &[Spanned<System>] {
        match self {
            Role::Unknown => &[],
            Role::Rule { systems, .. } | Role::Except { systems, .. } | Role::Kind { systems, .. } => systems,
        }
    }
}

/// From a `target` or `list` pair: the targets without a fault; each of the others has been complained about once.
pub(super) fn read(reader: &mut Reader, pair: Pair<'_>, role: Role<'_>) -> Vec<Target> {
    if pair.as_rule() == Rule::target {
        return one(reader, pair, role).into_iter().collect();
    }
    let mut targets = Vec::new();
    for item in pair.into_inner() {
        match item.as_rule() {
            Rule::target => targets.extend(one(reader, item, role)),
            Rule::comment => suppression::misplaced(reader, &item),
            _ => {}
        }
    }
    targets
}

/// One target; `None` if it has a fault, which is said by then.
fn one(reader: &mut Reader, pair: Pair<'_>, role: Role<'_>) -> Option<Target> {
    let span = reader.span(&pair);
    let mut text = String::with_capacity(pair.as_str().len());
    let mut tokens = 0;
    let mut quoted = false;
    for part in pair.into_inner() {
        match part.as_rule() {
            Rule::reach => {
                text.push_str(part.as_str());
                text.push(' ');
            }
            Rule::string | Rule::bare => {
                let token = Token::new(part.as_str());
                let place = reader.span(&part);
                if let Err(fault) = check(token, role) {
                    reader.complain(fault, place);
                    return None;
                }
                if tokens > 0 {
                    text.push_str(" or ");
                }
                tokens += 1;
                quoted |= token.quoted;
                text.push_str(token.content);
            }
            _ => {}
        }
    }
    let place = Place { span, verbatim: !quoted && text.len() == span.range().len() };
    if let Err(fault) = fallbacks(&text, tokens) {
        reader.diagnostics.push(fault.diagnostic(Place { span, verbatim: false }));
        return None;
    }
    let Some(kind) = role.kind() else {
        // Braces are a matter of spelling, whatever the kind.
        if let Err(fault) = shape::braces(&text) {
            reader.diagnostics.push(fault.diagnostic(place));
            return None;
        }
        return Some(Target { span, text, shapes: Vec::new() });
    };
    match shape::shapes(&text, kind, place) {
        Ok(shapes) => {
            if let Some(fault) = shapes.iter().find_map(|shape| unfit(shape, &text, role)) {
                let diagnostic = fault.diagnostic(Place { span, verbatim: false });
                reader.diagnostics.push(diagnostic);
                return None;
            }
            if let Some(fault) = shapes.iter().find_map(|shape| homeless(shape, &text, role)) {
                reader.homeless.push(fault.diagnostic(Place { span, verbatim: false }));
                return None;
            }
            Some(Target { span, text, shapes })
        }
        Err(mut diagnostics) => {
            reader.diagnostics.append(&mut diagnostics);
            None
        }
    }
}

fn check(token: Token<'_>, role: Role<'_>) -> Result<(), Fault> {
    token.check()?;
    if token.quoted && token.content.starts_with("$env.") && token.content.contains(" or ") {
        return Err(Fault::new(
            &codes::TOKEN,
            "`or` stands inside the quotes",
            "quote the two targets, each by itself, with `or` between them",
        ));
    }
    if !token.quoted && matches!(role, Role::Unknown) && token.content.starts_with("lines(") {
        return Err(Fault::new(
            &codes::SYNTAX,
            format!("expected `lines(\"FILE\")`, found `{}`", token.content),
            "write the file's name in quotes",
        ));
    }
    Ok(())
}

/// `or` may follow a plain `$env.NAME` alone.
fn fallbacks(text: &str, tokens: usize) -> Result<(), Fault> {
    if tokens > 1 {
        for part in text.split(" or ").take(tokens - 1) {
            let plain = part
                .trim_start_matches("exact ")
                .trim_start_matches("below ")
                .strip_prefix("$env.")
                .is_some_and(|name| name.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'_'));
            if !plain {
                return Err(shape::no_fallback(part));
            }
        }
    }
    Ok(())
}

/// What only the statement around it can find wrong with a shape.
fn unfit(shape: &Shape, text: &str, role: Role<'_>) -> Option<Fault> {
    match (shape, role) {
        (Shape::Abstract(_), Role::Rule { verbs, .. } | Role::Except { verbs, .. })
            if verbs.iter().any(|verb| verb.value != Verb::Socket) =>
        {
            Some(Fault::new(
                &codes::MISMATCH,
                format!("`{text}` is an abstract socket, and only `socket` takes one"),
                "write a rule for `socket`, or start the path with `/`",
            ))
        }
        (Shape::Abstract(_), Role::Kind { .. }) => Some(Fault::new(
            &codes::MISMATCH,
            format!("`{text}` is an abstract socket, which is no place in the tree"),
            "write a path",
        )),
        (Shape::Address(AddressShape { ports: None, .. }), Role::Rule { allow: true, .. }) => Some(Fault::new(
            &codes::PORTS,
            format!("`{text}` is allowed without ports"),
            format!("write the ports, as in `{text}:443`, or `{text}:*` for all"),
        )),
        (
            Shape::Address(AddressShape { ports: Some(_), .. }) | Shape::Variable(VariableShape { ports: Some(_), .. }),
            Role::Except { .. },
        ) => Some(ports_in_except(text)),
        (Shape::Host(host), Role::Except { .. }) if host.ports.is_some() => Some(ports_in_except(text)),
        (Shape::Variable(variable), role) => {
            variable.variable.fallback.as_deref().and_then(|fallback| unfit(fallback, text, role))
        }
        _ => None,
    }
}

/// A drive outside of a block for windows alone.
fn homeless(shape: &Shape, text: &str, role: Role<'_>) -> Option<Fault> {
    let drive = match shape {
        Shape::Path(path) => matches!(path.start, Start::Drive(_)),
        Shape::Variable(variable) => {
            return variable.variable.fallback.as_deref().and_then(|fallback| homeless(fallback, text, role));
        }
        _ => false,
    };
    let elsewhere = role.systems().is_empty() || role.systems().iter().any(|system| system.value != System::Windows);
    (drive && elsewhere).then(|| {
        Fault::new(
            &codes::PATH,
            format!("`{text}` starts with a drive, which only windows has"),
            "write it in a block `on windows { … }`",
        )
    })
}

fn ports_in_except(text: &str) -> Fault {
    Fault::new(
        &codes::PORTS,
        format!("`{text}` in `except` has ports, and what is left out is left out on all of the rule's"),
        "take the ports out, or write a `deny` with them",
    )
}

/// Complains if an `except` is too large for its rule to be compared with others.
pub(super) fn limit_except(reader: &mut Reader, targets: &[Target]) {
    let open = |shape: &Shape| !literal(shape);
    let many = targets.iter().map(|target| target.shapes.iter().filter(|shape| open(shape)).count()).sum::<usize>();
    if many > MOST_OPEN_EXCEPTIONS
        && let (Some(first), Some(last)) = (targets.first(), targets.last())
    {
        let span: Span = first.span.to(last.span);
        let fault = Fault::new(
            &codes::PATTERN,
            format!("an `except` holds {many} targets with `*`, `?` or `[…]`, and {MOST_OPEN_EXCEPTIONS} is the most"),
            "write fewer patterns, or several rules",
        );
        reader.complain(fault, span);
    }
}

/// Whether a shape is free of patterns.
fn literal(shape: &Shape) -> bool {
    let plain = |pieces: &[Piece]| pieces.iter().all(|piece| matches!(piece, Piece::Text(_)));
    match shape {
        Shape::Path(path) => path.segments.iter().all(|segment| match segment {
            Segment::AnyDepth => false,
            Segment::Pieces(pieces) => plain(pieces),
        }),
        Shape::Host(host) => match &host.host {
            HostPattern::Any => false,
            HostPattern::Labels { below, labels } => !below && labels.iter().all(|label| plain(label)),
        },
        Shape::Name(pieces) => plain(pieces),
        Shape::Variable(variable) => variable.variable.fallback.as_deref().is_none_or(literal),
        Shape::Address(_) | Shape::Abstract(_) => true,
    }
}
