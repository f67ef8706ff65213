//! Rules over names that are not there yet: programs work under them as they do without, and what is denied is denied.

use crate::support::{Output, Scene, User, skip, users};
use std::fs;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

/// A test for each engine and user.
fn each(test: impl Fn(&str, User)) {
    for engine in ["native", "bwrap"] {
        for user in users() {
            test(engine, user);
        }
    }
}

/// A workspace in which every change is made in the command's place.
fn scene(engine: &str, user: User) -> Scene {
    Scene::new().with(["--engine", engine]).by(user).policy(
        "use std/python\nallow read, write $WORKSPACE\ndeny write $WORKSPACE/**/*.denied\ndeny read $WORKSPACE/**/*.hidden",
    )
}

fn python(scene: &Scene, script: &str) -> Output {
    scene.run_command(["python3", "-S", "-c", script])
}

#[test]
fn a_denied_name_is_refused_and_told_and_leaves_nothing() {
    each(|engine, user| {
        let scene = scene(engine, user).with(["--events", "../events"]);
        let output =
            scene.run("echo x > a.denied; mkdir d; echo x > d/b.hidden; echo x > d/c; mv d/c d/c.denied; ls -A . d");
        assert_eq!(output.ok(), ".:\nd\n\nd:\nc", "{engine} {user:?} {output:?}");
        assert_eq!(output.stderr.matches("Permission denied").count(), 3, "{engine} {user:?} {}", output.stderr);
        let events = fs::read_to_string(scene.home().join("events")).unwrap();
        let events: Vec<serde_json::Value> = events.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
        let told: Vec<_> = events.iter().map(|event| (event["outcome"].as_str(), event["why"].as_str())).collect();
        let (refused, denied, hidden) = (Some("refused"), Some("denied"), Some("read-denied"));
        assert_eq!(told, [(refused, denied), (refused, hidden), (refused, denied)], "{engine} {user:?}");
        assert!(output.stderr.contains("1 write to "), "{}", output.stderr);
        assert_eq!(fs::read_dir(scene.workspace()).unwrap().count(), 1);
    });
}

/// A file that may be read and not written is opened for reading even by who would make it if it were not there, as locks are; no
/// file is too deep to be denied.
#[test]
fn what_is_there_is_read() {
    let script = r"
import os
print(os.read(os.open('a.denied', os.O_RDONLY | os.O_CREAT), 9))
def fails(act):
    try:
        act()
    except OSError as error:
        assert error.errno == 13, error
        return
    raise SystemExit('done')
fails(lambda: os.open('a.denied', os.O_RDWR | os.O_CREAT))
fails(lambda: os.open('b.denied', os.O_RDONLY | os.O_CREAT))
for _ in range(30):
    os.mkdir('x' * 200)
    os.chdir('x' * 200)
    if len(os.getcwd()) > 3500:
        break
print('deep')
fails(lambda: open('y.denied', 'w'))
";
    each(|engine, user| {
        let scene = scene(engine, user).file("work/a.denied", "there");
        assert_eq!(python(&scene, script).ok(), "b'there'\ndeep", "{engine} {user:?}");
    });
}

/// Where somebody listens to the command's calls already, nobody can make them: what comments accept runs with what mounts hold, and
/// says so; what they do not, does not run.
#[test]
fn where_nobody_can_make_calls_only_what_comments_accept_runs() {
    const LISTEN: &str = r"
import ctypes, os, platform, sys
libc = ctypes.CDLL(None, use_errno=True)
class Program(ctypes.Structure):
    _fields_ = [('length', ctypes.c_ushort), ('filter', ctypes.c_char_p)]
assert libc.prctl(38, 1, 0, 0, 0) == 0
# One instruction, which permits everything, and what listens to it.
program = Program(1, b'\x06\0\0\0\0\0\xff\x7f')
number = 317 if platform.machine() == 'x86_64' else 277
listener = libc.syscall(number, 1, 8, ctypes.byref(program))
assert listener >= 0, ctypes.get_errno()
os.set_inheritable(listener, True)
os.execv(sys.argv[1], sys.argv[1:])
";
    for engine in ["native", "bwrap"] {
        let listened = |policy: &str, script: &str| {
            let scene = Scene::new().with(["--engine", engine]).policy(policy);
            let inner = scene.sandboxed(["sh", "-c", script]);
            let mut outer = Command::new("python3");
            outer.args(["-c", LISTEN]).arg(inner.get_program()).args(inner.get_args());
            outer.current_dir(scene.workspace()).env("HOME", scene.home()).stdin(Stdio::null());
            crate::support::output(&mut outer)
        };
        let denied = "deny write $WORKSPACE/*.lock";
        let refused = listened(&format!("allow read, write $WORKSPACE\n{denied}"), "echo ran");
        assert_eq!((refused.code, &*refused.stdout), (125, ""), "{engine} {refused:?}");
        assert!(refused.stderr.contains("in the command's place"), "{engine} {}", refused.stderr);
        let accepted =
            format!("allow read, write $WORKSPACE\n# lint: allow(later-names) they are seen in review\n{denied}");
        let ran = listened(&accepted, "echo x > a.lock && cat a.lock");
        assert_eq!(ran.ok(), "x", "{engine}");
        assert!(ran.stderr.contains("rules hold for files that exist now"), "{engine} {}", ran.stderr);
    }
}

