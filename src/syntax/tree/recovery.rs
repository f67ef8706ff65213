//! Lines that are no statement: how far each reaches, what is said about it, and what it may have taken with it.

use super::{Block, Tree};
use crate::source::Span;
use crate::syntax::ast::Spanned;
use crate::syntax::complaint;
use crate::syntax::grammar::{Pair, Rule};
use crate::vocabulary::System;

impl Tree<'_> {
    /// A line that is no statement, with those of its lines that follow: one complaint.
    pub(super) fn bad<'t>(&mut self, item: &Pair<'t>, items: &mut (impl Iterator<Item = Pair<'t>> + Clone)) {
        self.pending.clear();
        let start = item.as_span().start();
        let beside_head =
            self.block.as_ref().is_some_and(|block| !self.text[block.head.range().end..start].contains('\n'));
        let line = item.as_str().trim_end();
        let scan = complaint::scan(line);
        let word = complaint::first_word(line);
        // A `{` behind another statement is a list in the wrong brackets.
        let head = scan.opens_block && (word == "on" || !complaint::is_statement_word(word));
        let mut end = if head || beside_head { item.as_span().end() } else { self.rest(item, items) };
        if scan.opens_block && !head {
            end = self.wrong_bracket(start, end, items);
        }
        let first = !std::mem::replace(&mut self.begun, true);
        if first || word == "srt" {
            // It may have been the version: one message is enough.
            self.versioned = true;
        }
        let closes = if line.starts_with('}') {
            self.block.is_some()
        } else {
            line.ends_with('}') && (beside_head || self.block.is_some() && scan.closes)
        };
        let brace = start + line.len().saturating_sub(1);
        self.last_end = start + self.text[start..end].trim_end().len();

        // What continues a rule is broken together with it.
        let continues = matches!(word, "except" | "because");
        let rule = self.rule.take().filter(|_| continues);
        let from = rule.map_or(start, |rule| rule.range().start);
        let to = if beside_head && closes { brace } else { end };
        if !(continues && std::mem::take(&mut self.cut_off)) {
            let complaint = complaint::about(self.text[from..to].trim_end());
            let range = from + complaint.range.start..from + complaint.range.end;
            self.reader.complain(complaint.fault, Span::new(self.reader.source, range));
        }
        if let Some(rule) = rule {
            self.take_back(rule);
        }

        let level = indent(self.text, start);
        if head {
            if let Some(block) = self.block.take() {
                self.unclosed(&block);
            }
            let head = Span::new(self.reader.source, start..start + line.len());
            // A head without its systems: whatever system a statement inside needs, it is not to blame.
            let systems = vec![Spanned { value: System::Windows, span: head }];
            self.block = Some(Block { broken: true, ..Block::new(head, systems) });
        } else if closes {
            let brace = Span::new(self.reader.source, brace..brace + 1);
            if let Some(block) = self.block.take() {
                self.finish(block, brace);
            }
            self.head_may_be_lost = !beside_head && !line.starts_with('}');
        } else if !complaint::is_statement_word(word) || word == "on" {
            match &mut self.block {
                None => self.head_may_be_lost = true,
                Some(block) => {
                    block.end_may_be_lost |= level <= indent(self.text, block.head.range().start);
                }
            }
        }
    }

    /// Steps over the `}` of a list that was written in braces at `start`. Returns the end.
    fn wrong_bracket<'t>(
        &self,
        start: usize,
        end: usize,
        items: &mut (impl Iterator<Item = Pair<'t>> + Clone),
    ) -> usize {
        let level = indent(self.text, start);
        let inside = self.block.as_ref().is_none_or(|block| level > indent(self.text, block.head.range().start));
        let mut ahead = items.clone();
        let next = ahead.find(|next| next.as_rule() != Rule::comment).filter(|next| next.as_rule() == Rule::close);
        let Some(brace) = next.map(|next| next.as_span().start()) else { return end };
        if !inside || indent(self.text, brace) != level {
            return end;
        }
        *items = ahead;
        brace + 1
    }

    /// Takes the statement at `span` out of the tree again.
    fn take_back(&mut self, span: Span) {
        let statements = self.block.as_mut().map_or(&mut self.statements, |block| &mut block.body);
        if statements.last().is_some_and(|last| last.span == span) {
            statements.pop();
        }
    }

    /// Steps over what belongs to the broken statement that starts with `item`: lines inside a bracket that it left
    /// open, lines that are indented deeper, closing brackets, `except` and `because`, and comments between them. Never
    /// over a line that starts as a statement does. Returns the end.
    fn rest<'t>(&self, item: &Pair<'t>, items: &mut (impl Iterator<Item = Pair<'t>> + Clone)) -> usize {
        let level = indent(self.text, item.as_span().start());
        let mut end = item.as_span().end();
        let mut open = complaint::scan(item.as_str()).opened_lists;
        loop {
            let mut ahead = items.clone();
            let next = ahead.find(|next| next.as_rule() != Rule::comment);
            let Some(next) = next.filter(|next| next.as_rule() == Rule::bad) else { return end };
            let line = next.as_str();
            let word = complaint::first_word(line);
            let start = next.as_span().start();
            // A blank line ends a statement, but not behind a comma.
            let close_by = !blank_line(&self.text[end..start]) || self.text[..end].trim_end().ends_with(',');
            let ours = open > 0
                || close_by && indent(self.text, start) > level
                || close_by && matches!(word, "except" | "because")
                || line.starts_with([']', ',', ')']);
            if !ours || complaint::is_statement_word(word) || line.starts_with('}') {
                return end;
            }
            let scan = complaint::scan(line);
            open = open.saturating_sub(scan.closed_lists) + scan.opened_lists;
            end = next.as_span().end();
            *items = ahead;
        }
    }
}

/// How many bytes stand before `at` on its line.
fn indent(text: &str, at: usize) -> usize {
    at - text[..at].rfind('\n').map_or(0, |newline| newline + 1)
}

/// Whether a line without anything on it stands between two places.
pub(super) fn blank_line(between: &str) -> bool {
    let mut lines = between.split('\n');
    // What is left of the line before, and what stands before the line after.
    let _ = (lines.next(), lines.next_back());
    lines.any(|line| line.trim().is_empty())
}
