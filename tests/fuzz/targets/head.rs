//! What the first bytes are taken for stays so, however many more come: who waits for them may act on it. And after so many of
//! them it is something, so that nobody waits for ever (see `requests` for what becomes of a head).

#![no_main]

use libfuzzer_sys::fuzz_target;
use sandbox_runtime::proxy::readers::{Opening, tell};

/// The longest hello that is waited for; a request line is shorter.
const LONGEST: usize = 32 << 10;

fuzz_target!(|bytes: &[u8]| {
    let mut told = Opening::Undecided;
    let step = (bytes.len() / 64).max(1);
    // The last of them whole, and then as long as it takes with more of the same.
    let mut long = bytes.to_vec();
    long.resize(bytes.len().max(LONGEST), bytes.last().copied().unwrap_or_default());
    for end in (0..bytes.len()).step_by(step).chain([bytes.len(), long.len()]) {
        let now = tell(&long[..end]);
        if told == Opening::Undecided {
            told = now;
        } else {
            // A broken hello is broken for one reason or another.
            let same = matches!((&told, &now), (Opening::Broken(_), Opening::Broken(_))) || told == now;
            assert!(same, "{told:?} became {now:?} at {end}");
        }
    }
    assert_ne!(told, Opening::Undecided);
});
