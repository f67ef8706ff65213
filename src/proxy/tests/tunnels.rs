//! CONNECT and 101: bytes both ways.

use super::harness::*;
use std::time::Duration;
use tokio::io::AsyncWriteExt;
use tokio::net::TcpListener;

/// A listener, and a proxy that allows it as `a.test`.
async fn listening() -> (TcpListener, Running, String) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let at = listener.local_addr().unwrap();
    let proxy = to(at).start().await;
    (listener, proxy, format!("a.test:{}", at.port()))
}

async fn accepted(listener: &TcpListener) -> Client {
    Client::over(within(listener.accept()).await.unwrap().0)
}

const ESTABLISHED: &str = "HTTP/1.1 200 OK\r\n";

#[tokio::test]
async fn bytes_pass_both_ways() {
    let (listener, proxy, authority) = listening().await;
    let mut client = proxy.client().await;
    client.send(format!("CONNECT {authority} HTTP/1.1\r\nHost: {authority}\r\n\r\n")).await;
    let mut server = accepted(&listener).await;
    assert!(client.head().await.starts_with(ESTABLISHED));
    for _ in 0..3 {
        client.send("\0ping").await;
        assert_eq!(server.exactly(5).await, b"\0ping");
        server.send("pong\u{ff}").await;
        assert_eq!(client.exactly(6).await, "pong\u{ff}".as_bytes());
    }
}

#[tokio::test]
async fn what_was_allowed_is_told_once_it_is_over() {
    let (listener, proxy, authority) = listening().await;
    let port: u16 = authority.rsplit_once(':').unwrap().1.parse().unwrap();
    let mut client = proxy.client().await;
    client.send(format!("CONNECT {authority} HTTP/1.1\r\n\r\n")).await;
    let mut server = accepted(&listener).await;
    client.head().await;
    client.send("ping\n").await;
    assert_eq!(server.exactly(5).await, b"ping\n");
    server.send("longer").await;
    assert_eq!(client.exactly(6).await, b"longer");
    drop((client, server));
    let told = proxy.connections(1).await.remove(0);
    assert_eq!(
        (told.host.as_deref(), told.port, told.address.as_deref()),
        (Some("a.test"), Some(port), Some("127.0.0.1"))
    );
    assert_eq!((told.sent, told.received), (Some(5), Some(6)));
    assert_eq!(told.rule.unwrap().text, "allow connect a.test");
    assert_eq!(proxy.violations(), []);

    let answering = tokio::spawn(async move {
        let mut server = accepted(&listener).await;
        server.head().await;
        server.send("HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n").await;
    });
    proxy.get(&format!("http://{authority}/")).await;
    answering.await.unwrap();
    let told = proxy.connections(2).await.remove(1);
    assert_eq!((told.host.as_deref(), told.sent), (Some("a.test"), None));
}

#[tokio::test]
async fn the_answer_has_no_framing_of_its_own() {
    let (listener, proxy, authority) = listening().await;
    let mut client = proxy.client().await;
    client.send(format!("CONNECT {authority} HTTP/1.1\r\n\r\n")).await;
    let _server = accepted(&listener).await;
    let head = client.head().await;
    assert_eq!((field(&head, "content-length"), field(&head, "transfer-encoding")), (None, None), "{head}");
}

#[tokio::test]
async fn an_old_client_gets_its_tunnel() {
    let (listener, proxy, authority) = listening().await;
    let mut client = proxy.client().await;
    client.send(format!("CONNECT {authority} HTTP/1.0\r\n\r\n")).await;
    let mut server = accepted(&listener).await;
    assert!(client.head().await.starts_with("HTTP/1.0 200 OK\r\n"));
    client.send("ping\n").await;
    assert_eq!(server.exactly(5).await, b"ping\n");
}

#[tokio::test]
async fn bytes_after_the_head_are_tunnelled() {
    let (listener, proxy, authority) = listening().await;
    let mut client = proxy.client().await;
    client.send(format!("CONNECT {authority} HTTP/1.1\r\nHost: {authority}\r\n\r\nearly bytes\n")).await;
    let mut server = accepted(&listener).await;
    assert_eq!(server.exactly(12).await, b"early bytes\n");
}

