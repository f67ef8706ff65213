//! The Linux plan: an ordered list of typed mount operations, and everything else the sandbox is made of.
//!
//! Every path is canonical and absolute, as bytes, without links. What an operation needs below a tmpfs of the plan's
//! own (mount points, the directories on the way) its executor makes, mode 0555; below a bound tree it is there.

use super::seccomp;
use crate::backend::limits::Limits;
use crate::ir::Node;
use std::net::SocketAddr;

/// The nodes that a [`Mount::Devices`] can hold.
pub const DEVICES: [&str; 6] = ["null", "zero", "full", "random", "urandom", "tty"];

/// What a [`Mount::Proc`] never shows, as it tells of the host or of its other processes: the OCI runtime's masked paths
/// (runtime-spec, config-linux.md, as container engines fill them), and the page tables of the whole machine.
pub const PROC_HIDDEN: [&str; 14] = [
    "acpi",
    "asound",
    "dynamic_debug",
    "interrupts",
    "kcore",
    "keys",
    "kmsg",
    "kpagecgroup",
    "kpagecount",
    "kpageflags",
    "latency_stats",
    "sched_debug",
    "scsi",
    "timer_list",
];

/// What to set up. Serialisable, since the bwrap engine hands the inner half over.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub struct Plan {
    pub root: Root,
    /// Carried out in this order, after the root; sources are taken from the host as it was before the first.
    pub mounts: Vec<Mount>,
    pub network: Network,
    /// Where the host is listened at for the command: what comes in is joined to the same port of its loopback.
    pub listen: Vec<SocketAddr>,
    /// Comments accept what mounts alone leave open: where nobody can make calls in the command's place, though the filter would
    /// have them made, it runs without.
    pub unheard: bool,
    /// A rule allows connecting to unix sockets of the host: whether to, is asked for each connection.
    pub sockets: bool,
    /// The system calls that are closed.
    pub syscalls: seccomp::Table,
    /// `None` under `--nest`, which needs to mount inside.
    pub landlock: Option<Landlock>,
    pub limits: Limits,
}

/// What `/` is before the mounts.
#[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub enum Root {
    /// The host's whole tree: read-only, nodev, nosuid, recursively; noexec as said.
    Host { exec: bool },
    /// A read-only tmpfs of the plan's own, mode 0555 or, where the policy denies listing `/`, 0111.
    Empty { listable: bool },
}

#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub enum Mount {
    /// The host's node at `path`, at the same place, with everything mounted below it; nosuid, and nodev. Refused
    /// unless it is still the node that was seen. A writable one keeps the flags that each mount has on the host.
    Bind { path: Vec<u8>, node: Node, write: bool, exec: bool },
    /// An empty read-only tmpfs, mode 0555 or 0111; later operations may lie below it. Refused unless what it hides is still
    /// the node that was seen there, if one was.
    EmptyDirectory { path: Vec<u8>, node: Option<Node>, listable: bool },
    /// A directory made in a tmpfs of the plan's own, mode 0555 or 0111, so that what lies below has a way to it.
    Directory { path: Vec<u8>, listable: bool },
    /// An unreadable, unwritable regular file over the one at `path`. Refused unless that is still the node that was seen.
    MaskFile { path: Vec<u8>, node: Node },
    /// A writable tmpfs of the run's own, gone with it.
    Private { path: Vec<u8>, mode: u32, exec: bool },
    /// A file with this text, made in a tmpfs of the plan's own; mode 0444.
    File { path: Vec<u8>, text: Vec<u8> },
    /// A link, made in a tmpfs of the plan's own.
    Symlink { path: Vec<u8>, to: Vec<u8> },
    /// A minimal `/dev`: a tmpfs with these of the host's nodes (`null`, `zero`, …), the standard links, and a devpts
    /// of its own. Read-only itself.
    Devices { nodes: Vec<String> },
    /// A fresh procfs for the pid namespace, in which nothing can be written but what is a process's own: all else is found
    /// by trying, and made read-only, and [`PROC_HIDDEN`] covered.
    Proc,
}

#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub enum Network {
    /// A network namespace of its own with loopback and nothing else.
    Loopback,
    /// The same, and sockets in it that the supervisor serves with the filtering proxy: connections are redirected to them.
    Proxy(Ports),
}

/// Ranges of ports, both ends inclusive, that what is in the sandbox has to know of.
#[derive(Debug, Clone, PartialEq, Eq, Default, serde::Serialize, serde::Deserialize)]
pub struct Ports {
    /// Those of 127.0.0.0/8 that mean the host's, and not the command's own.
    pub loopback4: Vec<(u16, u16)>,
    /// The same of ::1.
    pub loopback6: Vec<(u16, u16)>,
    /// Those of any rule that allows: where connections can't be redirected, these are listened on.
    pub all: Vec<(u16, u16)>,
}

/// Landlock allow-lists (ABI 2 and up): places below which writing, or running, is possible at all. Mounts say what is
/// not within them.
#[derive(Debug, Clone, PartialEq, Eq, Default, serde::Serialize, serde::Deserialize)]
pub struct Landlock {
    pub write: Vec<Vec<u8>>,
    pub exec: Vec<Vec<u8>>,
}
