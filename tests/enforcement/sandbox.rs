//! A plan, written down by a test, and a run under it.

use sandbox_runtime::backend::bubblewrap::{Landlock, Limits, Mount, Network, Plan, Root, seccomp};
use sandbox_runtime::event::{Event, Sink};
use sandbox_runtime::exec::linux::{Engine, Launch, run};
use sandbox_runtime::ir::{Node, NodeKind};
use std::cell::Cell;
use std::ffi::OsString;
use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{FileTypeExt, MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::sync::Arc;

const ENVIRONMENT: &str = "SRT_ENFORCEMENT_RUN";

/// What a test hands to the process that runs the plan.
#[derive(Clone, serde::Serialize, serde::Deserialize)]
pub struct Run {
    pub plan: Plan,
    pub command: Vec<String>,
    pub environment: Vec<(String, String)>,
    pub directory: PathBuf,
    pub keep: Vec<i32>,
    pub bwrap: bool,
    /// The user to become first.
    #[serde(skip)]
    pub user: Option<u32>,
}

/// The other users that tests run as, beside whoever runs them.
pub const USER: u32 = 1001;

impl Run {
    /// The host's tree, read-only, with its own `/dev`, `/proc` and `/tmp`; nothing is writable but `/tmp`.
    pub fn shell(script: &str) -> Run {
        let mounts = vec![
            Mount::Private { path: b"/tmp".to_vec(), mode: 0o1777, exec: true },
            Mount::Devices { nodes: ["null", "zero", "full", "random", "urandom", "tty"].map(String::from).to_vec() },
            Mount::Private { path: b"/dev/shm".to_vec(), mode: 0o1777, exec: false },
            Mount::Proc,
        ];
        Run {
            plan: Plan {
                root: Root::Host { exec: true },
                mounts,
                network: Network::Loopback,
                syscalls: seccomp::Table { nest: false },
                landlock: Some(Landlock {
                    write: vec![b"/tmp".to_vec(), b"/dev".to_vec(), b"/proc".to_vec()],
                    exec: vec![],
                }),
                limits: Limits::default(),
            },
            command: ["/bin/sh", "-c", script].map(String::from).to_vec(),
            environment: vec![
                ("PATH".into(), "/usr/local/bin:/usr/bin:/bin:/usr/sbin:/sbin".into()),
                ("LC_ALL".into(), "C".into()),
            ],
            directory: "/".into(),
            keep: vec![],
            bwrap: BWRAP.get(),
            user: None,
        }
    }

    pub fn python(script: &str) -> Run {
        let mut run = Run::shell("");
        run.command = ["/usr/bin/python3", "-c", script].map(String::from).to_vec();
        run
    }

    /// Also lets the command write there.
    pub fn writing(self, path: &Path) -> Run {
        self.bound(path, true, true)
    }

    pub fn bound(mut self, path: &Path, write: bool, exec: bool) -> Run {
        self.plan.mounts.push(Mount::Bind { path: bytes(path), node: node(path), write, exec });
        if let (true, Some(landlock)) = (write, &mut self.plan.landlock) {
            landlock.write.push(bytes(path));
        }
        self
    }

    /// A read-only bind of a place onto itself.
    pub fn pinned(self, path: &Path, write: bool) -> Run {
        self.bound(path, write, true)
    }

    pub fn masked(mut self, path: &Path) -> Run {
        let place = bytes(path);
        self.plan.mounts.push(if path.is_dir() {
            Mount::EmptyDirectory { path: place, listable: false }
        } else {
            Mount::MaskFile { path: place }
        });
        self
    }

    /// The switch that takes Landlock out.
    pub fn without_landlock(mut self) -> Run {
        self.plan.landlock = None;
        self
    }

    pub fn in_directory(mut self, path: &Path) -> Run {
        self.directory = path.to_owned();
        self
    }

    #[allow(clippy::wrong_self_convention)]
    pub fn as_user_of(mut self, user: Option<u32>) -> Run {
        self.user = user;
        self
    }

    /// The process that will run it, not yet started.
    pub fn process(&self) -> (Command, tempfile::NamedTempFile) {
        let own = std::env::current_exe().unwrap();
        let mut command = match self.user {
            None => Command::new(own),
            Some(user) => {
                let mut command = Command::new("setpriv");
                let user = user.to_string();
                command.args(["--reuid", &user, "--regid", &user, "--clear-groups"]).arg(readable_by_all(&own));
                command
            }
        };
        // A file, since a plan can be longer than an environment.
        let file = tempfile::Builder::new().prefix("srt-enforcement-").tempfile_in("/var/tmp").unwrap();
        fs::set_permissions(file.path(), fs::Permissions::from_mode(0o644)).unwrap();
        fs::write(file.path(), serde_json::to_vec(self).unwrap()).unwrap();
        command.env(ENVIRONMENT, file.path()).stdin(Stdio::null());
        (command, file)
    }

    pub fn output(&self) -> Output {
        let (mut process, _plan) = self.process();
        process.output().unwrap()
    }

    /// Its standard output, after it ended well.
    #[track_caller]
    pub fn succeeds(&self) -> String {
        let output = self.output();
        let error = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "{:?}: {error}", output.status);
        String::from_utf8(output.stdout).unwrap()
    }

    /// What it says on standard error, after it ended otherwise.
    #[track_caller]
    pub fn fails(&self) -> String {
        let output = self.output();
        assert!(!output.status.success(), "it succeeded: {}", String::from_utf8_lossy(&output.stdout));
        String::from_utf8_lossy(&output.stderr).into_owned()
    }

    #[track_caller]
    pub fn status(&self) -> i32 {
        let output = self.output();
        output.status.code().unwrap_or_else(|| panic!("{:?}", output.status))
    }
}

