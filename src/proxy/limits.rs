//! Every bound the proxy keeps, in one place. What comes in is hostile, so nothing grows without one, and only what the
//! command itself asked for may take long: an answer that is under way, which holds one of the connections and ends with
//! its client.

use std::time::Duration;

/// The bounds of one proxy. Everyone but tests uses [`Limits::STANDARD`].
#[derive(Debug, Clone, Copy)]
pub struct Limits {
    /// Bytes of a head (request or response), and of what is read ahead of it.
    pub head_size: usize,
    /// Fields of a head.
    pub head_fields: usize,
    /// From accepting a connection to its first byte.
    pub first_byte: Duration,
    /// From the first byte to the end of the head, of a SOCKS handshake, or of what tells the protocol in a tunnel; also
    /// how long a connection may stand idle between two requests.
    pub head: Duration,
    /// Finding the addresses of a name.
    pub resolve: Duration,
    /// The same where another proxy will find them, and this machine need not.
    pub resolve_beside: Duration,
    /// How long name servers that have not answered so are left alone.
    pub silence: Duration,
    /// Name look-ups at once.
    pub lookups: usize,
    /// Addresses of one name that are considered; the resolver's further ones are left out.
    pub addresses: usize,
    /// Connecting to one address.
    pub dial_one: Duration,
    /// Connecting to any of a name's addresses.
    pub dial_all: Duration,
    /// How long one address is tried before the next is tried beside it (RFC 8305, section 5).
    pub dial_stagger: Duration,
    /// Connections at once; fewer where the process may have few descriptors, see [`Limits::within`]. Past it, the
    /// oldest connection that has not asked for anything yet is dropped; when there is none, new ones wait in the
    /// listener's queue.
    pub connections: usize,
    /// How much content of a request that is not passed on is read, so that its client comes to read the answer instead
    /// of being cut off while it writes.
    pub drain_size: usize,
    /// How long that may take.
    pub drain: Duration,
    /// A tunnel or an upgraded connection in which nothing moves either way.
    pub tunnel_idle: Duration,
    /// The same once one side has ended its half.
    pub half_closed_idle: Duration,
    /// Questions over UDP that are answered at once; one more is told to ask again.
    pub questions: usize,
    /// The buffer of each direction of a tunnel, in bytes; where much moves it is larger for a while, in a few at once.
    pub tunnel_buffer: usize,
}

impl Limits {
    /// What `srt run` uses.
    pub const STANDARD: Limits = Limits {
        head_size: 64 << 10,
        head_fields: 128,
        first_byte: Duration::from_secs(30),
        head: Duration::from_secs(30),
        resolve: Duration::from_secs(15),
        resolve_beside: Duration::from_secs(2),
        silence: Duration::from_secs(60),
        lookups: 4,
        addresses: 8,
        dial_one: Duration::from_secs(10),
        dial_all: Duration::from_secs(30),
        dial_stagger: Duration::from_millis(250),
        connections: 2048,
        drain_size: 1 << 20,
        drain: Duration::from_secs(2),
        tunnel_idle: Duration::from_secs(2 * 60 * 60),
        half_closed_idle: Duration::from_secs(10 * 60),
        questions: 256,
        tunnel_buffer: 16 << 10,
    };

    /// The same for a process that may have this many descriptors: each connection has one to its client and, while it
    /// tries addresses beside each other, several outwards, of which one stays. What is left over is for the resolver,
    /// and for the process itself.
    #[must_use]
    pub fn within(self, descriptors: u64) -> Limits {
        let share = usize::try_from(descriptors.saturating_sub(64) / 4).unwrap_or(usize::MAX);
        Limits { connections: self.connections.min(share).max(1), ..self }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn few_descriptors_make_few_connections() {
        let connections = |descriptors| Limits::STANDARD.within(descriptors).connections;
        assert_eq!([connections(0), connections(64), connections(256), connections(1024)], [1, 1, 48, 240]);
        assert_eq!(connections(20_000), Limits::STANDARD.connections);
    }
}
