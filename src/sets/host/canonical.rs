//! Host names into their one form. What comes in may be hostile: all that is not plainly a host name is refused.

use super::{Label, Pattern};
use crate::sets::address;
use crate::sets::glob::{Glob, Piece};
use idna::uts46::{AsciiDenyList, DnsLength, Hyphens, Uts46};

/// Why a text is no host name.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum NameError {
    #[error("a host name is not empty")]
    Empty,
    #[error("a host name has no empty label")]
    EmptyLabel,
    #[error("a host name has no `{}`", .0.escape_default())]
    Character(char),
    #[error("a label of a host name has at most 63 characters")]
    LabelTooLong,
    #[error("a host name has at most 253 characters")]
    TooLong,
    #[error("a label of a host name neither starts nor ends with `-`")]
    Hyphen,
    #[error("this is not an international host name (IDNA)")]
    International,
    /// With the address, where the spelling stands for one.
    #[error("this is an address, not a host name")]
    Address(Option<std::net::IpAddr>),
    #[error("`*` is a whole label only at the start of a host name")]
    Star,
}

/// All printable ASCII that no host name has; UTS 46 itself refuses the rest. Unlike STD3 it lets `_` pass.
const DENIED: AsciiDenyList = AsciiDenyList::new(true, " !\"#$%&'()*+,/:;<=>?@[\\]^`{|}~");

/// The characters that an A-label stands for; `None` for a label that is no such one.
pub fn readable(label: &str) -> Option<String> {
    label.starts_with("xn--").then(|| idna::domain_to_unicode(label).0)
}

pub(super) fn name(text: &str) -> Result<String, NameError> {
    let text = stripped(text)?;
    let canonical = if text.is_ascii() && !has_a_label(text) {
        text.to_ascii_lowercase()
    } else {
        // What survives the mapping is looked at again below: full-width dots and digits end up as ASCII.
        let mapped = Uts46::new()
            .to_ascii(text.as_bytes(), DENIED, Hyphens::CheckFirstLast, DnsLength::Ignore)
            .map_err(|_| first_bad(text).map_or(NameError::International, NameError::Character))?
            .into_owned();
        stripped(&mapped)?.to_owned()
    };
    for label in canonical.split('.') {
        plain_label(label)?;
    }
    if canonical.len() > 253 {
        return Err(NameError::TooLong);
    }
    if ends_in_number(&canonical) {
        return Err(NameError::Address(
            address::parse_address(&canonical).ok().or_else(|| address::odd_spelling(&canonical).map(Into::into)),
        ));
    }
    Ok(canonical)
}

pub(super) fn pattern(text: &str) -> Result<Pattern, NameError> {
    if text == "*" {
        return Ok(Pattern::Any);
    }
    let (below, rest) = text.strip_prefix("*.").map_or((false, text), |rest| (true, rest));
    if !rest.contains('*') {
        let name = name(rest)?;
        let labels = name.split('.').map(|label| Label::Literal(label.to_owned())).collect();
        return Ok(Pattern::Labels { below, labels });
    }
    let rest = stripped(rest)?;
    let mut labels = Vec::new();
    for label in rest.split('.') {
        labels.push(if label == "*" {
            return Err(NameError::Star);
        } else if label.contains('*') {
            Label::Glob(glob(label)?)
        } else {
            let literal = name(&format!("{label}.x"))?;
            Label::Literal(literal.trim_end_matches(".x").to_owned())
        });
    }
    if let Some(Label::Literal(last)) = labels.last()
        && ends_in_number(last)
    {
        return Err(NameError::Address(None));
    }
    Ok(Pattern::Labels { below, labels })
}

/// A label with `*` in it: ASCII, as its A-label form is unknown.
fn glob(label: &str) -> Result<Glob, NameError> {
    let mut pieces = Vec::new();
    for char in label.chars() {
        match char {
            '*' if pieces.last() == Some(&Piece::AnyRun) => {}
            '*' => pieces.push(Piece::AnyRun),
            _ if !plain(char) => return Err(NameError::Character(char)),
            _ => {
                let byte = u8::try_from(char.to_ascii_lowercase()).map_err(|_| NameError::Character(char))?;
                match pieces.last_mut() {
                    Some(Piece::Text(text)) => text.push(byte),
                    _ => pieces.push(Piece::Text(vec![byte])),
                }
            }
        }
    }
    if label.starts_with('-') || label.ends_with('-') {
        return Err(NameError::Hyphen);
    }
    Ok(Glob::from(pieces))
}

/// Without its final dot, and not empty.
fn stripped(text: &str) -> Result<&str, NameError> {
    let text = text.strip_suffix('.').unwrap_or(text);
    if text.is_empty() { Err(NameError::Empty) } else { Ok(text) }
}

fn has_a_label(text: &str) -> bool {
    text.split('.').any(|label| label.get(..4).is_some_and(|head| head.eq_ignore_ascii_case("xn--")))
}

fn plain(char: char) -> bool {
    char.is_ascii_alphanumeric() || matches!(char, '-' | '_')
}

fn first_bad(text: &str) -> Option<char> {
    text.chars().find(|char| char.is_ascii() && !plain(*char) && *char != '.')
}

fn plain_label(label: &str) -> Result<(), NameError> {
    if let Some(char) = label.chars().find(|char| !plain(*char)) {
        return Err(NameError::Character(char));
    }
    match label.len() {
        0 => Err(NameError::EmptyLabel),
        64.. => Err(NameError::LabelTooLong),
        _ if label.starts_with('-') || label.ends_with('-') => Err(NameError::Hyphen),
        _ => Ok(()),
    }
}

/// Whether resolvers read the name as an IPv4 address ("ends in a number", URL Standard section 3.5).
fn ends_in_number(name: &str) -> bool {
    let last = name.rsplit('.').next().unwrap_or_default();
    let hexadecimal = |digits: &str| digits.bytes().all(|byte| byte.is_ascii_hexdigit());
    last.bytes().all(|byte| byte.is_ascii_digit()) || last.strip_prefix("0x").is_some_and(hexadecimal)
}
