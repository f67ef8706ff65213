//! The one layout of a policy: one blank between words, one blank line at most, blocks indented by two, a list on one
//! line or one item a line. Prints what the grammar read, so that comments stay where they are; changes no meaning.

mod clause;

use super::grammar::{Pair, Rule, read};
use clause::{Clause, Entry, Targets};

/// Columns that a line may fill before its lists are broken.
const WIDTH: usize = 100;
/// Columns by which what is inside is set off.
const INDENT: usize = 2;

/// Lays out a text that has no syntax error.
pub(super) fn format(text: &str) -> String {
    let mut page = Page { text, out: String::with_capacity(text.len()), level: 0, end: None, fresh: true };
    if let Ok(pairs) = read(Rule::file, text) {
        for item in pairs.flat_map(Pair::into_inner) {
            page.item(item);
        }
    }
    page.out.push('\n');
    page.out
}

struct Page<'t> {
    text: &'t str,
    /// Never ends in a newline: what comes next may be a comment on the same line.
    out: String,
    level: usize,
    /// Where the last item ended in the text.
    end: Option<usize>,
    /// Nothing stands in the file or block so far.
    fresh: bool,
}

impl Page<'_> {
    fn item(&mut self, item: Pair<'_>) {
        let span = item.as_span();
        let newlines = self.end.map(|end| self.text[end..span.start()].matches('\n').count());
        match item.as_rule() {
            Rule::EOI | Rule::end | Rule::bad => return,
            Rule::comment => {
                let comment = item.as_str().trim_end();
                if newlines == Some(0) {
                    self.out.push(' ');
                } else {
                    self.line(newlines);
                }
                self.out.push_str(comment);
            }
            Rule::close => {
                self.level -= usize::from(self.level > 0);
                self.fresh = true;
                self.line(None);
                self.out.push('}');
                // The pair looks ahead; the brace is all of it.
                self.end = Some(span.start() + 1);
                return;
            }
            Rule::open => {
                self.line(newlines);
                let systems: Vec<&str> =
                    item.into_inner().filter(|part| part.as_rule() == Rule::system).map(|part| part.as_str()).collect();
                self.out.push_str("on ");
                self.out.push_str(&systems.join(", "));
                self.out.push_str(" {");
                self.level += 1;
                self.fresh = true;
            }
            _ => {
                self.line(newlines);
                let clauses = self.clauses(item);
                clause::print(&clauses, self.level * INDENT, &mut self.out);
            }
        }
        self.end = Some(span.end());
    }

    /// Starts a line, after an empty one if the text had one.
    fn line(&mut self, newlines: Option<usize>) {
        let fresh = std::mem::replace(&mut self.fresh, false);
        if !self.out.is_empty() {
            self.out.push('\n');
            if !fresh && newlines.is_some_and(|newlines| newlines > 1) {
                self.out.push('\n');
            }
        }
        self.out.extend(std::iter::repeat_n(' ', self.level * INDENT));
    }

    /// The parts of one statement that may each have a line of its own.
    fn clauses(&self, statement: Pair<'_>) -> Vec<Clause> {
        let mut clauses = vec![Clause::new(keyword(statement.as_rule()))];
        let mut end = statement.as_span().start();
        for part in statement.into_inner() {
            let span = part.as_span();
            match part.as_rule() {
                Rule::except | Rule::because => {
                    let word = if part.as_rule() == Rule::except { "except" } else { "because" };
                    // Comments that were met before the word belong above it.
                    if clauses_last(&mut clauses).is_pending() {
                        clauses_last(&mut clauses).word(word);
                    } else {
                        clauses.push(Clause::new(word));
                    }
                    for inner in part.into_inner() {
                        self.part(inner, clauses_last(&mut clauses));
                    }
                }
                Rule::comment => {
                    let comment = part.as_str().trim_end().to_owned();
                    let beside = !self.text[end..span.start()].contains('\n');
                    let last = clauses_last(&mut clauses);
                    if beside && !last.is_pending() && last.beside.is_none() {
                        last.beside = Some(comment);
                    } else if last.is_pending() {
                        last.before.push(comment);
                    } else {
                        let mut pending = Clause::new("");
                        pending.before.push(comment);
                        clauses.push(pending);
                    }
                }
                _ => self.part(part, clauses_last(&mut clauses)),
            }
            end = span.end();
        }
        clauses
    }

    /// Adds one word, target or list to a clause.
    fn part(&self, part: Pair<'_>, clause: &mut Clause) {
        match part.as_rule() {
            Rule::list => clause.targets = Some(Targets::List(self.entries(part))),
            Rule::target => clause.targets = Some(Targets::One(target(part))),
            Rule::verbs => {
                let verbs: Vec<&str> = part.into_inner().map(|verb| verb.as_str()).collect();
                clause.word(&verbs.join(", "));
            }
            Rule::limit => {
                let words: Vec<&str> = part.into_inner().map(|word| word.as_str()).collect();
                if clause.words.contains(' ') {
                    clause.words.push(',');
                }
                clause.word(&words.join(" "));
            }
            Rule::equals if clause.words.starts_with("set ") => clause.words.push('='),
            Rule::value => clause.words.push_str(part.as_str()),
            Rule::string if clause.words.ends_with('=') && clause.words.starts_with("set ") => {
                clause.words.push_str(unquoted(part.as_str(), Rule::value_alone));
            }
            _ => clause.word(part.as_str()),
        }
    }

    fn entries(&self, list: Pair<'_>) -> Vec<Entry> {
        let mut entries: Vec<Entry> = Vec::new();
        let mut end = list.as_span().start() + 1;
        for part in list.into_inner() {
            let span = part.as_span();
            let newlines = self.text[end..span.start()].matches('\n').count();
            end = span.end();
            match part.as_rule() {
                Rule::target => {
                    entries.push(Entry { text: target(part), comment: None, parted: newlines > 1, item: true });
                }
                Rule::comment => {
                    let comment = part.as_str().trim_end().to_owned();
                    match entries.last_mut() {
                        Some(last) if newlines == 0 && last.item && last.comment.is_none() => {
                            last.comment = Some(comment);
                        }
                        // Beside the bracket.
                        None if newlines == 0 => entries.push(Entry {
                            text: String::new(),
                            comment: Some(comment),
                            parted: false,
                            item: false,
                        }),
                        _ => entries.push(Entry { text: comment, comment: None, parted: newlines > 1, item: false }),
                    }
                }
                _ => {}
            }
        }
        entries
    }
}

