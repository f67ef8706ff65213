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

/// What a server said behind an answer that opens a tunnel, told from the whole of both by their forms alone: the empty line
/// of a head (RFC 9110), the lengths that a SOCKS server says (RFC 1928, 1929). `None` where it ends within them.
fn behind<'a>(socks: bool, all: &'a [u8]) -> Option<&'a [u8]> {
    if !socks {
        let end = (0..all.len()).find(|at| all[*at..].starts_with(b"\r\n\r\n"))?;
        return all.get(end + 4..);
    }
    let login = if all.get(1)? == &2 { 2 } else { 0 };
    let answer = all.get(2 + login..)?;
    let (bound, at) = match answer.get(3)? {
        1 => (4, 4),
        4 => (16, 4),
        3 => (usize::from(*answer.get(4)?), 5),
        _ => return None,
    };
    answer.get(at + bound + 2..)
}

fuzz_target!(|bytes: &[u8]| {
    if let Ok(text) = std::str::from_utf8(bytes) {
        let said = match Server::parse(&format!("http://user:hunter2-secret@{text}")) {
            Ok(server) => format!("{server} {server:?}"),
            Err(error) => format!("{error} {error:?}"),
        };
        // A host is shown in lower case.
        let named = text.to_ascii_lowercase().contains("hunter2-secret");
        assert!(named || !said.contains("hunter2-secret"), "{said}");
    }
    let all = [bytes, TAIL].concat();
    for (server, socks) in [("http://p.test", false), ("socks5h://u:p@p.test", true)] {
        let server = Server::parse(server).expect("a proxy");
        if let Some(rest) = RUNTIME.block_on(ask_proxy(&server, bytes, TAIL)) {
            assert_eq!(Some(&rest[..]), behind(socks, &all), "{server}");
        }
    }
});
