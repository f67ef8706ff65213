//! The shipped policies, run for real: each does what it is for, and holds what it says it holds.

use crate::support::{Output, Scene, User, output, skip, users};
use std::path::Path;
use std::process::Command;

const KEY: &str = "a private key, were this not a test\n";
const GIT_CONFIG: &str = "[user]\n\tname = Someone\n\temail = someone@example.com\n[init]\n\tdefaultBranch = main\n";

/// A home with things to lose, and a repository as its workspace.
fn scene(user: User) -> Scene {
    let scene = Scene::new()
        .file(".gitconfig", GIT_CONFIG)
        .file(".ssh/id_ed25519", KEY)
        .file(".ssh/known_hosts", "example.com ssh-ed25519 AAAA\n")
        .file(".ssh/config", "Host example.com\n")
        .file(".ssh/deploy", KEY)
        .file(".bashrc", "")
        .file(".npmrc", "# a token\n")
        .file("work/.env", "TOKEN=1\n")
        .file("work/.env.example", "TOKEN=\n")
        .file("work/a.txt", "one\n")
        .folder("work/output")
        .folder("work/out");
    for arguments in [&["init", "-q", "-b", "main"][..], &["add", "a.txt"], &["commit", "-q", "-m", "first"]] {
        let done = Command::new("git")
            .args(arguments)
            .current_dir(scene.workspace())
            .env("HOME", scene.home())
            .env("GIT_CONFIG_NOSYSTEM", "1")
            .status()
            .unwrap();
        assert!(done.success(), "git {arguments:?}");
    }
    scene.by(user)
}

/// A script that makes each attempt in a shell of its own, and names those that succeed.
fn tried(attempts: &[&str]) -> String {
    let lines = attempts.iter().enumerate();
    lines
        .map(|(number, attempt)| format!("( {attempt}\n) >/dev/null 2>&1 && echo {number}\n"))
        .collect::<Vec<_>>()
        .concat()
        + "true\n"
}

/// Fails unless each attempt fails under the policy.
#[track_caller]
fn refuses(scene: &Scene, attempts: &[&str]) {
    all_failed(attempts, &scene.run(&tried(attempts)));
}

#[track_caller]
fn all_failed(attempts: &[&str], done: &Output) {
    let held: Vec<&str> = done.ok().lines().map(|number| attempts[number.parse::<usize>().unwrap()]).collect();
    assert!(held.is_empty(), "not refused: {held:?}");
}

/// What no shipped policy lets happen.
const NEVER: [&str; 8] = [
    "cat ~/.ssh/id_ed25519",
    "cat .env",
    "echo x >> ~/.bashrc",
    "echo x > ~/new",
    "echo x > .git/hooks/pre-commit",
    "echo x >> .git/config",
    "mv .git .other",
    "echo x > /usr/bin/srt-was-here",
];

#[test]
fn the_default_reads_writes_the_workspace_and_reaches_nothing() {
    for user in users() {
        let scene = scene(user).env("GITHUB_TOKEN", "secret");
        let run = |script: &str| output(&mut scene.srt(["run", "--", "sh", "-c", script]));
        let done = "cat /etc/hostname ~/.gitconfig >/dev/null; echo x > b.txt && git add b.txt && git commit -qm b && \
                    echo x > $TMPDIR/x && cat .env.example && echo \"[$GITHUB_TOKEN]\"";
        assert_eq!(run(done).ok(), "TOKEN=\n[]", "{user:?}");
        let attempts = [&NEVER[..], &["cat ~/.npmrc", "curl -sfm 2 http://127.0.0.1:9/"]].concat();
        all_failed(&attempts, &run(&tried(&attempts)));
    }
}

#[test]
fn the_coding_agent_works_in_its_repository_alone() {
    for user in users() {
        let scene =
            scene(user).policy(include_str!("../../policies/coding-agent.policy")).env("ANTHROPIC_API_KEY", "k");
        let done = "set -e; echo two >> a.txt; git commit -qam second; git switch -qc topic; git stash list; \
                    python3 -c 'import tempfile; tempfile.mkdtemp()'; git log --oneline | wc -l; echo $ANTHROPIC_API_KEY";
        assert_eq!(scene.run(done).ok(), "2\nk", "{user:?}");
        refuses(&scene, &NEVER);
        refuses(
            &scene,
            &["cat ~/.npmrc", "ls ~", "curl -sfm 5 http://example.com/", "curl -sfm 5 http://127.0.0.1:9/"],
        );
    }
}

