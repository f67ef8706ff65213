//! Any text is an authority or an error; what is accepted is one clean spelling that reads as itself.

#![no_main]

use libfuzzer_sys::fuzz_target;
use sandbox_runtime::proxy::{Authority, Host};

fuzz_target!(|text: &str| {
    let Ok(authority) = Authority::parse(text, Some(80)) else { return };
    let canonical = authority.to_string();
    assert!(
        canonical.bytes().all(|byte| byte.is_ascii_lowercase() || byte.is_ascii_digit() || b".:-_[]".contains(&byte))
    );
    if let Host::Name(name) = &authority.host {
        // The resolver is given names alone, and must not find an address in one.
        let last = name.as_str().rsplit('.').next().unwrap_or_default();
        assert!(!last.bytes().all(|byte| byte.is_ascii_digit()), "{name}");
    }
    assert_eq!(Authority::parse(&canonical, None).as_ref(), Ok(&authority));
});
