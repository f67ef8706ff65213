//! Items and what an `except` takes from them → the subjects of rules: ports by default, `localhost` as its two
//! addresses, and the forms that carry an address for what denies.

use super::codes::EXCEPT_KIND;
use super::item::{Item, Resolved};
use crate::diagnostic::Diagnostic;
use crate::ir::Subject;
use crate::sets::address::{AddressSet, parse_network};
use crate::sets::host::{self, HostSet};
use crate::sets::name::{self, NameSet};
use crate::sets::path::{self, PathSet, Segment};
use crate::sets::peer::{Endpoint, PeerSet};
use crate::sets::port::PortSet;
use crate::source::Span;
use crate::syntax::ast;
use crate::syntax::codes::{PATTERN, PORTS};
use crate::vocabulary::Verb;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// How many patterns that are not literal an `except` may hold.
const EXCEPT: usize = 64;

/// What the subject is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Purpose {
    pub verb: Verb,
    /// `allow`, or `expect allow`: what is not said is not meant. Else what is not said is meant as well.
    pub permits: bool,
    /// `deny` and `forbid` also cover the IPv6 forms that carry an address; an expectation does not.
    pub carries: bool,
}

/// What an `except` holds, by kind.
#[derive(Default)]
pub(super) struct Except {
    paths: Vec<path::Pattern>,
    hosts: Vec<host::Pattern>,
    names: Vec<name::Pattern>,
    addresses: Vec<(IpAddr, u8)>,
    /// One of the targets of each kind, for messages.
    host_span: Option<Span>,
    address_span: Option<Span>,
}

impl Except {
    /// Sorts what an `except` names; the targets have no ports, `?` or `or`.
    pub fn new(items: Vec<Resolved>, diagnostics: &mut Vec<Diagnostic>) -> Self {
        let mut except = Except::default();
        for Resolved { item, span, .. } in items {
            let ports = match item {
                Item::Path(pattern) => {
                    except.paths.push(pattern);
                    None
                }
                Item::Paths(mut patterns, _) => {
                    except.paths.append(&mut patterns);
                    None
                }
                Item::Name(pattern) => {
                    except.names.push(pattern);
                    None
                }
                Item::Host(pattern, ports) => {
                    except.hosts.push(pattern);
                    except.host_span = Some(span);
                    ports
                }
                Item::Hosts(table) => {
                    except.hosts.push(host::Pattern::Table(table));
                    except.host_span = Some(span);
                    None
                }
                Item::Localhost(ports) => {
                    except.addresses.extend(LOCALHOST);
                    except.address_span = Some(span);
                    ports
                }
                Item::Address(address, prefix, ports) => {
                    except.addresses.push((address, prefix));
                    except.address_span = Some(span);
                    ports
                }
                Item::Addresses(mut addresses) => {
                    except.addresses.append(&mut addresses);
                    except.address_span = Some(span);
                    None
                }
            };
            if let Some(ports) = ports {
                let message = "an `except` takes hosts or addresses out of the rule, on every port of it";
                let diagnostic = Diagnostic::new(&PORTS, message).label(ports.span, "ports in an `except`");
                diagnostics.push(diagnostic.help("take the ports out, or write a rule of its own"));
            }
        }
        except
    }

    /// Whether there are too many patterns to compare; said at `span`.
    pub fn limit(&self, span: Span, diagnostics: &mut Vec<Diagnostic>) {
        let paths = self.paths.iter().filter(|p| !p.segments.iter().all(|s| matches!(s, Segment::Literal(_))));
        let plain = |p: &&host::Pattern| {
            !matches!(p, host::Pattern::Labels { below: false, labels }
                if labels.iter().all(|label| matches!(label, host::Label::Literal(_))))
        };
        let names = self.names.iter().filter(|p| matches!(p, name::Pattern::Glob(_)));
        // `*.example.com` is one comparison of suffixes however many there are; only patterns inside labels cost.
        let hosts = self.hosts.iter().filter(plain).filter(|p| !is_suffix(p));
        let count = paths.count().max(hosts.count()).max(names.count());
        if count > EXCEPT {
            let message = format!("this `except` holds {count} targets that are not literal, and {EXCEPT} is the most");
            let help = "name literal targets, or write several rules";
            diagnostics.push(Diagnostic::new(&PATTERN, message).label(span, "too many").help(help));
        }
    }

    fn no_hosts(&self, span: Span, diagnostics: &mut Vec<Diagnostic>) -> bool {
        self.none_of(self.host_span, "host names", "addresses", span, diagnostics)
    }

    fn no_addresses(&self, span: Span, diagnostics: &mut Vec<Diagnostic>) -> bool {
        self.none_of(self.address_span, "addresses", "host names", span, diagnostics)
    }

    #[allow(clippy::unused_self)]
    fn none_of(&self, at: Option<Span>, takes: &str, from: &str, span: Span, out: &mut Vec<Diagnostic>) -> bool {
        let Some(at) = at else { return true };
        let message = format!("this `except` takes {takes} from {from}, which takes nothing");
        let diagnostic = Diagnostic::new(&EXCEPT_KIND, message).label(at, takes).label(span, from);
        out.push(diagnostic.help(format!("name {from} in the `except`, or write two rules")));
        false
    }
}

