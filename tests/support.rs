//! A scene for tests of the binary: a scratch home with a workspace in it, policies, and who runs `srt` there.
//!
//! Reads like prose where it is used:
//! `Scene::new().file("work/a.txt", "hello").policy("allow read $WORKSPACE").run("cat a.txt")`.

// Each test program uses its own part of this.
#![allow(dead_code, unused_imports, clippy::unwrap_used)]

use std::ffi::{OsStr, OsString};
use std::fs;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpListener;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::OnceLock;

// Who one is, what belongs to whom, and where things lie: under the same names for each kind of system.
#[cfg(unix)]
#[path = "support/unix.rs"]
mod system;
#[cfg(windows)]
#[path = "support/windows.rs"]
mod system;

pub use system::{am_root, for_everyone, writable_by_all};

/// The ordinary user that tests become, where they may.
pub const ORDINARY: u32 = 1001;

/// Who runs `srt`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum User {
    /// Whoever runs the tests.
    Caller,
    /// An ordinary user; only root can become one.
    Ordinary,
}

pub struct Scene {
    scratch: tempfile::TempDir,
    user: User,
    policy: String,
    environment: Vec<(OsString, OsString)>,
    arguments: Vec<OsString>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Output {
    /// The exit status as a shell shows it.
    pub code: i32,
    pub stdout: String,
    pub stderr: String,
}

/// Those as whom the tests can run `srt` here: root tries both, anyone else is the ordinary user.
pub fn users() -> Vec<User> {
    if am_root() { vec![User::Caller, User::Ordinary] } else { vec![User::Caller] }
}

/// The binary under test, where every user may run it.
pub fn srt() -> &'static Path {
    static COPY: OnceLock<PathBuf> = OnceLock::new();
    COPY.get_or_init(|| for_everyone(Path::new(env!("CARGO_BIN_EXE_srt"))))
}

impl Scene {
    /// A scratch home under /var/tmp, so that the private /tmp is not in the way, with an empty workspace `work`.
    pub fn new() -> Self {
        Self::under(system::scratch())
    }

    /// The same below another folder.
    pub fn under(folder: impl AsRef<Path>) -> Self {
        let scratch = tempfile::Builder::new().prefix("srt-scene-").tempdir_in(folder).unwrap();
        system::open_to_all(scratch.path());
        fs::create_dir(scratch.path().join("work")).unwrap();
        Scene {
            scratch,
            user: User::Caller,
            policy: "srt 1\nuse std/system\ndefault read deny\nallow read, write $WORKSPACE\n".to_owned(),
            environment: Vec::new(),
            arguments: Vec::new(),
        }
    }

    pub fn home(&self) -> &Path {
        self.scratch.path()
    }

    pub fn workspace(&self) -> PathBuf {
        self.scratch.path().join("work")
    }

    /// Who runs `srt`; the whole scene becomes theirs when it does.
    pub fn by(mut self, user: User) -> Self {
        self.user = user;
        self
    }

