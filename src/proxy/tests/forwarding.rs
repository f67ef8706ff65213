//! What goes to the origin and what comes back.

use super::harness::*;
use crate::vocabulary::Effect::Allow;
use tokio::net::TcpListener;

/// A server that answers the first request of a connection with these bytes.
async fn saying(bytes: &'static str) -> std::net::SocketAddr {
    upstream(move |mut client| async move {
        client.head().await;
        client.send(bytes).await;
    })
    .await
}

#[tokio::test]
async fn the_authority_and_the_host_header_must_agree() {
    let at = echo().await;
    let proxy = to(at).start().await;
    let port = at.port();
    for host in
        ["Host: evil.test\r\n", "Host: \r\n", "Host: [allowed.example]\r\n", &format!("Host: a.test:{port}\r\n")]
    {
        let answer = proxy.say(format!("GET http://A.test.:{port}/ HTTP/1.1\r\n{host}Connection: close\r\n\r\n")).await;
        let seen = answer.split_once("\r\n\r\n").unwrap().1;
        assert_eq!(field(seen, "host"), Some(format!("a.test:{port}").as_str()), "{answer}");
        assert_eq!(seen.to_ascii_lowercase().matches("\nhost:").count(), 1, "{answer}");
        assert!(seen.starts_with("GET / HTTP/1.1\r\n"), "{answer}");
    }
}

#[tokio::test]
async fn what_belongs_to_one_hop_stays_there() {
    let at = echo().await;
    let proxy = to(at).start().await;
    let answer = proxy
        .say(format!(
            "GET http://a.test:{}/ HTTP/1.1\r\nHost: a.test\r\nConnection: close, X-Mine\r\nConnection: x-second\r\n\
             X-Mine: 1\r\nX-Second: 1\r\nKeep-Alive: 5\r\nProxy-Connection: keep-alive\r\nTE: trailers\r\n\
             Upgrade: h2c\r\nHTTP2-Settings: AAMAAABkAARAAAAA\r\nProxy-Authorization: Basic c2VjcmV0\r\n\
             X-Kept: yes\r\nAuthorization: Basic a2VwdA==\r\n\r\n",
            at.port()
        ))
        .await;
    let seen = answer.split_once("\r\n\r\n").unwrap().1;
    for gone in
        ["connection", "x-mine", "x-second", "keep-alive", "proxy-connection", "te", "upgrade", "proxy-authorization"]
    {
        assert_eq!(field(seen, gone), None, "{gone}: {answer}");
    }
    assert_eq!(field(seen, "x-kept"), Some("yes"));
    assert_eq!(field(seen, "authorization"), Some("Basic a2VwdA=="));
    assert_eq!(field(seen, "via"), None);
}

#[tokio::test]
async fn what_belongs_to_one_hop_of_the_answer_stays_there() {
    let at = saying(
        "HTTP/1.1 200 OK\r\nConnection: X-Mine\r\nX-Mine: 1\r\nKeep-Alive: timeout=5\r\nProxy-Authenticate: Basic\r\n\
         X-Kept: yes\r\nContent-Length: 2\r\n\r\nok",
    )
    .await;
    let proxy = to(at).start().await;
    let answer = proxy.get(&format!("http://a.test:{}/", at.port())).await;
    for gone in ["x-mine", "keep-alive", "proxy-authenticate"] {
        assert_eq!(field(&answer, gone), None, "{gone}: {answer}");
    }
    assert_eq!(field(&answer, "x-kept"), Some("yes"));
    assert!(answer.ends_with("\r\n\r\nok"), "{answer}");
}

