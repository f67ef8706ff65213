//! Requests that want to be two things at once, and clients that mean no request at all.

use super::harness::*;
use crate::vocabulary::Effect::Allow;
use std::time::Duration;
use tokio::net::TcpListener;

/// A proxy that allows every name and every address of the loopback: what is refused is refused for its spelling.
async fn open() -> Running {
    Setup::new().host(Allow, "*", ANY).net(Allow, "127.0.0.0/8", ANY).name("a.test", &[&["127.0.0.1"]]).start().await
}

/// Refused before anything is decided, resolved or dialled.
fn is_bad(answer: &str) -> bool {
    answer.is_empty() || answer.starts_with("HTTP/1.1 400 ") || answer.starts_with("HTTP/1.0 400 ")
}

#[tokio::test]
async fn a_host_with_odd_bytes_is_refused_before_matching() {
    let proxy = open().await;
    for host in [
        "evil.test\0.allowed.test",
        "evil.test%00.allowed.test",
        "evil.test%2f.allowed.test",
        "evil.test\\.allowed.test",
        "evil.test\t.allowed.test",
        "evil.test .allowed.test",
        "evil.test\x7f.allowed.test",
        "evil.test\u{3002}allowed.test",
        "evil.test\rx.allowed.test",
        "user@allowed.test",
        "user:password@allowed.test",
        "allowed.test:80@evil.test",
        "[allowed.test]",
        "[127.0.0.1]",
        "[::1%25lo]",
        "[::1%lo]",
        "[::1",
        "::1",
        "127.1",
        "0x7f000001",
        "2130706433",
        "0177.0.0.1",
        "127.0.0.1.",
        "",
        ":",
        "..",
        "a..test",
        "*",
        "*.test",
    ] {
        let answer = proxy.get(&format!("http://{host}/")).await;
        assert!(is_bad(&answer), "{host:?}: {answer}");
        let answer = proxy.say(format!("CONNECT {host}:443 HTTP/1.1\r\nConnection: close\r\n\r\n")).await;
        assert!(is_bad(&answer), "{host:?}: {answer}");
    }
    for port in ["0", "65536", "080", "+80", "-1", "http", ""] {
        let answer = proxy.say(format!("CONNECT a.test:{port} HTTP/1.1\r\nConnection: close\r\n\r\n")).await;
        assert!(is_bad(&answer), "{port:?}: {answer}");
    }
    assert_eq!(proxy.asked(), Vec::<String>::new());
}

#[tokio::test]
async fn a_second_host_field_is_refused() {
    let proxy = open().await;
    for head in [
        "GET http://a.test/ HTTP/1.1\r\nHost: a.test\r\nHost: b.test\r\nConnection: close\r\n\r\n",
        "CONNECT a.test:80 HTTP/1.1\r\nHost: a.test\r\nHost: a.test\r\nConnection: close\r\n\r\n",
    ] {
        let answer = proxy.say(head).await;
        assert!(is_bad(&answer), "{answer}");
    }
    assert_eq!(proxy.asked(), Vec::<String>::new());
}

/// An upstream that keeps all bytes of a connection until it has been silent for a while, then answers.
async fn tape() -> (std::net::SocketAddr, tokio::sync::mpsc::UnboundedReceiver<String>) {
    let (sender, receiver) = tokio::sync::mpsc::unbounded_channel();
    let at = upstream(move |mut client| {
        let sender = sender.clone();
        async move {
            let mut seen = client.head().await;
            if field(&seen, "transfer-encoding").is_some() {
                seen += &client.until("0\r\n\r\n").await;
            }
            client.send("HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok").await;
            seen += &client.rest().await;
            let _ = sender.send(seen);
        }
    })
    .await;
    (at, receiver)
}

