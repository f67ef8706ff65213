//! A sink that passes on once what a command tries again and again: programs probe (a cache that they cannot write, a file that they
//! look for in ten places), and whoever reads events reads each of these once.
//!
//! Of predicted refusals alone, which the kernel decides. What was refused is passed on each time. Decides nothing, and loses nothing
//! but when each of the later ones was, and by which process.

use super::{Event, Outcome, Sink, Violation, lock};
use std::collections::HashMap;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

/// So many different ones are remembered.
const MOST: usize = 1024;

/// What goes on is told again so often.
const AGAIN: Duration = Duration::from_secs(1);

/// Passes the first of equal predictions on at once, and later ones together, with how many they are: with the first of them that
/// comes a second after the last that was passed on, and at the end.
pub struct Repeated {
    sink: Arc<dyn Sink>,
    known: Mutex<HashMap<Violation, Held>>,
}

/// What is not passed on yet of what has been before.
struct Held {
    passed_on: Instant,
    /// The last one, and how many.
    last: Option<Violation>,
    count: u64,
}

impl Repeated {
    pub fn new(sink: Arc<dyn Sink>) -> Self {
        Self { sink, known: Mutex::default() }
    }

    /// Passes on what is held.
    pub fn flush(&self) {
        self.pass_on(&mut lock(&self.known));
    }

    fn pass_on(&self, known: &mut HashMap<Violation, Held>) {
        let mut held: Vec<Violation> = known.values_mut().filter_map(Held::take).collect();
        held.sort_by(|one, other| one.timestamp.cmp(&other.timestamp));
        for violation in held {
            self.sink.report(Event::Violation(violation));
        }
    }

    fn take(&self, violation: Violation, now: Instant) {
        let mut known = lock(&self.known);
        // By programs, not by processes: a program that is started a thousand times probes a thousand times.
        let alike = Violation { timestamp: String::new(), pid: None, count: None, ..violation.clone() };
        if let Some(held) = known.get_mut(&alike) {
            held.count += violation.count();
            held.last = Some(violation);
            if now.duration_since(held.passed_on) >= AGAIN {
                held.passed_on = now;
                if let Some(violation) = held.take() {
                    self.sink.report(Event::Violation(violation));
                }
            }
            return;
        }
        if known.len() >= MOST {
            self.pass_on(&mut known);
            known.clear();
        }
        known.insert(alike, Held { passed_on: now, last: None, count: 0 });
        self.sink.report(Event::Violation(violation));
    }
}

impl Held {
    fn take(&mut self) -> Option<Violation> {
        let violation = self.last.take()?;
        let count = std::mem::take(&mut self.count);
        Some(Violation { count: (count > 1).then_some(count), ..violation })
    }
}

impl Sink for Repeated {
    fn report(&self, event: Event) {
        match event {
            Event::Violation(violation) if violation.outcome == Outcome::Predicted => {
                self.take(violation, Instant::now());
            }
            event => self.sink.report(event),
        }
    }

    fn wants_connections(&self) -> bool {
        self.sink.wants_connections()
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[derive(Default)]
    struct Heard(Mutex<Vec<(String, u64)>>);

    impl Sink for Heard {
        fn report(&self, event: Event) {
            let Event::Violation(violation) = event else { return };
            let line = format!("{} {}", violation.comm.clone().unwrap(), violation.path.clone().unwrap());
            lock(&self.0).push((line, violation.count()));
        }
    }

    fn probe(comm: &str, path: &str, pid: i32) -> Violation {
        Violation {
            comm: Some(comm.into()),
            path: Some(path.into()),
            pid: Some(pid),
            outcome: Outcome::Predicted,
            ..Violation::refused("write")
        }
    }

    #[test]
    fn the_first_is_told_at_once_and_the_rest_counted() {
        let heard = Arc::new(Heard::default());
        let repeated = Repeated::new(heard.clone());
        let begin = Instant::now();
        for (n, after) in [0, 10, 20, 1100, 1200].into_iter().enumerate() {
            repeated.take(probe("sh", "/a", n.try_into().unwrap()), begin + Duration::from_millis(after));
        }
        repeated.take(probe("cc", "/a", 1), begin);
        repeated.take(probe("sh", "/b", 1), begin);
        let told = |line: &str, count| (line.to_owned(), count);
        let expected = [told("sh /a", 1), told("sh /a", 3), told("cc /a", 1), told("sh /b", 1)];
        assert_eq!(*lock(&heard.0), expected);
        repeated.flush();
        repeated.flush();
        assert_eq!(lock(&heard.0).split_off(4), [told("sh /a", 1)]);
    }

    #[test]
    fn what_was_refused_is_told_each_time() {
        let heard = Arc::new(Heard::default());
        let repeated = Repeated::new(heard.clone());
        for _ in 0..3 {
            repeated.report(Event::Violation(Violation { outcome: Outcome::Refused, ..probe("sh", "/a", 1) }));
        }
        assert_eq!(lock(&heard.0).len(), 3);
    }

    #[test]
    fn a_flood_is_held_in_bounds_and_counted() {
        let heard = Arc::new(Heard::default());
        let repeated = Repeated::new(heard.clone());
        let now = Instant::now();
        let all = 3 * MOST;
        for _ in 0..3 {
            for n in 0..all {
                repeated.take(probe("sh", &format!("/{n}"), 1), now);
                repeated.take(probe("sh", &format!("/{n}"), 1), now);
                assert!(lock(&repeated.known).len() <= MOST);
            }
        }
        repeated.flush();
        let counted: u64 = lock(&heard.0).iter().map(|(_, count)| count).sum();
        assert_eq!(counted, 6 * all as u64);
    }
}
