//! Any bytes are a hello, the beginning of one, or none; more bytes never turn a verdict into another, and cutting a hello
//! into other records hides no name.

#![no_main]

use libfuzzer_sys::fuzz_target;
use sandbox_runtime::proxy::readers::hello::{self, Hello};

/// The same handshake in records of this size.
fn cut(bytes: &[u8], size: usize) -> Option<Vec<u8>> {
    let (mut rest, mut message) = (bytes, Vec::new());
    while let Some((header, after)) = rest.split_first_chunk::<5>() {
        let length = usize::from(u16::from_be_bytes([header[3], header[4]]));
        let record = after.get(..length)?;
        message.extend_from_slice(record);
        rest = &after[length..];
    }
    let mut again = Vec::new();
    for part in message.chunks(size) {
        again.extend([22, 3, 1]);
        again.extend(u16::try_from(part.len()).ok()?.to_be_bytes());
        again.extend(part);
    }
    (rest.is_empty() && again.len() < hello::LONGEST).then_some(again)
}

fuzz_target!(|bytes: &[u8]| {
    if !hello::begins(bytes) {
        return;
    }
    let whole = hello::read(bytes);
    let half = hello::read(&bytes[..bytes.len() / 2]);
    match (&half, &whole) {
        (Hello::Partial, _) => {}
        (Hello::Whole { server_name: a }, Hello::Whole { server_name: b }) => assert_eq!(a, b),
        (Hello::Malformed(_), Hello::Malformed(_)) => {}
        _ => assert!(!hello::begins(&bytes[..bytes.len() / 2]), "{half:?} became {whole:?}"),
    }
    if let (Hello::Whole { server_name }, Some(again)) = (&whole, cut(bytes, 3)) {
        assert_eq!(hello::read(&again), Hello::Whole { server_name: server_name.clone() });
    }
});
