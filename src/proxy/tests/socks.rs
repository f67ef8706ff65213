//! SOCKS on the port that speaks HTTP too.

use super::harness::*;
use crate::ir::Why;
use crate::vocabulary::Effect::Deny;
use tokio::io::AsyncWriteExt;
use tokio::net::TcpListener;

const GREETING: &[u8] = b"\x05\x01\0";

fn five(host: &str, port: u16) -> Vec<u8> {
    let length = u8::try_from(host.len()).unwrap();
    [&[5, 1, 0, 3, length][..], host.as_bytes(), &port.to_be_bytes()].concat()
}

fn four(host: &str, port: u16) -> Vec<u8> {
    [&[4, 1][..], &port.to_be_bytes(), &[0, 0, 0, 1], b"me\0", host.as_bytes(), b"\0"].concat()
}

#[tokio::test]
async fn a_tunnel_by_version_five_with_and_without_a_password() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let at = listener.local_addr().unwrap();
    let proxy = to(at).start().await;
    for (greeting, chosen, password) in [
        (&b"\x05\x01\0"[..], b"\x05\0", &b""[..]),
        (b"\x05\x02\x02\0", b"\x05\0", b""),
        (b"\x05\x01\x02", b"\x05\x02", b"\x01\x04user\x06secret"),
    ] {
        let mut client = proxy.client().await;
        client.send(greeting).await;
        assert_eq!(client.exactly(2).await, chosen);
        if !password.is_empty() {
            client.send(password).await;
            assert_eq!(client.exactly(2).await, b"\x01\0");
        }
        // What follows the request at once belongs to the tunnel.
        client.send([five("a.test", at.port()), b"early\n".to_vec()].concat()).await;
        let mut server = Client::over(within(listener.accept()).await.unwrap().0);
        assert_eq!(client.exactly(10).await, [5, 0, 0, 1, 0, 0, 0, 0, 0, 0]);
        assert_eq!(server.exactly(6).await, b"early\n");
        server.send("answer").await;
        client.stream.shutdown().await.unwrap();
        assert_eq!(server.rest().await, "");
        drop(server);
        assert_eq!(client.rest().await, "answer");
    }
}

#[tokio::test]
async fn a_tunnel_by_version_four() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let at = listener.local_addr().unwrap();
    let proxy = to(at).start().await;
    let by_address = [&[4, 1][..], &at.port().to_be_bytes(), &[127, 0, 0, 1], b"\0"].concat();
    for request in [four("a.test", at.port()), by_address] {
        let mut client = proxy.client().await;
        client.send(request).await;
        let mut server = Client::over(within(listener.accept()).await.unwrap().0);
        assert_eq!(client.exactly(8).await, [0, 90, 0, 0, 0, 0, 0, 0]);
        client.send("ping\n").await;
        assert_eq!(server.exactly(5).await, b"ping\n");
    }
}

#[tokio::test]
async fn a_refusal_has_its_code_and_is_an_event() {
    let at = unreachable().await;
    let proxy = to(at).host(Deny, "denied.test", ANY).start().await;
    let code = async |request: Vec<u8>| {
        let mut client = proxy.client().await;
        client.send([GREETING, &request].concat()).await;
        let answer = client.exactly(12).await;
        assert_eq!(client.rest().await, "", "and that is the end");
        answer[3]
    };
    assert_eq!(code(five("other.test", at.port())).await, 2);
    assert_eq!(code(five("denied.test", 443)).await, 2);
    assert_eq!(code([5, 1, 0, 1, 192, 0, 2, 7, 0, 80].to_vec()).await, 2);
    assert_eq!(code(five("evil\0.a.test", at.port())).await, 1);
    let udp = [&[5, 3, 0, 1, 0, 0, 0, 0, 0, 0][..]].concat();
    assert_eq!(code(udp).await, 7, "UDP");
    let mut bind = five("a.test", at.port());
    bind[1] = 2;
    assert_eq!(code(bind).await, 7, "BIND");
    let refused: Vec<_> = proxy.events(3).await.into_iter().map(|event| (event.host, event.why)).collect();
    let expected = [("other.test", Why::Default), ("denied.test", Why::Denied), ("192.0.2.7", Why::Default)];
    assert_eq!(refused, expected.map(|(host, why)| (Some(host.to_owned()), Some(why))));
    assert_eq!(proxy.asked(), Vec::<String>::new());

    let mut client = proxy.client().await;
    client.send(four("other.test", at.port())).await;
    assert_eq!(client.exactly(8).await, [0, 91, 0, 0, 0, 0, 0, 0]);
}

#[tokio::test]
async fn what_can_not_be_reached_has_its_code() {
    let closed = {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        listener.local_addr().unwrap()
    };
    let proxy = to(closed).host(crate::vocabulary::Effect::Allow, "gone.test", ANY).start().await;
    for (host, code) in [("a.test", 5), ("gone.test", 4)] {
        let mut client = proxy.client().await;
        client.send([GREETING, &five(host, closed.port())].concat()).await;
        assert_eq!(client.exactly(12).await[3], code, "{host}");
    }
}

#[tokio::test]
async fn odd_handshakes_end() {
    let at = unreachable().await;
    let proxy = to(at).limits(|limits| limits.head = std::time::Duration::from_millis(200)).start().await;
    for (bytes, answer) in [
        (&b"\x05\x01\x01"[..], "\u{5}\u{fffd}"),
        (b"\x05\0", "\u{5}\u{fffd}"),
        (b"\x05\x01\0\x04\x01\0\x03\x06a.test\0\x50", "\u{5}\0"),
        (b"\x05\x01\x02\x09", "\u{5}\u{2}"),
        (b"\x05\x01\0\x05\x01", "\u{5}\0"),
        (b"\x05", ""),
        (b"\x04\x01", ""),
        (b"\x04\x01\0\x50\0\0\0\x01unfinished", ""),
    ] {
        assert_eq!(proxy.say(bytes).await, answer, "{bytes:?}");
    }
    // And the others are served.
    assert!(proxy.get("http://other.test/").await.starts_with("HTTP/1.1 403 "));
}
