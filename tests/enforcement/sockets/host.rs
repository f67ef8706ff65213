//! Services of the host.

use super::{each, python, scene};
use crate::support::{Background, Scene, User, skip};
use serde_json::{Value, json};
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::{Command, Stdio};

/// A Python program that says `ready` once it serves `path`, to everybody.
fn service(path: &Path, script: &str) -> Background {
    let (service, line) = Background::that_says(Command::new("python3").args(["-c", script]).arg(path));
    assert_eq!(line, "ready");
    fs::set_permissions(path, fs::Permissions::from_mode(0o777)).unwrap();
    service
}

const BEGIN: &str = "
import array, hashlib, os, socket, sys, threading, time
def serve(kind=socket.SOCK_STREAM, backlog=100):
    server = socket.socket(socket.AF_UNIX, kind)
    server.bind(sys.argv[1])
    server.listen(backlog)
    print('ready', flush=True)
    return server
def read(connection):
    data = b''
    while part := connection.recv(65536):
        data += part
    return data
";

fn with(script: &str) -> String {
    format!("{BEGIN}{script}")
}

/// Answers once all was sent, with as much.
const DIGEST: &str = "
server = serve()
while True:
    connection = server.accept()[0]
    data = read(connection)
    connection.sendall(hashlib.sha256(data).hexdigest().encode() + data)
    connection.close()
";

#[test]
fn a_rule_reaches_one_service_and_no_other() {
    let script = with(
        "
def ask(name, data):
    client = socket.socket(socket.AF_UNIX)
    client.connect(name)
    client.sendall(data)
    client.shutdown(socket.SHUT_WR)
    return read(client)
data = os.urandom(3_000_000)
answer = ask(sys.argv[1] + '/allowed', data)
print(answer == hashlib.sha256(data).hexdigest().encode() + data)
print(ask(sys.argv[1] + '/allowed', b'') == hashlib.sha256(b'').hexdigest().encode())
for name in ('denied', 'other'):
    try:
        ask(sys.argv[1] + '/' + name, b'')
        print('reached')
    except OSError as error:
        print(error.errno)
",
    );
    each(|engine, user| {
        let rules = "allow read $HOME/run\nallow socket $HOME/run/allowed\n\
                     deny socket $HOME/run/denied because \"it is another's\"";
        let scene = scene(engine, rules).folder("run").file("work/t.py", &script).by(user);
        let run = scene.home().join("run");
        let _services: Vec<_> =
            ["allowed", "denied", "other"].map(|name| service(&run.join(name), &with(DIGEST))).into();
        let file = scene.home().join("events");
        let scene = scene.with(["--events".as_ref(), file.as_os_str()]);
        let output = scene.run_command(["python3".as_ref(), "t.py".as_ref(), run.as_os_str()]);
        assert_eq!(output.ok(), "True\nTrue\n13\n13", "{engine} {user:?}: {output:?}");
        let run = run.display();
        // What was allowed is told there, and nowhere else.
        let told = fs::read_to_string(&file).unwrap();
        let told: Vec<Value> = told.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
        let allowed = told.iter().filter(|event| event["type"] == "connection");
        let allowed: Vec<_> =
            allowed.map(|event| [&event["operation"], &event["path"], &event["rule"]["text"]]).collect();
        let expected = [json!("socket"), json!(format!("{run}/allowed")), json!("allow socket $HOME/run/allowed")];
        assert_eq!(allowed, [expected.each_ref(); 2], "{told:?}");
        assert!(
            output.stderr.contains(&format!(
                "1 connection to {run}/denied refused by {}/test.policy:8 (because it is another's)",
                scene.home().display()
            )),
            "{}",
            output.stderr
        );
        assert!(
            output.stderr.contains(&format!(
                "1 connection to {run}/other refused: no rule allows it; to allow: `allow socket {run}/other`"
            )),
            "{}",
            output.stderr
        );
    });
}

