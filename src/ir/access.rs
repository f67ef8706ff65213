//! One concrete thing that a command does.

use crate::sets::{host::Name, path::AbsPath, peer::Protocol};
use crate::vocabulary::Verb;
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

impl Access {
    /// The verb, and the object as a target of the language spells it.
    pub fn words(&self) -> (Verb, String) {
        match self {
            Access::Read(path) => (Verb::Read, path.to_string()),
            Access::Write(path) => (Verb::Write, path.to_string()),
            Access::Exec(path) => (Verb::Exec, path.to_string()),
            Access::Socket(path) => (Verb::Socket, path.to_string()),
            Access::Connect { name, address, port, protocol } => {
                let udp = if *protocol == Protocol::Udp { "/udp" } else { "" };
                let host = name.as_ref().map_or_else(|| bracketed(*address), ToString::to_string);
                (Verb::Connect, format!("{host}:{port}{udp}"))
            }
            Access::Listen { address, port } => (Verb::Listen, format!("{}:{port}", bracketed(*address))),
            Access::Env(name) => (Verb::Env, name.clone()),
            Access::Mach(name) => (Verb::Mach, name.clone()),
        }
    }
}

impl std::fmt::Display for Access {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let (verb, object) = self.words();
        write!(f, "{verb} {object}")
    }
}

fn bracketed(address: IpAddr) -> String {
    match address {
        IpAddr::V4(v4) => v4.to_string(),
        IpAddr::V6(v6) => format!("[{v6}]"),
    }
}
