//! The name in a TLS ClientHello, read without opening anything (RFC 8446, sections 4.1.2 and 5.1; RFC 6066, section 3).
//!
//! The hello may be cut into records as its sender likes, and the records into segments: it is put together before it is
//! read, so that no cut hides a name. Pure; takes any bytes, and never more of them than [`LONGEST`].

/// The longest hello that is read; those with post-quantum keys have about 2 KiB.
pub const LONGEST: usize = 32 << 10;

/// What the bytes so far are.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Hello {
    /// The beginning of one.
    Partial,
    /// A whole one.
    Whole {
        /// As it was sent; `None` where the client names no server.
        server_name: Option<String>,
    },
    /// None that a server may take.
    Malformed(&'static str),
}

const HANDSHAKE: u8 = 22;
/// The types of records (RFC 8446, appendix B.1; RFC 6520 for the last).
const RECORDS: std::ops::RangeInclusive<u8> = 20..=24;
const CLIENT_HELLO: u8 = 1;
const SERVER_NAME: u16 = 0;
const HOST_NAME: u8 = 0;
/// RFC 8446, section 5.1.
const LONGEST_RECORD: usize = 1 << 14;

/// Whether the bytes can be the beginning of a record of any TLS. Not of a handshake alone: some servers pass over an alert
/// that stands before it.
pub fn begins(bytes: &[u8]) -> bool {
    match bytes {
        [kind, rest @ ..] => RECORDS.contains(kind) && rest.first().is_none_or(|major| *major == 3),
        [] => false,
    }
}

/// Reads the hello at the beginning of `bytes`, which [`begins`] has let pass.
pub fn read(bytes: &[u8]) -> Hello {
    let mut message = Vec::new();
    let mut rest = bytes;
    loop {
        if let Some(length) = length(&message) {
            match length {
                Err(why) => return Hello::Malformed(why),
                Ok(length) if message.len() >= length => return whole(&message[4..length]),
                Ok(_) => {}
            }
        }
        let Some((header, after)) = rest.split_first_chunk::<5>() else { break };
        let [kind, major, _, high, low] = *header;
        let size = usize::from(u16::from_be_bytes([high, low]));
        if kind != HANDSHAKE || major != 3 {
            return Hello::Malformed("another record stands before it or in the middle of it");
        }
        if size == 0 || size > LONGEST_RECORD {
            return Hello::Malformed("a record of it has an impossible length");
        }
        message.extend_from_slice(&after[..size.min(after.len())]);
        let Some(next) = after.get(size..) else {
            // The record is not there yet; what there is of it may be enough.
            if let Some(Ok(length)) = length(&message)
                && message.len() >= length
            {
                return whole(&message[4..length]);
            }
            break;
        };
        rest = next;
    }
    match length(&message) {
        Some(Err(why)) => Hello::Malformed(why),
        _ if bytes.len() >= LONGEST => Hello::Malformed("it is too long"),
        _ => Hello::Partial,
    }
}

/// The length of the handshake message with its header, once that is there.
fn length(message: &[u8]) -> Option<Result<usize, &'static str>> {
    let (kind, size) = match message {
        [] => return None,
        [kind] | [kind, _] | [kind, _, _] => (*kind, None),
        [kind, a, b, c, ..] => (*kind, Some(u32::from_be_bytes([0, *a, *b, *c]))),
    };
    if kind != CLIENT_HELLO {
        return Some(Err("it is another message"));
    }
    let size = usize::try_from(size?).unwrap_or(usize::MAX);
    Some(if size > LONGEST - 4 { Err("it is too long") } else { Ok(size + 4) })
}

fn whole(body: &[u8]) -> Hello {
    match server_name(body) {
        Ok(server_name) => Hello::Whole { server_name },
        Err(why) => Hello::Malformed(why),
    }
}

/// What is read from the front of it.
struct Reader<'b>(&'b [u8]);

impl<'b> Reader<'b> {
    fn take(&mut self, count: usize) -> Result<&'b [u8], &'static str> {
        let (taken, rest) = self.0.split_at_checked(count).ok_or("it ends too early")?;
        self.0 = rest;
        Ok(taken)
    }

    fn number(&mut self, bytes: usize) -> Result<usize, &'static str> {
        Ok(self.take(bytes)?.iter().fold(0, |number, byte| number << 8 | usize::from(*byte)))
    }

    /// A vector with a length of so many bytes before it.
    fn vector(&mut self, bytes: usize) -> Result<Reader<'b>, &'static str> {
        let count = self.number(bytes)?;
        self.take(count).map(Reader)
    }
}

fn server_name(body: &[u8]) -> Result<Option<String>, &'static str> {
    let mut body = Reader(body);
    // legacy_version and random
    body.take(2 + 32)?;
    // legacy_session_id, cipher_suites, legacy_compression_methods
    body.vector(1)?;
    body.vector(2)?;
    body.vector(1)?;
    if body.0.is_empty() {
        return Ok(None);
    }
    let mut extensions = body.vector(2)?;
    if !body.0.is_empty() {
        return Err("something follows its extensions");
    }
    let mut found = None;
    while !extensions.0.is_empty() {
        let kind = extensions.number(2)?;
        let data = extensions.vector(2)?;
        if kind == usize::from(SERVER_NAME) && found.replace(data).is_some() {
            return Err("it names a server twice");
        }
    }
    let Some(mut data) = found else { return Ok(None) };
    let mut list = data.vector(2)?;
    let kind = list.number(1)?;
    let name = list.vector(2)?;
    if !data.0.is_empty() || !list.0.is_empty() || kind != usize::from(HOST_NAME) {
        return Err("it names more than one server");
    }
    let name = str::from_utf8(name.0).map_err(|_| "its server name is no text")?;
    Ok(Some(name.to_owned()))
}

