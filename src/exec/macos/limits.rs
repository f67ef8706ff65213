//! The limits of a policy that macOS can hold: those that setrlimit(2) holds for each process, and the wall clock's.
//!
//! Memory and the number of processes it holds for a user as a whole, or not at all: a policy that limits these is not run.

use super::super::launch::Error;
use crate::backend::limits::Limits;
use nix::errno::Errno;
use nix::sys::resource::{Resource, getrlimit, setrlimit};
use std::io;

/// What is set in the process that becomes the command.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Held {
    files: Option<u64>,
    filesize: Option<u64>,
    cpu: Option<u64>,
}

impl Held {
    /// # Errors
    /// For a limit that cannot be held.
    pub fn of(limits: &Limits) -> Result<Self, Error> {
        for (name, limit) in [("memory", limits.memory), ("processes", limits.processes)] {
            if limit.is_some() {
                let why = "macOS has no means to hold it for one command; leave it out `on macos`";
                let source = io::Error::new(io::ErrorKind::Unsupported, why);
                return Err(Error::Setup { act: format!("hold `limit {name}`"), source });
            }
        }
        Ok(Self { files: limits.files, filesize: limits.filesize, cpu: limits.cpu })
    }

    /// Sets them for this process; nothing here allocates.
    ///
    /// # Errors
    /// Whatever setrlimit(2) fails with.
    pub fn set(self) -> Result<(), Errno> {
        let all = [
            (Resource::RLIMIT_NOFILE, self.files),
            (Resource::RLIMIT_FSIZE, self.filesize),
            (Resource::RLIMIT_CPU, self.cpu),
            // Of a command that ends badly nothing is written that was in its memory.
            (Resource::RLIMIT_CORE, Some(0)),
        ];
        for (resource, value) in all {
            let Some(value) = value else { continue };
            let (_, hard) = getrlimit(resource)?;
            let value = value.min(hard);
            setrlimit(resource, value, value)?;
        }
        Ok(())
    }
}

/// How many descriptors this process may have.
pub fn descriptors() -> u64 {
    getrlimit(Resource::RLIMIT_NOFILE).map_or(256, |(soft, _)| soft)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn what_cannot_be_held_is_not_run() {
        let refused = Held::of(&Limits { memory: Some(1), ..Limits::default() }).unwrap_err();
        assert!(refused.to_string().starts_with("cannot hold `limit memory`: macOS has no means"), "{refused}");
        assert!(Held::of(&Limits { processes: Some(1), ..Limits::default() }).is_err());
        let limits = Limits { files: Some(64), time: Some(1000), ..Limits::default() };
        assert_eq!(Held::of(&limits).unwrap(), Held { files: Some(64), ..Held::default() });
    }
}
