//! Real programs under fitting policies: what people run, doing what they run it for.

use crate::support::{Scene, User, skip, users};
use std::path::{Path, PathBuf};
use std::process::Command;

/// A program on the PATH of the tests, links followed.
pub fn find(program: &str) -> Option<PathBuf> {
    let path = std::env::var_os("PATH")?;
    std::env::split_paths(&path).map(|folder| folder.join(program)).find(|path| path.is_file())
}

/// Runs a command outside the sandbox, to make a scene.
#[track_caller]
fn outside(folder: &Path, program: &str, arguments: &[&str]) {
    let output = Command::new(program)
        .args(arguments)
        .current_dir(folder)
        .env("GIT_CONFIG_GLOBAL", "/dev/null")
        .env("GIT_AUTHOR_NAME", "A")
        .env("GIT_AUTHOR_EMAIL", "a@example.com")
        .env("GIT_COMMITTER_NAME", "A")
        .env("GIT_COMMITTER_EMAIL", "a@example.com")
        .output()
        .unwrap();
    assert!(output.status.success(), "{program} {arguments:?}: {}", String::from_utf8_lossy(&output.stderr));
}

const GIT_CONFIG: &str = "[user]\n\tname = Someone\n\temail = someone@example.com\n[init]\n\tdefaultBranch = main\n";

#[test]
fn git_commits_branches_and_stashes_in_an_existing_repository() {
    for user in users() {
        let scene = Scene::new().file(".gitconfig", GIT_CONFIG).file("work/a.txt", "one\n");
        outside(&scene.workspace(), "git", &["init", "-q", "-b", "main"]);
        outside(&scene.workspace(), "git", &["add", "."]);
        outside(&scene.workspace(), "git", &["commit", "-q", "-m", "first"]);
        let scene = scene.by(user).policy("use std/git\nallow read, write $WORKSPACE");
        let output = scene.run(
            "set -e; echo two >> a.txt; git add .; git commit -q -m second; git switch -q -c topic; echo three >> a.txt
             git stash -q; git stash pop -q; git checkout -q -- a.txt; git switch -q main; git merge -q topic
             git log --oneline | wc -l; git status --porcelain; git fsck --no-progress --no-dangling",
        );
        assert_eq!(output.ok(), "2", "{user:?}: {}", output.stderr);
        // Nothing but the work itself is left.
        outside(&scene.workspace(), "git", &["-c", "safe.directory=*", "diff", "--quiet"]);
        let hooks = scene.run("echo 'echo owned' > .git/hooks/pre-commit");
        assert_ne!(hooks.code, 0, "{user:?}: a hook was written");
    }
}

#[test]
fn git_works_in_a_linked_worktree() {
    for user in users() {
        let scene = Scene::new().file(".gitconfig", GIT_CONFIG).file("main/a.txt", "one\n");
        let main = scene.home().join("main");
        outside(&main, "git", &["init", "-q", "-b", "main"]);
        outside(&main, "git", &["add", "."]);
        outside(&main, "git", &["commit", "-q", "-m", "first"]);
        std::fs::remove_dir(scene.workspace()).unwrap();
        outside(&main, "git", &["worktree", "add", "-q", "../work", "-b", "side"]);
        let scene = scene.by(user).policy("use std/git\nallow read, write $WORKSPACE");
        let output =
            scene.run("set -e; echo two >> a.txt; git add .; git commit -q -m second; git log --oneline | wc -l");
        assert_eq!(output.ok(), "2", "{user:?}: {}", output.stderr);
        assert_ne!(scene.run("echo x > ../main/.git/hooks/post-commit").code, 0, "{user:?}: a hook was written");
    }
}

#[test]
fn git_clones_over_file_where_the_policy_opens_new_repositories() {
    for user in users() {
        let scene = Scene::new().file(".gitconfig", GIT_CONFIG).file("origin/a.txt", "one\n");
        let origin = scene.home().join("origin");
        outside(&origin, "git", &["init", "-q", "-b", "main"]);
        outside(&origin, "git", &["add", "."]);
        outside(&origin, "git", &["commit", "-q", "-m", "first"]);
        let scene = scene
            .by(user)
            .policy("use std/git\nuse std/git-init\nallow read, write $WORKSPACE\nallow read $HOME/origin");
        let output = scene.run("git clone -q ../origin copy && cat copy/a.txt && git -C copy log --oneline | wc -l");
        assert_eq!(output.ok(), "one\n1", "{user:?}: {}", output.stderr);
    }
}

