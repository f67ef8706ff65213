//! The system calls that nix does not wrap, as safe functions: the new mount API (`fsopen(2)`, `open_tree(2)`,
//! `move_mount(2)`, `mount_setattr(2)`), `clone3(2)`, Landlock, seccomp, capabilities, keyrings.
//!
//! Decides nothing; every function is one call.

use crate::backend::bubblewrap::seccomp::Instruction;
pub use crate::exec::unix::inherited::{borrow, is_ignored, take};
use nix::errno::Errno;
use nix::unistd::Pid;
use std::ffi::{CStr, CString};
use std::os::fd::{AsRawFd, BorrowedFd, FromRawFd, OwnedFd, RawFd};
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

/// Flags of a mount, as `mount_setattr(2)` and `fsmount(2)` take them.
pub const RDONLY: u64 = 0x1;
pub const NOSUID: u64 = 0x2;
pub const NODEV: u64 = 0x4;
pub const NOEXEC: u64 = 0x8;

const AT_EMPTY_PATH: u32 = 0x1000;
const AT_RECURSIVE: u32 = 0x8000;

/// A new process: in the parent its id and descriptor, in the child nothing.
pub enum Cloned {
    Parent(Pid, OwnedFd),
    Child,
}

/// What a call returned, or its error.
pub fn checked(value: impl Into<libc::c_long>) -> Result<libc::c_long, Errno> {
    let value = value.into();
    if value < 0 { Err(Errno::last()) } else { Ok(value) }
}

/// The descriptor that a call has just returned, or its error.
#[allow(unsafe_code)]
pub fn descriptor(value: impl Into<libc::c_long>) -> Result<OwnedFd, Errno> {
    let fd = RawFd::try_from(checked(value)?).map_err(|_| Errno::EBADF)?;
    // SAFETY: the kernel has just returned this descriptor to us, and nothing else owns it.
    Ok(unsafe { OwnedFd::from_raw_fd(fd) })
}

/// `clone3(2)` without a new stack or shared memory, with `CLONE_PIDFD`. Call it while there is one thread.
#[allow(unsafe_code)]
pub fn clone(flags: u64) -> Result<Cloned, Errno> {
    let mut pidfd: RawFd = -1;
    // SAFETY: `clone_args` is plain integers, for which zero is a valid value.
    let mut arguments: libc::clone_args = unsafe { std::mem::zeroed() };
    arguments.flags = flags | libc::CLONE_PIDFD as u64;
    arguments.pidfd = std::ptr::from_mut(&mut pidfd) as u64;
    arguments.exit_signal = libc::SIGCHLD as u64;
    // SAFETY: without CLONE_VM the child has a copy of our memory and goes on from here like after fork(2); there is
    // one thread, so no lock is held by another. The structure and the place of the descriptor outlive the call.
    let pid = checked(unsafe {
        libc::syscall(libc::SYS_clone3, std::ptr::from_mut(&mut arguments), size_of::<libc::clone_args>())
    })?;
    if pid == 0 {
        return Ok(Cloned::Child);
    }
    let pid = Pid::from_raw(libc::pid_t::try_from(pid).map_err(|_| Errno::EOVERFLOW)?);
    Ok(Cloned::Parent(pid, descriptor(libc::c_long::from(pidfd))?))
}

/// `fork(2)`; `None` in the child. Call it while there is one thread.
#[allow(unsafe_code)]
pub fn fork() -> Result<Option<Pid>, Errno> {
    // SAFETY: there is one thread, so the child may go on with ordinary code.
    match unsafe { nix::unistd::fork() }? {
        nix::unistd::ForkResult::Parent { child } => Ok(Some(child)),
        nix::unistd::ForkResult::Child => Ok(None),
    }
}

