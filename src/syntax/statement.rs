//! One statement: from what the grammar read to the tree, with the complaints that need more than the grammar.

use super::ast::{
    DefaultSubject, Expect, Ignore, LetValue, Rule as RuleNode, Spanned, Statement, StatementKind, Target,
};
use super::codes;
use super::fault::Fault;
use super::grammar::{Pair, Rule};
use super::reader::Reader;
use super::target::{self, Role};
use super::token::{Token, unescape};
use super::{limit, suppression};
use crate::vocabulary::{Effect, Kind, System, Verb};

/// The language versions this build reads.
pub(super) const VERSION: u32 = 1;

impl Reader {
    /// Reads one statement; `None` if it has a fault, which is said by then.
    pub fn statement(&mut self, pair: Pair<'_>, systems: &[Spanned<System>]) -> Option<Statement> {
        let span = self.span(&pair);
        let before = self.diagnostics.len() + self.homeless.len();
        let kind = match pair.as_rule() {
            Rule::version => self.version(pair),
            Rule::inclusion => self.inclusion(pair),
            Rule::definition => self.definition(pair),
            Rule::closure => self.closure(pair),
            Rule::ruling => self.rule(pair, systems),
            Rule::assignment => self.assignment(pair),
            Rule::bound => self.bound(pair),
            Rule::ceiling => {
                pair.into_inner().next().and_then(|string| self.file_name(&string)).map(StatementKind::Within)
            }
            Rule::expectation => self.expectation(pair, systems),
            Rule::silence => self.silence(pair, systems),
            Rule::assumption => self.assumption(pair, systems),
            _ => None,
        }?;
        // A `let` with one bad target still names the others, and what uses it is not to blame.
        let kept = self.diagnostics.len() + self.homeless.len() == before || matches!(kind, StatementKind::Let { .. });
        kept.then_some(Statement { kind, span, suppressions: Vec::new() })
    }

    fn version(&mut self, pair: Pair<'_>) -> Option<StatementKind> {
        let number = pair.into_inner().next()?;
        if number.as_str().parse() == Ok(VERSION) {
            return Some(StatementKind::Version(self.spanned(&number, VERSION)));
        }
        let fault = Fault::new(
            &codes::VERSION,
            format!("version `{}` of the language is not known: this build reads version {VERSION}", number.as_str()),
            format!("write `srt {VERSION}`, or install a build that reads it"),
        );
        let span = self.span(&number);
        self.complain(fault, span);
        None
    }

    fn inclusion(&mut self, pair: Pair<'_>) -> Option<StatementKind> {
        let what = pair.into_inner().next()?;
        if what.as_rule() == Rule::std_name {
            let name = what.as_str().strip_prefix("std/").unwrap_or_default().to_owned();
            return Some(StatementKind::UseStd(self.spanned(&what, name)));
        }
        self.file_name(&what).map(StatementKind::UsePath)
    }

    /// The text of a `string` pair, quotes and escapes taken out.
    fn text(&self, pair: &Pair<'_>) -> Spanned<String> {
        self.spanned(pair, unescape(Token::new(pair.as_str()).content).into_owned())
    }

    fn file_name(&mut self, pair: &Pair<'_>) -> Option<Spanned<String>> {
        let text = self.text(pair);
        if text.value.is_empty() {
            let fault =
                Fault::new(&codes::SYNTAX, "expected the name of a file, found an empty text", "write its path");
            self.complain(fault, text.span);
            return None;
        }
        Some(text)
    }

    fn definition(&mut self, pair: Pair<'_>) -> Option<StatementKind> {
        let mut name = None;
        let mut lines = None;
        let mut targets = Vec::new();
        for part in pair.into_inner() {
            match part.as_rule() {
                Rule::identifier => name = Some(self.spanned(&part, part.as_str().to_owned())),
                Rule::lines => lines = part.into_inner().next().map(|string| self.file_name(&string)),
                Rule::list | Rule::target => targets.append(&mut target::read(self, part, Role::Unknown)),
                _ => {}
            }
        }
        let value = match lines {
            Some(file) => LetValue::Lines(file?),
            None => LetValue::Targets(targets),
        };
        Some(StatementKind::Let { name: name?, value })
    }

