//! Paths and patterns as settings files write them, spelled in the policy language.

use super::Places;
use std::fmt::Write as _;

/// What a path starts at.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Base {
    Root,
    Home,
    Workspace,
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum Segment {
    Literal(String),
    Pattern(String),
}

/// A path that is understood.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Spelled {
    base: Base,
    segments: Vec<Segment>,
    /// It was written with `/**` at its end.
    pub whole_tree: bool,
}

/// Reads a path: absolute, `~` and what follows it, or relative to where the command is started. `*`, `?`, `[…]` and `**` are
/// patterns.
///
/// # Errors
/// One sentence without a subject: what is wrong, and what to write instead.
pub fn read(text: &str, places: Places<'_>) -> Result<Spelled, String> {
    if text.is_empty() {
        return Err("a path cannot be empty; `.` is where the command is started".to_owned());
    }
    if text.chars().any(crate::source::hides) {
        return Err("a path cannot hold control characters".to_owned());
    }
    let (mut base, rest) = if let Some(rest) = text.strip_prefix('/') {
        (Base::Root, rest)
    } else if text == "~" {
        (Base::Home, "")
    } else if let Some(rest) = text.strip_prefix("~/") {
        (Base::Home, rest)
    } else if text.starts_with('~') {
        return Err(format!("`{text}` names another user's home; write it as an absolute path"));
    } else {
        (Base::Workspace, text)
    };
    let mut segments = Vec::new();
    let known = match base {
        Base::Root => None,
        Base::Home => places.home,
        Base::Workspace => places.workspace,
    };
    if let Some(place) = known {
        base = Base::Root;
        segments.extend(place.split('/').filter(|part| !part.is_empty()).map(|part| Segment::Literal(part.to_owned())));
    }
    for part in rest.split('/') {
        match part {
            "" | "." => {}
            ".." => match segments.pop() {
                Some(Segment::Literal(_)) => {}
                Some(Segment::Pattern(_)) => return Err("`..` cannot follow a pattern".to_owned()),
                None if base == Base::Root => {}
                None => return Err(format!("`{text}` leads out of where it starts; write it as an absolute path")),
            },
            part if part.contains(['*', '?', '[']) => segments.push(Segment::Pattern(pattern(part)?)),
            part => segments.push(Segment::Literal(part.to_owned())),
        }
    }
    let any_depth = |segment: &Segment| *segment == Segment::Pattern("**".to_owned());
    let whole_tree = segments.last().is_some_and(any_depth);
    while segments.last().is_some_and(any_depth) {
        segments.pop();
    }
    // `a/**/**/b` is `a/**/b`.
    segments.dedup_by(|one, other| any_depth(one) && any_depth(other));
    Ok(Spelled { base, segments, whole_tree })
}

/// A segment that is a pattern, as the language has it.
fn pattern(part: &str) -> Result<String, String> {
    if part != "**" && part.contains("**") {
        return Err(format!(
            "`**` in `{part}` stands beside other text; make it a segment of its own, as in `**/*.pem`"
        ));
    }
    let mut written = String::new();
    let mut chars = part.chars();
    while let Some(c) = chars.next() {
        match c {
            '*' | '?' => written.push(c),
            '[' => {
                let rest = chars.as_str();
                if rest.starts_with(['!', '^']) {
                    return Err(format!(
                        "`{part}` has a set that names what is not in it; name what is, as in `[a-z]`"
                    ));
                }
                // A `]` that comes first is a member.
                let end = rest.char_indices().skip(1).find(|(_, c)| *c == ']').map(|(at, _)| at);
                let end =
                    end.ok_or_else(|| format!("`{part}` has a `[` that nothing closes; write `[[]` for itself"))?;
                if rest[..end].contains(['[', '\\', '*', '?', '"']) {
                    return Err(format!("`{part}` has a set that reads in two ways; list plain characters in it"));
                }
                let _ = write!(written, "[{}]", &rest[..end]);
                chars = rest[end + 1..].chars();
            }
            _ => literal(&mut written, c),
        }
    }
    Ok(written)
}

fn literal(written: &mut String, c: char) {
    if matches!(c, '\\' | '"' | '*' | '?' | '[' | ']' | '{' | '}' | '$' | '~') {
        written.push('\\');
    }
    written.push(c);
}

