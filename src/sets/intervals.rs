//! Sets of numbers as sorted, disjoint, inclusive intervals that do not touch.

use super::mistake::{Mistake, made};

/// An unsigned number whose neighbours are known.
pub(super) trait Number: Copy + Ord {
    /// The next number, `None` at the end.
    fn after(self) -> Option<Self>;
    /// The number before, `None` at zero.
    fn before(self) -> Option<Self>;
}

macro_rules! numbers {
    ($($type:ty),+) => {$(
        impl Number for $type {
            fn after(self) -> Option<Self> {
                self.checked_add(1)
            }

            fn before(self) -> Option<Self> {
                self.checked_sub(1)
            }
        }
    )+};
}

numbers!(u16, u32, u128);

/// Any intervals, put in order.
pub(super) fn normal<T: Number>(mut intervals: Vec<(T, T)>) -> Vec<(T, T)> {
    intervals.retain(|(low, high)| low <= high);
    intervals.sort_unstable();
    let near = |last: T| if made(Mistake::GapIsClosed) { last.after()?.after() } else { last.after() };
    let mut merged: Vec<(T, T)> = Vec::with_capacity(intervals.len());
    for (low, high) in intervals {
        match merged.last_mut() {
            Some((_, last)) if near(*last).is_none_or(|next| low <= next) => *last = high.max(*last),
            _ => merged.push((low, high)),
        }
    }
    merged
}

pub(super) fn contains<T: Number>(set: &[(T, T)], number: T) -> bool {
    let next = set.partition_point(|(low, _)| *low <= number);
    next > 0 && number <= set[next - 1].1
}

pub(super) fn union<T: Number>(a: &[(T, T)], b: &[(T, T)]) -> Vec<(T, T)> {
    normal([a, b].concat())
}

pub(super) fn intersection<T: Number>(a: &[(T, T)], b: &[(T, T)]) -> Vec<(T, T)> {
    let (mut i, mut j) = (0, 0);
    let mut common = Vec::new();
    while let (Some(x), Some(y)) = (a.get(i), b.get(j)) {
        let (low, high) = (x.0.max(y.0), x.1.min(y.1));
        if low <= high {
            common.push((low, high));
        }
        if x.1 < y.1 { i += 1 } else { j += 1 }
    }
    common
}

pub(super) fn difference<T: Number>(a: &[(T, T)], b: &[(T, T)]) -> Vec<(T, T)> {
    let mut rest = Vec::new();
    for &(low, high) in a {
        let mut from = Some(low);
        for &(gone_from, gone_to) in b.iter().skip_while(|gone| gone.1 < low).take_while(|gone| gone.0 <= high) {
            let Some(start) = from else { break };
            if let Some(end) = gone_from.before()
                && start <= end
            {
                rest.push((start, end));
            }
            from = gone_to.after();
            if made(Mistake::ComplementBeginsLate) {
                from = from.and_then(Number::after);
            }
        }
        if let Some(start) = from
            && start <= high
        {
            rest.push((start, high));
        }
    }
    rest
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn sets() -> impl Strategy<Value = Vec<(u16, u16)>> {
        let ends = prop_oneof![0..40u16, (u16::MAX - 20)..=u16::MAX];
        prop::collection::vec((ends.clone(), ends), 0..6).prop_map(normal)
    }

    proptest! {
        #[test]
        fn operations_agree_with_membership(a in sets(), b in sets()) {
            let (both, either, rest) = (intersection(&a, &b), union(&a, &b), difference(&a, &b));
            for number in (0..60).chain(u16::MAX - 30..=u16::MAX) {
                let naive = |set: &[(u16, u16)]| set.iter().any(|(low, high)| (low..=high).contains(&&number));
                prop_assert_eq!(contains(&a, number), naive(&a));
                prop_assert_eq!(contains(&both, number), naive(&a) && naive(&b));
                prop_assert_eq!(contains(&either, number), naive(&a) || naive(&b));
                prop_assert_eq!(contains(&rest, number), naive(&a) && !naive(&b));
            }
            for set in [both, either, rest] {
                prop_assert_eq!(normal(set.clone()), set);
            }
        }
    }
}