#[tokio::test]
async fn a_server_may_speak_first() {
    let (listener, proxy, authority) = listening().await;
    let mut client = proxy.client().await;
    client.send(format!("CONNECT {authority} HTTP/1.1\r\n\r\n")).await;
    accepted(&listener).await.send("SSH-2.0-x\r\n").await;
    client.head().await;
    assert_eq!(client.rest().await, "SSH-2.0-x\r\n");
}

#[tokio::test]
async fn a_client_that_has_said_all_still_hears_the_answer() {
    let (listener, proxy, authority) = listening().await;
    let mut client = proxy.client().await;
    client.send(format!("CONNECT {authority} HTTP/1.1\r\n\r\n")).await;
    let mut server = accepted(&listener).await;
    client.head().await;
    client.send("question").await;
    client.stream.shutdown().await.unwrap();
    assert_eq!(server.rest().await, "question", "the end of the client's half arrives");
    server.send("a long answer").await;
    drop(server);
    assert_eq!(client.rest().await, "a long answer");
}

#[tokio::test]
async fn a_server_that_has_said_all_still_hears_the_client() {
    let (listener, proxy, authority) = listening().await;
    let mut client = proxy.client().await;
    client.send(format!("CONNECT {authority} HTTP/1.1\r\n\r\n")).await;
    let mut server = accepted(&listener).await;
    client.head().await;
    server.send("greeting").await;
    server.stream.shutdown().await.unwrap();
    assert_eq!(client.rest().await, "greeting");
    client.send("upload").await;
    drop(client);
    assert_eq!(server.rest().await, "upload");
}

#[tokio::test]
async fn a_client_that_vanishes_ends_the_tunnel() {
    let (listener, proxy, authority) = listening().await;
    let mut client = proxy.client().await;
    client.send(format!("CONNECT {authority} HTTP/1.1\r\n\r\n")).await;
    let mut server = accepted(&listener).await;
    client.head().await;
    client.stream.set_zero_linger().unwrap();
    drop(client);
    assert_eq!(server.rest().await, "");
}

#[tokio::test]
async fn a_tunnel_in_which_nothing_moves_ends() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let at = listener.local_addr().unwrap();
    let proxy = to(at).limits(|limits| limits.tunnel_idle = Duration::from_millis(300)).start().await;
    let mut client = proxy.client().await;
    client.send(format!("CONNECT a.test:{} HTTP/1.1\r\n\r\n", at.port())).await;
    let mut server = accepted(&listener).await;
    client.head().await;
    for _ in 0..5 {
        tokio::time::sleep(Duration::from_millis(100)).await;
        server.send("x").await;
        assert_eq!(client.exactly(1).await, b"x", "bytes in one direction keep both alive");
    }
    assert_eq!(client.rest().await, "");
    assert_eq!(server.rest().await, "");
}

#[tokio::test]
async fn connect_carries_no_content() {
    let (_listener, proxy, authority) = listening().await;
    for fields in ["Content-Length: 5\r\n", "Transfer-Encoding: chunked\r\n"] {
        let answer = proxy.say(format!("CONNECT {authority} HTTP/1.1\r\nConnection: close\r\n{fields}\r\nhello")).await;
        assert!(answer.starts_with("HTTP/1.1 400 "), "{answer}");
    }
}

#[tokio::test]
async fn dropping_the_proxy_ends_its_tunnels() {
    let (listener, proxy, authority) = listening().await;
    let mut client = proxy.client().await;
    client.send(format!("CONNECT {authority} HTTP/1.1\r\n\r\n")).await;
    let mut server = accepted(&listener).await;
    client.head().await;
    drop(proxy);
    assert_eq!(client.rest().await, "");
    assert_eq!(server.rest().await, "");
}