impl Spelled {
    /// The path of a file that is there, absolute and normalised: every character is itself.
    ///
    /// # Errors
    /// One sentence: no policy can name it.
    pub fn of(path: &str) -> Result<Self, String> {
        if path.chars().any(crate::source::hides) {
            return Err("no policy can name this file: its path holds control characters".to_owned());
        }
        let parts = path.split('/').filter(|part| !part.is_empty());
        let segments = parts.map(|part| Segment::Literal(part.to_owned())).collect();
        Ok(Self { base: Base::Root, segments, whole_tree: false })
    }

    /// The target of a rule, in quotes where it needs them.
    pub fn target(&self) -> String {
        self.with("")
    }

    /// The target with more text after it.
    pub fn with(&self, end: &str) -> String {
        let mut text = String::new();
        for segment in &self.segments {
            text.push('/');
            match segment {
                Segment::Literal(part) => part.chars().for_each(|c| literal(&mut text, c)),
                Segment::Pattern(part) => text.push_str(part),
            }
        }
        text.push_str(end);
        let start = match self.base {
            Base::Root if text.is_empty() => "/",
            Base::Root => "",
            Base::Home => "~",
            Base::Workspace => "$WORKSPACE",
        };
        let plain = |c: char| c.is_ascii_alphanumeric() || "/._-+@*?{},".contains(c);
        // A comma outside braces would end the token.
        let braced = !text.contains(',') || end.contains('{');
        if text.chars().all(plain) && braced && text.find(['{', ',']).is_none_or(|at| at >= text.len() - end.len()) {
            format!("{start}{text}")
        } else {
            format!("\"{start}{text}\"")
        }
    }

    /// The path without a pattern in it, if it is absolute and has none.
    pub fn absolute(&self) -> Option<String> {
        if self.base != Base::Root {
            return None;
        }
        let mut path = String::new();
        for segment in &self.segments {
            let Segment::Literal(part) = segment else { return None };
            path.push('/');
            path.push_str(part);
        }
        Some(if path.is_empty() { "/".to_owned() } else { path })
    }

    pub fn is_literal(&self) -> bool {
        self.segments.iter().all(|segment| matches!(segment, Segment::Literal(_)))
    }

    /// Whether it is the root, or a home as a whole.
    pub fn is_broad(&self, places: Places<'_>) -> bool {
        self.segments.is_empty() && self.base != Base::Workspace
            || self.absolute().is_some_and(|path| {
                places
                    .home
                    .is_some_and(|home| home == path || home.starts_with(&format!("{}/", path.trim_end_matches('/'))))
            })
    }

    /// The same set, in the same words.
    pub fn same(&self, other: &Self) -> bool {
        (self.base, &self.segments) == (other.base, &other.segments)
    }

    /// The path up to its first pattern.
    pub fn start(&self) -> Self {
        let literal = |segment: &&Segment| matches!(segment, Segment::Literal(_));
        let segments = self.segments.iter().take_while(literal).cloned().collect();
        Self { base: self.base, segments, whole_tree: false }
    }

    /// Whether this path, which has no pattern, is the other one or above it.
    pub fn holds(&self, other: &Self) -> bool {
        self.base == other.base && other.segments.starts_with(&self.segments)
    }

    /// Whether this may hold all of the other, as far as the words before the first pattern tell: where it cannot, it does not.
    pub fn may_hold(&self, other: &Self) -> bool {
        let words = |of: &Self| -> Vec<String> {
            let literal = of.segments.iter().map_while(|segment| match segment {
                Segment::Literal(part) => Some(part.clone()),
                Segment::Pattern(_) => None,
            });
            literal.collect()
        };
        let (mine, its) = (words(self), words(other));
        let shorter = mine.len().min(its.len());
        if self.base != other.base {
            // Where a home or a workspace lies is not known here.
            return true;
        }
        let reaches = mine.len() <= its.len() || !other.is_literal();
        mine[..shorter] == its[..shorter] && reaches
    }

    /// Whether it leads through this name, or these names one after another.
    pub fn passes(&self, names: &str) -> bool {
        let part = |segment: &Segment| match segment {
            Segment::Literal(part) | Segment::Pattern(part) => part.clone(),
        };
        let parts: Vec<String> = self.segments.iter().map(part).collect();
        let names: Vec<_> = names.split('/').collect();
        parts.windows(names.len()).any(|window| window == names)
    }
}
