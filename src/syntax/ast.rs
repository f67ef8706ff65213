//! What was written: the syntax tree of one policy file.
//!
//! Nothing here is looked up, expanded against a machine, or judged; that is `resolve`'s work. Braces alone are
//! expanded already (`{a,b}` is two [`Shape`]s of one [`Target`]), since they are a matter of spelling.

use crate::source::Span;
use crate::vocabulary::{Effect, LimitKind, Reach, System, Verb};
use std::net::IpAddr;

/// A value and where it stands.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Spanned<T> {
    pub value: T,
    pub span: Span,
}

/// One file: its statements in order.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct File {
    pub statements: Vec<Statement>,
}

/// One statement, with the `# lint: allow(…)` comments that stand directly above it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Statement {
    pub kind: StatementKind,
    pub span: Span,
    pub suppressions: Vec<Suppression>,
}

/// `# lint: allow(CODE) REASON`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Suppression {
    pub code: Spanned<String>,
    pub reason: String,
    pub span: Span,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum StatementKind {
    /// `srt 1`
    Version(Spanned<u32>),
    /// `use std/NAME`: the name after `std/`.
    UseStd(Spanned<String>),
    /// `use "PATH"`
    UsePath(Spanned<String>),
    /// `let NAME = …`
    Let {
        name: Spanned<String>,
        value: LetValue,
    },
    /// `default read|env allow|deny`
    Default {
        subject: Spanned<DefaultSubject>,
        allow: bool,
    },
    Rule(Rule),
    /// `set NAME=VALUE`
    Set {
        name: Spanned<String>,
        value: Spanned<String>,
    },
    Limit(Vec<Limit>),
    /// `on linux, macos { … }`
    On {
        systems: Vec<Spanned<System>>,
        body: Vec<Statement>,
    },
    /// `within "PATH"`
    Within(Spanned<String>),
    /// `expect allow|deny VERBS TARGETS [except TARGETS]`
    Expect(Expect),
    /// `ignore VERBS TARGETS [except TARGETS] [because "TEXT"]`
    Ignore(Ignore),
    /// `assume $X inside|outside TARGETS`
    Assume {
        variable: Spanned<String>,
        inside: bool,
        targets: Vec<Target>,
    },
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum LetValue {
    /// One target or a list of them; their kind is known when a rule uses them, so they hold no shapes yet.
    Targets(Vec<Target>),
    /// `lines("FILE")`
    Lines(Spanned<String>),
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum DefaultSubject {
    Read,
    Env,
}

/// `EFFECT VERBS TARGETS [except TARGETS] [because "TEXT"]`
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Rule {
    pub effect: Spanned<Effect>,
    /// At least one; all taking targets of one kind.
    pub verbs: Vec<Spanned<Verb>>,
    pub targets: Vec<Target>,
    pub except: Vec<Target>,
    pub because: Option<Spanned<String>>,
}

/// The part of an `expect` statement after the keyword.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Expect {
    pub allow: bool,
    pub verbs: Vec<Spanned<Verb>>,
    pub targets: Vec<Target>,
    pub except: Vec<Target>,
}

/// The part of an `ignore` statement after the keyword.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Ignore {
    pub verbs: Vec<Spanned<Verb>>,
    pub targets: Vec<Target>,
    pub except: Vec<Target>,
    pub because: Option<Spanned<String>>,
}

/// `memory 4GiB` and the like, in the unit of its kind.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Limit {
    pub kind: Spanned<LimitKind>,
    /// Bytes for `memory` and `filesize`, seconds for `cpu`, milliseconds for `time`, else a count.
    pub value: Spanned<u64>,
}

/// One target as written, and what it spells.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Target {
    pub span: Span,
    /// The token without quotes, escapes kept; with `exact`/`below` before it if they stand there, and ` or ` between the
    /// tokens of `$env.X or TARGET`.
    pub text: String,
    /// One for each expansion of its braces. Empty in a `let`, whose kind is not known: see [`super::shapes`].
    pub shapes: Vec<Shape>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Shape {
    Path(PathShape),
    Host(HostShape),
    Address(AddressShape),
    /// The name of an environment variable or a mach service.
    Name(Vec<Piece>),
    /// `$NAME` with nothing but ports or `?`/`or` after it, in a place where it may name a list of targets, a host or a
    /// path. `$NAME/…` is a [`PathShape`].
    Variable(VariableShape),
    /// `@NAME`, an abstract unix socket: reserved.
    Abstract(String),
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PathShape {
    pub reach: Reach,
    pub start: Start,
    pub segments: Vec<Segment>,
}

/// What a path starts with.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Start {
    /// `/`; `**/x` is this with [`Segment::AnyDepth`] first.
    Root,
    /// `~`
    Home,
    Variable(Variable),
    /// `X:/`, upper case.
    Drive(char),
}

/// `$NAME`, `$env.NAME`, `$env.NAME?`, `$env.NAME or TARGET`
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Variable {
    /// Without `$`: `WORKSPACE`, `llm`, `env.SSH_AUTH_SOCK`.
    pub name: String,
    /// `?`: an allow without a value is dropped.
    pub optional: bool,
    /// `or TARGET`
    pub fallback: Option<Box<Shape>>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct VariableShape {
    pub variable: Variable,
    pub reach: Reach,
    pub ports: Option<Ports>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Segment {
    /// `**`
    AnyDepth,
    Pieces(Vec<Piece>),
}

/// A part of a segment, a host label or a name.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Piece {
    /// Characters as they are, escapes taken out; never empty, never two in a row.
    Text(String),
    /// `*`
    AnyRun,
    /// `?`
    AnyChar,
    /// `[a-z]`, `[!a-z]`; single characters are ranges of one.
    Class { negated: bool, ranges: Vec<(char, char)> },
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HostShape {
    pub host: HostPattern,
    pub ports: Option<Ports>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum HostPattern {
    /// `*` alone: every name.
    Any,
    /// Labels as written (not yet in A-label form), the final dot dropped.
    Labels {
        /// `*.` stood before them: every name below, not the apex.
        below: bool,
        labels: Vec<Vec<Piece>>,
    },
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AddressShape {
    pub address: IpAddr,
    /// 32 or 128 for a single address.
    pub prefix: u8,
    pub ports: Option<Ports>,
}

/// `:22`, `:{80,443}`, `:8000-8999`, `:*`, with `/udp` after them or not.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Ports {
    /// Inclusive ranges as written; `:*` is 1–65535.
    pub ranges: Vec<(u16, u16)>,
    pub udp: bool,
    pub span: Span,
}
