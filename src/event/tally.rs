//! Equal events counted together, in bounded memory.

use super::{Connection, Event, Violation};
use std::collections::{BTreeSet, HashMap, VecDeque};

/// How much text is kept in all, in bytes: what is counted may be somebody's attempt to fill the memory.
const TEXT: usize = 32 << 20;

/// So many programs are remembered of a kind.
const PROGRAMS: usize = 8;

/// Different events in the order they were first seen, and how often each was. Past a bound the one first seen longest ago
/// is dropped, and counted as dropped.
#[derive(Debug, Clone)]
pub struct Tally {
    kinds: VecDeque<Kind>,
    /// Where each kind stands, counted from the first there ever was.
    places: HashMap<Event, u64>,
    /// How many kinds stood before the first that is kept.
    gone: u64,
    most: usize,
    text: usize,
    dropped: u64,
}

/// Events that differ in time, process and amount alone.
#[derive(Debug, Clone)]
pub struct Kind {
    /// What they have in common, see [`Event::bare`].
    pub event: Event,
    pub count: u64,
    /// When the first of them was, and the last, as they say.
    pub first: String,
    pub last: String,
    /// What the processes call themselves, a few of them.
    pub by: BTreeSet<String>,
    /// Bytes from the commands, and to them.
    pub sent: u64,
    pub received: u64,
}

impl Tally {
    /// One that keeps at most so many kinds.
    pub fn new(most: usize) -> Self {
        Self { kinds: VecDeque::new(), places: HashMap::new(), gone: 0, most, text: 0, dropped: 0 }
    }

    /// Counts one more.
    pub fn add(&mut self, event: Event) {
        if let Event::Dropped { count } = event {
            self.dropped = self.dropped.saturating_add(count);
            return;
        }
        let bare = event.bare();
        let place = self.places.get(&bare).and_then(|place| usize::try_from(place - self.gone).ok());
        if let Some(kind) = place.and_then(|place| self.kinds.get_mut(place)) {
            return kind.count_in(event);
        }
        self.text += size(&bare);
        while self.kinds.len() >= self.most || (self.text > TEXT && !self.kinds.is_empty()) {
            let Some(oldest) = self.kinds.pop_front() else { break };
            self.places.remove(&oldest.event);
            self.gone += 1;
            self.text -= size(&oldest.event);
            self.dropped = self.dropped.saturating_add(oldest.count);
        }
        self.places.insert(bare.clone(), self.gone + self.kinds.len() as u64);
        let mut kind = Kind {
            event: bare,
            count: 0,
            first: String::new(),
            last: String::new(),
            by: BTreeSet::new(),
            sent: 0,
            received: 0,
        };
        kind.count_in(event);
        self.kinds.push_back(kind);
    }

    /// Each kind, first seen first.
    pub fn kinds(&self) -> impl Iterator<Item = &Kind> {
        self.kinds.iter()
    }

    /// The kinds of what was refused: each, and how many there were.
    pub fn violations(&self) -> impl Iterator<Item = (&Violation, u64)> {
        self.kinds.iter().filter_map(|kind| match &kind.event {
            Event::Violation(violation) => Some((violation, kind.count)),
            _ => None,
        })
    }

    /// How many events are counted in no kind.
    pub fn dropped(&self) -> u64 {
        self.dropped
    }

    /// Whether there is nothing to tell.
    pub fn is_empty(&self) -> bool {
        self.kinds.is_empty() && self.dropped == 0
    }
}

impl Kind {
    fn count_in(&mut self, event: Event) {
        let more = if let Event::Violation(violation) = &event { violation.count() } else { 1 };
        self.count = self.count.saturating_add(more);
        let timestamp = match event {
            Event::Violation(violation) => {
                if let Some(name) = violation.comm.filter(|_| self.by.len() < PROGRAMS) {
                    self.by.insert(name);
                }
                violation.timestamp
            }
            Event::Connection(Connection { timestamp, sent, received, .. }) => {
                self.sent = self.sent.saturating_add(sent.unwrap_or_default());
                self.received = self.received.saturating_add(received.unwrap_or_default());
                timestamp
            }
            Event::Limit(limit) => limit.timestamp,
            Event::Dropped { .. } => return,
        };
        // All of one form, so that they stand in the order of time as texts do. A clock can be set back.
        if self.first.is_empty() || timestamp < self.first {
            self.first.clone_from(&timestamp);
        }
        if timestamp > self.last {
            self.last = timestamp;
        }
    }
}

/// Roughly the bytes of its texts.
fn size(event: &Event) -> usize {
    let of = |texts: &[Option<&String>]| texts.iter().flatten().map(|text| text.len()).sum::<usize>();
    let rule = |rule: &Option<super::RuleText>| rule.as_ref().map_or(0, |rule| rule.file.len() + rule.text.len());
    match event {
        Event::Violation(it) => {
            let texts = [&it.path, &it.host, &it.address, &it.because, &it.remedy, &it.detail];
            it.operation.len() + of(&texts.map(Option::as_ref)) + rule(&it.rule)
        }
        Event::Connection(it) => {
            let texts = [&it.path, &it.host, &it.address, &it.through];
            it.operation.len() + of(&texts.map(Option::as_ref)) + rule(&it.rule)
        }
        Event::Limit(_) | Event::Dropped { .. } => 0,
    }
}

#[cfg(test)]
mod tests {
    use super::super::tests::refused;
    use super::*;

    #[test]
    fn the_same_at_another_time_is_counted_with_the_first() {
        let mut tally = Tally::new(4);
        for second in [30, 10, 50] {
            let mut violation = refused("a.test", 80);
            violation.timestamp = format!("2026-01-02T03:04:{second}.000Z");
            violation.pid = Some(second);
            violation.comm = Some(format!("program {second}"));
            tally.add(Event::Violation(violation));
        }
        let kinds: Vec<_> = tally.kinds().collect();
        assert_eq!((kinds.len(), kinds[0].count, kinds[0].by.len()), (1, 3, 3));
        assert_eq!((&*kinds[0].first, &*kinds[0].last), ("2026-01-02T03:04:10.000Z", "2026-01-02T03:04:50.000Z"));
        assert_eq!(tally.dropped(), 0);
    }

    #[test]
    fn past_the_bound_the_oldest_kind_is_dropped_and_counted() {
        let mut tally = Tally::new(256);
        let add = |tally: &mut Tally, host: &str| tally.add(Event::Violation(refused(host, 80)));
        add(&mut tally, "oldest.test");
        add(&mut tally, "oldest.test");
        for round in 0..2 {
            for number in 0..256 {
                add(&mut tally, &format!("h{number}.test"));
            }
            assert_eq!((tally.kinds().count(), tally.dropped()), (256, 2), "{round}");
            assert!(tally.kinds().all(|kind| kind.count == round + 1));
        }
        assert!(tally.violations().all(|(violation, _)| violation.host.as_deref() != Some("oldest.test")));
    }

    #[test]
    fn however_long_the_texts_are_the_memory_is_bounded() {
        let mut tally = Tally::new(usize::MAX);
        for number in 0..100_u64 {
            let mut violation = refused(&format!("h{number}"), 80);
            violation.path = Some("x".repeat(1 << 20));
            tally.add(Event::Violation(violation));
        }
        let kept = tally.kinds().count() as u64;
        assert!((30..=32).contains(&kept), "{kept}");
        assert_eq!(tally.dropped() + kept, 100);
    }
}
