//! The Windows plan: filters of the Windows Filtering Platform for connections, and access control entries for files.
//!
//! Plain data in the terms of the system. Nothing here knows rules beyond the place in a text that a comment names.

use crate::backend::limits::Limits;
use crate::source::Span;
use crate::vocabulary::{Effect, Verb};
use std::net::IpAddr;
use std::ops::RangeInclusive;

/// A plan for one machine, as it is run: the texts that were proved.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Texts {
    /// As [`filters`](super::filters) writes them.
    pub filters: String,
    /// As [`access_lists`](super::access_lists) writes them.
    pub access_lists: String,
    /// The ports of loopback at which the proxy may be; `None` where nothing may be connected to.
    pub proxy: Option<RangeInclusive<u16>>,
    pub limits: Limits,
}

/// What to set up for the command's account.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Plan {
    /// Highest weight first within a layer; each applies to the command's account alone.
    pub filters: Vec<Filter>,
    /// In the order of their paths, what lies above first.
    pub files: Vec<Entry>,
}

/// Where a filter is asked. The names are those of `fwpmu.h` less `FWPM_LAYER_ALE_` and the family.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Layer {
    /// `AUTH_CONNECT`: an outgoing connection, or the first datagram to a peer.
    Connect,
    /// `AUTH_LISTEN`: a TCP socket begins to listen.
    Listen,
    /// `AUTH_RECV_ACCEPT`: a connection comes in, or the first datagram of a peer.
    Accept,
    /// `RESOURCE_ASSIGNMENT`: a socket takes a local port, asks for raw or promiscuous mode.
    Assign,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Family {
    V4,
    V6,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Action {
    Permit,
    Block,
}

/// An IP protocol number (IANA).
pub const TCP: u8 = 6;
/// An IP protocol number (IANA).
pub const UDP: u8 = 17;

/// One filter. What is empty is not asked about; several values of one field are alternatives.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Filter {
    pub layer: Layer,
    pub family: Family,
    pub action: Action,
    /// Exact: the highest that matches decides. Filters of one layer that share a weight and differ in action match nothing
    /// in common.
    pub weight: u64,
    /// Not asked at [`Layer::Listen`], which has TCP alone.
    pub protocols: Vec<u8>,
    /// Inclusive. The remote address at [`Layer::Connect`], else the local one; all of the filter's family.
    pub addresses: Vec<(IpAddr, IpAddr)>,
    /// Inclusive; of the same side as the addresses.
    pub ports: Vec<(u16, u16)>,
    pub reason: Reason,
}

/// Why a filter is there.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Reason {
    /// What these rules say, each with its place.
    Rules(Vec<(Effect, Verb, Span)>),
    /// Nothing that is not permitted.
    Default,
    /// The way to the filtering proxy.
    Proxy,
    /// A socket may take a local port, which is no access by itself.
    Binding,
    /// Taking the proxy's ports is refused to the command.
    ProxyPorts,
    /// Listening on every address would be listening on one of the machine's own that a rule denies.
    OwnAddresses,
}

/// The entries for one node of the file system.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Entry {
    /// With its variable, drive, and `/` between segments; a comparison of paths is the system's, without case.
    pub path: crate::sets::path::AbsPath,
    /// In canonical order: denials first.
    pub aces: Vec<Ace>,
    /// Rules that the entries come from.
    pub reasons: Vec<(Effect, Verb, Span)>,
}

/// One access control entry for the command's account, or for [`Trustee::Owner`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Ace {
    pub deny: bool,
    pub trustee: Trustee,
    pub scope: Scope,
    /// Access mask, see [`rights`].
    pub mask: u32,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Trustee {
    Account,
    /// `OWNER RIGHTS` (S-1-3-4): who makes a file owns it, and without this entry might rewrite its list.
    Owner,
}

/// Which nodes an entry applies to, by its inheritance flags.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Scope {
    /// No flag: the node alone.
    Node,
    /// `OI CI`: the node and everything below it.
    Tree,
    /// `OI CI IO`: what is below it.
    Below,
}

/// Bits of an access mask (MS-DTYP section 2.4.3; winnt.h).
pub mod rights {
    pub const READ_DATA: u32 = 0x1;
    /// On a directory: make files in it.
    pub const WRITE_DATA: u32 = 0x2;
    /// On a directory: make directories in it.
    pub const APPEND_DATA: u32 = 0x4;
    pub const READ_EA: u32 = 0x8;
    pub const WRITE_EA: u32 = 0x10;
    /// On a directory: pass through it.
    pub const EXECUTE: u32 = 0x20;
    /// On a directory: remove what is in it, whatever its own list says.
    pub const DELETE_CHILD: u32 = 0x40;
    pub const READ_ATTRIBUTES: u32 = 0x80;
    pub const WRITE_ATTRIBUTES: u32 = 0x100;
    pub const DELETE: u32 = 0x1_0000;
    pub const READ_CONTROL: u32 = 0x2_0000;
    pub const WRITE_DAC: u32 = 0x4_0000;
    pub const WRITE_OWNER: u32 = 0x8_0000;
    pub const SYNCHRONIZE: u32 = 0x10_0000;
}
