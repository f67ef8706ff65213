//! The whole file: blocks put together from the flat row of lines that the grammar reads, broken lines stepped over so
//! that each costs one message, the version, and the `lint:` comments above statements.

mod recovery;

use recovery::blank_line;

use super::ast::{File, Spanned, Statement, StatementKind, Suppression};
use super::codes;
use super::fault::Fault;
use super::grammar::{Breach, Pair, Pairs, Rule, read};
use super::reader::Reader;
use super::statement::VERSION;
use super::suppression;
use crate::diagnostic::Diagnostic;
use crate::source::{SourceId, Span};
use crate::vocabulary::System;

/// An `on` block that is still open.
struct Block {
    /// `on linux {`
    head: Span,
    systems: Vec<Spanned<System>>,
    suppressions: Vec<Suppression>,
    /// The head could not be read: what is inside is read, and left out.
    broken: bool,
    /// A line that could not be read may have been the `}`.
    end_may_be_lost: bool,
    body: Vec<Statement>,
    /// Complaints about statements that may not stand inside; dropped if it turns out that the block was not meant to
    /// reach them.
    strays: Vec<Diagnostic>,
}

impl Block {
    fn new(head: Span, systems: Vec<Spanned<System>>) -> Self {
        Self {
            head,
            systems,
            suppressions: Vec::new(),
            broken: false,
            end_may_be_lost: false,
            body: Vec::new(),
            strays: Vec::new(),
        }
    }
}

/// The state of one reading.
#[allow(clippy::struct_excessive_bools)] // Each remembers one thing about the lines above.
pub(super) struct Tree<'t> {
    text: &'t str,
    reader: Reader,
    statements: Vec<Statement>,
    block: Option<Block>,
    pending: Vec<Suppression>,
    /// Where the last thing on a line ended, to tell what stands beside it from what stands below.
    last_end: usize,
    /// A line that could not be read may have been the head of a block, so that a `}` without one is its fault too.
    head_may_be_lost: bool,
    /// Whether anything stood in the file before, read or not.
    begun: bool,
    versioned: bool,
    /// The last statement, if it is one that a next line may continue.
    rule: Option<Span>,
    /// A `}` stood where a rule was to go on; what continues it is the same fault.
    cut_off: bool,
}

/// Reads one text.
pub(super) fn parse(text: &str, source: SourceId) -> (File, Vec<Diagnostic>) {
    let mut tree = Tree {
        text,
        reader: Reader { source, diagnostics: Vec::new(), homeless: Vec::new() },
        statements: Vec::new(),
        block: None,
        pending: Vec::new(),
        last_end: 0,
        head_may_be_lost: false,
        begun: false,
        versioned: false,
        rule: None,
        cut_off: false,
    };
    match read(Rule::file, text) {
        Ok(pairs) => tree.file(pairs),
        Err(breach) => tree.gave_up(&breach),
    }
    (File { statements: tree.statements }, tree.reader.diagnostics)
}