/// A detached copy of the mount at `at`/`path`; `recursive` with everything mounted below it. A link is not followed where
/// the path is its name alone.
#[allow(unsafe_code)]
pub fn copy_tree(at: BorrowedFd<'_>, path: &CStr, recursive: bool) -> Result<OwnedFd, Errno> {
    const OPEN_TREE_CLONE: u32 = 1;
    const AT_SYMLINK_NOFOLLOW: u32 = 0x100;
    let flags = OPEN_TREE_CLONE
        | libc::O_CLOEXEC as u32
        | AT_EMPTY_PATH
        | AT_SYMLINK_NOFOLLOW
        | if recursive { AT_RECURSIVE } else { 0 };
    // SAFETY: the path is a valid C string for the length of the call.
    descriptor(unsafe { libc::syscall(libc::SYS_open_tree, at.as_raw_fd(), path.as_ptr(), flags) })
}

/// `struct mount_attr` (linux/mount.h).
#[repr(C)]
struct MountAttributes {
    set: u64,
    clear: u64,
    propagation: u64,
    user_namespace: u64,
}

/// Sets flags (never clears one) on the mount that a descriptor names, `recursive` on all below it too.
pub fn restrict_mount(mount: BorrowedFd<'_>, set: u64, recursive: bool) -> Result<(), Errno> {
    mount_setattr(mount, c"", &MountAttributes { set, clear: 0, propagation: 0, user_namespace: 0 }, recursive)
}

/// Cuts every mount of this namespace off from all others: nothing propagates in or out.
pub fn make_private(root: BorrowedFd<'_>) -> Result<(), Errno> {
    let attributes = MountAttributes { set: 0, clear: 0, propagation: libc::MS_PRIVATE, user_namespace: 0 };
    mount_setattr(root, c"", &attributes, true)
}

#[allow(unsafe_code)]
fn mount_setattr(at: BorrowedFd<'_>, path: &CStr, attributes: &MountAttributes, recursive: bool) -> Result<(), Errno> {
    let flags = AT_EMPTY_PATH | if recursive { AT_RECURSIVE } else { 0 };
    // SAFETY: path and attributes are valid for the length of the call, and the size is that of the structure.
    checked(unsafe {
        libc::syscall(
            libc::SYS_mount_setattr,
            at.as_raw_fd(),
            path.as_ptr(),
            flags,
            std::ptr::from_ref(attributes),
            size_of::<MountAttributes>(),
        )
    })
    .map(drop)
}

/// Attaches the mount `from`, with what is mounted below it, on top of the place `to`; if it was attached elsewhere, it is
/// moved.
pub fn attach(from: BorrowedFd<'_>, to: BorrowedFd<'_>) -> Result<(), Errno> {
    attach_at(from, to, c"")
}

/// The same on what has this name in a directory, a link not being followed.
#[allow(unsafe_code)]
pub fn attach_at(from: BorrowedFd<'_>, directory: BorrowedFd<'_>, name: &CStr) -> Result<(), Errno> {
    const MOVE_MOUNT_F_EMPTY_PATH: u32 = 0x4;
    const MOVE_MOUNT_T_EMPTY_PATH: u32 = 0x40;
    // SAFETY: both paths are valid C strings.
    checked(unsafe {
        libc::syscall(
            libc::SYS_move_mount,
            from.as_raw_fd(),
            c"".as_ptr(),
            directory.as_raw_fd(),
            name.as_ptr(),
            MOVE_MOUNT_F_EMPTY_PATH | MOVE_MOUNT_T_EMPTY_PATH,
        )
    })
    .map(drop)
}

/// A new, detached mount of a file system of this kind.
#[allow(unsafe_code)]
pub fn new_filesystem(kind: &CStr, options: &[(&CStr, &CStr)], flags: &[&CStr], set: u64) -> Result<OwnedFd, Errno> {
    const CLOEXEC: u32 = 1;
    const SET_FLAG: u32 = 0;
    const SET_STRING: u32 = 1;
    const CREATE: u32 = 6;
    let nothing = std::ptr::null::<libc::c_char>();
    // SAFETY: the name is a valid C string.
    let context = descriptor(unsafe { libc::syscall(libc::SYS_fsopen, kind.as_ptr(), CLOEXEC) })?;
    let configure = |command: u32, key: *const libc::c_char, value: *const libc::c_char| {
        // SAFETY: key and value are null or valid C strings, as the command asks.
        checked(unsafe { libc::syscall(libc::SYS_fsconfig, context.as_raw_fd(), command, key, value, 0) }).map(drop)
    };
    for (key, value) in options {
        configure(SET_STRING, key.as_ptr(), value.as_ptr())?;
    }
    for key in flags {
        configure(SET_FLAG, key.as_ptr(), nothing)?;
    }
    configure(CREATE, nothing, nothing)?;
    // SAFETY: takes integers only.
    descriptor(unsafe { libc::syscall(libc::SYS_fsmount, context.as_raw_fd(), CLOEXEC, set) })
}

