//! Whoever looks at a path and then lets the kernel go on has decided about another file than the kernel opens: its text is memory,
//! its directories and links are names, its beginning is a descriptor, and each of them another thread changes meanwhile.

use crate::sandbox::{Run, for_each_user};
use sandbox_runtime::backend::bubblewrap::Mount;
use sandbox_runtime::exec::linux::{Defence, Watch};

/// What every attack has in common: a name that is denied, one that is not, and a number of tries, and of seconds.
const BEGIN: &str = r"
import ctypes, itertools, mmap, os, sys, threading, time
libc = ctypes.CDLL(None, use_errno=True)
tries, end = int(sys.argv[1]), time.time() + float(sys.argv[2])
def flipped(flip):
    def run():
        while tries and time.time() < end:
            try:
                flip()
            except OSError:
                pass
    threading.Thread(target=run, daemon=True).start()
def until(act):
    global tries
    for tried in itertools.count():
        if tried == tries or time.time() > end:
            print(tried)
            break
        try:
            act()
        except OSError:
            pass
        if os.path.lexists('denied') or os.path.lexists('d/denied'):
            print('won')
            break
    tries = 0
";

/// Before an attack whose path is memory that another process writes.
const FLIPPER: &str = r"
shared = mmap.mmap(-1, 4096)
place = ctypes.addressof(ctypes.c_char.from_buffer(shared))
names = [b'harmle\0', b'denied\0']
ctypes.memmove(place, names[0], 7)
flipper = os.fork()
if flipper == 0:
    while os.getppid() > 1 and time.time() < end + 1:
        ctypes.memmove(place, names[1], 7)
        ctypes.memmove(place, names[0], 7)
    os._exit(0)
";

const MEMORY: &str = r"
def attempt():
    fd = libc.open(ctypes.c_void_p(place), os.O_CREAT | os.O_WRONLY, 0o600)
    if fd >= 0:
        os.close(fd)
until(attempt)
os.kill(flipper, 9)
";

/// The last part is a link that leads to the denied name, now and then.
const LINK: &str = r"
os.symlink('harmless', 'a')
os.symlink('denied', 'b')
flipped(lambda: libc.renameat2(-100, b'a', -100, b'b', 2))
until(lambda: os.close(os.open('a', os.O_CREAT | os.O_WRONLY)))
";

/// A directory on the way is a link, now and then.
const DIRECTORY: &str = r"
os.mkdir('other')
os.mkdir('d')
os.symlink('d', 'link')
def flip():
    libc.renameat2(-100, b'link', -100, b'other', 2)
flipped(flip)
def attempt():
    os.close(os.open('other/denied', os.O_CREAT | os.O_WRONLY))
    os.unlink('other/denied')
until(attempt)
";

/// The descriptor that the path starts at is another directory's, now and then.
const DESCRIPTOR: &str = r"
os.mkdir('d')
os.mkdir('free')
one, other = os.open('free', os.O_RDONLY), os.open('d', os.O_RDONLY)
target = os.dup(one)
def flip():
    os.dup2(one, target)
    os.dup2(other, target)
flipped(flip)
def attempt():
    os.close(os.open('denied', os.O_CREAT | os.O_WRONLY, dir_fd=target))
until(attempt)
";

/// What is made under a name is renamed to the denied one by a path that changes.
const RENAME: &str = r"
def attempt():
    open('made', 'w').close()
    libc.rename(b'made', ctypes.c_void_p(place))
until(attempt)
os.kill(flipper, 9)
";

/// Fewer than a race without the defence ever took, by far.
#[test]
fn no_name_is_won_by_a_race() {
    lose(2000);
}

#[test]
#[ignore = "long"]
fn none_of_a_hundred_thousand_races_is_won() {
    lose(20_000);
}

/// So many tries of each of five races, as each user, with each engine.
fn lose(tries: usize) {
    for_each_user(|user, scratch| {
        for (name, begin, script) in [
            ("memory", FLIPPER, MEMORY),
            ("link", "", LINK),
            ("directory", "", DIRECTORY),
            ("descriptor", "", DESCRIPTOR),
            ("rename", FLIPPER, RENAME),
        ] {
            let place = scratch.join(name);
            let attempt = |missing: &[Defence]| {
                crate::sandbox::make_directory(&place, user);
                let rules = "allow write $WORKSPACE\ndeny write [$WORKSPACE/denied, $WORKSPACE/d/denied]";
                let mut run =
                    Run::policy(rules, &place, "").with_python(&format!("{BEGIN}{begin}{script}")).as_user_of(user);
                let (tries, seconds) = if missing.is_empty() { (tries, 600) } else { (10_000_000, 30) };
                run.command.extend([tries.to_string(), seconds.to_string()]);
                assert_eq!(run.plan.syscalls.performed, Watch::Writes);
                let said = missing.iter().cloned().fold(run, Run::without).succeeds();
                let made = ["denied", "d/denied"].iter().any(|denied| place.join(denied).symlink_metadata().is_ok());
                std::fs::remove_dir_all(&place).unwrap();
                (said, made)
            };
            assert_eq!(attempt(&[]), (format!("{tries}\n"), false), "{name} {user:?}");
            // With a pause, so that a busy machine wins as well.
            let (said, _) = attempt(&[Defence::Performed, Defence::Prompt]);
            assert_eq!(said, "won\n", "{name} {user:?}: the race is lost by itself");
        }
    });
}

/// What is denied to read is read by no flip of the path, where each open is decided.
#[test]
fn no_reading_is_won_by_a_race() {
    const READ: &str = r"
def attempt():
    fd = libc.open(ctypes.c_void_p(place), os.O_RDONLY)
    if fd >= 0:
        if os.read(fd, 9) == b'secret':
            os.symlink('x', 'd/denied')
        os.close(fd)
until(attempt)
os.kill(flipper, 9)
";
    for_each_user(|user, scratch| {
        let place = scratch.join("read");
        let attempt = |missing: Option<Defence>| {
            crate::sandbox::make_directory(&place, user);
            crate::sandbox::make_directory(&place.join("d"), user);
            for name in ["harmle", "secret"] {
                crate::sandbox::write(&place.join(name), name, user);
            }
            let script = format!("{BEGIN}{}{READ}", FLIPPER.replace("b'denied\\0'", "b'secret\\0'"));
            let rules = "allow write $WORKSPACE\ndeny read $WORKSPACE/secret";
            let mut run = Run::policy(rules, &place, "").with_python(&script).as_user_of(user);
            // Nothing but the decision holds.
            run.plan
                .mounts
                .retain(|mount| !matches!(mount, Mount::MaskFile { path, .. } if path.ends_with(b"/secret")));
            run.plan.syscalls.performed = Watch::Opens;
            let (tries, seconds) = if missing.is_some() { (10_000_000, 10) } else { (2000, 600) };
            run.command.extend([tries.to_string(), seconds.to_string()]);
            let said = missing.into_iter().fold(run, Run::without).succeeds();
            std::fs::remove_dir_all(&place).unwrap();
            said
        };
        assert_eq!(attempt(None), "2000\n", "{user:?}");
        assert_eq!(attempt(Some(Defence::Performed)), "won\n", "{user:?}: the race is lost by itself");
    });
}
