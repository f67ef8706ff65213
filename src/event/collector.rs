//! The tally that the summary at the end is made of.

use super::summary::render;
use super::{Event, Sink, Violation, lock};
use std::collections::VecDeque;
use std::sync::Mutex;

/// How many different refusals are remembered; a loop that is refused a million times is one.
const KINDS: usize = 256;

/// A sink that counts equal events together and keeps at most `KINDS` different ones. Past that the one first seen
/// longest ago is dropped, and counted as dropped.
#[derive(Debug, Default)]
pub struct Collector {
    tally: Mutex<Tally>,
}

/// Different violations in the order they were first seen, and how often each was.
#[derive(Debug, Default, Clone)]
pub struct Tally {
    kinds: VecDeque<(Violation, u64)>,
    dropped: u64,
}

impl Collector {
    /// What there is to say at the end: lines without a final newline, `None` when nothing happened.
    pub fn summary(&self) -> Option<String> {
        let tally = lock(&self.tally);
        (!tally.kinds.is_empty() || tally.dropped > 0).then(|| render(&tally))
    }

    /// The tally as it stands.
    pub fn tally(&self) -> Tally {
        lock(&self.tally).clone()
    }
}

impl Sink for Collector {
    fn report(&self, event: Event) {
        lock(&self.tally).add(event);
    }
}

impl Tally {
    /// Counts one more.
    pub fn add(&mut self, event: Event) {
        // People are told what was refused.
        let violation = match event {
            Event::Violation(violation) => violation,
            Event::Dropped { count } => return self.dropped += count,
            Event::Connection(_) => return,
        };
        if let Some((_, count)) = self.kinds.iter_mut().find(|(seen, _)| same_kind(seen, &violation)) {
            *count += 1;
            return;
        }
        if self.kinds.len() >= KINDS {
            self.dropped += self.kinds.pop_front().map_or(0, |(_, count)| count);
        }
        self.kinds.push_back((violation, 1));
    }

    /// Each kind, first seen first: the first event of it, and how many there were.
    pub fn kinds(&self) -> impl Iterator<Item = (&Violation, u64)> {
        self.kinds.iter().map(|(violation, count)| (violation, *count))
    }

    /// How many events are counted in no kind.
    pub fn dropped(&self) -> u64 {
        self.dropped
    }
}

/// Whether two differ in time and process alone.
fn same_kind(a: &Violation, b: &Violation) -> bool {
    a.operation == b.operation
        && a.port == b.port
        && a.host == b.host
        && a.path == b.path
        && a.outcome == b.outcome
        && a.why == b.why
        && a.rule == b.rule
        && a.address == b.address
        && a.detail == b.detail
}

#[cfg(test)]
mod tests {
    use super::super::tests::refused;
    use super::*;

    #[test]
    fn the_same_refusal_at_another_time_is_counted_with_the_first() {
        let collector = Collector::default();
        for second in 0..1000 {
            let mut violation = refused("a.test", 80);
            violation.timestamp = format!("2026-01-02T03:04:{second}Z");
            collector.report(Event::Violation(violation));
        }
        let tally = collector.tally();
        assert_eq!(tally.kinds().map(|(_, count)| count).collect::<Vec<_>>(), [1000]);
        assert_eq!(tally.dropped(), 0);
    }

    #[test]
    fn past_the_bound_the_oldest_kind_is_dropped_and_counted() {
        let collector = Collector::default();
        collector.report(Event::Violation(refused("oldest.test", 80)));
        collector.report(Event::Violation(refused("oldest.test", 80)));
        for number in 0..KINDS {
            collector.report(Event::Violation(refused(&format!("h{number}.test"), 80)));
        }
        let tally = collector.tally();
        assert_eq!(tally.kinds().count(), KINDS);
        assert_eq!(tally.dropped(), 2);
        assert!(tally.kinds().all(|(violation, _)| violation.host.as_deref() != Some("oldest.test")));
    }

    #[test]
    fn nothing_happened_is_nothing_to_say() {
        assert_eq!(Collector::default().summary(), None);
    }
}
