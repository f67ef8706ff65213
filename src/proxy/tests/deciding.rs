//! What is allowed, what is refused, and what a refusal says.

use super::harness::*;
use crate::event::Outcome;
use crate::ir::Why;
use crate::vocabulary::Effect::{Allow, Deny, Forbid};
use tokio::net::TcpListener;

#[tokio::test]
async fn no_connect_rule_means_no_network() {
    let at = unreachable().await;
    let proxy = Setup::new().name("a.test", &[&["127.0.0.1"]]).start().await;
    for uri in
        [format!("http://{at}/"), format!("http://a.test:{}/", at.port()), format!("http://localhost:{}/", at.port())]
    {
        let answer = proxy.get(&uri).await;
        assert!(answer.starts_with("HTTP/1.1 403 "), "{answer}");
        assert!(answer.contains("no rule allows it\n"), "{answer}");
    }
    assert_eq!(proxy.violations().len(), 3);
}

#[tokio::test]
async fn an_allowed_name_is_reached() {
    let at = echo().await;
    let proxy = to(at).start().await;
    let port = at.port();
    let answer = proxy.get(&format!("http://a.test:{port}/x?y")).await;
    assert!(answer.starts_with("HTTP/1.1 200 OK\r\n"), "{answer}");
    assert!(answer.contains("\r\n\r\nGET /x?y HTTP/1.1\r\n"), "{answer}");
    assert!(proxy.violations().is_empty());
}

#[tokio::test]
async fn a_refusal_names_the_rule_its_place_and_its_reason() {
    let proxy = Setup::new()
        .host(Allow, "a.test", ANY)
        .host(Forbid, "*.evil.test", ANY)
        .because("the audit of March")
        .start()
        .await;
    let answer = proxy.get("http://www.evil.test/").await;
    assert!(answer.starts_with("HTTP/1.1 403 Forbidden\r\n"), "{answer}");
    assert_eq!(field(&answer, "content-type"), Some("text/plain; charset=utf-8"));
    let body = answer.split_once("\r\n\r\n").unwrap().1;
    assert_eq!(
        body,
        "srt: connecting to www.evil.test:80 is refused\n\
         test.policy:2 says: forbid connect *.evil.test\n\
         because: the audit of March\n\
         nothing opens a `forbid`: to allow it, change that rule\n"
    );
    let violations = proxy.violations();
    let [violation] = violations.as_slice() else { panic!("{violations:?}") };
    assert_eq!(violation.operation, "connect");
    assert_eq!((violation.host.as_deref(), violation.port), (Some("www.evil.test"), Some(80)));
    assert_eq!(violation.outcome, Outcome::Refused);
    assert_eq!(violation.why, Some(Why::Forbidden));
    let rule = violation.rule.as_ref().unwrap();
    assert_eq!((rule.file.as_str(), rule.line, rule.text.as_str()), ("test.policy", 2, "forbid connect *.evil.test"));
    assert_eq!(violation.because.as_deref(), Some("the audit of March"));
    assert_eq!(violation.timestamp.len(), "2026-01-02T03:04:05.006Z".len());
}

#[tokio::test]
async fn a_refusal_says_what_to_write() {
    let proxy = Setup::new().host(Deny, "*.x.test", ANY).start().await;
    for (uri, statement) in [
        ("http://a.test/", "allow connect a.test:80"),
        ("http://a.x.test:8080/", "allow connect a.x.test:8080"),
        ("http://192.0.2.7/", "allow connect 192.0.2.7:80"),
        ("http://[2001:db8::7]:81/", "allow connect [2001:db8::7]:81"),
    ] {
        let answer = proxy.get(uri).await;
        assert!(answer.ends_with(&format!("\nto allow it, add: {statement}\n")), "{answer}");
    }
    let proxy = Setup::new().host(Deny, "a.test", port(80)).start().await;
    let answer = proxy.get("http://a.test/").await;
    assert!(answer.ends_with("\nto allow it, add: allow connect a.test:80\n"), "only TCP is inside of both: {answer}");
}

#[tokio::test]
async fn a_refused_connect_has_the_same_text() {
    let proxy = Setup::new().host(Deny, "*", ANY).because("offline").start().await;
    let mut client = proxy.client().await;
    client.send("CONNECT a.test:443 HTTP/1.1\r\nHost: a.test:443\r\n\r\n").await;
    let answer = client.response().await;
    assert!(answer.starts_with("HTTP/1.1 403 Forbidden\r\n"), "{answer}");
    assert!(answer.contains("test.policy:1 says: deny connect *\nbecause: offline\n"), "{answer}");
    let status = field(&answer, "proxy-status").unwrap();
    assert!(status.starts_with("srt; error=http_request_denied; details=\"srt: connecting to a.test:443 is refused; "));
}

