//! The command's own servers.

use super::{each, python, scene};
use crate::support::skip;

#[test]
fn python_has_managers_fork_servers_and_passes_descriptors() {
    let script = "
import multiprocessing, multiprocessing.reduction, os, socket, tempfile
def work(queue, n):
    queue.put(n * n)
def receive(address, queue):
    with multiprocessing.connection.Client(address) as client:
        queue.put(os.read(multiprocessing.reduction.recv_handle(client), 100).decode())
if __name__ == '__main__':
    import multiprocessing.connection
    multiprocessing.set_start_method('forkserver')
    with multiprocessing.Manager() as manager:
        shared, queue = manager.dict(), manager.Queue()
        shared['a'] = 1
        process = multiprocessing.Process(target=work, args=(queue, 7))
        process.start()
        print(shared.copy(), queue.get())
        process.join()
        with multiprocessing.connection.Listener(family='AF_UNIX') as listener:
            process = multiprocessing.Process(target=receive, args=(listener.address, queue))
            process.start()
            reading, writing = os.pipe()
            os.write(writing, b'by a descriptor')
            with listener.accept() as connection:
                multiprocessing.reduction.send_handle(connection, reading, process.pid)
                print(queue.get())
            process.join()
";
    each(|engine, user| {
        let scene = scene(engine, "").by(user);
        assert_eq!(python(&scene, script).ok(), "{'a': 1} 49\nby a descriptor", "{engine} {user:?}");
    });
}

#[test]
fn node_serves_on_a_path() {
    if std::process::Command::new("node").arg("--version").output().is_err() {
        return skip("node", "it is not installed");
    }
    let script = "
const net = require('net');
const server = net.createServer((socket) => socket.pipe(socket)).listen('node.sock', () => {
  const client = net.connect('node.sock', () => client.end('x'.repeat(300000)));
  let length = 0;
  client.on('data', (data) => length += data.length).on('end', () => { console.log(length); server.close(); });
});
net.connect('missing.sock').on('error', (error) => console.log(error.code));
";
    each(|engine, user| {
        let scene = scene(engine, "use std/node").file("work/m.js", script).by(user);
        let output = scene.run("node m.js | sort");
        assert_eq!(output.ok(), "300000\nENOENT", "{engine} {user:?}: {output:?}");
    });
}

/// It closes itself to whoever would look into it.
#[test]
fn an_agent_inside_signs() {
    if std::process::Command::new("ssh-agent").arg("-?").output().is_err() {
        return skip("ssh-agent", "it is not installed");
    }
    let script = "set -e
ssh-keygen -q -t ed25519 -N '' -f key
eval $(ssh-agent -a $PWD/agent.sock) >/dev/null
ssh-add -q key
ssh-add -l | wc -l
echo text | ssh-keygen -q -Y sign -n file -f key.pub | head -1
ssh-agent -k >/dev/null
while [ -e agent.sock ]; do sleep 0.01; done
ssh-add -l 2>&1 | head -1";
    each(|engine, user| {
        let scene = scene(engine, "").by(user);
        let output = scene.run(script);
        assert_eq!(
            output.ok(),
            "1\n-----BEGIN SSH SIGNATURE-----\nError connecting to agent: No such file or directory",
            "{engine} {user:?}: {output:?}"
        );
    });
}

