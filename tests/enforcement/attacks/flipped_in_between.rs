//! Between the decision about a call and the call, an attacker changes what it was decided on: the text of a path, a link, a
//! directory on the way, a descriptor. Here that moment lasts long enough to be met at every try.

use crate::sandbox::{Run, for_each_user, give, make_directory};
use sandbox_runtime::backend::bubblewrap::Mount;
use sandbox_runtime::exec::linux::{Defence, Watch};
use std::fs;
use std::os::unix::fs::symlink;
use std::path::Path;

/// What is denied in each of the directories in which something is tried: `kept` is there, the others are not.
const RULES: &str =
    "allow write $WORKSPACE\ndeny write [$WORKSPACE/*/denied, $WORKSPACE/*/d/denied, $WORKSPACE/*/kept]";

/// So often an attack without the defence is tried, on a machine that may be busy.
const TRIES: usize = 6;

/// `during`: what an attacker does while a call is about to be made. `before`: a change of names that is itself about to be made
/// when the call is decided.
const BEGIN: &str = r"
import ctypes, os, socket, struct, sys, threading, time
libc = ctypes.CDLL(None, use_errno=True)
HALF = 0.03
BASE, TRIES = os.getcwd(), int(sys.argv[1])
W, C, T, R = os.O_WRONLY, os.O_CREAT, os.O_TRUNC, os.O_RDONLY
def quietly(act):
    try:
        act()
    except OSError:
        pass
def apart(first, second):
    thread = threading.Thread(target=quietly, args=(first,))
    thread.start()
    time.sleep(HALF)
    quietly(second)
    thread.join()
def during(call, flip):
    apart(call, flip)
def before(flip, call):
    apart(flip, call)
def exchange(one, other):
    libc.renameat2(-100, one, -100, other, 2)
class Text:
    '''A path in memory that is another one a moment later.'''
    def __init__(self, first, then):
        self.place = ctypes.create_string_buffer(first, 64)
        self.then = then + b'\0'
    def flip(self):
        ctypes.memmove(self.place, self.then, len(self.then))
def by_text(call, first=b'x', then=b'denied'):
    text = Text(first, then)
    during(lambda: call(text.place), text.flip)
class Number:
    '''A descriptor that is another file a moment later.'''
    def __init__(self, first, then):
        self.number, self.then = os.dup(first), then
    def flip(self):
        os.dup2(self.then, self.number)
def by_number(call, first, then):
    number = Number(first, then)
    during(lambda: call(number.number), number.flip)
def place(name):
    return os.open(name, R)
def bind():
    address = ctypes.create_string_buffer(struct.pack('H', socket.AF_UNIX) + b'x', 64)
    made = socket.socket(socket.AF_UNIX)
    flip = lambda: ctypes.memmove(ctypes.addressof(address) + 2, b'denied\0', 7)
    during(lambda: libc.bind(made.fileno(), address, 20), flip)
def unnamed():
    fd = os.open('.', os.O_TMPFILE | W)
    by_text(lambda text: libc.linkat(-100, b'/proc/self/fd/%d' % fd, -100, text, 0x400))
def working_directory():
    there = place('d')
    os.chdir('free')
    during(lambda: os.open('denied', W | C), lambda: os.fchdir(there))
    os.chdir('..')
def moved():
    text, free = Text(b'other', b'd'), place('free')
    def call():
        text.flip()
        os.open('denied', W | C, dir_fd=free)
    before(lambda: exchange(b'free', text.place), call)
times = (ctypes.c_long * 4)(1, 0, 1, 0)
ATTACKS = {
    'a path': lambda: by_text(lambda text: libc.open(text, W | C, 0o600)),
    'a path of what is there': lambda: by_text(lambda text: libc.open(text, W | T), b'harmless', b'kept'),
    'what is made by an old call': lambda: by_text(lambda text: libc.creat(text, 0o600)),
    'what is removed': lambda: by_text(libc.unlink, b'harmless', b'kept'),
    'what is cut off': lambda: by_text(lambda text: libc.truncate(text, 0), b'harmless', b'kept'),
    'whose mode is changed': lambda: by_text(lambda text: libc.chmod(text, 0o777), b'harmless', b'kept'),
    'whose times are changed': lambda: by_text(lambda text: libc.utimensat(-100, text, times, 0), b'harmless', b'kept'),
    'a new name': lambda: by_text(lambda text: libc.rename(b'harmless', text)),
    'an old name': lambda: by_text(lambda text: libc.rename(text, b'x'), b'harmless', b'kept'),
    'an exchange': lambda: by_text(lambda text: exchange(b'harmless', text), b'other', b'kept'),
    'a new hard link': lambda: by_text(lambda text: libc.link(b'harmless', text)),
    'what a hard link is made to': lambda: by_text(lambda text: libc.link(text, b'x'), b'harmless', b'kept'),
    'a new link': lambda: by_text(lambda text: libc.symlink(b'x', text)),
    'a new directory': lambda: by_text(lambda text: libc.mkdir(text, 0o700)),
    'a new pipe': lambda: by_text(lambda text: libc.mkfifo(text, 0o600)),
    'a socket': bind,
    'a file without a name': unnamed,
    'a link in the last place': lambda: before(lambda: exchange(b'a', b'b'), lambda: os.open('a', W | C)),
    'a directory on the way': lambda: before(lambda: exchange(b'way', b'free'), lambda: os.open('free/denied', W | C)),
    'the directory of a descriptor': moved,
    'the descriptor of a directory': lambda: by_number(
        lambda number: os.open('denied', W | C, dir_fd=number), place('free'), place('d')),
    'the working directory': working_directory,
    'a descriptor in /proc': lambda: by_number(
        lambda number: os.open('/proc/self/fd/%d' % number, W | T), place('harmless'), place('kept')),
    'a descriptor in /dev': lambda: by_number(
        lambda number: os.open('/dev/fd/%d' % number, W | T), place('harmless'), place('kept')),
    'a descriptor whose mode is changed': lambda: by_number(
        lambda number: os.fchmod(number, 0o777), place('harmless'), place('kept')),
    'a descriptor whose times are changed': lambda: by_number(
        lambda number: libc.futimens(number, times), place('harmless'), place('kept')),
}
def has_won():
    if any(os.path.lexists(name) for name in ('denied', 'd/denied')) or not os.path.lexists('kept'):
        return True
    kept = os.stat('kept')
    return (kept.st_size, kept.st_mode & 0o777, kept.st_nlink, kept.st_mtime > 2) != (4, 0o644, 1, True)
