//! What can be taken out of a sandbox, one by one, by the tests that show each known escape to work without it.
//!
//! Nothing but [`run_without`](super::run_without) takes anything out, and no verb of the program calls that: a test
//! looks for both names in the rest of the sources.

/// One wall. Its text says what stands open without it.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub enum Defence {
    /// One system call's entries in the filter.
    SystemCall(String),
    /// That connections, and changes of files, are made in the command's place: they are looked at, and left to the kernel then.
    Performed,
    /// That what was decided about a file is done at once: without it there is a pause in between, long enough to change whatever an
    /// attacker can reach. No wall: nothing rests on it.
    Prompt,
    /// That of the files in `/proc`, whoever opens them for the command opens the caller's own alone.
    OwnProcess,
    /// The whole filter, other architectures' calls included.
    SystemCalls,
    /// The covers in `/proc`.
    ProcCovers,
    /// `nodev` on everything that is the host's.
    NoDevices,
    /// `nosuid` on everything that is the host's.
    NoSetuid,
    /// That a place is opened without following links, and is the node that was seen. (Native engine.)
    SameNode,
    /// That pid 1 cannot be traced, or looked into.
    ClosedPid1,
    /// That capabilities are given up, and `no_new_privs` set.
    NoPrivileges,
    /// A session keyring of the run's own.
    Keyring,
    /// The limit of core dumps.
    CoreLimit,
    /// That limits are held by a control group. No wall: where there is none, the processes are looked at.
    ControlGroup,
    /// A process namespace of the run's own. Its `/proc` cannot be mounted then. (Native engine.)
    ProcessNamespace,
    /// A network namespace of the run's own. (Native engine.)
    NetworkNamespace,
    /// The redirection of connections, as on a kernel without nftables. No wall: what is not redirected reaches nothing.
    /// (Native engine.)
    Redirection,
    /// A namespace of System V and message queues of the run's own. (Native engine.)
    IpcNamespace,
}
