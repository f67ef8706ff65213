//! Surroundings that are asked on a thread of their own, and waited for a short while: a directory that does not answer keeps
//! nobody waiting, least of all who asks about something else.

use super::{Entry, Surroundings};
use crate::resolve::{Files, Text};
use std::io;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, mpsc};
use std::time::Duration;

/// How long one who types is kept waiting.
const PATIENCE: Duration = Duration::from_millis(100);

/// How many may hang at once; as long as they do, nothing more is asked.
const HANGING: usize = 4;

/// The surroundings, and how many threads wait for them.
pub struct Patient<S> {
    around: Arc<S>,
    hanging: Arc<AtomicUsize>,
}

impl<S> Patient<S> {
    pub fn new(around: S) -> Self {
        Self { around: Arc::new(around), hanging: Arc::default() }
    }
}

impl<S: Surroundings> Files for Patient<S> {
    /// As it is: what is checked is checked beside the conversation.
    fn read(&self, path: &str) -> io::Result<Text> {
        self.around.read(path)
    }
}

impl<S: Surroundings + 'static> Surroundings for Patient<S> {
    fn entries(&self, directory: &str) -> Option<Vec<Entry>> {
        if self.hanging.fetch_add(1, Ordering::Relaxed) >= HANGING {
            self.hanging.fetch_sub(1, Ordering::Relaxed);
            return None;
        }
        let (around, hanging) = (Arc::clone(&self.around), Arc::clone(&self.hanging));
        let (answer, answered) = mpsc::channel();
        let directory = directory.to_owned();
        let asked = std::thread::Builder::new().spawn(move || {
            let entries = around.entries(&directory);
            hanging.fetch_sub(1, Ordering::Relaxed);
            // Who asked may have gone on.
            let _ = answer.send(entries);
        });
        if asked.is_err() {
            self.hanging.fetch_sub(1, Ordering::Relaxed);
            return None;
        }
        answered.recv_timeout(PATIENCE).ok().flatten()
    }

    fn home(&self) -> Option<String> {
        self.around.home()
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use std::sync::{Condvar, Mutex};
    use std::time::Instant;

    /// `/here` answers; anything else does not, until it is let go.
    #[derive(Default)]
    struct Slow {
        released: Mutex<bool>,
        wake: Condvar,
    }

    impl Files for Arc<Slow> {
        fn read(&self, _: &str) -> io::Result<Text> {
            Err(io::ErrorKind::NotFound.into())
        }
    }

    impl Surroundings for Arc<Slow> {
        fn entries(&self, directory: &str) -> Option<Vec<Entry>> {
            if directory != "/here" {
                let released = self.released.lock().unwrap();
                drop(self.wake.wait_while(released, |released| !*released).unwrap());
            }
            Some(vec![Entry { name: "a".to_owned(), is_directory: false }])
        }

        fn home(&self) -> Option<String> {
            None
        }
    }

    #[test]
    fn what_does_not_answer_keeps_nobody_waiting() {
        let slow = Arc::new(Slow::default());
        let around = Patient::new(Arc::clone(&slow));
        let start = Instant::now();
        for number in 0..HANGING {
            assert_eq!(around.entries("/share"), None);
            // Others are still answered, as long as one more may hang.
            assert_eq!(around.entries("/here").is_some(), number + 1 < HANGING);
        }
        // No longer waited for at all.
        let full = Instant::now();
        assert_eq!(around.entries("/share"), None);
        assert!(full.elapsed() < PATIENCE / 2 && start.elapsed() < PATIENCE * 20);
        *slow.released.lock().unwrap() = true;
        slow.wake.notify_all();
        while around.entries("/here").is_none() {
            std::thread::yield_now();
        }
    }
}
