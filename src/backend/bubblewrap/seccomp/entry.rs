//! One line of the filter: a call, what is asked of its arguments, and what becomes of it.
//!
//! Which lines there are is in `entries` and `files`; how they become a program, in `assemble`.

use std::fmt;

/// One line of the filter. The entries of one call are tried in order; the first whose tests all hold decides. A call
/// that no entry decides is permitted.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Entry {
    pub call: &'static str,
    /// All must hold; none is "always".
    pub tests: Vec<Test>,
    pub action: Action,
    /// Why, in half a sentence.
    pub reason: &'static str,
}

/// `argument & mask` is, or is not, one of `values`.
///
/// Only the low 32 bits of an argument are looked at. Every argument tested here is an `int` or a flag word that the
/// kernel itself cuts to 32 bits; a filter that compared all 64 would be passed by setting a high bit.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Test {
    /// Which argument, from 0.
    pub argument: u8,
    pub mask: u32,
    pub values: Vec<u32>,
    /// `false`: must be none of them.
    pub among: bool,
}

/// What becomes of a call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Action {
    Allow,
    Fail(Errno),
    /// Whoever listens to the filter answers in its place; ENOSYS where nobody does.
    Notify,
    /// The whole process, with SIGSYS.
    Kill,
}

/// The error numbers the filter answers with (asm-generic/errno.h; the same on both architectures).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Errno {
    /// `EPERM`
    NotPermitted = 1,
    /// `ENOSYS`: libraries fall back to an older call.
    NoSuchCall = 38,
    /// `EPROTONOSUPPORT`
    NoSuchProtocol = 93,
    /// `EAFNOSUPPORT`: libraries try another family.
    NoSuchFamily = 97,
}

impl fmt::Display for Action {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Action::Allow => "allow",
            Action::Notify => "notify",
            Action::Kill => "kill",
            Action::Fail(Errno::NotPermitted) => "EPERM",
            Action::Fail(Errno::NoSuchCall) => "ENOSYS",
            Action::Fail(Errno::NoSuchProtocol) => "EPROTONOSUPPORT",
            Action::Fail(Errno::NoSuchFamily) => "EAFNOSUPPORT",
        })
    }
}

impl fmt::Display for Test {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "arg{}", self.argument)?;
        if self.mask != u32::MAX {
            write!(f, " & {:#x}", self.mask)?;
        }
        f.write_str(if self.among { " in" } else { " not in" })?;
        for (at, value) in self.values.iter().enumerate() {
            write!(f, "{} {value:#x}", if at == 0 { "" } else { "," })?;
        }
        Ok(())
    }
}

/// `socketpair (arg0 in 0x1, arg1 & 0xf in 0x1, 0x5): allow`
impl fmt::Display for Entry {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.call)?;
        if !self.tests.is_empty() {
            let tests: Vec<String> = self.tests.iter().map(ToString::to_string).collect();
            write!(f, " ({})", tests.join(" and "))?;
        }
        write!(f, ": {}", self.action)
    }
}