/// There is one clause from the start, and none is ever taken away.
fn clauses_last(clauses: &mut [Clause]) -> &mut Clause {
    let last = clauses.len() - 1;
    &mut clauses[last]
}

/// The word a statement starts with; a rule's effect is a part of its own.
fn keyword(of: Rule) -> &'static str {
    match of {
        Rule::version => "srt",
        Rule::inclusion => "use",
        Rule::definition => "let",
        Rule::closure => "default",
        Rule::assignment => "set",
        Rule::bound => "limit",
        Rule::ceiling => "within",
        Rule::expectation => "expect",
        Rule::silence => "ignore",
        Rule::assumption => "assume",
        _ => "",
    }
}

fn target(target: Pair<'_>) -> String {
    let words: Vec<&str> = target
        .into_inner()
        .map(|part| match part.as_rule() {
            Rule::string => unquoted(part.as_str(), Rule::bare_alone),
            _ => part.as_str(),
        })
        .collect();
    words.join(" ")
}

/// The text without its quotes, if it is read the same without them.
fn unquoted(written: &str, alone: Rule) -> &str {
    let token = super::token::Token::new(written);
    let bare = super::token::Token { quoted: false, ..token };
    if bare.check().is_ok() && !token.content.starts_with("lines(") && read(alone, token.content).is_ok() {
        token.content
    } else {
        written
    }
}