/// The settings of the npm package open the sockets that they name, here too, and no other.
#[test]
fn settings_open_a_socket_by_its_name() {
    let script = with(
        "
for name in ('allowed', 'other'):
    client = socket.socket(socket.AF_UNIX)
    try:
        client.connect(sys.argv[1] + '/' + name)
        client.shutdown(socket.SHUT_WR)
        print(read(client) == hashlib.sha256(b'').hexdigest().encode())
    except OSError as error:
        print(error.errno)
",
    );
    each(|engine, user| {
        let scene = Scene::new().folder("run").file("work/t.py", &script).by(user);
        let run = scene.home().join("run");
        let settings = format!("{{\"network\":{{\"allowUnixSockets\":[\"{}/allowed\"]}}}}\n", run.display());
        let scene = scene.file("s.json", &settings);
        let _services: Vec<_> = ["allowed", "other"].map(|name| service(&run.join(name), &with(DIGEST))).into();
        let run = run.display().to_string();
        let arguments = ["run", "--settings", "../s.json", "--engine", engine, "--", "python3", "t.py", &run];
        let output = crate::support::output(&mut scene.srt(arguments));
        assert_eq!(output.ok(), "True\n13", "{engine} {user:?}: {output:?}");
    });
}

/// A socket is shown where nothing else is: in a closed root, through what hides its directory, below the private `/tmp`.
#[test]
fn a_socket_is_shown_wherever_it_is() {
    let ask = |path: &Path| {
        format!("curl -sS --unix-socket {0} http://x/ && ls -a {1}", path.display(), path.parent().unwrap().display())
    };
    let server = with(
        "
server = serve()
while True:
    connection = server.accept()[0]
    connection.recv(65536)
    connection.sendall(b'HTTP/1.1 200 OK\\r\\nContent-Length: 6\\r\\nConnection: close\\r\\n\\r\\nhello\\n')
    connection.close()
",
    );
    each(|engine, user| {
        for (default, more, folders) in
            [("deny", "", &["/var/tmp", "/tmp"][..]), ("allow", "deny read $HOME/run", &["/var/tmp"])]
        {
            for folder in folders {
                let elsewhere = tempfile::Builder::new().prefix("srt-socket-").tempdir_in(folder).unwrap();
                fs::set_permissions(elsewhere.path(), fs::Permissions::from_mode(0o755)).unwrap();
                let path = elsewhere.path().join("d/http.sock");
                fs::create_dir(path.parent().unwrap()).unwrap();
                fs::write(path.with_file_name("secret"), "").unwrap();
                let policy = format!(
                    "srt 1\nuse std/system\ndefault read {default}\nallow read, write $WORKSPACE\n{}\nallow socket {}\n",
                    more.replace("$HOME/run", &path.parent().unwrap().display().to_string()),
                    path.display()
                );
                let _service = service(&path, &server);
                let scene = Scene::new().policy(&policy).with(["--engine", engine]).by(user);
                let output = scene.run(&ask(&path));
                assert!(output.stdout.starts_with("hello\n"), "{engine} {user:?} {default} {folder}: {output:?}");
                assert!(!output.stdout.contains("secret"), "{engine} {user:?} {default} {folder}: {output:?}");
            }
        }
    });
}

/// Descriptors go neither way, nor does what they are refused with.
#[test]
fn bytes_alone_are_relayed() {
    let server = with(
        "
server = serve()
while True:
    connection = server.accept()[0]
    data, anything, flags, _ = connection.recvmsg(100, 1000)
    connection.sendmsg([b'%s %d' % (data, len(anything))],
        [(socket.SOL_SOCKET, socket.SCM_RIGHTS, array.array('i', [os.open('/', os.O_RDONLY)]))])
    connection.close()
",
    );
    let script = with(
        "
client = socket.socket(socket.AF_UNIX)
client.connect('s')
client.sendmsg([b'data'], [(socket.SOL_SOCKET, socket.SCM_RIGHTS, array.array('i', [0, 1]))])
data, anything, flags, _ = client.recvmsg(100, 1000)
print(data, anything, flags, client.recv(100))
",
    );
    each(|engine, user| {
        let scene = scene(engine, "allow socket $WORKSPACE/s").by(user);
        let _service = service(&scene.workspace().join("s"), &server);
        assert_eq!(python(&scene, &script).ok(), "b'data 0' [] 0 b''", "{engine} {user:?}");
    });
}

