//! The closed word lists of the language, shared by what was written (`syntax`) and what it means (`ir`).
//!
//! Only words: no meaning is decided here.

/// Whether a text can be the name of a variable of an environment (POSIX.1-2024, 8.1: letters, digits and `_`, no digit first).
pub fn is_variable(name: &str) -> bool {
    let plain = |c: char| c.is_ascii_alphanumeric() || c == '_';
    !name.is_empty() && name.chars().all(plain) && !name.starts_with(|c: char| c.is_ascii_digit())
}

/// What a rule does. `deny` may be opened again by a more specific `allow`; `forbid` by nothing.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Effect {
    Allow,
    Deny,
    Forbid,
}

/// The operation class a rule governs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Verb {
    Read,
    Write,
    Exec,
    Connect,
    Listen,
    Socket,
    Env,
    Mach,
}

/// What sort of target a verb takes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// `read`, `write`, `exec`, `socket`
    Path,
    /// `connect`: a domain or an address
    Peer,
    /// `listen`: an address
    Address,
    /// `env`
    Variable,
    /// `mach`
    Service,
}

/// A system a policy is compiled for, as `on` blocks name it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum System {
    Linux,
    Macos,
    Windows,
}

/// What a `limit` bounds.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum LimitKind {
    /// Bytes.
    Memory,
    /// How many at once.
    Processes,
    /// How many open at once, a process.
    Files,
    /// Bytes of one file.
    Filesize,
    /// Seconds of processor time, a process.
    Cpu,
    /// Milliseconds on the wall clock, the whole run.
    Time,
}

/// How much of the tree at a path is meant.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, serde::Serialize, serde::Deserialize)]
pub enum Reach {
    /// The node and everything below it.
    Tree,
    /// `exact`: the node alone.
    Exact,
    /// `below`: what follows a node of the path by one or more segments.
    Below,
}

/// The variables that are built in, without `$`. They stay symbolic until a machine gives them a value; so do those
/// that start with `env.`.
pub const BUILT_IN: &[&str] = &["HOME", "WORKSPACE", "TMP", "GIT_COMMON_DIR", "CONFIG", "CACHE", "DATA", "RUNTIME"];

/// Gives each variant its word, both ways.
macro_rules! words {
    ($type:ident: $($variant:ident = $word:literal),+) => {
        impl $type {
            /// Every value, in the order the book lists them.
            pub const ALL: &'static [$type] = &[$($type::$variant),+];

            /// The word in the language.
            pub fn word(self) -> &'static str {
                match self { $($type::$variant => $word),+ }
            }

            /// The value a word stands for.
            pub fn from_word(word: &str) -> Option<Self> {
                match word { $($word => Some($type::$variant),)+ _ => None }
            }
        }

        impl std::fmt::Display for $type {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.write_str(self.word())
            }
        }
    };
}

words!(Effect: Allow = "allow", Deny = "deny", Forbid = "forbid");
words!(Verb: Read = "read", Write = "write", Exec = "exec", Connect = "connect", Listen = "listen", Socket = "socket",
       Env = "env", Mach = "mach");
words!(System: Linux = "linux", Macos = "macos", Windows = "windows");
words!(LimitKind: Memory = "memory", Processes = "processes", Files = "files", Filesize = "filesize", Cpu = "cpu",
       Time = "time");

impl Verb {
    /// Whether it is something that is done to a file.
    pub fn is_about_files(self) -> bool {
        matches!(self, Verb::Read | Verb::Write | Verb::Exec)
    }

    /// The sort of target the verb takes.
    pub fn kind(self) -> Kind {
        match self {
            Verb::Read | Verb::Write | Verb::Exec | Verb::Socket => Kind::Path,
            Verb::Connect => Kind::Peer,
            Verb::Listen => Kind::Address,
            Verb::Env => Kind::Variable,
            Verb::Mach => Kind::Service,
        }
    }
}

impl Kind {
    /// What a message says was expected.
    pub fn expected(self) -> &'static str {
        match self {
            Kind::Path => "a path",
            Kind::Peer => "a domain or an address",
            Kind::Address => "an address",
            Kind::Variable => "the name of an environment variable",
            Kind::Service => "the name of a mach service",
        }
    }
}