impl Tree<'_> {
    /// Every text is a `file`, so only nesting or work without end gets here.
    fn gave_up(&mut self, breach: &Breach) {
        let message = if breach.exhausted { "the policy is nested too deeply" } else { "the policy cannot be read" };
        let at = breach.at.min(self.text.len());
        let fault = Fault::new(&codes::SYNTAX, message, "write it with fewer braces inside each other");
        self.reader.complain(fault, Span::new(self.reader.source, at..at));
    }

    fn file(&mut self, pairs: Pairs<'_>) {
        let mut items = pairs.flat_map(Pair::into_inner);
        while let Some(item) = items.next() {
            let span = self.reader.span(&item);
            match item.as_rule() {
                Rule::EOI | Rule::end => {}
                Rule::comment => self.comment(&item),
                Rule::open => self.open(item, span),
                Rule::close => self.close(span),
                Rule::bad => self.bad(&item, &mut items),
                _ => self.statement(item, span),
            }
        }
        self.orphans();
        if let Some(block) = self.block.take() {
            self.unclosed(&block);
        }
        self.reader.diagnostics.append(&mut self.reader.homeless);
        if !self.begun {
            self.missing_version(Span::new(self.reader.source, 0..0));
        }
    }

    fn comment(&mut self, item: &Pair<'_>) {
        if !suppression::is_one(item.as_str()) {
            return;
        }
        if self.last_end > 0 && !self.text[self.last_end..item.as_span().start()].contains('\n') {
            suppression::misplaced(&mut self.reader, item);
        } else if let Some(one) = suppression::read(&mut self.reader, item) {
            self.pending.push(one);
        }
    }

    /// What stands above the statement at `start`; a blank line between the two parts them.
    fn suppressions(&mut self, start: usize) -> Vec<Suppression> {
        if self.pending.is_empty() {
            return Vec::new();
        }
        let first = self.pending[0].span.range().end;
        if blank_line(&self.text[first..start]) {
            self.orphans();
        }
        std::mem::take(&mut self.pending)
    }

    fn orphans(&mut self) {
        for one in std::mem::take(&mut self.pending) {
            suppression::alone(&mut self.reader, one.span);
        }
    }

    fn statement(&mut self, item: Pair<'_>, span: Span) {
        let kind = item.as_rule();
        let suppressions = self.suppressions(span.range().start);
        self.rule = matches!(kind, Rule::ruling | Rule::expectation | Rule::silence).then_some(span);
        self.cut_off = false;
        self.last_end = span.range().end;
        let first = !std::mem::replace(&mut self.begun, true);
        if kind == Rule::version {
            self.version(first, span);
        } else if first {
            self.missing_version(span);
        }
        let systems = self.block.as_ref().map(|block| block.systems.clone()).unwrap_or_default();
        let Some(mut statement) = self.reader.statement(item, &systems) else { return };
        statement.suppressions = suppressions;
        match &mut self.block {
            None => self.statements.push(statement),
            Some(block) => {
                if let Some(word) = outside_only(&statement.kind) {
                    block.strays.push(
                        Diagnostic::new(&codes::SYNTAX, format!("`{word}` stands inside an `on` block"))
                            .label(span, "here")
                            .label(block.head, "in this block")
                            .help("write it outside: it is the same on every system"),
                    );
                } else {
                    block.body.push(statement);
                }
            }
        }
    }

    fn version(&mut self, first: bool, span: Span) {
        if self.versioned {
            let fault = Fault::new(&codes::VERSION, "`srt` stands twice in one file", "take this one out");
            self.reader.complain(fault, span);
        } else if !first {
            let fault = Fault::new(&codes::VERSION, "`srt` is not the first statement", "write it above all others");
            self.reader.complain(fault, span);
        }
        self.versioned = true;
    }

    /// Said once, when the first statement is another one; unless `srt` follows, which then says so.
    fn missing_version(&mut self, span: Span) {
        let later = self.text.lines().any(|line| line.trim_start().strip_prefix("srt").is_some_and(starts_blank));
        if later {
            return;
        }
        self.versioned = true;
        let fault = Fault::new(
            &codes::VERSION,
            "the policy does not say which version of the language it is written in",
            format!("write `srt {VERSION}` as its first statement"),
        )
        .label("before this");
        let start = span.range().start;
        let first_line = self.text[span.range()].find('\n').map_or(span.range().end, |newline| start + newline);
        self.reader.complain(fault, Span::new(span.source, start..first_line));
    }

    fn open(&mut self, item: Pair<'_>, span: Span) {
        let suppressions = self.suppressions(span.range().start);
        if let Some(block) = self.block.take() {
            self.unclosed(&block);
        }
        self.begin(span);
        self.reader.diagnostics.append(&mut self.reader.homeless);
        self.rule = None;
        self.head_may_be_lost = false;
        let systems = item
            .into_inner()
            .filter(|part| part.as_rule() == Rule::system)
            .filter_map(|part| Some(self.reader.spanned(&part, System::from_word(part.as_str())?)))
            .collect();
        self.block = Some(Block { suppressions, ..Block::new(span, systems) });
        self.last_end = span.range().end;
    }

    /// Notes that something other than `srt` begins the file.
    fn begin(&mut self, span: Span) {
        if !std::mem::replace(&mut self.begun, true) {
            self.missing_version(span);
        }
    }

    fn close(&mut self, span: Span) {
        self.orphans();
        self.begin(span);
        // `}` and what the grammar looks ahead at; the brace alone is what closes.
        self.last_end = span.range().start + 1;
        let brace = Span::new(span.source, span.range().start..span.range().start + 1);
        self.cut_off = self.rule.take().is_some();
        if let Some(block) = self.block.take() {
            self.finish(block, brace);
            return;
        }
        // Either way a block was lost above, and with it the home of what needs one.
        self.reader.homeless.clear();
        if !std::mem::take(&mut self.head_may_be_lost) {
            let fault = Fault::new(&codes::SYNTAX, "this `}` closes nothing", "take it out");
            self.reader.complain(fault, brace);
        }
    }

    fn finish(&mut self, mut block: Block, brace: Span) {
        self.reader.diagnostics.append(&mut block.strays);
        if !block.broken {
            self.statements.push(Statement {
                span: block.head.to(brace),
                kind: StatementKind::On { systems: block.systems, body: block.body },
                suppressions: block.suppressions,
            });
        }
    }

    /// Another block, or the end of the file, came before the `}`. What stood inside is left out: it cannot be told how
    /// far the block was meant to reach.
    fn unclosed(&mut self, block: &Block) {
        if !block.broken && !block.end_may_be_lost {
            let fault = Fault::new(&codes::SYNTAX, "this `on` block is not closed", "write `}` on a line below it")
                .label("opened here");
            self.reader.complain(fault, block.head);
        }
    }
}

fn starts_blank(rest: &str) -> bool {
    rest.is_empty() || rest.starts_with([' ', '\t', '\r'])
}

/// The word of a statement that may not stand in an `on` block.
fn outside_only(kind: &StatementKind) -> Option<&'static str> {
    match kind {
        StatementKind::Version(_) => Some("srt"),
        StatementKind::Let { .. } => Some("let"),
        StatementKind::Default { .. } => Some("default"),
        StatementKind::Within(_) => Some("within"),
        StatementKind::Assume { .. } => Some("assume"),
        StatementKind::On { .. } => Some("on"),
        StatementKind::UseStd(_)
        | StatementKind::UsePath(_)
        | StatementKind::Rule(_)
        | StatementKind::Set { .. }
        | StatementKind::Limit(_)
        | StatementKind::Expect(_)
        | StatementKind::Ignore(_) => None,
    }
}
