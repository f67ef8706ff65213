//! What is said about a policy: a [`Diagnostic`] with its [`Code`], its place, and what to do.
//!
//! Every room declares the codes it raises with `codes!`; [`crate::codes()`] lists them all. Rendering for
//! people is in `render`, for machines in `json`. This module decides nothing about policies.

mod json;
mod nearest;
mod plain;
mod render;

pub use json::to_json;
pub use nearest::nearest;
pub use plain::plain;
pub use render::{Style, render};

use crate::source::Span;

/// How much a finding matters. Errors stop a compile; warnings and notes don't.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, serde::Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Level {
    Note,
    Warning,
    Error,
}

impl Level {
    /// The word for it.
    pub fn word(self) -> &'static str {
        match self {
            Level::Note => "note",
            Level::Warning => "warning",
            Level::Error => "error",
        }
    }
}

/// A kind of finding: its name, the level it has unless told otherwise, and its page.
#[derive(Debug)]
pub struct Code {
    /// Kebab-case; reads well after `allow`.
    pub name: &'static str,
    pub level: Level,
    /// The page, in Markdown, from the doc comment of its declaration.
    pub page: &'static str,
}

impl PartialEq for Code {
    fn eq(&self, other: &Self) -> bool {
        self.name == other.name
    }
}
impl Eq for Code {}

/// A span with a few words on it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Label {
    pub span: Span,
    pub text: String,
}

/// A remedy that needs no thought: with it the finding is gone, and what was meant is still said. What it comes to in the text
/// is `crate::fix`'s to say.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Fix {
    /// To write `by` instead of `was`, where that stands in the span once.
    Replace { span: Span, was: String, by: String },
    /// To take out what stands there: a comment, a target of a rule, the name of a `let`; with it the statement, where nothing
    /// else is left of that.
    Remove(Span),
}

/// One finding.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Diagnostic {
    pub code: &'static Code,
    pub level: Level,
    /// One lower-case sentence without a full stop; the user's words in backticks.
    pub message: String,
    /// The first label is where the finding is; the others explain it.
    pub labels: Vec<Label>,
    /// What to do, in the imperative.
    pub help: Option<String>,
    /// The shortest access that shows it, where there is one.
    pub witness: Option<String>,
    /// The remedy, where it is a mechanical one.
    pub fix: Option<Fix>,
}

impl Diagnostic {
    /// A finding of `code` at the level the code has by itself.
    pub fn new(code: &'static Code, message: impl Into<String>) -> Self {
        Self {
            code,
            level: code.level,
            message: message.into(),
            labels: Vec::new(),
            help: None,
            witness: None,
            fix: None,
        }
    }

    /// Adds a place; the first one added is where the finding is.
    #[must_use]
    pub fn label(mut self, span: Span, text: impl Into<String>) -> Self {
        self.labels.push(Label { span, text: text.into() });
        self
    }

    /// Says what to do.
    #[must_use]
    pub fn help(mut self, help: impl Into<String>) -> Self {
        self.help = Some(help.into());
        self
    }

    /// Names the access that shows the finding.
    #[must_use]
    pub fn witness(mut self, witness: impl Into<String>) -> Self {
        self.witness = Some(witness.into());
        self
    }

    /// Gives the remedy that needs no thought.
    #[must_use]
    pub fn fix(mut self, fix: impl Into<Option<Fix>>) -> Self {
        self.fix = fix.into();
        self
    }

    /// The message, with what to do and the access that shows it: for whatever has one text for all.
    pub fn whole_text(&self) -> String {
        let mut text = self.message.clone();
        if let Some(help) = &self.help {
            text.push_str("\nhelp: ");
            text.push_str(help);
        }
        if let Some(witness) = &self.witness {
            text.push_str("\nfor example: ");
            text.push_str(witness);
        }
        text
    }

    /// Where the finding is, if it has a place.
    pub fn span(&self) -> Option<Span> {
        self.labels.first().map(|label| label.span)
    }
}

/// Whether any of these stops a compile.
pub fn any_error(diagnostics: &[Diagnostic]) -> bool {
    diagnostics.iter().any(|d| d.level == Level::Error)
}

/// Declares codes, one static each, and `CODES`, the list of them; a doc comment is the code's page.
///
/// ```ignore
/// codes! {
///     /// # `dead-rule`
///     ///
///     /// ## What it says
///     /// …
///     pub DEAD_RULE = "dead-rule", Warning;
/// }
/// ```
macro_rules! codes {
    ($($(#[doc = $doc:literal])+ pub $ident:ident = $name:literal, $level:ident;)+) => {
        $(
            $(#[doc = $doc])+
            pub static $ident: $crate::diagnostic::Code = $crate::diagnostic::Code {
                name: $name,
                level: $crate::diagnostic::Level::$level,
                page: concat!($($doc, "\n"),+),
            };
        )+
        /// The codes declared here.
        pub static CODES: &[&$crate::diagnostic::Code] = &[$(&$ident),+];
    };
}
pub(crate) use codes;
