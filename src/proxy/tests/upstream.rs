//! Another proxy between ours and the world.

use super::harness::*;
use crate::ir::Why;
use crate::vocabulary::Effect::{Allow, Deny};
use std::net::SocketAddr;
use tokio::net::TcpListener;

/// A proxy that answers CONNECT so, and then says back what it hears, after what it was asked.
async fn connecting(answer: &'static str) -> SocketAddr {
    upstream(move |mut client| async move {
        let head = client.head().await;
        client.send(answer).await;
        client.send(format!("{}|", head.replace("\r\n", ";"))).await;
        let said = client.exactly(4).await;
        client.send(said).await;
    })
    .await
}

/// `a.test`, which this machine knows no address of, is allowed, and everything goes through `proxy`.
fn through(proxy: SocketAddr) -> Setup {
    Setup::new().host(Allow, "a.test", ANY).variable("ALL_PROXY", &format!("http://us%40er:hunter2@{proxy}"))
}

#[tokio::test]
async fn a_tunnel_goes_through_the_proxy_by_name_and_with_credentials() {
    let proxy = connecting("HTTP/1.1 200 OK\r\n\r\n").await;
    let running = through(proxy).start().await;
    let mut client = running.client().await;
    client.send("CONNECT A.test:443 HTTP/1.1\r\nProxy-Authorization: Basic b3Vycw==\r\n\r\n").await;
    assert!(client.head().await.starts_with("HTTP/1.1 200 "));
    let asked = client.until("|").await;
    assert_eq!(
        asked,
        "CONNECT a.test:443 HTTP/1.1;Host: a.test:443;Proxy-Authorization: Basic dXNAZXI6aHVudGVyMg==;;|"
    );
    client.send("\0abc").await;
    assert_eq!(client.rest().await, "\0abc");
    drop(client);
    let told = running.connections(1).await.remove(0);
    assert_eq!((told.host.as_deref(), told.address, told.through), (Some("a.test"), None, Some(proxy.to_string())));
    assert_eq!(told.rule.unwrap().text, "allow connect a.test");
}

#[tokio::test]
async fn what_the_proxy_refuses_is_told_without_the_password() {
    let login = "HTTP/1.1 407 Proxy Authentication Required\r\nProxy-Authenticate: Basic realm=\"x\"\r\nContent-Length: 0\r\n\r\n";
    let proxy = connecting(login).await;
    let running = through(proxy).start().await;
    for request in [
        "CONNECT a.test:443 HTTP/1.1\r\nConnection: close\r\n\r\n",
        "GET http://a.test/ HTTP/1.1\r\nConnection: close\r\n\r\n",
    ] {
        let answer = running.say(request).await;
        let says = format!("allowed, but the host can't be reached: {proxy}: the proxy says 407 ");
        assert!(answer.starts_with("HTTP/1.1 502 ") && answer.contains(&says), "{answer}");
        assert!(!answer.contains("hunter") && !answer.to_lowercase().contains("proxy-authenticate"), "{answer}");
    }
    let nobody = TcpListener::bind("127.0.0.1:0").await.unwrap().local_addr().unwrap();
    let answer = through(nobody).start().await.get("http://a.test/").await;
    assert!(answer.contains(&format!("the proxy {nobody}: ")) && !answer.contains("hunter"), "{answer}");
}

#[tokio::test]
async fn a_request_is_asked_of_the_proxy_as_such() {
    let running = through(echo().await).start().await;
    let answer = running.get("http://A.test:80/x?y").await;
    assert!(answer.contains("GET http://a.test/x?y HTTP/1.1\r\n"), "{answer}");
    let head = answer.split_once("\r\n\r\n").unwrap().1;
    assert_eq!(field(head, "host"), Some("a.test"), "{answer}");
    assert_eq!(field(head, "proxy-authorization"), Some("Basic dXNAZXI6aHVudGVyMg=="), "{answer}");
}

