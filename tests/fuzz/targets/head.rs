//! What the first bytes are taken for stays so, however many more come: who waits for them may act on it. And what a served
//! proxy takes for a head of HTTP is refused or passed on, never both (see `requests` for any bytes at all).

#![no_main]

use libfuzzer_sys::fuzz_target;
use sandbox_runtime::proxy::readers::{Opening, tell};

fuzz_target!(|bytes: &[u8]| {
    let mut told = Opening::Undecided;
    let step = (bytes.len() / 16).max(1);
    for end in (0..=bytes.len()).step_by(step) {
        let now = tell(&bytes[..end]);
        if told == Opening::Undecided {
            told = now;
        } else {
            // A broken hello is broken for one reason or another.
            let same = matches!((&told, &now), (Opening::Broken(_), Opening::Broken(_))) || told == now;
            assert!(same, "{told:?} became {now:?} at {end}");
        }
    }
    if bytes.len() > 64 << 10 {
        assert_ne!(told, Opening::Undecided);
    }
});
