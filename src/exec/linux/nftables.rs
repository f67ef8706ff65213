//! The redirection of a network namespace, as one batch of netlink messages to nf_tables (linux/netfilter/nf_tables.h): no
//! program of that name is run.
//!
//! ```text
//! nat output      what is opened to the proxy        stays
//!                 port 53                            → the resolver
//!                 loopback, ports of the host's      → the proxy
//!                 loopback                           stays
//!                 TCP                                → the proxy
//! filter output   answers, loopback, the proxy       pass
//!                 all else: UDP, ping                refused at once
//! ```

use super::network::{self, attribute};
use std::net::{IpAddr, SocketAddr};

// linux/netfilter/nfnetlink.h
const BATCH_BEGIN: u16 = 0x10;
const BATCH_END: u16 = 0x11;
const SUBSYSTEM: u16 = 10;
const NEW_TABLE: u16 = SUBSYSTEM << 8;
const NEW_CHAIN: u16 = SUBSYSTEM << 8 | 3;
const NEW_RULE: u16 = SUBSYSTEM << 8 | 6;
// linux/netlink.h
const REQUEST: u16 = 0x1;
const ACKNOWLEDGE: u16 = 0x4;
const CREATE: u16 = 0x400;
const APPEND: u16 = 0x800;
const NESTED: u16 = 0x8000;

// linux/netfilter.h
const INET: u8 = 1;
const IPV4: u8 = 2;
const IPV6: u8 = 10;
const LOCAL_OUT: u32 = 3;
const NAT: i32 = -100;
const FILTER: i32 = 0;
const ACCEPT: u32 = 1;

// linux/in.h
const TCP: u8 = 6;
const UDP: u8 = 17;

const TABLE: &str = "srt";
const REDIRECT: &str = "redirect";
const REFUSE: &str = "refuse";

/// The registers that values are loaded to; each holds 16 bytes.
const VALUE: u32 = 1;
const PORT: u32 = 2;

const DNS: u16 = 53;

/// What is redirected to where.
pub struct Redirection {
    /// Of the proxy, one of each family that there is.
    pub proxies: Vec<SocketAddr>,
    /// Ports of the command's loopback that mean the host's, by family.
    pub v4: Vec<(u16, u16)>,
    pub v6: Vec<(u16, u16)>,
}

/// The batch. Its last message but one asks for an acknowledgement; one that fails tells so by itself, and nothing of the
/// batch is done then.
pub fn batch(redirection: &Redirection) -> Vec<u8> {
    let mut rules = Vec::new();
    for proxy in &redirection.proxies {
        redirect(&mut rules, *proxy, if proxy.is_ipv4() { &redirection.v4 } else { &redirection.v6 });
    }
    rules.push((REFUSE, vec![connection_state(), accept()]));
    for inner in [SocketAddr::from(([127, 0, 0, 1], 0)), SocketAddr::from((std::net::Ipv6Addr::LOCALHOST, 0))] {
        rules.push((REFUSE, [family(inner), loopback(inner), vec![accept()]].concat()));
    }
    for proxy in &redirection.proxies {
        rules.push((REFUSE, [family(*proxy), to(proxy.ip()), vec![accept()]].concat()));
    }
    rules.push((REFUSE, vec![reject()]));

    let own = [text(1, TABLE)];
    let mut messages = vec![
        message(BATCH_BEGIN, REQUEST, [0, 0, 0, 10], &[]),
        message(NEW_TABLE, REQUEST | CREATE, [INET, 0, 0, 0], &own),
        chain(REDIRECT, "nat", NAT),
        chain(REFUSE, "filter", FILTER),
    ];
    let last = rules.len().saturating_sub(1);
    for (at, (chain, expressions)) in rules.into_iter().enumerate() {
        let flags = REQUEST | CREATE | APPEND | if at == last { ACKNOWLEDGE } else { 0 };
        let attributes = [text(1, TABLE), text(2, chain), nested(4, &expressions)];
        messages.push(message(NEW_RULE, flags, [INET, 0, 0, 0], &attributes));
    }
    messages.push(message(BATCH_END, REQUEST, [0, 0, 0, 10], &[]));
    messages.concat()
}

