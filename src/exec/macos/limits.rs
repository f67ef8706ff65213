//! The limits of a policy that macOS can hold: those that setrlimit(2) holds for each process, and the wall clock's.
//!
//! Memory and the number of processes it holds for a user as a whole, or not at all: that is a gap, which was accepted.

use crate::backend::limits::Limits;
use nix::errno::Errno;
use nix::sys::resource::{Resource, getrlimit, setrlimit};

/// What is set in the process that becomes the command.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Held {
    files: Option<u64>,
    filesize: Option<u64>,
    cpu: Option<u64>,
}

impl Held {
    pub fn of(limits: &Limits) -> Self {
        Self { files: limits.files, filesize: limits.filesize, cpu: limits.cpu }
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
    use super::*;

    #[test]
    fn what_a_process_can_be_held_to_is_taken() {
        let limits = Limits { memory: Some(1), files: Some(64), time: Some(1000), ..Limits::default() };
        assert_eq!(Held::of(&limits), Held { files: Some(64), ..Held::default() });
    }
}
