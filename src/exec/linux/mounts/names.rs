//! The files by which a library looks a name up, as they are right inside, in the place of the host's: it asks the
//! resolver that the supervisor is.

use super::{at, memory, nothing_on_top, open_root};
use crate::exec::linux::control::Failure;
use crate::exec::linux::kernel::{self, NODEV, NOEXEC, NOSUID, RDONLY};
use crate::exec::linux::network::PROXY;
use nix::fcntl::{OFlag, open, openat};
use nix::sys::stat::{Mode, SFlag, fstat};
use nix::sys::statvfs::{FsFlags, fstatvfs};
use std::ffi::CStr;
use std::io::Read;
use std::os::fd::{AsFd, OwnedFd};

/// The longest of the host's that is read.
const LONGEST: u64 = 64 << 10;

/// Makes a cover's text from the file that it covers.
type Text = fn(OwnedFd) -> String;

/// Covers those of the files that the command may read, and not write: in a finished tree, from inside. A file that is not
/// there is not needed: libraries then ask port 53 of the loopback, which leads to the resolver too.
pub fn cover_names() -> Result<(), Failure> {
    let files: [(&CStr, &CStr, Text); 3] = [
        (c"/etc/hosts", c"hosts", |_| hosts()),
        (c"/etc/resolv.conf", c"resolv.conf", |_| format!("nameserver {}\n", PROXY.ip())),
        (c"/etc/nsswitch.conf", c"nsswitch.conf", switch),
    ];
    let mut covers = Vec::new();
    for (path, name, text) in files {
        let failed = |errno| at("look at", path.to_bytes(), errno);
        // Links are followed: it is what the path means that is read.
        let Ok(place) = open(path, OFlag::O_PATH | OFlag::O_CLOEXEC, Mode::empty()) else { continue };
        let seen = fstat(&place).map_err(failed)?;
        let file = SFlag::from_bits_truncate(seen.st_mode & SFlag::S_IFMT.bits()) == SFlag::S_IFREG;
        let writable = !fstatvfs(&place).map_err(failed)?.flags().contains(FsFlags::ST_RDONLY);
        // A mask is nobody's to read.
        if !file || writable || seen.st_mode & 0o444 == 0 {
            continue;
        }
        let Ok(whole) = open(path, OFlag::O_RDONLY | OFlag::O_CLOEXEC | OFlag::O_NONBLOCK, Mode::empty()) else {
            continue;
        };
        covers.push((place, path, name, text(whole)));
    }
    if covers.is_empty() {
        return Ok(());
    }
    let failed = |errno| Failure::setup("make the files for looking names up", errno);
    let stage = memory(c"0755", NOSUID | NODEV | NOEXEC, None).map_err(failed)?;
    for (_, _, name, text) in &covers {
        let flags = OFlag::O_WRONLY | OFlag::O_CREAT | OFlag::O_EXCL | OFlag::O_CLOEXEC;
        let file = openat(&stage, *name, flags, Mode::from_bits_truncate(0o444)).map_err(failed)?;
        let mut rest = text.as_bytes();
        while !rest.is_empty() {
            let written = nix::unistd::write(&file, rest).map_err(failed)?;
            rest = rest.get(written..).unwrap_or_default();
        }
    }
    kernel::restrict_mount(stage.as_fd(), RDONLY, false).map_err(failed)?;
    let root = open_root().map_err(failed)?;
    // Only an attached mount can be copied before Linux 6.15.
    kernel::attach(stage.as_fd(), root.as_fd()).map_err(failed)?;
    for (place, path, name, _) in &covers {
        let copy = kernel::copy_tree(stage.as_fd(), name, false).map_err(failed)?;
        kernel::attach(copy.as_fd(), place.as_fd()).map_err(|errno| at("cover", path.to_bytes(), errno))?;
    }
    nix::unistd::fchdir(&stage).map_err(failed)?;
    nix::mount::umount2(".", nix::mount::MntFlags::MNT_DETACH).map_err(failed)?;
    nix::unistd::chdir("/").map_err(failed)?;
    nothing_on_top(root.as_fd())
}

fn hosts() -> String {
    let name = nix::unistd::gethostname().ok().and_then(|name| name.into_string().ok());
    // Anything else would be a line of its own.
    let name = name.filter(|name| !name.is_empty() && name.bytes().all(|byte| byte.is_ascii_graphic() && byte != b'#'));
    let own = name.map(|name| format!("127.0.1.1 {name}\n")).unwrap_or_default();
    format!("127.0.0.1 localhost\n::1 localhost ip6-localhost ip6-loopback\n{own}")
}

/// The host's, but for how hosts are found.
fn switch(file: OwnedFd) -> String {
    let mut bytes = Vec::new();
    // What can't be read is left out.
    let _ = std::fs::File::from(file).take(LONGEST).read_to_end(&mut bytes);
    let text = String::from_utf8_lossy(&bytes);
    let others = text.lines().filter(|line| !line.trim_start().starts_with("hosts:"));
    others.chain(["hosts: files dns", ""]).collect::<Vec<_>>().join("\n")
}
