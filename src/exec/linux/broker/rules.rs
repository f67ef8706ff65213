//! The rules about files, by which the broker decides: asked of the supervisor when the first call needs them, so that a command
//! which changes no file does not wait for them.

use crate::event::lock;
use crate::exec::linux::control::{Control, Report};
use crate::exec::linux::wire;
use crate::ir::{Access, Decider, FileRules, Policy};
use crate::sets::path::AbsPath;
use crate::vocabulary::Verb;
use std::fs::File;
use std::io::Read;
use std::os::fd::OwnedFd;
use std::sync::{Condvar, Mutex, OnceLock, PoisonError};

/// Rules that are on their way, or here.
#[derive(Default)]
pub struct Rules {
    held: OnceLock<Option<Held>>,
    asked: Mutex<bool>,
    came: Condvar,
}

/// What decides. The policy stays until the process ends.
pub struct Held(Mutex<Decider<'static>>);

impl Rules {
    /// Waits until they are here. `None`: there are none.
    pub fn get(&self, control: &Control) -> Option<&Held> {
        if self.held.get().is_none() {
            let mut asked = lock(&self.asked);
            if !std::mem::replace(&mut *asked, true) && control.report(&Report::WantsRules).is_err() {
                let _ = self.held.set(None);
            }
            while self.held.get().is_none() {
                asked = self.came.wait(asked).unwrap_or_else(PoisonError::into_inner);
            }
        }
        self.held.get()?.as_ref()
    }

    /// What the supervisor has handed over.
    pub fn take(&self, file: Option<OwnedFd>) {
        let held = file.and_then(read);
        // Not between somebody's look and their wait.
        let _asked = lock(&self.asked);
        let _ = self.held.set(held);
        self.came.notify_all();
    }
}

fn read(file: OwnedFd) -> Option<Held> {
    let mut text = Vec::new();
    File::from(file).read_to_end(&mut text).ok()?;
    let policy: Policy = wire::read::<FileRules>(&text)?.into();
    Some(Held(Mutex::new(Decider::of_grants(Box::leak(Box::new(policy))))))
}

impl Held {
    pub fn may_write(&self, path: &AbsPath) -> bool {
        self.allows(&Access::Write(path.clone()))
    }

    pub fn may_read(&self, path: &AbsPath) -> bool {
        self.allows(&Access::Read(path.clone()))
    }

    pub fn may_run(&self, path: &AbsPath) -> bool {
        self.allows(&Access::Exec(path.clone()))
    }

    /// The first that a new name permits of what the old one denies: reading, or running.
    pub fn widened(&self, old: &AbsPath, new: &AbsPath) -> Option<Verb> {
        let widens =
            |access: fn(AbsPath) -> Access| !self.allows(&access(old.clone())) && self.allows(&access(new.clone()));
        if widens(Access::Read) { Some(Verb::Read) } else { widens(Access::Exec).then_some(Verb::Exec) }
    }

    /// Whether the rules say the same at and below two names.
    pub fn says_the_same(&self, one: &AbsPath, other: &AbsPath) -> bool {
        lock(&self.0).says_the_same(one, other)
    }

    fn allows(&self, access: &Access) -> bool {
        lock(&self.0).decide(access).allowed
    }
}