#[tokio::test]
async fn a_captured_request_is_asked_of_the_proxy_too() {
    let setup = through(echo().await).net(Allow, "192.0.2.7/32", port(80));
    let running = setup.start_captured("192.0.2.7:80").await;
    let answer = running.say("GET /x HTTP/1.1\r\nHost: a.test\r\nConnection: close\r\n\r\n").await;
    assert!(answer.contains("GET http://a.test/x HTTP/1.1\r\n"), "{answer}");
    let answer = running.say("GET /x HTTP/1.1\r\nHost: b.test\r\nConnection: close\r\n\r\n").await;
    assert!(answer.starts_with("HTTP/1.1 403 "), "{answer}");
}

#[tokio::test]
async fn the_policy_decides_before_any_proxy_is_asked() {
    let proxy = unreachable().await;
    let setup = through(proxy).host(Allow, "*.wild.test", ANY).name("x.wild.test", &[&["10.0.0.1"]]);
    let setup = setup.name("a.test", &[&["192.0.2.7", "127.0.0.1"]]);
    let running = setup.start().await;
    for target in [
        "b.test:443",
        "192.0.2.7:443",
        "169.254.169.254:80",
        "127.0.0.1:443",
        "localhost:443",
        // What this machine finds of a name counts: each address that the proxy may find as well.
        "x.wild.test:443",
        "a.test:443",
    ] {
        let answer = running.say(format!("CONNECT {target} HTTP/1.1\r\nConnection: close\r\n\r\n")).await;
        assert!(answer.starts_with("HTTP/1.1 403 "), "{target}: {answer}");
        let answer = running.get(&format!("http://{target}/")).await;
        assert!(answer.starts_with("HTTP/1.1 403 "), "{target}: {answer}");
    }
    assert_eq!(running.violations().last().unwrap().why, Some(Why::Special));
}

#[tokio::test]
async fn where_an_address_is_denied_a_name_without_one_is_refused() {
    let setup = through(unreachable().await).net(Deny, "10.0.0.0/8", port(443)).because("not the plant's");
    let running = setup.start().await;
    let answer = running.say("CONNECT a.test:443 HTTP/1.1\r\nConnection: close\r\n\r\n").await;
    assert!(answer.starts_with("HTTP/1.1 403 "), "{answer}");
    assert!(answer.contains("test.policy:2 says: deny connect 10.0.0.0/8"), "{answer}");
    let told = running.events(1).await.remove(0);
    assert_eq!((told.host.as_deref(), told.because.as_deref()), Some("a.test").zip(Some("not the plant's")).unzip());
    assert!(told.detail.unwrap().contains("this machine does not"));
    // At another port nothing is denied by address.
    let answer = running.say("CONNECT a.test:80 HTTP/1.1\r\nConnection: close\r\n\r\n").await;
    assert!(!answer.starts_with("HTTP/1.1 403 "), "{answer}");
    // That denies what is special, and so never reached by a name that is looked up, says nothing of the others.
    let setup = through(connecting("HTTP/1.1 200 OK\r\n\r\n").await).net(Deny, "169.254.0.0/16", ANY);
    let running = setup.start().await;
    let mut client = running.client().await;
    client.send("CONNECT a.test:443 HTTP/1.1\r\n\r\n").await;
    assert!(client.head().await.starts_with("HTTP/1.1 200 "));
}

