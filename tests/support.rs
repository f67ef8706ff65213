//! A scene for tests of the binary: a scratch home with a workspace in it, policies, and who runs `srt` there.
//!
//! Reads like prose where it is used:
//! `Scene::new().file("work/a.txt", "hello").policy("allow read $WORKSPACE").run("cat a.txt")`.

// Each test program uses its own part of this.
#![allow(dead_code, clippy::unwrap_used)]

use std::ffi::{OsStr, OsString};
use std::fs;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpListener;
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::OnceLock;

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

pub fn am_root() -> bool {
    fs::metadata("/proc/self").is_ok_and(|metadata| std::os::unix::fs::MetadataExt::uid(&metadata) == 0)
}

/// The binary under test, where every user may run it.
pub fn srt() -> &'static Path {
    static COPY: OnceLock<PathBuf> = OnceLock::new();
    COPY.get_or_init(|| for_everyone(Path::new(env!("CARGO_BIN_EXE_srt"))))
}

/// A copy of a program where every user may run it: a checkout may lie where only its owner can go. There is one for each
/// build, whoever asks first makes it, and those of builds that are some hours old go with it.
pub fn for_everyone(program: &Path) -> PathBuf {
    let built = fs::metadata(program).unwrap();
    let name = program.file_name().unwrap().to_string_lossy();
    let all = PathBuf::from(format!("/var/tmp/srt-tests-{}", built.uid()));
    let folder = all.join(format!("{name}-{}-{}-{}", built.dev(), built.ino(), built.mtime_nsec()));
    let copy = folder.join(&*name);
    if copy.is_file() {
        return copy;
    }
    fs::create_dir_all(&folder).unwrap();
    for place in [&all, &folder] {
        fs::set_permissions(place, fs::Permissions::from_mode(0o755)).unwrap();
    }
    for old in fs::read_dir(&all).unwrap().flatten() {
        let age = old.metadata().ok().and_then(|found| found.modified().ok()).and_then(|time| time.elapsed().ok());
        if age.is_some_and(|age| age.as_secs() > 6 * 3600) {
            let _ = fs::remove_dir_all(old.path());
        }
    }
    // Complete before it has its name: others may be waiting for it.
    let making = folder.join(format!("making-{}", std::process::id()));
    fs::copy(program, &making).unwrap();
    fs::set_permissions(&making, fs::Permissions::from_mode(0o755)).unwrap();
    fs::rename(&making, &copy).unwrap();
    copy
}

impl Scene {
    /// A scratch home under /var/tmp, so that the private /tmp is not in the way, with an empty workspace `work`.
    pub fn new() -> Self {
        Self::under("/var/tmp")
    }

    /// The same below another folder.
    pub fn under(folder: impl AsRef<Path>) -> Self {
        let scratch = tempfile::Builder::new().prefix("srt-scene-").tempdir_in(folder).unwrap();
        fs::set_permissions(scratch.path(), fs::Permissions::from_mode(0o755)).unwrap();
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
            .env("PATH", "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin")
            .env("HOME", self.home())
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
    use std::os::unix::process::ExitStatusExt;
    let code = output.status.code().unwrap_or_else(|| 128 + output.status.signal().unwrap_or_default());
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
    let metadata = fs::symlink_metadata(path).unwrap();
    if std::os::unix::fs::MetadataExt::uid(&metadata) == 0 {
        std::os::unix::fs::lchown(path, Some(ORDINARY), Some(ORDINARY)).unwrap();
    }
    if metadata.is_dir() {
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
