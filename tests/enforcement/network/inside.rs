//! What the command's own network looks like from inside: names, and what is nobody's business outside.

use super::world::{BARE, greeter, try_with};
use crate::support::{Scene, server};

/// Says what comes of asking for names, by hand and by the library.
const ASK: &str = "
import socket, struct, time
def ask(name, kind, server, tcp=False):
    query = struct.pack('!6H', 7, 0x100, 1, 0, 0, 0) + b''.join(bytes([len(l)]) + l.encode() for l in name.split('.')) + b'\\0' + struct.pack('!2H', kind, 1)
    if tcp:
        s = socket.create_connection(server, 5)
        s.sendall(struct.pack('!H', len(query)) + query)
        answer = s.recv(600)[2:]
    else:
        s = socket.socket(socket.AF_INET6 if ':' in server[0] else socket.AF_INET, socket.SOCK_DGRAM)
        s.settimeout(5)
        s.sendto(query, server)
        answer, peer = s.recvfrom(600)
        assert peer[:2] == server, peer
    return answer[3] & 15, struct.unpack('!H', answer[6:8])[0]
for server in [('198.18.0.1', 53), ('8.8.8.8', 53), ('127.0.0.53', 53), ('2001:db8::53', 53)]:
    print(*ask('a.test', 1, server), *ask('denied.test', 1, server), *ask('a.test', 28, server))
print(*ask('a.test', 16, ('9.9.9.9', 53)), *ask('x.wild.test', 1, ('9.9.9.9', 53)), *ask('none.wild.test', 1, ('9.9.9.9', 53)))
print(*ask('a.test', 1, ('9.9.9.9', 53), True), *ask('denied.test', 1, ('9.9.9.9', 53), True))
def look(name):
    begin = time.time()
    try: found = sorted({a[4][0] for a in socket.getaddrinfo(name, 80)})
    except OSError as error: found = error.errno
    return found, 'slow' if time.time() - begin > 2 else ''
for name in ['a.test', 'denied.test', 'none.wild.test', 'localhost', socket.gethostname()]:
    print(name if '.' in name or name == 'localhost' else 'own', *look(name))
";

#[test]
fn names_are_answered_at_once_and_denied_ones_do_not_exist() {
    let rules = "allow read $WORKSPACE\nallow connect [a.test:80, *.wild.test:443]";
    let make = || Scene::new().policy(rules).file("work/ask.py", ASK);
    try_with(make, "/usr/bin/python3 ask.py", |done, who| {
        let expected = "0 1 3 0 0 0\n0 1 3 0 0 0\n0 1 3 0 0 0\n0 1 3 0 0 0\n0 0 0 1 3 0\n0 1 3 0\n\
            a.test ['198.18.0.16'] \ndenied.test -2 \nnone.wild.test -2 \nlocalhost ['127.0.0.1', '::1'] \n\
            own ['127.0.1.1']";
        let lines = done.ok().lines().map(str::trim_end);
        assert!(lines.eq(expected.lines().map(str::trim_end)), "{who}: {done:?}");
        assert!(done.stderr.contains("to denied.test refused: no rule allows it"), "{who}: {done:?}");
    });
}

#[test]
fn the_host_s_own_files_say_nothing_inside() {
    let policy = "srt 1\nuse std/system\ndefault read allow\nallow connect a.test:80\n";
    let script = "grep -c a.test /etc/hosts; grep '^hosts' /etc/nsswitch.conf; cat /etc/resolv.conf; \
        for file in hosts resolv.conf nsswitch.conf; do (echo x > /etc/$file) 2>/dev/null || echo held; done";
    try_with(
        || Scene::new().policy(policy),
        script,
        |done, who| {
            assert_eq!(done.ok(), "0\nhosts: files dns\nnameserver 198.18.0.1\nheld\nheld\nheld", "{who}");
        },
    );
    let masked = format!("{policy}deny read [/etc/hosts, /etc/nsswitch.conf]\n");
    let script = "cat /etc/hosts /etc/nsswitch.conf || getent hosts a.test";
    try_with(
        || Scene::new().policy(&masked),
        script,
        |done, who| {
            assert!(done.ok().starts_with("198.18.0.16"), "{who}: {done:?}");
        },
    );
}

