//! Servers inside that are reached from outside, where a rule says so and nowhere else.

use super::world::ENGINES;
use crate::support::{Output, Scene, users};
use std::io::{Read, Write};
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};
use std::os::unix::process::ExitStatusExt;
use std::process::{Child, Stdio};
use std::time::{Duration, Instant};

/// A port that nobody has now, and the two after it.
fn free() -> u16 {
    loop {
        let port = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
        if port < u16::MAX - 2 && (port..port + 3).all(|port| TcpListener::bind(("127.0.0.1", port)).is_ok()) {
            return port;
        }
    }
}

/// A run that goes on until the test is done with it.
struct Running(Child);

impl Running {
    fn new(scene: &Scene, command: &[&str]) -> Self {
        let mut command = scene.sandboxed(command);
        Self(command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap())
    }

    /// Ends it by a signal to `srt`.
    fn end(mut self) -> Output {
        let id = nix::unistd::Pid::from_raw(i32::try_from(self.0.id()).unwrap());
        nix::sys::signal::kill(id, nix::sys::signal::Signal::SIGTERM).unwrap();
        let status = self.0.wait().unwrap();
        let (mut stdout, mut stderr) = (String::new(), String::new());
        self.0.stdout.take().unwrap().read_to_string(&mut stdout).unwrap();
        self.0.stderr.take().unwrap().read_to_string(&mut stderr).unwrap();
        Output { code: status.code().unwrap_or(128 + status.signal().unwrap_or(0)), stdout, stderr }
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// What a server says to these bytes and their end; again until it is there.
fn ask(at: SocketAddr, bytes: &[u8]) -> Vec<u8> {
    let begin = Instant::now();
    loop {
        let said = TcpStream::connect_timeout(&at, Duration::from_secs(5)).and_then(|mut stream| {
            stream.set_read_timeout(Some(Duration::from_secs(10)))?;
            stream.write_all(bytes)?;
            stream.shutdown(Shutdown::Write)?;
            let mut said = Vec::new();
            stream.read_to_end(&mut said)?;
            Ok(said)
        });
        match said {
            Ok(said) if !said.is_empty() => return said,
            other => assert!(begin.elapsed() < Duration::from_secs(30), "{at}: {other:?}"),
        }
        std::thread::sleep(Duration::from_millis(20));
    }
}

fn local(port: u16) -> SocketAddr {
    SocketAddr::from(([127, 0, 0, 1], port))
}

#[test]
fn a_server_inside_is_reached_where_a_rule_says_so() {
    for user in users() {
        for engine in ENGINES {
            let port = free();
            let rules = format!("allow read $WORKSPACE\nallow listen 127.0.0.1:{port}-{}", port + 1);
            let scene =
                Scene::new().policy(&rules).file("work/a.txt", "from inside").with(["--engine", engine]).by(user);
            let serve = format!(
                "/usr/bin/python3 -m http.server --bind 127.0.0.1 {port} 2>/dev/null &
                 /usr/bin/python3 -m http.server --bind ::1 {} 2>/dev/null &
                 exec /usr/bin/python3 -m http.server --bind 0.0.0.0 {} 2>/dev/null",
                port + 1,
                port + 2
            );
            let running = Running::new(&scene, &["sh", "-c", &serve]);
            for port in [port, port + 1] {
                let said = ask(local(port), b"GET /a.txt HTTP/1.0\r\n\r\n");
                let said = String::from_utf8_lossy(&said);
                assert!(said.ends_with("from inside"), "{user:?} {engine}: {said}");
            }
            // Nobody says so of this one, nor of another address.
            for at in [local(port + 2), SocketAddr::from(([127, 0, 0, 2], port))] {
                assert!(TcpStream::connect_timeout(&at, Duration::from_secs(5)).is_err(), "{user:?} {engine}: {at}");
            }
            let done = running.end();
            assert_eq!(done.code, 143, "{user:?} {engine}: {done:?}");
            // The port is free again at once.
            assert!(TcpListener::bind(local(port)).is_ok());
        }
    }
}

/// Says how much it has heard once it has heard all.
const COUNTER: &str = "
import socket, sys, threading
def count(connection):
    heard = 0
    while data := connection.recv(65536):
        heard += len(data)
    connection.sendall(b'heard %d' % heard)
    connection.close()
server = socket.create_server(('127.0.0.1', int(sys.argv[1])), backlog=500)
while True:
    threading.Thread(target=count, args=(server.accept()[0],)).start()
";

#[test]
fn many_connections_each_to_its_end_and_none_before_the_server_is_up() {
    for user in users() {
        for engine in ENGINES {
            let port = free();
            let rules = format!("allow read $WORKSPACE\nallow listen 127.0.0.1:{port}");
            let scene = Scene::new().policy(&rules).file("work/counter.py", COUNTER);
            let scene = scene.with(["--engine", engine, "--events", "/dev/stderr"]).by(user);
            let serve = format!("sleep 1; exec /usr/bin/python3 counter.py {port}");
            let running = Running::new(&scene, &["sh", "-c", &serve]);
            // Bound before the command has started; nobody is there yet.
            let begin = Instant::now();
            let mut early = loop {
                match TcpStream::connect(local(port)) {
                    Ok(stream) => break stream,
                    Err(error) => assert!(begin.elapsed() < Duration::from_secs(20), "{error}"),
                }
            };
            early.set_read_timeout(Some(Duration::from_secs(10))).unwrap();
            assert_eq!(early.read(&mut [0]).unwrap_err().kind(), std::io::ErrorKind::ConnectionReset);

            assert_eq!(ask(local(port), &vec![b'x'; 3_000_000]), b"heard 3000000", "{user:?} {engine}");
            let mut held: Vec<TcpStream> = (0..100).map(|_| TcpStream::connect(local(port)).unwrap()).collect();
            for (at, stream) in held.iter_mut().enumerate() {
                stream.write_all(&vec![b'x'; at]).unwrap();
                stream.shutdown(Shutdown::Write).unwrap();
            }
            for (at, stream) in held.iter_mut().enumerate() {
                let mut said = String::new();
                stream.read_to_string(&mut said).unwrap();
                assert_eq!(said, format!("heard {at}"), "{user:?} {engine}");
            }
            let done = running.end();
            let event =
                format!("\"operation\":\"listen\",\"host\":\"127.0.0.1\",\"port\":{port},\"address\":\"127.0.0.1\"");
            let told = done.stderr.lines().find(|line| line.contains(&event) && line.contains("\"received\":3000000"));
            let told = told.unwrap_or_else(|| panic!("{user:?} {engine}: {}", done.stderr));
            assert!(told.contains(&format!("allow listen 127.0.0.1:{port}")) && told.contains("\"sent\":13"), "{told}");
        }
    }
}

#[test]
fn a_server_is_reached_by_ipv6_and_beside_connections_outwards() {
    let Ok(listener) = TcpListener::bind("[::1]:0") else {
        return crate::support::skip("listening at [::1]", "there is no IPv6");
    };
    let at = listener.local_addr().unwrap();
    drop(listener);
    let outside = crate::support::server();
    for user in users() {
        for engine in ENGINES {
            let rules =
                format!("allow read $WORKSPACE\nallow listen [::1]:{}\nallow connect 127.0.0.1:{outside}", at.port());
            let scene =
                Scene::new().policy(&rules).file("work/a.txt", "from inside").with(["--engine", engine]).by(user);
            let serve = format!(
                "curl -sS http://127.0.0.1:{outside}/; exec /usr/bin/python3 -m http.server --bind 127.0.0.1 {} 2>/dev/null",
                at.port()
            );
            let running = Running::new(&scene, &["sh", "-c", &serve]);
            let said = ask(at, b"GET /a.txt HTTP/1.0\r\n\r\n");
            assert!(said.ends_with(b"from inside"), "{user:?} {engine}");
            assert_eq!(running.end().stdout, "hello\n", "{user:?} {engine}");
        }
    }
}

#[test]
fn a_port_that_is_taken_ends_the_run_before_it_begins_and_says_who_has_it() {
    let taken = TcpListener::bind("127.0.0.1:0").unwrap();
    let at = taken.local_addr().unwrap();
    for user in users() {
        for engine in ENGINES {
            let rules = format!("allow read, write $WORKSPACE\nallow listen {at}");
            let scene = Scene::new().policy(&rules).with(["--engine", engine]).by(user);
            let done = scene.run("touch ran");
            let said = done.fails(125);
            assert!(said.contains(&format!("cannot listen at {at} for the command")), "{user:?} {engine}: {said}");
            // Who else's it is, only they and root may know.
            let own = std::process::id();
            let named = said.contains(&format!("(process {own}) listens"));
            assert_eq!(named, user == crate::support::User::Caller, "{user:?} {engine}: {said}");
            assert!(!scene.workspace().join("ran").exists());
        }
    }
}

#[test]
fn what_is_denied_or_not_this_hosts_is_not_listened_at() {
    let port = free();
    let rules = format!(
        "allow read $WORKSPACE\nallow listen 127.0.0.0/8:{port}-{}\nforbid listen 127.0.0.1:{}",
        port + 1,
        port + 1
    );
    let scene = Scene::new().policy(&rules);
    let running = Running::new(&scene, &["sleep", "100"]);
    let begin = Instant::now();
    while TcpStream::connect(local(port)).is_err() {
        assert!(begin.elapsed() < Duration::from_secs(20));
    }
    assert!(TcpStream::connect(local(port + 1)).is_err());
    drop(running);
    let elsewhere = Scene::new().policy(&format!("allow read $WORKSPACE\nallow listen 192.0.2.7:{port}")).run("true");
    assert!(
        elsewhere.fails(125).contains(&format!("cannot listen at 192.0.2.7:{port} for the command: ")),
        "{elsewhere:?}"
    );
}