#[tokio::test]
async fn content_arrives_whole_in_either_framing() {
    let at = upstream(|mut client| async move {
        let head = client.head().await;
        let content = match field(&head, "content-length") {
            Some(length) => String::from_utf8(client.exactly(length.parse().unwrap()).await).unwrap(),
            None => client.until("0\r\n\r\n").await,
        };
        let body = head + &content;
        client
            .send(format!(
                "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n{:x}\r\n{body}\r\n0\r\n\r\n",
                body.len()
            ))
            .await;
    })
    .await;
    let proxy = to(at).start().await;
    let port = at.port();
    for method in ["POST", "PUT", "GET", "DELETE", "REPORT"] {
        let framed = proxy
            .say(format!(
                "{method} http://a.test:{port}/ HTTP/1.1\r\nHost: x\r\nConnection: close\r\nContent-Length: 5\r\n\r\nhello"
            ))
            .await;
        assert_eq!(field(&framed[framed.find(method).unwrap()..], "content-length"), Some("5"), "{framed}");
        assert!(framed.contains("\r\n\r\nhello\r\n0\r\n\r\n"), "{framed}");
        let chunked = proxy
            .say(format!(
                "{method} http://a.test:{port}/ HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\
                 Transfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n0\r\n\r\n"
            ))
            .await;
        assert!(chunked.contains("5\r\nhello\r\n0\r\n\r\n"), "{chunked}");
    }
}

#[tokio::test]
async fn answers_of_every_framing_pass() {
    for (bytes, body) in [
        ("HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok", "ok"),
        ("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nok\r\n0\r\n\r\n", "2\r\nok\r\n0\r\n\r\n"),
        ("HTTP/1.1 200 OK\r\nConnection: close\r\n\r\nok", "2\r\nok\r\n0\r\n\r\n"),
        ("HTTP/1.0 200 OK\r\n\r\nok", "2\r\nok\r\n0\r\n\r\n"),
        ("HTTP/1.1 204 No Content\r\n\r\n", ""),
        ("HTTP/1.1 304 Not Modified\r\nContent-Length: 9\r\n\r\n", ""),
        ("HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok", "ok"),
        ("HTTP/1.1 103 Early Hints\r\nLink: </x>\r\n\r\nHTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok", "ok"),
    ] {
        let at = saying(bytes).await;
        let proxy = to(at).start().await;
        let answer = proxy.get(&format!("http://a.test:{}/", at.port())).await;
        assert!(answer.starts_with("HTTP/1.1 2") || answer.starts_with("HTTP/1.1 304"), "{answer}");
        assert_eq!(answer.split_once("\r\n\r\n").unwrap().1, body, "{bytes:?}");
    }
}

#[tokio::test]
async fn a_head_request_gets_the_length_and_no_content() {
    let at = saying("HTTP/1.1 200 OK\r\nContent-Length: 1000\r\n\r\n").await;
    let proxy = to(at).start().await;
    let answer =
        proxy.say(format!("HEAD http://a.test:{}/ HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n", at.port())).await;
    assert_eq!(field(&answer, "content-length"), Some("1000"), "{answer}");
    assert!(answer.ends_with("\r\n\r\n"), "{answer}");
}

#[tokio::test]
async fn a_client_that_waits_for_100_gets_it_when_allowed_and_403_when_not() {
    let at = echo().await;
    let proxy = to(at).start().await;
    let mut client = proxy.client().await;
    let head = |host: &str| {
        format!(
            "POST http://{host}:{}/ HTTP/1.1\r\nHost: x\r\nExpect: 100-continue\r\nContent-Length: 5\r\n\r\n",
            at.port()
        )
    };
    client.send(head("a.test")).await;
    assert_eq!(client.head().await, "HTTP/1.1 100 Continue\r\n\r\n");
    client.send("hello").await;
    let answer = client.response().await;
    assert!(answer.starts_with("HTTP/1.1 200 OK\r\n") && answer.ends_with("\r\n\r\nhello"), "{answer}");
    let mut client = proxy.client().await;
    client.send(head("evil.test")).await;
    let answer = client.head().await;
    assert!(answer.starts_with("HTTP/1.1 403 "), "the content is not asked for: {answer}");
}

#[tokio::test]
async fn an_old_client_is_answered_in_its_version() {
    let at = saying("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nok\r\n0\r\n\r\n").await;
    let proxy = to(at).start().await;
    let answer = proxy.say(format!("GET http://a.test:{}/ HTTP/1.0\r\n\r\n", at.port())).await;
    assert!(answer.starts_with("HTTP/1.0 200 OK\r\n") && answer.ends_with("\r\n\r\nok"), "{answer}");
}