/// What a rule opens by a glob, or by a name that is missing, can be made, replaced and taken away; nothing around it can.
#[test]
fn names_that_a_rule_opens_are_made_and_nothing_else() {
    const DONE: &str = "set -e; echo 1 > new.snap; echo 2 > src/new.snap; echo 3 > t.snap; mv t.snap a.snap; cat a.snap; rm src/b.snap
        mkdir out; echo 4 > out/x; mkdir out/d; mv out/x out/d/x; cat out/d/x; ln new.snap other.snap; chmod 600 new.snap
        echo 5 > new.snap; cat other.snap";
    const REFUSED: &[&str] = &[
        "open('x', 'w')",
        "open('src/main.rs', 'a')",
        "os.open('src/main.rs', os.O_RDONLY | os.O_TRUNC)",
        "os.truncate('src/main.rs', 0)",
        "os.unlink('src/main.rs')",
        "os.rename('src/main.rs', 'src/main.snap')",
        "os.rename('new.snap', 'src/main.rs')",
        "os.link('src/main.rs', 'l.snap')",
        "os.link('new.snap', 'l')",
        "os.mkdir('d')",
        "os.rename('src', 'src.snap')",
        "os.rmdir('empty')",
        "os.chmod('src/main.rs', 0o600)",
        "os.chmod('src', 0o700)",
        "os.utime('src/main.rs', (1, 1))",
        "os.setxattr('src/main.rs', 'user.x', b'x')",
        "os.fchmod(os.open('src/main.rs', os.O_RDONLY), 0o600)",
        "os.utime(os.open('src/main.rs', os.O_RDONLY), (1, 1))",
        "open('/proc/self/fd/%d' % os.open('src/main.rs', os.O_RDONLY), 'w')",
        "open('/proc/self/cwd/x', 'w')",
        "os.symlink('src/main.rs', 'l')",
        "os.symlink('src/main.rs', 'l.snap'), open('l.snap', 'w')",
        "open('kept/c.snap', 'w')",
        "open('kept/new.snap', 'w')",
        "os.open('.', os.O_TMPFILE | os.O_WRONLY)",
        "socket.socket(socket.AF_UNIX).bind('socket')",
        "fcntl.ioctl(os.open('src/main.rs', os.O_RDONLY), 0x40086602, bytes(8))",
        "mmap.mmap(os.open('src/main.rs', os.O_RDONLY), 4)",
    ];
    const SCRIPT: &str = r"
import fcntl, mmap, os, socket, sys
for way in sys.argv[1:]:
    try:
        exec(way)
        print(way)
    except PermissionError:
        pass
";
    each(|engine, user| {
        let scene = Scene::new().with(["--engine", engine]).by(user).policy(
            "use std/python\nallow read $WORKSPACE\nallow write [$WORKSPACE/**/*.snap, $WORKSPACE/out]\ndeny write $WORKSPACE/kept",
        );
        let scene = scene.file("work/a.snap", "a").file("work/src/b.snap", "b").file("work/src/main.rs", "main");
        let scene = scene.file("work/kept/c.snap", "c").folder("work/empty");
        assert_eq!(scene.run(DONE).ok(), "3\n4\n5", "{engine} {user:?}");
        let command = ["python3", "-S", "-c", SCRIPT].into_iter().chain(REFUSED.iter().copied());
        let command: Vec<&str> = command.collect();
        assert_eq!(scene.run_command(command).ok(), "", "{engine} {user:?}");
        assert_eq!(fs::read_to_string(scene.workspace().join("src/main.rs")).unwrap(), "main");
        let mut left: Vec<_> =
            fs::read_dir(scene.workspace()).unwrap().map(|entry| entry.unwrap().file_name()).collect();
        left.sort();
        assert_eq!(
            left,
            ["a.snap", "empty", "kept", "l.snap", "new.snap", "other.snap", "out", "src"],
            "{engine} {user:?}"
        );
    });
}

