//! Rules that are replaced while connections are open.

use super::harness::*;
use crate::vocabulary::Effect::{Allow, Forbid};
use tokio::io::AsyncReadExt;
use tokio::net::TcpListener;

async fn opened(running: &Running, authority: &str) -> Client {
    let mut client = running.client().await;
    client.send(format!("CONNECT {authority} HTTP/1.1\r\n\r\n")).await;
    let head = client.head().await;
    assert!(head.starts_with("HTTP/1.1 200 "), "{head}");
    client.send("ping\n").await;
    assert_eq!(client.exactly(5).await, b"ping\n");
    client
}

#[tokio::test]
async fn what_is_denied_now_is_cut_off_and_what_is_not_goes_on() {
    let server = upstream(|mut client| async move {
        loop {
            let said = client.exactly(5).await;
            client.send(said).await;
        }
    })
    .await;
    let at = server.port();
    let world = || to(server).host(Allow, "b.test", port(at)).name("b.test", &[&["127.0.0.1"]]);
    let running = world().start().await;
    let (mut a, mut b) =
        (opened(&running, &format!("a.test:{at}")).await, opened(&running, &format!("b.test:{at}")).await);
    running.in_force.replace(world().host(Forbid, "a.test", ANY).rules());
    // Cut off, and not in good order: it would look as if the server had said all.
    let ended = within(a.stream.read(&mut [0; 9])).await;
    match ended {
        Err(error) => assert_eq!(error.kind(), std::io::ErrorKind::ConnectionReset),
        // Wine ends a connection in good order, whatever is asked of its socket.
        Ok(length) => assert!(cfg!(windows) && length == 0),
    }
    let told = running.events(1).await.remove(0);
    assert_eq!((told.host.as_deref(), told.rule.unwrap().text.as_str()), (Some("a.test"), "forbid connect a.test"));
    b.send("pong\n").await;
    assert_eq!(b.exactly(5).await, b"pong\n");
    let answer = running.say(format!("CONNECT a.test:{at} HTTP/1.1\r\nConnection: close\r\n\r\n")).await;
    assert!(answer.starts_with("HTTP/1.1 403 "), "{answer}");
    // And back again.
    running.in_force.replace(world().rules());
    opened(&running, &format!("a.test:{at}")).await;
    b.send("more\n").await;
    assert_eq!(b.exactly(5).await, b"more\n");
}

#[tokio::test]
async fn an_answer_that_is_under_way_is_cut_off_too() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let server = listener.local_addr().unwrap();
    let running = to(server).start().await;
    let mut client = running.client().await;
    client.send(format!("GET http://a.test:{}/ HTTP/1.1\r\n\r\n", server.port())).await;
    let mut server = Client::over(within(listener.accept()).await.unwrap().0);
    server.head().await;
    server.send("HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\nbegun").await;
    client.until("begun").await;
    running.in_force.replace(Setup::new().rules());
    assert_eq!(client.rest().await, "");
    assert_eq!(server.rest().await, "");
    assert_eq!(running.events(1).await[0].host.as_deref(), Some("a.test"));
}

#[tokio::test]
async fn a_name_that_is_allowed_now_is_found() {
    let running = Setup::new().name("a.test", &[&["192.0.2.7"]]).start().await;
    assert_eq!(running.ask("a.test", 1).await, (3, None));
    running.in_force.replace(Setup::new().host(Allow, "a.test", ANY).rules());
    assert!(matches!(running.ask("a.test", 1).await, (0, Some(_))));
}