/// Whatever fails, fails as it does outside.
#[test]
fn errors_are_the_kernels() {
    let script = "
import ctypes, os, socket, struct, errno
libc = ctypes.CDLL(None, use_errno=True)
def raw(name, fd, address, length=None):
    number = fd if isinstance(fd, int) else fd.fileno()
    done = libc.connect(number, address, len(address) if length is None else length)
    print(name, done, done and errno.errorcode[ctypes.get_errno()])
def new(kind=socket.SOCK_STREAM):
    return socket.socket(socket.AF_UNIX, kind)
def un(path):
    return struct.pack('H', socket.AF_UNIX) + path
stream, packets = new(), new(socket.SOCK_SEQPACKET)
for server, name in ((stream, 'stream'), (packets, 'packets')):
    server.bind(name)
    server.listen()
abstract = new()
abstract.bind('')
abstract.listen()
dead = new()
dead.bind('dead')
dead.listen()
dead.close()
deaf = new()
deaf.bind('deaf')
open('file', 'w').close()
os.symlink('stream', 'link')
os.symlink('loop', 'loop')
os.symlink(os.getcwd() + '/stream', 'absolute')
os.mkdir('directory')
raw('stream', new(), un(b'stream'))
raw('with NUL', new(), un(b'stream\\0garbage'))
raw('packets', new(socket.SOCK_SEQPACKET), un(b'packets'))
raw('of the other kind', new(), un(b'packets'))
raw('by a link', new(), un(b'link'))
raw('by an absolute link', new(), un(b'absolute'))
raw('absolute', new(), un(os.getcwdb() + b'/./directory/..//stream'))
raw('abstract', new(), un(abstract.getsockname()))
raw('no such abstract', new(), un(b'\\0no such'))
raw('missing', new(), un(b'missing'))
raw('in a file', new(), un(b'file/x'))
raw('file', new(), un(b'file'))
raw('directory', new(), un(b'directory'))
raw('dead', new(), un(b'dead'))
raw('deaf', new(), un(b'deaf'))
raw('no descriptor', 999, un(b'stream'))
raw('no socket', os.open('file', os.O_RDONLY), un(b'stream'))
raw('not opened', os.open('file', os.O_PATH), un(b'stream'))
raw('no address', new(), un(b''))
raw('no length', new(), un(b'stream'), 0)
raw('negative', new(), un(b'stream'), -1)
raw('too long', new(), un(b'x' * 200))
raw('a little too long', new(), un(b'x' * 109))
raw('as long as can be', new(), un(b'x' * 108))
raw('null', new(), None, 10)
raw('another family', new(), struct.pack('H', socket.AF_INET) + b'stream')
raw('for TCP', socket.socket(), un(b'stream' + b'\\0' * 20))
client = new()
raw('once', client, un(b'stream'))
raw('again', client, un(b'stream'))
full = new()
full.bind('full')
full.listen(0)
held = [new()]
held[0].connect('full')
waiting = new()
waiting.setblocking(False)
raw('full', waiting, un(b'full'))
patient = new()
patient.setsockopt(socket.SOL_SOCKET, socket.SO_SNDTIMEO, struct.pack('ll', 0, 50000))
raw('full for a while', patient, un(b'full'))
server = socket.create_server(('127.0.0.1', 0))
client = socket.socket()
client.setblocking(False)
port = struct.pack('>H4sxxxxxxxx', server.getsockname()[1], bytes([127, 0, 0, 1]))
raw('TCP', client, struct.pack('H', socket.AF_INET) + port)
server.accept()
raw('TCP again', client, struct.pack('H', socket.AF_INET) + port)
raw('TCP once more', client, struct.pack('H', socket.AF_INET) + port)
raw('UDP', socket.socket(type=socket.SOCK_DGRAM), struct.pack('H', socket.AF_INET) + port)
deep = 'd' * 100
os.mkdir(deep)
os.chdir(deep)
long = new()
long.bind('long')
long.listen()
os.chdir('..')
place = os.open(deep, os.O_PATH)
for name in ('/proc/self/fd/%d/long', '/proc/thread-self/fd/%d/../' + deep + '/long', '/dev/fd/%d/long'):
    raw('by a directory', new(), un((name % place).encode()))
raw('by a process', new(), un(('/proc/%d/cwd/stream' % os.getpid()).encode()))
raw('by a descriptor', new(), un(('/proc/self/fd/%d' % os.open('stream', os.O_PATH)).encode()))
peer = new()
peer.connect('stream')
accepted = stream.accept()[0]
uid = lambda socket_: struct.unpack('iii', socket_.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, 12))[1] == os.getuid()
print(uid(peer), uid(accepted), struct.unpack('i', peer.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, 12)[:4])[0] == os.getpid())
";
    each(|engine, user| {
        let inside = scene(engine, "").by(user);
        let inside = python(&inside, script);
        let outside = tempfile::tempdir().unwrap();
        let outside = std::process::Command::new("python3")
            .args(["-c", script])
            .current_dir(outside.path())
            .env("LC_ALL", "C")
            .output()
            .unwrap();
        assert!(outside.status.success(), "{}", String::from_utf8_lossy(&outside.stderr));
        let outside = String::from_utf8(outside.stdout).unwrap();
        assert_eq!(inside.ok(), outside.trim_end(), "{engine} {user:?}: {}", inside.stderr);
        assert!(outside.lines().count() > 40);
    });
}

/// Calls are made once, however often who waits for them is disturbed; many at once hold up nobody.
#[test]
fn signals_threads_and_killed_callers_do_no_harm() {
    let script = "
import os, signal, socket, threading, time
server = socket.socket(socket.AF_UNIX)
server.bind('s')
server.listen(4000)
def accept():
    while True:
        server.accept()[0].close()
threading.Thread(target=accept, daemon=True).start()
fired = [0]
def handler(*_):
    fired[0] += 1
signal.signal(signal.SIGALRM, handler)
signal.setitimer(signal.ITIMER_REAL, 0.0005, 0.0005)
flood = os.fork()
if flood == 0:
    while True:
        os.kill(1, signal.SIGUSR2)
for _ in range(3000):
    client = socket.socket(socket.AF_UNIX)
    client.connect('s')
    client.close()
signal.setitimer(signal.ITIMER_REAL, 0)
os.kill(flood, signal.SIGKILL)
os.waitpid(flood, 0)
print('disturbed', fired[0] > 100)
failed = []
def connect():
    try:
        for _ in range(3):
            socket.socket(socket.AF_UNIX).connect('s')
    except OSError as error:
        failed.append(error)
threads = [threading.Thread(target=connect) for _ in range(1000)]
for thread in threads: thread.start()
for thread in threads: thread.join()
print(len(failed), failed[:1])
full = socket.socket(socket.AF_UNIX)
full.bind('full')
full.listen(0)
children = []
for _ in range(600):
    child = os.fork()
    if child == 0:
        while True:
            socket.socket(socket.AF_UNIX).connect('full')
    children.append(child)
    if len(children) == 300:
        time.sleep(0.05)
        for child in children:
            os.kill(child, signal.SIGKILL)
            os.waitpid(child, 0)
        children = []
socket.socket(socket.AF_UNIX).connect('s')
print('still served')
";
    each(|engine, user| {
        let scene = scene(engine, "").by(user);
        let output = python(&scene, script);
        assert_eq!(output.ok(), "disturbed True\n0 []\nstill served", "{engine} {user:?}: {}", output.stderr);
    });
}

