//! What a connection may go to or be taken at: domains and addresses, with their ports. Labels stay as written: the
//! A-label form is `sets`' business.

use super::{address, variable, variable_fault};

use crate::syntax::ast::{AddressShape, HostPattern, HostShape, Piece, Ports, Shape, VariableShape};
use crate::syntax::codes;
use crate::syntax::fault::{Fault, Place};
use crate::syntax::grammar::{Breach, Pair, Rule, read};
use crate::vocabulary::{Kind, Reach};
use std::net::IpAddr;
use std::ops::Range;

/// How many `*` one label may hold, as one segment of a path.
const MOST_ANY_RUN: usize = 4;

pub(super) fn peer(text: &str, kind: Kind, place: Place) -> Result<Shape, Fault> {
    let pairs = read(Rule::peer, text).map_err(|breach| fault(text, kind, &breach))?;
    let mut shape = None;
    let mut prefix: Option<(u8, Range<usize>)> = None;
    let mut ports = None;
    for part in pairs.flat_map(Pair::into_inner) {
        let range = part.as_span().start()..part.as_span().end();
        match part.as_rule() {
            Rule::variable => {
                let variable = variable(part)?;
                shape = Some(Shape::Variable(VariableShape { variable, reach: Reach::Tree, ports: None }));
            }
            Rule::v6_address => {
                let inner = &part.as_str()[1..part.as_str().len() - 1];
                shape = Some(single(IpAddr::V6(address::v6(inner)?)));
            }
            Rule::peer_name if address::ends_in_number(part.as_str()) => {
                let address = address::v4(part.as_str()).map_err(|fault| fault.at(range))?;
                shape = Some(single(IpAddr::V4(address)));
            }
            Rule::peer_name if kind == Kind::Address => return Err(not_an_address(part.as_str())),
            Rule::peer_name => shape = Some(host(part.as_str())?),
            Rule::prefix => match &shape {
                Some(Shape::Address(single)) => {
                    prefix = Some((address::prefix(single.address, &part.as_str()[1..])?, range));
                }
                _ => {
                    return Err(Fault::new(
                        &codes::HOST,
                        format!("`{}` follows what is not an address", part.as_str()),
                        "take it out: only an address has a prefix length",
                    )
                    .at(range));
                }
            },
            Rule::ports => ports = Some(read_ports(part, place)?),
            _ => {}
        }
    }
    match shape {
        Some(Shape::Address(shape)) => {
            let prefix = prefix.map_or(shape.prefix, |(length, _)| length);
            Ok(Shape::Address(AddressShape { prefix, ports, ..shape }))
        }
        Some(Shape::Host(shape)) => Ok(Shape::Host(HostShape { ports, ..shape })),
        Some(Shape::Variable(shape)) => Ok(Shape::Variable(VariableShape { ports, ..shape })),
        // The grammar reads one of the three first.
        _ => Err(fault(text, kind, &Breach { at: 0, expected: Vec::new(), exhausted: false })),
    }
}

fn single(address: IpAddr) -> Shape {
    let prefix = if address.is_ipv4() { 32 } else { 128 };
    Shape::Address(AddressShape { address, prefix, ports: None })
}

fn not_an_address(name: &str) -> Fault {
    let help = if name.eq_ignore_ascii_case("localhost") {
        "write `127.0.0.1` or `[::1]`, with ports"
    } else {
        "write the address to listen on, as in `127.0.0.1:3000`"
    };
    Fault::new(&codes::HOST, format!("expected an address, found the domain `{name}`"), help)
}

fn host(text: &str) -> Result<Shape, Fault> {
    let shape = |host| Ok(Shape::Host(HostShape { host, ports: None }));
    if text == "*" {
        return shape(HostPattern::Any);
    }
    let all = text.strip_suffix('.').unwrap_or(text);
    let (below, rest) = match all.strip_prefix("*.") {
        Some(rest) => (true, rest),
        None => (false, all),
    };
    let mut labels = Vec::new();
    let mut at = all.len() - rest.len();
    for written in rest.split('.') {
        labels.push(label(text, written, at)?);
        at += written.len() + 1;
    }
    shape(HostPattern::Labels { below, labels })
}

fn label(host: &str, written: &str, at: usize) -> Result<Vec<Piece>, Fault> {
    let place = at..at + written.len();
    if written.is_empty() {
        let help = match host.strip_prefix('.') {
            Some(rest) => format!("write `*.{rest}` for every name below it, or `{rest}`"),
            None => "write the labels with one `.` between two".to_owned(),
        };
        return Err(Fault::new(&codes::HOST, format!("`{host}` has an empty label"), help));
    }
    if written.bytes().all(|b| b == b'*') {
        return Err(Fault::new(
            &codes::HOST,
            format!("`{written}` is a whole label of `{host}`"),
            "write `*.` once and first, which is every name below at any depth",
        )
        .at(place));
    }
    if written.contains("**") {
        return Err(Fault::new(
            &codes::HOST,
            format!("`**` stands in the label `{written}`"),
            "write `*`, which stays within its label",
        )
        .at(place));
    }
    if let Some(strange) =
        written.chars().find(|c| c.is_ascii() && !c.is_ascii_alphanumeric() && !matches!(c, '-' | '_' | '*'))
    {
        let help = match strange {
            '\\' | '[' | '?' | '(' => "write letters, digits, `-` and `_`, with `*` for any run within a label",
            '@' => "write the domain without a user's name before it",
            '$' => "start the target with the variable",
            _ => "write letters, digits, `-` and `_`, with `.` between labels",
        };
        return Err(Fault::new(
            &codes::HOST,
            format!("expected a domain or an address, found `{host}`, which holds `{strange}`"),
            help,
        )
        .at(place));
    }
    // RFC 1035 §2.3.4; a label that is not ASCII is measured when its A-label is known.
    if written.is_ascii() && written.len() > 63 {
        return Err(Fault::new(
            &codes::HOST,
            "a label is longer than 63 characters, the most that DNS carries".to_owned(),
            "write a shorter one",
        )
        .at(place));
    }
    let mut pieces = Vec::new();
    for (nth, literal) in written.split('*').enumerate() {
        if nth > 0 {
            pieces.push(Piece::AnyRun);
        }
        if !literal.is_empty() {
            pieces.push(Piece::Text(literal.to_owned()));
        }
    }
    if pieces.iter().filter(|piece| **piece == Piece::AnyRun).count() > MOST_ANY_RUN {
        return Err(Fault::new(
            &codes::PATTERN,
            format!("the label `{written}` holds more than {MOST_ANY_RUN} `*`"),
            "name more of it, or write several targets",
        )
        .at(place));
    }
    Ok(pieces)
}