#[test]
fn packets_keep_their_bounds() {
    let server = with(
        "
server = serve(socket.SOCK_SEQPACKET)
while True:
    connection = server.accept()[0]
    while data := connection.recv(1_000_000):
        connection.send(b'%d' % len(data))
        connection.send(data)
    connection.send(b'end')
    connection.close()
",
    );
    let script = with(
        "
client = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
client.connect('s')
for length in (1, 2, 65536, 100_000):
    client.send(b'x' * length)
for _ in range(4):
    print(client.recv(1_000_000), len(client.recv(1_000_000)))
client.shutdown(socket.SHUT_WR)
print(client.recv(100), client.recv(100))
try:
    socket.socket(socket.AF_UNIX, socket.SOCK_STREAM).connect('s')
except OSError as error:
    print(error.errno)
",
    );
    each(|engine, user| {
        let scene = scene(engine, "allow socket $WORKSPACE/s").by(user);
        let _service = service(&scene.workspace().join("s"), &server);
        // EPROTOTYPE
        let expected = "b'1' 1\nb'2' 2\nb'65536' 65536\nb'100000' 100000\nb'end' b''\n91";
        assert_eq!(python(&scene, &script).ok(), expected, "{engine} {user:?}");
    });
}

/// An empty packet is told from the end, those after it too, when nobody sends any more.
#[test]
fn an_empty_packet_is_not_the_end() {
    let server = with(
        "
server = serve(socket.SOCK_SEQPACKET)
connection = server.accept()[0]
# More than the client's socket holds: the rest has to wait, and is there together.
for packet in [b'x' * 100_000] * 3 + [b'', b'after', b'', b'the last']:
    connection.send(packet)
connection.close()
time.sleep(1000)
",
    );
    let script = with(
        "
client = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
client.connect('s')
time.sleep(0.5)
print([len(client.recv(1_000_000)) for _ in range(3)], [client.recv(100) for _ in range(5)])
",
    );
    each(|engine, user| {
        let scene = scene(engine, "allow socket $WORKSPACE/s").by(user);
        let _service = service(&scene.workspace().join("s"), &server);
        let expected = "[100000, 100000, 100000] [b'', b'after', b'', b'the last', b'']";
        assert_eq!(python(&scene, &script).ok(), expected, "{engine} {user:?}");
    });
}

/// A service that accepts nobody keeps those waiting who wait for it, and none else; they end when they are killed.
#[test]
fn a_stuck_service_holds_up_nobody_else() {
    let script = with(
        "
import signal
def connect(name, wait=True):
    client = socket.socket(socket.AF_UNIX)
    client.setblocking(wait)
    try:
        client.connect(name)
        return client
    except OSError as error:
        return error.errno
held = connect('stuck')
children = []
for _ in range(40):
    child = os.fork()
    if child == 0:
        connect('stuck')
        os._exit(0)
    children.append(child)
time.sleep(0.3)
print(connect('stuck', False))
own = socket.socket(socket.AF_UNIX)
own.bind('own')
own.listen()
begin = time.time()
for _ in range(20):
    connect('own')
    own.accept()[0].close()
print(time.time() - begin < 2)
for child in children:
    os.kill(child, signal.SIGKILL)
    os.waitpid(child, 0)
print('ended')
",
    );
    each(|engine, user| {
        let scene = scene(engine, "allow socket $WORKSPACE/stuck").by(user);
        let _service = service(&scene.workspace().join("stuck"), &with("server = serve(backlog=0)\ntime.sleep(1000)"));
        // EAGAIN
        assert_eq!(python(&scene, &script).ok(), "11\nTrue\nended", "{engine} {user:?}");
    });
}

/// What was written when the command ended was written.
#[test]
fn the_last_bytes_arrive() {
    let server = with(
        "
server = serve()
connection = server.accept()[0]
time.sleep(0.6)
data = read(connection)
open(sys.argv[1] + '.got', 'w').write(str(len(data)))
time.sleep(1000)
",
    );
    let script = with(
        "
client = socket.socket(socket.AF_UNIX)
client.connect('s')
# More than the service's socket holds: some of it is still with the relay.
client.sendall(b'x' * 350_000)
if os.fork() == 0:
    time.sleep(1000)
",
    );
    each(|engine, user| {
        let scene = scene(engine, "allow socket $WORKSPACE/s").by(user);
        let _service = service(&scene.workspace().join("s"), &server);
        python(&scene, &script).ok();
        let got = scene.workspace().join("s.got");
        let begin = std::time::Instant::now();
        while fs::read_to_string(&got).is_ok_and(|text| text.is_empty()) || !got.exists() {
            assert!(begin.elapsed().as_secs() < 10, "nothing arrived");
            std::thread::sleep(std::time::Duration::from_millis(20));
        }
        assert_eq!(fs::read_to_string(&got).unwrap(), "350000", "{engine} {user:?}");
    });
}

