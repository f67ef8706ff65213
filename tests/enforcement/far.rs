//! A file system of a program that does not answer, and names that a program is to mount when somebody asks for them, which does not:
//! whoever asks hangs, nobody else does, and nothing is left of it.

use crate::support::{Background, Scene, am_root, skip};
use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

/// Serves FUSE (the kernel's linux/fuse.h) at a directory: an empty root, in which the look-up of `hang` is never answered.
const SERVER: &str = r"
import ctypes, os, struct, sys
libc = ctypes.CDLL(None, use_errno=True)
device = os.open('/dev/fuse', os.O_RDWR)
options = 'fd=%d,rootmode=40000,user_id=0,group_id=0,allow_other' % device
if libc.mount(b'srt-test', sys.argv[1].encode(), b'fuse', 0, options.encode()) != 0:
    print('cannot', os.strerror(ctypes.get_errno()), flush=True)
    sys.exit()
print('ready', flush=True)
while True:
    try:
        message = os.read(device, 1 << 20)
    except OSError:
        break
    length, opcode, unique, node = struct.unpack_from('<IIQQ', message)
    name = message[40:].split(b'\0')[0]
    def answer(error, body=b''):
        os.write(device, struct.pack('<IiQ', 16 + len(body), -error, unique) + body)
    if opcode == 26:
        answer(0, struct.pack('<IIIIHHIIHH32x', 7, 31, 1 << 17, 0, 12, 9, 1 << 17, 1, 32, 0))
    elif opcode == 3:
        answer(0, struct.pack('<QII', 0, 0, 0) + struct.pack('<6Q10I', 1, 0, 0, 0, 0, 0, 0, 0, 0, 0o40777, 2, 0, 0, 0, 4096, 0))
    elif opcode == 1:
        if name != b'hang':
            answer(2)
    elif opcode not in (2, 36, 42):
        answer(38)
";

/// Is asked by the kernel to mount every name below a directory (the kernel's filesystems/autofs), and never does.
const AUTOMOUNTER: &str = r"
import ctypes, os, sys, time
libc = ctypes.CDLL(None, use_errno=True)
os.setpgid(0, 0)
reading, writing = os.pipe2(os.O_DIRECT)
options = 'fd=%d,pgrp=%d,minproto=5,maxproto=5,indirect' % (writing, os.getpgrp())
if libc.mount(b'srt-test', sys.argv[1].encode(), b'autofs', 0, options.encode()) != 0:
    print('cannot', os.strerror(ctypes.get_errno()), flush=True)
    sys.exit()
os.chmod(sys.argv[1], 0o777)
print('ready', flush=True)
while True:
    os.read(reading, 4096)
";

/// A mount that is taken away again.
struct Mounted<'p> {
    place: &'p Path,
    _server: Background,
}

impl Drop for Mounted<'_> {
    fn drop(&mut self) {
        let _ = Command::new("umount").arg("-l").arg(self.place).status();
    }
}

#[test]
fn whoever_asks_what_does_not_answer_hangs_alone() {
    // Whoever waits for it the kernel keeps.
    hangs_alone(SERVER, "a file system that does not answer", "cannot end: it waits for a file system");
}

#[test]
fn whoever_asks_for_what_is_never_mounted_hangs_alone() {
    hangs_alone(AUTOMOUNTER, "names that are never mounted", "");
}

fn hangs_alone(server: &str, what: &str, says: &str) {
    if !am_root() {
        return;
    }
    for engine in ["native", "bwrap"] {
        let rules = "use std/python\nallow read, write $WORKSPACE\ndeny write $WORKSPACE/**/*.denied";
        let scene = Scene::new().folder("work/far").policy(rules).with(["--engine", engine]);
        let place = scene.workspace().join("far");
        let (server, said) =
            Background::that_says(Command::new("python3").args(["-c", server]).arg(&place).stderr(Stdio::inherit()));
        if said != "ready" {
            return skip(what, &format!("none can be mounted here: {said}"));
        }
        let mounted = Mounted { place: &place, _server: server };
        let script = r"
import os, signal, time
def apart(act):
    child = os.fork()
    if child == 0:
        try:
            act()
        finally:
            os._exit(1)
    return child
children = [apart(act) for act in (
    lambda: os.open('far/hang', os.O_CREAT | os.O_WRONLY),
    lambda: os.mkdir('far/hang'),
    lambda: os.unlink('far/hang'),
    lambda: os.rename('far/hang', 'far/x'),
    lambda: os.chmod('far/hang', 0o600),
)]
time.sleep(0.5)
begin = time.time()
for n in range(50):
    open(f'f{n}', 'w').close()
    os.rename(f'f{n}', f'g{n}')
print(time.time() - begin < 5)
for child in children:
    os.kill(child, signal.SIGKILL)
print([os.waitpid(child, 0)[1] for child in children])
if os.fork() == 0:
    os.open('far/hang', os.O_CREAT | os.O_WRONLY)
";
        let begin = Instant::now();
        let mut child = scene
            .sandboxed(["python3", "-S", "-c", script])
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        while child.try_wait().unwrap().is_none() {
            if begin.elapsed() > Duration::from_secs(60) {
                // Whatever hangs in it would keep this test.
                let _ = Command::new("umount").arg("-f").arg(&place).status();
                child.kill().unwrap();
                panic!("{engine}: it hangs");
            }
            std::thread::sleep(Duration::from_millis(20));
        }
        let output = child.wait_with_output().unwrap();
        assert_eq!(String::from_utf8_lossy(&output.stdout), "True\n[9, 9, 9, 9, 9]\n", "{engine}");
        let said = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success() && said.contains(says), "{engine} {said}");
        assert!(!says.is_empty() || said.is_empty(), "{engine} {said}");
        drop(mounted);
        assert_eq!(fs::read_dir(scene.workspace()).unwrap().count(), 51, "{engine}");
    }
}
