//! Policies → what a system enforces. Pure: lowering reads no file, and every target is lowered on every system.

pub mod bubblewrap;
mod codes;
pub mod gap;
pub mod limits;
pub mod seatbelt;
pub mod wfp;

use crate::diagnostic::{Code, Level};
use crate::vocabulary::System;
use gap::{Direction, Kind};

pub use codes::{GRANT_WITHOUT_READ, LIMIT_NOT_HELD, PINNED_DIRECTORY, PROXY_ONLY, UNENFORCEABLE};

/// What the back ends say of policies.
pub static CODES: &[&[&Code]] = &[codes::CODES, bubblewrap::CODES, seatbelt::CODES, wfp::CODES];

/// What carries a policy out on one machine.
#[derive(Debug)]
pub enum Enforced {
    Bubblewrap(bubblewrap::Plan),
    Seatbelt(seatbelt::Profile),
    Wfp(wfp::Texts),
}

/// What enforces a policy.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Target {
    /// Linux: mounts, a network namespace and seccomp, as bubblewrap's arguments or without it.
    Bubblewrap,
    /// macOS: a profile for `sandbox-exec`.
    Seatbelt,
    /// Windows: filters of the Windows Filtering Platform, and access lists of files.
    Wfp,
}

impl Target {
    pub const ALL: [Self; 3] = [Self::Bubblewrap, Self::Seatbelt, Self::Wfp];

    /// What enforces policies on a system.
    pub fn of(system: System) -> Self {
        match system {
            System::Linux => Self::Bubblewrap,
            System::Macos => Self::Seatbelt,
            System::Windows => Self::Wfp,
        }
    }

    /// The system it is a part of.
    pub fn system(self) -> System {
        match self {
            Self::Bubblewrap => System::Linux,
            Self::Seatbelt => System::Macos,
            Self::Wfp => System::Windows,
        }
    }

    /// All that may differ between a policy and what is enforced: there are no other gaps.
    pub fn gaps(self) -> &'static [Kind] {
        match self {
            Self::Bubblewrap => bubblewrap::GAPS,
            Self::Seatbelt => seatbelt::GAPS,
            Self::Wfp => wfp::GAPS,
        }
    }

    /// The looser gaps that stop a compile: the only errors that a comment may accept, since what is enforced is what the policy
    /// says but for them.
    pub fn acceptable(self) -> Vec<&'static Code> {
        let looser = |kind: &&Kind| kind.direction == Direction::Looser && kind.code.level == Level::Error;
        self.gaps().iter().filter(looser).map(|kind| kind.code).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_looser_stops_a_compile_and_what_is_stricter_does_not() {
        for target in Target::ALL {
            assert_eq!(Target::of(target.system()), target);
            for kind in target.gaps() {
                let level = if kind.direction == Direction::Looser { Level::Error } else { Level::Note };
                assert_eq!(kind.code.level, level, "{}", kind.code.name);
                assert!(CODES.iter().any(|codes| codes.contains(&kind.code)), "{}", kind.code.name);
            }
        }
    }
}