/// A tunnel by name has no address that is known for certain: a new denial of addresses ends it as it would have refused it.
#[tokio::test]
async fn an_address_that_is_denied_now_cuts_the_tunnel_of_a_name() {
    for known in [Some("10.1.2.3"), None] {
        let proxy = connecting("HTTP/1.1 200 OK\r\n\r\n").await;
        let setup = || {
            let setup = through(proxy).net(Allow, "10.0.0.0/8", ANY);
            known.iter().fold(setup, |setup, address| setup.name("a.test", &[&[*address]]))
        };
        let running = setup().start().await;
        let mut client = running.client().await;
        client.send("CONNECT a.test:443 HTTP/1.1\r\n\r\n").await;
        assert!(client.head().await.starts_with("HTTP/1.1 200 "));
        client.until("|").await;
        running.in_force.replace(setup().net(Deny, "192.168.0.0/16", port(80)).rules());
        client.send("ab").await;
        running.in_force.replace(setup().net(Deny, "10.1.0.0/16", port(443)).rules());
        assert_eq!(client.rest().await, "", "{known:?}");
        let told = running.events(1).await.remove(0);
        assert_eq!(told.host.as_deref(), Some("a.test"), "{known:?}: {told:?}");
    }
}

/// A SOCKS5 proxy that says what it was asked for.
async fn socks() -> SocketAddr {
    upstream(|mut client| async move {
        let greeting = client.exactly(2).await;
        client.exactly(usize::from(greeting[1])).await;
        client.send([5, 2]).await;
        let user = client.exactly(2).await[1];
        let user = String::from_utf8(client.exactly(usize::from(user)).await).unwrap();
        let length = client.exactly(1).await[0];
        let password = String::from_utf8(client.exactly(usize::from(length)).await).unwrap();
        client.send([1, 0]).await;
        let kind = client.exactly(4).await[3];
        let length = if kind == 1 { 4 } else { client.exactly(1).await[0] };
        let host = client.exactly(usize::from(length)).await;
        client.exactly(2).await;
        client.send([5, 0, 0, 1, 0, 0, 0, 0, 0, 0]).await;
        client.send(format!("{user}:{password} {kind} {}", String::from_utf8_lossy(&host))).await;
    })
    .await
}

#[tokio::test]
async fn socks_is_told_the_name_or_the_address_that_was_decided() {
    for (scheme, expected) in [("socks5h", "us@er:hunter2 3 a.test"), ("socks5", "us@er:hunter2 1 ABCD")] {
        let proxy = socks().await;
        let setup =
            Setup::new().host(Allow, "a.test", ANY).name("a.test", &[&["127.0.0.1", "65.66.67.68"], &["65.66.67.68"]]);
        let running = setup.variable("https_proxy", &format!("{scheme}://us%40er:hunter2@{proxy}")).start().await;
        // Of two addresses, one is not allowed; the proxy that looks names up might find that one.
        let first = running.say("CONNECT a.test:443 HTTP/1.1\r\nConnection: close\r\n\r\n").await;
        assert_eq!(first.starts_with("HTTP/1.1 403 "), scheme == "socks5h", "{first}");
        let answer = running.say("CONNECT a.test:443 HTTP/1.1\r\nConnection: close\r\n\r\n").await;
        assert!(answer.ends_with(expected), "{scheme}: {answer}");
    }
}

#[tokio::test]
async fn what_is_exempt_goes_straight_to_its_host() {
    let server = echo().await;
    let running = to(server).variable("ALL_PROXY", &unreachable().await.to_string()).variable("NO_PROXY", ".test");
    let running = running.start().await;
    let answer = running.get(&format!("http://a.test:{}/", server.port())).await;
    assert!(answer.contains("GET / HTTP/1.1\r\n"), "{answer}");
    let answer = running.get(&format!("http://127.0.0.1:{}/", server.port())).await;
    assert!(answer.contains("GET / HTTP/1.1\r\n"), "{answer}");
}

#[tokio::test]
async fn a_name_that_only_the_proxy_knows_has_an_address_inside() {
    let running = through(unreachable().await).start().await;
    assert!(matches!(running.ask("a.test", 1).await, (0, Some(_))));
    assert_eq!(running.ask("b.test", 1).await, (3, None));
    let running = through(unreachable().await).variable("NO_PROXY", "a.test").start().await;
    assert_eq!(running.ask("a.test", 1).await, (3, None));
}