#[test]
fn the_mcp_file_server_reads_its_directory_and_writes_its_output() {
    for user in users() {
        let scene = scene(user)
            .policy(include_str!("../../policies/mcp-file-server.policy"))
            .env("ANTHROPIC_API_KEY", "k")
            .env("NODE_ENV", "test");
        let done = "cat a.txt; echo x > output/r && cat output/r; echo \"[$ANTHROPIC_API_KEY$NODE_ENV]\"";
        assert_eq!(scene.run(done).ok(), "one\nx\n[test]", "{user:?}");
        refuses(&scene, &NEVER);
        refuses(&scene, &["echo x > a.txt", "rm a.txt", "curl -sfm 2 http://127.0.0.1:9/"]);
    }
}

#[test]
fn npm_in_ci_installs_and_changes_nothing_else() {
    if !Path::new("/usr/bin/npm").exists() {
        return skip("npm under npm-install-ci.policy", "/usr/bin/npm is not installed");
    }
    for user in users() {
        let scene = scene(user)
            .file("work/package.json", r#"{ "name": "scene", "version": "1.0.0", "dependencies": { "part": "file:part" } }"#)
            .file("work/part/package.json", r#"{ "name": "part", "version": "1.0.0", "scripts": { "install": "echo x > made; cat ~/.npmrc; echo x >> ../package.json; true" } }"#)
            .file("work/part/index.js", "module.exports = 42;\n")
            .policy(include_str!("../../policies/npm-install-ci.policy"))
            .with(["--define", "registry=registry.example.com"])
            .env("NPM_TOKEN", "secret")
            .env("CI", "1");
        let done = "npm install --offline --no-audit --no-fund --no-package-lock --install-links --loglevel=error >&2; \
                    node -p 'require(\"part\")'; echo \"[$NPM_TOKEN$CI]\"";
        assert_eq!(scene.run(done).ok(), "42\n[1]", "{user:?}");
        let package = std::fs::read_to_string(scene.workspace().join("package.json")).unwrap();
        assert!(package.ends_with('}'), "{user:?}: an install script changed package.json");
        refuses(&scene, &NEVER);
        refuses(&scene, &["echo x >> package.json", "cat ~/.npmrc", "curl -sfm 5 http://example.com/"]);
    }
}

#[test]
fn the_database_job_gets_its_password_and_reaches_nothing_beside() {
    for user in users() {
        let scene = scene(user)
            .policy(include_str!("../../policies/python-database.policy"))
            .env("PGPASSWORD", "p")
            .env("DATABASE_URL", "secret");
        let done = "python3 -c 'import os; open(\"out/r\", \"w\").write(os.environ[\"PGPASSWORD\"])'; cat out/r; echo \"[$DATABASE_URL]\"";
        assert_eq!(scene.run(done).ok(), "p[]", "{user:?}");
        refuses(&scene, &NEVER);
        refuses(&scene, &["echo x > a.txt", "curl -sfm 2 http://127.0.0.1:9/", "curl -sfm 5 http://example.com/"]);
    }
}

#[test]
fn git_over_ssh_sees_the_known_hosts_and_the_key_of_the_repository_alone() {
    for user in users() {
        let scene = scene(user).policy(include_str!("../../policies/git-over-ssh.policy"));
        let done = "cat ~/.ssh/known_hosts ~/.ssh/config ~/.ssh/deploy | wc -l; echo x >> a.txt; git commit -qam x; \
                    ssh -V 2>/dev/null; echo $GIT_SSH_COMMAND";
        assert_eq!(scene.run(done).ok(), "3\nssh -i ~/.ssh/deploy -o IdentitiesOnly=yes", "{user:?}");
        refuses(&scene, &NEVER);
        refuses(
            &scene,
            &["echo x >> ~/.ssh/known_hosts", "echo x >> ~/.ssh/config", "echo x >> ~/.ssh/deploy", "ls ~/.ssh"],
        );
    }
}

#[test]
fn locked_down_code_computes_and_prints() {
    for user in users() {
        let scene =
            scene(user).policy(include_str!("../../policies/locked-down.policy")).env("LD_PRELOAD", "").env("ODD", "1");
        let done = "python3 -c 'print(6 * 7)'; echo x > $TMPDIR/x && cat a.txt; echo \"[$ODD]\"";
        assert_eq!(scene.run(done).ok(), "42\none\n[]", "{user:?}");
        refuses(&scene, &NEVER);
        refuses(&scene, &["echo x > a.txt", "echo x > new", "curl -sfm 2 http://127.0.0.1:9/"]);
    }
}

#[test]
fn usual_hook_directories_are_closed() {
    for user in users() {
        let scene = Scene::new()
            .file("work/.husky/pre-commit", "")
            .file("work/sub/.githooks/pre-commit", "")
            .file("work/.pre-commit-config.yaml", "")
            .by(user)
            .policy("use std/shell-config\nallow read, write $WORKSPACE");
        refuses(
            &scene,
            &[
                "echo x > .husky/pre-commit",
                "echo x > .husky/_",
                "rm -r .husky",
                "echo x > sub/.githooks/pre-commit",
                "mv sub/.githooks sub/x",
                "echo x > .pre-commit-config.yaml",
            ],
        );
    }
}

/// In a linked worktree `.git` is a file; one that names another directory would bring its hooks along, and so would a
/// `commondir` in the directory that it names.
#[test]
fn git_is_not_sent_to_hooks_elsewhere() {
    for user in users() {
        let scene = Scene::new().file("main/a.txt", "one\n").by(user);
        let git = |arguments: &[&str]| {
            let done = Command::new("git")
                .args(["-c", "user.name=A", "-c", "user.email=a@example.com"])
                .args(arguments)
                .current_dir(scene.home().join("main"))
                .env("HOME", scene.home())
                .status()
                .unwrap();
            assert!(done.success(), "git {arguments:?}");
        };
        git(&["init", "-q", "-b", "main"]);
        git(&["add", "."]);
        git(&["commit", "-q", "-m", "first"]);
        git(&["worktree", "add", "-q", "../linked", "-b", "side"]);
        let linked = scene.home().join("linked");
        let scene = scene.policy("use std/git\nallow read, write $WORKSPACE\nallow read ~/work");
        let scene = scene.with(["--workspace".as_ref(), linked.as_os_str()]);
        let names = |text: &str| text.replace("LINKED", &linked.display().to_string());
        let attempts = [
            "echo 'gitdir: /tmp/evil' > LINKED/.git",
            "rm LINKED/.git",
            "mv LINKED/.git LINKED/x",
            "echo x > LINKED/../main/.git/worktrees/linked/commondir",
            "echo x > LINKED/../main/.git/worktrees/linked/gitdir",
            "echo x >> LINKED/../main/.git/config",
        ];
        let attempts = attempts.map(names);
        refuses(&scene, &attempts.iter().map(String::as_str).collect::<Vec<_>>());
        scene.run(&names("cd LINKED && echo x > b && git add b && git status --porcelain | grep -qx 'A  b'")).ok();
    }
}

#[test]
fn several_policies_are_a_union() {
    for user in users() {
        let scene = Scene::new()
            .file("one/a", "1")
            .file("two/a", "2")
            .file("more.policy", "srt 1\ndefault read deny\nallow read ~/two\nforbid read ~/one/b\n")
            .file("one/b", "3")
            .by(user)
            .policy("allow read $WORKSPACE\nallow read ~/one");
        let more = scene.home().join("more.policy");
        let scene = scene.with(["--policy".as_ref(), more.as_os_str()]);
        assert_eq!(scene.run("cat ~/one/a ~/two/a").ok(), "12", "{user:?}");
        refuses(&scene, &["cat ~/one/b"]);
    }
}

#[test]
fn two_users_run_at_once() {
    if users().len() < 2 {
        return skip("two users at once", "only root can become another user");
    }
    let scenes: Vec<Scene> = users().into_iter().map(|user| Scene::new().by(user)).collect();
    let running: Vec<_> = scenes
        .iter()
        .map(|scene| {
            let script = "echo mine > $TMPDIR/same-name; sleep 0.5; cat $TMPDIR/same-name";
            scene.sandboxed(["sh", "-c", script]).stdout(std::process::Stdio::piped()).spawn().unwrap()
        })
        .collect();
    for child in running {
        let done = child.wait_with_output().unwrap();
        assert!(done.status.success());
        assert_eq!(String::from_utf8_lossy(&done.stdout), "mine\n");
    }
}

#[test]
fn a_long_temporary_path_does_no_harm() {
    for user in users() {
        let long = format!("/var/tmp/{}", "x".repeat(120));
        let scene = Scene::new()
            .by(user)
            .env("TMPDIR", &long)
            .policy("allow read, write $WORKSPACE\nallow connect example.com");
        assert_eq!(scene.run("test -d $TMPDIR && echo $HTTP_PROXY").ok(), "http://198.18.0.1:3128", "{user:?}");
    }
}

#[test]
fn node_is_told_to_use_the_proxy() {
    for user in users() {
        let scene = Scene::new().by(user).policy("allow read, write $WORKSPACE\nallow connect example.com");
        assert_eq!(scene.run("echo $NODE_USE_ENV_PROXY").ok(), "1", "{user:?}");
    }
}
