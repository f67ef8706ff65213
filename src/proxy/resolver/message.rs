//! Messages of the domain name system (RFC 1035, section 4): one question in, one answer out. Pure, and for any bytes.

use std::net::{Ipv4Addr, Ipv6Addr};

/// How long an answer holds, in seconds: an address stays with its name, but a name may cease to exist.
const LIFETIME: u32 = 1;

const HEADER: usize = 12;
const LONGEST_NAME: usize = 255;
/// QR, opcode, RD, RA (RFC 1035, section 4.1.1).
const ANSWER: u16 = 0x8000;
const OPCODE: u16 = 0x7800;
const DESIRED: u16 = 0x0100;
const AVAILABLE: u16 = 0x0080;
const INTERNET: u16 = 1;

/// A question.
#[derive(Debug, PartialEq, Eq)]
pub struct Query<'b> {
    id: [u8; 2],
    flags: u16,
    /// As it came: an answer repeats it, the case of its letters included.
    question: &'b [u8],
    /// Labels with dots between them, without the last one. What is no letter, digit, `-` or `_` is there as `?`, which
    /// stands in no name.
    pub name: String,
    pub kind: Kind,
}

/// What is asked about the name.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// A
    Address,
    /// AAAA
    Address6,
    /// PTR
    Pointer,
    /// SVCB and HTTPS, which are asked for beside addresses (RFC 9460).
    Service,
    Other,
}

/// What there is to say.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Answer {
    Address(Ipv4Addr),
    Address6(Ipv6Addr),
    Name(String),
    Nothing(Status),
}

/// RFC 1035's RCODE.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Status {
    Good = 0,
    Format = 1,
    /// SERVFAIL
    Failure = 2,
    /// NXDOMAIN
    NoSuchName = 3,
    NotImplemented = 4,
    Refused = 5,
}

impl<'b> Query<'b> {
    /// Reads a question.
    ///
    /// # Errors
    /// The answer to what is no question that can be answered; `None` where there is nobody to answer.
    pub fn read(bytes: &'b [u8]) -> Result<Self, Option<Vec<u8>>> {
        let Some((header, rest)) = bytes.split_first_chunk::<HEADER>() else { return Err(None) };
        let id = [header[0], header[1]];
        let flags = u16::from_be_bytes([header[2], header[3]]);
        if flags & ANSWER != 0 {
            return Err(None);
        }
        let refused = |status| Err(Some(head(id, flags, status, 0, 0)));
        if flags & OPCODE != 0 {
            return refused(Status::NotImplemented);
        }
        if [header[4], header[5]] != [0, 1] {
            return refused(Status::Format);
        }
        let Some((name, length)) = name(rest) else { return refused(Status::Format) };
        let Some((question, kind, class)) = fields(rest, length) else { return refused(Status::Format) };
        if class != INTERNET {
            return refused(Status::Refused);
        }
        Ok(Self { id, flags, question, name, kind })
    }

    /// The whole message.
    pub fn answer(&self, answer: Answer) -> Vec<u8> {
        let (status, record) = match answer {
            Answer::Nothing(status) => (status, None),
            Answer::Address(address) => (Status::Good, Some((1u16, address.octets().to_vec()))),
            Answer::Address6(address) => (Status::Good, Some((28, address.octets().to_vec()))),
            Answer::Name(name) => (Status::Good, Some((12, labels(&name)))),
        };
        let mut message = head(self.id, self.flags, status, 1, u16::from(record.is_some()));
        message.extend_from_slice(self.question);
        if let Some((kind, content)) = record {
            // A pointer to the question's name, which follows the header.
            message.extend([0xc0, 12]);
            message.extend(kind.to_be_bytes());
            message.extend(INTERNET.to_be_bytes());
            message.extend(LIFETIME.to_be_bytes());
            message.extend(u16::try_from(content.len()).unwrap_or(0).to_be_bytes());
            message.extend(content);
        }
        message
    }
}

fn head(id: [u8; 2], flags: u16, status: Status, questions: u16, answers: u16) -> Vec<u8> {
    let flags = ANSWER | flags & (OPCODE | DESIRED) | AVAILABLE | status as u16;
    let mut message = Vec::with_capacity(64);
    message.extend(id);
    for number in [flags, questions, answers, 0, 0] {
        message.extend(number.to_be_bytes());
    }
    message
}

/// The question as it came, its type and its class.
fn fields(rest: &[u8], length: usize) -> Option<(&[u8], Kind, u16)> {
    let question = rest.get(..length + 4)?;
    let [.., a, b, c, d] = *question else { return None };
    let kind = match u16::from_be_bytes([a, b]) {
        1 => Kind::Address,
        12 => Kind::Pointer,
        28 => Kind::Address6,
        64 | 65 => Kind::Service,
        _ => Kind::Other,
    };
    Some((question, kind, u16::from_be_bytes([c, d])))
}

