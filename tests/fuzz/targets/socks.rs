//! Any bytes are a request or none; what is asked for is one clean host and port.

#![no_main]

use libfuzzer_sys::fuzz_target;
use sandbox_runtime::proxy::Authority;
use sandbox_runtime::proxy::readers::read_socks;
use std::sync::LazyLock;
use tokio::runtime::Runtime;

static RUNTIME: LazyLock<Runtime> =
    LazyLock::new(|| tokio::runtime::Builder::new_current_thread().build().expect("a runtime"));

fuzz_target!(|bytes: &[u8]| {
    let Some(authority) = RUNTIME.block_on(read_socks(bytes)) else { return };
    assert_eq!(Authority::parse(&authority.to_string(), None).as_ref(), Ok(&authority));
});
