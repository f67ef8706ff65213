//! Messages on a byte stream, as the base protocol frames them: headers, an empty line, so many bytes of JSON.
//!
//! Rubbish is told apart from the end: what cannot be read is said, and reading goes on at the next header. Knows no methods.

use lsp_server::{ErrorCode, Message};
use std::io::{self, BufRead, Read, Write};

/// How large one message may be, in bytes: a document may be 16 MiB, and JSON escapes make it longer.
const LARGEST: usize = 128 << 20;
/// How long one line of headers may be.
const LONGEST_LINE: u64 = 8 << 10;
const LENGTH: &[u8] = b"content-length:";

/// What came in.
#[derive(Debug)]
pub(super) enum Incoming {
    Message(Message),
    /// What is answered to something that is no message: it has no id that could be known.
    Rubbish(ErrorCode, String),
}

/// Reads up to the end of the next message, or of what was to be one; `None` at the end of the stream.
pub(super) fn read(input: &mut dyn BufRead) -> io::Result<Option<Incoming>> {
    let mut length = None;
    let mut skipped = false;
    loop {
        let mut line = Vec::new();
        if input.take(LONGEST_LINE).read_until(b'\n', &mut line)? == 0 {
            return Ok(None);
        }
        let line = line.trim_ascii();
        // After a length that was too small, the next header stands behind the rest of the last message.
        let lower = line.to_ascii_lowercase();
        if let Some(at) = lower.windows(LENGTH.len()).rposition(|part| part == LENGTH) {
            let number = str::from_utf8(line[at + LENGTH.len()..].trim_ascii()).ok();
            length = number.and_then(|number| number.parse::<usize>().ok()).filter(|length| *length <= LARGEST);
            skipped |= at > 0 || length.is_none();
        } else if line.is_empty() {
            match length {
                Some(length) => {
                    let Some(body) = exactly(input, length)? else { return Ok(None) };
                    return Ok(Some(parse(&body)));
                }
                None if skipped => {
                    let said = "what came before is no message: a header `Content-Length: N` is wanted";
                    return Ok(Some(Incoming::Rubbish(ErrorCode::ParseError, said.to_owned())));
                }
                None => {}
            }
        } else if !lower.starts_with(b"content-type:") {
            skipped = true;
        }
    }
}

/// So many bytes; `None` where the stream ends before.
fn exactly(input: &mut dyn BufRead, length: usize) -> io::Result<Option<Vec<u8>>> {
    let mut body = Vec::new();
    // Never more room than what really came: a length is only a claim.
    input.take(length as u64).read_to_end(&mut body)?;
    Ok((body.len() == length).then_some(body))
}

fn parse(body: &[u8]) -> Incoming {
    let value = match serde_json::from_slice::<serde_json::Value>(body) {
        Ok(value) => value,
        Err(error) => return Incoming::Rubbish(ErrorCode::ParseError, format!("this is no JSON: {error}")),
    };
    match serde_json::from_value(value) {
        Ok(message) => Incoming::Message(message),
        Err(_) => Incoming::Rubbish(ErrorCode::InvalidRequest, "this is no message of the protocol".to_owned()),
    }
}

/// Writes one message.
pub(super) fn write(output: &mut dyn Write, message: &Message) -> io::Result<()> {
    message.write(&mut Flushing(output))
}

/// Answers what had no id.
pub(super) fn refuse(output: &mut dyn Write, code: ErrorCode, said: &str) -> io::Result<()> {
    let error = serde_json::json!({ "code": code as i32, "message": said });
    let body = serde_json::json!({ "jsonrpc": "2.0", "id": null, "error": error }).to_string();
    write!(output, "Content-Length: {}\r\n\r\n{body}", body.len())?;
    output.flush()
}

/// A writer behind a reference, with a size.
struct Flushing<'a>(&'a mut dyn Write);

impl Write for Flushing<'_> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.0.flush()
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    /// What is read of a stream: methods, and `!` for rubbish.
    fn read_all(mut stream: &[u8]) -> Vec<String> {
        let mut all = Vec::new();
        while let Some(incoming) = read(&mut stream).unwrap() {
            all.push(match incoming {
                Incoming::Message(Message::Notification(one)) => one.method,
                Incoming::Message(other) => format!("{other:?}"),
                Incoming::Rubbish(..) => "!".to_owned(),
            });
        }
        all
    }

    fn framed(body: &str, length: usize) -> String {
        format!("Content-Length: {length}\r\n\r\n{body}")
    }

    fn good(method: &str) -> String {
        let body = format!("{{\"jsonrpc\":\"2.0\",\"method\":\"{method}\"}}");
        framed(&body, body.len())
    }

    #[test]
    fn reading_goes_on_after_rubbish() {
        let broken = framed("{\"method\":", 10);
        let short = framed("{\"method\":\"a\"}", 5);
        let unframed = "{\"method\":\"a\"}\r\n\r\n".to_owned();
        let huge = "Content-Length: 99999999999999999999999\r\n\r\n".to_owned();
        let negative = "Content-Length: -1\r\n\r\n".to_owned();
        for rubbish in [broken, unframed, huge, negative] {
            let stream = good("one") + &rubbish + &good("two");
            assert_eq!(read_all(stream.as_bytes()), ["one", "!", "two"], "{rubbish}");
        }
        let stream = short + &good("two");
        assert_eq!(read_all(stream.as_bytes()), ["!", "two"]);
        let stream = format!("content-length:{}\r\nContent-Type: x; charset=utf-8\r\n\r\n[]", 2) + &good("two");
        assert_eq!(read_all(stream.as_bytes()), ["!", "two"]);
    }

    #[test]
    fn a_length_past_the_end_is_the_end() {
        assert!(read_all(framed("{}", 1000).as_bytes()).is_empty());
    }
}
