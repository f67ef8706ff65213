//! What the summary at the end is made of.

use super::summary::render;
use super::{Event, Sink, Tally, lock};
use std::sync::Mutex;

/// How many different refusals are remembered; a loop that is refused a million times is one.
const KINDS: usize = 256;

/// A sink that counts equal refusals together, and keeps a bounded number of different ones.
#[derive(Debug)]
pub struct Collector {
    tally: Mutex<Tally>,
}

impl Default for Collector {
    fn default() -> Self {
        Self { tally: Mutex::new(Tally::new(KINDS)) }
    }
}

impl Collector {
    /// What there is to say at the end: lines without a final newline, `None` when nothing happened.
    pub fn summary(&self) -> Option<String> {
        let tally = lock(&self.tally);
        (!tally.is_empty()).then(|| render(&tally))
    }

    /// The tally as it stands.
    pub fn tally(&self) -> Tally {
        lock(&self.tally).clone()
    }
}

impl Sink for Collector {
    fn report(&self, event: Event) {
        // People are told what was refused; that a limit was passed, whoever started it says.
        if matches!(event, Event::Violation(_) | Event::Dropped { .. }) {
            lock(&self.tally).add(event);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_happened_is_nothing_to_say() {
        assert_eq!(Collector::default().summary(), None);
    }
}