#[tokio::test]
async fn what_is_no_request_to_a_proxy_is_told_so() {
    let proxy = Setup::new().host(Allow, "*", ANY).start().await;
    for (line, words) in [
        ("GET / HTTP/1.1", "this is a proxy: ask for an absolute URI, or use CONNECT"),
        ("OPTIONS * HTTP/1.1", "this is a proxy: ask for an absolute URI, or use CONNECT"),
        ("GET a.test:80 HTTP/1.1", "this is a proxy: ask for an absolute URI, or use CONNECT"),
        ("GET https://a.test/ HTTP/1.1", "https goes through CONNECT"),
        ("GET ftp://a.test/ HTTP/1.1", "only http is forwarded"),
        ("GET ws://a.test/ HTTP/1.1", "only http is forwarded"),
        ("CONNECT a.test HTTP/1.1", "the port is missing"),
        ("CONNECT http://a.test:80/ HTTP/1.1", "CONNECT takes host:port"),
        ("CONNECT / HTTP/1.1", "CONNECT takes host:port"),
    ] {
        let answer = proxy.say(format!("{line}\r\nHost: a.test\r\nConnection: close\r\n\r\n")).await;
        assert!(answer.starts_with("HTTP/1.1 400 "), "{line}: {answer}");
        assert!(answer.contains(words), "{line}: {answer}");
    }
    assert_eq!(proxy.asked(), Vec::<String>::new());
}

#[tokio::test]
async fn an_upstream_that_speaks_no_http_is_502() {
    for bytes in [
        "SSH-2.0-OpenSSH_9.2\r\n",
        "\0\0\0\x01junk\r\n\r\n",
        "",
        "HTTP/1.1 200 OK\r\nTransfer-Encoding: gzip, chunked\r\n\r\n0\r\n\r\n",
        "HTTP/1.1 200 OK\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\nab",
        "HTTP/1.1 200 OK\r\nContent-Length: -1\r\n\r\n",
        "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n",
        "HTTP/2.0 200 OK\r\n\r\n",
    ] {
        let at = saying(bytes).await;
        let proxy = to(at).start().await;
        let answer = proxy.get(&format!("http://a.test:{}/", at.port())).await;
        assert!(answer.starts_with("HTTP/1.1 502 "), "{bytes:?}: {answer}");
        assert!(answer.contains("srt: allowed, but the answer is no HTTP/1.1"), "{bytes:?}: {answer}");
    }
}

#[tokio::test]
async fn an_upstream_head_is_bounded() {
    let at = upstream(|mut client| async move {
        client.head().await;
        client.send("HTTP/1.1 200 OK\r\nX-Long: ").await;
        for _ in 0..1000 {
            client.send([b'x'; 1024]).await;
        }
    })
    .await;
    let proxy = to(at).start().await;
    let answer = proxy.get(&format!("http://a.test:{}/", at.port())).await;
    assert!(answer.starts_with("HTTP/1.1 502 "), "{answer}");
}

#[tokio::test]
async fn a_client_that_vanishes_takes_its_upstream_connection_with_it() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let at = listener.local_addr().unwrap();
    let proxy = to(at).start().await;
    let mut client = proxy.client().await;
    client.send(format!("GET http://a.test:{}/ HTTP/1.1\r\nHost: x\r\n\r\n", at.port())).await;
    let mut server = Client::over(within(listener.accept()).await.unwrap().0);
    server.head().await;
    drop(client);
    assert_eq!(server.rest().await, "", "the proxy closes, and says no more");
}

#[tokio::test]
async fn a_long_answer_is_streamed() {
    let at = upstream(|mut client| async move {
        client.head().await;
        client.send("HTTP/1.1 200 OK\r\nContent-Length: 33554432\r\n\r\n").await;
        for _ in 0..32 {
            client.send(vec![b'x'; 1 << 20]).await;
        }
    })
    .await;
    let proxy = to(at).start().await;
    let mut client = proxy.client().await;
    client.send(format!("GET http://a.test:{}/ HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n", at.port())).await;
    client.head().await;
    assert_eq!(client.rest().await.len(), 32 << 20);
}
