//! What the first bytes in a tunnel say.

use super::super::hello::tests::{hello, nameless};
use super::harness::*;
use crate::vocabulary::Effect::Allow;
use std::time::Duration;
use tokio::net::TcpListener;

/// A tunnel to `a.test`, and the server at its other end.
async fn tunnel(proxy: &Running, listener: &TcpListener) -> (Client, Client) {
    let port = listener.local_addr().unwrap().port();
    let mut client = proxy.client().await;
    client.send(format!("CONNECT a.test:{port} HTTP/1.1\r\n\r\n")).await;
    client.head().await;
    (client, Client::over(within(listener.accept()).await.unwrap().0))
}

async fn scene() -> (Running, TcpListener) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let at = listener.local_addr().unwrap();
    let setup = to(at).host(Allow, "b.test", ANY).name("b.test", &[&["127.0.0.1"]]);
    (setup.limits(|limits| limits.head = Duration::from_millis(300)).start().await, listener)
}

#[tokio::test]
async fn tls_for_the_name_passes_however_it_is_cut() {
    let (proxy, listener) = scene().await;
    for name in ["a.test", "A.tEST"] {
        let hello = hello(name);
        for size in [1, 5, 1000] {
            let (mut client, mut server) = tunnel(&proxy, &listener).await;
            for part in hello.chunks(size) {
                client.send(part).await;
                tokio::task::yield_now().await;
            }
            assert_eq!(server.exactly(hello.len()).await, hello, "{size}");
            server.send("ServerHello").await;
            assert_eq!(client.exactly(11).await, b"ServerHello");
        }
    }
    assert_eq!(proxy.violations(), []);
}

#[tokio::test]
async fn tls_for_another_name_is_refused_and_told_even_if_that_name_is_allowed() {
    let (proxy, listener) = scene().await;
    for name in ["b.test", "evil.test", "x\0a.test", ""] {
        let (mut client, mut server) = tunnel(&proxy, &listener).await;
        client.send(hello(name)).await;
        assert_eq!((client.rest().await, server.rest().await), (String::new(), String::new()), "{name}");
    }
    let event = &proxy.events(4).await[0];
    assert_eq!(event.host.as_deref(), Some("b.test"));
    assert_eq!(event.port, Some(listener.local_addr().unwrap().port()));
    let detail = "TLS asks for this server on a connection that was allowed to a.test";
    assert_eq!(event.detail.as_deref(), Some(detail));
}

#[tokio::test]
async fn a_hello_that_names_nobody_passes_to_the_name_that_was_dialled() {
    let (proxy, listener) = scene().await;
    let (mut client, mut server) = tunnel(&proxy, &listener).await;
    client.send(nameless()).await;
    assert_eq!(server.exactly(nameless().len()).await, nameless());
    assert_eq!(proxy.violations(), []);
}

#[tokio::test]
async fn tls_that_is_none_is_refused() {
    let (proxy, listener) = scene().await;
    let (mut client, mut server) = tunnel(&proxy, &listener).await;
    client.send(b"\x16\x03\x01\0\x05\x02\0\0\x01\0").await;
    assert_eq!((client.rest().await, server.rest().await), (String::new(), String::new()));
    assert_eq!(proxy.events(1).await[0].host.as_deref(), Some("a.test"));
}

#[tokio::test]
async fn half_a_hello_is_not_waited_for_for_ever() {
    let (proxy, listener) = scene().await;
    let (mut client, mut server) = tunnel(&proxy, &listener).await;
    client.send(&hello("b.test")[..30]).await;
    assert_eq!((client.rest().await, server.rest().await), (String::new(), String::new()));
}

#[tokio::test]
async fn a_server_that_speaks_first_is_heard_at_once_and_as_long_as_the_client_is_silent() {
    let (proxy, listener) = scene().await;
    let (mut client, mut server) = tunnel(&proxy, &listener).await;
    server.send("220 a.test ESMTP\r\n").await;
    assert_eq!(client.until("\n").await, "220 a.test ESMTP\r\n");
    // Longer than a beginning may take.
    tokio::time::sleep(Duration::from_millis(500)).await;
    server.send("still there\n").await;
    assert_eq!(client.until("\n").await, "still there\n");
    client.send("EHLO x\r\n").await;
    assert_eq!(server.until("\n").await, "EHLO x\r\n");
}

#[tokio::test]
async fn http_in_a_tunnel_is_decided_request_by_request() {
    let at = upstream(|mut client| async move {
        loop {
            let head = client.head().await;
            client.send(format!("HTTP/1.1 200 OK\r\nContent-Length: {}\r\n\r\n{head}", head.len())).await;
        }
    })
    .await;
    let setup = to(at).host(Allow, "b.test", port(at.port())).name("b.test", &[&["127.0.0.1"]]);
    let proxy = setup.start().await;
    let mut client = proxy.client().await;
    client.send(format!("CONNECT a.test:{} HTTP/1.1\r\n\r\n", at.port())).await;
    client.head().await;
    for (host, status) in [("a.test", 200), ("b.test", 200), ("evil.test", 403), ("a.test:1", 200)] {
        client.send(format!("GET /x HTTP/1.1\r\nHost: {host}\r\n\r\n")).await;
        let answer = client.response().await;
        assert!(answer.starts_with(&format!("HTTP/1.1 {status} ")), "{host}: {answer}");
        if status == 200 {
            let name = host.split(':').next().unwrap();
            assert!(answer.contains(&format!("\r\nHost: {name}:{}\r\n", at.port())), "{answer}");
        }
    }
    client.send("GET / HTTP/1.1\r\nHost: a.test\r\nHost: b.test\r\n\r\n").await;
    assert!(client.response().await.starts_with("HTTP/1.1 400 "));
    assert_eq!(proxy.asked(), ["a.test", "b.test", "a.test"], "the tunnel's own connection carried the first");
}

#[tokio::test]
async fn an_address_that_was_allowed_may_be_told_anything() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let at = listener.local_addr().unwrap();
    let proxy = to(at).start().await;
    for bytes in [hello("evil.test"), b"GET / HTTP/1.1\r\nHost: evil.test\r\n\r\n".to_vec()] {
        let mut client = proxy.client().await;
        client.send(format!("CONNECT 127.0.0.1:{} HTTP/1.1\r\n\r\n", at.port())).await;
        client.head().await;
        client.send(&bytes).await;
        let mut server = Client::over(within(listener.accept()).await.unwrap().0);
        assert_eq!(server.exactly(bytes.len()).await, bytes);
    }
}
