//! `srt doctor`, and a run, where the machine lacks what a sandbox is made of: the lack is named, with what mends it, and nothing
//! runs.

use crate::support::{Output, Scene, am_root, output, srt};
use serde_json::Value;
use std::process::Command;

/// `srt` where `start` starts a shell, once that has done `first`.
fn there(start: &[&str], first: &str, who: &str, arguments: &str) -> Output {
    let scene = Scene::new();
    let line = format!("{first} && exec {who} {} {arguments}", srt().display());
    let mut command = Command::new(start[0]);
    command.args(&start[1..]).args(["sh", "-c", &line]).current_dir(scene.workspace()).env_clear();
    output(
        command.env("PATH", "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin").env("HOME", scene.home()),
    )
}

/// What it says of one of the things that it tries.
#[track_caller]
fn tried(said: &Output, name: &str) -> Value {
    let all: Vec<Value> = serde_json::from_str(&said.stdout).unwrap_or_else(|_| panic!("{said:?}"));
    all.into_iter().find(|one| one["name"] == name).unwrap()
}

#[test]
fn a_machine_without_namespaces_is_told_what_it_lacks() {
    let start = ["unshare", "--user", "--map-root-user"];
    let first = "echo 0 > /proc/sys/user/max_user_namespaces";
    let said = there(&start, first, "", "doctor --format json");
    let namespaces = tried(&said, "namespaces");
    assert_eq!((said.code, &namespaces["ok"], &namespaces["required"]), (1, &false.into(), &true.into()), "{said:?}");
    assert_eq!(namespaces["mend"], "sudo sysctl -w user.max_user_namespaces=15000");
    let said = there(&start, first, "", "run -- touch made");
    assert_eq!(said.code, 125);
    assert!(said.stderr.contains("user.max_user_namespaces") && said.stderr.contains("srt doctor"), "{said:?}");
    assert!(said.stderr.ends_with("srt: nothing was run\n"), "{said:?}");
}

/// The kernel gives no fresh procfs to whoever sees a masked one, as containers have it.
#[test]
fn a_machine_whose_proc_is_masked_is_told_what_it_lacks() {
    let user = crate::support::ORDINARY;
    // Root is another user then: to root, who owns the namespaces, nothing is masked.
    let (start, who) = if am_root() {
        (&["unshare", "--mount"][..], format!("setpriv --reuid={user} --regid={user} --clear-groups"))
    } else {
        (&["unshare", "--user", "--map-root-user", "--mount"][..], String::new())
    };
    let there = |arguments: &str| there(start, "mount -t tmpfs tmpfs /proc/bus", &who, arguments);
    let said = there("doctor --format json");
    let (proc, namespaces) = (tried(&said, "proc"), tried(&said, "namespaces"));
    assert_eq!((said.code, &proc["ok"], &namespaces["ok"]), (1, &false.into(), &true.into()), "{said:?}");
    assert!(proc["found"].as_str().unwrap().contains("partly masked"), "{proc}");
    let said = there("run -- touch made");
    assert!(said.code == 125 && said.stderr.contains("partly masked"), "{said:?}");
}

/// Neither a control group nor a procfs of the sandbox's own: what would be held is less than the policy says.
#[test]
fn a_limit_that_nothing_holds_is_refused() {
    let user = crate::support::ORDINARY;
    let (start, who) = if am_root() {
        (&["unshare", "--mount"][..], format!("setpriv --reuid={user} --regid={user} --clear-groups"))
    } else {
        (&["unshare", "--user", "--map-root-user", "--mount"][..], String::new())
    };
    for (limit, refused) in [("processes 20", true), ("memory 1GiB", true), ("time 20s, files 64", false)] {
        let policy =
            format!("srt 1\\ndefault read deny\\nallow read [/usr, /bin, /lib, /lib64, $WORKSPACE]\\nlimit {limit}\\n");
        let first = format!("mount -t tmpfs tmpfs /proc/bus && printf '{policy}' > its.policy");
        let said = there(start, &first, &who, "run --policy its.policy -- /usr/bin/true");
        assert_eq!(said.code, if refused { 125 } else { 0 }, "{limit}: {said:?}");
        assert_eq!(said.stderr.contains("neither a control group nor a procfs"), refused, "{limit}: {said:?}");
    }
}
