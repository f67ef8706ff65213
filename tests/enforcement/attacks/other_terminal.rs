//! The other terminals of the same user: what is written there is read by a person, or by a terminal emulator.

use crate::sandbox::{Run, for_each_user};
use sandbox_runtime::exec::linux::Defence;

#[test]
fn terminals_of_the_host_are_not_there() {
    for_each_user(|user, _| {
        let pty = nix::pty::openpty(None, None).unwrap();
        let name = nix::unistd::ttyname(&pty.slave).unwrap();
        if let Some(user) = user {
            std::os::unix::fs::chown(&name, Some(user), Some(user)).unwrap();
        }
        let run = Run::shell(&format!("echo attack > {}", name.display())).as_user_of(user);
        run.fails();
        if run.bwrap {
            // Its mounts are without devices by themselves.
            return;
        }
        let mut typed = [0; 6];
        run.without_mount("/dev/shm").without_mount("/dev").without(Defence::NoDevices).without_landlock().succeeds();
        nix::unistd::read(&pty.master, &mut typed).unwrap();
        assert_eq!(&typed, b"attack");
    });
}
