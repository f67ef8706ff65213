//! What one target is once it is understood: a pattern of `sets`, or a table, with the ports that stood at it.
//!
//! Not yet a rule's set: defaults for ports and what an `except` takes out are `subject`'s.

use crate::sets::{host, name, path};
use crate::source::Span;
use crate::syntax::ast;
use crate::vocabulary::Reach;
use std::net::IpAddr;
use std::sync::Arc;

/// One target, understood. The last three are tables: one set, however many entries.
#[derive(Debug, Clone)]
pub(super) enum Item {
    Path(path::Pattern),
    Host(host::Pattern, Option<ast::Ports>),
    /// `localhost` or a name under it.
    Localhost(Option<ast::Ports>),
    Address(IpAddr, u8, Option<ast::Ports>),
    Name(name::Pattern),
    Paths(Vec<path::Pattern>, Arc<crate::ir::List>),
    Hosts(Arc<host::Table>),
    Addresses(Vec<(IpAddr, u8)>),
}

/// What becomes of an item whose variable has no value; see [`crate::ir::Unset`].
#[derive(Debug, Clone)]
pub(super) enum Unset {
    Refuse,
    Drop,
    Instead(Box<Item>),
}

/// An item, where it stands in its statement, and its fate where a variable is unset.
#[derive(Debug, Clone)]
pub(super) struct Resolved {
    pub item: Item,
    pub unset: Unset,
    pub span: Span,
}

impl Item {
    /// What a message calls it.
    pub fn noun(&self) -> &'static str {
        match self {
            Item::Path(_) => "a path",
            Item::Host(..) | Item::Localhost(_) => "a host name",
            Item::Address(..) => "an address",
            Item::Name(_) => "a name",
            Item::Paths(..) => "a list of paths",
            Item::Hosts(_) => "a list of host names",
            Item::Addresses(_) => "a list of addresses",
        }
    }

    /// Puts segments after a literal path; whether that was possible.
    pub fn extend(&mut self, reach: Reach, segments: &[path::Segment]) -> bool {
        let Item::Path(pattern) = self else { return false };
        let literal = pattern.segments.iter().all(|segment| matches!(segment, path::Segment::Literal(_)));
        if !literal || pattern.reach != Reach::Tree {
            return false;
        }
        pattern.segments.extend_from_slice(segments);
        pattern.reach = reach;
        trim(pattern);
        true
    }

    /// Puts ports after a literal host or address without any; whether that was possible.
    pub fn at(&mut self, ports: &ast::Ports) -> bool {
        let place = match self {
            Item::Host(host::Pattern::Labels { below: false, labels }, place)
                if labels.iter().all(|label| matches!(label, host::Label::Literal(_))) =>
            {
                place
            }
            Item::Host(host::Pattern::Variable(_), place) | Item::Localhost(place) | Item::Address(_, _, place) => {
                place
            }
            _ => return false,
        };
        if place.is_some() {
            return false;
        }
        *place = Some(ports.clone());
        true
    }
}

/// `PATH/**` and `PATH` are the same tree.
pub(super) fn trim(pattern: &mut path::Pattern) {
    while pattern.reach == Reach::Tree && pattern.segments.last() == Some(&path::Segment::AnyDepth) {
        pattern.segments.pop();
    }
}
