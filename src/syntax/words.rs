//! The words of a text and what each is there for, whether or not the text follows the grammar: what an editor needs while a
//! line is being written.
//!
//! Says nothing about what is wrong; where a text has no fault, the words are where the tree's parts are, which a test holds.

use super::complaint::is_statement_word;
use crate::vocabulary::{Effect, LimitKind, System, Verb};
use std::ops::Range;

/// What a word is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Role {
    /// A word that begins or joins a statement's parts: `allow`, `let`, `except`, `exact`.
    Keyword,
    Verb,
    System,
    /// Another word of a closed list: `inside`, `memory`, the `read` of `default read`.
    Choice,
    Number,
    /// What a `let` or a `set` gives a value.
    Name,
    /// `std/NAME`
    Module,
    /// A path of a file beside the policy, in quotes.
    File,
    /// A path, a host, an address, a variable's name.
    Target,
    /// The text after `because`, or a value.
    Text,
    Comment,
    /// `[ ] { } , = )`
    Mark,
    /// Nothing that stands here.
    Unknown,
}

/// What may stand at a place of a statement.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Place {
    /// A statement, or `except` and `because` on the line below a rule.
    Statement,
    Version,
    Used,
    LetName,
    LetEquals,
    Subject,
    DefaultAnswer,
    ExpectAnswer,
    Verb,
    /// A target, or a list of them.
    Target,
    /// `except`, `because`, `or`; the target is whole.
    AfterTarget,
    Reason,
    SetName,
    SetEquals,
    SetValue,
    Limit,
    LimitValue,
    AfterLimit,
    System,
    AfterSystem,
    File,
    Variable,
    Relation,
    /// The end of the line.
    End,
}

/// One word.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Word {
    /// Its bytes, quotes included.
    pub range: Range<usize>,
    pub role: Role,
    /// What could have stood where it stands.
    pub place: Place,
    /// The verb of its statement, as far as it is known there.
    pub verb: Option<Verb>,
    /// The word that begins its statement, by its place in the row of all words.
    pub statement: usize,
}

/// All words of a text, in order, and what may stand at its end.
pub fn words(text: &str) -> (Vec<Word>, Place) {
    let mut row = Row { text, at: 0, place: Place::Statement, verb: None, statement: 0, lists: 0, words: Vec::new() };
    row.read();
    (row.words, row.place)
}

struct Row<'t> {
    text: &'t str,
    at: usize,
    place: Place,
    verb: Option<Verb>,
    statement: usize,
    /// How many `[` are open.
    lists: usize,
    words: Vec<Word>,
}