#[tokio::test]
async fn another_port_of_an_allowed_name_is_refused() {
    let at = unreachable().await;
    let proxy = Setup::new()
        .host(Allow, "a.test", port(443))
        .net(Allow, "127.0.0.1/32", ANY)
        .name("a.test", &[&["127.0.0.1"]])
        .start()
        .await;
    let answer = proxy.get(&format!("http://a.test:{}/", at.port())).await;
    assert!(answer.starts_with("HTTP/1.1 403 "), "{answer}");
}

#[tokio::test]
async fn a_name_that_no_rule_allows_is_never_resolved() {
    let proxy = Setup::new()
        .host(Allow, "a.test", ANY)
        .host(Deny, "b.a.test", ANY)
        .net(Allow, "127.0.0.0/8", ANY)
        .name("secret-in-a-label.test", &[&["127.0.0.1"]])
        .start()
        .await;
    proxy.get("http://secret-in-a-label.test/").await;
    proxy.get("http://b.a.test/").await;
    proxy.say("CONNECT secret-in-a-label.test:443 HTTP/1.0\r\n\r\n").await;
    assert_eq!(proxy.asked(), Vec::<String>::new());
    assert_eq!(proxy.violations().len(), 3);
}

#[tokio::test]
async fn a_suffix_ends_at_a_label() {
    let proxy = Setup::new().host(Allow, "*.example.test", ANY).start().await;
    for host in ["notexample.test", "example.test", "example.test.evil.test", "xexample.test", "a.example.testx"] {
        let answer = proxy.get(&format!("http://{host}/")).await;
        assert!(answer.starts_with("HTTP/1.1 403 "), "{host}: {answer}");
    }
    // Allowed, and so resolved: the resolver of this test knows no name.
    let answer = proxy.get("http://a.b.example.test/").await;
    assert!(answer.starts_with("HTTP/1.1 502 "), "{answer}");
    assert_eq!(proxy.asked(), ["a.b.example.test"]);
}

#[tokio::test]
async fn the_address_of_an_allowed_name_is_not_allowed_by_itself() {
    let proxy = Setup::new().host(Allow, "*", ANY).name("a.test", &[&["192.0.2.7"]]).start().await;
    let answer = proxy.get("http://192.0.2.7/").await;
    assert!(answer.starts_with("HTTP/1.1 403 "), "{answer}");
    assert!(answer.ends_with("\nto allow it, add: allow connect 192.0.2.7:80\n"), "{answer}");
}

#[tokio::test]
async fn an_address_rule_opens_a_private_address() {
    let at = echo().await;
    let proxy = Setup::new().net(Allow, "127.0.0.1/32", port(at.port())).start().await;
    for host in ["127.0.0.1", "localhost", "LocalHost.", "app.localhost", "[::ffff:127.0.0.1]"] {
        let answer = proxy.get(&format!("http://{host}:{}/", at.port())).await;
        assert!(answer.starts_with("HTTP/1.1 200 OK\r\n"), "{host}: {answer}");
    }
    assert_eq!(proxy.asked(), Vec::<String>::new(), "the loopback is asked of no resolver");
}

#[tokio::test]
async fn an_allowed_name_does_not_reach_a_special_address() {
    for address in ["127.0.0.1", "169.254.169.254", "0.0.0.0", "::1", "::ffff:127.0.0.1", "64:ff9b::7f00:1", "fe80::1"]
    {
        let at = unreachable().await;
        let proxy = Setup::new().host(Allow, "a.test", ANY).name("a.test", &[&[address]]).start().await;
        let answer = proxy.get(&format!("http://a.test:{}/", at.port())).await;
        assert!(answer.starts_with("HTTP/1.1 403 "), "{address}: {answer}");
        assert!(answer.contains("the name is allowed, but it leads to "), "{address}: {answer}");
        let violations = proxy.violations();
        assert_eq!(violations[0].why, Some(Why::Special));
        assert!(violations[0].address.is_some());
        assert_eq!(violations[0].rule, None, "the rule that allows the name did not refuse");
    }
}

/// The same port of two loopback addresses: one is allowed, the other must not be reached.
async fn neighbours() -> u16 {
    let at = echo().await;
    let neighbour = TcpListener::bind(("127.0.0.2", at.port())).await.expect("all of 127.0.0.0/8 is the loopback");
    unreachable_at(neighbour);
    at.port()
}

#[tokio::test]
async fn only_the_addresses_that_passed_are_dialled() {
    let port = neighbours().await;
    let at = ([127, 0, 0, 1], port).into();
    let proxy = to(at).name("a.test", &[&["127.0.0.2", "169.254.169.254", "127.0.0.1"]]).start().await;
    let answer = proxy.get(&format!("http://a.test:{port}/")).await;
    assert!(answer.starts_with("HTTP/1.1 200 OK\r\n") && answer.contains("GET / "), "{answer}");
    assert!(proxy.violations().is_empty());
}