/// Makes the current directory the root, for every process of this mount namespace whose root it was, and mounts the
/// old root on `old`; on `.`, that is on top of the new one.
#[allow(unsafe_code)]
pub fn pivot_root_here(old: &CStr) -> Result<(), Errno> {
    // SAFETY: both paths are valid C strings.
    checked(unsafe { libc::syscall(libc::SYS_pivot_root, c".".as_ptr(), old.as_ptr()) }).map(drop)
}

/// Moves this process into new namespaces.
#[allow(unsafe_code)]
pub fn unshare(flags: i32) -> Result<(), Errno> {
    // SAFETY: takes an integer only; none of the flags that share memory or descriptors with a thread is ever passed.
    checked(libc::c_long::from(unsafe { libc::unshare(flags) })).map(drop)
}

/// Empties the bounding set: nothing that this process or a child of it will execute gives a capability
/// (capabilities(7)). What it has itself stays.
#[allow(unsafe_code)]
pub fn drop_bounding_set() -> Result<(), Errno> {
    for capability in 0..64 as libc::c_ulong {
        // SAFETY: takes integers only.
        match checked(libc::c_long::from(unsafe { libc::prctl(libc::PR_CAPBSET_DROP, capability, 0, 0, 0) })) {
            Ok(_) => (),
            // Past the last one that this kernel knows.
            Err(Errno::EINVAL) if capability > 0 => break,
            Err(errno) => return Err(errno),
        }
    }
    Ok(())
}

/// As bits of a set (capabilities(7)).
pub const NET_ADMIN: u32 = 1 << 12;
pub const SYS_PTRACE: u32 = 1 << 19;

/// Empties every other capability set, the ambient one included, and locks the securebits, so that no later exec, whatever
/// the file or the user id, gives one back (capabilities(7)).
pub fn drop_capabilities() -> Result<(), Errno> {
    keep_capabilities(0)
}

/// The same, but that these stay permitted: in force are they in [`with_capabilities`] alone.
#[allow(unsafe_code)]
pub fn keep_capabilities(kept: u32) -> Result<(), Errno> {
    const NOROOT: libc::c_ulong = 0b11;
    const NO_SETUID_FIXUP: libc::c_ulong = 0b11 << 2;
    const KEEP_CAPS_LOCKED: libc::c_ulong = 1 << 5;
    const NO_AMBIENT_RAISE: libc::c_ulong = 0b11 << 6;
    // SAFETY: takes integers only.
    checked(libc::c_long::from(unsafe {
        libc::prctl(libc::PR_CAP_AMBIENT, libc::PR_CAP_AMBIENT_CLEAR_ALL as libc::c_ulong, 0, 0, 0)
    }))?;
    let bits = NOROOT | NO_SETUID_FIXUP | KEEP_CAPS_LOCKED | NO_AMBIENT_RAISE;
    // SAFETY: takes integers only.
    checked(libc::c_long::from(unsafe { libc::prctl(libc::PR_SET_SECUREBITS, bits, 0, 0, 0) }))?;
    set_capabilities(0, kept)
}

/// Does something with capabilities in force that this thread has kept; within such a thing, only that.
pub fn with_capabilities<T>(kept: u32, act: impl FnOnce() -> Result<T, Errno>) -> Result<T, Errno> {
    thread_local! {
        static IN_FORCE: std::cell::Cell<u32> = const { std::cell::Cell::new(0) };
    }
    if IN_FORCE.get() == kept {
        return act();
    }
    set_capabilities(kept, kept)?;
    IN_FORCE.set(kept);
    let done = act();
    IN_FORCE.set(0);
    set_capabilities(0, kept)?;
    done
}

