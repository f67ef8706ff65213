//! Calls that change files, open or run them: told of where the policy refuses them, and left to the kernel, which decides
//! afterwards, on what the command has made of its arguments by then. So what is told here is a prediction, and holds nobody.
//!
//! Not told: what fails by itself, as there is nothing there, or something already; what leads into `/proc` and `/dev`, which are
//! the sandbox's own; what is reached by a magic link (`/dev/stdout`).

use super::place::{Found, State, Way};
use super::rules::Held;
use super::task::{CAPABILITIES, Task};
use super::{Broker, Call, int};
use crate::backend::bubblewrap::seccomp::{Act, FILE_CALLS, FileCall, Last, Operand, WRITE_INTENT};
use crate::exec::linux::command::ARCHITECTURE;
use crate::exec::linux::control::{Attempt, Report};
use crate::exec::linux::kernel::with_capabilities;
use crate::sets::path::AbsPath;
use crate::vocabulary::Verb;
use std::collections::HashMap;
use std::os::fd::AsFd;
use std::sync::OnceLock;

/// The longest path, its end included (`PATH_MAX`, linux/limits.h).
const LONGEST: usize = 4096;

/// What a call is, by its number on this machine.
pub fn file_call(number: i64) -> Option<&'static FileCall> {
    static BY_NUMBER: OnceLock<HashMap<i64, &'static FileCall>> = OnceLock::new();
    let numbered = |call: &'static FileCall| Some((i64::from(ARCHITECTURE?.number(call.name)?), call));
    BY_NUMBER.get_or_init(|| FILE_CALLS.iter().filter_map(numbered).collect()).get(&number).copied()
}

/// Whether a call changes something, or opens something for that.
pub fn writes(call: &Call, file_call: &FileCall) -> bool {
    file_call.writes(|argument| int(call.arguments[usize::from(argument)]).cast_unsigned())
}

/// The flags of an open.
#[derive(Clone, Copy)]
pub struct Flags(pub i32);

impl Flags {
    pub fn of(call: &Call, argument: Option<u8>) -> Flags {
        Flags(
            argument.map_or(libc::O_CREAT | libc::O_WRONLY | libc::O_TRUNC, |at| int(call.arguments[usize::from(at)])),
        )
    }

    pub fn has(self, flag: i32) -> bool {
        self.0 & flag == flag
    }

    /// A file without a name.
    pub fn is_temporary(self) -> bool {
        self.has(libc::O_TMPFILE)
    }

    /// Whether what is there already is changed, or may be by who gets it.
    pub fn changes(self) -> bool {
        self.0 & libc::O_ACCMODE != libc::O_RDONLY || self.has(libc::O_TRUNC) || self.is_temporary()
    }

    pub fn writes(self) -> bool {
        self.0.cast_unsigned() & WRITE_INTENT != 0
    }

    pub fn reads(self) -> bool {
        self.0 & libc::O_ACCMODE != libc::O_WRONLY
    }

    pub fn follows(self) -> bool {
        !(self.has(libc::O_NOFOLLOW) || self.has(libc::O_CREAT | libc::O_EXCL))
    }
}

impl Broker {
    /// Tells what the policy refuses of a call.
    pub(super) fn foresee(&self, call: &Call, file_call: &FileCall) {
        let _ = self.try_to_foresee(call, file_call);
    }