impl Row<'_> {
    fn read(&mut self) {
        if self.text.starts_with('\u{FEFF}') {
            self.at = '\u{FEFF}'.len_utf8();
        }
        while let Some(character) = self.text[self.at..].chars().next() {
            match character {
                '\n' => {
                    self.at += 1;
                    if self.lists == 0 {
                        self.place = Place::Statement;
                    }
                }
                _ if character.is_whitespace() => self.at += character.len_utf8(),
                '#' => {
                    let rest = &self.text[self.at..];
                    let end = self.at + rest.find('\n').unwrap_or(rest.len());
                    let place = self.place;
                    self.push(end, Role::Comment);
                    self.place = place;
                }
                '"' => self.quoted(),
                '[' if self.place == Place::Target && !self.address() => {
                    self.lists += 1;
                    self.push(self.at + 1, Role::Mark);
                }
                ',' | ']' | '{' | '}' | '=' | ')' => self.mark(character),
                _ => self.bare(),
            }
        }
    }

    /// `[` that begins an IPv6 address: at least two `:`, and nothing else but what is in one.
    fn address(&self) -> bool {
        let rest = &self.text[self.at + 1..];
        let Some((inside, _)) = rest.split_once(']') else { return false };
        inside.matches(':').count() >= 2 && inside.chars().all(|c| c.is_ascii_hexdigit() || matches!(c, ':' | '.'))
    }

    fn push(&mut self, end: usize, role: Role) {
        if self.place == Place::Statement && !matches!(role, Role::Comment | Role::Mark) {
            self.statement = self.words.len();
        }
        let (place, verb, statement) = (self.place, self.verb, self.statement);
        self.words.push(Word { range: self.at..end, role, place, verb, statement });
        self.at = end;
    }

    fn mark(&mut self, character: char) {
        let before = self.place;
        let role = if character == ')' && before != Place::AfterTarget { Role::Unknown } else { Role::Mark };
        self.push(self.at + 1, role);
        self.place = match (character, before) {
            ('{' | '}', _) => {
                self.lists = 0;
                Place::Statement
            }
            (',', Place::AfterTarget | Place::Target) => Place::Target,
            (',', Place::AfterLimit) => Place::Limit,
            (',', Place::AfterSystem) => Place::System,
            (']', _) => {
                self.lists = self.lists.saturating_sub(1);
                Place::AfterTarget
            }
            ('=', Place::LetEquals) => Place::Target,
            ('=', Place::SetEquals) => Place::SetValue,
            (_, before) => before,
        };
    }

    fn quoted(&mut self) {
        let mut end = self.text.len();
        let mut escaped = false;
        for (at, character) in self.text[self.at + 1..].char_indices() {
            match character {
                '\n' => {
                    end = self.at + 1 + at;
                    break;
                }
                '"' if !escaped => {
                    end = self.at + 2 + at;
                    break;
                }
                _ => escaped = character == '\\' && !escaped,
            }
        }
        let lines = self.words.last().is_some_and(|last| self.text[last.range.clone()] == *"lines(");
        let (role, next) = match self.place {
            Place::Used | Place::File => (Role::File, Place::End),
            Place::Target | Place::AfterTarget if lines => (Role::File, Place::AfterTarget),
            Place::Target => (Role::Target, Place::AfterTarget),
            Place::Reason => (Role::Text, Place::End),
            Place::SetValue => (Role::Text, Place::End),
            place => (Role::Unknown, place),
        };
        self.push(end, role);
        self.place = next;
    }

    fn bare(&mut self) {
        let end = self.at + self.end_of_bare();
        let word = &self.text[self.at..end];
        // A list that was left open: no target is written like the beginning of a statement.
        let begins_line = self.text[..self.at].rsplit('\n').next().is_none_or(|before| before.trim().is_empty());
        if self.lists > 0 && begins_line && is_statement_word(word) {
            self.lists = 0;
            self.place = Place::Statement;
        }
        if self.place == Place::Verb && Verb::from_word(word).is_none() {
            // A second verb follows a comma.
            self.place = Place::Target;
        }
        let place = self.place;
        let known = |known: bool, role: Role| if known { role } else { Role::Unknown };
        let (role, next) = match place {
            Place::Statement => match begin(word) {
                Some(next) => (Role::Keyword, next),
                None => (Role::Unknown, Place::End),
            },
            Place::Version => (known(word.parse::<u32>().is_ok(), Role::Number), Place::End),
            Place::Used => (known(word.starts_with("std/"), Role::Module), Place::End),
            Place::LetName => (Role::Name, Place::LetEquals),
            Place::SetName => (Role::Name, Place::SetEquals),
            Place::Subject => (known(matches!(word, "read" | "env"), Role::Choice), Place::DefaultAnswer),
            Place::DefaultAnswer => (known(is_answer(word), Role::Keyword), Place::End),
            Place::ExpectAnswer => (known(is_answer(word), Role::Keyword), Place::Verb),
            Place::Verb => (Role::Verb, self.after_verb(end)),
            Place::Target => match word {
                "exact" | "below" => (Role::Keyword, Place::Target),
                "lines(" => (Role::Keyword, Place::Target),
                _ => (Role::Target, Place::AfterTarget),
            },
            Place::AfterTarget => match word {
                "except" | "or" => (Role::Keyword, Place::Target),
                "because" => (Role::Keyword, Place::Reason),
                _ => (Role::Unknown, Place::AfterTarget),
            },
            Place::SetValue => (Role::Text, Place::End),
            Place::Limit => (known(LimitKind::from_word(word).is_some(), Role::Choice), Place::LimitValue),
            Place::LimitValue => (Role::Number, Place::AfterLimit),
            Place::System => (known(System::from_word(word).is_some(), Role::System), Place::AfterSystem),
            Place::Variable => (known(word.starts_with('$'), Role::Target), Place::Relation),
            Place::Relation => (known(matches!(word, "inside" | "outside"), Role::Choice), Place::Target),
            Place::LetEquals
            | Place::SetEquals
            | Place::Reason
            | Place::AfterLimit
            | Place::AfterSystem
            | Place::File
            | Place::End => (Role::Unknown, place),
        };
        if role == Role::Verb {
            self.verb = Verb::from_word(word);
        } else if place == Place::Statement && !matches!(word, "except" | "because") {
            self.verb = None;
        }
        // What continues a rule on the next line belongs to it.
        let statement = self.statement;
        self.push(end, role);
        if place == Place::Statement
            && matches!(&self.text[self.words[self.words.len() - 1].range.clone()], "except" | "because")
        {
            self.statement = statement;
            if let Some(last) = self.words.last_mut() {
                last.statement = statement;
            }
        }
        self.place = next;
    }

    /// A verb behind which a comma stands is followed by another one.
    fn after_verb(&self, end: usize) -> Place {
        let rest = self.text[end..].trim_start_matches([' ', '\t']);
        if rest.starts_with(',') { Place::Verb } else { Place::Target }
    }

    /// How long the word is that begins here; never nothing.
    fn end_of_bare(&self) -> usize {
        let rest = &self.text[self.at..];
        let name = matches!(self.place, Place::LetName | Place::SetName);
        let mut inside: Vec<char> = Vec::new();
        let mut escaped = false;
        for (at, character) in rest.char_indices() {
            if escaped {
                escaped = false;
                continue;
            }
            match character {
                '\n' => return at.max(1),
                '\\' => escaped = true,
                '(' if &rest[..at] == "lines" => return at + 1,
                _ if inside.last() == Some(&character) => {
                    inside.pop();
                }
                _ if inside.last() == Some(&']') => {}
                '{' => inside.push('}'),
                '[' => inside.push(']'),
                '=' if name => return at.max(1),
                ',' | '}' | ']' | '"' if inside.is_empty() => return at.max(1),
                _ if character.is_whitespace() && inside.is_empty() => return at.max(1),
                _ => {}
            }
        }
        rest.len()
    }
}