/// A name without pointers, and how many bytes it is. There is nothing before the first name that one could point to.
fn name(bytes: &[u8]) -> Option<(String, usize)> {
    let mut text = String::new();
    let mut at = 0;
    loop {
        let length = usize::from(*bytes.get(at)?);
        at += 1;
        if length == 0 {
            return Some((text, at));
        }
        if length > 63 || at + length >= LONGEST_NAME {
            return None;
        }
        if !text.is_empty() {
            text.push('.');
        }
        let label = bytes.get(at..at + length)?;
        text.extend(label.iter().map(|byte| match byte {
            b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'-' | b'_' => char::from(*byte),
            _ => '?',
        }));
        at += length;
    }
}

/// The wire form of a canonical name.
fn labels(name: &str) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(name.len() + 2);
    for label in name.split('.') {
        bytes.push(u8::try_from(label.len()).unwrap_or(0));
        bytes.extend(label.bytes());
    }
    bytes.push(0);
    bytes
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use proptest::prelude::*;

    fn question(name: &str, kind: u16) -> Vec<u8> {
        let mut bytes = vec![0x12, 0x34, 1, 0, 0, 1, 0, 0, 0, 0, 0, 0];
        bytes.extend(labels(name));
        bytes.extend(kind.to_be_bytes());
        bytes.extend([0, 1]);
        bytes
    }

    #[test]
    fn a_question_is_read_and_answered() {
        let bytes = question("wWw.a.test", 1);
        let query = Query::read(&bytes).unwrap();
        assert_eq!((query.name.as_str(), query.kind), ("wWw.a.test", Kind::Address));
        let answer = query.answer(Answer::Address(Ipv4Addr::new(198, 18, 0, 16)));
        let mut expected = vec![0x12, 0x34, 0x81, 0x80, 0, 1, 0, 1, 0, 0, 0, 0];
        expected.extend(&bytes[12..]);
        expected.extend([0xc0, 12, 0, 1, 0, 1, 0, 0, 0, 1, 0, 4, 198, 18, 0, 16]);
        assert_eq!(answer, expected);
        let nothing = query.answer(Answer::Nothing(Status::NoSuchName));
        assert_eq!((nothing[3] & 0xf, nothing.len()), (3, bytes.len()));
    }

    #[test]
    fn additional_records_are_not_looked_at() {
        let mut bytes = question("a.test", 28);
        bytes[11] = 1;
        bytes.extend([0, 0, 41, 4, 0xd0, 0, 0, 0, 0, 0, 0]);
        let query = Query::read(&bytes).unwrap();
        assert_eq!(query.kind, Kind::Address6);
        assert_eq!(query.answer(Answer::Nothing(Status::Good)).len(), bytes.len() - 11);
    }

    #[test]
    fn what_is_no_question_is_refused_or_dropped() {
        let status = |bytes: &[u8]| Query::read(bytes).unwrap_err().map(|answer| answer[3] & 0xf);
        let good = question("a.test", 1);
        assert_eq!(status(&good[..11]), None);
        assert_eq!(status(&good[..good.len() - 1]), Some(1));
        let changed = |at: usize, byte: u8| {
            let mut bytes = good.clone();
            bytes[at] = byte;
            bytes
        };
        assert_eq!(status(&changed(2, 0x80)), None, "an answer");
        assert_eq!(status(&changed(2, 0x28)), Some(4), "an update");
        assert_eq!(status(&changed(5, 2)), Some(1), "two questions");
        assert_eq!(status(&changed(5, 0)), Some(1), "none");
        assert_eq!(status(&changed(12, 0xc0)), Some(1), "a pointer");
        assert_eq!(status(&changed(12, 0x40)), Some(1), "another kind of label");
        assert_eq!(status(&changed(good.len() - 1, 3)), Some(5), "another class");
        assert_eq!(status(&question(&["a".repeat(63).as_str(); 5].join("."), 1)), Some(1), "too long");
    }

    #[test]
    fn odd_bytes_stand_in_no_name() {
        let mut bytes = question("evil.test", 1);
        for odd in [0, b'.', b' ', b'\\', 0xff] {
            bytes[14] = odd;
            assert_eq!(Query::read(&bytes).unwrap().name, "e?il.test");
        }
    }

    proptest! {
        #[test]
        fn any_bytes_are_read(bytes in proptest::collection::vec(any::<u8>(), 0..80), cut in 0usize..40) {
            for bytes in [bytes.clone(), [&question("a.b.test", 1)[..cut.min(26)], &bytes].concat()] {
                match Query::read(&bytes) {
                    Ok(query) => prop_assert!(query.answer(Answer::Nothing(Status::Good)).len() <= bytes.len()),
                    Err(Some(answer)) => prop_assert_eq!(answer.len(), HEADER),
                    Err(None) => {}
                }
            }
        }

        #[test]
        fn a_name_comes_back(name in "[a-z0-9_-]{1,63}(\\.[a-z0-9_-]{1,20}){0,5}") {
            let bytes = question(&name, 1);
            prop_assert_eq!(&Query::read(&bytes).unwrap().name, &name);
        }
    }
}
