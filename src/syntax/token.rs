//! Tokens: quotes, escapes, and the braces that make several targets of one. Knows nothing of paths or hosts.

use super::codes;
use super::fault::Fault;
use crate::vocabulary::Kind;
use std::borrow::Cow;

/// How many targets the braces of one token may make.
const MOST_EXPANSIONS: usize = 256;
/// How long a token with braces may be, in bytes: the longest path on Linux (`PATH_MAX`, limits.h).
const LONGEST_WITH_BRACES: usize = 4096;
/// How deep braces may stand in braces.
const MOST_NESTING: usize = 16;

/// One token as the grammar read it.
#[derive(Debug, Clone, Copy)]
pub(super) struct Token<'t> {
    /// Without quotes, escapes kept.
    pub content: &'t str,
    pub quoted: bool,
}

impl<'t> Token<'t> {
    /// From the text of a `string`, `bare` or `value` pair.
    pub fn new(written: &'t str) -> Self {
        match written.strip_prefix('"').and_then(|rest| rest.strip_suffix('"')) {
            Some(content) => Self { content, quoted: true },
            None => Self { content: written, quoted: false },
        }
    }

    /// What only a token without quotes can have wrong.
    pub fn check(self) -> Result<(), Fault> {
        if self.quoted {
            return Ok(());
        }
        let mut depth = 0_usize;
        for (at, character, escaped) in characters(self.content) {
            match character {
                _ if escaped => {}
                '#' => {
                    return Err(Fault::new(
                        &codes::TOKEN,
                        format!("`#` stands inside `{}`, where it starts no comment", self.content),
                        format!(
                            "write `\"{}\"` if it belongs to the word, or put a blank before `#` for a comment",
                            self.content
                        ),
                    )
                    .at(at..at + 1));
                }
                '{' => depth += 1,
                '}' => depth = depth.saturating_sub(1),
                ' ' | '\t' if depth > 0 => {
                    return Err(Fault::new(
                        &codes::TOKEN,
                        format!("a blank stands inside the braces of `{}`", self.content),
                        format!("take it out, or write `\"{}\"` if it belongs to the word", self.content),
                    )
                    .at(at..at + 1));
                }
                _ => {}
            }
        }
        Ok(())
    }
}

/// The characters of a token with their places, and whether a `\` stood before them.
pub(super) fn characters(text: &str) -> impl Iterator<Item = (usize, char, bool)> + '_ {
    let mut escaped = false;
    text.char_indices().filter_map(move |(at, character)| {
        if escaped {
            escaped = false;
            return Some((at, character, true));
        }
        if character == '\\' {
            escaped = true;
            return None;
        }
        Some((at, character, false))
    })
}

/// The text with each `\` taken out that makes the next character literal.
pub(super) fn unescape(text: &str) -> Cow<'_, str> {
    if !text.contains('\\') {
        return Cow::Borrowed(text);
    }
    Cow::Owned(characters(text).map(|(_, character, _)| character).collect())
}

/// The texts that the braces of `text` make, in the order they are written. The `{80,443}` of a peer's ports is one set
/// and stays.
pub(super) fn expand(text: &str, kind: Kind) -> Result<Vec<Cow<'_, str>>, Fault> {
    if !text.contains('{') {
        return Ok(vec![Cow::Borrowed(text)]);
    }
    if text.len() > LONGEST_WITH_BRACES {
        return Err(Fault::new(
            &codes::PATTERN,
            format!("a target with braces is longer than {LONGEST_WITH_BRACES} bytes"),
            "write several targets, each without braces",
        ));
    }
    let fixed = if matches!(kind, Kind::Peer | Kind::Address) { ports_start(text) } else { text.len() };
    let (head, tail) = text.split_at(fixed);
    let mut expansion = Expansion { text: head, found: vec![String::new()] };
    let end = expansion.sequence(0, 0)?;
    debug_assert_eq!(end, head.len());
    Ok(expansion.found.into_iter().map(|text| Cow::Owned(text + tail)).collect())
}

/// Where the `:{…}` of ports starts, or the end of the text.
fn ports_start(text: &str) -> usize {
    let all = text.len();
    let body = text.strip_suffix("/udp").unwrap_or(text);
    if !body.ends_with('}') {
        return all;
    }
    match body.rfind(":{") {
        Some(at)
            if body[at + 2..body.len() - 1].bytes().all(|b| !matches!(b, b'{' | b'}' | b'\\'))
                && !body[..at].ends_with('\\') =>
        {
            at
        }
        _ => all,
    }
}

/// Expands braces from left to right.
struct Expansion<'t> {
    text: &'t str,
    /// All texts so far, up to the place reached.
    found: Vec<String>,
}