#[test]
fn python_runs_pools_queues_semaphores_and_shared_memory() {
    let script = "
import multiprocessing as m, multiprocessing.shared_memory as s, tempfile, os
def square(x): return x * x
if __name__ == '__main__':
    with m.Pool(4) as pool: print(sum(pool.map(square, range(100))))
    queue = m.Queue(); child = m.Process(target=queue.put, args=('hi',)); child.start(); print(queue.get()); child.join()
    with m.Semaphore(2): pass
    block = s.SharedMemory(create=True, size=64); block.buf[0] = 7; block.close(); block.unlink()
    with tempfile.TemporaryDirectory() as folder: open(os.path.join(folder, 'x'), 'w').write('x')
    print('done')
";
    for user in users() {
        let scene =
            Scene::new().file("work/m.py", script).by(user).policy("use std/python\nallow read, write $WORKSPACE");
        assert_eq!(scene.run("python3 m.py").ok(), "328350\nhi\ndone", "{user:?}");
    }
}

#[test]
fn node_runs_workers_and_child_processes() {
    let Some(node) = find("node") else { return skip("node", "it is not installed") };
    let script = "
const { Worker, isMainThread, parentPort } = require('worker_threads');
if (!isMainThread) { parentPort.postMessage(6 * 7); return; }
const worker = new Worker(__filename);
worker.on('message', (n) => {
  const out = require('child_process').execFileSync('sh', ['-c', 'echo child'], { encoding: 'utf8' }).trim();
  require('fs').writeFileSync('out.txt', `${n} ${out}`);
  console.log(require('fs').readFileSync('out.txt', 'utf8'));
});
";
    for user in users() {
        let scene =
            Scene::new().file("work/m.js", script).by(user).policy("use std/node\nallow read, write $WORKSPACE");
        let output = scene.run_command([node.as_os_str(), "m.js".as_ref()]);
        assert_eq!(output.ok(), "42 child", "{user:?}: {}", output.stderr);
    }
}

#[test]
fn npm_installs_a_package_through_the_proxy_from_the_one_host_that_is_allowed() {
    let Some(npm) = find("npm") else { return skip("npm", "it is not installed") };
    let asked = Command::new(&npm).args(["config", "get", "registry"]).output().unwrap();
    let registry = String::from_utf8_lossy(&asked.stdout).trim().to_owned();
    let host =
        registry.split("//").nth(1).and_then(|rest| rest.split(['/', ':']).next()).unwrap_or_default().to_owned();
    if host.is_empty() {
        return skip("npm install", "npm names no registry");
    }
    let package = r#"{ "name": "scene", "version": "1.0.0", "dependencies": { "is-number": "7.0.0" } }"#;
    let policy = "use std/node\nallow read, write $WORKSPACE\nallow connect $registry\nallow read $certificates?\n";
    let policy = policy.replace("allow read $certificates?\n", "");
    for user in users() {
        let scene = Scene::new()
            .file("work/package.json", package)
            .file("work/.npmrc", &format!("registry={registry}\naudit=false\nfund=false\nupdate-notifier=false\n"))
            .by(user)
            .policy(&policy)
            .with(["--define", &format!("registry={host}")]);
        let output =
            scene.run("npm install --no-audit --no-fund --loglevel=error && node -p 'require(\"is-number\")(5)'");
        assert!(output.ok().ends_with("true"), "{user:?}: {output:?}");
    }
}

#[test]
fn cargo_builds_and_tests_a_crate() {
    let asked = Command::new("rustc").args(["--print", "sysroot"]).output();
    let Ok(asked) = asked else { return skip("cargo", "it is not installed") };
    let toolchain = PathBuf::from(String::from_utf8_lossy(&asked.stdout).trim());
    for user in users() {
        if user == User::Ordinary && !others_may_enter(&toolchain) {
            // A toolchain in root's home is root's: the sandbox cannot open what the machine closes.
            continue;
        }
        let scene = Scene::new()
            .file("work/Cargo.toml", "[package]\nname = \"scene\"\nversion = \"0.1.0\"\nedition = \"2021\"\n")
            .file("work/src/main.rs", "fn main() { println!(\"built\"); }\n#[test]\nfn one() { assert_eq!(1, 1); }\n")
            .by(user)
            .policy(&format!(
                "use std/rust\nallow read, write $WORKSPACE\nallow read {0}\nset PATH=\"{0}/bin:/usr/bin:/bin\"\n",
                toolchain.display()
            ));
        let output =
            scene.run("cargo build -q --offline && ./target/debug/scene && cargo test -q --offline >/dev/null");
        assert_eq!(output.ok(), "built", "{user:?}: {}", output.stderr);
    }
}

