//! The thread whose call is served: its descriptors, its memory, its places.
//!
//! Whatever is read here can change at once, and the thread can be gone and its number another's: who reads asks afterwards
//! whether the call still waits.

use crate::exec::linux::kernel::{NET_ADMIN, SYS_PTRACE, checked, descriptor, with_capabilities};
use nix::errno::Errno;
use nix::fcntl::{OFlag, openat};
use nix::sys::stat::Mode;
use nix::sys::uio::{RemoteIoVec, process_vm_readv};
use nix::unistd::Pid;
use std::cell::OnceCell;
use std::io::IoSliceMut;
use std::os::fd::{AsRawFd, BorrowedFd, OwnedFd};

/// What the broker has kept: to look into commands that have closed themselves to others (`ssh-agent`), and to ask a socket
/// where it is bound. In force only while that is done, so that whatever is done for a command, is done with no more than it has.
pub const CAPABILITIES: u32 = SYS_PTRACE | NET_ADMIN;

pub struct Task<'p> {
    thread: Pid,
    /// Names the thread, or its process where the kernel knows no better; once it is needed.
    process: OnceCell<OwnedFd>,
    /// The root of a procfs of this process's namespace.
    proc: BorrowedFd<'p>,
}

impl<'p> Task<'p> {
    pub fn new(thread: Pid, proc: BorrowedFd<'p>) -> Task<'p> {
        Task { thread, process: OnceCell::new(), proc }
    }

    fn pidfd(&self) -> Result<&OwnedFd, Errno> {
        // PIDFD_THREAD (Linux 6.9): a thread can have descriptors of its own.
        const OF_A_THREAD: i32 = libc::O_EXCL;
        if let Some(process) = self.process.get() {
            return Ok(process);
        }
        let process = match pidfd(self.thread, OF_A_THREAD) {
            Err(Errno::EINVAL) => pidfd(leader(self.thread, self.proc)?, 0)?,
            other => other?,
        };
        Ok(self.process.get_or_init(|| process))
    }

    /// The same open file as a descriptor of the thread (pidfd_getfd(2)). `EBADF`: it has none of this number.
    pub fn descriptor(&self, number: i32) -> Result<OwnedFd, Errno> {
        let process = self.pidfd()?;
        with_capabilities(CAPABILITIES, || duplicate(process, number))
    }

    /// So many bytes of its memory. `EFAULT`: they are not there.
    pub fn read(&self, address: u64, length: usize) -> Result<Vec<u8>, Errno> {
        let mut bytes = vec![0; length];
        let base = usize::try_from(address).map_err(|_| Errno::EFAULT)?;
        let there = [RemoteIoVec { base, len: length }];
        let read = with_capabilities(CAPABILITIES, || {
            process_vm_readv(self.thread, &mut [IoSliceMut::new(&mut bytes)], &there)
        })?;
        if read == length { Ok(bytes) } else { Err(Errno::EFAULT) }
    }

    /// The bytes of its memory up to the first NUL, which comes before so many. `ENAMETOOLONG`: it does not.
    pub fn string(&self, address: u64, longest: usize) -> Result<Vec<u8>, Errno> {
        /// What most strings end in.
        const FIRST: usize = 256;
        const PAGE: usize = 4096;
        let mut bytes = Vec::new();
        while bytes.len() < longest {
            let at = address.checked_add(bytes.len() as u64).ok_or(Errno::EFAULT)?;
            // What follows a page need not be there.
            let left = PAGE - usize::try_from(at % PAGE as u64).map_err(|_| Errno::EFAULT)?;
            let length = left.min(if bytes.is_empty() { FIRST } else { longest - bytes.len() });
            let part = self.read(at, length)?;
            let end = part.iter().position(|byte| *byte == 0);
            bytes.extend(&part[..end.unwrap_or(part.len())]);
            if end.is_some() {
                return Ok(bytes);
            }
        }
        Err(Errno::ENAMETOOLONG)
    }

    /// Its process's number; its own where that is not to be found out.
    pub fn process(&self) -> i32 {
        leader(self.thread, self.proc).unwrap_or(self.thread).as_raw()
    }

    /// Its directory in a procfs.
    pub fn own_directory(&self) -> String {
        format!("{}/task/{}", self.process(), self.thread)
    }

    /// What it takes from the mode of new files (umask(2)).
    pub fn umask(&self) -> Result<u32, Errno> {
        let number = status(self.thread, self.proc, "Umask:", |text| u32::from_str_radix(text, 8).ok())?;
        number.ok_or(Errno::ESRCH)
    }

    /// Its session, as it is numbered inside (0: it is of outside), and the device of that session's terminal; proc(5), `stat`.
    pub fn session(&self) -> Result<(i32, u64), Errno> {
        let path = format!("{}/stat", self.thread);
        let file = openat(self.proc, path.as_str(), OFlag::O_RDONLY | OFlag::O_CLOEXEC, Mode::empty())?;
        let mut text = [0; 512];
        let length = nix::unistd::read(&file, &mut text)?;
        let text = String::from_utf8_lossy(&text[..length]).into_owned();
        // Its name, in brackets, may hold anything.
        let fields = text.rsplit_once(')').map(|(_, rest)| rest).unwrap_or_default();
        let mut fields = fields.split_whitespace().skip(3);
        let mut number = || fields.next()?.parse::<i64>().ok();
        let (session, terminal) = number().zip(number()).ok_or(Errno::ESRCH)?;
        let terminal = u64::try_from(terminal).map_err(|_| Errno::ENXIO)?;
        // The kernel's packed form (new_encode_dev, linux/kdev_t.h).
        let (major, minor) = (terminal >> 8 & 0xfff, terminal & 0xff | terminal >> 12 & 0xfff00);
        let session = i32::try_from(session).map_err(|_| Errno::ESRCH)?;
        if terminal == 0 { Err(Errno::ENXIO) } else { Ok((session, nix::sys::stat::makedev(major, minor))) }
    }

    /// The longest file that it may make (`RLIMIT_FSIZE`, prlimit(2)).
    #[allow(unsafe_code)]
    pub fn longest_file(&self) -> Result<u64, Errno> {
        let mut limit = libc::rlimit64 { rlim_cur: 0, rlim_max: 0 };
        let nothing = std::ptr::null::<libc::rlimit64>();
        // SAFETY: nothing is set, and the limit is written to a structure of its own.
        checked(libc::c_long::from(unsafe {
            libc::prlimit64(self.thread.as_raw(), libc::RLIMIT_FSIZE, nothing, &raw mut limit)
        }))?;
        Ok(limit.rlim_cur)
    }

    /// What it calls itself (`comm`, proc(5)); empty where it is gone.
    pub fn name(&self) -> Vec<u8> {
        let read = || {
            let path = format!("{}/comm", self.thread);
            let file = openat(self.proc, path.as_str(), OFlag::O_RDONLY | OFlag::O_CLOEXEC, Mode::empty())?;
            let mut name = [0; 64];
            let length = nix::unistd::read(&file, &mut name)?;
            Ok::<_, Errno>(name[..length].strip_suffix(b"\n").unwrap_or(&name[..length]).to_vec())
        };
        read().unwrap_or_default()
    }

    /// What its `/proc/self/NAME` leads to, as a place: `root`, `cwd`, `fd/7`.
    pub fn place(&self, name: &str) -> Result<OwnedFd, Errno> {
        let path = format!("{}/{name}", self.thread);
        with_capabilities(CAPABILITIES, || {
            openat(self.proc, path.as_str(), OFlag::O_PATH | OFlag::O_CLOEXEC, Mode::empty())
        })
    }

    /// Whether this is its number, or its process's.
    pub fn is_called(&self, number: &[u8]) -> bool {
        let own = |pid: Pid| pid.to_string().as_bytes() == number;
        own(self.thread) || leader(self.thread, self.proc).is_ok_and(own)
    }

    /// Whether a number in `/proc` is a thread of this process's. `false` for what is no number.
    pub fn is_of(&self, number: &[u8], process: Pid) -> bool {
        let number = std::str::from_utf8(number).ok().and_then(|text| text.parse().ok()).map(Pid::from_raw);
        number.is_some_and(|number| leader(number, self.proc).is_ok_and(|leader| leader == process))
    }
}

/// The process of a thread.
fn leader(thread: Pid, proc: BorrowedFd<'_>) -> Result<Pid, Errno> {
    status(thread, proc, "Tgid:", |text| text.parse().ok().map(Pid::from_raw))?.ok_or(Errno::ESRCH)
}

/// What a line of a thread's `status` says (proc(5)).
fn status<T>(
    thread: Pid,
    proc: BorrowedFd<'_>,
    line: &str,
    read: impl Fn(&str) -> Option<T>,
) -> Result<Option<T>, Errno> {
    let path = format!("{thread}/status");
    let file = openat(proc, path.as_str(), OFlag::O_RDONLY | OFlag::O_CLOEXEC, Mode::empty())?;
    let mut text = [0; 1024];
    let length = nix::unistd::read(&file, &mut text)?;
    let text = String::from_utf8_lossy(&text[..length]);
    Ok(text.lines().find_map(|text| read(text.strip_prefix(line)?.trim())))
}

/// Whether this process could serve calls here: nothing around it forbids to look into those it has started.
pub fn may_look() -> Result<(), Errno> {
    // The scope in which nobody may trace, whatever its capabilities (Yama, the kernel's admin-guide).
    if std::fs::read("/proc/sys/kernel/yama/ptrace_scope").is_ok_and(|scope| scope.starts_with(b"3")) {
        return Err(Errno::EPERM);
    }
    let own = pidfd(nix::unistd::getpid(), 0)?;
    duplicate(&own, own.as_raw_fd()).map(drop)
}

#[allow(unsafe_code)]
fn pidfd(pid: Pid, flags: i32) -> Result<OwnedFd, Errno> {
    // SAFETY: takes integers only.
    descriptor(unsafe { libc::syscall(libc::SYS_pidfd_open, pid.as_raw(), flags) })
}

#[allow(unsafe_code)]
fn duplicate(process: &OwnedFd, number: i32) -> Result<OwnedFd, Errno> {
    // SAFETY: takes integers only.
    descriptor(unsafe { libc::syscall(libc::SYS_pidfd_getfd, process.as_raw_fd(), number, 0) })
}