#[tokio::test]
async fn the_decided_address_is_the_dialled_one() {
    // Whoever looked the name up again for dialling would reach the neighbour.
    let port = neighbours().await;
    let at = ([127, 0, 0, 1], port).into();
    let proxy = to(at).name("a.test", &[&["127.0.0.1"], &["127.0.0.2"]]).start().await;
    let answer = proxy.get(&format!("http://a.test:{port}/")).await;
    assert!(answer.starts_with("HTTP/1.1 200 OK\r\n") && answer.contains("GET / "), "{answer}");
    assert_eq!(proxy.asked(), ["a.test"]);
    // The next request asks again, and is decided again.
    let answer = proxy.get(&format!("http://a.test:{port}/")).await;
    assert!(answer.starts_with("HTTP/1.1 403 "), "{answer}");
}

#[tokio::test]
async fn a_client_that_is_still_writing_comes_to_read_its_refusal() {
    let proxy = Setup::new().start().await;
    for _ in 0..5 {
        let mut client = proxy.client().await;
        let size = 512 << 10;
        client.send(format!("POST http://a.test/ HTTP/1.1\r\nHost: x\r\nContent-Length: {size}\r\n\r\n")).await;
        client.send(vec![b'x'; size]).await;
        assert!(client.response().await.starts_with("HTTP/1.1 403 "));
        // And it may go on.
        client.send("GET http://b.test/ HTTP/1.1\r\nHost: x\r\n\r\n").await;
        assert!(client.response().await.contains("connecting to b.test:80 is refused"));
    }
}

#[tokio::test]
async fn each_request_of_a_connection_is_decided() {
    let at = echo().await;
    let proxy = to(at).start().await;
    let mut client = proxy.client().await;
    let port = at.port();
    for round in 0..3 {
        client.send(format!("GET http://a.test:{port}/{round} HTTP/1.1\r\nHost: a.test\r\n\r\n")).await;
        let answer = client.response().await;
        assert!(answer.starts_with("HTTP/1.1 200 OK\r\n"), "{answer}");
        client.send(format!("GET http://evil.test:{port}/ HTTP/1.1\r\nHost: a.test:{port}\r\n\r\n")).await;
        let answer = client.response().await;
        assert!(answer.starts_with("HTTP/1.1 403 "), "{answer}");
    }
    assert_eq!(proxy.violations().len(), 3);
}

#[tokio::test]
async fn a_relay_inside_reaches_no_more_than_the_policy() {
    let at = echo().await;
    let proxy = to(at).start().await;
    let outer = proxy.at;
    // What a command may start for itself: whoever speaks to it speaks to the proxy.
    let relay = upstream(move |mut client| async move {
        let mut onward = tokio::net::TcpStream::connect(outer).await.unwrap();
        let _ = tokio::io::copy_bidirectional(&mut client.stream, &mut onward).await;
    })
    .await;
    for (host, status) in [("a.test", "200 OK"), ("evil.test", "403 Forbidden")] {
        let mut client = Client::over(tokio::net::TcpStream::connect(relay).await.unwrap());
        client.send(format!("CONNECT {host}:{} HTTP/1.1\r\n\r\n", at.port())).await;
        let answer = client.head().await;
        assert!(answer.starts_with(&format!("HTTP/1.1 {status}\r\n")), "{answer}");
    }
}

#[tokio::test]
async fn an_allowed_target_that_cannot_be_reached_says_why() {
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let at = listener.local_addr().unwrap();
    drop(listener);
    let proxy = to(at)
        .host(Allow, "slow.test", ANY)
        .host(Allow, "gone.test", ANY)
        .name("slow.test", &[&[]])
        .limits(|limits| limits.resolve = std::time::Duration::from_millis(50))
        .start()
        .await;
    for (uri, status, words) in [
        (format!("http://a.test:{}/", at.port()), "502 Bad Gateway", "srt: allowed, but the host can't be reached: "),
        ("http://gone.test/".into(), "502 Bad Gateway", "srt: allowed, but the name can't be resolved: no such name"),
        ("http://slow.test/".into(), "504 Gateway Timeout", "srt: allowed, but the name can't be resolved: timed out"),
    ] {
        let answer = proxy.get(&uri).await;
        assert!(answer.starts_with(&format!("HTTP/1.1 {status}\r\n")), "{answer}");
        assert!(answer.contains(&format!("\r\n\r\n{words}")), "{answer}");
    }
    assert!(proxy.violations().is_empty(), "nothing was refused");
}