#[test]
fn the_callers_agent_signs_and_keeps_its_keys() {
    if Command::new("ssh-agent").arg("-?").output().is_err() {
        return skip("ssh-agent", "it is not installed");
    }
    each(|engine, user| {
        let rules = "# lint: allow(control-socket) the agent signs\nallow socket $env.SSH_AUTH_SOCK?";
        let place = tempfile::Builder::new().prefix("srt-agent-").tempdir_in("/tmp").unwrap();
        let socket = place.path().join("agent.1");
        let scene = scene(engine, rules).by(user).env("SSH_AUTH_SOCK", socket.to_str().unwrap());
        let (program, arguments) = match user {
            User::Caller => ("ssh-agent", vec![]),
            User::Ordinary => {
                nix::unistd::chown(place.path(), Some(1001.into()), Some(1001.into())).unwrap();
                ("setpriv", vec!["--reuid=1001", "--regid=1001", "--clear-groups", "ssh-agent"])
            }
        };
        let mut agent = Command::new(program);
        agent.args(&arguments).args(["-D", "-a"]).arg(&socket).stdout(Stdio::null());
        let _agent = Background(agent.spawn().unwrap());
        while !socket.exists() {
            std::thread::sleep(std::time::Duration::from_millis(10));
        }
        let script = "set -e; ssh-keygen -q -t ed25519 -N '' -f key; ssh-add -q key; rm key; ssh-add -l | wc -l
                      echo text | ssh-keygen -q -Y sign -n file -f key.pub | head -1";
        let output = scene.run(script);
        assert_eq!(output.ok(), "1\n-----BEGIN SSH SIGNATURE-----", "{engine} {user:?}: {output:?}");
    });
}

/// A directory of sockets, as databases and display servers have one; what comes later in it is reached too.
#[test]
fn a_directory_that_may_be_read_is_reached_as_a_whole() {
    if Command::new("psql").arg("--version").output().is_err() {
        return skip("psql", "it is not installed");
    }
    // The server's first word, after the client's start-up packet: an error (PostgreSQL, Message Formats, ErrorResponse).
    let server = with(
        "
server = serve()
while True:
    connection = server.accept()[0]
    connection.recv(65536)
    fields = b'SFATAL\\0C28000\\0Mfrom the server\\0\\0'
    connection.sendall(b'E' + (len(fields) + 4).to_bytes(4, 'big') + fields)
    connection.close()
",
    );
    each(|engine, user| {
        let scene = scene(engine, "allow read, socket $HOME/pg").folder("pg").by(user);
        let path = scene.home().join("pg/.s.PGSQL.5432");
        let mut command = scene.sandboxed(["sh", "-c", "until [ -e ready ]; do sleep 0.05; done; psql -h ~/pg -U x x"]);
        let child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        let _service = service(&path, &server);
        fs::write(scene.workspace().join("ready"), "").unwrap();
        let output = child.wait_with_output().unwrap();
        let said = String::from_utf8_lossy(&output.stderr);
        assert!(said.contains("from the server"), "{engine} {user:?}: {said}");
    });
}

/// A socket that the command puts in the place of one that a rule names is not that one, whether that one was there or not.
#[test]
fn another_service_in_the_place_of_the_allowed_one_is_refused() {
    let script = with(
        "
os.rename('other', 'allowed')
client = socket.socket(socket.AF_UNIX)
try:
    client.connect('allowed')
    print('reached')
except OSError as error:
    print(error.errno)
",
    );
    each(|engine, user| {
        let scene = scene(engine, "allow socket $WORKSPACE/allowed").by(user);
        let _other = service(&scene.workspace().join("other"), &with(DIGEST));
        let refused = |there: &str| {
            let output = python(&scene, &script);
            assert_eq!(output.ok(), "13", "{engine} {user:?} {there}: {output:?}");
            assert!(output.stderr.contains("no rule named this socket when it was started"), "{}", output.stderr);
        };
        refused("nothing was there");
        std::fs::rename(scene.workspace().join("allowed"), scene.workspace().join("other")).unwrap();
        let _allowed = service(&scene.workspace().join("allowed"), &with(DIGEST));
        refused("another one was there");
    });
}
