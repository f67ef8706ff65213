//! Where the lines of one statement are broken.

use super::{INDENT, WIDTH};

/// A part of a statement: its head, `except …` or `because …`.
#[derive(Debug)]
pub(super) struct Clause {
    /// Comments on lines of their own above it.
    pub before: Vec<String>,
    pub words: String,
    pub targets: Option<Targets>,
    /// The comment on its line.
    pub beside: Option<String>,
}

#[derive(Debug)]
pub(super) enum Targets {
    One(String),
    List(Vec<Entry>),
}

/// One line of a list: an item with the comment beside it, or a comment.
#[derive(Debug)]
pub(super) struct Entry {
    pub text: String,
    pub comment: Option<String>,
    /// An empty line stands before it.
    pub parted: bool,
    pub item: bool,
}

impl Clause {
    pub fn new(word: &str) -> Self {
        Self { before: Vec::new(), words: word.to_owned(), targets: None, beside: None }
    }

    /// Whether it has nothing yet but comments that stand above it.
    pub fn is_pending(&self) -> bool {
        self.words.is_empty() && self.targets.is_none() && !self.before.is_empty()
    }

    pub fn word(&mut self, word: &str) {
        if !self.words.is_empty() {
            self.words.push(' ');
        }
        self.words.push_str(word);
    }

    /// On one line, if no comment stands in the way.
    fn flat(&self) -> Option<String> {
        let mut line = self.words.clone();
        match &self.targets {
            None => {}
            Some(Targets::One(target)) => {
                line.push(' ');
                line.push_str(target);
            }
            Some(Targets::List(entries)) => {
                line.push_str(" [");
                for (nth, entry) in entries.iter().enumerate() {
                    if !entry.item || entry.comment.is_some() {
                        return None;
                    }
                    if nth > 0 {
                        line.push_str(", ");
                    }
                    line.push_str(&entry.text);
                }
                line.push(']');
            }
        }
        Some(line)
    }

    fn print(&self, indent: usize, out: &mut String) {
        match (self.flat(), &self.targets) {
            (Some(line), Some(Targets::List(_))) if indent + width(&line) > WIDTH => self.broken(indent, out),
            (Some(line), _) => out.push_str(&line),
            (None, _) => self.broken(indent, out),
        }
        if let Some(comment) = &self.beside {
            out.push(' ');
            out.push_str(comment);
        }
    }

    /// With one entry of its list a line.
    fn broken(&self, indent: usize, out: &mut String) {
        out.push_str(&self.words);
        out.push_str(" [");
        let Some(Targets::List(entries)) = &self.targets else { return };
        let mut first = true;
        for entry in entries {
            if entry.text.is_empty() {
                // The comment beside the bracket.
                if let Some(comment) = &entry.comment {
                    out.push(' ');
                    out.push_str(comment);
                }
                continue;
            }
            if entry.parted && !first {
                out.push('\n');
            }
            first = false;
            start_line(indent + INDENT, out);
            out.push_str(&entry.text);
            if entry.item {
                out.push(',');
            }
            if let Some(comment) = &entry.comment {
                out.push(' ');
                out.push_str(comment);
            }
        }
        start_line(indent, out);
        out.push(']');
    }
}

/// Prints a statement at `indent`; the first line's own indentation stands already.
pub(super) fn print(clauses: &[Clause], indent: usize, out: &mut String) {
    let commented = clauses.iter().any(|clause| clause.beside.is_some() || !clause.before.is_empty());
    let flat: Option<Vec<String>> = clauses.iter().map(Clause::flat).collect();
    if let Some(flat) = flat.map(|parts| parts.join(" "))
        && !commented
        && (indent + width(&flat) <= WIDTH
            || clauses.len() == 1 && !matches!(clauses[0].targets, Some(Targets::List(_))))
    {
        out.push_str(&flat);
        return;
    }
    for (nth, clause) in clauses.iter().enumerate() {
        let indent = if nth == 0 { indent } else { indent + INDENT };
        for comment in &clause.before {
            start_line(indent, out);
            out.push_str(comment);
        }
        if nth > 0 {
            start_line(indent, out);
        }
        clause.print(indent, out);
    }
}

fn start_line(indent: usize, out: &mut String) {
    out.push('\n');
    out.extend(std::iter::repeat_n(' ', indent));
}

fn width(text: &str) -> usize {
    text.chars().count()
}