for row, (name, attack) in enumerate(ATTACKS.items()):
    for attempt in range(TRIES):
        os.chdir(f'{BASE}/{row}-{attempt}')
        quietly(attack)
        os.chdir(f'{BASE}/{row}-{attempt}')
        if has_won():
            print(name)
            break
print(len(ATTACKS), 'tried')
";

/// More than there are attacks.
const ROWS: usize = 32;

fn prepare(place: &Path, tries: usize, user: Option<u32>) {
    make_directory(place, user);
    for row in 0..ROWS {
        for attempt in 0..tries {
            let here = place.join(format!("{row}-{attempt}"));
            for directory in ["", "d", "free"] {
                make_directory(&here.join(directory), user);
            }
            for (name, text) in [("harmless", "harmless"), ("other", "other"), ("kept", "kept")] {
                fs::write(here.join(name), text).unwrap();
                fs::set_permissions(here.join(name), std::os::unix::fs::PermissionsExt::from_mode(0o644)).unwrap();
                give(&here.join(name), user);
            }
            for (name, to) in [("a", "x"), ("b", "denied"), ("way", "d")] {
                symlink(to, here.join(name)).unwrap();
            }
        }
    }
}

/// A run in which nothing but the decision holds: what is there under a denied name is not mounted.
fn run(place: &Path, user: Option<u32>, script: &str, tries: usize, missing: &[Defence]) -> Run {
    let mut run = Run::policy(RULES, place, "").with_python(script).as_user_of(user);
    run.command.push(tries.to_string());
    assert_eq!(run.plan.syscalls.performed, Watch::Writes);
    run.plan.mounts.retain(|mount| !matches!(mount, Mount::Bind { path, .. } if path.ends_with(b"/kept")));
    missing.iter().cloned().fold(run, Run::without)
}

#[test]
fn nothing_is_done_that_was_not_decided() {
    for_each_user(|user, scratch| {
        let attempt = |tries: usize, missing: &[Defence]| {
            let place = scratch.join("place");
            prepare(&place, tries, user);
            let said = run(&place, user, BEGIN, tries, missing).succeeds();
            fs::remove_dir_all(&place).unwrap();
            said.lines().map(str::to_owned).collect::<Vec<_>>()
        };
        let won = attempt(1, &[Defence::Prompt]);
        let [tried] = &won[..] else { panic!("{user:?}: {won:?}") };
        let count: usize = tried.strip_suffix(" tried").unwrap().parse().unwrap();
        assert!(count > 20 && count <= ROWS, "{tried}");
        let won = attempt(TRIES, &[Defence::Prompt, Defence::Performed]);
        assert_eq!(won.len(), count + 1, "{user:?}: not won even without the defence: all but {won:?}");
    });
}

/// Who is killed in between has nothing done for them, and a signal in between has nothing done twice, or not at all.
#[test]
fn whoever_is_gone_in_between_is_served_no_more() {
    const SCRIPT: &str = r"
import os, signal, time
os.chdir('0-0')
child = os.fork()
if child == 0:
    os.open('late', os.O_CREAT | os.O_WRONLY)
    os._exit(0)
time.sleep(0.03)
os.kill(child, signal.SIGKILL)
os.waitpid(child, 0)
signal.signal(signal.SIGALRM, lambda *_: None)
signal.siginterrupt(signal.SIGALRM, True)
signal.setitimer(signal.ITIMER_REAL, 0.002, 0.002)
for number in range(4):
    os.close(os.open('once%d' % number, os.O_CREAT | os.O_EXCL | os.O_WRONLY))
signal.setitimer(signal.ITIMER_REAL, 0)
print(os.path.exists('late'), len([name for name in os.listdir('.') if name.startswith('once')]))
";
    for_each_user(|user, scratch| {
        let place = scratch.join("place");
        prepare(&place, 1, user);
        assert_eq!(run(&place, user, SCRIPT, 1, &[Defence::Prompt]).succeeds(), "False 4\n", "{user:?}");
        fs::remove_dir_all(&place).unwrap();
    });
}
