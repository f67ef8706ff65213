//! Landlock (ABI 2 and up): writing and running are possible at all only below the plan's places, whatever descriptor,
//! FIFO or device node a path leads to. Mounts say what is not possible within them.

use super::control::Failure;
use super::kernel;
use super::mounts::{open, open_root};
use crate::backend::bubblewrap::Landlock;
use nix::errno::Errno;
use nix::fcntl::{FcntlArg, OFlag, fcntl, openat};
use nix::sys::stat::{Mode, SFlag, fstat};
use std::os::fd::{AsFd, OwnedFd, RawFd};

// linux/landlock.h, LANDLOCK_ACCESS_FS_*.
const EXECUTE: u64 = 1;
const WRITE_FILE: u64 = 1 << 1;
const REMOVE_DIR: u64 = 1 << 4;
const REMOVE_FILE: u64 = 1 << 5;
const MAKE_CHAR: u64 = 1 << 6;
const MAKE_DIR: u64 = 1 << 7;
const MAKE_REG: u64 = 1 << 8;
const MAKE_SOCK: u64 = 1 << 9;
const MAKE_FIFO: u64 = 1 << 10;
const MAKE_BLOCK: u64 = 1 << 11;
const MAKE_SYM: u64 = 1 << 12;
const REFER: u64 = 1 << 13;
const TRUNCATE: u64 = 1 << 14;

/// LANDLOCK_SCOPE_ABSTRACT_UNIX_SOCKET and LANDLOCK_SCOPE_SIGNAL: `kill(0, …)` reaches what is inside, and not the
/// caller's process group, to which the command belongs for the terminal's sake.
const SCOPES: u64 = 0b11;

/// The ABI from which renaming across directories can be allowed at all.
pub const FLOOR: u32 = 2;

/// Rights to change a tree; nobody is given `MAKE_CHAR` and `MAKE_BLOCK`.
const CHANGE: u64 =
    WRITE_FILE | REMOVE_DIR | REMOVE_FILE | MAKE_DIR | MAKE_REG | MAKE_SOCK | MAKE_FIFO | MAKE_SYM | REFER | TRUNCATE;

/// Rights that make sense on something that is no directory.
const ON_FILES: u64 = EXECUTE | WRITE_FILE | TRUNCATE;

/// Where the hosts file and the names of the name servers are, or are linked to: by systemd, WSL and NixOS.
const RESOLVER: [&str; 5] = ["/etc", "/run", "/var/run", "/mnt/wsl", "/nix/store"];

/// Gives up, for this process and every thread it starts from now on, all files but what looking up a name reads.
/// A second wall around the proxy, which reads what is hostile: where the kernel has no Landlock there is none.
pub fn keep_resolver_alone() -> Result<(), Errno> {
    const READ: u64 = 1 << 2 | 1 << 3;
    let Ok(abi) = kernel::landlock_abi() else { return Ok(()) };
    let since = |from: u32, right: u64| if abi >= from { right } else { 0 };
    let files = (CHANGE & !REFER & !TRUNCATE) | MAKE_CHAR | MAKE_BLOCK | EXECUTE | READ;
    let ruleset = kernel::landlock_ruleset(abi, files | since(2, REFER) | since(3, TRUNCATE), 0)?;
    let root = open_root()?;
    for place in RESOLVER {
        // A link leads to another of them; what is not there needs no allowing.
        let Ok(place) = open(root.as_fd(), place.as_bytes()) else { continue };
        let mode = fstat(&place)?.st_mode;
        if SFlag::from_bits_truncate(mode & SFlag::S_IFMT.bits()) == SFlag::S_IFDIR {
            kernel::landlock_allow(ruleset.as_fd(), place.as_fd(), READ)?;
        }
    }
    nix::sys::prctl::set_no_new_privs()?;
    kernel::landlock_restrict(ruleset.as_fd())
}

