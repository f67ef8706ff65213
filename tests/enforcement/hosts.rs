//! Hosts that are laid out in odd ways: file systems mounted inside the workspace, under it, or twice.
//!
//! Root makes the mounts, in a mount namespace that ends with the test; who runs `srt` in it is everybody in turn.

use crate::support::{Output, Scene, User, am_root, output, skip, users};
use std::path::Path;
use std::process::Command;

const ENGINES: [&str; 2] = ["native", "bwrap"];

/// A command in a mount namespace in which `mounts`, a shell script, was run first; `$H` is the scene's home, `$W` its
/// workspace, and `own` gives a place there to whoever runs `srt`.
fn on(scene: &Scene, user: User, mounts: &str, command: &Command) -> Output {
    let owner = if user == User::Ordinary { crate::support::ORDINARY } else { 0 };
    let script = format!("set -e; own() {{ chown -R {owner}:{owner} \"$@\"; }}; {mounts}\ncd \"$W\"; exec \"$@\"");
    let mut inside = Command::new("unshare");
    inside.args(["-m", "--propagation", "private", "sh", "-c", &script, "sh"]);
    inside.arg(command.get_program()).args(command.get_args());
    inside.env_clear().envs(command.get_envs().filter_map(|(name, value)| Some((name, value?))));
    inside.env("H", scene.home()).env("W", scene.workspace()).stdin(std::process::Stdio::null());
    output(&mut inside)
}

/// Tries a script under the policy on a host with these mounts: with both engines, as everybody.
fn try_on(mounts: &str, policy: &str, make: impl Fn(Scene) -> Scene, script: &str, check: impl Fn(&Path, &Output)) {
    if !am_root() {
        return skip("an odd host", "only root can mount there");
    }
    for user in users() {
        for engine in ENGINES {
            let scene = make(Scene::new()).policy(policy).with(["--engine", engine]).by(user);
            let done = on(&scene, user, mounts, &scene.sandboxed(["sh", "-c", script]));
            eprintln!("{user:?}, {engine}: {done:?}");
            check(scene.home(), &done);
        }
    }
}

const ALL: &str = "allow read, write $WORKSPACE";

#[test]
fn a_read_only_mount_in_the_workspace_stays_read_only() {
    try_on(
        "mount -t tmpfs none $W/inner; echo text > $W/inner/f; own $W/inner; mount -o remount,ro $W/inner",
        ALL,
        |scene| scene.folder("work/inner"),
        "echo x > a && cat a inner/f; touch inner/x || rm inner/f || echo held",
        |home, done| {
            assert_eq!(done.ok(), "x\ntext\nheld");
            assert_eq!(done.stderr.matches("Read-only file system").count(), 2, "{done:?}");
            assert!(home.join("work/a").exists());
        },
    );
}

/// No switch of a container engine's helps there.
#[test]
fn in_a_chroot_doctor_says_what_is_in_the_way() {
    if !am_root() {
        return skip("a chroot", "only root can enter one");
    }
    let scene = Scene::new().folder("root");
    let mounts = "for top in usr proc dev var bin lib lib64; do
                    if [ -L /$top ]; then cp -a /$top $H/root; continue; fi
                    [ ! -d /$top ] || { mkdir $H/root/$top; mount --rbind /$top $H/root/$top; }
                  done
                  set -- chroot $H/root \"$@\"";
    let done = on(&scene, User::Caller, mounts, &scene.srt(["doctor"]));
    eprintln!("{done:?}");
    assert!(done.stdout.contains("the kernel makes no namespaces in a chroot"), "{done:?}");
    assert!(!done.stdout.contains("docker run"), "{done:?}");
}

#[test]
fn a_tree_that_is_mounted_twice_is_denied_under_both_names() {
    let secret = |scene: Scene| scene.file("work/secret/key", "secret\n").file("other/f", "open\n").folder("alias");
    let script = "cat secret/key; cat ../alias/key; ls ../alias; cat ../other/f";
    for denied in ["$WORKSPACE/secret", "~/alias", "$WORKSPACE/secret/key", "~/alias/key"] {
        for base in ["default read allow", "default read deny\nallow read ~"] {
            let policy = format!("srt 1\nuse std/system\n{base}\nallow write $WORKSPACE\ndeny read {denied}\n");
            let check = |_: &Path, done: &Output| {
                let shown: Vec<_> = done.stdout.lines().filter(|line| *line != "key").collect();
                assert_eq!(shown, ["open"], "{denied}, {base}");
                assert_eq!(done.stderr.matches("/key").count(), 2, "{denied}, {base}");
            };
            try_on("mount --bind $W/secret $H/alias", &policy, secret, script, check);
        }
    }
}