/// Every user that the tests can become, so that root's and everybody's sandbox are both tried.
pub fn users() -> Vec<Option<u32>> {
    if nix::unistd::geteuid().is_root() { vec![None, Some(USER)] } else { vec![None] }
}

thread_local! {
    /// The engine of the runs that this thread writes down.
    static BWRAP: Cell<bool> = const { Cell::new(false) };
}

/// Runs a test with both engines, as each user, in a directory that is theirs.
pub fn for_each_user(test: impl Fn(Option<u32>, &Path)) {
    for_each_native_user(&test);
    BWRAP.set(true);
    for_each_native_user(test);
    BWRAP.set(false);
}

/// What bubblewrap cannot do, or does otherwise.
pub fn for_each_native_user(test: impl Fn(Option<u32>, &Path)) {
    for user in users() {
        let scratch = scratch(user);
        test(user, scratch.path());
    }
}

/// A directory outside `/tmp` that this user owns.
pub fn scratch(user: Option<u32>) -> tempfile::TempDir {
    let scratch = tempfile::Builder::new().prefix("srt-enforcement-").tempdir_in("/var/tmp").unwrap();
    fs::set_permissions(scratch.path(), fs::Permissions::from_mode(0o755)).unwrap();
    give(scratch.path(), user);
    scratch
}

pub fn give(path: &Path, user: Option<u32>) {
    if let Some(user) = user {
        std::os::unix::fs::lchown(path, Some(user), Some(user)).unwrap();
    }
}

pub fn write(path: &Path, text: &str, user: Option<u32>) {
    fs::write(path, text).unwrap();
    give(path, user);
}

pub fn make_directory(path: &Path, user: Option<u32>) {
    fs::create_dir(path).unwrap();
    give(path, user);
}

pub fn bytes(path: &Path) -> Vec<u8> {
    path.as_os_str().as_bytes().to_vec()
}

pub fn node(path: &Path) -> Node {
    let seen = fs::symlink_metadata(path).unwrap();
    let kind = seen.file_type();
    let kind = if kind.is_dir() {
        NodeKind::Directory
    } else if kind.is_symlink() {
        NodeKind::Link
    } else if kind.is_fifo() {
        NodeKind::Fifo
    } else if kind.is_socket() {
        NodeKind::Socket
    } else if kind.is_char_device() || kind.is_block_device() {
        NodeKind::Device
    } else {
        NodeKind::File
    };
    Node { kind, device: seen.dev(), inode: seen.ino() }
}

/// A copy of the test program where other users reach it.
fn readable_by_all(own: &Path) -> PathBuf {
    use std::sync::OnceLock;
    static COPY: OnceLock<PathBuf> = OnceLock::new();
    COPY.get_or_init(|| {
        let copy = PathBuf::from(format!("/var/tmp/srt-enforcement-{}", std::process::id()));
        fs::copy(own, &copy).unwrap();
        fs::set_permissions(&copy, fs::Permissions::from_mode(0o755)).unwrap();
        copy
    })
    .clone()
}

struct Nobody;

impl Sink for Nobody {
    fn report(&self, _: Event) {}
}

/// Runs the plan in the environment, if there is one, before main and so before the test harness makes threads.
extern "C" fn before_main() {
    sandbox_runtime::exec::linux::inner_main();
    let Some(plan) = std::env::var_os(ENVIRONMENT) else { return };
    if plan == "doctor" {
        for probe in sandbox_runtime::exec::linux::doctor::probes() {
            println!("{}", serde_json::to_string(&probe).unwrap());
        }
        std::process::exit(0);
    }
    let run_: Run = serde_json::from_slice(&fs::read(plan).unwrap()).unwrap();
    let launch = Launch {
        engine: if run_.bwrap { Engine::Bwrap } else { Engine::Native },
        command: run_.command.into_iter().map(OsString::from).collect(),
        environment: run_.environment.into_iter().map(|(name, value)| (name.into(), value.into())).collect(),
        set: std::collections::BTreeSet::default(),
        directory: run_.directory,
        keep: run_.keep,
        nest: false,
        rules: None,
        events: Arc::new(Nobody),
    };
    let status = match run(&run_.plan, launch) {
        Ok(exit) => exit.status(),
        Err(error) => {
            eprintln!("srt: {error}");
            error.status()
        }
    };
    std::process::exit(i32::from(status));
}

#[used]
#[allow(unsafe_code)]
// SAFETY: the section holds functions that the C runtime calls before main; this is one.
#[unsafe(link_section = ".init_array")]
static BEFORE_MAIN: extern "C" fn() = before_main;