impl Expansion<'_> {
    /// Reads from `at` up to the `,` or `}` that ends an alternative, or to the end outside of braces; returns where.
    fn sequence(&mut self, mut at: usize, depth: usize) -> Result<usize, Fault> {
        let text = self.text;
        while let Some(character) = text[at..].chars().next() {
            let end = match character {
                ',' | '}' if depth > 0 => return Ok(at),
                '{' => {
                    at = self.braces(at, depth + 1)?;
                    continue;
                }
                '[' => class_end(text, at).unwrap_or(at + 1),
                '\\' => at + 1 + text[at + 1..].chars().next().map_or(0, char::len_utf8),
                other => at + other.len_utf8(),
            };
            for one in &mut self.found {
                one.push_str(&text[at..end]);
            }
            at = end;
        }
        Ok(at)
    }

    /// Reads the braces that open at `open`; returns the place after them.
    fn braces(&mut self, open: usize, depth: usize) -> Result<usize, Fault> {
        let text = self.text;
        if depth > MOST_NESTING {
            return Err(Fault::new(
                &codes::PATTERN,
                format!("braces stand more than {MOST_NESTING} deep in each other"),
                "write the targets as a list",
            )
            .at(open..open + 1));
        }
        let before = std::mem::take(&mut self.found);
        let mut all = Vec::new();
        let mut at = open + 1;
        let mut alternatives = 0;
        loop {
            self.found = vec![String::new()];
            at = self.sequence(at, depth)?;
            alternatives += 1;
            all.append(&mut self.found);
            if all.len().saturating_mul(before.len()) > MOST_EXPANSIONS {
                return Err(Fault::new(
                    &codes::PATTERN,
                    format!("the braces of one target make more than {MOST_EXPANSIONS} targets"),
                    "write several targets, each with fewer braces",
                )
                .at(open..open + 1));
            }
            match text[at..].chars().next() {
                Some(',') => at += 1,
                Some(_) => break,
                None => {
                    return Err(Fault::new(
                        &codes::TOKEN,
                        "this `{` is not closed",
                        "write `}` after the last alternative, or `\\{` for the character itself",
                    )
                    .at(open..open + 1));
                }
            }
        }
        if alternatives < 2 {
            let inner = &text[open..=at];
            let help = if inner.contains("..") {
                format!("braces have no ranges: write each alternative, as in `{{a,b}}`, not `{inner}`")
            } else {
                format!("write `{{a,b}}` for two targets, or `\\{inner}` for the character itself")
            };
            return Err(Fault::new(&codes::TOKEN, format!("the braces of `{inner}` hold no comma"), help)
                .at(open..at + 1)
                .label("one alternative only"));
        }
        let after = |one: &String| all.iter().map(move |other| format!("{one}{other}")).collect::<Vec<_>>();
        self.found = before.iter().flat_map(after).collect();
        Ok(at + 1)
    }
}

/// The place after the `]` that closes the class opened at `open`; `None` if nothing does.
fn class_end(text: &str, open: usize) -> Option<usize> {
    let mut rest = &text[open + 1..];
    rest = rest.strip_prefix('!').unwrap_or(rest);
    rest = rest.strip_prefix(']').unwrap_or(rest);
    let (at, ..) = characters(rest).find(|(_, character, escaped)| *character == ']' && !*escaped)?;
    Some(text.len() - rest.len() + at + 1)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    fn expanded(text: &str, kind: Kind) -> Vec<String> {
        expand(text, kind).unwrap().into_iter().map(Cow::into_owned).collect()
    }

    #[test]
    fn braces_expand_in_written_order() {
        assert_eq!(expanded("/a/{b,c}/{d,e}", Kind::Path), ["/a/b/d", "/a/b/e", "/a/c/d", "/a/c/e"]);
        assert_eq!(expanded("{x{1,2},y}.z", Kind::Peer), ["x1.z", "x2.z", "y.z"]);
        assert_eq!(expanded("/a{,b}", Kind::Path), ["/a", "/ab"]);
        assert_eq!(expanded("/[{,}]{a,b}", Kind::Path), ["/[{,}]a", "/[{,}]b"]);
        assert_eq!(expanded("/\\{a,b}", Kind::Path), ["/\\{a,b}"]);
    }

    #[test]
    fn ports_are_a_set_and_not_braces() {
        assert_eq!(expanded("a.b:{80,443}", Kind::Peer), ["a.b:{80,443}"]);
        assert_eq!(expanded("{a,b}.c:{80,443}/udp", Kind::Peer), ["a.c:{80,443}/udp", "b.c:{80,443}/udp"]);
        assert_eq!(expanded("/x:{80,443}", Kind::Path), ["/x:80", "/x:443"]);
    }

    #[test]
    fn expansion_is_bounded() {
        let many = "{a,b}".repeat(9);
        assert!(expand(&many, Kind::Path).unwrap_err().message.contains("256"));
        assert_eq!(expanded(&"{a,b}".repeat(8), Kind::Path).len(), 256);
        let deep = format!("{}a,b{}", "{".repeat(40), "}".repeat(40));
        assert!(expand(&deep, Kind::Path).unwrap_err().message.contains("deep"));
    }
}