/// What shells do with files every day.
#[test]
fn shells_redirect_as_they_do() {
    let script = r"
echo one > f; echo two >> f; cat f; : > f; wc -c < f; set -C; (echo x > f) 2>/dev/null || echo kept; set +C
{ echo error > /dev/stderr; } 2>&1 | cat; { echo out > /dev/stdout; } | cat; echo gone > /dev/null
exec 3> three; echo three > /dev/fd/3; exec 3>&-; cat three
mkfifo p; (sleep 0.2; cat p) & echo through > p; wait
(umask 077; echo s > secret; mkdir private); stat -c '%a %n' secret private f
mkdir shared; chmod 2775 shared; echo g > shared/g; mkdir shared/h; stat -c %A shared/h
ln -s f l; echo by-link > l; cat f; ln f h; stat -c %h f; rm h l
cat > here <<END
a document
END
cat here; mkdir -p a/b/c; cp -r a z; mv z y; rm -r a y; mktemp -p . x.XXXX | wc -l
touch -d 2001-02-03 f; stat -c %y f | cut -d ' ' -f 1; chmod 640 f; stat -c %a f; truncate -s 5 f; wc -c < f
";
    let expected = "one\ntwo\n0\nkept\nerror\nout\nthree\nthrough\n600 secret\n700 private\n644 f\ndrwxr-sr-x\nby-link\n2\na document\n1\n\
                    2001-02-03\n640\n5";
    each(|engine, user| {
        let output = scene(engine, user).run(&format!("umask 022\n{script}"));
        assert_eq!(output.ok(), expected, "{engine} {user:?} {output:?}");
        assert_eq!(output.stderr, "", "{engine} {user:?}");
    });
}

/// A terminal of its own is the command's, not that of whoever started `srt`.
#[test]
fn a_terminal_is_the_commands_own() {
    if Command::new("script").arg("--version").output().is_err() {
        return skip("script", "it is not installed");
    }
    each(|engine, user| {
        let output = scene(engine, user)
            .run("script -qec 'echo hello > /dev/tty' log > /dev/null; grep -c ^hello log; echo x > /dev/tty");
        assert_eq!(output.stdout, "1\n", "{engine} {user:?} {output:?}");
        assert!(output.stderr.contains("/dev/tty"), "{engine} {user:?} {output:?}");
    });
}

#[test]
fn calls_end_as_the_kernel_ends_them() {
    let script = r"
import ctypes, errno, os, socket
libc = ctypes.CDLL(None, use_errno=True)
def say(name, act):
    try:
        act()
        print(name, 'done')
    except OSError as error:
        print(name, errno.errorcode[error.errno])
os.mkdir('d'); open('f', 'w').close(); os.symlink('f', 'l'); os.symlink('loop', 'loop'); os.symlink('gone', 'dangling')
os.mkfifo('p'); os.mkdir('full'); open('full/x', 'w').close()
W, C, X = os.O_WRONLY, os.O_CREAT, os.O_EXCL
say('missing', lambda: os.open('none', W))
say('in a missing directory', lambda: os.open('none/x', W | C))
say('in a file', lambda: os.open('f/x', W | C))
say('a directory', lambda: os.open('d', W))
say('exclusive', lambda: os.open('f', W | C | X))
say('exclusive by a link', lambda: os.open('dangling', W | C | X))
say('a link not followed', lambda: os.open('l', W | os.O_NOFOLLOW))
say('a loop', lambda: os.open('loop', W))
say('made by a link', lambda: os.open('dangling', W | C))
say('a slash', lambda: os.open('new/', W | C))
say('a file with a slash', lambda: os.open('f/', W))
say('too long', lambda: os.open('x' * 300, W | C))
say('much too long', lambda: os.open('x/' * 3000, W | C))
say('empty', lambda: os.open('', W | C))
say('nobody reads', lambda: os.open('p', W | os.O_NONBLOCK))
say('mkdir', lambda: os.mkdir('d'))
say('mkdir slash', lambda: os.mkdir('e/'))
say('mkdir root', lambda: os.mkdir('/'))
say('mkdir dot', lambda: os.mkdir('.'))
say('rmdir full', lambda: os.rmdir('full'))
say('rmdir file', lambda: os.rmdir('f'))
say('unlink directory', lambda: os.unlink('d'))
say('unlink missing', lambda: os.unlink('none'))
say('rename missing', lambda: os.rename('none', 'x'))
say('rename into itself', lambda: os.rename('d', 'd/x'))
say('rename on a full one', lambda: os.rename('d', 'full'))
say('rename on a file', lambda: os.rename('d', 'f'))
say('link directory', lambda: os.link('d', 'x'))
say('link there', lambda: os.link('f', 'd'))
say('link missing', lambda: os.link('none', 'x'))
say('symlink there', lambda: os.symlink('x', 'f'))
say('truncate directory', lambda: os.truncate('d', 0))
say('no descriptor', lambda: os.open('x', W | C, dir_fd=999))
say('no such descriptor', lambda: os.fchmod(999, 0o600))
say('attribute missing', lambda: os.removexattr('f', 'user.none'))
say('bound twice', lambda: [socket.socket(socket.AF_UNIX).bind('s') for _ in range(2)])
say('bad memory', lambda: libc.open(ctypes.c_void_p(8), W | C, 0o600) >= 0 or (_ for _ in ()).throw(OSError(ctypes.get_errno(), '')))
say('no way to do it', lambda: libc.renameat2(-100, b'f', -100, b'g', 64) == 0 or (_ for _ in ()).throw(OSError(ctypes.get_errno(), '')))
print(sorted(os.listdir('.')))
";
    each(|engine, user| {
        let made = scene(engine, user);
        let performed = python(&made, script);
        let plain =
            Scene::new().with(["--engine", engine]).by(user).policy("use std/python\nallow read, write $WORKSPACE");
        let plain = python(&plain, script);
        assert_eq!(performed.ok(), plain.ok(), "{engine} {user:?}");
        assert!(plain.stdout.lines().count() > 34, "{plain:?}");
    });
}

