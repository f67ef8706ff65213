//! Calls that change files, made in the command's place: where the policy has rules about names that are not there yet, which no
//! mount can hold.
//!
//! What is decided is what is done: a path of the command's is looked up, the name that comes out is decided, and the call is made
//! on *that* name, component by component, following no link. Whatever the command makes of its memory, links, directories and
//! descriptors meanwhile, nothing is done under a name that was not decided. All of it happens under one lock, so that nothing
//! made by this process moves in between; opening what is there already does not need it, and may take long.
//!
//! A file system of a program's, or of another machine, may take any time over a look-up. There it is looked up once before the lock
//! is taken, so that whoever hangs there hangs alone; and what is made or removed there is so after the lock was let go: a directory
//! is renamed only where the rules say the same of both names, so that a decision about a name in one holds wherever it is by then. Only
//! a rename keeps the lock.
//!
//! Nothing is opened for a command in another process's `/proc`: this process may look into itself, and the command must not.

mod attributes;
mod names;
mod node;
mod open;
mod socket;
mod syscall;
mod target;

use super::notification::{Answer, Call};
use super::place::Way;
use super::rules::Held;
use super::task::{CAPABILITIES, Task};
use super::{Broker, int};
use crate::backend::bubblewrap::seccomp::{Act, FileCall, Operand};
use crate::event::lock;
use crate::exec::linux::control::Attempt;
use crate::exec::linux::defence::Defence;
use crate::exec::linux::kernel::with_capabilities;
use crate::sets::path::AbsPath;
use crate::vocabulary::Verb;
use nix::errno::Errno;
use std::os::fd::AsFd;
use target::{Named, Target, find};

/// The longest path, its end included (`PATH_MAX`, linux/limits.h).
const LONGEST: usize = 4096;

/// One call, and whose it is.
struct Acting<'b> {
    broker: &'b Broker,
    call: &'b Call,
    task: Task<'b>,
    rules: &'b Held,
}

/// What a call comes to, once it was decided.
type Done = Result<Answer, Errno>;

impl Broker {
    /// Makes a call on paths.
    pub(super) fn perform_file(&self, call: &Call, file_call: &FileCall) -> Done {
        let act = self.begin(call)?;
        match file_call.act {
            Act::Open(argument) => act.open(file_call, argument),
            Act::Make => act.make(file_call),
            Act::Remove => act.remove(file_call),
            Act::Rename => act.rename(file_call),
            Act::Link => act.link(file_call),
            Act::Change => act.change(file_call),
            Act::Run => Ok(Answer::Continue),
        }
    }

    /// Makes a call on a descriptor, or gives a socket its name.
    pub(super) fn perform_other(&self, call: &Call) -> Option<Done> {
        let act = || self.begin(call);
        Some(match call.number {
            libc::SYS_bind => act().and_then(|act| act.bind()),
            libc::SYS_fchmod | libc::SYS_fchown | libc::SYS_fsetxattr | libc::SYS_fremovexattr => {
                act().and_then(|act| act.change_by_descriptor())
            }
            _ => return None,
        })
    }

    fn begin<'b>(&'b self, call: &'b Call) -> Result<Acting<'b>, Errno> {
        let rules = self.rules.get(&self.control).ok_or(Errno::EACCES)?;
        Ok(Acting { broker: self, call, task: Task::new(call.thread, self.proc.as_fd()), rules })
    }
}

impl Acting<'_> {
    fn argument(&self, at: u8) -> u64 {
        self.call.arguments[usize::from(at)]
    }

    fn int(&self, at: u8) -> i32 {
        int(self.argument(at))
    }

    /// Reads of the command's what it takes; afterwards it still was the caller's, or the call is nobody's any more.
    fn read<T>(&self, read: impl FnOnce() -> Result<T, Errno>) -> Result<T, Errno> {
        let read = with_capabilities(CAPABILITIES, read).map_err(|errno| self.broker.unseen(errno, "changing files"));
        if self.broker.listener.waits(self.call.id) { read } else { Err(Errno::ESRCH) }
    }

    fn path(&self, operand: Operand) -> Result<Way, Errno> {
        let path = self.task.string(self.argument(operand.path), LONGEST)?;
        let directory = operand.directory.map(|at| self.int(at));
        if path.is_empty() {
            return Err(Errno::ENOENT);
        }
        Way::new(&self.task, directory, &path)
    }

    /// `EACCES`, and an event, where the policy does not let it be written.
    fn may_write(&self, name: &AbsPath) -> Result<(), Errno> {
        if self.rules.may_write(name) { Ok(()) } else { Err(self.refuse(Verb::Write, name)) }
    }

    fn refuse(&self, verb: Verb, name: &AbsPath) -> Errno {
        if let Some(path) = name.as_bytes() {
            let (process, comm) = (self.task.process(), self.task.name());
            self.broker.tell(Attempt { verb, process, name: comm, path, performed: true });
        }
        Errno::EACCES
    }

    /// Looks a path up while nothing is held, where that may take any time. `ESRCH`: until nobody waited for it any more.
    fn look_ahead(&self, way: &Way, follow: bool) -> Result<(), Errno> {
        if !self.broker.far()?.is_any() {
            return Ok(());
        }
        let proc = self.broker.proc.as_fd();
        let look = || {
            if let Target::Named(named) = find(&self.task, way.try_clone()?, follow, proc)? {
                node::look(&named.directory, &named.last)?;
            }
            Ok(())
        };
        // What is wrong with it is said when it is looked up again.
        let looked = || if look() == Err(Errno::EINTR) { Err(Errno::EINTR) } else { Ok(()) };
        self.broker.take_long(self.call, looked).map(drop).ok_or(Errno::ESRCH)
    }

    /// Lets go of what others wait for, before something is made or removed in a place that may take any time.
    fn unless_far<G>(&self, acting: Option<G>, named: &Named) -> Result<Option<G>, Errno> {
        Ok(if self.broker.far()?.has(named.device) { None } else { acting })
    }

    /// Does what was decided, unless nobody waits for it any more. Without the defence, the kernel does it, with what the command
    /// has made of its arguments by then.
    fn act(&self, act: impl FnOnce() -> Result<(), Errno>) -> Done {
        self.linger();
        if !self.broker.listener.waits(self.call.id) {
            return Ok(Answer::Nobody);
        }
        if !self.broker.has(&Defence::Performed) {
            return Ok(Answer::Continue);
        }
        act().map(|()| Answer::Done)
    }

    /// Keeps whatever this process does from coming in between. A part of the defence, and not there without it.
    fn acting(&self) -> Option<std::sync::MutexGuard<'_, ()>> {
        self.broker.has(&Defence::Performed).then(|| lock(&self.broker.acting))
    }

    /// The moment between a decision and what it is about; for tests it is longer.
    fn linger(&self) {
        const PAUSE: std::time::Duration = std::time::Duration::from_millis(60);
        if !self.broker.has(&Defence::Prompt) {
            std::thread::sleep(PAUSE);
        }
    }
}
