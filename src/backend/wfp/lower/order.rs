//! Rules of one verb → an order in which the first that matches decides as [`decide`](crate::ir::decide()) does.
//!
//! An allow stands above each deny that it is more specific than, and below each other deny that it meets. Where these
//! demands have no cycle, the first rule that matches an access decides it rightly: if every deny that matches is opened
//! by an allow that matches, some allow stands above each, so no deny is first; if one is not opened, every allow that
//! matches meets it without being inside, so it stands above them all. Allows on a cycle are taken out, to be replaced by
//! exactly what they permit; without them no cycle is left.

/// What is ordered: each allow and each deny of a verb, by index.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Order {
    /// From 1, the lowest; `None` for an allow that was taken out.
    pub levels: Vec<Option<u64>>,
    /// The highest level in use; 0 when there is none.
    pub top: u64,
}

/// `below` lists for each rule those that must stand below it; `is_allow` says which may be taken out.
pub(super) fn order(below: &[Vec<usize>], is_allow: &[bool]) -> Order {
    let cyclic = cyclic(below);
    let out: Vec<bool> = (0..below.len()).map(|rule| cyclic[rule] && is_allow[rule]).collect();
    let mut levels: Vec<Option<u64>> = vec![None; below.len()];
    // Each pass settles those above what is settled; without a cycle no more passes are needed than there are rules.
    for _ in 0..below.len() {
        let mut changed = false;
        for rule in (0..below.len()).filter(|rule| !out[*rule]) {
            let kept = below[rule].iter().filter(|other| !out[**other]);
            let level = kept.map(|other| levels[*other].unwrap_or(1)).max().map_or(1, |highest| highest + 1);
            changed |= levels[rule] != Some(level);
            levels[rule] = Some(level);
        }
        if !changed {
            break;
        }
    }
    let top = levels.iter().flatten().copied().max().unwrap_or(0);
    Order { levels, top }
}

/// Those on a cycle, or on a way from one to another: what is left when all that have nothing above, or nothing below, are
/// taken away.
fn cyclic(below: &[Vec<usize>]) -> Vec<bool> {
    let mut left = vec![true; below.len()];
    loop {
        let mut above = vec![0_usize; below.len()];
        let mut under = vec![0_usize; below.len()];
        for rule in (0..below.len()).filter(|rule| left[*rule]) {
            for other in below[rule].iter().filter(|other| left[**other]) {
                above[*other] += 1;
                under[rule] += 1;
            }
        }
        let before = left.iter().filter(|left| **left).count();
        for rule in 0..below.len() {
            left[rule] &= above[rule] > 0 && under[rule] > 0;
        }
        if left.iter().filter(|left| **left).count() == before {
            return left;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_chain_is_as_high_as_it_is_long() {
        // allow 0 inside deny 1 inside allow 2; deny 1 stands above allow 2.
        let found = order(&[vec![1], vec![2], vec![]], &[true, false, true]);
        assert_eq!(found, Order { levels: vec![Some(3), Some(2), Some(1)], top: 3 });
    }

    #[test]
    fn what_does_not_meet_shares_a_level() {
        assert_eq!(order(&[vec![], vec![]], &[true, false]).levels, [Some(1), Some(1)]);
        assert_eq!(order(&[], &[]).top, 0);
    }

    #[test]
    fn allows_on_a_cycle_are_taken_out() {
        // allow 0 > deny 2 > allow 1 > deny 3 > allow 0, and allow 4 above deny 2.
        let below = [vec![2], vec![3], vec![1], vec![0], vec![2]];
        let found = order(&below, &[true, true, false, false, true]);
        assert_eq!(found.levels, [None, None, Some(1), Some(1), Some(2)]);
    }
}
