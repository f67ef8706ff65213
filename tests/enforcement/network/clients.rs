//! Real clients, told of the proxy and not: an allowed name, a denied one, an allowed address, others, and a wrong port.

use super::world::{BARE, Client, elsewhere, expected, matrix, try_native, try_with};
use crate::support::{Background, Scene, server};
use std::path::Path;
use std::process::Command;

const URLLIB: &str =
    "import sys, urllib.request as r; print(r.urlopen(sys.argv[1], timeout=10).read().decode(), end='')";
/// Knows nothing of proxies.
const ASYNCIO: &str = "
import asyncio, sys, urllib.parse
async def main():
    to = urllib.parse.urlparse(sys.argv[1])
    reader, writer = await asyncio.wait_for(asyncio.open_connection(to.hostname, to.port), 10)
    writer.write(b'GET / HTTP/1.1\\r\\nHost: ' + to.netloc.encode() + b'\\r\\nConnection: close\\r\\n\\r\\n')
    head, _, body = (await asyncio.wait_for(reader.read(), 10)).partition(b'\\r\\n\\r\\n')
    print(body.decode() if b' 200 ' in head.splitlines()[0] else '', end='')
asyncio.run(main())
";
const FETCH: &str = "const r = await fetch(process.argv[2]); if (r.ok) process.stdout.write(await r.text());";
const HTTP: &str = "import http from 'node:http'; http.get(process.argv[2], r => { if (r.statusCode == 200) r.pipe(process.stdout) }) \
    .on('error', () => process.exit(1));";
/// For the musl library, whose resolver is its own.
const STATIC: &str = r#"
#include <netdb.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>
#include <sys/socket.h>
int main(int count, char **words) {
    char host[200], port[10], text[4096];
    if (sscanf(words[1], "http://%199[^:]:%9[0-9]", host, port) != 2) return 2;
    struct addrinfo hints = {.ai_socktype = SOCK_STREAM}, *all, *at;
    if (getaddrinfo(host, port, &hints, &all)) return 3;
    for (at = all; at; at = at->ai_next) {
        int s = socket(at->ai_family, at->ai_socktype, 0);
        if (s < 0 || connect(s, at->ai_addr, at->ai_addrlen)) continue;
        int length = snprintf(text, sizeof text, "GET / HTTP/1.0\r\nHost: %s:%s\r\n\r\n", host, port);
        if (write(s, text, length) != length) return 4;
        int all = 0, got;
        while ((got = read(s, text + all, sizeof text - 1 - all)) > 0) all += got;
        text[all] = 0;
        char *body = strstr(text, "\r\n\r\n");
        if (!strstr(text, " 200 ") || !body) return 5;
        fputs(body + 4, stdout);
        return 0;
    }
    return 6;
}
"#;

/// Compiled ahead: a program that brings its own resolver and its own view of the proxy's variables.
const GO: &str = r#"
package main

import ("io"; "net/http"; "os"; "time")

func main() {
	client := http.Client{Timeout: 10 * time.Second}
	answer, err := client.Get(os.Args[1])
	if err != nil || answer.StatusCode != 200 { os.Exit(1) }
	io.Copy(os.Stdout, answer.Body)
}
"#;
const JAVA: &str = r"
public class Client {
    public static void main(String[] words) throws Exception {
        var connection = new java.net.URL(words[0]).openConnection();
        connection.setConnectTimeout(10000);
        try (var in = connection.getInputStream()) { in.transferTo(System.out); }
    }
}
";

const CURL: Client = ("curl", "curl -fsS -m 10 http://HOST:PORT/");
const WGET: Client = ("wget", "wget -q -O - -T 10 -t 1 http://HOST:PORT/");
const URLLIB_CLIENT: Client = ("urllib", "/usr/bin/python3 urllib_.py http://HOST:PORT/");
const ASYNCIO_CLIENT: Client = ("asyncio", "/usr/bin/python3 asyncio_.py http://HOST:PORT/");
const FETCH_CLIENT: Client = ("fetch", "node fetch.mjs http://HOST:PORT/");
const HTTP_CLIENT: Client = ("http", "node http.mjs http://HOST:PORT/");
const STATIC_CLIENT: Client = ("static", "./static http://HOST:PORT/");
const GO_CLIENT: Client = ("go", "./go http://HOST:PORT/");
const JAVA_CLIENT: Client = ("java", "java -cp . Client http://HOST:PORT/");