    /// `None` where there is nothing to tell, or it cannot be told.
    fn try_to_foresee(&self, call: &Call, file_call: &FileCall) -> Option<()> {
        let flags = if let Act::Open(argument) = file_call.act { Some(Flags::of(call, argument)) } else { None };
        let task = Task::new(call.thread, self.proc.as_fd());
        let way = |operand: &Operand| {
            let path = task.string(call.arguments[usize::from(operand.path)], LONGEST).ok()?;
            // The descriptor itself, of which it was decided when it was opened.
            let directory = operand.directory.map(|at| int(call.arguments[usize::from(at)]));
            if path.is_empty() { None } else { Way::new(&task, directory, &path).ok() }
        };
        let ways = || Ok((way(&file_call.first), file_call.second.as_ref().map(way)));
        let (first, second) = with_capabilities(CAPABILITIES, ways).ok()?;
        let first = first?;
        // What was read was the caller's.
        if !self.listener.waits(call.id) {
            return None;
        }
        let rules = self.rules.get(&self.control)?;
        let first = first.look(&task, follows(call, file_call.first.last, flags), self.proc.as_fd())?;
        let refused = match (file_call.act, flags, second) {
            (Act::Open(_), Some(flags), _) => open(rules, &first, flags),
            (Act::Make, ..) => made(rules, &first),
            (Act::Rename | Act::Link, _, Some(second)) if first.state == State::There => {
                let second = second?.look(&task, false, self.proc.as_fd())?;
                let taken = second.state == State::There && file_call.act == Act::Link;
                let old = refused(rules, &first, Verb::Write);
                old.or_else(|| if taken { None } else { refused_or_hidden(rules, &second) })
            }
            (Act::Run, ..) if first.state == State::There => refused(rules, &first, Verb::Exec),
            (Act::Remove | Act::Change, ..) if first.state == State::There => refused(rules, &first, Verb::Write),
            _ => None,
        };
        let (verb, path) = refused?;
        self.tell(Attempt { verb, process: task.process(), name: task.name(), path, performed: false });
        Some(())
    }

    pub(super) fn tell(&self, attempt: Attempt) {
        self.tell_at_once(&Report::Tried(attempt));
    }
}

type Refused = Option<(Verb, Vec<u8>)>;

fn open(rules: &Held, found: &Found, flags: Flags) -> Refused {
    let write = || match found.state {
        State::There if flags.has(libc::O_CREAT) && flags.has(libc::O_EXCL) => None,
        State::There if !flags.changes() => None,
        State::There => refused(rules, found, Verb::Write),
        _ if flags.has(libc::O_CREAT) => refused_or_hidden(rules, found),
        _ => None,
    };
    let written = if flags.writes() { write() } else { None };
    // What is not there for the command may be there for others.
    written
        .or_else(|| if flags.reads() && !flags.has(libc::O_CREAT) { refused(rules, found, Verb::Read) } else { None })
}

fn made(rules: &Held, found: &Found) -> Refused {
    if found.state == State::There { None } else { refused_or_hidden(rules, found) }
}

/// A new name: one in a directory that is not there fails for that alone, unless the policy hides the directory.
fn refused_or_hidden(rules: &Held, found: &Found) -> Refused {
    let is_hidden = || AbsPath::parse(&found.path).is_ok_and(|path| !rules.may_read(&path));
    if found.state == State::Astray && !is_hidden() { None } else { refused(rules, found, Verb::Write) }
}

fn refused(rules: &Held, found: &Found, verb: Verb) -> Refused {
    let path = AbsPath::parse(&found.path).ok()?;
    let own = [&b"proc"[..], b"dev"];
    if path.segments.first().is_some_and(|first| own.contains(&&**first)) {
        return None;
    }
    let allowed = match verb {
        Verb::Read => rules.may_read(&path),
        Verb::Exec => rules.may_run(&path),
        _ => rules.may_write(&path),
    };
    (!allowed).then(|| (verb, found.path.clone()))
}

fn follows(call: &Call, last: Last, flags: Option<Flags>) -> bool {
    let has = |argument: u8, flag: i32| int(call.arguments[usize::from(argument)]) & flag != 0;
    match last {
        Last::Followed => true,
        Last::Kept => false,
        Last::KeptBy(argument) => !has(argument, libc::AT_SYMLINK_NOFOLLOW),
        Last::FollowedBy(argument) => has(argument, libc::AT_SYMLINK_FOLLOW),
        Last::Opened => flags.is_some_and(Flags::follows),
    }
}
