//! `--nest`: namespaces and mounts inside, for programs that bring a sandbox of their own.

use crate::support::{Scene, User, am_root};

const POLICY: &str = "srt 1\nuse std/system\ndefault read allow\nallow read, write $WORKSPACE";
const INSIDE: &str = "unshare -Urm sh -c 'mount -t tmpfs none /mnt && echo nested'";

/// The ordinary user's scene: as root nothing inside could map itself.
fn scene() -> Scene {
    Scene::new().by(if am_root() { User::Ordinary } else { User::Caller }).policy(POLICY)
}

#[test]
fn namespaces_and_mounts_are_made_inside_and_that_is_announced() {
    let closed = scene().run(INSIDE);
    assert_ne!(closed.code, 0, "{closed:?}");
    let open = scene().with(["--nest"]).run(INSIDE);
    assert_eq!(open.ok(), "nested");
    assert!(open.stderr.contains("Landlock is off"), "{}", open.stderr);
}

#[test]
fn what_is_read_only_or_masked_stays_so_in_a_namespace_inside() {
    let scene = scene().file("work/closed", "secret").file("outside", "old");
    let scene = scene.policy(&format!("{POLICY}\ndeny read $WORKSPACE/closed")).with(["--nest"]);
    for attempt in [
        "cat closed",
        "grep -r secret . && echo found the secret",
        "umount closed && cat closed",
        "mount -o remount,bind,rw / && echo new > ../outside",
        "mkdir m && mount --bind . m && cat m/closed",
        "mkdir m; mount --rbind / m && umount -l m/$PWD/closed && cat m/$PWD/closed",
    ] {
        let output = scene.run(&format!("unshare -Urm sh -c '{attempt}'"));
        // Whoever is root inside opens the mask itself, which is empty; what it hides stays hidden.
        assert!(!output.stdout.contains("secret"), "{attempt}: {output:?}");
    }
    assert_eq!(std::fs::read_to_string(scene.home().join("outside")).unwrap(), "old");
}

#[test]
fn root_is_refused_with_the_reason() {
    if am_root() {
        let output = Scene::new().policy(POLICY).with(["--nest"]).run("true");
        assert_eq!(output.code, 125, "{output:?}");
        assert!(output.stderr.contains("another user"), "{}", output.stderr);
    }
}
