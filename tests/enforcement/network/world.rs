//! A host whose hosts file says what a test wants, and commands in it that know of no proxy.
//!
//! Root puts the file in the place of `/etc/hosts`, in a mount namespace that ends with the test.

use crate::support::{Output, Scene, User, am_root, output, skip, users};
use std::io::{Read, Write};
use std::net::TcpListener;
use std::process::{Command, Stdio};

pub const ENGINES: [&str; 2] = ["native", "bwrap"];

/// Names that all lead to the loopback of the host; which of them are allowed is the policy's business.
const HOSTS: &str = "127.0.0.1 localhost a.test b.test denied.test x.wild.test\n";

/// What takes every variable away by which programs find a proxy.
pub const BARE: &str = "unset HTTP_PROXY http_proxy HTTPS_PROXY https_proxy ALL_PROXY all_proxy FTP_PROXY ftp_proxy \
    RSYNC_PROXY NO_PROXY no_proxy NODE_USE_ENV_PROXY\n";

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
