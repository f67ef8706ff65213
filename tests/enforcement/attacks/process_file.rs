//! The files of a process in `/proc`: whoever opens one for the command must not open its own. Process 1, which makes calls for the
//! command, may look into itself.

use crate::sandbox::{Run, for_each_user};
use sandbox_runtime::exec::linux::{Defence, Watch};

const SCRIPT: &str = r"
import os
os.symlink('/proc/1', 'one')
os.symlink('/proc', 'all')
os.symlink('/proc/1/mem', 'memory')
os.symlink('/proc/self', 'own')
held = os.open('/proc/1', os.O_RDONLY)
def write(path, **more):
    # One that only reads is served too, if it would make what is not there.
    for flags in (os.O_RDWR, os.O_RDONLY | os.O_CREAT, os.O_WRONLY | os.O_TRUNC):
        try:
            os.open(path, flags, **more)
            print('opened', path)
        except OSError as error:
            assert error.errno in (13, 40), error
for path in ('/proc/1/mem', 'one/mem', 'all/1/mem', 'memory', 'own/mem', '/proc/1/task/1/mem', '/proc/self/../1/mem',
             '/proc/1/oom_score_adj', '/proc/1/root/proc/1/mem', '/proc/1/cwd/x', '/proc/1/fd/0'):
    write(path)
write('mem', dir_fd=held)
for flags in (os.O_PATH, os.O_PATH | os.O_RDWR):
    place = os.open('/proc/1/mem', flags)
    write(f'/proc/self/fd/{place}')
    write(f'/dev/fd/{place}')
if os.fork() == 0:
    # Another process's, of the command's own: not asked for by any program, and not given.
    write('/proc/%d/mem' % os.getppid())
    os._exit(0)
os.wait()
for own in ('/proc/self/mem', '/proc/%d/mem' % os.getpid(), '/proc/thread-self/comm', '/proc/self/oom_score_adj'):
    os.close(os.open(own, os.O_RDWR))
print('own')
";

#[test]
fn nobodys_process_but_the_callers_is_opened() {
    for_each_user(|user, scratch| {
        let rules = "allow write $WORKSPACE\ndeny write $WORKSPACE/denied";
        let run = Run::policy(rules, scratch, "").with_python(SCRIPT).as_user_of(user);
        assert_eq!(run.plan.syscalls.performed, Watch::Writes);
        assert_eq!(run.succeeds(), "own\n", "{user:?}");
        for link in ["one", "all", "memory", "own"] {
            std::fs::remove_file(scratch.join(link)).unwrap();
        }
        let undefended = run.without(Defence::OwnProcess).succeeds();
        // Its memory is root's.
        let won =
            if user.is_none() && nix::unistd::geteuid().is_root() { "opened /proc/1/mem\n" } else { "opened /proc/1/" };
        assert!(undefended.contains(won), "{user:?}: {undefended}");
    });
}