/// Whoever waits for the other end of a pipe holds up nobody, and ends when they are killed.
#[test]
fn a_pipe_that_nobody_reads_holds_up_nobody() {
    let script = r"
import os, signal, time
os.mkfifo('p')
children = []
for _ in range(40):
    child = os.fork()
    if child == 0:
        os.open('p', os.O_WRONLY)
        os._exit(0)
    children.append(child)
time.sleep(0.5)
begin = time.time()
for n in range(200):
    open(f'f{n}', 'w').close()
print(time.time() - begin < 5)
for child in children[:20]:
    os.kill(child, signal.SIGKILL)
    print(os.waitpid(child, 0)[1], end=' ')
reader = os.open('p', os.O_RDONLY)
for child in children[20:]:
    print(os.waitpid(child, 0)[1], end=' ')
";
    each(|engine, user| {
        let output = python(&scene(engine, user), script);
        assert_eq!(
            output.ok(),
            format!("True\n{}{}", "9 ".repeat(20), "0 ".repeat(20)).trim_end(),
            "{engine} {user:?}"
        );
    });
}

/// A signal while a call is made never has it made twice.
#[test]
fn signals_make_nothing_twice() {
    let script = r"
import os, signal
count = 0
def tick(*_):
    global count
    count += 1
signal.signal(signal.SIGALRM, tick)
signal.siginterrupt(signal.SIGALRM, False)
signal.setitimer(signal.ITIMER_REAL, 0.0002, 0.0002)
for n in range(3000):
    os.close(os.open(f'f{n}', os.O_CREAT | os.O_EXCL | os.O_WRONLY))
    os.unlink(f'f{n}')
signal.setitimer(signal.ITIMER_REAL, 0)
print(count > 100)
";
    each(|engine, user| {
        assert_eq!(python(&scene(engine, user), script).ok(), "True", "{engine} {user:?}");
    });
}

#[test]
fn many_write_at_once() {
    let script = r"
import os, threading
def work(n):
    for m in range(50):
        name = f'd{n}/{m}'
        os.makedirs(f'd{n}', exist_ok=True)
        with open(name, 'a') as file:
            file.write('x')
        os.replace(name, name + '.new')
    print(len(os.listdir(f'd{n}')), end=' ')
threads = [threading.Thread(target=work, args=(n,)) for n in range(8)]
[thread.start() for thread in threads]
[thread.join() for thread in threads]
";
    each(|engine, user| {
        assert_eq!(python(&scene(engine, user), script).ok(), "50 ".repeat(8).trim_end(), "{engine} {user:?}");
    });
}

