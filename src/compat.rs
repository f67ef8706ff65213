//! Files of other tools that say what a command may touch, and what they come to in the policy language.
//!
//! Text to text: a [`Translation`] is statements, each with the place it comes from, which then go the way of any policy.
//! What has no counterpart is said, never passed over. Reads no files, and decides nothing.

pub mod claude;
pub mod codex;
mod document;
mod domain;
pub mod export;
pub mod mcp;
mod path;
pub mod settings;

use crate::source::{SourceId, Sources};

/// What relative paths and `~` of a file mean: places on this machine, or, where nothing is known, the policy's variables.
#[derive(Debug, Clone, Copy, Default)]
pub struct Places<'a> {
    /// Where the command is started, absolute and normalised.
    pub workspace: Option<&'a str>,
    pub home: Option<&'a str>,
}

/// Where in a file something stands: its key, as `filesystem.denyRead[0]`, and line and column, which count from one, the
/// column in characters.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Place {
    pub key: String,
    pub line: u32,
    pub column: u32,
}

/// What a key comes to that is no statement.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Gravity {
    /// The file cannot be used as it is.
    Refused,
    /// It has no counterpart, and something is more open for it.
    Looser,
    /// It has no counterpart, and nothing is more open for it.
    Lost,
}

/// One sentence about a key.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Said {
    pub place: Place,
    pub gravity: Gravity,
    pub message: String,
}

/// One statement of the policy, as its lines, and the key it was made from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Statement {
    pub place: Place,
    /// Comments that accept findings, then the statement, each a line.
    pub lines: Vec<String>,
}

/// A place that is closed for writing by its name alone; where nothing is there, the command can make it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Named {
    pub place: Place,
    /// Absolute.
    pub path: String,
}

/// What a file comes to.
#[derive(Debug, Clone, Default)]
pub struct Translation {
    /// What holds for every file of this kind: a whole policy by itself.
    pub base: String,
    pub statements: Vec<Statement>,
    pub said: Vec<Said>,
    pub named: Vec<Named>,
}

impl Translation {
    /// Whether the file cannot be used as it is.
    pub fn refused(&self) -> bool {
        self.said.iter().any(|said| said.gravity == Gravity::Refused)
    }

    /// What a policy made of the file gets wrong: what is refused, and what is more open.
    pub fn wrong(&self) -> impl Iterator<Item = &Said> {
        self.said.iter().filter(|said| said.gravity != Gravity::Lost)
    }

    /// The policy as one text, each statement below the key it comes from; what was lost stands at the end.
    pub fn policy(&self, file: &str) -> String {
        let mut text = format!("# Made from {}.\n{}", one_line(file), self.base);
        let mut last = "";
        for statement in &self.statements {
            let group = statement.place.key.split('[').next().unwrap_or_default();
            if group != last {
                text.extend(["\n# ", group, "\n"]);
                last = group;
            }
            for line in &statement.lines {
                text.push_str(line);
                text.push('\n');
            }
        }
        let lost: Vec<_> = self.said.iter().collect();
        if !lost.is_empty() {
            text.push_str("\n# Without a counterpart:\n");
        }
        for said in lost {
            let looser = if said.gravity == Gravity::Looser { "looser: " } else { "" };
            text.extend(["# - ", &said.place.key, ": ", looser, &one_line(&said.message), "\n"]);
        }
        text
    }

    /// The policy as texts that are given together: the base, and one for each statement, whose line is that of the key it
    /// was made from.
    pub fn texts(&self, file: &str) -> Vec<Text> {
        // A name that begins like a flag has no lines of its own.
        let base = Text { name: format!("--settings {file}"), text: self.base.clone(), first_line: 1 };
        let parts = self.statements.iter().map(|statement| {
            // `deny` wins where several defaults meet, so `allow` adds nothing to what the base says.
            let mut text = String::from("srt 1\ndefault read allow\n");
            for line in &statement.lines {
                text.push_str(line);
                text.push('\n');
            }
            let above = 2 + statement.lines.iter().take_while(|line| line.starts_with('#')).count();
            Text {
                name: format!("{file}#{}", statement.place.key),
                text,
                first_line: i64::from(statement.place.line).saturating_sub_unsigned(above as u64),
            }
        });
        std::iter::once(base).chain(parts).collect()
    }
}

/// A text of a policy.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Text {
    /// What it is shown under.
    pub name: String,
    pub text: String,
    /// The number of its first line, so that the statement has the line of its key.
    pub first_line: i64,
}

impl Text {
    pub fn add_to(self, sources: &mut Sources) -> SourceId {
        sources.add_part(self.name, self.text, self.first_line)
    }
}

/// Text for a comment.
fn one_line(text: &str) -> String {
    text.chars().map(|c| if crate::source::hides(c) || c == '\n' || c == '\t' { '?' } else { c }).collect()
}

/// Text between quotes.
fn quoted(text: &str) -> String {
    let mut quoted = String::from("\"");
    for c in text.chars() {
        match c {
            '"' | '\\' => {
                quoted.push('\\');
                quoted.push(c);
            }
            _ if crate::source::hides(c) || c.is_control() => quoted.push(' '),
            _ => quoted.push(c),
        }
    }
    quoted.push('"');
    quoted
}
