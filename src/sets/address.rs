//! Sets of IP addresses, as intervals. A mapped address (`::ffff:a.b.c.d`) *is* its IPv4 address.

/// Disjoint, sorted, inclusive intervals of both families.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Default)]
pub struct AddressSet {
    v4: Vec<(u32, u32)>,
    v6: Vec<(u128, u128)>,
}