fn is_answer(word: &str) -> bool {
    matches!(word, "allow" | "deny")
}

/// What follows the word that begins a statement.
fn begin(word: &str) -> Option<Place> {
    if Effect::from_word(word).is_some() {
        return Some(Place::Verb);
    }
    Some(match word {
        "srt" => Place::Version,
        "use" => Place::Used,
        "let" => Place::LetName,
        "default" => Place::Subject,
        "set" => Place::SetName,
        "limit" => Place::Limit,
        "on" => Place::System,
        "within" => Place::File,
        "expect" => Place::ExpectAnswer,
        "ignore" => Place::Verb,
        "assume" => Place::Variable,
        "except" => Place::Target,
        "because" => Place::Reason,
        _ => return None,
    })
}

/// The places in a target's text where a variable's name stands, `$` left out: at its start, and at the start of what its
/// braces make.
pub fn variables(target: &str) -> Vec<Range<usize>> {
    let mut found = Vec::new();
    let mut starts = true;
    let mut braces = 0_usize;
    let mut before = false;
    for (at, character) in target.char_indices() {
        match character {
            '"' if at == 0 => {}
            '{' if starts => braces += 1,
            ',' if braces > 0 && !before => starts = true,
            '}' => {
                braces = braces.saturating_sub(1);
                before |= braces == 0;
                starts = false;
            }
            '$' if starts => {
                let name = &target[at + 1..];
                let length =
                    |name: &str| name.find(|c: char| !(c.is_ascii_alphanumeric() || c == '_')).unwrap_or(name.len());
                let mut end = length(name);
                if &name[..end] == "env" && name[end..].starts_with('.') {
                    end += 1 + length(&name[end + 1..]);
                }
                if end > 0 {
                    found.push(at + 1..at + 1 + end);
                }
                starts = false;
            }
            _ => {
                starts = false;
                before |= braces == 0;
            }
        }
    }
    found
}

#[cfg(test)]
mod tests;