/// An unconnected socket that was made outside would reach what is outside.
#[test]
fn a_socket_that_was_handed_down_connects_to_nobody() {
    let script = "
import socket, sys
handed = socket.socket(fileno=0)
for address in (sys.argv[1], '\\0' + sys.argv[2]):
    try:
        handed.connect(address)
        print('reached')
    except OSError as error:
        print(error.errno)
";
    each(|engine, user| {
        use std::os::linux::net::SocketAddrExt;
        use std::os::unix::net::{SocketAddr, UnixListener};
        let name = format!("srt-test-{}", std::process::id());
        let _abstract = UnixListener::bind_addr(&SocketAddr::from_abstract_name(&name).unwrap()).unwrap();
        let scene = scene(engine, "").file("work/t.py", script).by(user);
        let path = scene.workspace().join("host");
        let _listener = UnixListener::bind(&path).unwrap();
        let socket = nix::sys::socket::socket(
            nix::sys::socket::AddressFamily::Unix,
            nix::sys::socket::SockType::Stream,
            nix::sys::socket::SockFlag::empty(),
            None,
        );
        let mut command = scene.sandboxed(["python3".as_ref(), "t.py".as_ref(), path.as_os_str(), name.as_ref()]);
        let output = command.stdin(socket.unwrap()).output().unwrap();
        assert_eq!(String::from_utf8_lossy(&output.stdout), "13\n13\n", "{engine} {user:?}: {output:?}");
        let said = String::from_utf8_lossy(&output.stderr);
        assert!(said.contains("connecting a unix socket that was made outside"), "{said}");
    });
}

#[test]
fn there_are_no_datagrams() {
    let script = "
import socket
for kind in (socket.SOCK_DGRAM, socket.SOCK_RAW):
    for make in (socket.socket, socket.socketpair):
        try:
            make(socket.AF_UNIX, kind)
            print('made')
        except OSError as error:
            print(error.errno)
";
    each(|engine, user| {
        let scene = scene(engine, "").by(user);
        assert_eq!(python(&scene, script).ok(), "97\n97\n97\n97", "{engine} {user:?}");
    });
}

/// Runs a program where nobody may take a descriptor of another process, as container engines have it by default.
const UNLOOKED: &str = "
import ctypes, os, struct, sys
step = lambda code, jt, jf, k: struct.pack('HBBI', code, jt, jf, k)
program = step(0x20, 0, 0, 0) + step(0x15, 0, 1, 438) + step(6, 0, 0, 0x50001) + step(6, 0, 0, 0x7fff0000)
place = ctypes.create_string_buffer(program)
libc = ctypes.CDLL(None)
assert libc.prctl(38, 1, 0, 0, 0) == 0
assert libc.prctl(22, 2, struct.pack('HxxxxxxP', 4, ctypes.addressof(place)), 0, 0) == 0
os.execvp(sys.argv[1], sys.argv[1:])
";

#[test]
fn where_nobody_may_look_unix_sockets_stay_closed_and_the_run_says_so() {
    each(|engine, user| {
        let run = |rules: &str| {
            let scene = scene(engine, rules).by(user);
            let inside = "
import socket
try:
    socket.socket(socket.AF_UNIX)
except OSError as error:
    print(error.errno, socket.create_server(('127.0.0.1', 0)).close())
";
            let command = scene.sandboxed(["python3", "-c", inside]);
            let mut around = std::process::Command::new("python3");
            around.args(["-c", UNLOOKED]).arg(command.get_program()).args(command.get_args());
            around.env_clear().envs(command.get_envs().filter_map(|(name, value)| Some((name, value?))));
            crate::support::output(around.current_dir(command.get_current_dir().unwrap()))
        };
        let output = run("");
        assert_eq!(output.ok(), "97 None", "{engine} {user:?}: {output:?}");
        assert!(output.stderr.contains("srt: unix sockets are closed to the command"), "{output:?}");
        let output = run("allow socket $WORKSPACE/s");
        assert_eq!(output.code, 125, "{engine} {user:?}: {output:?}");
        assert!(output.stderr.contains("cannot connect to unix sockets in the command's place"), "{output:?}");
    });
}
