//! Connections that were meant for somebody else.

use super::super::hello::tests::hello;
use super::harness::*;
use crate::ir::Why;
use crate::vocabulary::Effect::Allow;
use tokio::net::TcpListener;

/// The address of the first name that is asked for.
const FIRST: &str = "198.18.0.16";

#[tokio::test]
async fn the_address_of_a_name_leads_to_that_name() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let port = listener.local_addr().unwrap().port();
    let proxy = to(listener.local_addr().unwrap()).start_captured(&format!("{FIRST}:{port}")).await;
    assert_eq!(proxy.ask("a.test", 1).await, (0, Some(FIRST.into())));
    let mut client = proxy.client().await;
    // Dialled before anything is said.
    let mut server = Client::over(within(listener.accept()).await.unwrap().0);
    server.send("greeting").await;
    assert_eq!(client.exactly(8).await, b"greeting");
    client.send("ping\n").await;
    assert_eq!(server.exactly(5).await, b"ping\n");
    assert_eq!(proxy.asked(), ["a.test"], "what was found for the question is what is dialled");

    let mut client = proxy.client().await;
    client.send(hello("b.test")).await;
    assert_eq!(client.rest().await, "");
    assert_eq!(proxy.events(1).await[0].host.as_deref(), Some("b.test"));
}

#[tokio::test]
async fn http_to_a_name_is_decided_by_its_authority() {
    let at = echo().await;
    let proxy = to(at).start_captured(&format!("{FIRST}:{}", at.port())).await;
    proxy.ask("a.test", 1).await;
    let answer = proxy.say("GET /x HTTP/1.1\r\nHost: a.test\r\nConnection: close\r\n\r\n").await;
    assert!(answer.contains("\r\n\r\nGET /x HTTP/1.1\r\n"), "{answer}");
    let answer = proxy.say("GET /x HTTP/1.0\r\n\r\n").await;
    assert!(answer.contains("\r\n\r\nGET /x HTTP/1.1\r\n"), "{answer}");
    let answer = proxy.say("GET /x HTTP/1.1\r\nHost: evil.test\r\nConnection: close\r\n\r\n").await;
    assert!(answer.starts_with("HTTP/1.1 403 "), "{answer}");
    assert_eq!(proxy.violations()[0].host.as_deref(), Some("evil.test"));
}

#[tokio::test]
async fn addresses_are_decided_as_addresses() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let at = listener.local_addr().unwrap();
    let setup = || Setup::new().net(Allow, "127.0.0.1/32", port(at.port())).host(Allow, "*", ANY);
    let proxy = setup().start_captured(&at.to_string()).await;
    let mut client = proxy.client().await;
    client.send(hello("whatever.test")).await;
    let mut server = Client::over(within(listener.accept()).await.unwrap().0);
    assert_eq!(server.exactly(5).await, &hello("whatever.test")[..5]);

    let mapped = setup().start_captured(&format!("[::ffff:127.0.0.1]:{}", at.port())).await;
    let _client = mapped.client().await;
    within(listener.accept()).await.unwrap();

    for elsewhere in ["192.0.2.7:80", "[2001:db8::7]:80", "127.0.0.2:80", "198.18.0.16:80", "198.18.0.1:3128"] {
        let proxy = setup().start_captured(elsewhere).await;
        let mut client = proxy.client().await;
        assert_eq!(client.rest().await, "", "{elsewhere}");
        let event = &proxy.events(1).await[0];
        assert_eq!(
            (event.why, event.port),
            (Some(Why::Default), Some(elsewhere.parse::<std::net::SocketAddr>().unwrap().port()))
        );
    }
}

#[tokio::test]
async fn a_captured_connection_does_not_speak_to_the_proxy() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let at = listener.local_addr().unwrap();
    let proxy = to(at).start_captured(&at.to_string()).await;
    for bytes in ["CONNECT evil.test:443 HTTP/1.1\r\n\r\n", "\u{5}\u{1}\0", "\u{4}\u{1}"] {
        let mut client = proxy.client().await;
        client.send(bytes).await;
        let mut server = Client::over(within(listener.accept()).await.unwrap().0);
        assert_eq!(server.exactly(bytes.len()).await, bytes.as_bytes());
    }
}

#[tokio::test]
async fn questions_over_tcp() {
    let at = unreachable().await;
    let proxy = to(at).start_captured("192.0.2.53:53").await;
    let mut client = proxy.client().await;
    for (name, kind, expected) in
        [("a.test", 1, (0, Some(FIRST.to_owned()))), ("b.test", 1, (3, None)), ("a.test", 28, (0, None))]
    {
        let question = question(name, kind);
        client.send(u16::try_from(question.len()).unwrap().to_be_bytes()).await;
        client.send(question).await;
        let length = u16::from_be_bytes(client.exactly(2).await.try_into().unwrap());
        assert_eq!(read_answer(&client.exactly(length.into()).await), expected, "{name}");
    }
}
