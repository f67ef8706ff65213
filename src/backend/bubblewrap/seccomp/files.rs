//! The system calls by which a command changes files, or opens them, by a path: which argument is what. The filter notifies of
//! these; whoever answers reads the arguments by the same table.
//!
//! Calls on descriptors alone are not here: what they may do was decided when the descriptor was opened.

use super::Table;
use super::entry::{Action, Entry, Errno, Test};

/// Which calls about files: those that are notified of, or made by whoever listens.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default, serde::Serialize, serde::Deserialize)]
pub enum Watch {
    #[default]
    Nothing,
    /// Those that change something, or open for writing.
    Writes,
    /// The same, and all that open.
    Opens,
}

/// One call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FileCall {
    pub name: &'static str,
    pub act: Act,
    pub first: Operand,
    /// The new name, of those that have two.
    pub second: Option<Operand>,
}

impl FileCall {
    /// Whether it changes something, or is to open something for writing; of an open, its flags are this.
    pub fn writes(&self, flags: impl FnOnce(u8) -> u32) -> bool {
        match self.act {
            Act::Open(Some(argument)) => flags(argument) & WRITE_INTENT != 0,
            Act::Run => false,
            _ => true,
        }
    }
}

/// What it does to its operands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Act {
    /// `open(2)`, with its flags in this argument; without one, those of `creat(2)`.
    Open(Option<u8>),
    /// Makes a node, and fails where there is one.
    Make,
    Remove,
    /// Changes what is there: its length, mode, owner, times, attributes.
    Change,
    Rename,
    Link,
    /// Runs what is there. The kernel does it, whoever is told.
    Run,
}

/// Where a path is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Operand {
    /// The argument that is the descriptor of the directory it starts at; the working directory without one.
    pub directory: Option<u8>,
    /// The argument that points to it.
    pub path: u8,
    pub last: Last,
}

/// What becomes of a link in the last place of a path.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Last {
    Followed,
    Kept,
    /// Kept if this argument has `AT_SYMLINK_NOFOLLOW`.
    KeptBy(u8),
    /// Followed if this argument has `AT_SYMLINK_FOLLOW`.
    FollowedBy(u8),
    /// As the flags of the open say.
    Opened,
}

const fn at(directory: u8, path: u8, last: Last) -> Operand {
    Operand { directory: Some(directory), path, last }
}

const fn here(path: u8, last: Last) -> Operand {
    Operand { directory: None, path, last }
}

const fn one(name: &'static str, act: Act, first: Operand) -> FileCall {
    FileCall { name, act, first, second: None }
}

const fn two(name: &'static str, act: Act, first: Operand, second: Operand) -> FileCall {
    FileCall { name, act, first, second: Some(second) }
}

