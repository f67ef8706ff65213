//! Sets of ports, as intervals.

use super::intervals;
use std::fmt;
use std::ops::RangeInclusive;

/// Disjoint, sorted, inclusive intervals; port 0 is in none.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Default, serde::Serialize, serde::Deserialize)]
pub struct PortSet {
    ranges: Vec<(u16, u16)>,
}

impl PortSet {
    /// Every port, 1 to 65535.
    pub fn all() -> Self {
        Self::from_ranges([1..=u16::MAX])
    }

    /// The union of ranges; port 0 is left out.
    pub fn from_ranges(ranges: impl IntoIterator<Item = RangeInclusive<u16>>) -> Self {
        let ranges = ranges.into_iter().map(|range| ((*range.start()).max(1), *range.end())).collect();
        Self { ranges: intervals::normal(ranges) }
    }

    /// The intervals, in order.
    pub fn ranges(&self) -> impl Iterator<Item = RangeInclusive<u16>> + '_ {
        self.ranges.iter().map(|&(low, high)| low..=high)
    }

    /// Whether a port is in the set.
    pub fn contains(&self, port: u16) -> bool {
        intervals::contains(&self.ranges, port)
    }

    /// Whether every port is in the set.
    pub fn is_all(&self) -> bool {
        *self == Self::all()
    }

    /// Whether no port is in the set.
    pub fn is_empty(&self) -> bool {
        self.ranges.is_empty()
    }

    /// The least port in the set.
    pub fn shortest(&self) -> Option<u16> {
        self.ranges.first().map(|range| range.0)
    }

    /// All ports of both.
    #[must_use]
    pub fn union(&self, other: &Self) -> Self {
        Self { ranges: intervals::union(&self.ranges, &other.ranges) }
    }

    /// The ports that are in both.
    #[must_use]
    pub fn intersection(&self, other: &Self) -> Self {
        Self { ranges: intervals::intersection(&self.ranges, &other.ranges) }
    }

    /// The ports that are not in `other`.
    #[must_use]
    pub fn difference(&self, other: &Self) -> Self {
        Self { ranges: intervals::difference(&self.ranges, &other.ranges) }
    }

    /// Whether every port is in `other`.
    ///
    /// # Errors
    /// The least port that is not.
    pub fn is_subset(&self, other: &Self) -> Result<(), u16> {
        self.difference(other).shortest().map_or(Ok(()), Err)
    }

    /// The least port in both.
    pub fn overlap(&self, other: &Self) -> Option<u16> {
        self.intersection(other).shortest()
    }
}

/// As it is written after the `:` of a target.
impl fmt::Display for PortSet {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.is_all() {
            return f.write_str("*");
        }
        let (open, close) = if self.ranges.len() == 1 { ("", "") } else { ("{", "}") };
        f.write_str(open)?;
        for (index, (low, high)) in self.ranges.iter().enumerate() {
            let comma = if index > 0 { "," } else { "" };
            if low == high { write!(f, "{comma}{low}")? } else { write!(f, "{comma}{low}-{high}")? }
        }
        f.write_str(close)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn port_zero_is_no_port() {
        assert!(!PortSet::from_ranges([0..=u16::MAX]).contains(0));
        assert!(PortSet::from_ranges([0..=u16::MAX]).is_all());
        assert!(PortSet::from_ranges([0..=0]).is_empty());
    }

    #[test]
    fn ends_are_included() {
        let set = PortSet::from_ranges([80..=80, 8000..=8999]);
        for (port, inside) in
            [(79, false), (80, true), (81, false), (7999, false), (8000, true), (8999, true), (9000, false)]
        {
            assert_eq!(set.contains(port), inside, "{port}");
        }
        assert_eq!(set.to_string(), "{80,8000-8999}");
        assert_eq!(PortSet::all().is_subset(&set), Err(1));
        assert_eq!(set.is_subset(&PortSet::all()), Ok(()));
    }
}
