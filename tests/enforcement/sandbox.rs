//! A plan, written down by a test, and a run under it.

use sandbox_runtime::backend::bubblewrap::{Mount, Needs, Plan};
use sandbox_runtime::bind::bind;
use sandbox_runtime::compile::compile;
use sandbox_runtime::diagnostic::any_error;
use sandbox_runtime::event::{Event, RuleText, Sink};
use sandbox_runtime::exec::linux::{Defence, Engine, Launch, Watch, caller, run_without};
use sandbox_runtime::host::real::Machine;
use sandbox_runtime::ir::{BoundPolicy, Node, NodeKind, Rule};
use sandbox_runtime::proxy::Rules;
use sandbox_runtime::resolve::{Files, Options, Text, resolve};
use sandbox_runtime::source::Sources;
use sandbox_runtime::vocabulary::System;
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
    /// What is taken out.
    pub missing: Vec<Defence>,
    /// What works as usual is announced too.
    pub debug: bool,
    /// What the proxy decides by: rules, and the workspace they are bound in.
    pub proxied: Option<(String, PathBuf)>,
    /// The user to become first.
    #[serde(skip)]
    pub user: Option<u32>,
}

/// The other users that tests run as, beside whoever runs them.
pub const USER: u32 = 1001;

impl Run {
    /// What lowering makes of reads that are open, and writes that are not but for the run's own places.
    pub fn shell(script: &str) -> Run {
        // No rule names the workspace: any directory will do that is neither a home nor private.
        Run::of(plan("", Path::new("/usr")).1, script)
    }

    /// What lowering makes of these rules as well, run in the workspace.
    pub fn policy(rules: &str, workspace: &Path, script: &str) -> Run {
        let run = Run::of(plan(rules, workspace).1, script).in_directory(workspace);
        Run { proxied: Some((rules.to_owned(), workspace.to_owned())), ..run }
    }

    fn of(plan: Plan, script: &str) -> Run {
        Run {
            plan,
            command: ["/bin/sh", "-c", script].map(String::from).to_vec(),
            environment: vec![
                ("PATH".into(), "/usr/local/bin:/usr/bin:/bin:/usr/sbin:/sbin".into()),
                ("LC_ALL".into(), "C".into()),
            ],
            directory: "/".into(),
            keep: vec![],
            bwrap: BWRAP.get(),
            missing: vec![],
            debug: false,
            proxied: None,
            user: None,
        }
    }

    /// Runs this program instead of a shell.
    pub fn with_python(mut self, script: &str) -> Run {
        self.command = ["/usr/bin/python3", "-c", script].map(String::from).to_vec();
        self
    }

    pub fn python(script: &str) -> Run {
        Run::shell("").with_python(script)
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

    pub fn masked(mut self, path: &Path) -> Run {
        let (place, node) = (bytes(path), node(path));
        self.plan.mounts.push(if path.is_dir() {
            Mount::EmptyDirectory { path: place, node: Some(node), listable: false }
        } else {
            Mount::MaskFile { path: place, node }
        });
        self
    }

    /// The switch that takes Landlock out.
    pub fn without_landlock(mut self) -> Run {
        self.plan.landlock = None;
        self
    }

    /// Leaves unix sockets closed, so that pid 1 has no calls to serve, and no capability of its own.
    pub fn with_nobody_listening(mut self) -> Run {
        self.plan.syscalls.notified = false;
        self
    }

    /// The switch for everything that is no part of a plan.
    pub fn without(mut self, defence: Defence) -> Run {
        self.missing.push(defence);
        self
    }

    /// The switch for one system call.
    pub fn with_call(self, call: &str) -> Run {
        self.without(Defence::SystemCall(call.into()))
    }

    /// Takes the mount at a place out of the plan.
    pub fn without_mount(mut self, path: &str) -> Run {
        let at = |mount: &Mount| match mount {
            Mount::Bind { path, .. } | Mount::EmptyDirectory { path, .. } | Mount::Private { path, .. } => path.clone(),
            Mount::Devices { .. } => b"/dev".to_vec(),
            Mount::Proc => b"/proc".to_vec(),
            _ => vec![],
        };
        self.plan.mounts.retain(|mount| at(mount) != path.as_bytes());
        self
    }

    pub fn in_directory(mut self, path: &Path) -> Run {
        path.clone_into(&mut self.directory);
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
                command
                    .args(["--reuid", &user, "--regid", &user, "--clear-groups"])
                    .arg(crate::support::for_everyone(&own));
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

/// From a policy's text to the plan, as `srt run` goes.
#[track_caller]
fn plan(rules: &str, workspace: &Path) -> (BoundPolicy, Plan) {
    struct NoFiles;
    impl Files for NoFiles {
        fn read(&self, _: &str) -> std::io::Result<Text> {
            Err(std::io::ErrorKind::NotFound.into())
        }
    }
    let mut sources = Sources::default();
    let given = sources.add("attack", format!("srt 1\nuse std/system\ndefault read allow\n{rules}\n"));
    let options = Options { system: System::Linux, defines: std::collections::BTreeMap::new() };
    let (policy, said) = resolve(&[given], &mut sources, &NoFiles, &options);
    assert!(!any_error(&said), "{said:?}");
    let machine = Machine::look(Some(workspace), std::collections::BTreeMap::new()).unwrap();
    let (policy, said) = bind(policy.unwrap(), &machine);
    let policy = policy.unwrap_or_else(|| panic!("{said:?}"));
    let compiled = compile(&policy, &Needs { performs: Watch::Writes, user: caller(), ..Needs::default() });
    let plan = compiled.plan.unwrap_or_else(|| panic!("{:?}", compiled.diagnostics));
    (policy, plan)
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

struct Nobody;

impl Sink for Nobody {
    fn report(&self, _: Event) {}
}

/// Runs the plan in the environment, if there is one, before main and so before the test harness makes threads.
extern "C" fn before_main() {
    sandbox_runtime::exec::linux::inner_main();
    let Some(text) = std::env::var_os(ENVIRONMENT) else { return };
    if text == "doctor" {
        for probe in sandbox_runtime::exec::linux::doctor::probes() {
            println!("{}", serde_json::to_string(&probe).unwrap());
        }
        std::process::exit(0);
    }
    let run_: Run = serde_json::from_slice(&fs::read(text).unwrap()).unwrap();
    let rules = run_.proxied.map(|(rules, workspace)| {
        let text = |_: &Rule| RuleText { file: "attack".into(), line: 1, text: String::new() };
        Arc::new(Rules { policy: plan(&rules, &workspace).0, texts: Box::new(text) })
    });
    let launch = Launch {
        engine: if run_.bwrap { Engine::Bwrap } else { Engine::Native },
        prepared: None,
        command: run_.command.into_iter().map(OsString::from).collect(),
        environment: run_.environment.into_iter().map(|(name, value)| (name.into(), value.into())).collect(),
        set: std::collections::BTreeSet::default(),
        directory: run_.directory,
        keep: run_.keep,
        rules,
        upstream: None,
        live: None,
        events: Arc::new(Nobody),
        watch: Watch::Nothing,
        announce: |said| eprintln!("srt: {said}"),
        debug: run_.debug,
    };
    let status = match run_without(&run_.plan, launch, &run_.missing) {
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
