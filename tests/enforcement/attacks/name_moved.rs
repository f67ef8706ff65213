//! A denied name is reached by moving what is around it: `mkdir -p x/hooks; mv x .git`, an exchange, a hard link, a file that has no
//! name yet. Nothing is denied there before it is moved.

use crate::sandbox::{Run, for_each_user, make_directory};
use sandbox_runtime::exec::linux::Watch;
use std::fs;

const RULES: &str = "allow write $WORKSPACE\ndeny write $WORKSPACE/**/git/hooks\ndeny write $WORKSPACE/denied";

/// Each ends with a file under a denied name, where nothing holds it.
const ATTACKS: &[(&str, &str)] = &[
    (
        "a directory renamed onto the name",
        "os.makedirs('x/hooks'); open('x/hooks/h', 'w').close(); os.rename('x', 'git')",
    ),
    (
        "a directory above it exchanged",
        "os.makedirs('x/hooks'); open('x/hooks/h', 'w').close(); os.mkdir('git'); \
         assert libc.renameat2(-100, b'x', -100, b'git', 2) == 0",
    ),
    (
        "a directory two above it",
        "os.makedirs('x/y/hooks'); open('x/y/hooks/h', 'w').close(); os.rename('x/y', 'x/git'); os.rename('x', 'z')",
    ),
    ("the name itself", "os.makedirs('git/hooks')"),
    ("by a directory's descriptor", "os.mkdir('git'); os.mkdir('hooks', dir_fd=os.open('git', os.O_RDONLY))"),
    ("by a working directory", "os.mkdir('git'); os.chdir('git'); os.mkdir('hooks')"),
    ("by a link on the way", "os.mkdir('git'); os.symlink('git', 'l'); os.mkdir('l/hooks')"),
    ("by a link in the last place", "os.symlink('denied', 'l'); open('l', 'w').close()"),
    ("by a link of links", "os.symlink('m', 'l'); os.symlink(os.getcwd() + '/denied', 'm'); open('l', 'w').close()"),
    ("by /proc", "open('/proc/self/cwd/denied', 'w').close()"),
    ("by a thread's /proc", "open('/proc/thread-self/cwd/denied', 'w').close()"),
    ("by dots", "os.mkdir('x'); open('x/../denied', 'w').close()"),
    ("a rename", "open('x', 'w').close(); os.rename('x', 'denied')"),
    ("a hard link", "open('x', 'w').close(); os.link('x', 'denied')"),
    ("a link", "os.symlink('x', 'denied')"),
    ("a pipe", "os.mkfifo('denied')"),
    ("a node", "os.mknod('denied')"),
    ("a socket", "import socket; socket.socket(socket.AF_UNIX).bind('denied')"),
    (
        "a file without a name",
        "fd = os.open('.', os.O_TMPFILE | os.O_WRONLY); \
         assert libc.linkat(-100, b'/proc/self/fd/%d' % fd, -100, b'denied', 0x400) == 0",
    ),
    ("an old call", "assert libc.syscall(CREAT, b'denied', 0o600) >= 0"),
];

const CHECK: &str = r"
import ctypes, os, platform, sys
libc = ctypes.CDLL(None, use_errno=True)
CREAT, BASE = 85, os.getcwd()
try:
    exec(sys.argv[1])
except (OSError, AssertionError):
    pass
found = [os.path.join(at, name) for at, names, files in os.walk(BASE) for name in names + files
         if name == 'denied' or (name == 'hooks' and os.path.basename(at) == 'git')]
print(sorted(found))
";

fn run(place: &std::path::Path, user: Option<u32>, rules: &str, attack: &str) -> Run {
    let mut run = Run::policy(rules, place, "").with_python(CHECK).as_user_of(user);
    run.command.push(attack.to_owned());
    run
}

#[test]
fn no_move_leads_to_a_denied_name() {
    for_each_user(|user, scratch| {
        for (at, (what, attack)) in ATTACKS.iter().enumerate() {
            if *what == "an old call" && !cfg!(target_arch = "x86_64") {
                continue;
            }
            let place = scratch.join(at.to_string());
            make_directory(&place, user);
            assert_eq!(run(&place, user, RULES, attack).succeeds(), "[]\n", "{what} {user:?}");
            fs::remove_dir_all(&place).unwrap();
            make_directory(&place, user);
            // With what mounts alone hold.
            let mut undefended = run(&place, user, RULES, attack);
            undefended.plan.syscalls.performed = Watch::Nothing;
            assert_ne!(undefended.succeeds(), "[]\n", "{what} {user:?}: it leads nowhere by itself");
            fs::remove_dir_all(&place).unwrap();
        }
    });
}

/// What is there under a denied name, made by somebody outside meanwhile, is nobody's to change, by whatever way.
#[test]
fn what_appears_under_a_denied_name_is_not_changed() {
    const WAYS: &[&str] = &[
        "open('denied', 'w')",
        "open('denied', 'r+')",
        "os.open('denied', os.O_RDONLY | os.O_TRUNC)",
        "os.truncate('denied', 0)",
        "os.unlink('denied')",
        "os.rename('denied', 'x')",
        "os.link('denied', 'x')",
        "os.chmod('denied', 0o777)",
        "os.fchmod(os.open('denied', os.O_RDONLY), 0o777)",
        "os.utime('denied')",
        "os.utime(os.open('denied', os.O_RDONLY), (1, 1))",
        "os.setxattr('denied', 'user.x', b'x')",
        "os.setxattr(os.open('denied', os.O_RDONLY), 'user.x', b'x')",
        "open('/proc/self/fd/%d' % os.open('denied', os.O_RDONLY), 'w')",
        "open('/dev/fd/%d' % os.open('denied', os.O_PATH), 'w')",
        "os.chmod('/proc/self/fd/%d' % os.open('denied', os.O_PATH), 0o777)",
        "os.link('/proc/self/fd/%d' % os.open('denied', os.O_RDONLY), 'x', follow_symlinks=True)",
        "open('x', 'w').close(); os.replace('x', 'denied')",
    ];
    const SCRIPT: &str = r"
import os, sys, time
open('ready', 'w').close()
while not os.path.exists('denied'):
    time.sleep(0.01)
for way in sys.argv[1:]:
    try:
        exec(way)
        print(way)
    except OSError as error:
        if error.errno != 13:
            print(way, error)
";
    for_each_user(|user, scratch| {
        let attempt = |performed: bool| {
            let place = scratch.join(performed.to_string());
            make_directory(&place, user);
            let mut run = Run::policy(RULES, &place, "").with_python(SCRIPT).as_user_of(user);
            run.command.extend(WAYS.iter().map(|way| (*way).to_owned()));
            if !performed {
                run.plan.syscalls.performed = Watch::Nothing;
            }
            let (mut process, _plan) = run.process();
            let child = process.stdout(std::process::Stdio::piped()).spawn().unwrap();
            while !place.join("ready").exists() {
                std::thread::sleep(std::time::Duration::from_millis(10));
            }
            fs::write(place.join("made"), "theirs").unwrap();
            crate::sandbox::give(&place.join("made"), user);
            fs::rename(place.join("made"), place.join("denied")).unwrap();
            let output = child.wait_with_output().unwrap();
            (String::from_utf8(output.stdout).unwrap(), fs::read_to_string(place.join("denied")).unwrap_or_default())
        };
        assert_eq!(attempt(true), (String::new(), "theirs".to_owned()), "{user:?}");
        let (said, left) = attempt(false);
        assert!(said.lines().count() > 3 && left != "theirs", "{user:?}: {said}");
    });
}