    fn closure(&mut self, pair: Pair<'_>) -> Option<StatementKind> {
        let mut parts = pair.into_inner();
        let subject = parts.next()?;
        let answer = parts.next()?;
        let value = if subject.as_str() == "env" { DefaultSubject::Env } else { DefaultSubject::Read };
        Some(StatementKind::Default { subject: self.spanned(&subject, value), allow: answer.as_str() == "allow" })
    }

    fn verbs(&mut self, pair: Pair<'_>) -> Option<Vec<Spanned<Verb>>> {
        let mut verbs: Vec<Spanned<Verb>> = Vec::new();
        for part in pair.into_inner() {
            let verb = self.spanned(&part, Verb::from_word(part.as_str())?);
            let fault = if verbs.iter().any(|other| other.value == verb.value) {
                Fault::new(&codes::MISMATCH, format!("`{}` stands twice in one statement", verb.value), "take one out")
            } else if let Some(other) = verbs.iter().find(|other| other.value.kind() != verb.value.kind()) {
                Fault::new(
                    &codes::MISMATCH,
                    format!(
                        "`{}` takes {}, and `{}` takes {}",
                        other.value,
                        other.value.kind().expected(),
                        verb.value,
                        verb.value.kind().expected()
                    ),
                    "write a statement for each",
                )
            } else {
                verbs.push(verb);
                continue;
            };
            self.complain(fault, verb.span);
            return None;
        }
        Some(verbs)
    }

    fn rule(&mut self, pair: Pair<'_>, systems: &[Spanned<System>]) -> Option<StatementKind> {
        let mut effect = None;
        let mut verbs: Vec<Spanned<Verb>> = Vec::new();
        let mut targets = Vec::new();
        let mut except = Vec::new();
        let mut because = None;
        for part in pair.into_inner() {
            match part.as_rule() {
                Rule::effect => effect = Some(self.spanned(&part, Effect::from_word(part.as_str())?)),
                Rule::verbs => verbs = self.verbs(part)?,
                Rule::list | Rule::target => {
                    let allow = effect.as_ref().is_some_and(|effect| effect.value == Effect::Allow);
                    targets = target::read(self, part, Role::Rule { verbs: &verbs, systems, allow });
                }
                Rule::except => except = self.except(part, &verbs, systems),
                Rule::because => because = part.into_inner().next().map(|string| self.text(&string)),
                Rule::comment => suppression::misplaced(self, &part),
                _ => {}
            }
        }
        self.has_reason(because.as_ref());
        Some(StatementKind::Rule(RuleNode { effect: effect?, verbs, targets, except, because }))
    }

    fn has_reason(&mut self, because: Option<&Spanned<String>>) {
        if let Some(because) = because.filter(|because| because.value.trim().is_empty()) {
            let fault =
                Fault::new(&codes::SYNTAX, "`because` gives no reason", "write the reason, or take `because` out");
            self.complain(fault, because.span);
        }
    }

