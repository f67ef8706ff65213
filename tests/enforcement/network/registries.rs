//! Package managers, and a registry of one package that each of them understands: npm, pip and cargo, told of the proxy and not.

use super::world::{BARE, Client, elsewhere, expected, matrix, run};
use crate::programs::{find, others_may_enter};
use crate::support::{Background, Scene, User, am_root, skip, users};
use std::path::PathBuf;
use std::process::Command;

/// `hello` as npm, pip and cargo ask for it; links lead to the host that was asked.
const REGISTRY: &str = r#"
import hashlib, http.server, io, json, tarfile, zipfile

def tar(files):
    held = io.BytesIO()
    with tarfile.open(fileobj=held, mode="w:gz") as archive:
        for name, text in files.items():
            entry = tarfile.TarInfo(name)
            entry.size = len(text)
            archive.addfile(entry, io.BytesIO(text.encode()))
    return held.getvalue()

wheel = io.BytesIO()
with zipfile.ZipFile(wheel, "w") as archive:
    archive.writestr("hello.py", "")
    archive.writestr("hello-1.0.0.dist-info/METADATA", "Metadata-Version: 2.1\nName: hello\nVersion: 1.0.0\n")
    archive.writestr("hello-1.0.0.dist-info/WHEEL", "Wheel-Version: 1.0\nGenerator: x\nRoot-Is-Purelib: true\nTag: py3-none-any\n")
    archive.writestr("hello-1.0.0.dist-info/RECORD", "")
package = tar({"package/package.json": json.dumps({"name": "hello", "version": "1.0.0"})})
crate = tar({"hello-1.0.0/Cargo.toml": '[package]\nname = "hello"\nversion = "1.0.0"\n', "hello-1.0.0/src/lib.rs": ""})
entry = {"name": "hello", "vers": "1.0.0", "deps": [], "features": {}, "yanked": False, "cksum": hashlib.sha256(crate).hexdigest()}

class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    def log_message(self, *_): pass
    def do_GET(self):
        host = "http://" + self.headers["Host"]
        version = {"name": "hello", "version": "1.0.0", "dist": {"tarball": host + "/hello.tgz", "shasum": hashlib.sha1(package).hexdigest()}}
        known = {
            "/simple/hello/": b'<a href="/hello-1.0.0-py3-none-any.whl">hello-1.0.0-py3-none-any.whl</a>',
            "/hello-1.0.0-py3-none-any.whl": wheel.getvalue(),
            "/hello": json.dumps({"name": "hello", "dist-tags": {"latest": "1.0.0"}, "versions": {"1.0.0": version}}).encode(),
            "/hello.tgz": package,
            "/index/config.json": json.dumps({"dl": host + "/crates"}).encode(),
            "/index/he/ll/hello": json.dumps(entry).encode(),
            "/crates/hello/1.0.0/download": crate,
        }
        body = known.get(self.path)
        self.send_response(404 if body is None else 200)
        self.send_header("Content-Type", "text/html" if "simple" in self.path else "application/json")
        self.send_header("Content-Length", str(len(body or b"")))
        self.end_headers()
        self.wfile.write(body or b"")

server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
print(server.server_address[1], flush=True)
server.serve_forever()
"#;

const NPM: Client = (
    "npm",
    "rm -rf node_modules package-lock.json; npm install --no-audit --no-fund --fetch-retries 0 --cache npm-cache-HOST-PORT \
     --registry http://HOST:PORT/ hello >/dev/null && [ -e node_modules/hello/package.json ] && echo hello",
);
const PIP: Client = (
    "pip",
    "rm -rf out; /usr/bin/python3 -m pip -q --isolated --no-cache-dir --retries 0 --timeout 10 download --no-deps -d out \
     --index-url http://HOST:PORT/simple/ --trusted-host HOST hello && [ -e out/hello-1.0.0-py3-none-any.whl ] && echo hello",
);
const CARGO: Client = (
    "cargo",
    "rm -rf home Cargo.lock; CARGO_HOME=$PWD/home CARGO_NET_RETRY=0 cargo fetch -q \
     --config source.crates-io.replace-with=\\\"mirror\\\" --config source.mirror.registry=\\\"sparse+http://HOST:PORT/index/\\\" \
     && ls home/registry/cache/*/hello-1.0.0.crate >/dev/null && echo hello",
);

fn registry() -> (Background, u16) {
    let (registry, line) = Background::that_says(Command::new("/usr/bin/python3").args(["-c", REGISTRY]));
    (registry, line.parse().unwrap())
}

/// Everybody that may, told of the proxy and not.
fn check(client: Client, rules: &str, may: impl Fn(User) -> bool, files: &[(&str, &str)]) {
    if !am_root() {
        return skip("names of a test's own", "only root can put a hosts file there");
    }
    let (_registry, port) = registry();
    let wrong = elsewhere(port);
    let policy = format!("allow read, write $WORKSPACE\nallow connect [a.test:{port}, 127.0.0.1:{port}]\n{rules}");
    for user in users().into_iter().filter(|user| may(*user)) {
        for bare in ["", BARE] {
            let scene = files.iter().fold(Scene::new(), |scene, (path, text)| scene.file(path, text));
            let scene = scene.policy(&policy).by(user);
            let done = run(&scene, &format!("{bare}{}", matrix(port, wrong, &[client])));
            assert_eq!(done.ok(), expected(&[client]), "{user:?}, {bare:?}: {}", done.stderr);
        }
    }
}

#[test]
fn npm_installs_from_the_registry_that_is_allowed() {
    if find("npm").is_none() {
        return skip("npm", "it is not installed");
    }
    check(NPM, "use std/node", |_| true, &[("work/package.json", r#"{"name": "scene", "version": "1.0.0"}"#)]);
}

#[test]
fn pip_downloads_from_the_index_that_is_allowed() {
    let pip = Command::new("/usr/bin/python3").args(["-m", "pip", "--version"]).output();
    if !pip.is_ok_and(|done| done.status.success()) {
        return skip("pip", "the system's Python has none");
    }
    check(PIP, "use std/python", |_| true, &[]);
}

#[test]
fn cargo_fetches_from_the_registry_that_is_allowed() {
    let asked = Command::new("rustc").args(["--print", "sysroot"]).output();
    let Ok(asked) = asked else { return skip("cargo", "it is not installed") };
    let toolchain = PathBuf::from(String::from_utf8_lossy(&asked.stdout).trim());
    let rules = format!("use std/rust\nallow read {0}\nset PATH=\"{0}/bin:/usr/bin:/bin\"", toolchain.display());
    // A toolchain in root's home is root's: the sandbox cannot open what the machine closes.
    let may = |user| user != User::Ordinary || others_may_enter(&toolchain);
    let manifest =
        "[package]\nname = \"scene\"\nversion = \"1.0.0\"\nedition = \"2021\"\n[dependencies]\nhello = \"1\"\n";
    check(CARGO, &rules, may, &[("work/Cargo.toml", manifest), ("work/src/lib.rs", "")]);
}