#[test]
fn a_limit_of_file_sizes_holds() {
    each(|engine, user| {
        let scene = Scene::new().with(["--engine", engine]).by(user).policy(
            "use std/python\nallow read, write $WORKSPACE\ndeny write $WORKSPACE/**/*.denied\nlimit filesize 4KiB",
        );
        let script = "import os\nopen('f', 'w').close()\nos.truncate('f', 4096)\ntry:\n    os.truncate('f', 4097)\nexcept OSError as e: print(e.errno)";
        assert_eq!(python(&scene, script).ok(), "27", "{engine} {user:?}");
    });
}

/// git, whose hooks the command cannot make, not even those of a repository that it makes.
#[test]
fn git_works_and_makes_no_hooks() {
    if Command::new("git").arg("--version").output().is_err() {
        return skip("git", "it is not installed");
    }
    each(|engine, user| {
        let scene = Scene::new().with(["--engine", engine]).by(user).policy(
            "use std/git-init\nallow read, write $WORKSPACE\ndeny write $WORKSPACE/**/hooks because \"hooks run outside\"",
        );
        let git = |line: &str| {
            let environment = "export GIT_CONFIG_GLOBAL=/dev/null GIT_AUTHOR_NAME=a GIT_AUTHOR_EMAIL=a@b GIT_COMMITTER_NAME=a GIT_COMMITTER_EMAIL=a@b";
            scene.run(&format!("set -e; {environment}; {line}"))
        };
        let done = git("git init -q --template= r; cd r; echo 1 > f; git add .; git commit -qm one; git branch side; \
             echo 2 > f; git stash -q; git stash pop -q; git commit -qam two; git checkout -q side; git merge -q --no-edit master || git merge -q --no-edit main; \
             git worktree add -q ../w -b other; cd ../w; echo 3 > g; git add .; git commit -qm three; git gc -q; git log --oneline | wc -l; git status --short");
        assert_eq!(done.ok(), "3", "{engine} {user:?} {done:?}");
        let cloned = git(
            "git clone -q r c --template=; cd c; git log --oneline | wc -l; git tag v1; git rebase -q HEAD~1 2>&1; git status --short",
        );
        assert_eq!(cloned.ok(), "2", "{engine} {user:?} {cloned:?}");
        assert_ne!(git("mkdir r/.git/hooks").code, 0, "{engine} {user:?}");
        assert_ne!(git("mkdir x; mkdir x/hooks").code, 0, "{engine} {user:?}");
        assert_ne!(git("cd r; git config core.hooksPath x; echo x > .git/hooks").code, 0, "{engine} {user:?}");
        assert!(!scene.workspace().join("r/.git/hooks").exists());
    });
}

/// Where a whole directory cannot be renamed, tools copy.
#[test]
fn a_directory_that_may_not_be_renamed_is_copied() {
    each(|engine, user| {
        let scene = Scene::new()
            .with(["--engine", engine])
            .by(user)
            .policy("allow read, write $WORKSPACE\ndeny write $WORKSPACE/out/*.denied\nallow read $HOME");
        let output = scene.run("mkdir -p x/y; echo 1 > x/y/f; mv x out && ls -R out; mkdir z; touch z/a.denied; mv z/a.denied out/; ls out");
        assert_eq!(output.stdout, "out:\ny\n\nout/y:\nf\ny\n", "{engine} {user:?} {output:?}");
    });
}

/// Editors write a new file and put it in the old one's place.
#[test]
fn editors_save() {
    for (editor, line) in [
        ("vim", "vim -Nu NONE -es -c 'set backup writebackup' -c '%s/1/2/' -c 'wq' f"),
        ("sed", "sed -i s/1/2/ f"),
        ("perl", "perl -pi -e s/1/2/ f"),
    ] {
        if Command::new(editor).arg("--version").stdin(Stdio::null()).output().is_err() {
            continue;
        }
        each(|engine, user| {
            let output = scene(engine, user).run(&format!("echo 1 > f; {line} < /dev/null; cat f"));
            assert_eq!(output.stdout, "2\n", "{editor} {engine} {user:?} {output:?}");
        });
    }
}

/// The end of the run does not wait for what waits.
#[test]
fn the_end_waits_for_nobody() {
    each(|engine, user| {
        let scene = scene(engine, user);
        let begin = Instant::now();
        let mut child = scene.sandboxed(["sh", "-c", "mkfifo p; echo x > p & echo y > p & exec sleep 0.5"]);
        let child = child.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap().wait().unwrap();
        assert!(child.success() && begin.elapsed() < Duration::from_secs(10), "{engine} {user:?}");
    });
}
