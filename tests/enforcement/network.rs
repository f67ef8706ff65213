//! The command's own network: loopback, the proxy, and nothing else.

mod clients;
mod connect;
mod control;
mod crowd;
mod inside;
mod listen;
mod redirected;
mod registries;
mod services;
mod upstream;
mod world;

use crate::sandbox::{Run, for_each_user, scratch};
use crate::support::server;
use std::process::{Command, Output};

#[test]
fn there_is_loopback_and_no_way_to_the_hosts() {
    let port = server();
    for_each_user(|user, _| {
        let script = format!(
            "
import socket, threading
server = socket.create_server(('127.0.0.1', 0))
socket.create_connection(server.getsockname(), 2).close()
for address in [('127.0.0.1', {port}), ('198.18.0.1', 3128), ('192.0.2.1', 80), ('::1', {port})]:
    try:
        socket.create_connection(address, 2)
        print('connected', address)
    except OSError as error:
        print(error.errno)
print(sorted(name for _, name in socket.if_nameindex()))
"
        );
        // ECONNREFUSED on loopback, ENETUNREACH elsewhere.
        let text = Run::python(&script).as_user_of(user).succeeds();
        assert!(text.starts_with("111\n101\n101\n111\n['lo'"), "{text}");
    });
}

/// A policy for real, through the program itself.
fn srt(engine: &str, connect: &str, script: &str) -> Output {
    srt_command(engine, connect, script).process.output().unwrap()
}

/// The same, not yet started.
struct Prepared {
    process: Command,
    _place: tempfile::TempDir,
}

fn srt_command(engine: &str, connect: &str, script: &str) -> Prepared {
    let place = scratch(None);
    let policy = place.path().join("x.policy");
    let text = format!("srt 1\nuse std/system\ndefault read deny\nallow read $WORKSPACE\n{connect}\n");
    std::fs::write(&policy, text).unwrap();
    let workspace = place.path().join("workspace");
    std::fs::create_dir(&workspace).unwrap();
    let mut srt = Command::new(env!("CARGO_BIN_EXE_srt"));
    srt.args(["run", "--engine", engine, "--policy"]).arg(&policy).args(["--", "sh", "-c", script]);
    srt.current_dir(workspace).env("HOME", place.path().join("home"));
    Prepared { process: srt, _place: place }
}

#[test]
fn the_proxy_reaches_what_is_allowed_and_nothing_else() {
    let (port, other) = (server(), server());
    for engine in ["native", "bwrap"] {
        let script = format!(
            "curl -sS --noproxy '' http://127.0.0.1:{port}/; \
             curl -sS --noproxy '' -o /dev/null -w '%{{http_code}}\\n' http://127.0.0.1:{other}/; \
             curl -sS --noproxy '*' http://127.0.0.1:{other}/ 2>/dev/null || echo no way"
        );
        let output = srt(engine, &format!("allow connect 127.0.0.1:{port}"), &script);
        assert_eq!(String::from_utf8_lossy(&output.stdout), "hello\n403\nno way\n", "{output:?}");
    }
}

#[test]
fn the_commands_status_and_time_limit_hold_beside_the_proxy() {
    for engine in ["native", "bwrap"] {
        let run =
            |more: &str, script: &str| srt(engine, &format!("allow connect 127.0.0.1:1\n{more}"), script).status.code();
        assert_eq!(run("", "exit 42"), Some(42));
        assert_eq!(run("", "kill -TERM $$"), Some(143));
        assert_eq!(run("limit time 300ms", "sleep 1000"), Some(124));
    }
}

/// Half of it opens tunnels, half says nothing: each process of it holds as many as it may.
const FLOOD: &str = "
import os, socket, sys, time, urllib.request
flood = []
for _ in range(6):
    process = os.fork()
    if process == 0:
        held = []
        for n in range(60):
            try:
                held.append(socket.create_connection(('198.18.0.1', 3128), 1))
                held[-1].sendall(b'CONNECT 127.0.0.1:PORT HTTP/1.1\\r\\nHost: 127.0.0.1:PORT\\r\\n\\r\\n' if n % 2 else b'GET ')
            except OSError:
                pass
        time.sleep(100)
    flood.append(process)
time.sleep(2)
if len(sys.argv) > 1:
    sys.exit(4)
for process in flood:
    os.kill(process, 9)
    os.waitpid(process, 0)
print(urllib.request.urlopen('http://127.0.0.1:PORT/', timeout=20).read().decode(), end='')
sys.exit(3)
";

#[test]
fn a_flood_of_connections_does_not_use_up_the_supervisors_descriptors() {
    let port = server();
    let script = format!("cat > $TMPDIR/flood.py <<'E'\n{}\nE\n", FLOOD.replace("PORT", &port.to_string()));
    for engine in ["native", "bwrap"] {
        for (limit, argument, status, said) in
            [(100, "", 3, "hello\n"), (1024, "", 3, "hello\n"), (100, "leave", 4, "")]
        {
            let script = format!("{script}/usr/bin/python3 $TMPDIR/flood.py {argument}");
            let prepared = srt_command(engine, &format!("allow connect 127.0.0.1:{port}"), &script);
            let mut few = Command::new("sh");
            few.args(["-c", &format!("ulimit -n {limit}; exec \"$0\" \"$@\"")]);
            few.arg(prepared.process.get_program()).args(prepared.process.get_args());
            few.current_dir(prepared.process.get_current_dir().unwrap());
            let begin = std::time::Instant::now();
            let output = few.output().unwrap();
            assert_eq!(output.status.code(), Some(status), "{engine} {limit}: {output:?}");
            assert_eq!(String::from_utf8_lossy(&output.stdout), said, "{engine} {limit}: {output:?}");
            assert!(begin.elapsed() < std::time::Duration::from_secs(60));
        }
    }
}