#[tokio::test]
async fn two_framings_never_leave_as_two() {
    let (at, mut seen) = tape().await;
    let proxy = to(at).start().await;
    let smuggled = format!("GET http://a.test:{}/smuggled HTTP/1.1\r\n\r\n", at.port());
    for fields in [
        "Content-Length: 5\r\nTransfer-Encoding: chunked\r\n",
        "Transfer-Encoding: chunked\r\nContent-Length: 5\r\n",
        "Transfer-Encoding: chunked\r\nContent-Length: 5\r\nContent-Length: 6\r\n",
    ] {
        let head =
            format!("POST http://a.test:{}/ HTTP/1.1\r\nHost: x\r\nConnection: close\r\n{fields}\r\n", at.port());
        let answer = proxy.say(head + "0\r\n\r\n" + &smuggled).await;
        if is_bad(&answer) {
            continue;
        }
        assert!(answer.starts_with("HTTP/1.1 200 OK\r\n"), "{answer}");
        assert_eq!(answer.matches("HTTP/1.1 ").count(), 1, "one answer: {answer}");
        let seen = within(seen.recv()).await.unwrap();
        assert_eq!(field(&seen, "transfer-encoding"), Some("chunked"), "{seen}");
        assert_eq!(field(&seen, "content-length"), None, "{seen}");
        assert!(!seen.contains("smuggled"), "{seen}");
    }
}

#[tokio::test]
async fn framings_that_others_read_differently_are_refused() {
    let at = unreachable().await;
    let proxy = to(at).start().await;
    for fields in [
        "Content-Length: 5\r\nContent-Length: 6\r\n",
        "Content-Length: 5, 6\r\n",
        "Content-Length: 5, 5\r\n",
        "Content-Length: +5\r\n",
        "Content-Length: -5\r\n",
        "Content-Length: 0x5\r\n",
        "Content-Length: 5 5\r\n",
        "Content-Length: 99999999999999999999\r\n",
        "Content-Length : 5\r\n",
        " Content-Length: 5\r\n",
        "Transfer-Encoding: chunked, identity\r\n",
        "Transfer-Encoding: identity\r\n",
        "Transfer-Encoding: xchunked\r\n",
        "Transfer-Encoding : chunked\r\n",
        "Transfer-Encoding:\r\n chunked\r\n",
        "Transfer-Encoding: \x0bchunked\r\n",
        "Transfer-Encoding: chunked\r\nTransfer-Encoding: identity\r\n",
        "X: a\0b\r\n",
        "X: a\rb\r\n",
        "X: a\r\n b\r\n",
        "X\0: a\r\n",
        ": a\r\n",
        "no colon\r\n",
    ] {
        let head = format!("POST http://a.test:{}/ HTTP/1.1\r\nHost: x\r\nConnection: close\r\n", at.port());
        let answer = proxy.say(head + fields + "\r\nhello").await;
        assert!(is_bad(&answer), "{fields:?}: {answer}");
    }
    for fields in
        ["Transfer-Encoding: gzip, chunked\r\n", "Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n"]
    {
        let head = format!("POST http://a.test:{}/ HTTP/1.1\r\nHost: x\r\nConnection: close\r\n", at.port());
        let answer = proxy.say(head + fields + "\r\n0\r\n\r\n").await;
        assert!(answer.starts_with("HTTP/1.1 501 ") || is_bad(&answer), "{fields:?}: {answer}");
    }
    let answer = proxy
        .say(format!("POST http://a.test:{}/ HTTP/1.0\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n", at.port()))
        .await;
    assert!(is_bad(&answer), "{answer}");
}

#[tokio::test]
async fn a_broken_chunk_ends_the_request() {
    let (at, mut seen) = tape().await;
    let proxy = to(at).start().await;
    for content in ["5\r\nhelloX", "zz\r\n", "5;\nhello\r\n", "-1\r\n", "fffffffffffffffff\r\n", "5\r\nhello0\r\n\r\n"]
    {
        let mut client = proxy.client().await;
        client
            .send(format!(
                "POST http://a.test:{}/ HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n{content}",
                at.port()
            ))
            .await;
        let answer = client.rest().await;
        assert!(!answer.starts_with("HTTP/1.1 200"), "{content:?}: {answer}");
    }
    assert!(seen.try_recv().is_err(), "no whole request has arrived");
}