/// Makes the ruleset, inside, from the places as the command sees them. `passed` are the descriptors it is given.
pub fn prepare(plan: &Landlock, passed: &[RawFd]) -> Result<OwnedFd, Failure> {
    let abi = kernel::landlock_abi().unwrap_or(0);
    if abi < FLOOR {
        let act = format!("use Landlock ABI {FLOOR} (this kernel has {abi}; see `srt doctor`)");
        return Err(Failure::setup(act, Errno::EOPNOTSUPP));
    }
    let known = if abi >= 3 { !0 } else { !TRUNCATE };
    let mut handled = (CHANGE | MAKE_CHAR | MAKE_BLOCK) & known;
    if !plan.exec.is_empty() {
        handled |= EXECUTE;
    }
    let scoped = if abi >= 6 { SCOPES } else { 0 };
    let ruleset = kernel::landlock_ruleset(abi, handled, scoped)
        .map_err(|errno| Failure::setup("make a Landlock ruleset", errno))?;
    let root = open_root().map_err(|errno| Failure::setup("open `/`", errno))?;
    for path in &plan.write {
        allow(&ruleset, &root, path, CHANGE & handled)?;
    }
    for path in &plan.exec {
        allow(&ruleset, &root, path, EXECUTE & handled)?;
    }
    for &fd in passed {
        allow_passed(&ruleset, fd, (WRITE_FILE | TRUNCATE) & handled)?;
    }
    Ok(ruleset)
}

fn allow(ruleset: &OwnedFd, root: &OwnedFd, path: &[u8], rights: u64) -> Result<(), Failure> {
    let failed = |errno| Failure::setup(format!("let Landlock allow `{}`", String::from_utf8_lossy(path)), errno);
    let place = match walk(root, path) {
        Ok(place) => place,
        // Not there, or not for us: then there is nothing to allow.
        Err(Errno::ENOENT | Errno::EACCES | Errno::ENOTDIR | Errno::ELOOP) => return Ok(()),
        Err(errno) => return Err(failed(errno)),
    };
    let mode = fstat(&place).map_err(failed)?.st_mode;
    let directory = SFlag::from_bits_truncate(mode & SFlag::S_IFMT.bits()) == SFlag::S_IFDIR;
    let rights = if directory { rights } else { rights & ON_FILES };
    kernel::landlock_allow(ruleset.as_fd(), place.as_fd(), rights).map_err(failed)
}

/// Opens a place without following a link, as [`open`] does, by calls that the command's filter leaves open: it is in force
/// by now.
fn walk(root: &OwnedFd, path: &[u8]) -> Result<OwnedFd, Errno> {
    let mut names = path.split(|byte| *byte == b'/').filter(|name| !name.is_empty()).peekable();
    let mut at: Option<OwnedFd> = None;
    while let Some(name) = names.next() {
        let between = if names.peek().is_some() { OFlag::O_DIRECTORY } else { OFlag::empty() };
        let flags = OFlag::O_PATH | OFlag::O_CLOEXEC | OFlag::O_NOFOLLOW | between;
        at = Some(openat(at.as_ref().unwrap_or(root), name, flags, Mode::empty())?);
    }
    at.map_or_else(|| root.try_clone().map_err(|_| Errno::EMFILE), Ok)
}

/// What the command may write by a descriptor already, it may also reach as `/dev/stdout` and the like: a terminal or a
/// file that stands outside the sandbox's tree. One that is open for reading only stays so.
fn allow_passed(ruleset: &OwnedFd, fd: RawFd, rights: u64) -> Result<(), Failure> {
    let failed = |errno| Failure::setup(format!("look at descriptor {fd}"), errno);
    let borrowed = match kernel::borrow(fd) {
        Ok(borrowed) => borrowed,
        Err(Errno::EBADF) => return Ok(()),
        Err(errno) => return Err(failed(errno)),
    };
    let flags = OFlag::from_bits_retain(fcntl(borrowed, FcntlArg::F_GETFL).map_err(failed)?);
    let access = flags & OFlag::O_ACCMODE;
    if flags.contains(OFlag::O_PATH) || (access != OFlag::O_WRONLY && access != OFlag::O_RDWR) {
        return Ok(());
    }
    let mode = fstat(borrowed).map_err(failed)?.st_mode;
    match SFlag::from_bits_truncate(mode & SFlag::S_IFMT.bits()) {
        SFlag::S_IFREG | SFlag::S_IFCHR => match kernel::landlock_allow(ruleset.as_fd(), borrowed, rights) {
            // memfd and the like are on no mount that Landlock looks at.
            Ok(()) | Err(Errno::EBADFD) => Ok(()),
            Err(errno) => Err(failed(errno)),
        },
        _ => Ok(()),
    }
}
