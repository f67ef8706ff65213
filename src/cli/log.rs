//! `srt log`: what runs have told, read back: grouped, filtered, followed, or as a page for a browser.
//!
//! Decides nothing anew: what a policy would say today is for `srt explain`.

mod filter;

pub use filter::since;

use super::arguments::{Format, Log};
use super::{files, output, status};
use filter::Filter;
use sandbox_runtime::event::{Event, Kind, Reader, Tally, page, printable, sentence};
use serde_json::{Value, json};
use std::fs::File;
use std::io::{self, BufRead, BufReader, Seek, Write};
use std::path::Path;
use std::time::Duration;

/// So many kinds are told apart. A page with as many is some megabytes.
const KINDS: usize = 10_000;

/// How often a file that is followed is looked at.
const PAUSE: Duration = Duration::from_millis(200);

pub fn log(log: &Log) -> u8 {
    match shown(log) {
        Ok(()) => 0,
        Err(message) => {
            output::complain(message);
            status::USAGE
        }
    }
}

fn shown(log: &Log) -> Result<(), String> {
    let filter = Filter::new(log)?;
    let cannot_read = |error| format!("cannot read `{}`: {error}", log.file.display());
    if log.file == Path::new("-") {
        let mut reader = Reader::new(io::stdin().lock());
        return all(log, &filter, &mut reader).map_err(cannot_read)?;
    }
    let file = File::open(&log.file).map_err(cannot_read)?;
    if log.follow && file.metadata().map_err(cannot_read)?.is_file() {
        return follow(log, &filter, file).map_err(cannot_read);
    }
    all(log, &filter, &mut Reader::new(BufReader::new(file))).map_err(cannot_read)?
}

/// Everything that is there, to its end. The error of writing a page is the inner one.
fn all<R: BufRead>(log: &Log, filter: &Filter, reader: &mut Reader<R>) -> io::Result<Result<(), String>> {
    if log.each || log.follow {
        while let Some(event) = reader.event()? {
            if filter.keeps(&event) && !tell(log, event) {
                return Ok(Ok(()));
            }
        }
        if let Some(event) = reader.last().filter(|event| filter.keeps(event)) {
            tell(log, event);
        }
        missing(reader, 0).iter().for_each(output::complain);
        return Ok(Ok(()));
    }
    let mut tally = Tally::new(KINDS);
    while let Some(event) = reader.event()? {
        if filter.keeps(&event) {
            tally.add(event);
        }
    }
    reader.last().into_iter().filter(|event| filter.keeps(event)).for_each(|event| tally.add(event));
    let missing = missing(reader, tally.dropped());
    if let Some(path) = &log.html {
        return Ok(write_page(path, &page(&tally, &missing)));
    }
    match log.format {
        Format::Human => {
            let line = |kind: &Kind| format!("{}  {}\n", moment(&kind.last), sentence(kind));
            output::print(&tally.kinds().map(line).collect::<String>());
            missing.iter().for_each(output::complain);
        }
        Format::Json => output::print_json(&json!({
            "kinds": tally.kinds().map(kind).collect::<Vec<_>>(),
            "dropped": tally.dropped(),
            "unread": reader.unread(),
            "unknown": reader.unknown(),
        })),
    }
    Ok(Ok(()))
}

/// What comes, until nobody reads it. A file that became shorter than what was read of it was begun anew.
fn follow(log: &Log, filter: &Filter, mut file: File) -> io::Result<()> {
    // Both have one place in the file.
    let mut reader = Reader::new(BufReader::new(file.try_clone()?));
    loop {
        while let Some(event) = reader.event()? {
            if filter.keeps(&event) && !tell(log, event) {
                return Ok(());
            }
        }
        std::thread::sleep(PAUSE);
        if file.metadata()?.len() < file.stream_position()? {
            file.rewind()?;
            reader.restart(BufReader::new(file.try_clone()?));
        }
    }
}

/// Prints one event; whether anybody still reads.
fn tell(log: &Log, event: Event) -> bool {
    let line = match log.format {
        Format::Json => serde_json::to_string(&event).unwrap_or_default(),
        Format::Human => {
            let who = match &event {
                Event::Violation(it) => who(it.comm.as_deref(), it.pid),
                _ => String::new(),
            };
            let moment = event.timestamp().map(moment);
            let mut tally = Tally::new(1);
            tally.add(event.clone());
            let said = match (tally.kinds().next(), event) {
                (Some(kind), _) => sentence(kind),
                (None, Event::Dropped { count }) => format!("{} dropped", output::count_u64(count, "event")),
                (None, _) => return true,
            };
            format!("{}  {who}{said}", moment.unwrap_or_else(|| " ".repeat(19)))
        }
    };
    let mut out = io::stdout().lock();
    writeln!(out, "{line}").and_then(|()| out.flush()).is_ok()
}

fn who(comm: Option<&str>, pid: Option<i32>) -> String {
    let comm = comm.map(printable).unwrap_or_default();
    match pid {
        Some(pid) => format!("{comm}[{pid}]  "),
        None if comm.is_empty() => comm,
        None => format!("{comm}  "),
    }
}

/// `2026-01-31 08:00:00` of a timestamp.
fn moment(timestamp: &str) -> String {
    timestamp.get(..19).unwrap_or(timestamp).replacen('T', " ", 1)
}

/// What is not shown, in sentences.
fn missing<R: BufRead>(reader: &Reader<R>, dropped: u64) -> Vec<String> {
    let said = [
        (
            dropped,
            "event",
            "missing: it was dropped, here or when it happened",
            "missing: they were dropped, here or when they happened",
        ),
        (reader.unread(), "line", "no event", "no events"),
        (
            reader.unknown(),
            "event",
            "of a kind that this version does not know",
            "of kinds that this version does not know",
        ),
    ];
    let some = said.into_iter().filter(|(count, ..)| *count > 0);
    some.map(|(count, noun, one, many)| {
        let (verb, what) = if count == 1 { ("is", one) } else { ("are", many) };
        format!("{} {verb} {what}", output::count_u64(count, noun))
    })
    .collect()
}

/// A kind for programs: an event's fields, but for those that tell its events apart.
fn kind(kind: &Kind) -> Value {
    let mut value = serde_json::to_value(&kind.event).unwrap_or_default();
    if let Some(fields) = value.as_object_mut() {
        fields.remove("timestamp");
        for (name, value) in [
            ("count", json!(kind.count)),
            ("first", json!(kind.first)),
            ("last", json!(kind.last)),
            ("by", json!(kind.by)),
        ] {
            fields.insert(name.to_owned(), value);
        }
        if matches!(kind.event, Event::Connection(_)) {
            fields.insert("sent".to_owned(), json!(kind.sent));
            fields.insert("received".to_owned(), json!(kind.received));
        }
    }
    value
}

fn write_page(path: &Path, page: &str) -> Result<(), String> {
    if path == Path::new("-") {
        output::print(page);
        return Ok(());
    }
    files::replace(path, page.as_bytes()).map_err(|error| format!("cannot write `{}`: {error}", path.display()))
}
