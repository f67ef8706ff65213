//! A FIFO in a read-only tree is written to all the same, and whoever reads it is on the host.

use crate::sandbox::{Run, for_each_user, give};
use nix::sys::stat::Mode;

#[test]
fn a_fifo_of_the_host_is_not_written_to() {
    for_each_user(|user, scratch| {
        let fifo = scratch.join("fifo");
        nix::unistd::mkfifo(&fifo, Mode::from_bits_truncate(0o600)).unwrap();
        give(&fifo, user);
        // Held open for reading, so that no writer waits.
        let _reader = std::fs::OpenOptions::new().read(true).write(true).open(&fifo).unwrap();
        let run = Run::shell(&format!("echo out > {}", fifo.display())).as_user_of(user);
        assert!(run.fails().contains("Permission denied"));
        run.without_landlock().succeeds();
    });
}
