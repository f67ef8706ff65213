//! The resolver that the command asks.

use super::harness::*;
use crate::vocabulary::Effect::{Allow, Deny};
use std::time::Duration;
use tokio::net::UdpSocket;

const A: u16 = 1;
const PTR: u16 = 12;
const TXT: u16 = 16;
const AAAA: u16 = 28;
const HTTPS: u16 = 65;

const GOOD: u8 = 0;
const FAILURE: u8 = 2;
const NO_SUCH_NAME: u8 = 3;

#[tokio::test]
async fn allowed_names_have_addresses_of_our_own_and_no_other_name_exists() {
    let at = unreachable().await;
    let proxy = to(at).host(Allow, "*.wild.test", port(443)).name("x.wild.test", &[&["2001:db8::7"]]).start().await;
    assert_eq!(proxy.ask("a.test", A).await, (GOOD, Some("198.18.0.16".into())));
    assert_eq!(proxy.ask("A.TEST", A).await, (GOOD, Some("198.18.0.16".into())));
    assert_eq!(
        proxy.ask("x.wild.test", A).await,
        (GOOD, Some("198.18.0.17".into())),
        "where it leads has no part in it"
    );
    for kind in [AAAA, HTTPS, TXT, 15, 33, 255] {
        assert_eq!(proxy.ask("a.test", kind).await, (GOOD, None), "{kind}");
    }
    assert_eq!(proxy.asked(), ["a.test", "x.wild.test"]);
    for denied in ["b.test", "wild.test", "data.evil.test", "10.0.0.1", "a b.test"] {
        assert_eq!(proxy.ask(denied, A).await, (NO_SUCH_NAME, None), "{denied}");
    }
    assert_eq!(proxy.ask("y.wild.test", A).await, (NO_SUCH_NAME, None), "it does not exist outside either");
    assert_eq!(proxy.asked(), ["a.test", "x.wild.test", "y.wild.test"]);
}

#[tokio::test]
async fn localhost_is_never_looked_up() {
    let proxy = Setup::new().start().await;
    for name in ["localhost", "x.localhost"] {
        assert_eq!(proxy.ask(name, A).await, (GOOD, Some("127.0.0.1".into())));
        assert_eq!(proxy.ask(name, AAAA).await.0, GOOD);
    }
    assert_eq!(proxy.asked(), Vec::<String>::new());
}

#[tokio::test]
async fn a_refused_name_is_one_event() {
    let proxy = Setup::new().host(Deny, "b.test", ANY).because("no").start().await;
    for kind in [A, AAAA, HTTPS] {
        proxy.ask("b.test", kind).await;
        proxy.ask("c.test", kind).await;
    }
    let events = proxy.events(2).await;
    assert_eq!(events.len(), 2);
    assert_eq!((events[0].host.as_deref(), events[0].port), (Some("b.test"), None));
    assert_eq!(events[0].because.as_deref(), Some("no"));
    assert_eq!(events[1].remedy.as_deref(), Some("allow connect c.test"));
}

#[tokio::test]
async fn addresses_of_our_own_have_names() {
    let at = unreachable().await;
    let proxy = to(at).start().await;
    assert_eq!(proxy.ask("16.0.18.198.in-addr.arpa", PTR).await.0, NO_SUCH_NAME);
    proxy.ask("a.test", A).await;
    assert_eq!(proxy.ask("16.0.18.198.in-addr.arpa", PTR).await.0, GOOD);
    assert_eq!(proxy.ask("1.0.0.127.in-addr.arpa", PTR).await.0, GOOD);
    for none in ["17.0.18.198.in-addr.arpa", "7.2.0.192.in-addr.arpa", "in-addr.arpa", "x.y.in-addr.arpa", "a.test"] {
        assert_eq!(proxy.ask(none, PTR).await, (NO_SUCH_NAME, None), "{none}");
    }
}

#[tokio::test]
async fn a_flood_of_new_names_is_stopped_and_told_once_and_known_names_stay() {
    let at = unreachable().await;
    let proxy = to(at).host(Allow, "*.wild.test", ANY).start().await;
    proxy.ask("a.test", A).await;
    let socket = UdpSocket::bind("127.0.0.1:0").await.unwrap();
    let mut failures = 0;
    let mut answer = [0; 512];
    for number in 0..2000 {
        socket.send_to(&question(&format!("n{number}.wild.test"), A), proxy.questions).await.unwrap();
        let (length, _) = within(socket.recv_from(&mut answer)).await.unwrap();
        failures += usize::from(read_answer(&answer[..length]).0 == FAILURE);
    }
    assert!(failures > 0);
    assert_eq!(proxy.ask("a.test", A).await.0, GOOD);
    let floods = proxy.violations().into_iter().filter(|event| event.operation == "resolve").count();
    assert_eq!(floods, 1);
}

#[tokio::test]
async fn odd_datagrams_do_not_disturb_it() {
    let at = unreachable().await;
    let proxy = to(at).start().await;
    let socket = UdpSocket::bind("127.0.0.1:0").await.unwrap();
    let good = question("a.test", A);
    for length in 0..good.len() {
        socket.send_to(&good[..length], proxy.questions).await.unwrap();
        socket.send_to(&[&good[..length], &[0xff; 600]].concat(), proxy.questions).await.unwrap();
    }
    socket.send_to(&vec![0; 60000], proxy.questions).await.unwrap();
    tokio::time::sleep(Duration::from_millis(50)).await;
    assert_eq!(proxy.ask("a.test", A).await.0, GOOD);
}
