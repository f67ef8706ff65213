//! Any line is a request or none; what is read says itself again.

#![no_main]

use libfuzzer_sys::fuzz_target;
use sandbox_runtime::compile::live::{Change, Request};

fuzz_target!(|line: &[u8]| {
    let request = match Request::read(line) {
        Ok(request) => request,
        Err(bad) => {
            assert!(bad.id.is_none_or(|id| id.is_number() || id.is_string()));
            return;
        }
    };
    let (name, text) = match &request.change {
        Change::Add(text) => ("add", text),
        Change::Rules(text) => ("rules", text),
        Change::Policy(text) => ("policy", text),
    };
    let mut object = serde_json::json!({ name: text });
    if let Some(id) = &request.id {
        object["id"] = id.clone();
    }
    assert_eq!(Request::read(object.to_string().as_bytes()), Ok(request));
});
