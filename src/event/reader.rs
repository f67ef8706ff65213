//! Events read back from JSON lines.
//!
//! The file may be one that the command could write: whatever stands there, a line is of bounded length, is an event of the
//! form that [`Lines`](super::Lines) writes, or is counted. What an event *says* is a stranger's word all the same.

use super::Event;
use super::clock::is_timestamp;
use serde::Deserialize;
use std::io::{self, BufRead};

/// The longest line, in bytes: all fields of the longest path there is (`PATH_MAX`, 4096), each character escaped, take half of it.
const LONGEST: usize = 64 << 10;

/// Reads events from lines, and counts what are none.
#[derive(Debug)]
pub struct Reader<R> {
    lines: R,
    /// A line that has begun.
    part: Vec<u8>,
    /// Whether the rest of this line is passed over.
    too_long: bool,
    unread: u64,
    unknown: u64,
}

impl<R: BufRead> Reader<R> {
    pub fn new(lines: R) -> Self {
        Self { lines, part: Vec::new(), too_long: false, unread: 0, unknown: 0 }
    }

    /// The next event; `None` where there is no whole line more now: later there may be.
    ///
    /// # Errors
    /// Whatever reading fails with.
    pub fn event(&mut self) -> io::Result<Option<Event>> {
        while self.line()? {
            let event = self.parse();
            self.part.clear();
            if event.is_some() {
                return Ok(event);
            }
        }
        Ok(None)
    }

    /// What stands at the end without the end of a line, where nothing more will come.
    pub fn last(&mut self) -> Option<Event> {
        let begun = self.too_long || !self.part.is_empty();
        let event = if begun { self.parse() } else { None };
        self.part.clear();
        event
    }

    /// Begins anew with other lines; what was counted stays.
    pub fn restart(&mut self, lines: R) {
        self.lines = lines;
        self.part.clear();
        self.too_long = false;
    }

    /// How many lines are no events, or no whole ones.
    pub fn unread(&self) -> u64 {
        self.unread
    }

    /// How many are events of a type that is not known here.
    pub fn unknown(&self) -> u64 {
        self.unknown
    }

    /// Reads on to the end of a line; whether it is there.
    fn line(&mut self) -> io::Result<bool> {
        loop {
            let there = match self.lines.fill_buf() {
                Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
                there => there?,
            };
            if there.is_empty() {
                return Ok(false);
            }
            let end = there.iter().position(|byte| *byte == b'\n');
            let count = end.unwrap_or(there.len());
            if self.part.len() + count > LONGEST {
                self.too_long = true;
                self.part.clear();
            }
            if !self.too_long {
                self.part.extend_from_slice(&there[..count]);
            }
            let taken = if end.is_some() { count + 1 } else { count };
            self.lines.consume(taken);
            if end.is_some() {
                return Ok(true);
            }
        }
    }

    fn parse(&mut self) -> Option<Event> {
        #[derive(Deserialize)]
        struct Typed {
            r#type: String,
        }
        if std::mem::take(&mut self.too_long) {
            self.unread += 1;
            return None;
        }
        let line = self.part.trim_ascii();
        if line.is_empty() {
            return None;
        }
        if let Ok(event) = serde_json::from_slice::<Event>(line) {
            if event.timestamp().is_none_or(is_timestamp) {
                return Some(event);
            }
        } else if let Ok(Typed { r#type }) = serde_json::from_slice(line)
            && !["violation", "connection", "limit", "dropped"].contains(&&*r#type)
        {
            self.unknown += 1;
            return None;
        }
        self.unread += 1;
        None
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::super::tests::refused;
    use super::*;

    fn line(number: u16) -> String {
        format!("{}\n", serde_json::to_string(&Event::Violation(refused("a.test", number))).unwrap())
    }

    fn all(bytes: &[u8]) -> (Vec<Event>, u64, u64) {
        let mut reader = Reader::new(bytes);
        let mut events = Vec::new();
        while let Some(event) = reader.event().unwrap() {
            events.push(event);
        }
        events.extend(reader.last());
        (events, reader.unread(), reader.unknown())
    }

    #[test]
    fn what_is_written_is_read_back() {
        let text = format!("{}{{\"type\":\"dropped\",\"count\":7}}\n\n{}", line(80), line(81).trim_end());
        let (events, unread, unknown) = all(text.as_bytes());
        let expected = [
            Event::Violation(refused("a.test", 80)),
            Event::Dropped { count: 7 },
            Event::Violation(refused("a.test", 81)),
        ];
        assert_eq!((&*events, unread, unknown), (&expected[..], 0, 0));
    }

    #[test]
    fn what_is_no_event_is_counted() {
        let long = format!("{{\"type\":\"violation\",\"comm\":\"{}\"}}\n", "x".repeat(LONGEST));
        let deep = format!("{}\n", "[".repeat(1000));
        let other = "{\"type\":\"later\",\"x\":[1]}\n";
        let old = line(80).replace("2026-01-02T03:04:05.006Z", "yesterday");
        let twice = line(80).replace("\"port\":80", "\"port\":80,\"port\":81");
        let rest = ["\u{1b}[2J\n", "{}\n", "null\n", "\u{0}\n", &long, &deep, other, &old, &twice, "{\"type\":\"viol"];
        let text = format!("{}{}", rest[..9].concat(), line(82)) + rest[9];
        let (events, unread, unknown) = all(text.as_bytes());
        assert_eq!((&*events, unread, unknown), (&[Event::Violation(refused("a.test", 82))][..], 9, 1));
        let (events, unread, _) = all(&[b"\xff\xfe\n".repeat(3), line(1).into_bytes()].concat());
        assert_eq!((events.len(), unread), (1, 3));
    }

    /// A line that comes in parts is one, however they are cut.
    #[test]
    fn half_a_line_waits_for_its_other_half() {
        /// Gives one part at a time; an empty one is the end of what is there for now.
        struct Parts(Vec<Vec<u8>>, usize);
        impl io::Read for Parts {
            fn read(&mut self, _: &mut [u8]) -> io::Result<usize> {
                unreachable!("lines are read by their buffer")
            }
        }
        impl BufRead for Parts {
            fn fill_buf(&mut self) -> io::Result<&[u8]> {
                let Some(first) = self.0.first() else { return Ok(&[]) };
                if self.1 == first.len() {
                    self.0.remove(0);
                    self.1 = 0;
                    return Ok(&[]);
                }
                Ok(&self.0[0][self.1..])
            }
            fn consume(&mut self, count: usize) {
                self.1 += count;
            }
        }
        let whole = line(80);
        for cut in 1..whole.len() {
            let parts = [&whole.as_bytes()[..cut], &whole.as_bytes()[cut..]].map(<[u8]>::to_vec);
            let mut reader = Reader::new(Parts(parts.to_vec(), 0));
            assert_eq!(reader.event().unwrap(), None, "{cut}");
            assert_eq!(reader.event().unwrap(), Some(Event::Violation(refused("a.test", 80))), "{cut}");
            assert_eq!(reader.unread(), 0);
        }
    }

    #[test]
    fn a_file_that_is_begun_anew_is_read_anew() {
        let one = line(80);
        let mut reader = Reader::new(&one.as_bytes()[..20]);
        assert_eq!(reader.event().unwrap(), None);
        reader.restart(one.as_bytes());
        assert!(reader.event().unwrap().is_some());
    }
}
