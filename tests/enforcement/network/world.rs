//! A host whose hosts file says what a test wants, and commands in it that know of no proxy.
//!
//! Root puts the file in the place of `/etc/hosts`, in a mount namespace that ends with the test.

use crate::support::{Output, Scene, User, am_root, output, skip, users};
use std::fmt::Write as _;
use std::io::{Read, Write};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::process::{Command, Stdio};

pub const ENGINES: [&str; 2] = ["native", "bwrap"];

/// Names that all lead to the loopback of the host; which of them are allowed is the policy's business.
const HOSTS: &str = "127.0.0.1 localhost a.test b.test denied.test x.wild.test\n";

/// What takes every variable away by which programs find a proxy.
pub const BARE: &str = "unset HTTP_PROXY http_proxy HTTPS_PROXY https_proxy ALL_PROXY all_proxy FTP_PROXY ftp_proxy \
    RSYNC_PROXY NO_PROXY no_proxy NODE_USE_ENV_PROXY\n";

/// A client: what it is called, and a command that prints `hello` if it reaches `HOST:PORT`.
pub type Client = (&'static str, &'static str);

const CASES: [(&str, &str, bool); 6] = [
    ("name", "a.test", true),
    ("denied", "denied.test", false),
    ("address", "127.0.0.1", true),
    ("beside", "127.0.0.2", false),
    ("far", "192.0.2.7", false),
    ("port", "a.test", false),
];

/// A script that prints a line for each client and case: whether the server's word arrived from an allowed name, a denied
/// one, an allowed address, others, and at a port that is not allowed. Outside all but the far one would answer, see
/// [`elsewhere`].
pub fn matrix(port: u16, wrong: u16, clients: &[Client]) -> String {
    let mut script = String::from(
        "try() { what=$1; out=$(eval \"$2\" 2>/dev/null); [ \"$out\" = hello ] && echo \"$what yes\" || echo \"$what no\"; }\n",
    );
    for (client, command) in clients {
        for (case, host, _) in CASES {
            let port = if case == "port" { wrong } else { port };
            let command = command.replace("HOST", host).replace("PORT", &port.to_string());
            // Writing into a string does not fail.
            let _ = writeln!(script, "try {client}-{case} '{command}'");
        }
    }
    script
}

/// The same server at 127.0.0.2, and at another port of 127.0.0.1, which is the answer: nothing but the policy keeps them away.
pub fn elsewhere(port: u16) -> u16 {
    let other = TcpListener::bind("127.0.0.1:0").unwrap();
    let answer = other.local_addr().unwrap().port();
    for listener in [other, TcpListener::bind(("127.0.0.2", port)).unwrap()] {
        std::thread::spawn(move || {
            for stream in listener.incoming() {
                let (mut stream, mut server) = (stream.unwrap(), TcpStream::connect(("127.0.0.1", port)).unwrap());
                let (mut back, mut there) = (stream.try_clone().unwrap(), server.try_clone().unwrap());
                std::thread::spawn(move || {
                    std::io::copy(&mut stream, &mut there).and_then(|_| there.shutdown(Shutdown::Write))
                });
                std::thread::spawn(move || {
                    std::io::copy(&mut server, &mut back).and_then(|_| back.shutdown(Shutdown::Write))
                });
            }
        });
    }
    answer
}

/// What the script of [`matrix`] prints where the name and the address are allowed.
pub fn expected(clients: &[Client]) -> String {
    let line = |client: &str, (case, _, arrives): (&str, &str, bool)| {
        format!("{client}-{case} {}", if arrives { "yes" } else { "no" })
    };
    let lines = clients.iter().flat_map(|(client, _)| CASES.map(|case| line(client, case)));
    lines.collect::<Vec<_>>().join("\n")
}

/// A script under the policy, on such a host.
pub fn run(scene: &Scene, script: &str) -> Output {
    let command = scene.sandboxed(["sh", "-c", script]);
    std::fs::write(scene.home().join("hosts"), HOSTS).unwrap();
    let setup = "mount --bind \"$H/hosts\" /etc/hosts; cd \"$W\"; exec \"$@\"";
    let mut inside = Command::new("unshare");
    inside.args(["-m", "--propagation", "private", "sh", "-ec", setup, "sh"]);
    inside.arg(command.get_program()).args(command.get_args());
    inside.env_clear().envs(command.get_envs().filter_map(|(name, value)| Some((name, value?))));
    inside.env("H", scene.home()).env("W", scene.workspace()).stdin(Stdio::null());
    output(&mut inside)
}

/// Tries a script under the policy with both engines, as everybody.
pub fn try_with(make: impl Fn() -> Scene, script: &str, check: impl Fn(&Output, &str)) {
    if !am_root() {
        return skip("names of a test's own", "only root can put a hosts file there");
    }
    for user in users() {
        for engine in ENGINES {
            let scene = make().with(["--engine", engine]).by(user);
            check(&run(&scene, script), &format!("{user:?}, {engine}"));
        }
    }
}

/// The native engine alone, as everybody.
pub fn try_native(make: impl Fn() -> Scene, script: &str, check: impl Fn(&Output, User)) {
    if !am_root() {
        return skip("names of a test's own", "only root can put a hosts file there");
    }
    for user in users() {
        check(&run(&make().by(user), script), user);
    }
}

/// A server on the host's loopback that says this first, and then back what it hears.
pub fn greeter(greeting: &'static str) -> u16 {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    std::thread::spawn(move || {
        for stream in listener.incoming() {
            let mut stream = stream.unwrap();
            std::thread::spawn(move || {
                let _ = stream.write_all(greeting.as_bytes());
                let mut buffer = [0; 1024];
                while let Ok(count) = stream.read(&mut buffer)
                    && count > 0
                    && stream.write_all(&buffer[..count]).is_ok()
                {}
            });
        }
    });
    port
}
