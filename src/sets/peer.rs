//! The other end of a connection: a host or an address, with protocol and port, as one product.

use super::{address::AddressSet, host::HostSet, port::PortSet};

/// The transport.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, serde::Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Protocol {
    Tcp,
    Udp,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum Endpoint {
    Hosts(HostSet),
    Addresses(AddressSet),
}

/// `endpoint` × protocols × ports.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct PeerSet {
    pub endpoint: Endpoint,
    pub tcp: bool,
    pub udp: bool,
    pub ports: PortSet,
}