/// From a `ports` pair.
fn read_ports(pair: Pair<'_>, place: Place) -> Result<Ports, Fault> {
    let range = pair.as_span().start()..pair.as_span().end();
    let mut ports = Ports { ranges: Vec::new(), udp: false, span: place.part(range) };
    for part in pair.into_inner() {
        match part.as_rule() {
            Rule::every_port => ports.ranges.push((1, u16::MAX)),
            Rule::port_range => ports.ranges.push(port_range(part)?),
            Rule::port_set => {
                for one in part.into_inner() {
                    ports.ranges.push(port_range(one)?);
                }
            }
            Rule::protocol => ports.udp = true,
            _ => {}
        }
    }
    Ok(ports)
}

fn port_range(pair: Pair<'_>) -> Result<(u16, u16), Fault> {
    let text = pair.as_str();
    let range = pair.as_span().start()..pair.as_span().end();
    let mut ends = pair.into_inner().map(|end| {
        let digits = end.as_str();
        match digits.parse::<u16>() {
            Ok(port) if port > 0 && !digits.starts_with('0') => Ok(port),
            _ => Err(Fault::new(&codes::PORTS, format!("`{digits}` is not a port"), "write a number from 1 to 65535")
                .at(end.as_span().start()..end.as_span().end())),
        }
    });
    // The grammar reads at least one number.
    let low = ends.next().unwrap_or(Ok(1))?;
    let high = ends.next().unwrap_or(Ok(low))?;
    if low > high {
        return Err(Fault::new(&codes::PORTS, format!("the ports `{text}` are none"), format!("write `{high}-{low}`"))
            .instead(text, format!("{high}-{low}"))
            .at(range));
    }
    Ok((low, high))
}

/// Why a text is neither a domain nor an address with what may follow one.
fn fault(text: &str, kind: Kind, breach: &Breach) -> Fault {
    let expected = kind.expected();
    if let Some((_, rest)) = text.split_once("://") {
        let name = rest.split(['/', '?', '#']).next().unwrap_or_default();
        let name = name.rsplit('@').next().unwrap_or_default();
        let help = if name.is_empty() { "write the domain alone".to_owned() } else { format!("write `{name}`") };
        return Fault::new(&codes::HOST, format!("expected {expected}, found the URL `{text}`"), help);
    }
    if text.starts_with(['/', '~']) {
        return Fault::new(
            &codes::MISMATCH,
            format!("expected {expected}, found the path `{text}`"),
            "write `read`, `write`, `exec` or `socket` before a path",
        );
    }
    let colons = text.bytes().filter(|b| *b == b':').count();
    if colons >= 2 && text.bytes().all(|b| b.is_ascii_hexdigit() || b":./".contains(&b)) {
        let (address, prefix) = text.split_once('/').map_or((text, String::new()), |(a, p)| (a, format!("/{p}")));
        return Fault::new(
            &codes::ADDRESS,
            format!("`{text}` is an IPv6 address without brackets"),
            format!("write `[{address}]{prefix}`, with ports after it"),
        );
    }
    let head = text.find([':', '/']).filter(|at| *at > 0 && !text.starts_with('['));
    if text.starts_with('$') && breach.at < text.len() && !text[breach.at..].starts_with(':') && head.is_none() {
        return variable_fault(text, "`:PORTS`");
    }
    if let Some(at) = head.or_else(|| text.find("]:").map(|at| at + 1)) {
        let rest = &text[at..];
        let (ports, protocol) = match rest.split_once('/') {
            Some((ports, protocol)) => (ports, Some(protocol)),
            None => (rest, None),
        };
        if protocol == Some("udp") && ports.is_empty() {
            return Fault::new(&codes::PORTS, "`/udp` follows no ports", "write the ports before it, as in `:53/udp`")
                .at(at..text.len());
        }
        if protocol == Some("tcp") {
            return Fault::new(&codes::PORTS, "`/tcp` is what is meant without it", "take it out").at(at..text.len());
        }
        if ports.is_empty() || !rest.starts_with(':') {
            return Fault::new(
                &codes::HOST,
                format!("`{rest}` follows the domain, and a connection has no path"),
                format!("write `{}`", &text[..at]),
            )
            .at(at..text.len());
        }
        let known = match ports {
            ":http" => "write `:80`",
            ":https" => "write `:443`",
            ":ssh" => "write `:22`",
            _ => "write `:22`, `:{80,443}`, `:8000-8999` or `:*`, and `/udp` after them for UDP",
        };
        return Fault::new(&codes::PORTS, format!("expected ports, found `{rest}`"), known).at(at..text.len());
    }
    Fault::new(
        &codes::HOST,
        format!("expected {expected}, found `{text}`"),
        "write it as in `example.com` or `10.0.0.7:5432`",
    )
}
