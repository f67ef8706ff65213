//! A regular expression of a profile as a pattern of the language. Whatever is not one is refused.

use crate::sets::glob::{Glob, Piece};
use crate::sets::path::{Pattern, Segment, Start};
use crate::vocabulary::Reach;

/// One item of a regular expression over bytes.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Item {
    Bytes(Bytes),
    Group(Vec<Vec<Repeated>>),
    End,
}

/// A set of bytes, a bit each.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Bytes([u128; 2]);

impl Bytes {
    const NONE: Self = Self([0; 2]);

    fn only(byte: u8) -> Self {
        let mut one = Self::NONE;
        one.put(byte);
        one
    }

    fn put(&mut self, byte: u8) {
        self.0[usize::from(byte >> 7)] |= 1 << (byte & 0x7f);
    }

    /// All that are not in it.
    fn others(self) -> Self {
        Self(self.0.map(|half| !half))
    }

    fn count(self) -> u32 {
        self.0.iter().map(|half| half.count_ones()).sum()
    }

    /// In order.
    fn iter(mut self) -> impl Iterator<Item = u8> {
        std::iter::from_fn(move || {
            let half = usize::from(self.0[0] == 0);
            let bit = self.0[half].trailing_zeros();
            // Both are empty.
            let byte = u8::try_from(bit).ok().filter(|bit| *bit < 0x80)?;
            self.0[half] &= self.0[half] - 1;
            Some(byte | if half == 0 { 0 } else { 0x80 })
        })
    }

    /// The only one there is.
    fn single(self) -> Option<u8> {
        self.iter().next().filter(|_| self.count() == 1)
    }
}