/// Those with arguments that a filter tests first, by how often programs make them.
pub static FILE_CALLS: &[FileCall] = {
    use Act::{Change, Link, Make, Open, Remove, Rename, Run};
    use Last::{Followed, FollowedBy, Kept, KeptBy, Opened};
    &[
        one("openat", Open(Some(2)), at(0, 1, Opened)),
        one("open", Open(Some(1)), here(0, Opened)),
        one("creat", Open(None), here(0, Opened)),
        one("mkdir", Make, here(0, Kept)),
        one("mkdirat", Make, at(0, 1, Kept)),
        one("mknod", Make, here(0, Kept)),
        one("mknodat", Make, at(0, 1, Kept)),
        one("symlink", Make, here(1, Kept)),
        one("symlinkat", Make, at(1, 2, Kept)),
        one("unlink", Remove, here(0, Kept)),
        one("unlinkat", Remove, at(0, 1, Kept)),
        one("rmdir", Remove, here(0, Kept)),
        two("rename", Rename, here(0, Kept), here(1, Kept)),
        two("renameat", Rename, at(0, 1, Kept), at(2, 3, Kept)),
        two("renameat2", Rename, at(0, 1, Kept), at(2, 3, Kept)),
        two("link", Link, here(0, Kept), here(1, Kept)),
        two("linkat", Link, at(0, 1, FollowedBy(4)), at(2, 3, Kept)),
        one("truncate", Change, here(0, Followed)),
        one("chmod", Change, here(0, Followed)),
        one("fchmodat", Change, at(0, 1, Followed)),
        one("fchmodat2", Change, at(0, 1, KeptBy(3))),
        one("chown", Change, here(0, Followed)),
        one("lchown", Change, here(0, Kept)),
        one("fchownat", Change, at(0, 1, KeptBy(4))),
        one("utime", Change, here(0, Followed)),
        one("utimes", Change, here(0, Followed)),
        one("futimesat", Change, at(0, 1, Followed)),
        one("utimensat", Change, at(0, 1, KeptBy(3))),
        one("setxattr", Change, here(0, Followed)),
        one("lsetxattr", Change, here(0, Kept)),
        one("setxattrat", Change, at(0, 1, KeptBy(2))),
        one("removexattr", Change, here(0, Followed)),
        one("lremovexattr", Change, here(0, Kept)),
        one("removexattrat", Change, at(0, 1, KeptBy(2))),
        one("file_setattr", Change, at(0, 1, KeptBy(4))),
        one("execve", Run, here(0, Followed)),
        one("execveat", Run, at(0, 1, KeptBy(4))),
    ]
};

// asm-generic/fcntl.h; the same on both architectures.
const ACCESS_MODE: u32 = 0o3;
const CREATE: u32 = 0o100;
const TRUNCATE: u32 = 0o1000;
const TEMPORARY: u32 = 0o20_000_000;
const PLACE: u32 = 0o10_000_000;

/// Any of these bits in the flags of an open is the wish to change something.
pub const WRITE_INTENT: u32 = ACCESS_MODE | CREATE | TRUNCATE | TEMPORARY;

/// The calls on descriptors that change what a rule may deny by its name: made by whoever listens, where files are.
const BY_DESCRIPTOR: [&str; 4] = ["fchmod", "fchown", "fsetxattr", "fremovexattr"];

/// Newer forms of others, which programs do without: their operands are in structures.
const NEWER: [&str; 3] = ["setxattrat", "removexattrat", "file_setattr"];

pub(super) fn watched(list: &mut Vec<Entry>, table: &Table) {
    let told = table.watch.max(table.performed);
    let performed = table.performed != Watch::Nothing;
    let mut push = |call, tests, action, reason| list.push(Entry { call, tests, action, reason });
    let is_wanted = |call: &&FileCall| if call.act == Act::Run { table.runs } else { told != Watch::Nothing };
    for call in FILE_CALLS.iter().filter(is_wanted) {
        let flags = |argument, mask, among| vec![Test { argument, mask, values: vec![0], among }];
        let tests = match call.act {
            Act::Open(Some(argument)) => {
                push(call.name, flags(argument, PLACE, false), Action::Allow, "O_PATH opens nothing (open(2))");
                if told == Watch::Opens { Vec::new() } else { flags(argument, WRITE_INTENT, false) }
            }
            _ => Vec::new(),
        };
        if !performed || call.act == Act::Run {
            push(call.name, tests, Action::Notify, "told where the policy refuses it; the kernel decides");
        } else if NEWER.contains(&call.name) {
            push(
                call.name,
                tests,
                Action::Fail(Errno::NoSuchCall),
                "its operands are in memory; older calls do the same",
            );
        } else {
            push(call.name, tests, Action::Notify, "its paths are in memory: made by srt, or refused");
        }
    }
    if performed {
        push("bind", Vec::new(), Action::Notify, "makes the file of a unix socket: made by srt, or refused");
        for call in BY_DESCRIPTOR {
            push(
                call,
                Vec::new(),
                Action::Notify,
                "what a descriptor is, is decided when this is done: made by srt, or refused",
            );
        }
    }
}
