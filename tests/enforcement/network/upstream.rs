//! A proxy of the caller's own, between the sandbox's and the world.

use super::world::{BARE, run};
use crate::support::{Scene, am_root, output, server, skip, users};
use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::{Arc, Mutex};
use std::thread;

/// A proxy that knows `only.test`, at the loopback of this host, wants a user and a password, and notes what it is asked.
struct Proxy {
    port: u16,
    asked: Arc<Mutex<Vec<String>>>,
}

impl Proxy {
    fn new() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let port = listener.local_addr().unwrap().port();
        let asked = Arc::new(Mutex::new(Vec::new()));
        let noting = Arc::clone(&asked);
        thread::spawn(move || {
            for stream in listener.incoming() {
                let noting = Arc::clone(&noting);
                thread::spawn(move || answer(stream.unwrap(), &noting));
            }
        });
        Self { port, asked }
    }

    fn asked(&self) -> Vec<String> {
        std::mem::take(&mut self.asked.lock().unwrap())
    }
}

fn answer(mut client: TcpStream, noting: &Mutex<Vec<String>>) {
    let mut head = String::new();
    let mut byte = [0];
    while !head.ends_with("\r\n\r\n") && client.read(&mut byte).unwrap_or(0) == 1 {
        head.push(char::from(byte[0]));
    }
    let line = head.lines().next().unwrap_or_default().to_owned();
    noting.lock().unwrap().push(line.clone());
    if !head.contains("\r\nproxy-authorization: Basic dTpodW50ZXIy\r\n")
        && !head.contains("\r\nProxy-Authorization: Basic dTpodW50ZXIy\r\n")
    {
        let _ = client.write_all(b"HTTP/1.1 407 Proxy Authentication Required\r\nContent-Length: 0\r\n\r\n");
        return;
    }
    let words: Vec<&str> = line.split(' ').collect();
    let at = words[1].trim_start_matches("http://").split('/').next().unwrap();
    let port: u16 = at.rsplit_once(':').and_then(|(_, port)| port.parse().ok()).unwrap_or(80);
    let mut server = TcpStream::connect(("127.0.0.1", port)).unwrap();
    if words[0] == "CONNECT" {
        client.write_all(b"HTTP/1.1 200 OK\r\n\r\n").unwrap();
    } else {
        server.write_all(head.as_bytes()).unwrap();
    }
    let (mut from, mut to) = (client.try_clone().unwrap(), server.try_clone().unwrap());
    thread::spawn(move || {
        let _ = std::io::copy(&mut from, &mut to);
        let _ = to.shutdown(std::net::Shutdown::Write);
    });
    let _ = std::io::copy(&mut server, &mut client);
    let _ = client.shutdown(std::net::Shutdown::Write);
}

#[test]
fn connections_go_through_the_callers_proxy_and_its_password_stays_outside() {
    if !am_root() {
        return skip("names of a test's own", "only root can put a hosts file there");
    }
    let (proxy, port) = (Proxy::new(), server());
    for user in users() {
        for engine in super::world::ENGINES {
            for (variable, bare) in [("HTTPS_PROXY", ""), ("ALL_PROXY", ""), ("all_proxy", BARE)] {
                let script = format!(
                    "{bare}curl -sS -p http://only.test:{port}/; curl -sS http://only.test:{port}/
                     curl -sS -o /dev/null -w '%{{http_code}}\\n' http://denied.test:{port}/ || echo none
                     cat /proc/*/environ | tr '\\0' '\\n' | grep -i hunter; env | grep -i hunter; exit 0"
                );
                let rules = format!("allow read $WORKSPACE\nallow connect only.test:{port}");
                let scene = Scene::new().policy(&rules).with(["--engine", engine]).by(user);
                let scene = scene.env(variable, &format!("http://u:hunter2@127.0.0.1:{}", proxy.port));
                let done = run(&scene, &script);
                let refused = if bare.is_empty() { "403" } else { "000\nnone" };
                assert!(done.ok().starts_with("hello\n"), "{user:?} {engine} {variable}: {done:?}");
                assert!(done.ok().ends_with(refused), "{user:?} {engine} {variable}: {done:?}");
                assert!(!format!("{done:?}").contains("hunter"), "{done:?}");
                let said = format!("connections go through the proxy 127.0.0.1:{} (`{variable}`)", proxy.port);
                assert!(done.stderr.contains(&said), "{done:?}");
                let asked = proxy.asked();
                assert!(asked.iter().all(|line| line.contains(&format!("only.test:{port}"))), "{asked:?}");
                assert!(asked.contains(&format!("CONNECT only.test:{port} HTTP/1.1")), "{asked:?}");
            }
        }
    }
}

#[test]
fn a_variable_that_names_no_proxy_runs_nothing_and_is_not_repeated() {
    let scene = Scene::new().policy("allow read, write $WORKSPACE\nallow connect a.test");
    let scene = scene.env("HTTPS_PROXY", "https://u:hunter2@corp.test");
    let done = scene.run("touch ran");
    assert!(
        done.fails(125).contains("`HTTPS_PROXY` names no proxy: a proxy that is itself spoken to in TLS"),
        "{done:?}"
    );
    assert!(!done.stderr.contains("hunter") && !scene.workspace().join("ran").exists(), "{done:?}");
    let doctor = output(&mut scene.srt(["doctor"]));
    assert!(doctor.stdout.contains("`HTTPS_PROXY` names no proxy") && !doctor.stdout.contains("hunter"), "{doctor:?}");
    // Nothing connects, and no variable of that kind comes in.
    let scene = Scene::new().policy("allow read $WORKSPACE").env("HTTPS_PROXY", "http://u:hunter2@corp.test");
    let scene = scene.env("npm_config_proxy", "http://u:hunter2@corp.test");
    let done = scene.run("env; cat /proc/*/environ");
    assert!(!format!("{done:?}").contains("hunter"), "{done:?}");
    let doctor = output(&mut scene.srt(["doctor"]));
    assert!(doctor.stdout.contains("the proxy corp.test:80 (`HTTPS_PROXY`)"), "{doctor:?}");
    assert!(!doctor.stdout.contains("hunter"), "{doctor:?}");
}
