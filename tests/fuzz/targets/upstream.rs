//! Any answer of another proxy is a refusal or the beginning of a tunnel, of which not a byte is lost; any text names one or
//! none, and none of it is repeated.

#![no_main]

use libfuzzer_sys::fuzz_target;
use sandbox_runtime::proxy::readers::ask_proxy;
use sandbox_runtime::proxy::upstream::Server;
use std::sync::LazyLock;
use tokio::runtime::Runtime;

static RUNTIME: LazyLock<Runtime> =
    LazyLock::new(|| tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime"));

const TAIL: &[u8] = b"\0tail of the server\xff";

fuzz_target!(|bytes: &[u8]| {
    if let Ok(text) = std::str::from_utf8(bytes) {
        let said = match Server::parse(&format!("http://user:hunter2-secret@{text}")) {
            Ok(server) => format!("{server} {server:?}"),
            Err(error) => format!("{error} {error:?}"),
        };
        assert!(text.contains("hunter2-secret") || !said.contains("hunter2-secret"), "{said}");
    }
    for server in ["http://p.test", "socks5h://u:p@p.test"] {
        let server = Server::parse(server).expect("a proxy");
        if let Some(rest) = RUNTIME.block_on(ask_proxy(&server, bytes, TAIL)) {
            // An answer may end within the tail, which is then its own.
            assert!(bytes.len() + TAIL.len() > rest.len() && TAIL.ends_with(&rest[rest.len().saturating_sub(TAIL.len())..]));
        }
    }
});
