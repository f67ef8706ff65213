//! Who holds the limits of all processes together: a control group where one can be had, else pid 1 by looking. Pid 1 waits for the answer
//! before the command runs.

use super::Supervisor;
use super::first::First;
use crate::exec::linux::cgroup::{self, Group, Lack};
use crate::exec::linux::control::Word;
use crate::host;

/// Who it is.
pub(super) enum Holder {
    /// Pid 1 has not been told.
    Unknown,
    Looks,
    Group(#[allow(dead_code)] Group),
}

impl Supervisor<'_> {
    /// While the sandbox is still being made, if its processes are there already: to move one takes the kernel a while.
    pub(super) fn hold_early(&mut self) {
        let first = First::find(self.started.pid).filter(|first| first.pid == self.started.pid);
        if self.plan.limits.of_tree() && first.is_some_and(|first| first.command().is_some()) {
            self.hold();
        }
    }

    /// Whatever comes of it, pid 1 is told, once.
    pub(super) fn hold(&mut self) {
        if !self.plan.limits.of_tree() || !matches!(self.holder, Holder::Unknown) {
            return;
        }
        self.holder = Holder::Looks;
        let mut files = None;
        match self.group() {
            Ok(Some(mut group)) => {
                files = Some(group.take_files());
                if let Some(explain) = self.decides.explain {
                    explain(&format!("limits of all processes together are held by {}", group.says()));
                }
                self.holder = Holder::Group(group);
            }
            Ok(None) => (),
            Err(lack) => (self.decides.announce)(&format!(
                "limits of all processes together are held by looking at them a few times a second: {lack}; see `srt doctor`"
            )),
        }
        let _ = self.started.control.say(Word::Held(files));
    }

    /// `None` where none is wanted.
    fn group(&self) -> Result<Option<Group>, Lack> {
        if !self.decides.groups {
            return Ok(None);
        }
        let first = First::find(self.started.pid);
        let found = first.and_then(|first| Some((first.command()?, first.pid)));
        let (command, first) = found.ok_or_else(|| Lack::new("the command's process cannot be found in `/proc`"))?;
        let mounts = host::real::mounts().map_err(|error| Lack::new(error.to_string()))?;
        cgroup::hold(command, first, &self.plan.limits, &mounts, &self.plan.mounts).map(Some)
    }
}
