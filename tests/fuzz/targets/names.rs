//! Any bytes are a question or none; an answer repeats the question, is no question itself, and is no longer than a datagram.

#![no_main]

use libfuzzer_sys::fuzz_target;
use sandbox_runtime::proxy::readers::answer_question;

fuzz_target!(|bytes: &[u8]| {
    let Some(answer) = answer_question(bytes) else { return };
    assert!(answer.len() >= 12 && answer.len() <= 512, "{}", answer.len());
    assert_eq!(answer[..2], bytes[..2]);
    assert_eq!(answer[2] & 0x80, 0x80);
    assert!(answer_question(&answer).is_none(), "two resolvers would answer each other for ever");
});