#[test]
fn what_was_mounted_over_a_second_name_is_no_second_name() {
    try_on(
        "mount --bind $W/secret $H/alias; mount -t tmpfs none $H/alias; echo other > $H/alias/key; own $H/alias",
        "srt 1\nuse std/system\ndefault read allow\nallow write $WORKSPACE\ndeny read $WORKSPACE/secret/key\n",
        |scene| scene.file("work/secret/key", "secret\n").folder("alias"),
        "cat ../alias/key; cat secret/key || echo held",
        |_, done| assert_eq!(done.ok(), "other\nheld"),
    );
}

/// What holds of a workspace wherever it is.
const RULES: &str = "srt 1\nuse std/system\ndefault read deny\nallow read, write $WORKSPACE\n\
    deny read [$WORKSPACE/secret, $WORKSPACE/hidden]\ndeny write $WORKSPACE/.git/hooks\ndeny exec $WORKSPACE/data\n";
const CONTENTS: &str = "mkdir -p hidden .git/hooks data; echo secret | tee secret > hidden/f; echo old > file; \
    echo hook > .git/hooks/h; cp /bin/true data/true; cp /bin/true true; own .; cd /";
const WORK: &str = "echo new > file; echo x > made; mv made moved; mkdir -p d/e; mv d g; cat file moved; ./true && echo ran; \
    for try in 'cat secret' 'cat hidden/f' 'echo x > .git/hooks/h' 'touch .git/hooks/n' 'mv .git git' data/true \
    'ln data/true t' 'rm -f secret'; do (eval \"$try\") && echo \"NOT HELD: $try\"; done; true";

fn work_is_done_and_rules_hold(mounts: &str) {
    try_on(mounts, RULES, |scene| scene, WORK, |_, done| assert_eq!(done.ok(), "new\nx\nran"));
}

#[test]
fn a_workspace_on_a_file_system_in_memory() {
    work_is_done_and_rules_hold(&format!("mount -t tmpfs none $W; cd $W; {CONTENTS}"));
}

#[test]
fn a_workspace_on_an_overlay() {
    work_is_done_and_rules_hold(&format!(
        "mkdir $H/store; mount -t tmpfs none $H/store; cd $H/store; mkdir lower upper work; own upper; cd lower; {CONTENTS}; \
         cd $H/store; mount -t overlay none -o lowerdir=lower,upperdir=upper,workdir=work $W"
    ));
}

#[test]
fn a_workspace_that_is_a_mount_of_a_part_of_its_own_disk() {
    work_is_done_and_rules_hold(&format!("mkdir $H/there; cd $H/there; {CONTENTS}; mount --bind $H/there $W"));
}

#[test]
fn a_workspace_from_which_the_host_runs_nothing() {
    try_on(
        "mount -t tmpfs -o noexec none $W; cp /bin/true $W/true; own $W",
        ALL,
        |scene| scene,
        "echo x > a; cat a; ./true || echo refused",
        |_, done| assert_eq!(done.ok(), "x\nrefused"),
    );
}

#[test]
fn a_workspace_that_is_reached_through_a_link() {
    for user in users() {
        for engine in ENGINES {
            let scene = Scene::new()
                .file("work/file", "old\n")
                .file("work/secret", "secret\n")
                .link("ws", "work")
                .policy("allow read, write $WORKSPACE\ndeny read $WORKSPACE/secret")
                .with(["--engine", engine])
                .by(user);
            let link = scene.home().join("ws");
            let script = "echo new > file; cat file; cat secret || echo held; basename \"$(pwd -P)\"";
            let entered = output(scene.sandboxed(["sh", "-c", script]).current_dir(&link));
            assert_eq!(entered.ok(), "new\nheld\nwork", "{user:?}, {engine}");
            let scene = scene.with(["--workspace".as_ref(), link.as_os_str()]);
            let named = output(scene.sandboxed(["sh", "-c", script]).current_dir(&link));
            assert_eq!(named.ok(), "new\nheld\nwork", "{user:?}, {engine}");
        }
    }
}

#[test]
fn a_workspace_in_the_temporary_directory_is_apart_from_the_private_one() {
    for user in users() {
        for engine in ENGINES {
            let scene = Scene::under("/tmp")
                .file("work/file", "old\n")
                .file("work/secret", "secret\n")
                .file("beside", "not named\n")
                .policy("allow read $WORKSPACE\nallow write $WORKSPACE/file\ndeny read $WORKSPACE/secret")
                .with(["--engine", engine])
                .by(user);
            let name = scene.home().file_name().unwrap().to_str().unwrap();
            let script = "echo new > file; cat file; cat secret || touch made || cat ../beside || echo held; \
                echo $TMPDIR; ls /tmp; echo x > /tmp/srt-private && cat /tmp/srt-private";
            let done = scene.run(script);
            assert_eq!(done.ok(), format!("new\nheld\n/tmp\n{name}\nx"), "{user:?}, {engine}: {}", done.stderr);
            assert!(!Path::new("/tmp/srt-private").exists());
            assert_eq!(std::fs::read_to_string(scene.workspace().join("file")).unwrap(), "new\n");
        }
    }
}