#[allow(unsafe_code)]
fn set_capabilities(effective: u32, permitted: u32) -> Result<(), Errno> {
    const VERSION_3: u32 = 0x2008_0522;
    let header = [VERSION_3, 0];
    let sets = [effective, permitted, 0, 0, 0, 0];
    // SAFETY: header and sets have the layout that version 3 of capset(2) reads: two words, and two times three.
    checked(unsafe { libc::syscall(libc::SYS_capset, header.as_ptr(), sets.as_ptr()) }).map(drop)
}

/// Joins a new, empty session keyring.
#[allow(unsafe_code)]
pub fn new_keyring() -> Result<(), Errno> {
    const JOIN_SESSION_KEYRING: libc::c_ulong = 1;
    // SAFETY: a null name asks for an anonymous keyring; nothing is read.
    checked(unsafe { libc::syscall(libc::SYS_keyctl, JOIN_SESSION_KEYRING, 0, 0, 0, 0) }).map(drop)
}

/// Marks every descriptor from `first` on to be closed by exec.
#[allow(unsafe_code)]
pub fn close_on_exec(first: RawFd) -> Result<(), Errno> {
    const CLOSE_RANGE_CLOEXEC: libc::c_uint = 4;
    // SAFETY: marks descriptors; no descriptor changes its owner.
    checked(unsafe { libc::syscall(libc::SYS_close_range, first, libc::c_uint::MAX, CLOSE_RANGE_CLOEXEC) }).map(drop)
}

/// Lets a process go before others, where we may (setpriority(2)): only root may.
#[allow(unsafe_code)]
pub fn favour(process: Pid) -> Result<(), Errno> {
    // SAFETY: setpriority takes numbers alone.
    checked(unsafe { libc::setpriority(libc::PRIO_PROCESS, process.as_raw().cast_unsigned(), -20) }).map(drop)
}

/// Closes every descriptor but these. For a process that never runs anything that owned another.
#[allow(unsafe_code)]
pub fn close_all_but(kept: &[RawFd]) -> Result<(), Errno> {
    let mut kept: Vec<_> = kept.iter().filter_map(|fd| libc::c_uint::try_from(*fd).ok()).collect();
    kept.sort_unstable();
    let mut first = 0;
    for fd in kept.into_iter().chain([libc::c_uint::MAX]) {
        if first < fd {
            // SAFETY: whoever calls this has dropped what else it owned, or never drops it: what is closed was inherited,
            // and has no owner in this process.
            checked(unsafe { libc::syscall(libc::SYS_close_range, first, fd - 1, 0) })?;
        }
        first = fd.saturating_add(1);
    }
    Ok(())
}

/// Sends a signal to the process that a descriptor names.
#[allow(unsafe_code)]
pub fn send_signal(pidfd: BorrowedFd<'_>, signal: i32) -> Result<(), Errno> {
    // SAFETY: a null siginfo means that of kill(2).
    checked(unsafe {
        libc::syscall(libc::SYS_pidfd_send_signal, pidfd.as_raw_fd(), signal, std::ptr::null::<libc::siginfo_t>(), 0)
    })
    .map(drop)
}

/// The Landlock ABI of this kernel; an error where there is none.
#[allow(unsafe_code)]
pub fn landlock_abi() -> Result<u32, Errno> {
    const VERSION: u32 = 1;
    // SAFETY: with this flag nothing is read.
    let abi = checked(unsafe { libc::syscall(libc::SYS_landlock_create_ruleset, std::ptr::null::<u8>(), 0, VERSION) })?;
    u32::try_from(abi).map_err(|_| Errno::EOVERFLOW)
}

/// `struct landlock_ruleset_attr` (linux/landlock.h), as far as ABI 6 knows it.
#[repr(C)]
struct RulesetAttributes {
    files: u64,
    network: u64,
    scoped: u64,
}

