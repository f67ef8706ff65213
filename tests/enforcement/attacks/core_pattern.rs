//! `/proc/sys` checks the user id of the host, not capabilities: root outside writes `core_pattern` from inside, and
//! the next crash runs a program on the host.

use crate::sandbox::{Run, for_each_user};
use sandbox_runtime::exec::linux::Defence;

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
    for_each_user(|user, _| {
        let run = Run::python(ATTACK).as_user_of(user).without_landlock();
        assert_eq!(run.succeeds(), "");
        // No capability either way; only who is root outside is let through.
        let open = run.without(Defence::ProcCovers).succeeds();
        let root = user.is_none() && nix::unistd::geteuid().is_root();
        assert_eq!(open.contains("core_pattern"), root, "{open}");
        assert!(!open.contains("/sys/kernel/mm"), "{open}");
    });
}

#[test]
fn every_file_of_proc_and_sys_is_tried() {
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
    for_each_user(|user, _| {
        assert_eq!(Run::python(walk).as_user_of(user).without_landlock().succeeds(), "");
    });
}
