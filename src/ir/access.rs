//! One concrete thing that a command does.

use crate::sets::{host::Name, path::AbsPath, peer::Protocol};
use std::net::IpAddr;

/// A verb and one object. Paths are resolved nodes: links are followed by whoever asks.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Access {
    Read(AbsPath),
    Write(AbsPath),
    Exec(AbsPath),
    /// Connecting to a unix socket.
    Socket(AbsPath),
    /// An outgoing connection: the name that was asked for, if any, and the address it is dialled at.
    Connect {
        name: Option<Name>,
        address: IpAddr,
        port: u16,
        protocol: Protocol,
    },
    /// Being reachable from outside the sandbox.
    Listen {
        address: IpAddr,
        port: u16,
    },
    /// A variable of the caller's environment passing in.
    Env(String),
    Mach(String),
}