/// `struct landlock_path_beneath_attr`.
#[repr(C, packed)]
struct PathBeneath {
    allowed: u64,
    parent: i32,
}

/// A ruleset that handles these rights on files, and keeps these effects (ABI 6) within.
#[allow(unsafe_code)]
pub fn landlock_ruleset(abi: u32, files: u64, scoped: u64) -> Result<OwnedFd, Errno> {
    let attributes = RulesetAttributes { files, network: 0, scoped };
    let size = match abi {
        ..=3 => 8,
        4 | 5 => 16,
        _ => size_of::<RulesetAttributes>(),
    };
    // SAFETY: the structure is valid for the call, and `size` no longer than it.
    descriptor(unsafe { libc::syscall(libc::SYS_landlock_create_ruleset, std::ptr::from_ref(&attributes), size, 0) })
}

/// Allows these rights on what `place` names and below it.
#[allow(unsafe_code)]
pub fn landlock_allow(ruleset: BorrowedFd<'_>, place: BorrowedFd<'_>, rights: u64) -> Result<(), Errno> {
    const PATH_BENEATH: u32 = 1;
    let rule = PathBeneath { allowed: rights, parent: place.as_raw_fd() };
    // SAFETY: the rule is valid for the length of the call.
    checked(unsafe {
        libc::syscall(libc::SYS_landlock_add_rule, ruleset.as_raw_fd(), PATH_BENEATH, std::ptr::from_ref(&rule), 0)
    })
    .map(drop)
}

/// Puts the ruleset in force for this process and all its children.
#[allow(unsafe_code)]
pub fn landlock_restrict(ruleset: BorrowedFd<'_>) -> Result<(), Errno> {
    // SAFETY: takes integers only.
    checked(unsafe { libc::syscall(libc::SYS_landlock_restrict_self, ruleset.as_raw_fd(), 0) }).map(drop)
}

/// Loads a filter for this process and all its children (seccomp(2)).
pub fn load_filter(program: &[Instruction]) -> Result<(), Errno> {
    set_filter(program, 0).map(drop)
}

/// The same, and listens to it: for each call that it is to notify of. Who waits for an answer is disturbed by no signal but
/// one that kills (Linux 5.19), so that nothing is done twice.
pub fn load_notifying_filter(program: &[Instruction]) -> Result<OwnedFd, Errno> {
    const NEW_LISTENER: u64 = 1 << 3;
    const WAIT_KILLABLE_RECV: u64 = 1 << 5;
    descriptor(set_filter(program, NEW_LISTENER | WAIT_KILLABLE_RECV)?)
}

#[allow(unsafe_code)]
fn set_filter(program: &[Instruction], flags: u64) -> Result<libc::c_long, Errno> {
    #[repr(C)]
    struct Program {
        length: u16,
        filter: *const Instruction,
    }
    const SET_MODE_FILTER: u32 = 1;
    let length = u16::try_from(program.len()).map_err(|_| Errno::E2BIG)?;
    let program = Program { length, filter: program.as_ptr() };
    // SAFETY: `Program` is laid out as `struct sock_fprog`, `Instruction` as `struct sock_filter`, and the length is
    // that of the slice.
    checked(unsafe { libc::syscall(libc::SYS_seccomp, SET_MODE_FILTER, flags, std::ptr::from_ref(&program)) })
}

/// What became of a child.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Change {
    Exited(u8),
    /// By this signal; real-time ones too, which nix's `Signal` cannot name.
    Signaled(i32),
    Stopped(i32),
}

/// `waitpid(2)` for any child, without waiting; `None` when none has anything to tell.
#[allow(unsafe_code)]
pub fn changed_child() -> Result<Option<(Pid, Change)>, Errno> {
    let mut status = 0;
    // SAFETY: the status is valid for the length of the call.
    let pid = unsafe { libc::waitpid(-1, &raw mut status, libc::WNOHANG | libc::WUNTRACED) };
    if checked(libc::c_long::from(pid))? == 0 {
        return Ok(None);
    }
    let change = if libc::WIFEXITED(status) {
        Change::Exited(u8::try_from(libc::WEXITSTATUS(status)).unwrap_or(u8::MAX))
    } else if libc::WIFSIGNALED(status) {
        Change::Signaled(libc::WTERMSIG(status))
    } else {
        Change::Stopped(libc::WSTOPSIG(status))
    };
    Ok(Some((Pid::from_raw(pid), change)))
}

