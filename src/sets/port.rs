//! Sets of ports, as intervals.

/// Disjoint, sorted, inclusive intervals; port 0 is in none.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Default)]
pub struct PortSet {
    ranges: Vec<(u16, u16)>,
}