#[cfg(test)]
pub(super) mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use proptest::prelude::*;

    fn vector(bytes: usize, content: &[u8]) -> Vec<u8> {
        let length = u32::try_from(content.len()).unwrap().to_be_bytes();
        [&length[4 - bytes..], content].concat()
    }

    fn extension(kind: u16, data: &[u8]) -> Vec<u8> {
        [&kind.to_be_bytes()[..], &vector(2, data)].concat()
    }

    fn named(name: &str) -> Vec<u8> {
        let entry = [&[HOST_NAME][..], &vector(2, name.as_bytes())].concat();
        extension(SERVER_NAME, &vector(2, &entry))
    }

    /// A hello with these extensions, as a handshake message.
    fn message(extensions: &[Vec<u8>]) -> Vec<u8> {
        let body = [
            vec![3, 3],
            vec![7; 32],
            vector(1, &[9; 32]),
            vector(2, &[0x13, 1]),
            vector(1, &[0]),
            vector(2, &extensions.concat()),
        ];
        [&[CLIENT_HELLO][..], &vector(3, &body.concat())].concat()
    }

    /// The message in records of at most `size` bytes.
    fn records(message: &[u8], size: usize) -> Vec<u8> {
        let record = |part: &[u8]| [&[HANDSHAKE, 3, 1][..], &vector(2, part)].concat();
        message.chunks(size).flat_map(record).collect()
    }

    /// What a client that wants this server sends first.
    pub fn hello(name: &str) -> Vec<u8> {
        records(&message(&[extension(0x17, &[]), named(name), extension(0x2b, &[2, 3, 4])]), LONGEST_RECORD)
    }

    /// The same of a client that names no server.
    pub fn nameless() -> Vec<u8> {
        records(&message(&[extension(0x17, &[])]), LONGEST_RECORD)
    }

    fn name(bytes: &[u8]) -> Option<String> {
        match read(bytes) {
            Hello::Whole { server_name } => server_name,
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn a_name_is_found_however_the_hello_is_cut() {
        let message = message(&[extension(0x17, &[]), named("a.test"), extension(0x2b, &[2, 3, 4])]);
        for size in [1, 2, 7, 100, 1000] {
            let bytes = records(&message, size);
            assert_eq!(name(&bytes).as_deref(), Some("a.test"), "records of {size}");
            for end in 0..bytes.len() {
                let begun = read(&bytes[..end]);
                assert!(begun == Hello::Partial || end + 5 > bytes.len(), "{end} of {}: {begun:?}", bytes.len());
            }
        }
    }

    #[test]
    fn what_follows_the_hello_is_not_looked_at() {
        let bytes = [hello("a.test"), vec![23, 3, 3, 0, 1, 0]].concat();
        assert_eq!(name(&bytes).as_deref(), Some("a.test"));
    }

    #[test]
    fn a_hello_may_name_nobody() {
        assert_eq!(name(&records(&message(&[]), 100)), None);
        assert_eq!(name(&records(&message(&[extension(0x17, &[])]), 100)), None);
    }

    #[test]
    fn what_no_server_may_take_is_malformed() {
        let malformed = |extensions: &[Vec<u8>]| match read(&records(&message(extensions), 1000)) {
            Hello::Malformed(why) => why,
            other => panic!("{other:?}"),
        };
        assert_eq!(malformed(&[named("a.test"), named("b.test")]), "it names a server twice");
        let entry = |name: &str| [&[HOST_NAME][..], &vector(2, name.as_bytes())].concat();
        let two = [entry("a.test"), entry("b.test")].concat();
        assert_eq!(malformed(&[extension(SERVER_NAME, &vector(2, &two))]), "it names more than one server");
        assert_eq!(malformed(&[extension(SERVER_NAME, &[])]), "it ends too early");
        let other = [&[1][..], &vector(2, b"a.test")].concat();
        assert_eq!(malformed(&[extension(SERVER_NAME, &vector(2, &other))]), "it names more than one server");
        for bytes in
            [&[22, 3, 1, 0, 0][..], &[22, 3, 1, 0xff, 0xff], &[22, 3, 1, 0, 1, 2], &[22, 3, 1, 0, 4, 1, 1, 0, 0]]
        {
            assert!(matches!(read(bytes), Hello::Malformed(_)), "{bytes:?}");
        }
        let interrupted = [records(&message(&[named("a.test")])[..20], 100), vec![21, 3, 1, 0, 2, 1, 0]].concat();
        assert!(matches!(read(&interrupted), Hello::Malformed(_)));
    }

    #[test]
    fn it_does_not_grow_for_ever() {
        let endless = records(&[&[CLIENT_HELLO, 0, 0x7f, 0][..], &vec![0; 2 * LONGEST]].concat(), 1);
        assert!(matches!(read(&endless[..LONGEST]), Hello::Malformed(_)));
    }

    proptest! {
        #[test]
        fn any_bytes_are_read(bytes in proptest::collection::vec(any::<u8>(), 0..600)) {
            let _ = read(&bytes);
            let _ = read(&[&[22, 3, 1][..], &bytes].concat());
            let _ = read(&records(&[&[CLIENT_HELLO][..], &vector(3, &bytes)].concat(), 50));
        }

        #[test]
        fn a_changed_byte_is_read_too(at in 0usize..120, byte in any::<u8>(), end in 0usize..200) {
            let mut bytes = hello("a.test");
            let (at, end) = (at.min(bytes.len() - 1), end.min(bytes.len()));
            bytes[at] = byte;
            let _ = read(&bytes[..end]);
        }
    }
}