    /// A file in the home, folders made on the way.
    pub fn file(self, path: &str, text: &str) -> Self {
        let path = self.home().join(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
        self
    }

    pub fn folder(self, path: &str) -> Self {
        fs::create_dir_all(self.home().join(path)).unwrap();
        self
    }

    #[cfg(unix)]
    pub fn link(self, path: &str, to: &str) -> Self {
        let path = self.home().join(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::os::unix::fs::symlink(to, path).unwrap();
        self
    }

    /// The whole policy; without `srt 1`, that and the base of most tests (`std/system`, reads closed) stand before it.
    pub fn policy(mut self, text: &str) -> Self {
        self.policy = if text.contains("srt 1") {
            text.to_owned()
        } else {
            format!("srt 1\nuse std/system\ndefault read deny\n{text}\n")
        };
        self
    }

    /// More arguments to `srt run`.
    pub fn with<S: AsRef<OsStr>>(mut self, arguments: impl IntoIterator<Item = S>) -> Self {
        self.arguments.extend(arguments.into_iter().map(|argument| argument.as_ref().to_owned()));
        self
    }

    pub fn env(mut self, name: &str, value: &str) -> Self {
        self.environment.push((name.into(), value.into()));
        self
    }

    /// A shell script under the policy.
    pub fn run(&self, script: &str) -> Output {
        self.run_command(["sh", "-c", script])
    }

    /// A command under the policy.
    pub fn run_command<S: AsRef<OsStr>>(&self, command: impl IntoIterator<Item = S>) -> Output {
        output(&mut self.sandboxed(command))
    }

    /// The command line of a sandboxed command, not started.
    pub fn sandboxed<S: AsRef<OsStr>>(&self, command: impl IntoIterator<Item = S>) -> Command {
        let policy = self.home().join("test.policy");
        // Left as it is where it is right: some tests compare the whole home before and after.
        if fs::read_to_string(&policy).ok().as_ref() != Some(&self.policy) {
            fs::write(&policy, &self.policy).unwrap();
        }
        let mut arguments: Vec<OsString> = vec!["run".into(), "--policy".into(), policy.into()];
        arguments.extend(self.arguments.iter().cloned());
        arguments.push("--".into());
        arguments.extend(command.into_iter().map(|word| word.as_ref().to_owned()));
        self.srt(arguments)
    }

    /// `srt` with these arguments, in the workspace.
    pub fn srt<S: AsRef<OsStr>>(&self, arguments: impl IntoIterator<Item = S>) -> Command {
        let mut command = match self.user {
            User::Caller => Command::new(srt()),
            User::Ordinary => {
                give(self.home());
                let mut command = Command::new("setpriv");
                command.args([format!("--reuid={ORDINARY}"), format!("--regid={ORDINARY}")]);
                command.arg("--clear-groups").arg(srt());
                command
            }
        };
        command
            .args(arguments)
            .current_dir(self.workspace())
            .env_clear()
            .envs(system::environment())
            .env(system::HOME, self.home())
            .env("LANG", "C.UTF-8")
            .env("TERM", "dumb")
            .envs(self.environment.iter().cloned())
            .stdin(Stdio::null());
        command
    }
}

/// A server on the host's loopback that says `hello` to everybody.
pub fn server() -> u16 {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    std::thread::spawn(move || {
        for stream in listener.incoming() {
            let mut stream = stream.unwrap();
            let _ = stream.read(&mut [0; 4096]);
            let _ = stream.write_all(b"HTTP/1.1 200 OK\r\nContent-Length: 6\r\nConnection: close\r\n\r\nhello\n");
        }
    });
    port
}

/// A process of the host's that ends with its test.
pub struct Background(pub Child);

impl Background {
    /// Starts it, and waits for the first line that it prints.
    pub fn that_says(command: &mut Command) -> (Background, String) {
        let mut process = command.stdout(Stdio::piped()).spawn().unwrap();
        let mut line = String::new();
        BufReader::new(process.stdout.take().unwrap()).read_line(&mut line).unwrap();
        (Background(process), line.trim().to_owned())
    }
}

impl Drop for Background {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// Runs a command to its end.
pub fn output(command: &mut Command) -> Output {
    let output = command.output().unwrap();
    let code = system::status(output.status);
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    Output { code, stdout: text(&output.stdout), stderr: text(&output.stderr) }
}

impl Output {
    /// Fails unless the command ended well; gives what it printed.
    #[track_caller]
    pub fn ok(&self) -> &str {
        assert_eq!(self.code, 0, "stdout: {}\nstderr: {}", self.stdout, self.stderr);
        self.stdout.trim_end()
    }

    /// Fails unless the command ended with this status.
    #[track_caller]
    pub fn fails(&self, code: i32) -> &str {
        assert_eq!(self.code, code, "stdout: {}\nstderr: {}", self.stdout, self.stderr);
        self.stderr.trim_end()
    }
}

/// Makes the ordinary user the owner of everything there that root owns; what other owners hold is part of the scene.
fn give(path: &Path) {
    system::give(path);
    if fs::symlink_metadata(path).unwrap().is_dir() {
        for entry in fs::read_dir(path).unwrap() {
            give(&entry.unwrap().path());
        }
    }
}

/// Says loudly that something was not tried, and fails where the environment demands that everything is.
pub fn skip(what: &str, why: &str) {
    assert!(std::env::var_os("REQUIRE_SANDBOX").is_none(), "{what} must be tried here, and cannot: {why}");
    eprintln!("SKIPPED: {what}: {why}");
}