fn redirect(rules: &mut Vec<(&'static str, Vec<Vec<u8>>)>, proxy: SocketAddr, ports: &[(u16, u16)]) {
    let mut add = |parts: Vec<Vec<Vec<u8>>>| rules.push((REDIRECT, [family(proxy), parts.concat()].concat()));
    let there = || destination(proxy);
    add(vec![to(proxy.ip()), transport(TCP), port(proxy.port(), proxy.port()), vec![accept()]]);
    add(vec![transport(UDP), port(DNS, DNS), there()]);
    add(vec![transport(TCP), port(DNS, DNS), there()]);
    for (low, high) in ports {
        add(vec![loopback(proxy), transport(TCP), port(*low, *high), there()]);
    }
    add(vec![loopback(proxy), vec![accept()]]);
    add(vec![transport(TCP), there()]);
}

/// `struct nlmsghdr`, `struct nfgenmsg`, attributes.
fn message(kind: u16, flags: u16, general: [u8; 4], attributes: &[Vec<u8>]) -> Vec<u8> {
    network::message(kind, flags, &[&general[..], &attributes.concat()].concat())
}

fn nested(kind: u16, parts: &[Vec<u8>]) -> Vec<u8> {
    attribute(kind | NESTED, &parts.concat())
}

fn number(kind: u16, value: u32) -> Vec<u8> {
    attribute(kind, &value.to_be_bytes())
}

fn text(kind: u16, value: &str) -> Vec<u8> {
    attribute(kind, &[value.as_bytes(), &[0]].concat())
}

/// NFTA_CHAIN_TABLE, NAME, HOOK (its number and priority), POLICY, TYPE.
fn chain(name: &str, kind: &str, priority: i32) -> Vec<u8> {
    let hook = nested(4, &[number(1, LOCAL_OUT), number(2, priority.cast_unsigned())]);
    let attributes = [text(1, TABLE), text(3, name), hook, number(5, ACCEPT), text(7, kind)];
    message(NEW_CHAIN, REQUEST | CREATE, [INET, 0, 0, 0], &attributes)
}

fn expression(name: &str, parts: &[Vec<u8>]) -> Vec<u8> {
    nested(1, &[text(1, name), nested(2, parts)])
}

/// What a register holds is this.
fn equals(value: &[u8]) -> Vec<u8> {
    expression("cmp", &[number(1, VALUE), number(2, 0), data(3, value)])
}

fn data(kind: u16, value: &[u8]) -> Vec<u8> {
    nested(kind, &[attribute(1, value)])
}

/// NFT_META_NFPROTO
fn family(of: SocketAddr) -> Vec<Vec<u8>> {
    vec![meta(15), equals(&[if of.is_ipv4() { IPV4 } else { IPV6 }])]
}

/// NFT_META_L4PROTO
fn transport(protocol: u8) -> Vec<Vec<u8>> {
    vec![meta(16), equals(&[protocol])]
}

fn meta(key: u32) -> Vec<u8> {
    expression("meta", &[number(1, VALUE), number(2, key)])
}

/// Bytes of the network header (1) or the transport header (2).
fn payload(base: u32, offset: u32, length: usize) -> Vec<u8> {
    let length = u32::try_from(length).unwrap_or(u32::MAX);
    expression("payload", &[number(1, VALUE), number(2, base), number(3, offset), number(4, length)])
}

/// The destination's address.
fn to(address: IpAddr) -> Vec<Vec<u8>> {
    match address {
        IpAddr::V4(address) => vec![payload(1, 16, 4), equals(&address.octets())],
        IpAddr::V6(address) => vec![payload(1, 24, 16), equals(&address.octets())],
    }
}

/// 127.0.0.0/8, or ::1.
fn loopback(of: SocketAddr) -> Vec<Vec<u8>> {
    match of.ip() {
        IpAddr::V4(_) => vec![payload(1, 16, 1), equals(&[127])],
        IpAddr::V6(_) => to(IpAddr::V6(std::net::Ipv6Addr::LOCALHOST)),
    }
}

/// The destination's port, from and to inclusive.
fn port(low: u16, high: u16) -> Vec<Vec<u8>> {
    let range = [number(1, VALUE), number(2, 0), data(3, &low.to_be_bytes()), data(4, &high.to_be_bytes())];
    vec![payload(2, 2, 2), expression("range", &range)]
}

/// NFT_NAT_DNAT to an address and a port.
fn destination(to: SocketAddr) -> Vec<Vec<u8>> {
    let address = match to.ip() {
        IpAddr::V4(address) => address.octets().to_vec(),
        IpAddr::V6(address) => address.octets().to_vec(),
    };
    let family = u32::from(if to.is_ipv4() { IPV4 } else { IPV6 });
    vec![
        expression("immediate", &[number(1, VALUE), data(2, &address)]),
        expression("immediate", &[number(1, PORT), data(2, &to.port().to_be_bytes())]),
        expression("nat", &[number(1, 1), number(2, family), number(3, VALUE), number(5, PORT)]),
    ]
}

/// Of a connection that is there already, or an error about one (NFT_CT_STATE).
fn connection_state() -> Vec<u8> {
    const ESTABLISHED_OR_RELATED: u32 = 2 | 4;
    let mask = [number(1, VALUE), number(2, VALUE), number(3, 4)];
    let mask = [&mask[..], &[data(4, &ESTABLISHED_OR_RELATED.to_ne_bytes()), data(5, &[0; 4])]].concat();
    let not_zero = [number(1, VALUE), number(2, 1), data(3, &[0; 4])];
    let state = expression("ct", &[number(2, 0), number(1, VALUE)]);
    [state, expression("bitwise", &mask), expression("cmp", &not_zero)].concat()
}

/// The verdict register gets NF_ACCEPT.
fn accept() -> Vec<u8> {
    let verdict = nested(2, &[number(1, ACCEPT)]);
    expression("immediate", &[number(1, 0), nested(2, &[verdict])])
}

/// "Port unreachable", in either family (NFT_REJECT_ICMPX_UNREACH).
fn reject() -> Vec<u8> {
    expression("reject", &[number(1, 2), attribute(2, &[1])])
}