/// A file in memory with this text, at its beginning, not closed by exec.
#[allow(unsafe_code)]
pub fn memory_file(name: &CStr, text: &[u8]) -> Result<OwnedFd, Errno> {
    // SAFETY: the name is a valid C string.
    let file = descriptor(unsafe { libc::syscall(libc::SYS_memfd_create, name.as_ptr(), 0) })?;
    let mut rest = text;
    while !rest.is_empty() {
        let written = nix::unistd::write(&file, rest)?;
        rest = &rest[written..];
    }
    nix::unistd::lseek(&file, 0, nix::unistd::Whence::SeekSet)?;
    Ok(file)
}

/// Whether this kernel notifies of system calls, leaves who waits undisturbed, and hands a descriptor over with the answer
/// (Linux 5.19 has all of that). Loads a filter that permits everything: for a process that is about to end.
#[allow(unsafe_code)]
pub fn try_notification() -> Result<(), Errno> {
    const RET_ALLOW: u32 = 0x7fff_0000;
    const ADDFD: libc::c_ulong = 0x4018_2103;
    const ADDFD_SEND: u32 = 1 << 1;
    let listener = load_notifying_filter(&[Instruction { code: 0x06, jt: 0, jf: 0, k: RET_ALLOW }])?;
    // `struct seccomp_notif_addfd`: id, flags, srcfd, newfd, newfd_flags.
    let mut addfd = [0u64, u64::from(ADDFD_SEND), 0];
    // SAFETY: the request reads 24 bytes, which are there.
    match checked(libc::c_long::from(unsafe { libc::ioctl(listener.as_raw_fd(), ADDFD, addfd.as_mut_ptr()) })) {
        // There is no such notification: the flag was understood.
        Ok(_) | Err(Errno::ENOENT) => Ok(()),
        Err(errno) => Err(errno),
    }
}

/// The value of an extended attribute, of 255 bytes at most; links are followed.
#[allow(unsafe_code)]
pub fn attribute(path: &Path, name: &CStr) -> Result<Vec<u8>, Errno> {
    let path = CString::new(path.as_os_str().as_bytes()).map_err(|_| Errno::EINVAL)?;
    let mut value = vec![0_u8; 255];
    // SAFETY: both names are valid C strings, and the value has the room that is told.
    let length = unsafe { libc::getxattr(path.as_ptr(), name.as_ptr(), value.as_mut_ptr().cast(), value.len()) };
    let length = usize::try_from(length).map_err(|_| Errno::last())?;
    value.truncate(length);
    Ok(value)
}

/// Replaces this process's program; only ever returns an error.
#[allow(unsafe_code)]
pub fn exec(program: &CStr, arguments: &[*const libc::c_char], environment: &[*const libc::c_char]) -> Errno {
    if arguments.last() != Some(&std::ptr::null()) || environment.last() != Some(&std::ptr::null()) {
        return Errno::EINVAL;
    }
    // SAFETY: both arrays end with a null pointer, and the callers keep the strings they point to.
    unsafe { libc::execve(program.as_ptr(), arguments.as_ptr(), environment.as_ptr()) };
    Errno::last()
}

/// Ends this process at once: no destructor runs and no buffer that was copied from the parent is written twice.
#[allow(unsafe_code)]
pub fn exit(status: i32) -> ! {
    // SAFETY: ends the process.
    unsafe { libc::_exit(status) }
}

/// Gives a signal its default action again.
#[allow(unsafe_code)]
pub fn default_action(signal: nix::sys::signal::Signal) -> Result<(), Errno> {
    // SAFETY: installs no handler of ours.
    unsafe { nix::sys::signal::signal(signal, nix::sys::signal::SigHandler::SigDfl) }.map(drop)
}