fn scene(rules: &str) -> Scene {
    Scene::new()
        .policy(&format!("allow read $WORKSPACE\n{rules}"))
        .file("work/urllib_.py", URLLIB)
        .file("work/asyncio_.py", ASYNCIO)
        .file("work/fetch.mjs", FETCH)
        .file("work/http.mjs", HTTP)
        .file("work/static.c", STATIC)
}

#[test]
fn clients_reach_what_is_allowed_told_of_the_proxy_or_not() {
    let port = server();
    let wrong = elsewhere(port);
    let make = || scene(&format!("allow connect [a.test:{port}, 127.0.0.1:{port}]"));
    let clients = [CURL, WGET, URLLIB_CLIENT, ASYNCIO_CLIENT];
    for bare in ["", BARE] {
        let script = format!("{bare}{}", matrix(port, wrong, &clients));
        try_with(make, &script, |done, who| {
            assert_eq!(done.ok(), expected(&clients), "{who}, {bare:?}: {}", done.stderr);
        });
    }
}

#[test]
fn node_reaches_what_is_allowed_told_of_the_proxy_or_not() {
    let port = server();
    let wrong = elsewhere(port);
    let make = || scene(&format!("use std/node\nallow connect [a.test:{port}, 127.0.0.1:{port}]"));
    let clients = [FETCH_CLIENT, HTTP_CLIENT];
    for bare in ["", BARE] {
        let script = format!("{bare}{}", matrix(port, wrong, &clients));
        try_native(make, &script, |done, who| {
            assert_eq!(done.ok(), expected(&clients), "{who:?}, {bare:?}: {}", done.stderr);
        });
    }
}

#[test]
fn a_static_program_reaches_what_is_allowed() {
    if Command::new("musl-gcc").arg("--version").output().is_err() {
        return crate::support::skip("a static program", "there is no `musl-gcc`");
    }
    let port = server();
    let wrong = elsewhere(port);
    let make = || {
        let scene = scene(&format!("allow connect [a.test:{port}, 127.0.0.1:{port}]"));
        let mut compiler = Command::new("musl-gcc");
        compiler.args(["-static", "-o", "static", "static.c"]).current_dir(scene.workspace());
        assert!(compiler.status().unwrap().success());
        scene
    };
    let script = matrix(port, wrong, &[STATIC_CLIENT]);
    let expected = expected(&[STATIC_CLIENT]);
    try_native(make, &script, |done, who| assert_eq!(done.ok(), expected, "{who:?}: {}", done.stderr));
}

/// Compiles one source into the workspace of each scene; `None` where there is no such compiler.
fn compiled(compiler: &str, arguments: &[&str], source: (&str, &str)) -> Option<tempfile::TempDir> {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join(source.0), source.1).unwrap();
    let mut command = Command::new(compiler);
    command.args(arguments).current_dir(folder.path()).env("CGO_ENABLED", "0").env("GO111MODULE", "off");
    command.env("GOCACHE", folder.path().join("cache")).env("GOPATH", folder.path().join("path"));
    match command.output() {
        Ok(done) => assert!(done.status.success(), "{compiler}: {done:?}"),
        Err(_) => return None,
    }
    Some(folder)
}

#[test]
fn a_static_go_program_reaches_what_is_allowed_told_of_the_proxy_or_not() {
    let Some(folder) = compiled("go", &["build", "-o", "go", "client.go"], ("client.go", GO)) else {
        return crate::support::skip("a program in Go", "there is no `go`");
    };
    let port = server();
    let wrong = elsewhere(port);
    let make = || {
        let scene = scene(&format!("allow connect [a.test:{port}, 127.0.0.1:{port}]"));
        std::fs::copy(folder.path().join("go"), scene.workspace().join("go")).unwrap();
        scene
    };
    for bare in ["", BARE] {
        let script = format!("{bare}{}", matrix(port, wrong, &[GO_CLIENT]));
        try_native(make, &script, |done, who| {
            assert_eq!(done.ok(), expected(&[GO_CLIENT]), "{who:?}, {bare:?}: {}", done.stderr);
        });
    }
}

