//! Events as JSON lines.

use super::{Event, Sink, lock};
use std::collections::VecDeque;
use std::io::{self, ErrorKind, Write};
use std::sync::Mutex;

/// How many bytes of lines are kept while the writer takes none.
const BUFFER: usize = 256 << 10;

/// A sink that writes one JSON object a line.
///
/// The writer must answer [`ErrorKind::WouldBlock`] instead of waiting (a file, or a descriptor set to non-blocking);
/// what it does not take now is kept up to a bound and tried again with the next event and by [`flush`](Self::flush).
/// Past the bound the oldest whole line is dropped; where lines were dropped stands
/// `{"type":"dropped","count":N}`. A writer that fails for good is given nothing more, and every event is counted as
/// dropped.
pub struct Lines<W> {
    state: Mutex<State<W>>,
}

struct State<W> {
    writer: W,
    pending: VecDeque<Line>,
    /// Bytes in `pending`.
    size: usize,
    /// How many bytes of the first pending line are written: it can't be dropped any more.
    written: usize,
    /// Events dropped since the last line that says so.
    unsaid: u64,
    dropped: u64,
    failed: Option<ErrorKind>,
}

/// What is not written yet.
struct Line {
    text: Vec<u8>,
    /// How many events it stands for.
    events: u64,
    /// It says that these were dropped.
    says_dropped: bool,
}

impl<W: Write + Send> Lines<W> {
    /// Writes to `writer`; see the type for what it must not do.
    pub fn new(writer: W) -> Self {
        let state =
            State { writer, pending: VecDeque::new(), size: 0, written: 0, unsaid: 0, dropped: 0, failed: None };
        Self { state: Mutex::new(state) }
    }

    /// Writes what is still kept; afterwards, how many events were dropped in all.
    ///
    /// # Errors
    /// What the writer failed with; `WouldBlock` when it takes no more now.
    pub fn flush(&self) -> io::Result<u64> {
        let mut state = lock(&self.state);
        state.drain();
        match state.failed {
            Some(kind) => Err(kind.into()),
            None if !state.pending.is_empty() => Err(ErrorKind::WouldBlock.into()),
            None => state.writer.flush().map(|()| state.dropped),
        }
    }
}

impl<W: Write + Send> Sink for Lines<W> {
    fn report(&self, event: Event) {
        let mut state = lock(&self.state);
        state.push(&event);
        state.drain();
    }

    fn wants_connections(&self) -> bool {
        true
    }
}

impl<W: Write> State<W> {
    fn push(&mut self, event: &Event) {
        let events = match event {
            Event::Violation(violation) => violation.count(),
            Event::Dropped { count } => *count,
            Event::Connection(_) | Event::Limit(_) => 1,
        };
        let Ok(mut line) = serde_json::to_vec(event) else { return self.lose(events) };
        line.push(b'\n');
        if self.failed.is_some() || line.len() > BUFFER {
            return self.lose(events);
        }
        while self.size + line.len() > BUFFER {
            // The first line stays if a part of it is out.
            let oldest = self.pending.remove(usize::from(self.written > 0));
            let Some(oldest) = oldest else { return self.lose(events) };
            self.size -= oldest.text.len();
            if oldest.says_dropped {
                self.unsaid = self.unsaid.saturating_add(oldest.events);
            } else {
                self.lose(oldest.events);
            }
        }
        self.size += line.len();
        self.pending.push_back(Line { text: line, events, says_dropped: false });
    }

    fn lose(&mut self, events: u64) {
        self.dropped = self.dropped.saturating_add(events);
        self.unsaid = self.unsaid.saturating_add(events);
    }

