//! Length, mode, owner, times and extended attributes: by path, and by descriptor.

use super::super::place::own_name;
use super::target::{Node, Target, find, of_descriptor};
use super::{Acting, Done, node, syscall};
use crate::backend::bubblewrap::seccomp::{FileCall, Last};
use crate::sets::path::AbsPath;
use nix::errno::Errno;
use nix::fcntl::{AtFlags, OFlag};
use nix::sys::stat::{FchmodatFlags, Mode, SFlag, fchmodat, fstat};
use nix::unistd::{Gid, Uid, fchownat};
use std::ffi::CString;
use std::os::fd::{AsFd, OwnedFd};

/// The longest name and value of an extended attribute (linux/limits.h).
const NAME: usize = 256;
const VALUE: u64 = 65536;

/// What is changed, with what it takes.
enum Change {
    Length(i64),
    Mode(u32),
    Owner(u32, u32),
    Times(Option<[libc::timespec; 2]>),
    Set { name: CString, value: Vec<u8>, flags: i32 },
    Unset(CString),
}

impl Acting<'_> {
    /// A call that changes what a path leads to.
    pub(super) fn change(&self, file_call: &FileCall) -> Done {
        // `futimens` is this call without a path.
        let by_descriptor = file_call.name == "utimensat" && self.argument(1) == 0;
        let (way, change) = self.read(|| {
            let way = if by_descriptor { Err(Errno::ENOENT) } else { self.path(file_call.first) };
            Ok((way, self.change_of(file_call.name)?))
        })?;
        let flag = |argument: u8, flag: i32| self.int(argument) & flag != 0;
        let (follow, empty) = match file_call.first.last {
            Last::KeptBy(argument) => (!flag(argument, libc::AT_SYMLINK_NOFOLLOW), flag(argument, libc::AT_EMPTY_PATH)),
            last => (last == Last::Followed, false),
        };
        if let Ok(way) = &way {
            self.look_ahead(way, follow)?;
        }
        let acting = self.acting();
        let proc = self.broker.proc.as_fd();
        let target = match way {
            Err(Errno::ENOENT) if by_descriptor || empty => {
                let number = self.int(file_call.first.directory.unwrap_or_default());
                Target::Node(of_descriptor(&self.task, number, proc)?)
            }
            way => find(&self.task, way?, follow, proc)?,
        };
        let (place, name) = match target {
            Target::Named(named) => {
                if node::is_of_processes(&named.directory)? {
                    return Err(Errno::EACCES);
                }
                let place = node::hold(&named.directory, &named.last)?;
                if named.slash && !node::is_directory(&fstat(&place)?) {
                    return Err(Errno::ENOTDIR);
                }
                (place, Some(named.name))
            }
            Target::Node(Node { place, name, .. }) => (place, name),
        };
        self.decide_change(&place, name.as_ref())?;
        drop(acting);
        self.act(|| self.make_change(&place, &change))
    }

    /// The same on a descriptor.
    pub(super) fn change_by_descriptor(&self) -> Done {
        let name = match self.call.number {
            libc::SYS_fchmod => "fchmod",
            libc::SYS_fchown => "fchown",
            libc::SYS_fsetxattr => "setxattr",
            _ => "removexattr",
        };
        let (node, change) = self.read(|| {
            let node = of_descriptor(&self.task, self.int(0), self.broker.proc.as_fd())?;
            Ok((node, self.change_of(name)?))
        })?;
        if node.opened.is_some_and(|opened| opened.contains(OFlag::O_PATH)) {
            return Err(Errno::EBADF);
        }
        self.decide_change(&node.place, node.name.as_ref())?;
        self.act(|| self.make_change(&node.place, &change))
    }

    /// By its name. What has none, the sandbox does not show: no rule speaks of it, and the kernel decides.
    fn decide_change(&self, place: &OwnedFd, name: Option<&AbsPath>) -> Result<(), Errno> {
        let Some(name) = name else { return Ok(()) };
        if node::is_of_processes(place)? {
            return Err(Errno::EACCES);
        }
        self.may_write(name)
    }

    fn change_of(&self, call: &str) -> Result<Change, Errno> {
        let word = |at: u8| u32::try_from(self.argument(at) & 0xffff_ffff).unwrap_or_default();
        let text = |at: u8| {
            let text = self.task.string(self.argument(at), NAME).map_err(|errno| match errno {
                Errno::ENAMETOOLONG => Errno::ERANGE,
                errno => errno,
            })?;
            CString::new(text).map_err(|_| Errno::EINVAL)
        };
        Ok(match call {
            "truncate" => Change::Length(self.length(self.argument(1).cast_signed())?),
            "chmod" | "fchmod" => Change::Mode(word(1) & 0o7777),
            "fchmodat" | "fchmodat2" => Change::Mode(word(2) & 0o7777),
            "chown" | "lchown" | "fchown" => Change::Owner(word(1), word(2)),
            "fchownat" => Change::Owner(word(2), word(3)),
            "utime" | "utimes" => Change::Times(self.times(call, self.argument(1))?),
            "futimesat" | "utimensat" => Change::Times(self.times(call, self.argument(2))?),
            "setxattr" | "lsetxattr" => {
                let length = self.argument(3);
                if length > VALUE {
                    return Err(Errno::E2BIG);
                }
                let value = self.task.read(self.argument(2), usize::try_from(length).map_err(|_| Errno::E2BIG)?)?;
                Change::Set { name: text(1)?, value, flags: self.int(4) }
            }
            "removexattr" | "lremovexattr" => Change::Unset(text(1)?),
            _ => return Err(Errno::ENOSYS),
        })
    }

    /// A file's new length. This process has another limit than the command.
    fn length(&self, length: i64) -> Result<i64, Errno> {
        let wanted = u64::try_from(length).map_err(|_| Errno::EINVAL)?;
        if wanted > self.task.longest_file()? { Err(Errno::EFBIG) } else { Ok(length) }
    }

    /// `None`: now.
    fn times(&self, call: &str, address: u64) -> Result<Option<[libc::timespec; 2]>, Errno> {
        if address == 0 {
            return Ok(None);
        }
        let count = if call == "utime" { 2 } else { 4 };
        let bytes = self.task.read(address, count * 8)?;
        let words: Vec<i64> =
            bytes.chunks_exact(8).map(|word| i64::from_ne_bytes(word.try_into().unwrap_or_default())).collect();
        let time = |tv_sec, tv_nsec| libc::timespec { tv_sec, tv_nsec };
        // utimbuf has seconds, timeval microseconds, timespec nanoseconds.
        let micros = |micros: i64| {
            if (0..1_000_000).contains(&micros) { Ok(micros * 1000) } else { Err(Errno::EINVAL) }
        };
        Ok(Some(match (call, &words[..]) {
            ("utime", [accessed, changed]) => [time(*accessed, 0), time(*changed, 0)],
            ("utimensat", [a, b, c, d]) => [time(*a, *b), time(*c, *d)],
            (_, [a, b, c, d]) => [time(*a, micros(*b)?), time(*c, micros(*d)?)],
            _ => return Err(Errno::EINVAL),
        }))
    }

    fn make_change(&self, place: &OwnedFd, change: &Change) -> Result<(), Errno> {
        let proc = self.broker.proc.as_fd();
        let seen = fstat(place)?;
        let is_link = node::kind(&seen) == SFlag::S_IFLNK;
        let own = own_name(place);
        match change {
            Change::Length(length) => {
                match node::kind(&seen) {
                    SFlag::S_IFREG => (),
                    SFlag::S_IFDIR => return Err(Errno::EISDIR),
                    _ => return Err(Errno::EINVAL),
                }
                let file = node::open(place, OFlag::O_WRONLY, proc)?;
                nix::unistd::ftruncate(&file, *length)
            }
            Change::Mode(_) if is_link => Err(Errno::EOPNOTSUPP),
            Change::Mode(mode) => {
                let mode = Mode::from_bits_truncate(*mode);
                fchmodat(proc, own.as_str(), mode, FchmodatFlags::FollowSymlink)
            }
            Change::Owner(user, group) => {
                let user = (*user != u32::MAX).then(|| Uid::from_raw(*user));
                let group = (*group != u32::MAX).then(|| Gid::from_raw(*group));
                fchownat(place, "", user, group, AtFlags::AT_EMPTY_PATH)
            }
            Change::Times(times) => syscall::set_times(place, times.as_ref()),
            Change::Set { .. } | Change::Unset(_) if is_link => Err(Errno::EPERM),
            Change::Set { name, value, flags } => syscall::set_attribute(&own, name, value, *flags),
            Change::Unset(name) => syscall::remove_attribute(&own, name),
        }
    }
}