#[test]
fn java_reaches_what_is_allowed_told_of_the_proxy_or_not() {
    let Some(folder) = compiled("javac", &["Client.java"], ("Client.java", JAVA)) else {
        return crate::support::skip("a program in Java", "there is no `javac`");
    };
    let port = server();
    let wrong = elsewhere(port);
    let make = || {
        // Debian keeps the settings of the machine there.
        let rules = format!("allow read /etc/java-*\nallow connect [a.test:{port}, 127.0.0.1:{port}]");
        let scene = scene(&rules);
        std::fs::copy(folder.path().join("Client.class"), scene.workspace().join("Client.class")).unwrap();
        scene
    };
    for bare in ["", BARE] {
        let script = format!("{bare}{}", matrix(port, wrong, &[JAVA_CLIENT]));
        try_native(make, &script, |done, who| {
            assert_eq!(done.ok(), expected(&[JAVA_CLIENT]), "{who:?}, {bare:?}: {}", done.stderr);
        });
    }
}

const SERVER: &str = "
import http.server, ssl, sys
class Handler(http.server.SimpleHTTPRequestHandler):
    def log_message(self, *_): pass
server = http.server.ThreadingHTTPServer(('127.0.0.1', 0), Handler)
context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
context.load_cert_chain('cert.pem', 'key.pem')
server.socket = context.wrap_socket(server.socket, server_side=True)
print(server.server_address[1], flush=True)
server.serve_forever()
";

/// Serves the folder over TLS, as `a.test`, at a port.
fn secure(folder: &Path) -> (Background, u16) {
    let sh = |script: &str| {
        let done = Command::new("sh").args(["-ec", script]).current_dir(folder).output().unwrap();
        assert!(done.status.success(), "{script}: {done:?}");
    };
    sh(
        "openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes -keyout key.pem -out cert.pem -days 2 \
        -subj /CN=a.test -addext subjectAltName=DNS:a.test,DNS:b.test",
    );
    sh("printf hello > index.html; git init -q repo; cd repo; echo text > file; git add file; \
        git -c user.name=x -c user.email=x@a.test commit -qm first; git update-server-info");
    let mut command = Command::new("/usr/bin/python3");
    let (server, line) = Background::that_says(command.args(["-c", SERVER]).current_dir(folder));
    (server, line.parse().unwrap())
}

#[test]
fn tls_reaches_the_name_that_was_allowed_and_no_other_by_its_connection() {
    let folder = tempfile::tempdir().unwrap();
    let (_server, port) = secure(folder.path());
    let certificate = std::fs::read_to_string(folder.path().join("cert.pem")).unwrap();
    let make = || {
        let rules = format!(
            "use std/git-init\nuse std/node\nallow write $WORKSPACE\nallow connect [a.test:{port}, b.test:{port}, 127.0.0.1:{port}]"
        );
        scene(&rules).file("work/cert.pem", &certificate)
    };
    let url = format!("https://a.test:{port}");
    for bare in ["", BARE] {
        let script = format!(
            "{bare}curl -sS --cacert cert.pem {url}/; echo
             rm -rf repo; GIT_SSL_CAINFO=cert.pem git clone -q {url}/repo/.git repo && cat repo/file
             NODE_EXTRA_CA_CERTS=cert.pem node -e 'fetch(\"{url}/\").then(r => r.text()).then(console.log)'
             /usr/bin/python3 -c 'import ssl, urllib.request as r; print(r.urlopen(\"{url}/\", context=ssl.create_default_context(cafile=\"cert.pem\")).read().decode())'
             # The connection of one allowed name, and TLS for another.
             curl -sS --cacert cert.pem --connect-to b.test:{port}:a.test:{port} https://b.test:{port}/ 2>/dev/null || echo refused
             curl -sS --cacert cert.pem -m 5 https://denied.test:{port}/ 2>/dev/null || echo refused"
        );
        try_native(make, &script, |done, who| {
            assert_eq!(done.ok(), "hello\ntext\nhello\nhello\nrefused\nrefused", "{who:?}, {bare:?}: {}", done.stderr);
            let said = format!(
                "1 connection to b.test:{port} refused: TLS asks for this server on a connection that was allowed to a.test"
            );
            assert!(done.stderr.contains(&said), "{who:?}, {bare:?}: {}", done.stderr);
        });
    }
}