    fn drain(&mut self) {
        while self.failed.is_none() {
            if self.unsaid > 0 && self.written == 0 {
                let Ok(mut line) = serde_json::to_vec(&Event::Dropped { count: self.unsaid }) else { return };
                line.push(b'\n');
                self.size += line.len();
                self.pending.push_front(Line { text: line, events: self.unsaid, says_dropped: true });
                self.unsaid = 0;
            }
            let Some(Line { text: line, .. }) = self.pending.front() else { return };
            match self.writer.write(&line[self.written..]) {
                Ok(0) => self.failed = Some(ErrorKind::WriteZero),
                Ok(count) if self.written + count < line.len() => self.written += count,
                Ok(_) => {
                    self.size -= line.len();
                    self.written = 0;
                    self.pending.pop_front();
                }
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) if error.kind() == ErrorKind::WouldBlock => return,
                Err(error) => self.failed = Some(error.kind()),
            }
        }
        let lost = self.pending.iter().filter(|line| !line.says_dropped);
        let gone = lost.fold(0_u64, |sum, line| sum.saturating_add(line.events));
        self.dropped = self.dropped.saturating_add(gone);
        self.pending = VecDeque::new();
        self.size = 0;
        self.written = 0;
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::super::tests::refused;
    use super::*;
    use std::sync::Arc;

    /// Takes `room` bytes, then would block.
    #[derive(Clone, Default)]
    struct Pipe(Arc<Mutex<(Vec<u8>, usize)>>);

    impl Pipe {
        fn make_room(&self, room: usize) {
            self.0.lock().unwrap().1 = room;
        }
        fn text(&self) -> String {
            String::from_utf8(self.0.lock().unwrap().0.clone()).unwrap()
        }
    }

    impl Write for Pipe {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            let (text, room) = &mut *self.0.lock().unwrap();
            if *room == 0 {
                return Err(ErrorKind::WouldBlock.into());
            }
            let count = bytes.len().min(*room);
            text.extend_from_slice(&bytes[..count]);
            *room -= count;
            Ok(count)
        }
        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    fn event(number: usize) -> Event {
        Event::Violation(refused(&format!("h{number}.test"), 80))
    }

    #[test]
    fn a_line_each() {
        let pipe = Pipe::default();
        pipe.make_room(usize::MAX);
        let lines = Lines::new(pipe.clone());
        lines.report(event(1));
        lines.report(event(2));
        assert_eq!(lines.flush().unwrap(), 0);
        let text = pipe.text();
        assert_eq!(text.lines().count(), 2);
        for line in text.lines() {
            assert_eq!(serde_json::from_str::<serde_json::Value>(line).unwrap()["type"], "violation");
        }
    }

    #[test]
    fn a_full_pipe_drops_the_oldest_whole_lines_and_says_how_many() {
        let pipe = Pipe::default();
        let lines = Lines::new(pipe.clone());
        pipe.make_room(10); // a part of the first line
        let all = 5000;
        for number in 0..all {
            lines.report(event(number));
        }
        assert!(lock(&lines.state).size <= BUFFER);
        assert_eq!(lines.flush().unwrap_err().kind(), ErrorKind::WouldBlock);
        pipe.make_room(usize::MAX);
        let dropped = lines.flush().unwrap();
        assert!(dropped > 0);
        let text = pipe.text();
        let values: Vec<serde_json::Value> = text.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
        assert_eq!(values[0]["host"], "h0.test", "a line that was begun is finished");
        assert_eq!(values[1], serde_json::json!({"type": "dropped", "count": dropped}));
        assert_eq!(values.last().unwrap()["host"], format!("h{}.test", all - 1), "the newest is kept");
        assert_eq!(values.len() as u64 - 1 + dropped, all as u64);
    }

    #[test]
    fn a_writer_that_failed_is_given_nothing_more() {
        struct Broken(u32);
        impl Write for Broken {
            fn write(&mut self, _: &[u8]) -> io::Result<usize> {
                self.0 += 1;
                assert_eq!(self.0, 1);
                Err(ErrorKind::BrokenPipe.into())
            }
            fn flush(&mut self) -> io::Result<()> {
                Ok(())
            }
        }
        let lines = Lines::new(Broken(0));
        (0..10).for_each(|number| lines.report(event(number)));
        assert_eq!(lines.flush().unwrap_err().kind(), ErrorKind::BrokenPipe);
        assert_eq!(lock(&lines.state).dropped, 10);
    }
}
