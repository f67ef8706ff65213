//! What mounts cannot say of single nodes.

use super::Builder;
use crate::backend::bubblewrap::lower::codes;
use crate::backend::bubblewrap::lower::judge::State;
use crate::backend::bubblewrap::lower::tree::Point;
use crate::diagnostic::{Code, Diagnostic};
use crate::ir::Verdict;
use crate::vocabulary::Verb;

impl Builder<'_> {
    pub(super) fn directory_gaps(&mut self, at: usize, here: State, below: State) {
        let point = &self.tree.points[at];
        let path = &point.path;
        if below.read && !here.read {
            self.listing_gap(at);
        }
        if here.read && !below.read {
            let verdict = self.judge.verdict(Verb::Read, path);
            let closed = self.judge.verdict(Verb::Read, &self.judge.unnamed_child(path));
            let verdict = if verdict.decisive.is_empty() { closed } else { verdict };
            let message = format!("`{path}` can be listed, but shows only what may be read below it");
            self.gap(&codes::DIRECTORY_ALONE, &verdict, message, point);
        }
        if here.write != below.write && below.read && !self.lent[at] {
            let unnamed = self.judge.verdict(Verb::Write, &self.judge.unnamed_child(path));
            let own = self.judge.verdict(Verb::Write, path);
            if below.write {
                let message = format!("the mode, owner and times of `{path}` itself can be changed");
                let verdict = if own.decisive.is_empty() { unnamed } else { own };
                self.gap(&codes::DIRECTORY_ATTRIBUTES, &verdict, message, point);
            } else {
                let message = format!("the mode, owner and times of `{path}` itself cannot be changed");
                self.gap(&codes::DIRECTORY_ALONE, &own, message, point);
            }
        }
    }

    pub(super) fn listing_gap(&mut self, at: usize) {
        let point = &self.tree.points[at];
        let own = self.judge.verdict(Verb::Read, &point.path);
        let below = self.judge.verdict(Verb::Read, &self.judge.unnamed_child(&point.path));
        let verdict = if own.decisive.is_empty() { below } else { own };
        let message = format!("`{}` itself can be listed, since what is below it may be read", point.path);
        self.gap(&codes::DIRECTORY_LISTING, &verdict, message, point);
    }

    pub(super) fn gap(&mut self, code: &'static Code, verdict: &Verdict, message: String, point: &Point) {
        let mut gap = Diagnostic::new(code, message).witness(point.path.to_string());
        if let Some(rule) = verdict.decisive.first() {
            gap = gap.label(self.judge.policy.rules[rule.0 as usize].span, "this rule");
        }
        self.gaps.push(gap);
    }
}