fn websocket(port: u16) -> String {
    format!(
        "GET http://a.test:{port}/chat HTTP/1.1\r\nHost: a.test:{port}\r\nConnection: keep-alive, Upgrade\r\n\
         Upgrade: websocket\r\nSec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n"
    )
}

#[tokio::test]
async fn a_websocket_passes_frames_both_ways_those_sent_with_the_heads_included() {
    let (listener, proxy, authority) = listening().await;
    let port = authority.rsplit_once(':').unwrap().1.parse().unwrap();
    let mut client = proxy.client().await;
    client.send(websocket(port) + "early from client").await;
    let mut server = accepted(&listener).await;
    let head = server.head().await;
    assert!(head.starts_with("GET /chat HTTP/1.1\r\n"), "{head}");
    assert_eq!((field(&head, "connection"), field(&head, "upgrade")), (Some("Upgrade"), Some("websocket")), "{head}");
    assert_eq!(field(&head, "sec-websocket-key"), Some("dGhlIHNhbXBsZSBub25jZQ=="));
    server
        .send(
            "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\
             Sec-WebSocket-Accept: s3pPLMBiTxaQ9kYGzzhZRbK+xOo=\r\n\r\nearly from server",
        )
        .await;
    let head = client.head().await;
    assert!(head.starts_with("HTTP/1.1 101 Switching Protocols\r\n"), "{head}");
    assert_eq!(field(&head, "sec-websocket-accept"), Some("s3pPLMBiTxaQ9kYGzzhZRbK+xOo="));
    assert_eq!(client.exactly(17).await, b"early from server");
    assert_eq!(server.exactly(17).await, b"early from client");
    client.send("frame").await;
    assert_eq!(server.exactly(5).await, b"frame");
    server.send("emarf").await;
    assert_eq!(client.exactly(5).await, b"emarf");
    drop(server);
    assert_eq!(client.rest().await, "");
}

#[tokio::test]
async fn a_websocket_that_the_server_refuses_is_an_answer_like_any_other() {
    let (listener, proxy, authority) = listening().await;
    let port = authority.rsplit_once(':').unwrap().1.parse().unwrap();
    let mut client = proxy.client().await;
    client.send(websocket(port)).await;
    let mut server = accepted(&listener).await;
    server.head().await;
    server.send("HTTP/1.1 426 Upgrade Required\r\nContent-Length: 2\r\n\r\nno").await;
    let answer = client.response().await;
    assert!(answer.starts_with("HTTP/1.1 426 ") && answer.ends_with("no"), "{answer}");
    // And the next request of this connection is decided as ever.
    client.send("GET http://evil.test/ HTTP/1.1\r\nHost: x\r\n\r\n").await;
    assert!(client.response().await.starts_with("HTTP/1.1 403 "));
}

#[tokio::test]
async fn no_other_protocol_is_asked_for() {
    let at = echo().await;
    let proxy = to(at).start().await;
    for upgrade in ["h2c", "TLS/1.0", "websocket, h2c", "websocket\r\nUpgrade: h2c"] {
        let answer = proxy
            .say(format!(
                "GET http://a.test:{}/ HTTP/1.1\r\nHost: x\r\nConnection: Upgrade, close\r\nUpgrade: {upgrade}\r\n\r\n",
                at.port()
            ))
            .await;
        let seen = answer.split_once("\r\n\r\n").unwrap().1;
        assert!(seen.starts_with("GET / HTTP/1.1\r\n"), "{upgrade}: {answer}");
        assert_eq!(field(seen, "upgrade"), None, "{upgrade}: {answer}");
    }
}

#[tokio::test]
async fn no_other_protocol_is_switched_to() {
    for answer in ["Upgrade: h2c\r\n", "Upgrade: websocket, h2c\r\n", ""] {
        let at = upstream(move |mut client| async move {
            client.head().await;
            client.send(format!("HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\n{answer}\r\n")).await;
        })
        .await;
        let proxy = to(at).start().await;
        let mut client = proxy.client().await;
        client.send(websocket(at.port())).await;
        assert!(client.head().await.starts_with("HTTP/1.1 502 "), "{answer:?}");
    }
}