#[tokio::test]
async fn a_pipelined_request_is_decided_for_itself() {
    let at = echo().await;
    let proxy = to(at).start().await;
    let mut client = proxy.client().await;
    let port = at.port();
    client
        .send(format!(
            "GET http://a.test:{port}/1 HTTP/1.1\r\nHost: x\r\n\r\nGET http://evil.test:{port}/ HTTP/1.1\r\nHost: a.test\r\n\r\n\
             GET http://a.test:{port}/2 HTTP/1.1\r\nHost: x\r\n\r\n"
        ))
        .await;
    assert!(client.response().await.contains("GET /1 "));
    assert!(client.response().await.starts_with("HTTP/1.1 403 "));
    assert!(client.response().await.contains("GET /2 "));
}

#[tokio::test]
async fn a_head_past_its_bounds_is_refused() {
    let at = unreachable().await;
    let proxy = to(at).start().await;
    let line = format!("GET http://a.test:{}/ HTTP/1.1\r\n", at.port());
    for head in [
        format!("{line}X-Long: {}\r\n\r\n", "x".repeat(65 << 10)),
        format!("{line}{}\r\n", "X: y\r\n".repeat(200)),
        format!("GET http://a.test:{}/{} HTTP/1.1\r\n\r\n", at.port(), "x".repeat(65 << 10)),
        "G".repeat(1 << 20),
    ] {
        let answer = proxy.say(&head).await;
        let refused = ["431", "414", "400"].iter().any(|status| answer.starts_with(&format!("HTTP/1.1 {status} ")));
        assert!(answer.is_empty() || refused, "{}…: {answer}", &head[..60]);
    }
    // One that is within them passes.
    let at = echo().await;
    let proxy = to(at).start().await;
    let answer = proxy
        .say(format!(
            "GET http://a.test:{}/ HTTP/1.1\r\nConnection: close\r\nX: {}\r\n\r\n",
            at.port(),
            "x".repeat(40 << 10)
        ))
        .await;
    assert!(answer.starts_with("HTTP/1.1 200 OK\r\n"), "{}", &answer[..100]);
}

