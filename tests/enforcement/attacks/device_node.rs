//! A device node in a read-only tree is still written through, since read-only holds for the file system alone.

use crate::sandbox::{Run, scratch};
use nix::sys::stat::{Mode, SFlag, makedev, mknod};

#[test]
fn device_nodes_of_the_host_cannot_be_opened() {
    if !nix::unistd::geteuid().is_root() {
        return;
    }
    let scratch = scratch(None);
    let node = scratch.path().join("zero");
    mknod(&node, SFlag::S_IFCHR, Mode::from_bits_truncate(0o666), makedev(1, 5)).unwrap();
    let script = format!("head -c 1 {0} && echo read; echo x > {0} && echo written", node.display());
    let outside = std::process::Command::new("sh").args(["-c", &script]).output().unwrap();
    assert_eq!(outside.stdout, b"\0read\nwritten\n");
    let run = Run::shell(&script).without_landlock();
    assert_eq!(run.output().stdout, b"");
    assert_eq!(run.writing(scratch.path()).output().stdout, b"");
}
