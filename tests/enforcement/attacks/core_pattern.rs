//! `/proc/sys` checks the user id of the host, not capabilities: root outside writes `core_pattern` from inside, and
//! the next crash runs a program on the host.

use crate::sandbox::{Run, users};
use std::process::Command;

/// Opens for writing, and writes nothing.
const ATTACK: &str = "
import os
for path in ['/proc/sys/kernel/core_pattern', '/proc/sysrq-trigger', '/proc/sys/kernel/modprobe', '/proc/irq/default_smp_affinity',
             '/sys/kernel/uevent_helper', '/sys/kernel/mm/transparent_hugepage/enabled']:
    try:
        os.close(os.open(path, os.O_WRONLY))
        print('open', path)
    except OSError:
        pass
";

#[test]
fn nothing_of_the_host_is_writable_in_proc_and_sys() {
    for user in users() {
        assert_eq!(Run::python(ATTACK).as_user_of(user).without_landlock().succeeds(), "");
    }
    // Every file of it, by trying.
    let walk = "
import os
for top in ['/proc', '/sys']:
    for directory, below, files in os.walk(top):
        below[:] = [name for name in below if not (directory == '/proc' and name.isdigit()) and name not in ('thread-self', 'self')]
        for name in files:
            path = os.path.join(directory, name)
            try:
                os.close(os.open(path, os.O_WRONLY | os.O_NONBLOCK))
                print(path)
            except OSError:
                pass
";
    for user in users() {
        assert_eq!(Run::python(walk).as_user_of(user).without_landlock().succeeds(), "");
    }
}

#[test]
fn without_covers_it_is_open() {
    // The same namespaces and no capability either; only root outside is let through.
    if !nix::unistd::geteuid().is_root() {
        return;
    }
    let output = Command::new("unshare")
        .args(["--user", "--map-root-user", "--mount", "--pid", "--fork", "sh", "-c"])
        .arg("mount -t proc proc /proc && exec setpriv --bounding-set=-all --inh-caps=-all --no-new-privs python3 -c \"$0\"")
        .arg(ATTACK)
        .output()
        .unwrap();
    assert!(String::from_utf8_lossy(&output.stdout).contains("core_pattern"), "{output:?}");
}
