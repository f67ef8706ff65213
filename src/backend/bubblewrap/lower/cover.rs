//! What is seen in a place, by what was mounted last at or above it.
//!
//! Plain data: `mounts` decides it.

/// What a node shows that no operation of its own decides: what is in a directory, by what was mounted last above it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Cover {
    /// A read-only tmpfs of ours: there is what we put there.
    Empty,
    /// The host's tree.
    Host { write: bool, exec: bool },
    /// A tmpfs of the run's own.
    Private { write: bool, exec: bool },
    /// Our `/dev`.
    Devices,
    /// Our `/proc`.
    Proc { write: bool },
    /// Nothing more is decided below: a file, or a link.
    Closed,
}

impl Cover {
    pub fn is_writable(self) -> bool {
        matches!(self, Cover::Host { write: true, .. } | Cover::Private { write: true, .. })
    }

    pub fn is_writable_host(self) -> bool {
        matches!(self, Cover::Host { write: true, .. })
    }
}