/// UDP, ping, ports nobody listens at, and the command's own servers.
const ELSEWHERE: &str = "
import socket, threading, time
begin = time.time()
for family, address in [(socket.AF_INET, ('192.0.2.7', 443)), (socket.AF_INET6, ('2001:db8::7', 443))]:
    s = socket.socket(family, socket.SOCK_DGRAM)
    try: s.sendto(b'x', address); s.settimeout(5); print(s.recv(1))
    except OSError as error: print(type(error).__name__)
own = socket.create_server(('127.0.0.1', 0))
threading.Thread(target=lambda: own.accept()[0].sendall(b'own')).start()
print(socket.create_connection(own.getsockname(), 5).recv(3).decode())
a, b = (socket.socket(socket.AF_INET, socket.SOCK_DGRAM) for _ in 'ab')
a.bind(('127.0.0.1', 0)); b.sendto(b'own', a.getsockname()); a.settimeout(5); print(a.recv(3).decode())
for address in [('127.0.0.1', 9), ('127.0.0.1', OTHER), ('::1', OTHER)]:
    try: print(socket.create_connection(address, 5))
    except OSError as error: print(type(error).__name__)
for address in [('127.0.0.1', PORT), ('127.9.9.9', PORT), ('192.0.2.7', PORT), ('198.18.0.99', PORT), ('198.18.0.1', PORT)]:
    try: s = socket.create_connection(address, 5); s.sendall(b'GET / HTTP/1.0\\r\\n\\r\\n'); print(s.recv(100).decode().splitlines()[0:1])
    except OSError as error: print(type(error).__name__)
print('slow' if time.time() - begin > 4 else 'at once')
";

#[test]
fn a_port_of_the_loopback_is_the_hosts_where_a_rule_says_so_and_all_else_is_refused_at_once() {
    let (port, other) = (server(), server());
    let script = ELSEWHERE.replace("PORT", &port.to_string()).replace("OTHER", &other.to_string());
    let make = || {
        let rules = format!("allow read $WORKSPACE\nallow connect 127.0.0.1:{port}");
        Scene::new().policy(&rules).file("work/elsewhere.py", &script)
    };
    try_with(make, "/usr/bin/python3 elsewhere.py", |done, who| {
        let expected = "PermissionError\nPermissionError\nown\nown\nConnectionRefusedError\nConnectionRefusedError\n\
            ConnectionRefusedError\n['HTTP/1.1 200 OK']\nConnectionResetError\nConnectionResetError\n\
            ConnectionResetError\nConnectionResetError\nat once";
        assert_eq!(done.ok(), expected, "{who}: {}", done.stderr);
    });
}

/// A program that is heard before it speaks, and one that speaks by whole lines.
#[test]
fn a_server_that_speaks_first_is_heard() {
    let port = greeter("220 ready\r\n");
    let script = format!(
        "{BARE}exec /usr/bin/python3 -c \"
import socket
s = socket.create_connection(('a.test', {port}), 5)
print(s.recv(100))
s.sendall(b'EHLO x\\r\\n')
print(s.recv(100))
s.shutdown(socket.SHUT_WR)
print(s.recv(100))
\""
    );
    let rules = format!("allow read $WORKSPACE\nallow connect [a.test:{port}, 127.0.0.1:{port}]");
    try_with(
        || Scene::new().policy(&rules),
        &script,
        |done, who| {
            assert_eq!(done.ok(), "b'220 ready\\r\\n'\nb'EHLO x\\r\\n'\nb''", "{who}: {}", done.stderr);
        },
    );
}

#[test]
fn many_connections_at_once_from_one_address() {
    let port = greeter("hello");
    let script = format!(
        "exec /usr/bin/python3 -c \"
import socket
held = [socket.create_connection(('a.test', {port}), 20) for _ in range(300)]
print(sum(s.recv(5) == b'hello' for s in held))
\""
    );
    let rules = format!("allow read $WORKSPACE\nallow connect [a.test:{port}, 127.0.0.1:{port}]");
    try_with(
        || Scene::new().policy(&rules),
        &script,
        |done, who| assert_eq!(done.ok(), "300", "{who}: {}", done.stderr),
    );
}