#[derive(Debug, Clone, PartialEq, Eq)]
struct Repeated {
    item: Item,
    times: Times,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Times {
    Once,
    Any,
    Some,
}

/// The pattern of an expression that begins at a place; `text` is what follows `^` and the place.
///
/// # Errors
/// A sentence for what is no pattern.
pub fn pattern(start: Start, text: &[u8]) -> Result<Pattern, String> {
    let items = parse(text)?;
    let mut pattern = Pattern { start, segments: Vec::new(), reach: Reach::Exact };
    let mut rest = &items[..];
    loop {
        match rest {
            [Repeated { item: Item::End, times: Times::Once }] => return Ok(pattern),
            [tree] if is_tree_end(tree) => {
                pattern.reach = Reach::Tree;
                return Ok(pattern);
            }
            [slash] if is_slash(slash) => {
                pattern.reach = Reach::Below;
                return Ok(pattern);
            }
            // `^/[^/]`: what is below the root.
            [slash, any] if is_slash(slash) && is_not_slash(any, Times::Once) && pattern.segments.is_empty() => {
                pattern.reach = Reach::Below;
                return Ok(pattern);
            }
            [deep, more @ ..] if is_deep(deep) => {
                pattern.segments.push(Segment::AnyDepth);
                rest = more;
            }
            [slash, more @ ..] if is_slash(slash) => {
                let length = more
                    .iter()
                    .take_while(|item| {
                        !is_slash(item) && !is_deep(item) && !is_tree_end(item) && item.item != Item::End
                    })
                    .count();
                pattern.segments.push(segment(&more[..length])?);
                rest = &more[length..];
            }
            _ => return Err(format!("`{}` is no pattern of paths", text.escape_ascii())),
        }
    }
}

/// The pattern of an expression over a whole name.
///
/// # Errors
/// As [`pattern`].
pub fn name(text: &[u8]) -> Result<Vec<Piece>, String> {
    let items = text.strip_prefix(b"^").map(parse).ok_or("an expression for names that is not anchored")??;
    let Some((Repeated { item: Item::End, .. }, items)) = items.split_last() else {
        return Err("an expression for names that is not anchored".to_owned());
    };
    pieces(items, false)
}

fn segment(items: &[Repeated]) -> Result<Segment, String> {
    if let [one] = items
        && is_not_slash(one, Times::Some)
    {
        return Ok(Segment::Glob(Glob::any()));
    }
    let pieces = pieces(items, true)?;
    match &pieces[..] {
        [] => Err("an empty segment".to_owned()),
        [Piece::Text(text)] => Ok(Segment::Literal(text.clone().into())),
        _ => Ok(Segment::Glob(Glob::from(pieces))),
    }
}

fn pieces(items: &[Repeated], in_path: bool) -> Result<Vec<Piece>, String> {
    let mut pieces: Vec<Piece> = Vec::new();
    for own in items {
        // `*` in a path stays within its segment; in a name anything follows.
        let any = Bytes::only(if in_path { b'/' } else { b'\n' }).others();
        let next = match (&own.item, own.times) {
            (Item::Bytes(set), Times::Any) if *set == any => Piece::AnyRun,
            (Item::Bytes(set), Times::Once) => match set.single() {
                Some(byte) => Piece::Text(vec![byte]),
                None => chars(&[vec![own.clone()]])?,
            },
            (Item::Group(ways), Times::Once) => chars(ways)?,
            _ => return Err("a repetition that no glob has".to_owned()),
        };
        match (pieces.last_mut(), next) {
            (Some(Piece::Text(text)), Piece::Text(more)) => text.extend(more),
            (_, next) => pieces.push(next),
        }
    }
    Ok(pieces)
}

/// One character in one of several ways.
fn chars(ways: &[Vec<Repeated>]) -> Result<Piece, String> {
    let mut ascii = [false; 128];
    let mut named: Vec<char> = Vec::new();
    let mut wide = [false; 3];
    for way in ways {
        let mut sets: Vec<Vec<u8>> = Vec::new();
        for own in way {
            let (Item::Bytes(set), Times::Once) = (&own.item, own.times) else {
                return Err("a way that is no character".to_owned());
            };
            sets.push(set.iter().collect());
        }
        let range = |set: &[u8], low: u8, high: u8| set.iter().copied().eq(low..=high);
        let tail = |sets: &[Vec<u8>]| sets.iter().all(|set| range(set, 0x80, 0xbf));
        match &sets[..] {
            [one] if one.iter().all(u8::is_ascii) => one.iter().for_each(|byte| ascii[usize::from(*byte)] = true),
            [head, rest @ ..] if rest.len() == 1 && range(head, 0xc2, 0xdf) && tail(rest) => wide[0] = true,
            [head, rest @ ..] if rest.len() == 2 && range(head, 0xe0, 0xef) && tail(rest) => wide[1] = true,
            [head, rest @ ..] if rest.len() == 3 && range(head, 0xf0, 0xf4) && tail(rest) => wide[2] = true,
            sets if sets.iter().all(|set| set.len() == 1) => {
                let bytes: Vec<u8> = sets.iter().flatten().copied().collect();
                let text = String::from_utf8(bytes).map_err(|_| "a way that is no character".to_owned())?;
                let mut chars = text.chars();
                match (chars.next(), chars.next()) {
                    (Some(char), None) => named.push(char),
                    _ => return Err("a way that is no character".to_owned()),
                }
            }
            _ => return Err("a way that is no character".to_owned()),
        }
    }
    for char in named.iter().filter(|char| char.is_ascii()) {
        ascii[*char as usize] = true;
    }
    named.retain(|char| !char.is_ascii());
    let has = |byte: u8| ascii[usize::from(byte)];
    let negated = match wide {
        [true, true, true] if named.is_empty() => true,
        [false, false, false] => false,
        _ => return Err("some characters of several bytes, and others not".to_owned()),
    };
    let members = (1..0x80_u8).filter(|byte| *byte != b'/' && has(*byte) != negated).map(char::from);
    let mut members: Vec<char> = members.chain(named).collect();
    members.sort_unstable();
    if negated && members.is_empty() {
        return Ok(Piece::AnyChar);
    }
    let mut ranges: Vec<(char, char)> = Vec::new();
    for char in members {
        match ranges.last_mut() {
            Some((_, high)) if *high as u32 + 1 == char as u32 => *high = char,
            _ => ranges.push((char, char)),
        }
    }
    Ok(Piece::Class { negated, ranges })
}

fn is_slash(own: &Repeated) -> bool {
    own.times == Times::Once && own.item == Item::Bytes(Bytes::only(b'/'))
}

fn is_not_slash(own: &Repeated, times: Times) -> bool {
    own.times == times && own.item == Item::Bytes(Bytes::only(b'/').others())
}

/// `(/[^/]+)*`
fn is_deep(own: &Repeated) -> bool {
    own.times == Times::Any
        && matches!(&own.item, Item::Group(ways)
            if matches!(&ways[..], [way] if matches!(&way[..], [slash, name] if is_slash(slash) && is_not_slash(name, Times::Some))))
}

/// `(/|$)`
fn is_tree_end(own: &Repeated) -> bool {
    let end = |own: &Repeated| own.item == Item::End && own.times == Times::Once;
    own.times == Times::Once
        && matches!(&own.item, Item::Group(ways)
            if matches!(&ways[..], [one, other] if matches!((&one[..], &other[..]), ([slash], [last]) if is_slash(slash) && end(last))))
}

fn parse(text: &[u8]) -> Result<Vec<Repeated>, String> {
    let mut at = 0;
    let mut ways = alternatives(text, &mut at)?;
    match (ways.pop(), ways.is_empty(), at == text.len()) {
        (Some(items), true, true) => Ok(items),
        _ => Err("alternatives outside a group".to_owned()),
    }
}

fn alternatives(text: &[u8], at: &mut usize) -> Result<Vec<Vec<Repeated>>, String> {
    let mut ways = vec![Vec::new()];
    while let Some(&byte) = text.get(*at) {
        *at += 1;
        let item = match byte {
            b')' => {
                *at -= 1;
                return Ok(ways);
            }
            b'|' => {
                ways.push(Vec::new());
                continue;
            }
            b'(' => {
                let group = alternatives(text, at)?;
                if text.get(*at) != Some(&b')') {
                    return Err("a group is not closed".to_owned());
                }
                *at += 1;
                Item::Group(group)
            }
            b'[' => brackets(text, at)?,
            b'$' => Item::End,
            b'.' => Item::Bytes(Bytes::only(b'\n').others()),
            b'\\' => {
                let escaped = *text.get(*at).ok_or("a `\\` at the end")?;
                *at += 1;
                // In the dialect a letter after it may mean anything.
                if escaped.is_ascii_alphanumeric() || !escaped.is_ascii() {
                    return Err(format!("`\\{}`", char::from(escaped)));
                }
                Item::Bytes(Bytes::only(escaped))
            }
            b'^' | b'*' | b'+' | b'?' | b'{' | b'}' | b']' => return Err(format!("a stray `{}`", char::from(byte))),
            byte => Item::Bytes(Bytes::only(byte)),
        };
        let times = match text.get(*at) {
            Some(b'*') => Times::Any,
            Some(b'+') => Times::Some,
            Some(b'?' | b'{') => return Err("a repetition that no glob has".to_owned()),
            _ => Times::Once,
        };
        *at += usize::from(times != Times::Once);
        if let Some(way) = ways.last_mut() {
            way.push(Repeated { item, times });
        }
    }
    Ok(ways)
}

fn brackets(text: &[u8], at: &mut usize) -> Result<Item, String> {
    let negated = text.get(*at) == Some(&b'^');
    *at += usize::from(negated);
    let mut set = Bytes::NONE;
    loop {
        let low = *text.get(*at).ok_or("brackets are not closed")?;
        *at += 1;
        match low {
            b']' => return Ok(Item::Bytes(if negated { set.others() } else { set })),
            b'[' | b'\\' | b'^' | b'-' => return Err(format!("`{}` in brackets", char::from(low))),
            _ => {}
        }
        let mut high = low;
        if text.get(*at) == Some(&b'-') {
            high = *text.get(*at + 1).filter(|byte| !b"]-[\\^".contains(byte)).ok_or("a range without an end")?;
            *at += 2;
        }
        if high < low {
            return Err("a range that is upside down".to_owned());
        }
        (low..=high).for_each(|byte| set.put(byte));
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::*;

    #[test]
    fn expressions_that_are_patterns() {
        for (text, expected) in [
            ("/a/b(/|$)", "/a/b"),
            ("/a/b$", "exact /a/b"),
            ("/a/b/", "below /a/b"),
            ("/[^/]", "below /"),
            ("(/[^/]+)*/\\.git/[^/]+$", "exact **/.git/*"),
            ("/[^/]*\\.x(/|$)", "/*.x"),
            ("/[Aa]([Ss]|\u{17f})b$", "exact /[Aa][Ssſ]b"),
        ] {
            assert_eq!(pattern(Start::Root, text.as_bytes()).unwrap().to_string(), expected, "{text}");
        }
        for wrong in [
            "a",
            "/a",
            "/a(/|$)b",
            "/a|/b$",
            "/a.$",
            "/a?$",
            "/[a",
            "/(a|bc)$",
            "/\\d$",
            "//$",
            "/a*$",
            "/[^a]$",
            "/.*$",
            "/a.*b(/|$)",
        ] {
            assert!(pattern(Start::Root, wrong.as_bytes()).is_err(), "{wrong}");
        }
    }
}