#[tokio::test]
async fn a_client_that_says_nothing_or_half_a_head_or_no_second_request_is_dropped() {
    let at = echo().await;
    let proxy = to(at)
        .limits(|limits| {
            limits.first_byte = Duration::from_millis(100);
            limits.head = Duration::from_millis(200);
        })
        .start()
        .await;
    assert_eq!(proxy.client().await.rest().await, "", "nothing");
    let answer = proxy.say("GET http://a.te").await;
    assert!(!answer.contains(" 200 "), "half a head: {answer}");
    let mut client = proxy.client().await;
    for byte in "GET http://a.test/ HTTP/1.1\r\n".bytes().chain(std::iter::repeat_n(b'x', 20)) {
        client.send([byte]).await;
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    let answer = client.rest().await;
    assert!(!answer.contains(" 200 "), "a byte at a time: {answer}");
    let mut client = proxy.client().await;
    client.send(format!("GET http://a.test:{}/ HTTP/1.1\r\nHost: x\r\n\r\n", at.port())).await;
    assert!(client.response().await.starts_with("HTTP/1.1 200 OK\r\n"));
    let start = std::time::Instant::now();
    assert_eq!(client.rest().await, "", "no second request");
    assert!(start.elapsed() < Duration::from_secs(5));
}

#[tokio::test]
async fn what_is_no_http_1_is_refused_or_dropped() {
    let proxy = open().await;
    let hello = b"\x16\x03\x01\x00\xa5\x01\x00\x00\xa1\x03\x03".as_slice();
    for bytes in [
        b"GET /\r\n\r\n".as_slice(),
        b"GET http://a.test/\r\n\r\n",
        b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\0\0\0\x04\0\0\0\0\0",
        b"GET http://a.test/ HTTP/2.0\r\n\r\n",
        b"GET http://a.test/ HTTP/1.2\r\n\r\n",
        b"GET http://a.test/ http/1.1\r\n\r\n",
        b"GET  http://a.test/ HTTP/1.1\r\n\r\n",
        b"GET\thttp://a.test/ HTTP/1.1\r\n\r\n",
        b"GET http://a.test/ HTTP/1.1 \r\n\r\n",
        b"SSH-2.0-x\r\n\r\n",
        b"\0\0\0\0\0\0\0\0\r\n\r\n",
        b"\xff\xfe\xfd\xfc\r\n\r\n",
        b" \r\n\r\n",
        b"\x1b]0;x\x07 http://a.test/ HTTP/1.1\r\n\r\n",
        hello,
    ] {
        let mut client = proxy.client().await;
        client.send(bytes).await;
        let _ = tokio::io::AsyncWriteExt::shutdown(&mut client.stream).await;
        let answer = client.rest().await;
        assert!(
            is_bad(&answer) || answer.starts_with("HTTP/1.1 505 "),
            "{:?}: {answer}",
            String::from_utf8_lossy(bytes)
        );
    }
    assert_eq!(proxy.asked(), Vec::<String>::new());
}

#[tokio::test]
async fn a_thousand_connections_of_junk_harm_nobody() {
    let at = echo().await;
    let proxy = to(at).start().await;
    let before = memory();
    let mut open = Vec::new();
    for number in 0..1000_u32 {
        let mut client = proxy.client().await;
        match number % 4 {
            0 => client.send(vec![0; 70 << 10]).await,
            1 => client.send(number.to_le_bytes().repeat(100)).await,
            2 => client.send(format!("GET http://a.test:{}/ HTTP/1.1\r\nX: ", at.port())).await,
            _ => {} // says nothing
        }
        // Half of them vanish at once; descriptors of this process are spared.
        if number % 2 == 0 && open.len() < 300 {
            open.push(client);
        }
        if number % 100 == 0 {
            let answer = proxy.get(&format!("http://a.test:{}/", at.port())).await;
            assert!(answer.starts_with("HTTP/1.1 200 OK\r\n"), "after {number}: {answer}");
        }
    }
    let answer = proxy.get(&format!("http://a.test:{}/", at.port())).await;
    assert!(answer.starts_with("HTTP/1.1 200 OK\r\n"), "{answer}");
    drop(open);
    if let (Some(before), Some(after)) = (before, memory()) {
        assert!(after.saturating_sub(before) < 64 << 20, "{before} → {after} bytes");
    }
}

/// Bytes of this process that are resident; the other tests of this process are in it, so bounds on it are wide.
fn memory() -> Option<u64> {
    #[allow(clippy::disallowed_methods)]
    let status = std::fs::read_to_string("/proc/self/status").ok()?;
    let line = status.lines().find(|line| line.starts_with("VmRSS:"))?;
    line.split_whitespace().nth(1)?.parse::<u64>().ok().map(|kib| kib << 10)
}

#[tokio::test]
async fn a_silent_crowd_does_not_shut_others_out() {
    let at = echo().await;
    let proxy = to(at).limits(|limits| limits.connections = 8).start().await;
    let mut crowd = Vec::new();
    for _ in 0..20 {
        crowd.push(proxy.client().await);
    }
    let answer = proxy.get(&format!("http://a.test:{}/", at.port())).await;
    assert!(answer.starts_with("HTTP/1.1 200 OK\r\n"), "{answer}");
    assert_eq!(crowd[0].rest().await, "", "the oldest was dropped");
}

#[tokio::test]
async fn past_the_bound_a_connection_waits_for_one_that_works() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let at = listener.local_addr().unwrap();
    let proxy = to(at).limits(|limits| limits.connections = 2).start().await;
    let mut tunnels = Vec::new();
    for _ in 0..2 {
        let mut client = proxy.client().await;
        client.send(format!("CONNECT a.test:{} HTTP/1.1\r\n\r\n", at.port())).await;
        let server = within(listener.accept()).await.unwrap();
        client.head().await;
        tunnels.push((client, server));
    }
    let mut third = proxy.client().await;
    third.send("GET http://evil.test/ HTTP/1.1\r\nHost: x\r\n\r\n").await;
    let waited = tokio::time::timeout(Duration::from_millis(200), third.head()).await;
    assert!(waited.is_err(), "both places are taken");
    tunnels.pop();
    assert!(third.head().await.starts_with("HTTP/1.1 403 "));
    // And the other tunnel was left alone.
    let (client, (server, _)) = &mut tunnels[0];
    client.send("still here\n").await;
    let mut buffer = [0; 11];
    within(tokio::io::AsyncReadExt::read_exact(server, &mut buffer)).await.unwrap();
    assert_eq!(&buffer, b"still here\n");
}
