//! `--strict-reads`: what is denied to read is denied when it appears, and programs read as they do without.

use crate::support::{Scene, User, skip, users};
use std::fs;
use std::process::{Command, Stdio};
use std::time::Duration;

/// A test for each engine and user.
fn each(test: impl Fn(&str, User)) {
    for engine in ["native", "bwrap"] {
        for user in users() {
            test(engine, user);
        }
    }
}

fn scene(engine: &str, user: User, more: &[&str]) -> Scene {
    let rules =
        "use std/python\nallow read, write $WORKSPACE\ndeny read $WORKSPACE/**/*.hidden because \"it holds keys\"";
    Scene::new().with(["--engine", engine]).with(more).by(user).policy(rules)
}

/// What something outside makes under a denied name during the run is read by no way.
#[test]
fn what_appears_is_not_read() {
    const WAYS: &[&str] = &[
        "open('a.hidden')",
        "open('a.hidden', 'r+')",
        "os.open('a.hidden', os.O_RDONLY | os.O_CREAT)",
        "open(os.getcwd() + '/d/../a.hidden')",
        "os.symlink('a.hidden', 'l'), open('l')",
        "os.symlink('.', 'here'), open('here/a.hidden')",
        "open('/proc/self/cwd/a.hidden')",
        "open('/proc/thread-self/cwd/a.hidden')",
        "open('/proc/self/root' + os.getcwd() + '/a.hidden')",
        "os.open('a.hidden', os.O_RDONLY, dir_fd=os.open('.', os.O_RDONLY))",
        "open('/proc/self/fd/%d' % os.open('a.hidden', os.O_PATH))",
        "open('/dev/fd/%d' % os.open('a.hidden', os.O_PATH))",
        "os.link('a.hidden', 'x'), open('x')",
        "os.link('/proc/self/fd/%d' % os.open('a.hidden', os.O_PATH), 'y', follow_symlinks=True), open('y')",
        "os.rename('a.hidden', 'z'), open('z')",
        "open('d/b.hidden')",
        "os.rename('d', 'e'), open('e/b.hidden')",
        "os.listdir('c.hidden')",
        "open('c.hidden/f')",
        "os.chdir('c.hidden'), open('f')",
        "os.open('f', os.O_RDONLY, dir_fd=os.open('c.hidden', os.O_PATH))",
        "os.rename('c.hidden', 'c'), open('c/f')",
        "subprocess.run(['cat', 'a.hidden'], check=True, stderr=subprocess.DEVNULL)",
    ];
    const SCRIPT: &str = r"
import os, subprocess, sys, time
home = os.getcwd()
open('ready', 'w').close()
while not os.path.exists('c.hidden'):
    time.sleep(0.01)
for way in sys.argv[1:]:
    os.chdir(home)
    try:
        exec(way)
        print(way)
    except (OSError, subprocess.CalledProcessError):
        pass
";
    each(|engine, user| {
        let attempt = |more: &[&str]| {
            let scene = scene(engine, user, more).folder("work/d");
            let command = ["python3", "-S", "-c", SCRIPT].into_iter().chain(WAYS.iter().copied());
            let mut command = scene.sandboxed(command);
            let child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
            let work = scene.workspace();
            while !work.join("ready").exists() {
                std::thread::sleep(Duration::from_millis(10));
            }
            fs::write(work.join("a.hidden"), "secret").unwrap();
            fs::write(work.join("d/b.hidden"), "secret").unwrap();
            fs::create_dir(work.join("made")).unwrap();
            fs::write(work.join("made/f"), "secret").unwrap();
            for (name, mode) in [("a.hidden", 0o666), ("d/b.hidden", 0o666), ("made", 0o777), ("made/f", 0o666)] {
                fs::set_permissions(work.join(name), std::os::unix::fs::PermissionsExt::from_mode(mode)).unwrap();
            }
            fs::rename(work.join("made"), work.join("c.hidden")).unwrap();
            let output = child.wait_with_output().unwrap();
            let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
            assert!(output.status.success(), "{engine} {user:?} {}", text(&output.stderr));
            (text(&output.stdout), text(&output.stderr))
        };
        let (said, told) = attempt(&["--strict-reads"]);
        assert_eq!(said, "", "{engine} {user:?}");
        assert!(told.contains("a.hidden refused by ") && told.contains("(because it holds keys)"), "{told}");
        let (said, _) = attempt(&[]);
        assert!(said.lines().count() > 8, "{engine} {user:?}: {said}");
    });
}

