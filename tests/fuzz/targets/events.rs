//! Any file of events is read to its end; each of its lines is an event, or is counted; what is read says itself again, and can
//! be counted, told and shown.

#![no_main]

use libfuzzer_sys::fuzz_target;
use sandbox_runtime::event::{Event, Reader, Tally, page, summary};

fuzz_target!(|bytes: &[u8]| {
    let mut reader = Reader::new(bytes);
    let mut events: Vec<Event> = Vec::new();
    while let Some(event) = reader.event().expect("memory can be read") {
        events.push(event);
    }
    events.extend(reader.last());
    let lines = bytes.split(|byte| *byte == b'\n').filter(|line| !line.is_empty()).count();
    let counted = events.len() as u64 + reader.unread() + reader.unknown();
    assert!(counted <= lines as u64 + 1, "{counted} of {lines} lines");

    let mut tally = Tally::new(16);
    for event in &events {
        let line = serde_json::to_vec(event).expect("an event can be written");
        let mut again = Reader::new(&line[..]);
        assert_eq!(again.event().expect("memory can be read"), None, "a line ends with its end");
        assert_eq!(again.last().as_ref(), Some(event));
        tally.add(event.clone());
    }
    let _ = page(&tally, &[]);
    let _ = summary(events);
});