fn is_suffix(pattern: &host::Pattern) -> bool {
    match pattern {
        host::Pattern::Labels { below: true, labels } => {
            labels.iter().all(|label| matches!(label, host::Label::Literal(_)))
        }
        host::Pattern::Table(_) => true,
        _ => false,
    }
}

/// 127.0.0.0/8 and `[::1]` (RFC 6761, 6.3; RFC 1122, 3.2.1.3; RFC 4291, 2.5.3).
pub(super) const LOCALHOST: [(IpAddr, u8); 2] =
    [(IpAddr::V4(Ipv4Addr::new(127, 0, 0, 0)), 8), (IpAddr::V6(Ipv6Addr::LOCALHOST), 128)];

/// The sets that one item stands for, less the `except`: one, or two for `localhost`.
pub(super) fn subjects(
    item: Item,
    except: &Except,
    purpose: Purpose,
    span: Span,
    diagnostics: &mut Vec<Diagnostic>,
) -> Vec<Subject> {
    let paths = |include| vec![Subject::Paths(PathSet { include, exclude: except.paths.clone() })];
    match item {
        Item::Path(pattern) => paths(vec![pattern]),
        Item::Paths(patterns, _) => paths(patterns),
        Item::Name(pattern) => {
            vec![Subject::Names(NameSet { include: vec![pattern], exclude: except.names.clone() })]
        }
        Item::Host(pattern, ports) => hosts(vec![pattern], ports.as_ref(), except, purpose, span, diagnostics),
        Item::Hosts(table) => hosts(table.all(), None, except, purpose, span, diagnostics),
        Item::Localhost(ports) => {
            let ports = peers(ports.as_ref(), purpose);
            let two =
                LOCALHOST.iter().map(|block| addresses(&[*block], ports.clone(), except, purpose, span, diagnostics));
            two.flatten().collect()
        }
        Item::Address(_, _, None) | Item::Addresses(_) if purpose.permits => {
            let message = "an address that is allowed needs its ports";
            let diagnostic = Diagnostic::new(&PORTS, message).label(span, "no ports");
            diagnostics.push(diagnostic.help("name them, as in `10.0.0.7:5432` or `10.0.0.0/8:{80,443}`"));
            Vec::new()
        }
        Item::Address(address, prefix, ports) => {
            let ports = peers(ports.as_ref(), purpose);
            addresses(&[(address, prefix)], ports, except, purpose, span, diagnostics).into_iter().collect()
        }
        Item::Addresses(own) => {
            let ports = peers(None, purpose);
            addresses(&own, ports, except, purpose, span, diagnostics).into_iter().collect()
        }
    }
}

/// Protocols and ports.
#[derive(Clone)]
struct Service {
    tcp: bool,
    udp: bool,
    ports: PortSet,
}

fn peers(ports: Option<&ast::Ports>, purpose: Purpose) -> Service {
    match ports {
        Some(ports) => Service {
            tcp: !ports.udp,
            udp: ports.udp,
            ports: PortSet::from_ranges(ports.ranges.iter().map(|(low, high)| *low..=*high)),
        },
        None if purpose.permits => Service { tcp: true, udp: false, ports: PortSet::from_ranges([80..=80, 443..=443]) },
        None => Service { tcp: true, udp: true, ports: PortSet::all() },
    }
}

fn hosts(
    include: Vec<host::Pattern>,
    ports: Option<&ast::Ports>,
    except: &Except,
    purpose: Purpose,
    span: Span,
    diagnostics: &mut Vec<Diagnostic>,
) -> Vec<Subject> {
    if !except.no_addresses(span, diagnostics) {
        return Vec::new();
    }
    let Service { tcp, udp, ports } = peers(ports, purpose);
    let endpoint = Endpoint::Hosts(HostSet { include, exclude: except.hosts.clone() });
    vec![Subject::Peers(PeerSet { endpoint, tcp, udp, ports })]
}

/// The union of blocks, each an address and the length of its prefix.
pub(super) fn blocks(blocks: &[(IpAddr, u8)]) -> AddressSet {
    let block = |(address, prefix): &(IpAddr, u8)| {
        // Bits past the prefix have been refused by the grammar; were they not, the block is meant.
        let network = match address {
            IpAddr::V4(v4) => {
                IpAddr::from(Ipv4Addr::from_bits(v4.to_bits() & !u32::MAX.checked_shr((*prefix).into()).unwrap_or(0)))
            }
            IpAddr::V6(v6) => {
                IpAddr::from(Ipv6Addr::from_bits(v6.to_bits() & !u128::MAX.checked_shr((*prefix).into()).unwrap_or(0)))
            }
        };
        parse_network(&format!("{network}/{prefix}")).unwrap_or_else(|_| AddressSet::from(*address))
    };
    blocks.iter().map(block).collect()
}

fn addresses(
    own: &[(IpAddr, u8)],
    Service { tcp, udp, ports }: Service,
    except: &Except,
    purpose: Purpose,
    span: Span,
    diagnostics: &mut Vec<Diagnostic>,
) -> Option<Subject> {
    if !except.no_hosts(span, diagnostics) {
        return None;
    }
    let set = blocks(own).difference(&blocks(&except.addresses));
    let set = if purpose.carries { set.carried() } else { set };
    Some(Subject::Peers(PeerSet { endpoint: Endpoint::Addresses(set), tcp, udp, ports }))
}