/// Every open ends as it does without, and gives the same.
#[test]
fn programs_read_as_they_do_without() {
    const SCRIPT: &str = r"
import ctypes, errno, os, subprocess, sys
libc = ctypes.CDLL(None, use_errno=True)
def say(name, act):
    try:
        print(name, act())
    except OSError as error:
        print(name, errno.errorcode[error.errno])
def text(path, **more):
    with open(path, **more) as file:
        return file.read()
R = os.O_RDONLY
os.mkdir('d'); open('f', 'w').write('text'); os.symlink('f', 'l'); os.symlink('loop', 'loop'); os.symlink('gone', 'dangling')
os.mkfifo('p'); os.mkdir('closed', 0o000); open('unreadable', 'w').close(); os.chmod('unreadable', 0o000)
say('a file', lambda: text('f'))
say('by a link', lambda: text('l'))
say('a link', lambda: os.open('l', R | os.O_NOFOLLOW))
say('missing', lambda: text('none'))
say('dangling', lambda: text('dangling'))
say('a loop', lambda: text('loop'))
say('in a file', lambda: text('f/x'))
say('a file with a slash', lambda: text('f/'))
say('a directory', lambda: text('d'))
say('a file as a directory', lambda: os.open('f', R | os.O_DIRECTORY))
say('listed', lambda: sorted(os.listdir('.')))
say('dots', lambda: sorted(os.listdir('d/..')) == sorted(os.listdir('.')))
say('the root', lambda: 'usr' in os.listdir('/'))
say('empty', lambda: os.open('', R))
say('too long', lambda: os.open('x' * 300, R))
say('bad memory', lambda: libc.open(ctypes.c_void_p(8), R) >= 0 or ctypes.get_errno())
say('nobody writes', lambda: os.open('p', R | os.O_NONBLOCK) >= 0)
say('null', lambda: text('/dev/null'))
say('random', lambda: len(os.read(os.open('/dev/urandom', R), 16)))
say('standard input', lambda: text('/dev/stdin'))
say('in /dev/fd', lambda: text('/dev/fd/%d' % os.open('f', R)))
say('in /proc/self/fd', lambda: text('/proc/self/fd/%d' % os.open('f', R)))
say('descriptors', lambda: '0' in os.listdir('/proc/self/fd'))
say('the name of it', lambda: text('/proc/self/comm').strip())
say('a name of another', lambda: text('/proc/%d/comm' % os.getpid()).strip())
say('a status', lambda: str(os.getpid()) in text('/proc/self/status').split('Tgid:')[1].split()[0])
say('of a thread', lambda: str(os.getpid()) in text('/proc/thread-self/status').split('Tgid:')[1].split()[0])
say('its memory', lambda: 'python' in text('/proc/self/maps'))
say('its program', lambda: open('/proc/self/exe', 'rb').read(4))
say('its environment', lambda: b'HOME=' in open('/proc/self/environ', 'rb').read())
say('mounts', lambda: ' / ' in text('/proc/self/mounts') and ' / ' in text('/proc/mounts') and ' / ' in text('/etc/mtab'))
say('of the machine', lambda: 'MemTotal' in text('/proc/meminfo') and len(text('/proc/sys/kernel/ostype')))
say('of the first', lambda: len(text('/proc/1/status')) > 9)
say('memory of the first', lambda: text('/proc/1/maps'))
say('environment of the first', lambda: text('/proc/1/environ'))
say('the network', lambda: 'lo:' in text('/proc/net/dev'))
say('processes', lambda: len(subprocess.run(['ps', '-e'], capture_output=True).stdout.splitlines()) > 2)
say('without a name', lambda: text('/proc/self/fd/%d' % os.memfd_create('x')))
gone = os.open('f', R)
os.unlink('f')
say('gone', lambda: text('/proc/self/fd/%d' % gone))
say('modules', lambda: __import__('json').dumps([1]))
";
    each(|engine, user| {
        let run = |more: &[&str]| {
            let scene = scene(engine, user, more);
            scene.run_command(["python3", "-S", "-c", SCRIPT])
        };
        let (strict, plain) = (run(&["--strict-reads"]), run(&[]));
        assert_eq!(strict.ok(), plain.ok(), "{engine} {user:?}");
        assert!(plain.stdout.lines().count() > 35, "{plain:?}");
    });
}

#[test]
fn git_and_compilers_work() {
    for (program, line) in [
        (
            "git",
            "git init -q --template= r && cd r && git config user.email a@b && git config user.name A && \
                 echo 1 > f && git add . && git commit -qm one && git log --oneline | wc -l",
        ),
        ("cc", "echo 'int main() { return 0; }' > m.c && cc m.c -o m && ./m && echo 1"),
        ("bash", "bash -c 'cat <(echo 1) < /dev/null'"),
    ] {
        if Command::new(program).arg("--version").output().is_err() {
            skip(program, "it is not installed");
            continue;
        }
        each(|engine, user| {
            assert_eq!(scene(engine, user, &["--strict-reads"]).run(line).ok(), "1", "{program} {engine} {user:?}");
        });
    }
}

#[test]
fn nesting_is_refused() {
    let output = scene("native", *users().last().unwrap(), &["--strict-reads", "--nest"]).run("echo ran");
    assert!(output.fails(125).contains("`--nest` cannot hold `--strict-reads`"), "{output:?}");
}
