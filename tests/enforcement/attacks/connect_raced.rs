//! Whoever looks at a connection and then lets the kernel make it has looked at something else: an address is memory, which
//! another process changes meanwhile, and a descriptor can be another socket by then.

use crate::sandbox::{Run, for_each_user, give};
use sandbox_runtime::exec::linux::Defence;
use std::os::unix::net::UnixListener;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

/// A service of the host that counts who comes.
fn service(path: &std::path::Path) -> Arc<AtomicUsize> {
    let listener = UnixListener::bind(path).unwrap();
    let count = Arc::new(AtomicUsize::new(0));
    let counted = Arc::clone(&count);
    std::thread::spawn(move || {
        for _ in listener.incoming() {
            counted.fetch_add(1, Ordering::SeqCst);
        }
    });
    count
}

/// One process flips an address between a server of its own and the host's, the other connects to it.
const MEMORY: &str = "
import ctypes, mmap, os, socket, struct, time
own = socket.socket(socket.AF_UNIX)
own.bind('own.')
own.listen(4000)
shared = mmap.mmap(-1, 4096)
address = [struct.pack('H', socket.AF_UNIX) + path + b'\\0' for path in (b'own.', b'host')]
place = ctypes.addressof(ctypes.c_char.from_buffer(shared))
flipper = os.fork()
if flipper == 0:
    copy, length = ctypes.memmove, len(address[0])
    while True:
        copy(place, address[0], length)
        copy(place, address[1], length)
libc = ctypes.CDLL(None)
end = time.time() + 4
while time.time() < end:
    client = socket.socket(socket.AF_UNIX)
    if libc.connect(client.fileno(), ctypes.c_void_p(place), len(address[0])) == 0:
        if client.getpeername() != 'own.':
            break
        own.accept()[0].close()
os.kill(flipper, 9)
";

/// One thread makes a descriptor a TCP and a unix socket in turn, the other connects it to the host's service.
const DESCRIPTOR: &str = "
import ctypes, os, socket, struct, threading, time
libc = ctypes.CDLL(None)
address = struct.pack('H', socket.AF_UNIX) + b'host\\0'
tcp = socket.socket()
unix = socket.socket(socket.AF_UNIX)
target = os.dup(tcp.fileno())
end = time.time() + 4
def flip():
    while time.time() < end:
        libc.dup2(tcp.fileno(), target)
        libc.dup2(unix.fileno(), target)
for _ in range(2):
    threading.Thread(target=flip, daemon=True).start()
while time.time() < end:
    if libc.connect(target, address, len(address)) == 0:
        break
end = 0
";

#[test]
fn nothing_is_won_by_a_race() {
    for_each_user(|user, scratch| {
        let count = service(&scratch.join("host"));
        give(&scratch.join("host"), user);
        for (name, script) in [("memory", MEMORY), ("descriptor", DESCRIPTOR)] {
            let script = format!("import os\nif os.path.exists('own.'): os.unlink('own.')\n{script}");
            let run = Run::policy("allow write $WORKSPACE", scratch, "").with_python(&script).as_user_of(user);
            run.succeeds();
            assert_eq!(count.swap(0, Ordering::SeqCst), 0, "{name} {user:?}");
            run.without(Defence::Performed).succeeds();
            assert!(count.swap(0, Ordering::SeqCst) > 0, "{name} {user:?}: the race is lost by itself");
        }
    });
}