pub fn others_may_enter(path: &Path) -> bool {
    use std::os::unix::fs::PermissionsExt;
    path.ancestors().all(|folder| std::fs::metadata(folder).is_ok_and(|found| found.permissions().mode() & 0o001 != 0))
}

#[test]
fn an_mcp_server_speaks_json_rpc_on_its_standard_streams() {
    use std::io::{BufRead, BufReader, Write};
    let server = "
import json, sys
for line in sys.stdin:
    call = json.loads(line)
    if call['method'] == 'initialize': result = {'protocolVersion': '2025-06-18', 'serverInfo': {'name': 'files'}}
    else:
        try: result = {'text': open(call['params']['path']).read()}
        except OSError as error: result = {'error': type(error).__name__}
    print(json.dumps({'jsonrpc': '2.0', 'id': call['id'], 'result': result}), flush=True)
";
    for user in users() {
        let scene = Scene::new()
            .file("work/server.py", server)
            .file("work/notes.txt", "a note")
            .file(".ssh/id_ed25519", "secret")
            .by(user)
            .policy("use std/python\nuse std/secrets\nallow read $WORKSPACE");
        let mut child = scene
            .sandboxed(["python3", "server.py"])
            .stdin(std::process::Stdio::piped())
            .stdout(std::process::Stdio::piped())
            .spawn()
            .unwrap();
        let mut input = child.stdin.take().unwrap();
        let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
        let mut call = |id: u32, method: &str, path: &Path| {
            let params = format!("{{\"path\": {:?}}}", path.display().to_string());
            writeln!(input, r#"{{"jsonrpc": "2.0", "id": {id}, "method": "{method}", "params": {params}}}"#).unwrap();
            lines.next().unwrap().unwrap()
        };
        assert!(call(1, "initialize", Path::new("")).contains("2025-06-18"), "{user:?}");
        assert!(call(2, "read", &scene.workspace().join("notes.txt")).contains("a note"), "{user:?}");
        let denied = call(3, "read", &scene.home().join(".ssh/id_ed25519"));
        assert!(denied.contains("PermissionError") || denied.contains("FileNotFoundError"), "{user:?}: {denied}");
        drop(input);
        assert!(child.wait().unwrap().success(), "{user:?}");
    }
}

#[test]
fn bash_has_job_control_in_a_terminal() {
    for user in users() {
        let scene = Scene::new().by(user);
        let mut command = scene.sandboxed(["bash", "--norc", "--noprofile", "-i"]);
        command.stdin(std::process::Stdio::inherit());
        let mut terminal = rexpect::session::spawn_command(command, Some(15_000)).unwrap();
        let mut said = |send: &str, expect: &str| {
            terminal.send_line(send).unwrap();
            terminal.exp_string(expect).unwrap_or_else(|error| panic!("{user:?}: after `{send}`: {error}"));
        };
        said("PS1='ready> '; echo st''arted", "started");
        said("sleep 100 & jobs; echo jo''bs", "Running");
        said("kill %1; wait %1 2>/dev/null; echo en''ded", "ended");
        said("sh -c 'kill -STOP $$; echo resu''med'; echo sto''pped", "stopped");
        said("fg", "resumed");
        terminal.send_line("sleep 100; echo st=$?").unwrap();
        std::thread::sleep(std::time::Duration::from_millis(400));
        terminal.send_control('c').unwrap();
        terminal.send_line("echo af''ter").unwrap();
        terminal.exp_string("after").unwrap();
        terminal.send_line("exit 7").unwrap();
        terminal.exp_eof().unwrap();
        let status = terminal.process().wait().unwrap();
        assert!(format!("{status:?}").contains('7'), "{user:?}: {status:?}");
    }
}
