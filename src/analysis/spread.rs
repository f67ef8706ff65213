//! Addresses cut into the stretches that some sets tell apart.

use crate::sets::address::AddressSet;
use std::collections::BTreeSet;
use std::net::IpAddr;

/// A stretch of addresses, by its least one, and the sets it lies in.
pub(super) struct Stretch<'a> {
    pub least: IpAddr,
    pub inside: &'a BTreeSet<usize>,
}

/// Calls back for each stretch, from the least address on; one that is in no set is left out.
pub(super) fn stretches(sets: &[&AddressSet], mut each: impl FnMut(Stretch<'_>)) {
    let mut events: Vec<(IpAddr, bool, usize)> = Vec::new();
    for (set, addresses) in sets.iter().enumerate() {
        for (low, high) in addresses.ranges() {
            events.push((low, true, set));
            // Past the last address of a family nothing of it follows.
            events.extend(after(high).map(|next| (next, false, set)));
        }
    }
    events.sort_unstable();
    let mut inside = BTreeSet::new();
    let mut at = 0;
    while let Some(&(here, _, _)) = events.get(at) {
        if at > 0 && events[at - 1].0.is_ipv4() && here.is_ipv6() {
            inside.clear();
        }
        while let Some(&(_, begins, set)) = events.get(at).filter(|event| event.0 == here) {
            if begins {
                inside.insert(set)
            } else {
                inside.remove(&set)
            };
            at += 1;
        }
        if !inside.is_empty() {
            each(Stretch { least: here, inside: &inside });
        }
    }
}

fn after(address: IpAddr) -> Option<IpAddr> {
    match address {
        IpAddr::V4(v4) => v4.to_bits().checked_add(1).map(|bits| IpAddr::V4(bits.into())),
        IpAddr::V6(v6) => v6.to_bits().checked_add(1).map(|bits| IpAddr::V6(bits.into())),
    }
}