    fn silence(&mut self, pair: Pair<'_>, systems: &[Spanned<System>]) -> Option<StatementKind> {
        let mut ignore = Ignore { verbs: Vec::new(), targets: Vec::new(), except: Vec::new(), because: None };
        for part in pair.into_inner() {
            match part.as_rule() {
                Rule::verbs => ignore.verbs = self.verbs(part)?,
                Rule::list | Rule::target => {
                    let role = Role::Rule { verbs: &ignore.verbs, systems, allow: false };
                    ignore.targets = target::read(self, part, role);
                }
                Rule::except => ignore.except = self.except(part, &ignore.verbs, systems),
                Rule::because => ignore.because = part.into_inner().next().map(|string| self.text(&string)),
                Rule::comment => suppression::misplaced(self, &part),
                _ => {}
            }
        }
        self.has_reason(ignore.because.as_ref());
        if let Some(verb) = ignore.verbs.iter().find(|verb| matches!(verb.value, Verb::Env | Verb::Mach)) {
            let fault = Fault::new(
                &codes::MISMATCH,
                format!("nothing is told of what is refused under `{}`", verb.value),
                "take the statement out",
            );
            self.complain(fault, verb.span);
        }
        Some(StatementKind::Ignore(ignore))
    }

    fn except(&mut self, pair: Pair<'_>, verbs: &[Spanned<Verb>], systems: &[Spanned<System>]) -> Vec<Target> {
        let mut except = Vec::new();
        for part in pair.into_inner() {
            except = target::read(self, part, Role::Except { verbs, systems });
        }
        target::limit_except(self, &except);
        except
    }

    fn expectation(&mut self, pair: Pair<'_>, systems: &[Spanned<System>]) -> Option<StatementKind> {
        let mut expect = Expect { allow: false, verbs: Vec::new(), targets: Vec::new(), except: Vec::new() };
        for part in pair.into_inner() {
            match part.as_rule() {
                Rule::answer => expect.allow = part.as_str() == "allow",
                Rule::verbs => expect.verbs = self.verbs(part)?,
                Rule::list | Rule::target => {
                    let role = Role::Rule { verbs: &expect.verbs, systems, allow: expect.allow };
                    expect.targets = target::read(self, part, role);
                }
                Rule::except => expect.except = self.except(part, &expect.verbs, systems),
                Rule::comment => suppression::misplaced(self, &part),
                _ => {}
            }
        }
        Some(StatementKind::Expect(expect))
    }

    fn assumption(&mut self, pair: Pair<'_>, systems: &[Spanned<System>]) -> Option<StatementKind> {
        let mut variable = None;
        let mut inside = true;
        let mut targets = Vec::new();
        for part in pair.into_inner() {
            match part.as_rule() {
                Rule::variable => {
                    let name = part.as_str().trim_start_matches('$');
                    if name.ends_with('?') {
                        let fault = Fault::new(
                            &codes::TOKEN,
                            format!("`?` follows `{}`", part.as_str().trim_end_matches('?')),
                            "take it out: an assumption about a variable that is not set says nothing",
                        );
                        let span = self.span(&part);
                        self.complain(fault, span);
                        return None;
                    }
                    variable = Some(self.spanned(&part, name.to_owned()));
                }
                Rule::relation => inside = part.as_str() == "inside",
                Rule::list | Rule::target => {
                    targets = target::read(self, part, Role::Kind { kind: Kind::Path, systems });
                }
                _ => {}
            }
        }
        Some(StatementKind::Assume { variable: variable?, inside, targets })
    }

    fn assignment(&mut self, pair: Pair<'_>) -> Option<StatementKind> {
        let mut name = None;
        let mut value = None;
        for part in pair.into_inner() {
            match part.as_rule() {
                Rule::identifier => name = Some(self.spanned(&part, part.as_str().to_owned())),
                Rule::string => value = Some(self.text(&part)),
                Rule::value => {
                    if let Err(fault) = Token::new(part.as_str()).check() {
                        let span = self.span(&part);
                        self.complain(fault, span);
                        return None;
                    }
                    value = Some(self.text(&part));
                }
                _ => {}
            }
        }
        Some(StatementKind::Set { name: name?, value: value? })
    }

    fn bound(&mut self, pair: Pair<'_>) -> Option<StatementKind> {
        let mut limits = Vec::new();
        for part in pair.into_inner() {
            limits.push(limit::read(self, part)?);
        }
        Some(StatementKind::Limit(limits))
    }
}
